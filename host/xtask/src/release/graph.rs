//! Packages that a program is built from, as `cargo metadata` resolves them for a platform.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use cargo_metadata::{DependencyKind, Metadata, MetadataCommand, PackageId};

use super::platform::Platform;

/// Package of the program.
const PROGRAM: &str = "bulkhead";

/// Package that a program is built from.
#[derive(Clone, Debug)]
pub(crate) struct Package {
    /// Name in the registry.
    pub(crate) name: String,
    /// Version, such as `1.2.3`.
    pub(crate) version: String,
    /// Authors of its manifest.
    pub(crate) authors: Vec<String>,
    /// SPDX expression of its manifest, if it has one.
    pub(crate) licence: Option<String>,
    /// File of its manifest with the licence, relative to the folder.
    pub(crate) licence_file: Option<PathBuf>,
    /// Summary of its manifest.
    pub(crate) description: Option<String>,
    /// Address of its sources.
    pub(crate) repository: Option<String>,
    /// Folder of its sources on this machine.
    pub(crate) folder: PathBuf,
    /// SHA-256 of the package in the registry; `None` for a package of this workspace.
    pub(crate) sha256: Option<String>,
    /// True if code of the package is part of the program; false if the package only takes part in the build.
    pub(crate) is_linked: bool,
    /// Packages that it depends on, for the program or for the build, by name and version.
    pub(crate) dependencies: BTreeSet<Key>,
}

/// Name and version of a package.
pub(crate) type Key = (String, String);

impl Package {
    /// Returns true for a package of this workspace.
    pub(crate) fn is_own(&self) -> bool {
        self.sha256.is_none()
    }
}

/// Returns the packages of the program on a platform, by name and version. Dependencies of tests are left out.
///
/// Features are those of the whole workspace, so a package that only a test enables may be in the result.
///
/// # Errors
///
/// `cargo metadata` fails, or `Cargo.lock` does not match.
pub(crate) fn read(root: &Path, platform: Platform) -> anyhow::Result<BTreeMap<Key, Package>> {
    let metadata = MetadataCommand::new()
        .manifest_path(root.join("Cargo.toml"))
        .other_options(["--locked", "--filter-platform", platform.triple()].map(str::to_owned))
        .exec()
        .context("asking cargo for the packages")?;
    packages(&metadata, &checksums(root)?)
}

/// Returns the digests of `Cargo.lock` by name and version.
fn checksums(root: &Path) -> anyhow::Result<BTreeMap<Key, String>> {
    let path = root.join("Cargo.lock");
    let lock = cargo_lock::Lockfile::load(&path).with_context(|| format!("reading {}", path.display()))?;
    let with_digest = |package: cargo_lock::Package| {
        let digest = package.checksum?.to_string();
        Some(((package.name.to_string(), package.version.to_string()), digest))
    };
    Ok(lock.packages.into_iter().filter_map(with_digest).collect())
}

