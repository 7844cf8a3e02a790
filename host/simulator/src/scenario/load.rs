//! Loading of scenarios: reads and checks every input before a run starts.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use bulkhead_controllers::flags::GoDuration;
use bulkhead_core::manifest::{Digest, ManifestProblem, NamePattern, PluginManifest, ProblemKind, Tenancy};
use bulkhead_core::quantity::Quantity;
use bulkhead_plugin::{FoundPlugin, read_document};
use serde::Deserialize;
use serde_json::Value;

use super::loaded::{Loaded, ScenarioError};
use super::loader::{Loader, read};
use super::manifests::Use;
use super::source::Source;
use super::{ClusterSpec, FailureModeSpec, Scenario};

/// Maximum number of member clusters of a scenario.
const CLUSTERS_MAX: u32 = 1_000;

/// Flags of a scenario as written.
#[derive(Deserialize)]
struct Given {
    #[serde(default)]
    flags: Value,
}

/// Loads a scenario and every file that it references.
pub fn load(path: &Path) -> Result<Loaded, ScenarioError> {
    let text = read(path).map_err(|problem| ScenarioError {
        problems: vec![problem],
    })?;
    parse(path, &text)
}

/// Parses a scenario and loads every file that it references, as if the text were in the file at `path`.
pub fn parse(path: &Path, text: &str) -> Result<Loaded, ScenarioError> {
    let name = path.display().to_string();
    let bad = |problem: String| ScenarioError {
        problems: vec![problem],
    };
    let mut scenario: Scenario = read_document(&name, text).map_err(bad)?;
    // The flags are parsed again as data, because typed flags do not record which of them were set.
    let given: Given = read_document(&name, text).map_err(bad)?;
    let source = Source::new(name, text.to_owned());
    scenario.flags = scenario
        .profile
        .with(&given.flags)
        .map_err(|error| bad(format!("{}: flags: {error}", source.value(0, "flags"))))?;
    let mut loader = Loader {
        source,
        folder: path.parent().map(Path::to_path_buf).unwrap_or_default(),
        unknown_kinds: scenario.unknown_kinds,
        custom_kinds: scenario.custom_kinds.clone(),
        files: std::mem::take(&mut scenario.files),
        duration: scenario.duration,
        clusters: BTreeSet::new(),
        tenants: tenants(std::mem::take(&mut scenario.tenants)),
        plugin_names: BTreeSet::new(),
        problems: Vec::new(),
        warnings: Vec::new(),
    };
    let loaded = loader.load(scenario);
    if loader.problems.is_empty() {
        let sha256 = Digest::of(std::iter::once(text.as_bytes())).to_string();
        Ok(Loaded {
            sha256,
            warnings: loader.warnings,
            ..loaded
        })
    } else {
        Err(ScenarioError {
            problems: loader.problems,
        })
    }
}

/// Number of probes from which a scenario has a warning: each costs a fraction of a millisecond.
const PROBES_MANY: u128 = 1_000_000;

impl Loader {
    fn load(&mut self, scenario: Scenario) -> Loaded {
        if scenario.duration.0.is_zero() {
            self.problem("duration", "must be greater than 0, for example 10m");
        }
        if let Err(message) = scenario.flags.validate() {
            let (flag, cause) = message.split_once(": ").unwrap_or(("", &message));
            self.problem(&format!("flags.{flag}"), cause);
        }
        for (index, custom) in scenario.custom_kinds.iter().enumerate() {
            if !custom.api_version.contains('/') || custom.kind.is_empty() || custom.plural.is_empty() {
                let message = "needs an apiVersion with a group, a kind and a plural";
                self.problem(&format!("customKinds[{index}]"), message);
            }
        }
        if scenario.flags.enable_scheduler_estimator {
            self.problem(
                "flags.enable-scheduler-estimator",
                "simulated clusters have no accurate estimators; leave it out",
            );
        }
        let clusters = self.clusters(scenario.clusters);
        self.warn_of_many_probes(clusters.len(), scenario.flags.cluster_status_update_frequency);
        let mut manifests = Vec::new();
        for (index, source) in scenario.manifests.into_iter().enumerate() {
            manifests.extend(self.manifests(&format!("manifests[{index}]"), &source, Use::Create));
        }
        let plugins = self.plugins("plugins", scenario.plugins);
        let mut events: Vec<_> = Vec::new();
        for (index, event) in scenario.events.iter().enumerate() {
            events.extend(self.event(&format!("events[{index}]"), event));
        }
        events.sort_by_key(|event| event.at);
        self.check_tenants();
        self.check_applied(&manifests, &events);
        for (index, expectation) in scenario.expect.iter().enumerate() {
            self.expectation(&format!("expect[{index}]"), &expectation.value);
        }
        Loaded {
            name: scenario.name,
            description: scenario.description,
            sha256: String::new(),
            duration: scenario.duration,
            seed: scenario.seed,
            flags: scenario.flags,
            clusters,
            custom_kinds: scenario.custom_kinds,
            manifests,
            plugins,
            composition: scenario.composition,
            events,
            expectations: scenario
                .expect
                .into_iter()
                .map(|expectation| (expectation.referenced.line(), expectation.value))
                .collect(),
            invariants: scenario.invariants,
            witness: scenario.witness,
            warnings: Vec::new(),
        }
    }

