//! Compilers of a release: the Rust target, and Zig as compiler and linker for C and C++ (Luau, mimalloc, ring).
//!
//! Zig and cargo-zigbuild are Python packages with fixed versions and digests, in a virtual environment below
//! `target/tools`. Nothing is installed outside of the workspace but the Rust target.

use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};

use super::pack;
use super::platform::Platform;
use crate::{sh, targets};

/// Versions and digests of the packages.
const REQUIREMENTS: &str = include_str!("requirements.txt");
/// File of the environment with the digest of the requirements that it was installed from.
const STAMP: &str = "requirements.sha256";

/// Installed compilers.
pub(crate) struct Toolchain {
    /// Virtual environment with `bin/cargo-zigbuild` and Zig.
    environment: PathBuf,
}

impl Toolchain {
    /// Installs the Rust targets and the packages if they are missing or have other versions.
    ///
    /// # Errors
    ///
    /// A Rust target or a package cannot be installed.
    pub(crate) fn ensure(root: &Path, platforms: &[Platform]) -> anyhow::Result<Self> {
        for platform in platforms {
            targets::ensure(platform.triple(), "a release")?;
        }
        let environment = root.join("target/tools/zig");
        let digest = pack::sha256(REQUIREMENTS.as_bytes());
        let stamp = environment.join(STAMP);
        if std::fs::read_to_string(&stamp).is_ok_and(|found| found == digest) {
            return Ok(Self { environment });
        }
        install(root, &environment).context(
            "a release needs cargo-zigbuild and ziglang, which pip could not install; it needs Python 3 with venv \
             (Debian: python3-venv) and a package index",
        )?;
        std::fs::write(&stamp, digest).with_context(|| format!("writing {}", stamp.display()))?;
        Ok(Self { environment })
    }

    /// Returns the search path for programs, with the environment first.
    pub(crate) fn path(&self) -> anyhow::Result<OsString> {
        let others = env::var_os("PATH").unwrap_or_default();
        let all = std::iter::once(self.environment.join("bin")).chain(env::split_paths(&others));
        env::join_paths(all).context("search path of programs")
    }

    /// Returns the folder of caches. Zig and cargo-zigbuild use the home of the user otherwise.
    pub(crate) fn cache(&self) -> PathBuf {
        self.environment.join("cache")
    }

    /// Returns the licences of the libraries that Zig links, by name of the library.
    ///
    /// # Errors
    ///
    /// The package has no such file.
    pub(crate) fn licences(&self) -> anyhow::Result<Vec<(&'static str, String)>> {
        let libraries = [
            ("musl", "libc/musl/COPYRIGHT"),
            ("libc++", "libcxx/LICENSE.TXT"),
            ("libc++abi", "libcxxabi/LICENSE.TXT"),
            ("libunwind", "libunwind/LICENSE.TXT"),
        ];
        let folder = self.packages()?.join("ziglang/lib");
        let read = |(name, file): (&'static str, &str)| -> anyhow::Result<_> {
            let path = folder.join(file);
            let text = std::fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))?;
            Ok((name, text))
        };
        libraries.into_iter().map(read).collect()
    }

    /// Returns the folder of the installed packages, whose name has the version of Python.
    fn packages(&self) -> anyhow::Result<PathBuf> {
        let folder = self.environment.join("lib");
        let entries = std::fs::read_dir(&folder).with_context(|| format!("reading {}", folder.display()))?;
        for entry in entries {
            let packages = entry?.path().join("site-packages");
            if packages.is_dir() {
                return Ok(packages);
            }
        }
        bail!("{} has no site-packages", folder.display())
    }
}

fn install(root: &Path, environment: &Path) -> anyhow::Result<()> {
    let path = environment.display().to_string();
    sh::run(root, Path::new("python3"), &["-m", "venv", "--clear", &path])?;
    let requirements = environment.join("requirements.txt");
    std::fs::write(&requirements, REQUIREMENTS).with_context(|| format!("writing {}", requirements.display()))?;
    let requirements = requirements.display().to_string();
    let fixed = [
        "install",
        "--quiet",
        "--no-deps",
        "--only-binary",
        ":all:",
        "--require-hashes",
        "--requirement",
    ];
    sh::run(
        root,
        &environment.join("bin/pip"),
        &[&fixed[..], &[&requirements]].concat(),
    )
}

#[cfg(test)]
mod tests {
    use super::REQUIREMENTS;

    #[test]
    fn every_package_has_one_version_and_a_digest_for_each_machine() {
        let packages: Vec<_> = REQUIREMENTS.lines().filter(|line| line.contains("==")).collect();
        assert_eq!(packages.len(), 2, "{packages:?}");
        assert_eq!(REQUIREMENTS.matches("--hash=sha256:").count(), 4);
    }
}
