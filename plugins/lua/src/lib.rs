//! Interpreters in Lua for the kinds that Karmada bundles as third-party customizations.
//!
//! Every kind has a folder `kinds/<group>/<version>/<Kind>` with a `customization.yaml`, which is an ordinary
//! ResourceInterpreterCustomization, and a `cases_test.yaml` with what it has to answer. A script is complete in itself:
//! nothing is shared between scripts but by copying, so that any of them can be taken as the start of one's own. The
//! tests see to it that copies stay equal.
//!
//! The scripts are Lua 5.1 and run on Karmada too, with one exception: `InterpretHealth` returns a table with a reason,
//! where Karmada takes a boolean only.
//!
//! This crate holds the texts and knows no engine. Start reading at [`policies`]; [`customization`] turns any
//! ResourceInterpreterCustomization into a plugin, the user's own included.

pub mod customization;
mod kinds;
mod lazy;

use std::sync::Arc;

use bulkhead_core::policy::Policy;
use bulkhead_plugin::Engine;

pub use kinds::{KINDS, Kind};

/// The library as policies, one for each kind, which `engine` (of Lua) runs.
///
/// A policy is read and compiled when it is first asked, so that a program that meets none of these kinds does not pay
/// for them.
pub fn policies(engine: &Arc<dyn Engine>) -> Vec<Arc<dyn Policy>> {
    KINDS.iter().map(|kind| Arc::new(lazy::LazyPolicy::new(kind, Arc::clone(engine))) as Arc<dyn Policy>).collect()
}
