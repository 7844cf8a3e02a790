//! Static programs, whose bytes do not depend on the machine and the folder of the checkout.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, ensure};

use super::platform::Platform;
use super::source::Source;
use super::toolchain::Toolchain;
use crate::sh;

/// Profile of Cargo.toml for packaged programs. Cargo has a folder of this name in `target`.
pub(super) const PROFILE: &str = "dist";
/// Setting of mimalloc: blocks of more than 64 KiB get pages of their own. Pages of 4 MiB that many blocks share would stay
/// in memory after a burst because of the few blocks that are still in use.
const ALLOCATOR: &str = "-DMI_ENABLE_LARGE_PAGES=0";
/// Separator of `CARGO_ENCODED_RUSTFLAGS`.
const SEPARATOR: &str = "\u{1f}";

/// Builds the program for a platform. Returns its path.
///
/// # Errors
///
/// The build fails, or the program contains a path of this machine.
pub(crate) fn build(
    root: &Path,
    toolchain: &Toolchain,
    source: &Source,
    platform: Platform,
    folder: &Path,
) -> anyhow::Result<PathBuf> {
    let triple = platform.triple();
    let places = places(root, folder)?;
    let rust: Vec<_> = places
        .iter()
        .map(|(from, to)| format!("--remap-path-prefix={from}={to}"))
        .collect();
    let c: Vec<_> = places
        .iter()
        .map(|(from, to)| format!("-ffile-prefix-map={from}={to}"))
        .chain([ALLOCATOR.to_owned()])
        .collect();
    let (path, caches) = (toolchain.path()?, toolchain.cache());
    let path = path.to_str().context("the search path of programs is not UTF-8")?;
    let (rust, c, epoch) = (rust.join(SEPARATOR), c.join(" "), source.epoch_s.to_string());
    let suffix = triple.replace('-', "_");
    let (c_flags, cxx_flags) = (format!("CFLAGS_{suffix}"), format!("CXXFLAGS_{suffix}"));
    let (folder_text, caches) = (folder.display().to_string(), caches.display().to_string());
    let variables: [(&str, &str); 9] = [
        ("PATH", path),
        ("CARGO_ENCODED_RUSTFLAGS", &rust),
        (&c_flags, &c),
        (&cxx_flags, &c),
        ("SOURCE_DATE_EPOCH", &epoch),
        ("BULKHEAD_COMMIT", &source.commit),
        ("CARGO_ZIGBUILD_CACHE_DIR", &caches),
        ("ZIG_GLOBAL_CACHE_DIR", &caches),
        ("CARGO_INCREMENTAL", "0"),
    ];
    let arguments = [
        "zigbuild",
        "--locked",
        "--package",
        "bulkhead",
        "--bin",
        "bulkhead",
        "--profile",
        PROFILE,
        "--target",
        triple,
        "--target-dir",
        &folder_text,
    ];
    sh::cargo_with(root, &arguments, &variables)?;
    let program = folder.join(triple).join(PROFILE).join("bulkhead");
    let bytes = std::fs::read(&program).with_context(|| format!("reading {}", program.display()))?;
    for (place, _) in &places {
        ensure!(
            !contains(&bytes, place.as_bytes()),
            "{} contains the path {place} of this machine, so that another machine builds other bytes",
            program.display()
        );
    }
    Ok(program)
}

/// Returns folders of this machine that a compiler would write into the program, each with its replacement. The last
/// one that fits counts.
fn places(root: &Path, folder: &Path) -> anyhow::Result<Vec<(String, &'static str)>> {
    let cargo = sh::cargo_home().context("neither CARGO_HOME nor HOME is set")?;
    let text = |path: &Path| -> anyhow::Result<String> {
        let text = path
            .to_str()
            .with_context(|| format!("{} is not UTF-8", path.display()))?;
        ensure!(
            !text.contains(char::is_whitespace),
            "{text}: a release cannot be built in a folder with spaces"
        );
        Ok(text.to_owned())
    };
    Ok(vec![
        (text(&cargo)?, "/cargo"),
        (text(root)?, "/bulkhead"),
        (text(folder)?, "/target"),
    ])
}

fn contains(bytes: &[u8], part: &[u8]) -> bool {
    bytes.windows(part.len()).any(|window| window == part)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_of_this_machine_are_replaced() {
        let (root, folder) = (Path::new("/home/me/bulkhead"), Path::new("/home/me/bulkhead/target"));
        let places = places(root, folder).unwrap();
        assert_eq!(
            places[1..],
            [
                ("/home/me/bulkhead".to_owned(), "/bulkhead"),
                ("/home/me/bulkhead/target".to_owned(), "/target"),
            ]
        );
        let error = super::places(Path::new("/home/my folder"), folder)
            .unwrap_err()
            .to_string();
        assert!(error.starts_with("/home/my folder: "), "{error}");
    }

    #[test]
    fn a_path_in_a_program_is_found() {
        assert!(contains(b"\0\0/home/me/x.rs\0", b"/home/me"));
        assert!(!contains(b"\0\0/bulkhead/x.rs\0", b"/home/me"));
    }
}
