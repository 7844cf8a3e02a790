//! The library answers its own cases, and Karmada's except for intended deviations.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod cases;
mod scripts;
mod vectors;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use bulkhead_core::policy::Policy;
use bulkhead_engine_lua::LuaEngine;
use bulkhead_plugin::{Bounded, Engine};
use bulkhead_plugins_lua::Kind;

/// Returns the directory of a kind.
fn folder(kind: &Kind) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(kind.folder())
}

/// Returns every kind with its policy as wrapped by a host.
fn library() -> Vec<(&'static Kind, Arc<dyn Policy>)> {
    let engine: Arc<dyn Engine> = Arc::new(LuaEngine::default());
    let policies = bulkhead_plugins_lua::policies(&engine).into_iter();
    let policies = policies.map(|policy| Arc::new(Bounded::new(policy)) as Arc<dyn Policy>);
    bulkhead_plugins_lua::KINDS.iter().zip(policies).collect()
}
