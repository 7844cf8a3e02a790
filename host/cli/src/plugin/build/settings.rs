//! The file build.yaml of a plugin.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use anyhow::{Context as _, bail};
use bulkhead_plugin::read_document;
use serde::Deserialize;

use crate::plugin::kind::Kind;
use crate::plugin::language::Language;
use crate::plugin::target::MANIFEST;

/// Name of the file.
pub(super) const FILE: &str = "build.yaml";

/// Language and kinds of a plugin.
#[derive(Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct Settings {
    /// Language of the source.
    pub(super) language: Language,
    /// Kinds that the component exports, at least one.
    pub(super) kinds: Vec<Kind>,
}

impl Settings {
    /// Reads the file of a plugin; none if it is a crate without one.
    pub(super) fn read(folder: &Path) -> anyhow::Result<Option<Self>> {
        let path = folder.join(FILE);
        if !path.is_file() {
            if folder.join("Cargo.toml").is_file() {
                return Ok(None);
            }
            let problem = if folder.join(MANIFEST).is_file() {
                "a script needs no build"
            } else {
                "it is not a plugin directory"
            };
            bail!("{} has neither a Cargo.toml nor a {FILE}; {problem}", folder.display());
        }
        let origin = path.display().to_string();
        let text = fs::read_to_string(&path).with_context(|| format!("reading {origin}"))?;
        Self::parse(&origin, &text).map(Some)
    }

    fn parse(origin: &str, text: &str) -> anyhow::Result<Self> {
        let settings: Self = read_document(origin, text).map_err(anyhow::Error::msg)?;
        if settings.kinds.is_empty() {
            bail!("{origin}: kinds: at least one kind is needed, for example [health]");
        }
        Ok(settings)
    }

    /// Returns the interfaces that the component exports besides `plugin`, each once.
    pub(super) fn interfaces(&self) -> Vec<&'static str> {
        let mut found = Vec::new();
        for interface in self.kinds.iter().flat_map(|kind| kind.interfaces()) {
            if !found.contains(interface) {
                found.push(*interface);
            }
        }
        found
    }

    /// Returns the world of the component in WIT, as an addition to the package of the contract.
    ///
    /// A module that the SDK connects by itself may import every input; unused imports are left out of the component.
    pub(super) fn world(&self, name: &str) -> String {
        let mut out = String::from("package bulkhead:policy@0.1.0;\n\n");
        let _ = write!(out, "world {name} {{\n    include any-plugin;\n");
        if matches!(self.language, Language::C | Language::Go) {
            out += "    include inputs;\n";
        }
        for interface in self.interfaces() {
            let _ = writeln!(out, "    include {interface}-part;");
        }
        out + "}\n"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Settings, String> {
        Settings::parse("build.yaml", text).map_err(|error| error.to_string())
    }

    #[test]
    fn a_world_exports_each_interface_once() {
        let settings = parse("language: python\nkinds: [health, resource-interpreter, score]\n").unwrap();
        let world = "package bulkhead:policy@0.1.0;\n\nworld component {\n    include any-plugin;\n    include health-part;\n    include \
                     interpreter-part;\n    include score-part;\n}\n";
        assert_eq!(settings.world("component"), world);
    }

    #[test]
    fn mistakes_name_the_file_and_the_field() {
        for (text, expected) in [
            ("language: python\nkinds: []\n", "build.yaml: kinds: at least one kind"),
            ("language: perl\nkinds: [health]\n", "perl"),
            ("language: go\nkinds: [helth]\n", "helth"),
            ("language: go\nkind: [health]\n", "kind"),
        ] {
            let error = parse(text).unwrap_err();
            assert!(error.contains(expected) && error.starts_with("build.yaml"), "{error}");
        }
    }
}
