//! Facts about an installation, as data: gathered from real control planes, or written by hand in tests.

use bulkhead_api::policy::PropagationSpec;
use bulkhead_controllers::flags::Flags;
use bulkhead_core::model::{Cluster, ClusterTaintPolicySpec, EvictionPauseSpec};
use bulkhead_core::time::Time;
use bulkhead_simulator::takeover::Outcome;
use serde::{Deserialize, Serialize};

/// Address of the control plane if no kubeconfig can be read.
pub(super) const NO_ADDRESS: &str = "kubeconfig";

/// Input of all checks.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Facts {
    /// Time of the check.
    pub(super) now: Time,
    /// Installation that `bulkhead run` would start with the same arguments.
    pub(super) installation: Installation,
    /// Control plane.
    pub(super) control_plane: Server,
    /// Permissions that the modes need, and whether the account has them.
    #[serde(default)]
    pub(super) permissions: Vec<Permission>,
    /// API versions that the control plane serves, in the groups that are used.
    #[serde(default)]
    pub(super) served: Vec<Served>,
    /// Leases in the namespace of the installation.
    #[serde(default)]
    pub(super) leases: Vec<Lease>,
    /// Kind and name of the objects that only Karmada's controllers act upon; empty in modes that replace none of
    /// these controllers.
    #[serde(default)]
    pub(super) unimplemented: Vec<String>,
    /// Programs that wrote the fields that the modes own.
    #[serde(default)]
    pub(super) writers: Vec<Writer>,
    /// Certificates that connections depend on.
    #[serde(default)]
    pub(super) certificates: Vec<Certificate>,
    /// Plugins of the directory and of Plugin objects.
    #[serde(default)]
    pub(super) plugins: Vec<Plugin>,
    /// Trust in the images of plugins.
    #[serde(default)]
    pub(super) trust: Trust,
    /// Error that prevented reading the list of plugins.
    #[serde(default)]
    pub(super) plugin_error: Option<String>,
    /// Registered webhooks that are reached by URL.
    #[serde(default)]
    pub(super) webhooks: Vec<Webhook>,
    /// Kinds that policies select.
    #[serde(default)]
    pub(super) kinds: Vec<KindInUse>,
    /// Propagation policies, including cluster-wide ones.
    #[serde(default)]
    pub(super) policies: Vec<Policy>,
    /// Policies that add taints.
    #[serde(default)]
    pub(super) taint_policies: Vec<TaintPolicy>,
    /// Eviction pauses.
    #[serde(default)]
    pub(super) pauses: Vec<Pause>,
    /// Member clusters.
    #[serde(default)]
    pub(super) members: Vec<Member>,
    /// Kinds with Works whose health has been unknown for long.
    #[serde(default)]
    pub(super) unknown_health: Vec<UnknownHealth>,
    /// Result of the rehearsal; absent if none was requested or possible.
    #[serde(default)]
    pub(super) rehearsal: Option<Outcome>,
    /// Facts that could not be gathered, with the reasons.
    #[serde(default)]
    pub(super) unread: Vec<Unread>,
}

/// Installation that `bulkhead run` would start with the same arguments.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Installation {
    /// Names of modes.
    pub(super) modes: Vec<String>,
    /// Controllers that would run.
    pub(super) controllers: Vec<String>,
    /// Namespace and name of the Lease; absent without leader election.
    #[serde(default)]
    pub(super) lease: Option<Name>,
    /// Settings.
    #[serde(default)]
    pub(super) flags: Flags,
}

impl Installation {
    /// Returns true if a mode is among them.
    pub(super) fn has(&self, mode: &str) -> bool {
        self.modes.iter().any(|known| known == mode)
    }

    /// Returns true if a controller would run.
    pub(super) fn runs(&self, controller: &str) -> bool {
        self.controllers.iter().any(|known| known == controller)
    }
}

/// Namespace (empty for cluster scope) and name.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Name {
    #[serde(default)]
    pub(super) namespace: String,
    pub(super) name: String,
}

impl std::fmt::Display for Name {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.namespace.is_empty() {
            f.write_str(&self.name)
        } else {
            write!(f, "{}/{}", self.namespace, self.name)
        }
    }
}

/// State of an API server.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Server {
    /// URL.
    #[serde(default)]
    pub(super) address: String,
    /// `gitVersion`.
    #[serde(default)]
    pub(super) version: String,
    /// Offset of its clock against the local clock, in milliseconds; positive if it is ahead, absent if it sent no
    /// date.
    #[serde(default)]
    pub(super) clock_ahead_ms: Option<i64>,
    /// Reason why it cannot be used, with a remedy.
    #[serde(default, rename = "trouble")]
    pub(super) error: Option<ServerError>,
}

/// Reason why an API server cannot be used, with a remedy.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct ServerError {
    pub(super) what: String,
    pub(super) remedy: String,
    /// True if the server did not answer at all.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) is_silent: bool,
}

/// Permission for one verb on one kind of object.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Permission {
    /// Parts of the program that need it, each with its purpose.
    pub(super) why: Vec<String>,
    pub(super) verb: String,
    /// Plural and group, joined by a dot.
    pub(super) resource: String,
    /// Empty for all namespaces.
    #[serde(default)]
    pub(super) namespace: String,
    /// Name of the object, if the permission is about one object.
    #[serde(default)]
    pub(super) object: Option<String>,
    /// Absent if the control plane gave no answer.
    pub(super) allowed: Option<bool>,
}

/// Group and version that the control plane serves.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Served {
    pub(super) group: String,
    pub(super) version: String,
    /// Plurals, with `/status` for subresources.
    pub(super) resources: Vec<String>,
}

