//! The control plane from a user's perspective: through `kube::Api`, on paused time.
#![allow(clippy::unwrap_used, missing_docs)]

#[path = "controlplane/emulator.rs"]
mod emulator;
#[path = "controlplane/faults.rs"]
mod faults;
#[path = "controlplane/objects.rs"]
mod objects;
#[path = "controlplane/people.rs"]
mod people;
#[path = "controlplane/support.rs"]
mod support;
#[path = "controlplane/watching.rs"]
mod watching;