    /// Checks that each tenant has a plugin and a namespace.
    fn check_tenants(&mut self) {
        for (name, tenancy) in std::mem::take(&mut self.tenants) {
            let field = format!("tenants.{name}");
            if !self.plugin_names.contains(&name) {
                let known: Vec<_> = self.plugin_names.iter().map(String::as_str).collect();
                let message = format!("there is no plugin {name:?}; the scenario has {}", known.join(", "));
                self.problem(&field, message);
            } else if tenancy.namespaces.is_empty() {
                self.problem(&field, "must name at least one namespace");
            }
        }
    }

    /// Warns of a scenario that takes minutes because its members are probed so often.
    fn warn_of_many_probes(&mut self, clusters: usize, frequency: GoDuration) {
        let probes = clusters as u128 * self.duration.0.as_nanos() / frequency.0.as_nanos().max(1);
        if probes > PROBES_MANY {
            self.warnings.push(format!(
                "{}: members are probed {probes} times, once per cluster-status-update-frequency ({frequency}) in \
                 {}; that takes long",
                self.source.name(),
                self.duration
            ));
        }
    }

    fn clusters(&mut self, specs: Vec<ClusterSpec>) -> Vec<ClusterSpec> {
        let mut clusters = Vec::new();
        for (index, spec) in specs.into_iter().enumerate() {
            let field = format!("clusters[{index}]");
            let count = spec.count.unwrap_or(1);
            if !(1..=CLUSTERS_MAX.saturating_sub(clusters.len() as u32)).contains(&count) {
                let message = format!("must be at least 1, and at most {CLUSTERS_MAX} in total");
                self.problem(&format!("{field}.count"), message);
                continue;
            }
            let names: Vec<_> = match spec.count {
                None => vec![spec.name.clone()],
                Some(count) => (1..=count).map(|n| format!("{}{n}", spec.name)).collect(),
            };
            for name in names {
                if !is_cluster_name(&name) {
                    let message = format!("{name:?} is not a DNS label of at most 48 characters, such as member1");
                    self.problem(&format!("{field}.name"), message);
                } else if !self.clusters.insert(name.clone()) {
                    self.problem(&format!("{field}.name"), format!("there are two clusters {name:?}"));
                }
                clusters.push(ClusterSpec {
                    name,
                    count: None,
                    ..spec.clone()
                });
            }
            for (name, quantity) in [("cpu", &spec.capacity.cpu), ("memory", &spec.capacity.memory)] {
                if let Err(error) = quantity.parse::<Quantity>() {
                    self.problem(&format!("{field}.capacity.{name}"), format!("{quantity:?}: {error}"));
                }
            }
            self.failure_modes(&field, &spec.failure_modes);
        }
        if clusters.is_empty() {
            self.problem("clusters", "must name at least one member cluster");
        }
        clusters.sort_by(|a, b| a.name.cmp(&b.name));
        clusters
    }

    pub(super) fn failure_modes(&mut self, field: &str, modes: &[FailureModeSpec]) {
        for (index, mode) in modes.iter().enumerate() {
            if mode
                .workload
                .as_ref()
                .is_some_and(|workload| workload.split('/').count() != 2)
            {
                let message = format!(
                    "{:?} is not namespace/name",
                    mode.workload.as_deref().unwrap_or_default()
                );
                self.problem(&format!("{field}.failureModes[{index}].workload"), message);
            }
        }
    }

