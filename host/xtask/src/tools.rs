//! Programs of cargo packages and Go modules in fixed versions, installed into `target/tools`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, ensure};

use crate::digest::sha256;
use crate::sh;

/// Folder that packages are installed into.
const FOLDER: &str = "target/tools";

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
        if let Some(program) = self.installed(root) {
            return Ok(program);
        }
        let Self { name, version, .. } = *self;
        sh::cargo(root, &self.arguments())
            .with_context(|| format!("cargo could not install {name} {version} into {FOLDER}; check the network"))?;
        Ok(self.program(root))
    }

    /// Returns the program if it is installed in this version.
    pub(crate) fn installed(&self, root: &Path) -> Option<PathBuf> {
        Some(self.program(root)).filter(|program| self.is_installed(program))
    }

    /// Returns the command that installs the program.
    pub(crate) fn installation(&self) -> String {
        format!("cargo {}", self.arguments().join(" "))
    }

    fn program(&self, root: &Path) -> PathBuf {
        root.join(FOLDER).join("bin").join(self.name)
    }

    fn arguments(&self) -> Vec<&str> {
        let fixed = [
            "install",
            self.name,
            "--locked",
            "--version",
            self.version,
            "--root",
            FOLDER,
        ];
        [&fixed[..], self.features].concat()
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

/// Program of a Go module. A folder of the repository has `go.mod` and `go.sum` with the versions and digests of the
/// module and of all that it depends on.
pub(crate) struct GoTool {
    /// Name of the program.
    pub(crate) name: &'static str,
    /// Folder with `go.mod` and `go.sum`, from the root of the repository.
    pub(crate) folder: &'static str,
    /// Package of the program.
    pub(crate) package: &'static str,
}

impl GoTool {
    /// Returns the program. Builds it if it is missing or was built from other versions.
    ///
    /// # Errors
    ///
    /// Go is missing or older than the module requires, or the build fails.
    pub(crate) fn ensure(&self, root: &Path) -> anyhow::Result<PathBuf> {
        let Self { name, folder, package } = *self;
        let sources = root.join(folder);
        let out = root.join("target/tools/go").join(versions(&sources)?);
        let program = out.join(name);
        if program.is_file() {
            return Ok(program);
        }
        println!("building {name}, which takes minutes the first time");
        fs::create_dir_all(&out).with_context(|| format!("creating {}", out.display()))?;
        let partial = out.join(format!("{name}.partial"));
        let status = Command::new("go")
            .args(["build", "-trimpath", "-buildvcs=false", "-gcflags", "all=-dwarf=false"])
            .args(["-ldflags", "-s -w", "-o"])
            .arg(&partial)
            .arg(package)
            .current_dir(&sources)
            .envs([("GOTOOLCHAIN", "local"), ("GOFLAGS", "-mod=readonly")])
            .status();
        let status = status.with_context(|| format!("building {name}: starting go; install Go 1.26 or later"))?;
        ensure!(
            status.success(),
            "building {name} in {} failed ({status})",
            sources.display()
        );
        fs::rename(&partial, &program).with_context(|| format!("renaming {}", partial.display()))?;
        Ok(program)
    }
}

/// Returns a digest of the versions in a folder, in 16 hexadecimal digits.
fn versions(folder: &Path) -> anyhow::Result<String> {
    let mut all = Vec::new();
    for file in ["go.mod", "go.sum"] {
        let path = folder.join(file);
        all.extend(fs::read(&path).with_context(|| format!("reading {}", path.display()))?);
    }
    let mut digits = sha256(&all);
    digits.truncate(16);
    Ok(digits)
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

    #[test]
    fn a_go_program_of_other_versions_has_another_folder() {
        let folder = tempfile::tempdir().unwrap();
        let error = versions(folder.path()).unwrap_err().to_string();
        assert!(error.ends_with("go.mod"), "{error}");
        let mut seen = std::collections::BTreeSet::new();
        for sum in ["a v1.0.0 h1:x=", "a v1.0.1 h1:y="] {
            fs::write(folder.path().join("go.mod"), "module m\n").unwrap();
            fs::write(folder.path().join("go.sum"), sum).unwrap();
            let key = versions(folder.path()).unwrap();
            assert_eq!((key.len(), &key), (16, &versions(folder.path()).unwrap()));
            assert!(seen.insert(key));
        }
    }
}
