//! The API server from a user's perspective: through `kube::Api`, on paused time.
#![allow(clippy::unwrap_used, missing_docs)]

#[path = "apiserver/faults.rs"]
mod faults;
#[path = "apiserver/objects.rs"]
mod objects;
#[path = "apiserver/people.rs"]
mod people;
#[path = "apiserver/support.rs"]
mod support;
#[path = "apiserver/watching.rs"]
mod watching;
