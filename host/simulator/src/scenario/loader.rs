//! State of the validation of a scenario.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bulkhead_controllers::flags::GoDuration;
use bulkhead_core::manifest::Tenancy;

use super::source::Source;
use super::{CustomKind, UnknownKinds};

/// State of the validation.
pub(super) struct Loader {
    /// Text of the scenario.
    pub(super) source: Arc<Source>,
    pub(super) folder: PathBuf,
    pub(super) unknown_kinds: UnknownKinds,
    pub(super) custom_kinds: Vec<CustomKind>,
    /// Texts of files that the scenario contains, by name.
    pub(super) files: BTreeMap<String, String>,
    pub(super) duration: GoDuration,
    /// Names of the member clusters.
    pub(super) clusters: BTreeSet<String>,
    /// Tenants by the name of a plugin.
    pub(super) tenants: BTreeMap<String, Tenancy>,
    /// Names of the plugins of the scenario and of its events.
    pub(super) plugin_names: BTreeSet<String>,
    pub(super) problems: Vec<String>,
    pub(super) warnings: Vec<String>,
}

impl Loader {
    /// Reads a file, or its replacement in the scenario's `files`.
    pub(super) fn text_of(&self, file: &str) -> Result<String, String> {
        self.files
            .get(file)
            .cloned()
            .map_or_else(|| read(&self.folder.join(file)), Ok)
    }

    /// Adds a problem of a field of the scenario, at the position of its value.
    pub(super) fn problem(&mut self, field: &str, message: impl fmt::Display) {
        let place = self.source.value(0, field);
        self.problems.push(format!("{place}: {field}: {message}"));
    }
}

/// Reads the file of a scenario, or a file that it references.
pub(super) fn read(path: &Path) -> Result<String, String> {
    let name = path.display();
    if !path.is_dir() {
        return std::fs::read_to_string(path).map_err(|error| format!("{name}: {error}"));
    }
    let file = path.join("scenario.yaml");
    if file.is_file() {
        return Err(format!("{name} is a directory; its scenario is {}", file.display()));
    }
    Err(format!(
        "{name} is a directory without a scenario.yaml; name a scenario file"
    ))
}
