//! The controllers: each takes a snapshot of its caches, asks the pure core for a decision and applies the result.
//!
//! They run over [`kube::Api`] against any API server. A [`Context`] passes in everything else: clock, policies,
//! journal, member clusters. This crate knows no plugin engine and reads no wall clock of its own.
//!
//! Start reading at [`Manager`] (the list of controllers), then at one controller, for example `graceful_eviction`.

mod agent;
mod application_failover;
mod binding;
mod binding_kind;
mod binding_owner;
mod binding_status;
mod boot_clock;
mod causes;
mod clock;
mod cluster;
mod cluster_status;
mod cluster_taints;
mod connection;
mod contact;
mod context;
mod controller;
mod customizations;
mod decision_recorder;
mod dependencies;
mod detector;
mod drain;
mod dynamic;
mod evaluate;
pub mod events;
mod execution;
pub mod flags;
mod graceful_eviction;
mod handlers;
mod in_flight;
mod interpreter;
mod journal_barrier;
mod kinds;
mod lease_runtime;
mod list_stream;
mod manager;
mod member_owner;
mod member_resources;
mod members;
mod metrics;
mod object_lock;
mod panics;
mod pending_status;
pub mod permissions;
mod plugins;
mod priority;
pub mod profile;
mod queue;
mod render;
pub mod roles;
mod scheduler;
mod status_batcher;
mod store;
mod taint_manager;
#[cfg(test)]
mod testing;
mod webhook;
mod work_status;
mod write;
mod write_priority;

pub use boot_clock::BootClock;
pub use causes::causes;
pub use clock::{Clock, ClockState, WallClock};
pub use connection::{FIELD_MANAGER, JournalGuard, ResponseCounts, WritePermit, WriteRefused, connect, permitted};
pub use contact::Contacts;
pub use context::{Context, Failure, Failures, HUB, MemberError, Members, Scope, Stores};
pub use controller::{Action, Error, ErrorClass};
pub use customizations::{InterpretersLoaded, install as install_customizations};
pub use dynamic::{DynamicStores, Tasks};
pub use evaluate::{Evaluator, Lane, Pool, PoolLimits, Unanswered};
pub use interpreter::{NoInterpreter, UncoveredKinds};
pub use journal_barrier::JournalBarrier;
pub use kinds::{Kinds, KnownKind, ObjectKind};
pub use lease_runtime::LeaseRuntime;
pub use manager::{Manager, controller_names};
pub use member_resources::collect as collect_member_resources;
pub use members::{MemberAccess, MemberClients, OneMember, ReplacedHandler, member_access};
pub use metrics::Metrics;
pub use pending_status::PendingStatus;
pub use plugins::PluginObjects;
pub use queue::WorkQueue;
pub use scheduler::{BudgetUsage, RunningScheduler, WriteBudget, estimator_pool};
pub use store::{Change, InformerState, Key, Store, Subscription};
pub use webhook::{HttpsWebhooks, NoWebhooks, WebhookTransport, Webhooks, ask as ask_webhook, hook_for};
pub use write_priority::is_read;
