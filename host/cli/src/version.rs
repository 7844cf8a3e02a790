//! `bulkhead version`, and the commit that the program was built from.

use std::process::ExitCode;

use bulkhead_server::BuildInfo;
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
    /// Package and version of the contract that components are built against.
    contract: String,
}

/// First digits of the commit of this program, if it is known.
const COMMIT: Option<&str> = known(option_env!("BULKHEAD_COMMIT"));

/// Returns the version of this program.
fn this() -> Version {
    Version {
        version: env!("CARGO_PKG_VERSION"),
        commit: COMMIT,
        target: env!("BULKHEAD_TARGET"),
        contract: bulkhead_engine_wasm::package(),
    }
}

const fn known(commit: Option<&'static str>) -> Option<&'static str> {
    match commit {
        Some(text) if !text.is_empty() => commit,
        _ => None,
    }
}

/// Runs the command.
pub(crate) fn run(arguments: &Arguments) -> ExitCode {
    let this = this();
    crate::exit::code(arguments.output.print(|| this.text(), &this).map(|()| true))
}

/// Returns version, commit and contract, for `--version`.
pub(crate) fn short() -> String {
    this().short()
}

/// Returns the version, commit and contract, for metrics.
pub(crate) fn build_info() -> BuildInfo {
    let Version {
        version,
        commit,
        contract,
        ..
    } = this();
    BuildInfo {
        version: version.to_owned(),
        commit: commit.unwrap_or_default().to_owned(),
        contract,
    }
}

/// Returns the commit that the program was built from, or its version if the commit is unknown.
pub(crate) fn commit() -> String {
    COMMIT.map_or_else(
        || format!("unknown; version {}", env!("CARGO_PKG_VERSION")),
        str::to_owned,
    )
}

impl Version {
    fn short(&self) -> String {
        let Self { version, contract, .. } = self;
        self.commit.map_or_else(
            || format!("{version} ({contract})"),
            |commit| format!("{version} ({commit}, {contract})"),
        )
    }

    fn text(&self) -> String {
        format!(
            "bulkhead {}\ncommit: {}\ntarget: {}\ncontract: {}\n",
            self.version,
            self.commit.unwrap_or("unknown"),
            self.target,
            self.contract
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
            contract: "bulkhead:policy@0.1.0".to_owned(),
        };
        assert_eq!(without.short(), "1.2.3 (bulkhead:policy@0.1.0)");
        assert_eq!(
            without.text(),
            "bulkhead 1.2.3\ncommit: unknown\ntarget: wasm32-wasip2\ncontract: bulkhead:policy@0.1.0\n"
        );
        assert_eq!(
            serde_json::to_value(&without).unwrap()["commit"],
            serde_json::Value::Null
        );
        let with = Version {
            commit: Some("3f9a1c2e55ab"),
            ..without
        };
        assert_eq!(with.short(), "1.2.3 (3f9a1c2e55ab, bulkhead:policy@0.1.0)");
        assert!(with.text().contains("\ncommit: 3f9a1c2e55ab\n"));
    }
}
