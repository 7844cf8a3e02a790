//! Origin of a result: program, inputs and settings. A report names all that its content depends on.

use std::collections::BTreeMap;

use bulkhead_controllers::flags::Flags;
use bulkhead_core::manifest::Digest;
use bulkhead_plugin::FoundPlugin;
use serde::Serialize;
use serde_json::Value;

use crate::scenario::{EventAction, Loaded};

/// Version of the program.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Program, inputs and settings.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Origin {
    /// Version of the program.
    pub version: &'static str,
    /// Inputs with their digests.
    pub inputs: Vec<Input>,
    /// Settings of the controllers that differ from the defaults, by name.
    pub settings: BTreeMap<String, String>,
}

/// Input with its digest.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Input {
    /// Name, for example `plugin freeze`.
    pub name: String,
    /// SHA-256 in hexadecimal digits.
    pub sha256: String,
}

impl Input {
    /// Returns an input of several pieces. The digest of a single piece is its plain SHA-256.
    pub fn of<'a>(name: impl Into<String>, pieces: impl Iterator<Item = &'a [u8]>) -> Self {
        Self {
            name: name.into(),
            sha256: Digest::of(pieces).to_string(),
        }
    }
}

impl Origin {
    /// Returns the origin of a result with these settings and inputs.
    pub fn new(flags: &Flags, inputs: Vec<Input>) -> Self {
        Self {
            version: VERSION,
            inputs,
            settings: changed(flags),
        }
    }

    /// Returns the origin of a run of a scenario: its file, its objects, and all plugins that it loads.
    pub fn of_scenario(scenario: &Loaded) -> Self {
        let objects = scenario.manifests.iter().map(|object| object.value.to_string());
        let objects: Vec<_> = objects.map(String::into_bytes).collect();
        let mut inputs = vec![Input {
            name: "scenario file".to_owned(),
            sha256: scenario.sha256.clone(),
        }];
        let name = format!("{} objects of its manifests", objects.len());
        inputs.push(Input::of(name, objects.iter().map(Vec::as_slice)));
        let later = scenario.events.iter().filter_map(|event| match &event.action {
            EventAction::Plugins(plugins) => Some(plugins),
            _ => None,
        });
        let plugin = |plugin: &FoundPlugin| {
            let sha256 = plugin.source.digest().to_string();
            Input {
                name: format!("plugin {}", plugin.manifest.name),
                sha256,
            }
        };
        let mut plugins: Vec<_> = scenario.plugins.iter().chain(later.flatten()).map(plugin).collect();
        plugins.sort();
        plugins.dedup();
        inputs.extend(plugins);
        Self::new(&scenario.flags, inputs)
    }
}

/// Returns the settings that differ from the defaults.
fn changed(flags: &Flags) -> BTreeMap<String, String> {
    let data = |flags: &Flags| serde_json::to_value(flags).unwrap_or_default();
    let (given, defaults) = (data(flags), data(&Flags::default()));
    let fields = given.as_object().into_iter().flatten();
    let differs = fields.filter(|(name, value)| defaults[name.as_str()] != **value);
    differs.map(|(name, value)| (name.clone(), shown(value))).collect()
}

fn shown(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::scenario;

    #[test]
    fn an_origin_names_the_settings_that_differ_and_the_digests_of_its_inputs() {
        let text = "name: a\nduration: 1s\nclusters: [{name: m}]\nflags: {eviction-pre-check: none}\n";
        let loaded = scenario::parse(Path::new("scenario.yaml"), text).unwrap();
        let origin = Origin::of_scenario(&loaded);
        assert_eq!(
            origin.inputs[0],
            Input::of("scenario file", std::iter::once(text.as_bytes()))
        );
        assert_eq!(origin.inputs[1].name, "0 objects of its manifests");
        let other = format!("{text}seed: 2\n");
        let other = Origin::of_scenario(&scenario::parse(Path::new("scenario.yaml"), &other).unwrap());
        assert_ne!(origin.inputs[0], other.inputs[0]);

        let flags = Flags {
            resource_eviction_rate: 0.25,
            ..Flags::default()
        };
        let settings = Origin::new(&flags, Vec::new()).settings;
        assert_eq!(
            settings,
            BTreeMap::from([("resource-eviction-rate".to_owned(), "0.25".to_owned())])
        );
    }
}
