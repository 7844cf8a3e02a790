//! Licences, bans and sources of dependencies, by the rules of deny.toml. `cargo xtask full supply-chain` checks the
//! same file with cargo-deny, advisories included.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use cargo_metadata::{CargoOpt, DependencyKind, Metadata, MetadataCommand, Package};
use spdx::{Expression, ParseMode};
use toml::Table;

/// Rules of deny.toml.
struct Rules {
    licences: BTreeSet<String>,
    banned: BTreeMap<String, String>,
}

fn rules() -> Rules {
    let text = std::fs::read_to_string(super::root().join("deny.toml")).unwrap();
    let table: Table = text.parse().unwrap();
    let licences = table["licenses"]["allow"].as_array().unwrap();
    let banned = table["bans"]["deny"].as_array().unwrap();
    let text = |value: &toml::Value| value.as_str().unwrap().to_owned();
    Rules {
        licences: licences.iter().map(text).collect(),
        banned: banned
            .iter()
            .map(|ban| (text(&ban["crate"]), text(&ban["reason"])))
            .collect(),
    }
}

/// Packages that `Cargo.lock` resolves, for any platform, with all features and with the dependencies of tests.
static RESOLVED: LazyLock<Metadata> = LazyLock::new(|| {
    MetadataCommand::new()
        .manifest_path(super::root().join("Cargo.toml"))
        .features(CargoOpt::AllFeatures)
        .other_options(vec!["--locked".to_owned()])
        .exec()
        .unwrap()
});

impl Rules {
    /// Returns the reason why a package must not be used, if there is one.
    fn problem(&self, name: &str, licence: Option<&str>) -> Option<String> {
        if let Some(reason) = self.banned.get(name) {
            return Some(format!("{name} is banned: {reason}"));
        }
        let Some(licence) = licence else {
            return Some(format!("{name} declares no licence"));
        };
        let expression = match Expression::parse_mode(licence, ParseMode::LAX) {
            Ok(expression) => expression,
            Err(error) => return Some(format!("{name}: {licence:?} is no SPDX expression: {error}")),
        };
        let is_allowed = expression.evaluate(|required| self.licences.contains(&required.to_string()));
        (!is_allowed).then(|| format!("{name}: licence {licence:?} is not in licenses.allow of deny.toml"))
    }
}

#[test]
fn every_dependency_has_an_allowed_licence_and_is_not_banned() {
    let (rules, metadata) = (rules(), &RESOLVED);
    let problem = |package: &Package| rules.problem(&package.name, package.license.as_deref());
    let problems: Vec<_> = metadata.packages.iter().filter_map(problem).collect();
    assert!(problems.is_empty(), "{}", problems.join("\n"));
    assert!(
        metadata.packages.len() > 300,
        "only {} packages",
        metadata.packages.len()
    );
}

#[test]
fn every_dependency_comes_from_the_registry_or_from_this_repository() {
    let root = super::root();
    for package in &RESOLVED.packages {
        let is_known = match &package.source {
            Some(source) => source.is_crates_io(),
            None => package.manifest_path.starts_with(root.to_str().unwrap()),
        };
        assert!(
            is_known,
            "{}: {:?} {}",
            package.name, package.source, package.manifest_path
        );
    }
}

#[test]
fn a_licence_is_allowed_if_one_of_its_alternatives_is() {
    let rules = rules();
    for licence in [
        "MIT",
        "MIT/Apache-2.0",
        "MIT OR GPL-3.0-only",
        "(MIT OR Apache-2.0) AND Unicode-3.0",
        "Apache-2.0 WITH LLVM-exception",
    ] {
        assert_eq!(rules.problem("x", Some(licence)), None, "{licence}");
    }
    for licence in [
        Some("GPL-3.0-only"),
        Some("MIT AND GPL-2.0-only"),
        Some("Proprietary"),
        None,
    ] {
        assert!(rules.problem("x", licence).is_some(), "{licence:?}");
    }
    let banned = rules.problem("openssl-sys", Some("MIT")).unwrap();
    assert!(banned.starts_with("openssl-sys is banned: "), "{banned}");
}

/// A rule that fits no package hides a mistake in its spelling.
#[test]
fn every_allowed_licence_is_the_licence_of_a_package() {
    let metadata = &RESOLVED;
    let mut seen = BTreeSet::new();
    for licence in metadata
        .packages
        .iter()
        .filter_map(|package| package.license.as_deref())
    {
        let expression = Expression::parse_mode(licence, ParseMode::LAX).unwrap();
        seen.extend(expression.requirements().map(|required| required.req.to_string()));
    }
    let unused: Vec<_> = rules()
        .licences
        .into_iter()
        .filter(|licence| !seen.contains(licence))
        .collect();
    assert!(unused.is_empty(), "{}", unused.join(", "));
}

/// Crates that are published together.
const PUBLISHED: [&str; 5] = [
    "bulkhead-conformance",
    "bulkhead-core",
    "bulkhead-plugin",
    "bulkhead-runtime",
    "bulkhead-sdk",
];

#[test]
fn a_published_crate_has_a_description_and_depends_on_published_crates_of_its_version() {
    let metadata = &RESOLVED;
    let own = |package: &&Package| metadata.workspace_members.contains(&package.id);
    let is_published = |package: &Package| package.publish.is_none();
    let mut published = Vec::new();
    for package in metadata
        .packages
        .iter()
        .filter(own)
        .filter(|package| is_published(package))
    {
        let name = package.name.as_str();
        published.push(name);
        assert!(package.description.is_some() && package.license.is_some(), "{name}");
        assert!(
            (1..=5).contains(&package.keywords.len()),
            "{name}: {} keywords",
            package.keywords.len()
        );
        let folder = package.manifest_path.parent().unwrap();
        for file in ["README.md", "LICENSE"] {
            assert!(folder.join(file).is_file(), "{name} has no {file}");
        }
        // Dependencies of tests with a path only are left out of a package.
        let used = package
            .dependencies
            .iter()
            .filter(|used| used.kind != DependencyKind::Development);
        for used in used.filter(|used| used.path.is_some()) {
            assert!(
                PUBLISHED.contains(&used.name.as_str()),
                "{name} depends on {}, which is not published",
                used.name
            );
            assert!(
                used.req.matches(&package.version),
                "{name} depends on {} {}",
                used.name,
                used.req
            );
        }
    }
    published.sort_unstable();
    assert_eq!(published, PUBLISHED);
}
