//! Licences of all packages that a program is built from, as one text.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use anyhow::Context as _;

use super::graph::{Key, Package};
use super::sbom::TOOLCHAIN;

/// Beginnings of the names of files with a licence, in lower case.
const NAMES: [&str; 6] = ["license", "licence", "copying", "copyright", "notice", "unlicense"];
/// Depth of folders below a package that are searched: sources of C libraries have their licence next to them.
const DEPTH_MAX: u32 = 4;
/// Bound of a licence in bytes; a longer file is none.
const BYTES_MAX: u64 = 200_000;

/// Conditions of the MIT licence, for packages without a file.
const MIT: &str = "\
Permission is hereby granted, free of charge, to any person obtaining a copy of this software and associated
documentation files (the \"Software\"), to deal in the Software without restriction, including without limitation the
rights to use, copy, modify, merge, publish, distribute, sublicense, and/or sell copies of the Software, and to permit
persons to whom the Software is furnished to do so, subject to the following conditions:

The above copyright notice and this permission notice shall be included in all copies or substantial portions of the
Software.

THE SOFTWARE IS PROVIDED \"AS IS\", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR IMPLIED, INCLUDING BUT NOT LIMITED TO THE
WARRANTIES OF MERCHANTABILITY, FITNESS FOR A PARTICULAR PURPOSE AND NONINFRINGEMENT. IN NO EVENT SHALL THE AUTHORS OR
COPYRIGHT HOLDERS BE LIABLE FOR ANY CLAIM, DAMAGES OR OTHER LIABILITY, WHETHER IN AN ACTION OF CONTRACT, TORT OR
OTHERWISE, ARISING FROM, OUT OF OR IN CONNECTION WITH THE SOFTWARE OR THE USE OR OTHER DEALINGS IN THE SOFTWARE.";

/// Exception of LLVM to Apache-2.0, for packages without a file.
const LLVM_EXCEPTION: &str = "\
---- LLVM Exceptions to the Apache 2.0 License ----

As an exception, if, as a result of your compiling your source code, portions of this Software are embedded into an
Object form of such source code, you may redistribute such embedded portions in such Object form without complying with
the conditions of Sections 4(a), 4(b) and 4(d) of the License.

In addition, if you combine or link compiled forms of this Software with software that is licensed under the GPLv2
(\"Combined Software\") and if a court of competent jurisdiction determines that the patent provision (Section 3), the
indemnity provision (Section 9) or other Section of the License conflicts with the conditions of the GPLv2, you may
retroactively and prospectively choose to deem waived or otherwise exclude such Section(s) of the License, but only in
their entirety and only with respect to the Combined Software.";

/// Returns a table of the packages with their licences, then each text once with the packages that contain it.
/// `toolchain` has the texts of linked libraries that are no packages.
///
/// # Errors
///
/// A package has no text of its licence, or a file cannot be read.
pub(crate) fn of(packages: &BTreeMap<Key, Package>, toolchain: &[(&str, String)]) -> anyhow::Result<String> {
    let foreign: Vec<_> = packages.values().filter(|package| !package.is_own()).collect();
    let mut out = String::from(
        "Licences of third-party code\n\nBulkhead is licensed under Apache-2.0; see LICENSE.\nIts programs contain, \
         or are built with, these packages.\n\n",
    );
    let mut texts: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for package in &foreign {
        let name = format!("{} {}", package.name, package.version);
        let mut found = texts_of(package, DEPTH_MAX)?;
        if found.is_empty() {
            let others = foreign.iter().filter(|other| is_of_same_repository(package, other));
            for other in others {
                found.extend(texts_of(other, 1)?);
            }
        }
        let expression = package.licence.as_deref().unwrap_or("see its text");
        let remark = if found.is_empty() {
            let (remark, text) = standard(package).with_context(|| {
                format!("package {name} ({expression}) has no file with its licence, and neither has its repository")
            })?;
            found.extend(text);
            remark
        } else {
            ""
        };
        let _ = writeln!(out, "{name}: {expression}{remark}");
        for text in found {
            texts.entry(text).or_default().insert(name.clone());
        }
    }
    out.push_str("\nLibraries of the toolchain:\n\n");
    for linked in TOOLCHAIN {
        let _ = writeln!(out, "{}: {} ({})", linked.name, linked.licence, linked.origin);
    }
    for (name, text) in toolchain {
        texts.entry(normal(text)).or_default().insert((*name).to_owned());
    }
    let mut ordered: Vec<_> = texts.into_iter().collect();
    ordered.sort_by(|(_, one), (_, other)| one.cmp(other));
    for (text, names) in ordered {
        let names: Vec<_> = names.into_iter().collect();
        let _ = write!(out, "\n{}\n{}\n\n{text}\n", "=".repeat(80), names.join(", "));
    }
    Ok(out)
}

/// Returns true for another package of the same repository: a workspace often has the licence in one package only.
fn is_of_same_repository(package: &Package, other: &Package) -> bool {
    let address = |package: &Package| {
        let address = package.repository.as_deref()?;
        let address = address.split("/tree/").next().unwrap_or(address);
        Some(address.trim_end_matches('/').trim_end_matches(".git").to_owned())
    };
    address(package).is_some_and(|here| address(other) == Some(here))
}

/// Returns a remark and the standard text for a package without a file: Apache-2.0, which is the licence of Bulkhead
/// and beside this file, that licence with the exception of LLVM,
/// or MIT with the authors of the manifest.
fn standard(package: &Package) -> Option<(&'static str, Option<String>)> {
    let expression = package.licence.as_deref()?;
    let alternatives: Vec<_> = expression
        .split(" OR ")
        .flat_map(|part| part.split('/'))
        .map(str::trim)
        .collect();
    if alternatives.contains(&"Apache-2.0") {
        return Some((" (used under Apache-2.0; see LICENSE)", None));
    }
    if alternatives.contains(&"Apache-2.0 WITH LLVM-exception") {
        return Some((" (see LICENSE, with this exception)", Some(LLVM_EXCEPTION.to_owned())));
    }
    let is_mit = alternatives.contains(&"MIT");
    is_mit.then(|| {
        let authors = if package.authors.is_empty() {
            format!("the authors of {}", package.name)
        } else {
            package.authors.join(", ")
        };
        let text = format!("Copyright (c) {authors}\n\n{MIT}");
        (" (standard text)", Some(text))
    })
}

/// Returns the distinct texts of a package, from its folder and those below to a depth.
fn texts_of(package: &Package, depth: u32) -> anyhow::Result<BTreeSet<String>> {
    let mut found = BTreeSet::new();
    if let Some(file) = &package.licence_file {
        found.extend(text(&package.folder.join(file))?);
    }
    search(&package.folder, depth, &mut found)?;
    Ok(found)
}

fn search(folder: &Path, depth: u32, found: &mut BTreeSet<String>) -> anyhow::Result<()> {
    for entry in fs::read_dir(folder).with_context(|| format!("reading {}", folder.display()))? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().to_lowercase();
        let is_folder = entry.file_type()?.is_dir();
        let is_skipped = name.starts_with('.') || ["target", "tests", "benches", "examples"].contains(&name.as_str());
        if is_folder && depth > 1 && !is_skipped {
            search(&entry.path(), depth - 1, found)?;
        } else if !is_folder && NAMES.iter().any(|start| name.starts_with(start)) && !is_code(&name) {
            found.extend(text(&entry.path())?);
        }
    }
    Ok(())
}

/// Returns true for the name of a source file, such as `license.rs`.
fn is_code(name: &str) -> bool {
    let ending = name.rsplit_once('.').map_or("", |(_, ending)| ending);
    ["rs", "h", "c", "py", "sh", "toml", "json", "yaml", "yml"].contains(&ending)
}

/// Returns the text of a file, or `None` for a file that is too long or no text.
fn text(path: &Path) -> anyhow::Result<Option<String>> {
    let about = || format!("reading {}", path.display());
    if fs::metadata(path).with_context(about)?.len() > BYTES_MAX {
        return Ok(None);
    }
    let bytes = fs::read(path).with_context(about)?;
    Ok(String::from_utf8(bytes)
        .ok()
        .map(|text| normal(&text))
        .filter(|text| !text.is_empty()))
}

/// Returns a text with line feeds, without blanks at the ends of lines and blank lines around it, so that copies are
/// recognized.
fn normal(text: &str) -> String {
    let lines: Vec<_> = text.lines().map(str::trim_end).collect();
    lines.join("\n").trim_matches('\n').to_owned()
}

#[cfg(test)]
mod tests {
    use super::super::graph;
    use super::super::platform::Platform;
    use super::*;

    #[test]
    fn the_text_names_every_package_and_has_the_licences_of_linked_c_libraries() {
        let packages = graph::read(&crate::root(), Platform::X86).unwrap();
        let text = of(&packages, &[("musl", "Copyright of musl".to_owned())]).unwrap();
        for package in packages.values().filter(|package| !package.is_own()) {
            let line = format!("\n{} {}: ", package.name, package.version);
            assert!(text.contains(&line), "{line}");
        }
        // Luau and mimalloc are C and C++ in the folders of packages; ring has code of BoringSSL.
        for part in ["Roblox Corporation", "Daan Leijen", "Copyright of musl"] {
            assert!(text.contains(part), "{part}");
        }
        assert!(
            !text.contains(&crate::root().display().to_string()),
            "a path of this machine"
        );
    }

    #[test]
    fn a_package_without_a_text_gets_that_of_its_repository_or_the_standard_one() {
        let root = tempfile::tempdir().unwrap();
        let package = |name: &str, licence: Option<&str>| {
            let folder = root.path().join(name);
            fs::create_dir_all(&folder).unwrap();
            let package = Package {
                name: name.to_owned(),
                version: "1.0.0".to_owned(),
                authors: vec!["Ada".to_owned(), "Grace".to_owned()],
                licence: licence.map(str::to_owned),
                licence_file: None,
                description: None,
                repository: Some("https://example.com/pads/tree/main/".to_owned() + name),
                folder,
                sha256: Some("0".repeat(64)),
                is_linked: true,
                dependencies: BTreeSet::new(),
            };
            ((name.to_owned(), "1.0.0".to_owned()), package)
        };
        let text = |packages: Vec<(Key, Package)>| of(&BTreeMap::from_iter(packages), &[]);
        let error = format!("{:#}", text(vec![package("left", None)]).unwrap_err());
        assert!(
            error.contains("package left 1.0.0 (see its text) has no file"),
            "{error}"
        );
        let error = format!("{:#}", text(vec![package("left", Some("ISC"))]).unwrap_err());
        assert!(error.contains("(ISC) has no file"), "{error}");
        let mit = text(vec![package("left", Some("MIT"))]).unwrap();
        assert!(mit.contains("left 1.0.0: MIT (standard text)\n"), "{mit}");
        assert!(
            mit.contains("Copyright (c) Ada, Grace\n\nPermission is hereby"),
            "{mit}"
        );
        let apache = text(vec![package("left", Some("MIT/Apache-2.0"))]).unwrap();
        assert!(
            apache.contains("left 1.0.0: MIT/Apache-2.0 (used under Apache-2.0; see LICENSE)\n"),
            "{apache}"
        );
        let (left, right) = (package("left", Some("ISC")), package("right", Some("ISC")));
        fs::write(root.path().join("right/LICENSE-ISC"), "Permission to use\r\n").unwrap();
        let shared = text(vec![left, right]).unwrap();
        assert!(
            shared.ends_with("left 1.0.0, right 1.0.0\n\nPermission to use\n"),
            "{shared}"
        );
    }
}
