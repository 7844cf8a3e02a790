//! Pushes and pulls against a registry in process.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod faults;
mod mirrors;
#[path = "../../../../tests/registry/mod.rs"]
#[allow(dead_code, reason = "other crates use other parts")]
mod registry;
mod round_trip;
mod source;

use std::collections::BTreeSet;
use std::time::Duration;

use bulkhead_core::policy::EngineKind;
use bulkhead_oci::artifact::{Artifact, Metadata};
use bulkhead_oci::{Access, Client, Credentials, Helpers, Limits, Reference};
use registry::Registry;

/// Code of the test plugin.
const CODE: &[u8] = b"function Score() end";

/// Returns access without TLS, with the credentials of a Docker configuration.
fn access(registry: &Registry, auth: &str) -> Access {
    let host = registry.address.to_string();
    let text = format!(r#"{{"auths": {{"{host}": {auth}}}}}"#);
    Access {
        credentials: Credentials::parse("config.json", text.as_bytes(), Helpers::Refused).unwrap(),
        plain_http: BTreeSet::from([host]),
        limits: Limits {
            idle: Duration::from_mins(1),
            ..Limits::default()
        },
        ..Access::default()
    }
}

fn client(registry: &Registry) -> Client {
    Client::new(access(registry, r#"{"username": "user", "password": "password"}"#)).unwrap()
}

fn image(registry: &Registry) -> Reference {
    registry.image("plugins/hold:1").parse().unwrap()
}

fn artifact() -> Artifact {
    let metadata = Metadata {
        name: "hold".to_owned(),
        ..Metadata::default()
    };
    Artifact::of(EngineKind::Lua, CODE.into(), &metadata).unwrap()
}

/// Runs a future to its end.
fn run<F: Future>(future: F) -> F::Output {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(future)
}
