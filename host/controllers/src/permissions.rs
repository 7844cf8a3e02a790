//! Permissions of each mode and each controller on the control plane, as data.
//!
//! The manifests in `host/deploy/chart/rbac` are generated from this module by `roles.rs`. `tests/tidy` fails if they
//! differ, or if a controller or a kind is missing here. Each new request of a controller needs a line in
//! `permissions/controllers.rs`.
//!
//! Omitted on purpose: access to member clusters, which depends on the account that `bulkhead join` creates there,
//! and discovery, which Kubernetes grants to every authenticated user.
//!
//! Start reading at [`Mode::duties`].

// The paths are written out because `tests/tidy` includes this file by its path.
#[path = "permissions/controllers.rs"]
mod controllers;
#[path = "permissions/process.rs"]
mod process;

use self::controllers::{
    APPLICATION_FAILOVER, BINDING, BINDING_STATUS, CLUSTER, CLUSTER_DRAIN, CLUSTER_STATUS, CLUSTER_TAINT_POLICY,
    DEPENDENCIES_DISTRIBUTOR, DETECTOR, EXECUTION, FAILOVER_RECORD, GRACEFUL_EVICTION, PLUGIN_STATUS, SCHEDULER,
    TAINT_MANAGER, WORK_STATUS, WORKLOAD_REBALANCER,
};
use self::process::{
    ADMISSION, DEFAULT_MODE, DOCTOR, DOCTOR_OF_INTERPRETER, EVENTS, INFORMERS, INTERPRETER_CUSTOMIZATION,
    INTERPRETER_INFORMERS, INTERPRETER_WEBHOOK, LEADER_ELECTION, MEMBER_CREDENTIALS, QUERIES, WEBHOOK_CERTIFICATE,
};

/// Set of rights on one kind of object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rule {
    /// API group; empty for the core group, `*` for all.
    pub group: &'static str,
    /// Plural name, with `/status` for the subresource; `*` for all.
    pub resource: &'static str,
    /// RBAC verbs. The `update` of a status needs a `get` of the object too, for the retry after a conflict.
    pub verbs: &'static [&'static str],
    /// Scope.
    pub place: Place,
    /// Name of the only object that the rule applies to, if there is just one.
    pub object: Option<&'static str>,
    /// Purpose.
    pub why: &'static str,
}

/// Scope of a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    /// All namespaces, or objects without a namespace.
    Everywhere,
    /// Namespace of the Lease, `--leader-elect-resource-namespace`.
    LeaseNamespace,
    /// One namespace.
    Namespace(&'static str),
}

/// Rights that one controller, or one part of the program, needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Duty {
    /// Name of the controller in `--controllers`, or name of the part in messages.
    pub name: &'static str,
    /// Rules that grant the rights.
    pub rules: &'static [Rule],
}

/// Responsibilities that Bulkhead takes over from Karmada.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Mode {
    /// Everything.
    All,
    /// Taints, evictions and their end.
    Evict,
    /// Only the end of evictions.
    Finish,
    /// None: decisions are reported and not written.
    Report,
    /// None: it answers Karmada's resource interpreter requests.
    Interpret,
}

impl Mode {
    /// All modes.
    pub const ALL: [Self; 5] = [Self::All, Self::Evict, Self::Finish, Self::Report, Self::Interpret];

    /// Returns the name on the command line and in file names.
    pub const fn name(self) -> &'static str {
        match self {
            Self::All => "all",
            Self::Evict => "evict",
            Self::Finish => "finish",
            Self::Report => "report",
            Self::Interpret => "interpret",
        }
    }

    /// Returns the permissions of the process in this mode. Two modes together need the permissions of both.
    pub const fn duties(self) -> &'static [Duty] {
        match self {
            Self::All => &[
                LEADER_ELECTION,
                DEFAULT_MODE,
                DOCTOR,
                INFORMERS,
                EVENTS,
                ADMISSION,
                QUERIES,
                WEBHOOK_CERTIFICATE,
                MEMBER_CREDENTIALS,
                INTERPRETER_CUSTOMIZATION,
                DETECTOR,
                SCHEDULER,
                BINDING,
                EXECUTION,
                WORK_STATUS,
                BINDING_STATUS,
                CLUSTER_STATUS,
                CLUSTER,
                CLUSTER_TAINT_POLICY,
                TAINT_MANAGER,
                CLUSTER_DRAIN,
                GRACEFUL_EVICTION,
                FAILOVER_RECORD,
                APPLICATION_FAILOVER,
                DEPENDENCIES_DISTRIBUTOR,
                WORKLOAD_REBALANCER,
                PLUGIN_STATUS,
            ],
            Self::Evict => &[
                LEADER_ELECTION,
                DOCTOR,
                INFORMERS,
                EVENTS,
                ADMISSION,
                QUERIES,
                WEBHOOK_CERTIFICATE,
                CLUSTER_TAINT_POLICY,
                TAINT_MANAGER,
                CLUSTER_DRAIN,
                GRACEFUL_EVICTION,
                FAILOVER_RECORD,
                APPLICATION_FAILOVER,
                PLUGIN_STATUS,
            ],
            Self::Finish => &[
                LEADER_ELECTION,
                DOCTOR,
                INFORMERS,
                EVENTS,
                ADMISSION,
                QUERIES,
                WEBHOOK_CERTIFICATE,
                GRACEFUL_EVICTION,
                FAILOVER_RECORD,
                PLUGIN_STATUS,
            ],
            Self::Report => &[DOCTOR, INFORMERS],
            Self::Interpret => &[
                LEADER_ELECTION,
                DOCTOR,
                DOCTOR_OF_INTERPRETER,
                INTERPRETER_INFORMERS,
                EVENTS,
                ADMISSION,
                WEBHOOK_CERTIFICATE,
                INTERPRETER_WEBHOOK,
                PLUGIN_STATUS,
            ],
        }
    }
}

const READ: &[&str] = &["list", "watch"];
const GET: &[&str] = &["get"];
const LIST: &[&str] = &["list"];
const PATCH: &[&str] = &["patch"];
const UPDATE: &[&str] = &["update"];

const CLUSTERS: &str = "cluster.karmada.io";
const POLICY: &str = "policy.karmada.io";
const WORK: &str = "work.karmada.io";
const APPS: &str = "apps.karmada.io";
const CONFIG: &str = "config.karmada.io";
const OURS: &str = "bulkhead.dev";

const fn rule(group: &'static str, resource: &'static str, verbs: &'static [&'static str], why: &'static str) -> Rule {
    Rule {
        group,
        resource,
        verbs,
        place: Place::Everywhere,
        object: None,
        why,
    }
}

const fn within(place: Place, rule: Rule) -> Rule {
    Rule { place, ..rule }
}

const fn only(object: &'static str, rule: Rule) -> Rule {
    Rule {
        object: Some(object),
        ..rule
    }
}

const LEASES: &str = "coordination.k8s.io";
/// Namespace of the credentials and the leases of member clusters, as in Karmada.
const MEMBERS: Place = Place::Namespace("karmada-cluster");
/// Namespace of Karmada's own components: the Leases of its controllers and the Services of its estimators.
const KARMADA: Place = Place::Namespace("karmada-system");

const HOOK_SERVICE: Rule = rule(
    "",
    "services",
    GET,
    "address of a webhook interpreter that names a service",
);
