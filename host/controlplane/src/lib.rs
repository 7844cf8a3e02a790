//! An in-process Kubernetes-style API server and simulated member clusters.
//!
//! [`ApiServer`] is a `tower::Service`, so a real `kube::Client` can talk to it without sockets, TLS or a cluster.
//! Controllers run against it unchanged, on tokio's paused clock, and the same seed gives the same run.
//! [`MemberCluster`] adds an emulator that makes workloads ready, or lets them fail.
//!
//! With [`Fidelity::People`] it also supports the features that `kubectl` relies on: schemas, field ownership,
//! server-side apply.
//!
//! Out of scope: the server stores nothing on disk (a [`Persistence`] may), has no authentication, does not convert
//! versions, and knows nothing of Karmada or failover. Requests for missing features get 405, 415 or 501.
//!
//! Start reading at [`server`](ApiServer) for dispatch, then `write` and `delete` for the rules, `state` for the
//! storage of objects, `watch` for the delivery of changes to clients, and `emulator` for the member clusters.

mod admission;
mod apply;
mod call;
mod clock;
mod definition;
mod delete;
mod discovery;
mod emulator;
mod fault;
mod form;
mod kind;
mod link;
mod list;
mod member;
mod object;
mod openapi;
mod patch;
mod persistence;
mod protobuf;
mod request;
mod respond;
mod response_counts;
mod rng;
mod scale;
mod schema;
mod selector;
mod server;
mod shape;
mod state;
mod status_error;
mod store;
mod table;
mod topology;
mod watch;
mod write;

pub use admission::{Admission, AdmissionRequest, DenialReason, Denied, Operation};
pub use clock::Clock;
pub use delete::{DeleteOptions, Deletion, Propagation};
pub use emulator::failure::FailureMode;
pub use fault::Fault;
pub use kind::{KindId, ResourceKind, Scope, kinds};
pub use link::{ConnectionError, Link, LinkState};
pub use member::{Behaviour, Capacity, MemberCluster, MemberOptions, ReplicaReady};
pub use object::{Change, ChangeType, Object, ObjectKey};
pub use persistence::{Contents, Persistence};
pub use request::{ResourceRequest, Verb};
pub use respond::ApiBody;
pub use response_counts::WriteResponse;
pub use rng::SplitMix64;
pub use selector::Selector;
pub use server::{ApiServer, ApiService, Options, ReadyState};
pub use status_error::StatusError;
pub use store::{Lagged, Store, Subscription};
pub use table::Column;
pub use write::Fidelity;
