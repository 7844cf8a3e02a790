//! Checks that the plugin contract does not change unnoticed and stays compatible with released versions.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use wit_parser::{Resolve, UnresolvedPackageGroup, WorldId};

/// Worlds that plugins target. The other worlds are parts of these and change with them.
const WORLDS: [&str; 6] = [
    "health-interpreter",
    "cluster-taint",
    "scheduler-filter",
    "scheduler-score",
    "eviction-check",
    "resource-interpreter",
];

/// Returns the texts of a version of the contract, by file name.
pub(crate) fn texts(folder: &Path) -> BTreeMap<String, String> {
    let entries = fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let files = entries.map(|entry| entry.expect("a readable entry").path());
    let wit = files.filter(|path| path.extension().is_some_and(|extension| extension == "wit"));
    wit.map(|path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        (
            name,
            fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display())),
        )
    })
    .collect()
}

/// Returns the version in the package declaration.
pub(crate) fn version(texts: &BTreeMap<String, String>) -> String {
    let package = "package bulkhead:policy@";
    let line = texts
        .values()
        .flat_map(|text| text.lines())
        .find_map(|line| line.strip_prefix(package));
    line.expect("one file names the package")
        .trim_end_matches(';')
        .to_owned()
}

/// Returns every released version with its texts.
fn released() -> Vec<(String, BTreeMap<String, String>)> {
    let folder = crate::root().join("wit/released");
    let entries = fs::read_dir(&folder).expect("wit/released is there");
    let mut versions: Vec<_> = entries
        .map(|entry| entry.expect("a readable entry").path())
        .map(|path| {
            (
                path.file_name().unwrap_or_default().to_string_lossy().into_owned(),
                texts(&path),
            )
        })
        .collect();
    versions.sort();
    versions
}

/// True if both versions are compatible: before 1.0 within a minor version, later within a major version.
fn compatible(one: &str, other: &str) -> bool {
    let line = |version: &str| {
        let mut parts = version.split('.').map(str::to_owned);
        let major = parts.next();
        let minor = if major.as_deref() == Some("0") {
            parts.next()
        } else {
            None
        };
        (major, minor)
    };
    line(one) == line(other)
}

/// Adds a version of the contract under another version number, and returns its worlds.
pub(crate) fn parse(
    resolve: &mut Resolve,
    texts: &BTreeMap<String, String>,
    version: &str,
    as_version: &str,
) -> Vec<WorldId> {
    let text: String = texts.values().cloned().collect::<Vec<_>>().join("\n");
    // The package declaration must come first; the order of the files is irrelevant.
    let package = format!("package bulkhead:policy@{version};");
    let text = format!(
        "package bulkhead:policy@{as_version};\n{}",
        text.replacen(&package, "", 1)
    );
    let group = UnresolvedPackageGroup::parse("policy.wit", &text).unwrap_or_else(|(_, error)| panic!("{error:?}"));
    let package = resolve.push_group(group).unwrap_or_else(|error| panic!("{error:#}"));
    let world = |name: &&str| {
        resolve
            .select_world(&[package], Some(name))
            .unwrap_or_else(|error| panic!("{error:#}"))
    };
    WORLDS.iter().map(world).collect()
}

/// Returns the reason why plugins built against `old` would not run on a host with `new`, or `None` if they would.
fn incompatibility(old: &BTreeMap<String, String>, new: &BTreeMap<String, String>) -> Option<String> {
    let (before, now) = (version(old), version(new));
    let mut resolve = Resolve::default();
    // Both versions share one `Resolve`, so they need different version numbers. The check ignores the numbers.
    let previous = parse(&mut resolve, old, &before, "0.1.0");
    let next = parse(&mut resolve, new, &now, "0.1.1");
    WORLDS
        .iter()
        .zip(previous.into_iter().zip(next))
        .find_map(|(name, (previous, next))| {
            let checked = wit_component::semver_check(resolve.clone(), previous, next);
            checked
                .err()
                .map(|error| format!("world {name} of {before} does not fit {now}: {error:#}"))
        })
}

#[test]
fn a_released_contract_stays_as_it_is() {
    let current = texts(&crate::root().join("wit"));
    let now = version(&current);
    let same = released().into_iter().find(|(version, _)| *version == now);
    let hint = "a contract that is released does not change; give wit/ a new version, add functions only, and copy it to \
                wit/released/ when it is released";
    if let Some((_, frozen)) = same {
        assert!(frozen == current, "wit/ differs from wit/released/{now}: {hint}");
    }
    for (folder, texts) in released() {
        assert_eq!(version(&texts), folder, "the folder is named after the version");
    }
}

#[test]
fn what_was_built_against_a_released_contract_fits_the_current_one() {
    let current = texts(&crate::root().join("wit"));
    let now = version(&current);
    let supported: Vec<_> = released()
        .into_iter()
        .filter(|(version, _)| compatible(version, &now))
        .collect();
    assert!(
        !supported.is_empty(),
        "no version that {now} is compatible with was ever released"
    );
    for (_, old) in supported {
        assert_eq!(incompatibility(&old, &current), None);
    }
}

#[test]
fn the_check_finds_what_breaks_plugins() {
    let current = texts(&crate::root().join("wit"));
    let changed = |file: &str, old: &str, new: &str| {
        let mut texts = current.clone();
        let text = texts.get_mut(file).expect("the file is there");
        assert_eq!(text.matches(old).count(), 1, "{old}");
        *text = text.replace(old, new);
        incompatibility(&current, &texts)
    };
    let name = "        name: func() -> string;\n        /// The value of a label";
    let more = "        age-s: func() -> u64;\n        name: func() -> string;\n        /// The value of a label";
    assert_eq!(
        changed("cluster.wit", name, more),
        None,
        "a new method breaks no plugin"
    );
    let reason = "        code: string,";
    assert!(
        changed("types.wit", reason, "        code: string,\n        link: string,").is_some(),
        "a new field breaks"
    );
    assert!(
        changed("health.wit", "borrow<object>", "string").is_some(),
        "another parameter breaks"
    );
    assert!(
        changed("context.wit", "    seed: func() -> u64;\n", "").is_some(),
        "a function that went breaks"
    );
}

#[test]
fn versions_are_compatible_as_semver_says() {
    assert!(compatible("0.1.0", "0.1.9"));
    assert!(!compatible("0.1.0", "0.2.0"));
    assert!(compatible("1.0.0", "1.4.0"));
    assert!(!compatible("1.0.0", "2.0.0"));
}

/// The package of the SDK has only files below its folder, so it has links to the contract.
#[test]
fn the_sdk_has_every_file_of_the_contract() {
    let (contract, sdk) = (super::root().join("wit"), super::root().join("plugins/sdk/wit"));
    let files = texts(&contract);
    assert_eq!(files, texts(&sdk));
    for name in files.keys() {
        let link = fs::read_link(sdk.join(name)).unwrap_or_else(|error| panic!("plugins/sdk/wit/{name}: {error}"));
        assert_eq!(link, Path::new("../../../wit").join(name));
    }
}
