//! Interpreters in Lua for the kinds that Karmada bundles as third-party customizations.
//!
//! Every kind has a directory `kinds/<group>/<version>/<Kind>` with a `customization.yaml`, which is an ordinary
//! ResourceInterpreterCustomization, and a `cases_test.yaml` with its expected answers. A script is self-contained:
//! code is shared between scripts only by copying, so that users can start from any of them. Tests ensure that copies
//! stay identical.
//!
//! The scripts are Lua 5.1 and run on Karmada too, with one exception: `InterpretHealth` returns a table with a
//! reason, where Karmada accepts only a boolean.
//!
//! This crate contains the texts and does not depend on an engine. Start reading at [`policies`]; [`customization`]
//! converts any ResourceInterpreterCustomization to a plugin, including those of users.

pub mod customization;
mod kinds;
mod lazy;

use std::sync::Arc;

use bulkhead_core::policy::Policy;
use bulkhead_plugin::Engine;

pub use kinds::{KINDS, Kind};

/// Returns the library as policies, one for each kind, which `engine` (of Lua) runs.
///
/// A policy is parsed and compiled on its first call, so unused kinds cost nothing.
pub fn policies(engine: &Arc<dyn Engine>) -> Vec<Arc<dyn Policy>> {
    KINDS
        .iter()
        .map(|kind| Arc::new(lazy::LazyPolicy::new(kind, Arc::clone(engine))) as Arc<dyn Policy>)
        .collect()
}
