//! Evaluation of `--plugins` for in-tree plugins (Karmada: `framework/runtime/registry.go:Filter`).

use std::collections::BTreeSet;

/// Karmada's in-tree plugins without a feature gate, sorted by name.
pub const IN_TREE: [&str; 6] = [
    "APIEnablement",
    "ClusterAffinity",
    "ClusterEviction",
    "ClusterLocality",
    "SpreadConstraint",
    "TaintToleration",
];

/// Karmada's in-tree plugins behind the feature gate WorkloadAffinity.
pub const IN_TREE_WORKLOAD_AFFINITY: [&str; 2] = ["WorkloadAffinity", "WorkloadAntiAffinity"];

/// Returns the names among `known` that `list` enables, sorted by name.
///
/// A `*` anywhere enables all first. Then entries apply from left to right: a known name is enabled, and a `-` prefix
/// disables the name, if it is enabled at that point. Unknown names are ignored.
pub fn enabled_plugins(list: &[String], known: &[&str]) -> Vec<String> {
    let mut enabled: BTreeSet<&str> = if list.iter().any(|entry| entry == "*") {
        known.iter().copied().collect()
    } else {
        BTreeSet::new()
    };
    for entry in list {
        if let Some(name) = known.iter().find(|name| *name == entry) {
            enabled.insert(name);
        } else if entry.starts_with('-') {
            enabled.remove(entry.trim_start_matches('-'));
        }
    }
    enabled.into_iter().map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_read_from_left_to_right() {
        let check = |list: &[&str], expected: &[&str]| {
            let list: Vec<_> = list.iter().map(|entry| (*entry).to_owned()).collect();
            assert_eq!(enabled_plugins(&list, &["Bar", "Foo"]), expected, "{list:?}");
        };
        check(&["*"], &["Bar", "Foo"]);
        check(&[], &[]);
        check(&["-Foo"], &[]);
        check(&["Foo", "-Foo"], &[]);
        check(&["-Foo", "Foo"], &["Foo"]);
        check(&["*", "-Foo", "Foo"], &["Bar", "Foo"]);
        check(&["*", "--Foo"], &["Bar"]);
        check(&["Unknown", "Foo"], &["Foo"]);
    }
}