    pub(super) fn plugins(&mut self, field: &str, manifests: Vec<PluginManifest>) -> Vec<FoundPlugin> {
        let (mut names, mut found) = (BTreeSet::new(), Vec::new());
        for (index, manifest) in manifests.into_iter().enumerate() {
            let field = format!("{field}[{index}]");
            self.plugin_names.insert(manifest.name.clone());
            if !names.insert(manifest.name.clone()) {
                self.problem(&format!("{field}.name"), "must differ from the other plugins' names");
            }
            found.extend(self.plugin(&field, manifest));
        }
        found
    }

    fn plugin(&mut self, field: &str, manifest: PluginManifest) -> Option<FoundPlugin> {
        let mistakes = manifest.mistakes();
        for mistake in &mistakes {
            let field = if mistake.field.is_empty() {
                field.to_owned()
            } else {
                format!("{field}.{}", mistake.field)
            };
            self.problem(&field, &mistake.message);
        }
        if !mistakes.is_empty() {
            return None;
        }
        let (name, component) = (manifest.name.clone(), manifest.wasm.is_some());
        let (folder, files) = (self.folder.clone(), &self.files);
        let found = FoundPlugin::find(manifest, |file| {
            if let Some(text) = files.get(file) {
                return (file.to_owned(), Ok(text.clone().into_bytes()));
            }
            let path = folder.join(file);
            (path.display().to_string(), std::fs::read(&path))
        });
        let hint = if component {
            " (components of the examples are built by `cargo xtask guests`)"
        } else {
            ""
        };
        let describe = |problem: ManifestProblem| match problem.kind {
            ProblemKind::Unreadable => format!("plugin {name}: {problem}{hint}"),
            ProblemKind::Invalid => format!("plugin {name}: {problem}"),
        };
        let mut found = found.map_err(|problem| self.problem(field, describe(problem))).ok()?;
        found.grant.tenancy = self.tenants.get(&found.manifest.name).cloned();
        Some(found)
    }

    pub(super) fn known_cluster(&mut self, field: &str, cluster: &str) {
        if self.clusters.contains(cluster) {
            return;
        }
        let mut known: Vec<_> = self.clusters.iter().map(String::as_str).take(10).collect();
        if self.clusters.len() > known.len() {
            known.push("…");
        }
        let message = format!("there is no cluster {cluster:?}; the scenario has {}", known.join(", "));
        self.problem(field, message);
    }
}

/// Returns the tenants of a scenario by the names of their plugins.
fn tenants(given: BTreeMap<String, Vec<NamePattern>>) -> BTreeMap<String, Tenancy> {
    let tenancy = |(name, namespaces)| (name, Tenancy { namespaces });
    given.into_iter().map(tenancy).collect()
}

fn is_cluster_name(name: &str) -> bool {
    let inner = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    !name.is_empty() && name.len() <= 48 && name.chars().all(inner) && !name.starts_with('-') && !name.ends_with('-')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cluster_names_are_dns_labels_of_at_most_48_characters() {
        let check = |name: &str, expected| assert_eq!(is_cluster_name(name), expected, "{name:?}");
        check("member1", true);
        check("", false);
        check("-a", false);
        check("Member", false);
        check(&"a".repeat(49), false);
    }

    #[test]
    fn tenants_are_limits_of_plugins_and_mistakes_are_named() {
        let check = |tenants: &str, expected: Result<&[&str], &str>| {
            let text = format!(
                "name: a\nduration: 1m\nclusters: [{{name: m1}}]\nfiles: {{a.lua: 'function EvictionCheck() end'}}\n\
                 plugins: [{{name: hold, lua: a.lua}}]\ntenants: {tenants}\n"
            );
            match (parse(Path::new("a.yaml"), &text), expected) {
                (Ok(loaded), Ok(expected)) => {
                    let tenancy = loaded.plugins[0].grant.tenancy.clone();
                    let namespaces = tenancy.map(|tenancy| tenancy.namespaces).unwrap_or_default();
                    let namespaces: Vec<_> = namespaces.iter().map(ToString::to_string).collect();
                    assert_eq!(namespaces, expected, "{tenants}");
                }
                (Err(error), Err(part)) => assert!(error.to_string().contains(part), "{error}"),
                (found, _) => panic!("{tenants}: {:?}", found.map(|loaded| loaded.name)),
            }
        };
        check("{}", Ok(&[]));
        check("{hold: [team-a, team-a-*]}", Ok(&["team-a", "team-a-*"]));
        check("{hold: []}", Err("tenants.hold: must name at least one namespace"));
        check(
            "{held: [team-a]}",
            Err("there is no plugin \"held\"; the scenario has hold"),
        );
        check("{hold: [Team]}", Err("is not a name"));
    }
}
