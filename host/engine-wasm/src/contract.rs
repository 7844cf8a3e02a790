//! Names of the imports and exports that a component may or must have.

use crate::host::wasi;
use crate::outline::Outline;

/// Package of the plugin contract.
const PACKAGE: &str = "bulkhead:policy";
/// Version of the package that this engine supports.
const VERSION: &str = "0.1.0";
/// Interfaces that the host provides.
const OFFERED: [&str; 8] = [
    "types",
    "object",
    "cluster",
    "clusters",
    "observations",
    "binding",
    "context",
    "log",
];
/// Interfaces that each define a kind of policy.
const KINDS: [&str; 6] = ["health", "taints", "filter", "score", "eviction", "interpreter"];
/// Maximum length of a name in a message, in characters.
const NAME_CHARS_MAX: usize = 128;

/// Returns the package and version of the contract that this engine supports, such as `bulkhead:policy@0.1.0`.
pub fn package() -> String {
    format!("{PACKAGE}@{VERSION}")
}

/// Returns the full name of one of our interfaces.
pub(crate) fn interface(name: &str) -> String {
    format!("{PACKAGE}/{name}@{VERSION}")
}

/// Returns the reason why a component with these names is not a plugin for this engine, if any.
pub(crate) fn objection(outline: &Outline) -> Option<String> {
    import_objection(outline.imports.iter().map(String::as_str)).or_else(|| {
        let exports = || outline.exports.iter().map(String::as_str);
        if let Some(other) = exports().find(|name| other_version(name)) {
            return Some(format!(
                "exports {}, and this host supports {PACKAGE}@{VERSION}",
                shown(other)
            ));
        }
        let exported = |name: &str| exports().any(|export| export == interface(name));
        if !exported("plugin") {
            return Some(format!(
                "does not export {}, which every plugin must",
                interface("plugin")
            ));
        }
        let kinds = KINDS.join(", ");
        (!KINDS.into_iter().any(exported))
            .then(|| format!("exports no kind of policy; at least one of {kinds} of {PACKAGE}@{VERSION} is needed"))
    })
}

/// Returns the reason why the imports of a component are rejected, if any.
pub(crate) fn import_objection<'a>(mut imports: impl Iterator<Item = &'a str>) -> Option<String> {
    let offered = |name: &str| OFFERED.into_iter().any(|offered| name == interface(offered)) || wasi::offers(name);
    let refused = imports.find(|name| !offered(name))?;
    let name = shown(refused);
    Some(if other_version(refused) {
        format!("imports {name}, and this host supports {PACKAGE}@{VERSION}")
    } else {
        let offered = OFFERED.join(", ");
        // The toolchain of JavaScript imports HTTP unless it is left out.
        let way_out = if refused.starts_with("wasi:http/") {
            "; componentize-js leaves it out with disableFeatures: ['http', 'fetch-event']"
        } else {
            ""
        };
        format!(
            "imports {name}, which no plugin may import; allowed are {offered} of {PACKAGE}@{VERSION}, and the basic \
             interfaces of WASI 0.2, which have no effect{way_out}"
        )
    })
}

fn other_version(name: &str) -> bool {
    let ours = name.strip_prefix(PACKAGE).is_some_and(|rest| rest.starts_with('/'));
    ours && name.rsplit_once('@').is_none_or(|(_, version)| version != VERSION)
}

fn shown(name: &str) -> String {
    bulkhead_plugin::plain(name, NAME_CHARS_MAX)
}

#[cfg(test)]
mod tests {
    use super::{Outline, objection};

    fn check(imports: &[&str], exports: &[&str], expected: Option<&str>) {
        let names = |names: &[&str]| names.iter().map(ToString::to_string).collect();
        let found = objection(&Outline {
            imports: names(imports),
            exports: names(exports),
        });
        match (&found, expected) {
            (Some(found), Some(expected)) => assert!(found.contains(expected), "{found}"),
            _ => assert_eq!(found.as_deref(), expected),
        }
    }

    #[test]
    fn objections_name_what_is_wrong() {
        let plugin = "bulkhead:policy/plugin@0.1.0";
        let score = "bulkhead:policy/score@0.1.0";
        check(&["bulkhead:policy/log@0.1.0"], &[plugin, score], None);
        check(&["wasi:clocks/wall-clock@0.2.6"], &[plugin, score], None);
        check(
            &["wasi:http/types@0.2.6"],
            &[plugin, score],
            Some("no effect; componentize-js leaves it out with disableFeatures: ['http', 'fetch-event']"),
        );
        check(
            &["bulkhead:policy/log@0.2.0"],
            &[plugin, score],
            Some("log@0.2.0, and this host supports"),
        );
        check(
            &["bulkhead:policy/secrets@0.1.0"],
            &[plugin, score],
            Some("which no plugin may import"),
        );
        check(&[], &[score], Some("does not export bulkhead:policy/plugin@0.1.0"));
        check(&[], &[plugin], Some("exports no kind of policy"));
        check(
            &[],
            &[plugin, "bulkhead:policy/score@0.2.0"],
            Some("exports bulkhead:policy/score@0.2.0, and this"),
        );
        check(&["a\u{1b}[2J"], &[], Some("imports a[2J,"));
    }
}
