//! Programs of cargo packages in fixed versions, installed into `target/tools`.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Context as _;

use crate::sh;

/// Package with a program of the same name.
pub(crate) struct Tool {
    /// Name of the package and of the program.
    pub(crate) name: &'static str,
    /// Version, such as `1.2.3`.
    pub(crate) version: &'static str,
    /// Arguments of `cargo install` for the features.
    pub(crate) features: &'static [&'static str],
}

impl Tool {
    /// Returns the program. Installs it if it is missing or has another version.
    ///
    /// # Errors
    ///
    /// cargo cannot install the package.
    pub(crate) fn ensure(&self, root: &Path) -> anyhow::Result<PathBuf> {
        let Self {
            name,
            version,
            features,
        } = *self;
        let program = root.join("target/tools/bin").join(name);
        if self.is_installed(&program) {
            return Ok(program);
        }
        let fixed = [
            "install",
            name,
            "--locked",
            "--version",
            version,
            "--root",
            "target/tools",
        ];
        sh::cargo(root, &[&fixed[..], features].concat()).with_context(|| {
            format!("cargo could not install {name} {version} into target/tools; check the network")
        })?;
        Ok(program)
    }

    /// Returns true if the program exists and prints the version.
    fn is_installed(&self, program: &Path) -> bool {
        let output = Command::new(program).arg("--version").output();
        output.is_ok_and(|output| {
            let printed = String::from_utf8_lossy(&output.stdout).into_owned();
            let last = printed.split_whitespace().last().unwrap_or_default();
            last.trim_start_matches('v') == self.version
        })
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn a_program_of_another_version_is_installed_again() {
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("mdbook");
        let tool = Tool {
            name: "mdbook",
            version: "0.5.4",
            features: &[],
        };
        assert!(!tool.is_installed(&program));
        for (printed, expected) in [
            ("mdbook v0.5.4", true),
            ("mdbook 0.5.4", true),
            ("mdbook v10.5.4", false),
        ] {
            std::fs::write(&program, format!("#!/bin/sh\necho {printed}\n")).unwrap();
            std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
            assert_eq!(tool.is_installed(&program), expected, "{printed}");
        }
    }
}
