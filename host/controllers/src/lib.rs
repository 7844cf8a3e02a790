//! The controllers: each takes a snapshot of its caches, asks the pure core for a decision and applies the result.
//!
//! They run over [`kube::Api`] against any API server. [`Components`] pass in everything else: clock, policies,
//! journal, member clusters. Each controller is a module with a struct `Dependencies`, which has what it uses of them. This crate knows no plugin engine and reads no wall clock of its own.
//!
//! Start reading at [`Manager`] (the list of controllers), then at one controller, for example `graceful_eviction`.

mod agent;
mod api_enablements;
mod application_failover;
mod binding;
mod binding_kind;
mod binding_owner;
mod binding_status;
mod client;
pub mod clock_handover;
mod cluster;
mod cluster_status;
mod cluster_taints;
mod components;
mod contact;
mod customizations;
mod decision_log;
mod decision_recorder;
mod dependencies;
mod dependency_index;
mod detector;
mod drain;
mod evaluate;
pub mod eviction_trace;
mod execution;
mod failover_notes;
mod failover_record;
pub mod flags;
mod graceful_eviction;
mod heartbeat;
mod interpreter;
mod manager;
mod member_owner;
mod member_resources;
mod members;
mod metrics;
mod overrides;
mod pending_status;
pub mod permissions;
mod plugins;
mod priority;
mod process;
pub mod profile;
mod readiness;
mod rebalancer;
mod render;
pub mod roles;
mod scheduler;
mod selection;
mod status_batcher;
mod stores;
mod subjects;
mod taint_manager;
mod templates;
#[cfg(test)]
mod testing;
mod webhook;
mod work_status;
mod works;
mod writers;

pub use client::{FIELD_MANAGER, connect};
pub use components::{Components, LeaseClients};
pub use contact::Contacts;
pub use customizations::install as install_customizations;
pub use evaluate::{Evaluator, Lane, Pool, PoolLimits, Unanswered};
pub use failover_notes::FailoverNotes;
pub use interpreter::{InterpretersLoaded, NoInterpreter, UncoveredKinds};
pub use manager::{Manager, controller_names};
pub use member_resources::MemberResources;
pub use members::{
    MemberAccess, MemberClients, MemberError, Members, OneMember, ReplacedHandler, Scope, member_access,
};
pub use metrics::{LabelValue, Metrics};
pub use pending_status::PendingStatus;
pub use plugins::PluginObjects;
pub use process::Process;
pub use scheduler::{BudgetUsage, RunningScheduler, WriteBudget, estimator_pool};
pub use stores::Stores;
pub use taint_manager::{EvictionsQueued, IN_PROGRESS, NOT_DUE, QueuedEviction, RATE};
pub use templates::HUB;
pub use webhook::{HttpsWebhooks, NoWebhooks, WebhookTransport, Webhooks, ask as ask_webhook, hook_for};
