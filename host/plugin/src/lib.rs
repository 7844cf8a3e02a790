//! Common parts of all plugin engines: sources of code, bounds on replies, quarantine, and the registry of
//! active policies.
//!
//! An engine implements [`Engine`] once. [`Bounded`] wraps all policies, including built-in ones, so that reply
//! bounds, panics and counters are handled in one place. This crate does not depend on wasmtime, mlua or kube.
//!
//! Start reading at [`Plugins`]: a [`Catalog`] lists manifests and code, an engine loads them, the [`Registry`]
//! activates the whole set, and [`Watch`] repeats this when the catalog changes.

mod bounds;
mod call_counts;
mod call_span;
#[cfg(test)]
#[path = "../../../tests/logs/captured.rs"]
mod captured;
mod catalog;
mod circuit_breaker;
mod config;
mod crash;
mod customization;
mod engine;
mod grant;
mod images;
mod lines;
mod loader;
mod manifest;
mod module_code;
mod nearest;
mod not_loaded;
mod objects;
mod permissions;
mod plugins;
mod precomputed;
mod registry;
mod source;
mod status;
mod text;
mod trust_objects;
mod watch;
mod yaml;

pub use bounds::{
    Bounded, FAULT_MESSAGE_CHARS_MAX, JSON_DEPTH_MAX, REASON_CODE_CHARS_MAX, REASON_MESSAGE_CHARS_MAX,
    TAINT_CHANGES_MAX,
};
pub use call_counts::{CallCounts, DURATION_BOUNDS_S, Durations, KindReport, UsageMeter};
pub use catalog::{Catalog, CatalogEntry, CatalogError, Data, Directory, Fingerprint, LIST, Listing};
pub use circuit_breaker::{BreakerState, CircuitBreaker};
pub use config::check_config;
pub use crash::{CrashMarker, CrashMarks};
pub use customization::{Customization, LoadedCustomizations, load_customizations};
pub use engine::{Description, Engine, LoadError, LoadStage, Loaded};
pub use grant::Grant;
pub use images::{FoundImage, ImageProblem, Images};
pub use lines::{Level, Lines, LogSink};
pub use loader::{LoadLimits, Loading, SmokeTest};
pub use manifest::{FoundPlugin, PluginList};
pub use module_code::ModuleCode;
pub use nearest::{alternative, nearest};
pub use objects::{CombinedCatalog, Objects, find_object};
pub use permissions::write_objection;
pub use plugins::{Plugins, Refresh};
pub use precomputed::PrecomputedPolicy;
pub use registry::{Installed, Layer, PluginReport, Registry, RegistrySubscription};
pub use source::{Entry, Inspection, Module, PluginSource};
pub use status::{PluginStatus, Refused};
pub use text::{one_line, plain};
pub use trust_objects::TrustObjects;
pub use watch::Watch;
pub use yaml::{Documents, Position, Positions, limits_of_files, read_document, read_documents, yaml_error};
