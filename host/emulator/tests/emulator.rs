//! Member clusters from a user's perspective: through `kube::Api`, on paused time.
#![allow(clippy::unwrap_used, missing_docs)]

#[path = "emulator/groups.rs"]
mod groups;
#[path = "emulator/revisions.rs"]
mod revisions;
#[path = "emulator/support.rs"]
mod support;
#[path = "emulator/workloads.rs"]
mod workloads;
