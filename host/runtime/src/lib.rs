//! Runtime for Kubernetes controllers that decide the same whenever they see the same.
//!
//! kube-runtime's `watcher` feeds it. Its own parts differ from `kube_runtime::Controller` in three properties:
//!
//! - **Order.** Stores are ordered by key and queues are first in, first out, so that a simulation with a paused clock
//!   and a seed runs the same way each time.
//! - **Own writes.** A store has the response to a write of this process before the watch delivers it
//!   ([`write::Writer`]). Controllers of one process do not conflict with each other.
//! - **Permission.** A client checks before each write that the process still may write
//!   ([`connection::WritePermit`]), waits until a journal has what the write results from
//!   ([`journal_barrier::JournalBarrier`]), and sends the writes with the highest priority first.
//!
//! | module | content |
//! | --- | --- |
//! | [`store`], [`key`], [`dynamic`], [`kinds`] | caches of one kind, and of kinds that are determined at run time; discovery |
//! | [`queue`], [`controller`] | work queue; the reconcile loop, its errors and retries |
//! | [`write`](mod@write), [`object_lock`] | writes that are safe against concurrent writers |
//! | [`connection`], [`write_priority`], [`journal_barrier`] | clients, and the conditions of their writes |
//! | [`informer`], [`excerpt`], [`pages`] | lists and watches for other caches, of whole objects or of some fields; lists page by page |
//! | [`events`], [`failures`], [`causes`] | reports: Kubernetes events, counts of failures, texts of errors |
//! | [`clock`], [`boot_clock`] | time for deadlines and for permits |
//! | [`tasks`], [`panics`], [`lease_runtime`] | background tasks, and a runtime that they cannot delay |
//! | [`handlers`] | lists of callbacks |
//!
//! The crate reads no wall clock and starts no thread of its own, and it knows no custom resource.
//!
//! # Example
//!
//! A controller that labels every ConfigMap with the number of its keys:
//!
//! ```no_run
//! use std::sync::Arc;
//!
//! use bulkhead_runtime::controller::{self, Action, Error};
//! use bulkhead_runtime::failures::Failures;
//! use bulkhead_runtime::key::Key;
//! use bulkhead_runtime::queue::WorkQueue;
//! use bulkhead_runtime::store::Store;
//! use bulkhead_runtime::write::Writer;
//! use k8s_openapi::api::core::v1::ConfigMap;
//! use kube::{Api, Client, ResourceExt};
//! use serde_json::json;
//!
//! struct Counter {
//!     client: Client,
//!     config_maps: Arc<Store<ConfigMap>>,
//!     failures: Arc<Failures>,
//! }
//!
//! impl Counter {
//!     async fn run(self: Arc<Self>) {
//!         let queue: Arc<WorkQueue<Key>> = Arc::default();
//!         let changed = Arc::clone(&queue);
//!         // The handler is called for as long as the subscription exists.
//!         let _subscription = self.config_maps.subscribe(move |change| changed.add(Key::of(change.object())));
//!         let failed = self.failures.counter("counter", |key: &Key| key.named("ConfigMap"));
//!         let reconcile = move |key| {
//!             let counter = Arc::clone(&self);
//!             async move { counter.reconcile(&key).await }
//!         };
//!         controller::run(queue, 4, reconcile, failed).await;
//!     }
//!
//!     async fn reconcile(&self, key: &Key) -> Result<Action, Error> {
//!         let Some(config_map) = self.config_maps.get(key) else { return Ok(Action::Wait) };
//!         let count = config_map.data.as_ref().map_or(0, |data| data.len()).to_string();
//!         if config_map.labels().get("keys") == Some(&count) {
//!             return Ok(Action::Wait);
//!         }
//!         let patch = json!({"metadata": {"labels": {"keys": count}}});
//!         let writer = Writer::new(&self.config_maps, Api::namespaced(self.client.clone(), &key.namespace));
//!         let written = writer.patch_if_unchanged(&config_map, patch).await;
//!         written.map(|_| Action::Wait).map_err(Error::api(format!("labelling ConfigMap {key}")))
//!     }
//! }
//!
//! # async fn start(client: Client) {
//! let config_maps = Store::new();
//! let counter = Arc::new(Counter {
//!     client: client.clone(),
//!     config_maps: Arc::clone(&config_maps),
//!     failures: Arc::default(),
//! });
//! tokio::join!(config_maps.run_informer(Api::all(client), Default::default()), counter.run());
//! # }
//! ```

mod any_kind;
pub mod boot_clock;
#[cfg(test)]
#[path = "../../../tests/logs/captured.rs"]
mod captured;
pub mod causes;
pub mod clock;
pub mod connection;
pub mod controller;
pub mod dynamic;
pub mod events;
pub mod excerpt;
pub mod failures;
pub mod handlers;
mod in_flight;
pub mod informer;
pub mod journal_barrier;
pub mod key;
pub mod kinds;
pub mod lease_runtime;
pub mod object_lock;
pub mod pages;
pub mod panics;
pub mod queue;
pub mod store;
pub mod tasks;
#[cfg(test)]
mod testing;
pub mod unread;
pub mod write;
pub mod write_priority;
