//! What is known of an installation, as data: gathered from real control planes, and written by hand in tests.

use bulkhead_api::policy::PropagationSpec;
use bulkhead_controllers::flags::Flags;
use bulkhead_core::model::{Cluster, ClusterTaintPolicySpec, EvictionPauseSpec};
use bulkhead_core::time::Time;
use serde::{Deserialize, Serialize};

/// Address of a control plane that no kubeconfig names.
pub(super) const NO_ADDRESS: &str = "kubeconfig";

/// Everything that checks look at.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Facts {
    /// When it was looked at.
    pub(super) now: Time,
    /// What `bulkhead run` with the same arguments would be.
    pub(super) installation: Installation,
    /// The control plane.
    pub(super) control_plane: Server,
    /// What the account may do, of what the modes need.
    #[serde(default)]
    pub(super) permissions: Vec<Permission>,
    /// What the control plane serves of the groups that are used.
    #[serde(default)]
    pub(super) served: Vec<Served>,
    /// Leases in the namespace of our own.
    #[serde(default)]
    pub(super) leases: Vec<Lease>,
    /// Who wrote the fields that the modes own.
    #[serde(default)]
    pub(super) writers: Vec<Writer>,
    /// Certificates that connections depend on.
    #[serde(default)]
    pub(super) certificates: Vec<Certificate>,
    /// Plugins of the directory.
    #[serde(default)]
    pub(super) plugins: Vec<Plugin>,
    /// Why the list of plugins could not be read.
    #[serde(default)]
    pub(super) plugin_error: Option<String>,
    /// Kinds that policies select.
    #[serde(default)]
    pub(super) kinds: Vec<KindInUse>,
    /// Propagation policies, cluster-wide ones too.
    #[serde(default)]
    pub(super) policies: Vec<Policy>,
    /// Policies that taint.
    #[serde(default)]
    pub(super) taint_policies: Vec<TaintPolicy>,
    /// Pauses.
    #[serde(default)]
    pub(super) pauses: Vec<Pause>,
    /// Member clusters.
    #[serde(default)]
    pub(super) members: Vec<Member>,
    /// What could not be looked at, and why.
    #[serde(default)]
    pub(super) unread: Vec<Unread>,
}

/// What `bulkhead run` with the same arguments would be.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Installation {
    /// Names of modes.
    pub(super) modes: Vec<String>,
    /// Controllers that would run.
    pub(super) controllers: Vec<String>,
    /// Namespace and name of the Lease; absent without an election.
    #[serde(default)]
    pub(super) lease: Option<Name>,
    /// Settings.
    #[serde(default)]
    pub(super) flags: Flags,
}

impl Installation {
    /// Whether a mode is among them.
    pub(super) fn has(&self, mode: &str) -> bool {
        self.modes.iter().any(|known| known == mode)
    }

    /// Whether a controller would run.
    pub(super) fn runs(&self, controller: &str) -> bool {
        self.controllers.iter().any(|known| known == controller)
    }
}

/// Namespace, empty for cluster scope, and name.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Name {
    #[serde(default)]
    pub(super) namespace: String,
    pub(super) name: String,
}

impl std::fmt::Display for Name {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.namespace.is_empty() { f.write_str(&self.name) } else { write!(f, "{}/{}", self.namespace, self.name) }
    }
}

/// An API server, and how it answered.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Server {
    /// URL.
    #[serde(default)]
    pub(super) address: String,
    /// `gitVersion`.
    #[serde(default)]
    pub(super) version: String,
    /// How far its clock is ahead of ours, in milliseconds; absent if it did not say.
    #[serde(default)]
    pub(super) clock_ahead_ms: Option<i64>,
    /// Why it did not answer, and what would help.
    #[serde(default)]
    pub(super) trouble: Option<Trouble>,
}

/// Why an API server cannot be used.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Trouble {
    pub(super) what: String,
    pub(super) remedy: String,
}

/// One verb on one kind of object.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Permission {
    /// Who needs it, and what for.
    pub(super) why: Vec<String>,
    pub(super) verb: String,
    /// Plural with the group after a dot.
    pub(super) resource: String,
    /// Empty for all of them.
    #[serde(default)]
    pub(super) namespace: String,
    /// The one object that it is about.
    #[serde(default)]
    pub(super) object: Option<String>,
    /// Absent if the control plane did not say.
    pub(super) allowed: Option<bool>,
}

/// A group and version that the control plane serves.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Served {
    pub(super) group: String,
    pub(super) version: String,
    /// Plurals, with `/status` for subresources.
    pub(super) resources: Vec<String>,
}

/// A Lease.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Lease {
    pub(super) name: Name,
    pub(super) holder: String,
    #[serde(default)]
    pub(super) acquired: Option<Time>,
    #[serde(default)]
    pub(super) renewed: Option<Time>,
    #[serde(default)]
    pub(super) duration_s: i64,
    /// Modes of the Bulkhead that wrote it; empty for others.
    #[serde(default)]
    pub(super) modes: Vec<String>,
}

impl Lease {
    /// Whether somebody holds it.
    pub(super) fn is_held(&self, now: Time) -> bool {
        !self.holder.is_empty()
            && self.renewed.is_some_and(|renewed| now.millis_since(renewed) < self.duration_s.saturating_mul(1000))
    }
}

/// A program that last changed a field.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Writer {
    /// Its name in managedFields.
    pub(super) manager: String,
    pub(super) kind: String,
    pub(super) field: String,
    /// In how many objects.
    pub(super) objects: usize,
    /// The one that it wrote last.
    pub(super) example: Name,
    #[serde(default)]
    pub(super) last: Option<Time>,
}

/// A certificate.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Certificate {
    /// What it is.
    pub(super) what: String,
    /// Where it is kept.
    pub(super) place: String,
    /// What to do about it.
    pub(super) remedy: String,
    /// When it ends; absent if it could not be read.
    #[serde(default)]
    pub(super) ends: Option<Time>,
    /// Why it could not be read.
    #[serde(default)]
    pub(super) trouble: Option<String>,
}

/// A plugin of the directory.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Plugin {
    pub(super) name: String,
    /// At which stage and why it was refused.
    #[serde(default)]
    pub(super) refused: Option<String>,
}

/// A kind that policies select.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct KindInUse {
    pub(super) api_version: String,
    pub(super) kind: String,
    /// Whether the control plane serves it.
    pub(super) served: bool,
    /// Who tells the health of its objects.
    #[serde(default)]
    pub(super) health: Option<String>,
}

/// A propagation policy.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Policy {
    pub(super) kind: String,
    pub(super) name: Name,
    pub(super) spec: PropagationSpec,
}

/// A policy that taints.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct TaintPolicy {
    pub(super) name: String,
    pub(super) spec: ClusterTaintPolicySpec,
}

/// A pause.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Pause {
    pub(super) name: String,
    pub(super) spec: EvictionPauseSpec,
}

/// A member cluster.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Member {
    pub(super) cluster: Cluster,
    /// Why no client can be made of its Cluster and its Secret.
    #[serde(default)]
    pub(super) no_client: Option<String>,
    /// How it answered, if it was asked.
    #[serde(default)]
    pub(super) server: Option<Server>,
}

/// Something that could not be looked at.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Unread {
    /// Name of the check that lacks it.
    pub(super) check: String,
    /// What it is.
    pub(super) what: String,
    /// Why.
    pub(super) why: String,
    /// The API server answered; false if it failed (5xx) or gave no answer in time.
    #[serde(default = "answered")]
    pub(super) answered: bool,
}

fn answered() -> bool {
    true
}
