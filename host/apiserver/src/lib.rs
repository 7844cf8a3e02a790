//! An in-process Kubernetes-style API server.
//!
//! [`ApiServer`] is a `tower::Service`, so a real `kube::Client` can talk to it without sockets, TLS or a cluster.
//! Controllers run against it unchanged, on tokio's paused clock, and the same seed gives the same run.
//! A [`Link`] and the methods [`ApiServer::inject`] and [`ApiServer::drop_watches`] make connections and requests fail.
//!
//! With [`Fidelity::People`] it also supports the features that `kubectl` relies on: schemas, field ownership,
//! server-side apply. They are in the module `kubectl`.
//!
//! Out of scope: the server stores nothing on disk (a [`Persistence`] may), has no authentication, does not convert
//! versions, and knows nothing of Karmada or failover. Requests for missing features get 404, 405, 415 or 501.
//!
//! Start reading at [`server`](ApiServer) for dispatch, then `write` and `delete` for the rules, `state` for the
//! storage of objects, and `watch` for the delivery of changes to clients.

mod admission;
mod autoscaling_v1;
mod call;
mod cause;
mod clock;
mod cluster_ip;
mod content;
mod definition;
mod delete;
mod document;
mod fault;
mod field_labels;
mod history;
pub mod json;
mod kind;
mod kubectl;
mod link;
mod list;
mod node_port;
mod object;
mod patch;
mod persistence;
mod request;
mod respond;
mod response_counts;
mod rng;
mod scale;
mod selector;
mod server;
mod shape;
mod shared;
mod state;
mod status_error;
mod store;
mod validation;
mod watch;
mod write;

pub use admission::{Admission, AdmissionRequest, DenialReason, Denied, Operation};
pub use clock::{Clock, rfc3339};
pub use content::Content;
pub use delete::{DeleteOptions, Deletion, Propagation};
pub use fault::Fault;
pub use kind::{Column, KindId, ResourceKind, ScalePaths, Scope, kinds};
pub use link::{ConnectionError, Link, LinkState};
pub use object::{Change, ChangeType, Object, ObjectKey};
pub use persistence::{Contents, Persistence};
pub use request::{ResourceRequest, Verb};
pub use respond::ApiBody;
pub use response_counts::WriteResponse;
pub use rng::{SplitMix64, stable_hash};
pub use selector::Selector;
pub use server::{ApiServer, ApiService, Options};
pub use shared::ReadyState;
pub use status_error::StatusError;
pub use store::{Lagged, Store, Subscription};
pub use write::{Fidelity, Remarks, conform};
