//! `bulkhead version`, and the commit that the program was built from.

use std::process::ExitCode;

use clap::Args;
use serde::Serialize;

use crate::output::Format;

/// Print the version of the program, the commit that it was built from and the platform that it was built for.
#[derive(Args)]
#[command(after_help = "\
Examples:
  bulkhead version
  bulkhead version -o json")]
pub(crate) struct Arguments {
    /// Output format.
    #[arg(short, long, value_enum, default_value_t = Format::Text)]
    output: Format,
}

/// Version of the program.
#[derive(Clone, Debug, Serialize)]
struct Version {
    version: &'static str,
    /// First digits of the commit; absent if the program was built without git and without `BULKHEAD_COMMIT`.
    commit: Option<&'static str>,
    /// Platform, such as `x86_64-unknown-linux-gnu`.
    target: &'static str,
}

/// Version of this program.
const THIS: Version = Version {
    version: env!("CARGO_PKG_VERSION"),
    commit: known(option_env!("BULKHEAD_COMMIT")),
    target: env!("BULKHEAD_TARGET"),
};

const fn known(commit: Option<&'static str>) -> Option<&'static str> {
    match commit {
        Some(text) if !text.is_empty() => commit,
        _ => None,
    }
}

/// Runs the command.
pub(crate) fn run(arguments: &Arguments) -> ExitCode {
    crate::exit::code(arguments.output.print(|| THIS.text(), &THIS).map(|()| true))
}

/// Returns version and commit, for `--version`.
pub(crate) fn short() -> String {
    THIS.short()
}

/// Returns the commit that the program was built from, or its version if the commit is unknown.
pub(crate) fn commit() -> String {
    THIS.commit
        .map_or_else(|| format!("unknown; version {}", THIS.version), str::to_owned)
}

impl Version {
    fn short(&self) -> String {
        self.commit.map_or_else(
            || self.version.to_owned(),
            |commit| format!("{} ({commit})", self.version),
        )
    }

    fn text(&self) -> String {
        format!(
            "bulkhead {}\ncommit: {}\ntarget: {}\n",
            self.version,
            self.commit.unwrap_or("unknown"),
            self.target
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_build_without_git_has_a_version_and_no_commit() {
        let without = Version {
            version: "1.2.3",
            commit: None,
            target: "wasm32-wasip2",
        };
        assert_eq!(without.short(), "1.2.3");
        assert_eq!(
            without.text(),
            "bulkhead 1.2.3\ncommit: unknown\ntarget: wasm32-wasip2\n"
        );
        assert_eq!(
            serde_json::to_value(&without).unwrap()["commit"],
            serde_json::Value::Null
        );
        let with = Version {
            commit: Some("3f9a1c2e55ab"),
            ..without
        };
        assert_eq!(with.short(), "1.2.3 (3f9a1c2e55ab)");
        assert!(with.text().contains("\ncommit: 3f9a1c2e55ab\n"));
    }
}
