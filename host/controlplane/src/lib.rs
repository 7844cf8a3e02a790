//! An in-process Kubernetes-style API server and simulated member clusters.
//!
//! [`ApiServer`] is a `tower::Service`, so a real `kube::Client` can talk to it without sockets, TLS or a cluster:
//! controllers run against it unchanged, on tokio's paused clock, and the same seed gives the same run.
//! [`MemberCluster`] adds an emulator that makes workloads ready, or not.
//!
//! With [`Fidelity::People`] it also does what `kubectl` relies on: schemas, field ownership, server-side apply.
//!
//! What it deliberately does not do: it keeps nothing on disk by itself ([`Persistence`] may), knows no authentication,
//! converts no versions, and knows nothing of Karmada or failover. What it lacks it answers with an honest 405, 415 or
//! 501.
//!
//! Start reading at [`server`](ApiServer) for dispatch, then `write` and `delete` for the rules, `state` for how
//! objects are kept, `watch` for how changes reach clients, and `emulator` for the member clusters.

mod admission;
mod answers;
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
pub use answers::Answer;
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
pub use rng::SplitMix64;
pub use selector::Selector;
pub use server::{ApiServer, ApiService, Options, ReadyState};
pub use status_error::StatusError;
pub use store::{Lagged, Store, Subscription};
pub use table::Column;
pub use write::Fidelity;