/// Lease of a leader election.
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
    /// Modes of the Bulkhead that wrote it; empty for other programs.
    #[serde(default)]
    pub(super) modes: Vec<String>,
}

impl Lease {
    /// Returns true if the Lease has a holder and was renewed within its duration.
    pub(super) fn is_held(&self, now: Time) -> bool {
        !self.holder.is_empty()
            && self
                .renewed
                .is_some_and(|renewed| now.millis_since(renewed) < self.duration_s.saturating_mul(1000))
    }
}

/// Program that last changed a field.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Writer {
    /// Field manager in managedFields.
    pub(super) manager: String,
    pub(super) kind: String,
    pub(super) field: String,
    /// Number of objects that it wrote the field in.
    pub(super) objects: usize,
    /// Object that it wrote last.
    pub(super) example: Name,
    #[serde(default)]
    pub(super) last: Option<Time>,
}

/// Certificate with its expiry.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Certificate {
    /// Description of the certificate.
    pub(super) what: String,
    /// Location of the certificate.
    pub(super) place: String,
    /// Remedy if it expires or cannot be read.
    pub(super) remedy: String,
    /// Expiry; absent if it could not be read.
    #[serde(default)]
    pub(super) ends: Option<Time>,
    /// Error that prevented reading it.
    #[serde(default, rename = "trouble")]
    pub(super) error: Option<String>,
}

/// Plugin of the installation.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Plugin {
    pub(super) name: String,
    /// Stage and reason of the refusal, if it was refused.
    #[serde(default)]
    pub(super) refused: Option<String>,
    /// Image of the loaded version; absent for a file and for an object with its code.
    #[serde(default)]
    pub(super) image: Option<PluginImage>,
}

/// Image of a plugin that is loaded.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct PluginImage {
    /// Reference in the list or in the object.
    pub(super) listed: String,
    /// Reference of the loaded version, with its digest.
    pub(super) loaded: String,
    /// Signer; absent if no signature is required.
    #[serde(default)]
    pub(super) signer: Option<String>,
    /// Reason why the registry was not read; the loaded version is that of the cache then.
    #[serde(default)]
    pub(super) unreachable: Option<String>,
    /// Kinds of calls that the plugin answers.
    pub(super) answers: Vec<String>,
    /// Kinds of calls that the rule of trust permits; absent for all.
    #[serde(default)]
    pub(super) permitted: Option<Vec<String>>,
}

/// Trust in the images of plugins.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Trust {
    /// Path of the trust file; absent without one.
    #[serde(default)]
    pub(super) file: Option<String>,
    /// Prefixes of images that the rules of the file are for.
    #[serde(default)]
    pub(super) images: Vec<String>,
    /// `PluginTrust` objects.
    #[serde(default)]
    pub(super) objects: Vec<TrustObject>,
}

/// `PluginTrust` object.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct TrustObject {
    pub(super) name: String,
    /// Prefixes of images that its rules are for.
    #[serde(default)]
    pub(super) images: Vec<String>,
    /// Mistakes, each with its field.
    #[serde(default)]
    pub(super) mistakes: Vec<String>,
}

/// Registered webhook.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Webhook {
    /// Kind and name of the configuration.
    pub(super) configuration: String,
    /// Name of the webhook in its configuration.
    pub(super) name: String,
    pub(super) url: String,
    /// True if requests fail without an answer.
    pub(super) is_required: bool,
    pub(super) endpoint: Endpoint,
}

/// State of the endpoint of a webhook.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum Endpoint {
    /// It sends HTTP responses.
    Answers,
    /// Connections are refused, so no process serves it.
    Refuses,
    /// Connections are accepted, and there is no response of a webhook: a proxy is in front of an endpoint that is gone,
    /// or the certificate is not trusted.
    Silent {
        /// Cause.
        why: String,
    },
    /// No connection from this machine, which does not exclude one from the control plane.
    Unreachable {
        /// Cause.
        why: String,
    },
}

/// Kind that policies select.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct KindInUse {
    pub(super) api_version: String,
    pub(super) kind: String,
    /// True if the control plane serves it.
    pub(super) served: bool,
    /// Name of the interpreter that determines the health of its objects.
    #[serde(default)]
    pub(super) health: Option<String>,
}

/// Kind with Works whose health is unknown.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct UnknownHealth {
    pub(super) api_version: String,
    pub(super) kind: String,
    /// Number of Works.
    pub(super) works: usize,
    /// Work whose status was written first.
    pub(super) example: Name,
    /// Time at which that status was written.
    pub(super) since: Time,
}

/// Propagation policy.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Policy {
    pub(super) kind: String,
    pub(super) name: Name,
    pub(super) spec: PropagationSpec,
}

/// Policy that adds taints.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct TaintPolicy {
    pub(super) name: String,
    pub(super) spec: ClusterTaintPolicySpec,
}

/// Eviction pause.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Pause {
    pub(super) name: String,
    pub(super) spec: EvictionPauseSpec,
}

/// Member cluster.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Member {
    pub(super) cluster: Cluster,
    /// Reason why no client can be created from its Cluster and its Secret.
    #[serde(default)]
    pub(super) no_client: Option<String>,
    /// State of its API server, if it was queried.
    #[serde(default)]
    pub(super) server: Option<Server>,
}

/// Fact that could not be gathered.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Unread {
    /// Name of the check that needs it.
    pub(super) check: String,
    /// Object or API that could not be read.
    pub(super) what: String,
    /// Cause.
    pub(super) why: String,
    /// True if the API server answered; false if it failed (5xx) or did not answer in time.
    #[serde(default = "answered")]
    pub(super) answered: bool,
}

fn answered() -> bool {
    true
}