fn packages(metadata: &Metadata, checksums: &BTreeMap<Key, String>) -> anyhow::Result<BTreeMap<Key, Package>> {
    let resolve = metadata.resolve.as_ref().context("cargo resolved no dependencies")?;
    let edges: BTreeMap<&PackageId, Vec<Edge>> = resolve
        .nodes
        .iter()
        .map(|node| (&node.id, node.deps.iter().filter_map(Edge::of).collect()))
        .collect();
    let Some(program) = metadata
        .packages
        .iter()
        .find(|package| package.name.as_str() == PROGRAM)
    else {
        bail!("the workspace has no package {PROGRAM}");
    };
    let known: BTreeMap<_, _> = metadata.packages.iter().map(|package| (&package.id, package)).collect();
    let is_macro = |id: &PackageId| known.get(id).is_some_and(|package| expands_code(package));
    let linked = reachable(&program.id, &edges, |edge| edge.is_linked && !is_macro(edge.to));
    let all = reachable(&program.id, &edges, |_| true);
    let key = |id: &PackageId| {
        known
            .get(id)
            .map(|package| (package.name.to_string(), package.version.to_string()))
    };
    let mut found = BTreeMap::new();
    for id in all {
        let (Some(package), Some(key_of)) = (known.get(id), key(id)) else {
            bail!("cargo describes no package {id}");
        };
        let described = Package {
            name: key_of.0.clone(),
            version: key_of.1.clone(),
            authors: package.authors.clone(),
            licence: package.license.clone(),
            licence_file: package
                .license_file
                .as_ref()
                .map(|file| file.as_std_path().to_path_buf()),
            description: package.description.clone(),
            repository: package.repository.clone(),
            folder: package
                .manifest_path
                .as_std_path()
                .parent()
                .unwrap_or(Path::new("/"))
                .to_path_buf(),
            sha256: checksums.get(&key_of).cloned(),
            // A crate `…-src` has the sources of a library that a build script compiles and links.
            is_linked: linked.contains(id) || package.name.ends_with("-src"),
            dependencies: edges
                .get(id)
                .into_iter()
                .flatten()
                .filter_map(|edge| key(edge.to))
                .collect(),
        };
        found.insert(key_of, described);
    }
    Ok(found)
}

/// Dependency of one package on another one.
struct Edge<'m> {
    to: &'m PackageId,
    /// False if only the build script uses the package.
    is_linked: bool,
}

impl<'m> Edge<'m> {
    /// Returns the edge of a dependency, unless only tests use it.
    fn of(dependency: &'m cargo_metadata::NodeDep) -> Option<Self> {
        let has = |kind| dependency.dep_kinds.iter().any(|found| found.kind == kind);
        let (is_linked, is_of_build) = (has(DependencyKind::Normal), has(DependencyKind::Build));
        (is_linked || is_of_build).then_some(Self {
            to: &dependency.pkg,
            is_linked,
        })
    }
}

/// Returns true for a crate of procedural macros, which runs in the compiler.
fn expands_code(package: &cargo_metadata::Package) -> bool {
    package.targets.iter().any(cargo_metadata::Target::is_proc_macro)
}

fn reachable<'m>(
    start: &'m PackageId,
    edges: &BTreeMap<&'m PackageId, Vec<Edge<'m>>>,
    follows: impl Fn(&Edge) -> bool,
) -> BTreeSet<&'m PackageId> {
    let (mut seen, mut open) = (BTreeSet::from([start]), vec![start]);
    while let Some(id) = open.pop() {
        for edge in edges.get(id).into_iter().flatten().filter(|edge| follows(edge)) {
            if seen.insert(edge.to) {
                open.push(edge.to);
            }
        }
    }
    seen
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(platform: Platform) -> BTreeMap<String, Package> {
        let packages = read(&crate::root(), platform).unwrap();
        packages
            .into_values()
            .map(|package| (package.name.clone(), package))
            .collect()
    }

    #[test]
    fn packages_of_the_program_are_those_that_are_linked_or_build_it() {
        let packages = of(Platform::X86);
        for linked in ["bulkhead", "bulkhead-core", "luau0-src", "mimalloc", "wasmtime"] {
            assert!(packages[linked].is_linked, "{linked}");
        }
        for tool in ["cc", "serde_derive", "syn"] {
            assert!(!packages[tool].is_linked, "{tool}");
        }
        for other in ["bulkhead-e2e", "proptest", "windows-sys", "xtask"] {
            assert!(!packages.contains_key(other), "{other}");
        }
    }

    #[test]
    fn packages_of_a_registry_have_a_digest_and_those_of_the_workspace_have_none() {
        for package in of(Platform::Arm).values() {
            let is_own = package.folder.starts_with(crate::root());
            assert_eq!(package.is_own(), is_own, "{}", package.name);
            let is_valid = |digest: &String| digest.len() == 64;
            assert!(package.sha256.as_ref().is_none_or(is_valid), "{}", package.name);
        }
    }
}
