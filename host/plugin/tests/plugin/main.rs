//! Plugins of a catalog, from their files to calls.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod activation;
mod loading;
mod trust;

use bulkhead_core::manifest::Digest;
use bulkhead_plugin::Description;

/// Returns the description of a plugin that says nothing about itself.
fn described(digest: Digest) -> Description {
    Description {
        name: String::new(),
        version: String::new(),
        summary: String::new(),
        digest,
        code_bytes: 0,
        contract: String::new(),
        imports: Vec::new(),
        taint_keys: Vec::new(),
        config_schema: None,
        reusable: false,
        remarks: Vec::new(),
    }
}
