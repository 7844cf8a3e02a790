//! Bill of materials in the format CycloneDX 1.6 (JSON).

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::graph::{Key, Package};
use super::pack;
use super::platform::Platform;
use super::source::Source;

/// Component of the toolchain that is linked into the program and is no package of Cargo.
pub(crate) struct Linked {
    /// Name of the library.
    pub(crate) name: &'static str,
    /// SPDX expression.
    pub(crate) licence: &'static str,
    /// Description of the origin.
    pub(crate) origin: &'static str,
}

/// Libraries of the toolchain in a static program.
pub(crate) const TOOLCHAIN: &[Linked] = &[
    Linked {
        name: "rust-std",
        licence: "MIT OR Apache-2.0",
        origin: "Rust standard library",
    },
    Linked {
        name: "musl",
        licence: "MIT",
        origin: "C library, from the Rust target or from Zig",
    },
    Linked {
        name: "libc++",
        licence: "Apache-2.0 WITH LLVM-exception",
        origin: "C++ library of LLVM, from Zig",
    },
    Linked {
        name: "libunwind",
        licence: "Apache-2.0 WITH LLVM-exception",
        origin: "unwinding library of LLVM, from Zig or the Rust target",
    },
];

/// Returns the bill of materials of a program.
///
/// # Errors
///
/// The time of the commit cannot be formatted.
pub(crate) fn of(
    packages: &BTreeMap<Key, Package>,
    source: &Source,
    platform: Platform,
    program: &[u8],
) -> anyhow::Result<Value> {
    let mut root = Value::Null;
    let (mut components, mut dependencies) = (Vec::new(), Vec::new());
    for package in packages.values() {
        if package.name == "bulkhead" {
            root = json!({
                "type": "application",
                "bom-ref": reference(package),
                "name": package.name,
                "version": package.version,
                "description": package.description,
                "licenses": [{"expression": package.licence}],
                "hashes": [{"alg": "SHA-256", "content": pack::sha256(program)}],
                "properties": [
                    {"name": "bulkhead:commit", "value": source.commit},
                    {"name": "bulkhead:target", "value": platform.triple()},
                ],
            });
        } else {
            components.push(component(package));
        }
        let below = package
            .dependencies
            .iter()
            .filter_map(|key| packages.get(key))
            .map(reference);
        dependencies.push(json!({"ref": reference(package), "dependsOn": below.collect::<Vec<_>>()}));
    }
    for linked in TOOLCHAIN {
        components.push(json!({
            "type": "library",
            "bom-ref": format!("toolchain:{}", linked.name),
            "name": linked.name,
            "description": linked.origin,
            "licenses": [{"expression": linked.licence}],
            "scope": "required",
        }));
    }
    let mut document = json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {
            "timestamp": source.timestamp()?,
            "component": root,
            "lifecycles": [{"phase": "build"}],
        },
        "components": components,
        "dependencies": dependencies,
    });
    document["serialNumber"] = Value::String(serial_number(&document));
    Ok(document)
}

/// Returns a UUID (version 8) of the content, so that a repeated release has the same one.
fn serial_number(document: &Value) -> String {
    let digest = pack::sha256(document.to_string().as_bytes());
    let part = |from: usize, to: usize| &digest[from..to];
    let (first, second, third, fourth, last) = (part(0, 8), part(8, 12), part(13, 16), part(17, 20), part(20, 32));
    format!("urn:uuid:{first}-{second}-8{third}-8{fourth}-{last}")
}

fn component(package: &Package) -> Value {
    let mut component = json!({
        "type": "library",
        "bom-ref": reference(package),
        "name": package.name,
        "version": package.version,
        "scope": if package.is_linked { "required" } else { "excluded" },
    });
    if let Some(description) = &package.description {
        component["description"] = json!(description.split_whitespace().collect::<Vec<_>>().join(" "));
    }
    if let Some(licence) = &package.licence {
        // Old manifests separate alternatives by a slash.
        let alternatives: Vec<_> = licence.split('/').map(str::trim).collect();
        component["licenses"] = json!([{"expression": alternatives.join(" OR ")}]);
    }
    if let Some(sha256) = &package.sha256 {
        component["hashes"] = json!([{"alg": "SHA-256", "content": sha256}]);
        component["purl"] = json!(reference(package));
    }
    if let Some(repository) = &package.repository {
        component["externalReferences"] = json!([{"type": "vcs", "url": repository}]);
    }
    component
}

/// Returns the package URL, which is also the reference of a component in the document. Versions have no character
/// but `+` that a package URL escapes.
fn reference(package: &Package) -> String {
    format!("pkg:cargo/{}@{}", package.name, package.version.replace('+', "%2B"))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::super::graph;
    use super::*;

    #[test]
    fn every_dependency_of_the_document_is_a_component_with_a_licence() {
        let source = Source {
            version: "0.1.0".to_owned(),
            commit: "3f9a1c2e55ab".to_owned(),
            epoch_s: 1_700_000_000,
        };
        let packages = graph::read(&crate::root(), Platform::X86).unwrap();
        let document = of(&packages, &source, Platform::X86, b"program").unwrap();
        let components = document["components"].as_array().unwrap();
        let mut known: BTreeSet<_> = components
            .iter()
            .map(|found| found["bom-ref"].as_str().unwrap())
            .collect();
        assert_eq!(known.len(), components.len());
        known.insert(document["metadata"]["component"]["bom-ref"].as_str().unwrap());
        for dependency in document["dependencies"].as_array().unwrap() {
            let below = dependency["dependsOn"].as_array().unwrap().iter();
            for name in below.chain([&dependency["ref"]]).filter_map(Value::as_str) {
                assert!(known.contains(name), "{name}");
            }
        }
        for component in components {
            let has_licence = component["licenses"][0]["expression"].is_string();
            assert!(has_licence, "{component}");
        }
        assert_eq!(document, of(&packages, &source, Platform::X86, b"program").unwrap());
        let other = of(&packages, &source, Platform::X86, b"another").unwrap();
        assert_ne!(document["serialNumber"], other["serialNumber"]);
        assert_eq!(document["serialNumber"].as_str().unwrap().len(), "urn:uuid:".len() + 36);
    }
}
