//! Permissions of each mode and each controller on the control plane, as data.
//!
//! The manifests in `host/deploy/chart/rbac` are generated from this file by `roles.rs`. `tests/tidy` fails if they
//! differ, or if a controller or a kind is missing here. Each new request of a controller needs a line in this file.
//!
//! Omitted on purpose: access to member clusters, which depends on the account that `bulkhead join` creates there,
//! and discovery, which Kubernetes grants to every authenticated user.
//!
//! Start reading at [`Mode::duties`].

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
                APPLICATION_FAILOVER,
                DEPENDENCIES_DISTRIBUTOR,
                PLUGIN_STATUS,
            ],
            Self::Evict => &[
                LEADER_ELECTION,
                DOCTOR,
                INFORMERS,
                EVENTS,
                ADMISSION,
                WEBHOOK_CERTIFICATE,
                CLUSTER_TAINT_POLICY,
                TAINT_MANAGER,
                CLUSTER_DRAIN,
                GRACEFUL_EVICTION,
                APPLICATION_FAILOVER,
                PLUGIN_STATUS,
            ],
            Self::Finish => &[
                LEADER_ELECTION,
                DOCTOR,
                INFORMERS,
                EVENTS,
                ADMISSION,
                WEBHOOK_CERTIFICATE,
                GRACEFUL_EVICTION,
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
const CONFIG: &str = "config.karmada.io";
const OURS: &str = "bulkhead.dev";

const fn rule(group: &'static str, resource: &'static str, verbs: &'static [&'static str], why: &'static str) -> Rule {
    Rule { group, resource, verbs, place: Place::Everywhere, object: None, why }
}

const fn within(place: Place, rule: Rule) -> Rule {
    Rule { place, ..rule }
}

const fn only(object: &'static str, rule: Rule) -> Rule {
    Rule { object: Some(object), ..rule }
}

const LEASES: &str = "coordination.k8s.io";
/// Namespace of the credentials and the leases of member clusters, as in Karmada.
const MEMBERS: Place = Place::Namespace("karmada-cluster");

const LEADER_ELECTION: Duty = Duty {
    name: "leader election",
    rules: &[
        within(
            Place::LeaseNamespace,
            rule(LEASES, "leases", &["create"], "create the Lease; a rule for create cannot name it"),
        ),
        within(
            Place::LeaseNamespace,
            only("bulkhead", rule(LEASES, "leases", &["get", "update"], "take, renew and release the Lease")),
        ),
    ],
};

/// Namespace of Karmada's own components: the Leases of its controllers and the Services of its estimators.
const KARMADA: Place = Place::Namespace("karmada-system");

const DEFAULT_MODE: Duty = Duty {
    name: "default mode",
    rules: &[
        within(
            KARMADA,
            only(
                "karmada-controller-manager",
                rule(LEASES, "leases", GET, "refuse to run without --mode while Karmada's controllers run"),
            ),
        ),
        within(
            KARMADA,
            only(
                "karmada-scheduler",
                rule(LEASES, "leases", GET, "refuse to run without --mode while Karmada schedules"),
            ),
        ),
    ],
};

const DOCTOR: Duty = Duty {
    name: "doctor",
    rules: &[
        within(
            Place::LeaseNamespace,
            rule(LEASES, "leases", &["list"], "the Leases of Karmada's controllers, for `bulkhead doctor`"),
        ),
        only(
            "bulkhead",
            rule(
                "admissionregistration.k8s.io",
                "mutatingwebhookconfigurations",
                GET,
                "a registration without a process, for `bulkhead doctor`",
            ),
        ),
    ],
};

const INFORMERS: Duty = Duty {
    name: "informers",
    rules: &[
        rule(CLUSTERS, "clusters", READ, "clusters and their state"),
        rule(POLICY, "propagationpolicies", READ, "selected resources, their placement and failover"),
        rule(
            POLICY,
            "clusterpropagationpolicies",
            READ,
            "selected resources of the whole control plane, their placement and failover",
        ),
        rule(POLICY, "clustertaintpolicies", READ, "conditions that taint a cluster"),
        rule(WORK, "resourcebindings", READ, "scheduling results and eviction tasks"),
        rule(WORK, "clusterresourcebindings", READ, "scheduling results and eviction tasks of cluster-scoped objects"),
        rule(WORK, "works", READ, "objects dispatched to each cluster"),
        CUSTOMIZATIONS,
        rule(CONFIG, "resourceinterpreterwebhookconfigurations", READ, "webhooks that interpret kinds"),
        rule(OURS, "evictionpauses", READ, "pauses of evictions"),
        rule(OURS, "clusterdrains", READ, "clusters to drain"),
        PLUGINS,
    ],
};

const CUSTOMIZATIONS: Rule = rule(CONFIG, "resourceinterpretercustomizations", READ, "scripts that interpret kinds");
const PLUGINS: Rule = rule(OURS, "plugins", READ, "plugins that are objects");

/// Informers of a process in mode `interpret` alone, which decides nothing.
const INTERPRETER_INFORMERS: Duty = Duty { name: "interpreter informers", rules: &[CUSTOMIZATIONS, PLUGINS] };

/// Kinds that only `bulkhead doctor` reads in mode `interpret`.
const DOCTOR_OF_INTERPRETER: Duty = Duty {
    name: "doctor",
    rules: &[
        rule(CLUSTERS, "clusters", LIST, "member clusters and their state"),
        rule(POLICY, "propagationpolicies", LIST, "kinds in use"),
        rule(POLICY, "clusterpropagationpolicies", LIST, "kinds in use"),
        rule(POLICY, "clustertaintpolicies", LIST, "taints that a policy would remove"),
        rule(CONFIG, "resourceinterpreterwebhookconfigurations", LIST, "registrations without a process"),
        rule(OURS, "evictionpauses", LIST, "pauses of evictions"),
    ],
};

const EVENTS: Duty = Duty {
    name: "events",
    rules: &[rule("", "events", &["create", "patch"], "report actions; a repeated event increments the count")],
};

const ADMISSION: Duty = Duty {
    name: "admission",
    rules: &[only(
        "bulkhead",
        rule(
            "admissionregistration.k8s.io",
            "mutatingwebhookconfigurations",
            &["create", "patch"],
            "register the reviews by server-side apply; only with --webhook-bind-address",
        ),
    )],
};

const WEBHOOK_CERTIFICATE: Duty = Duty {
    name: "webhook certificate",
    rules: &[
        within(
            Place::LeaseNamespace,
            rule("", "secrets", &["create"], "store the certificate; only without --webhook-cert-dir"),
        ),
        within(
            Place::LeaseNamespace,
            only("bulkhead-webhook", rule("", "secrets", &["get", "update"], "share and renew the certificate")),
        ),
    ],
};

const MEMBER_CREDENTIALS: Duty = Duty {
    name: "member clients",
    rules: &[within(
        MEMBERS,
        rule("", "secrets", GET, "token and CA of each Push member, where `bulkhead join` and karmadactl keep them"),
    )],
};

const INTERPRETER_CUSTOMIZATION: Duty = Duty { name: "interpreterCustomization", rules: &[] };

const HOOK_SERVICE: Rule = rule("", "services", GET, "address of a webhook interpreter that names a service");

const DETECTOR: Duty = Duty {
    name: "detector",
    rules: &[
        rule("*", "*", READ, "resource templates, of the kinds that policies select"),
        rule("*", "*", PATCH, "labels and annotations of a template that a policy claims"),
        rule("scheduling.k8s.io", "priorityclasses", GET, "the priority that a policy names"),
        rule(WORK, "resourcebindings", &["create", "update"], "the binding of a template"),
        rule(WORK, "clusterresourcebindings", &["create", "update"], "the binding of a template without a namespace"),
        HOOK_SERVICE,
    ],
};

const SCHEDULER: Duty = Duty {
    name: "scheduler",
    rules: &[
        rule(WORK, "resourcebindings", PATCH, "the scheduling result and the applied placement"),
        rule(WORK, "clusterresourcebindings", PATCH, "the scheduling result and the applied placement"),
        rule(WORK, "resourcebindings", GET, "a fresh copy after a conflict"),
        rule(WORK, "clusterresourcebindings", GET, "a fresh copy after a conflict"),
        rule(WORK, "resourcebindings/status", UPDATE, "the condition Scheduled"),
        rule(WORK, "clusterresourcebindings/status", UPDATE, "the condition Scheduled"),
        within(
            KARMADA,
            rule("", "services", GET, "addresses of accurate estimators; only with --enable-scheduler-estimator"),
        ),
    ],
};

const BINDING: Duty = Duty {
    name: "binding",
    rules: &[
        rule(WORK, "works", &["create", "update", "delete"], "the Work of each target cluster"),
        rule(WORK, "resourcebindings", PATCH, "remove the finalizer of a deleted binding"),
        rule(WORK, "clusterresourcebindings", PATCH, "remove the finalizer of a deleted binding"),
        rule("*", "*", GET, "a template that no informer knows yet"),
        HOOK_SERVICE,
    ],
};

const EXECUTION: Duty = Duty {
    name: "execution",
    rules: &[
        rule(WORK, "works", PATCH, "remove the finalizer of a deleted Work after its objects"),
        rule(WORK, "works", GET, "a fresh copy after a conflict"),
        rule(WORK, "works/status", UPDATE, "the conditions Applied and Dispatching"),
        HOOK_SERVICE,
    ],
};

const WORK_STATUS: Duty = Duty {
    name: "workStatus",
    rules: &[
        rule(WORK, "works", GET, "a fresh copy after a conflict"),
        rule(WORK, "works/status", UPDATE, "status and health of the objects in the member"),
        HOOK_SERVICE,
    ],
};

const BINDING_STATUS: Duty = Duty {
    name: "bindingStatus",
    rules: &[
        rule(WORK, "resourcebindings", GET, "a fresh copy after a conflict"),
        rule(WORK, "clusterresourcebindings", GET, "a fresh copy after a conflict"),
        rule(WORK, "resourcebindings/status", UPDATE, "the aggregated status"),
        rule(WORK, "clusterresourcebindings/status", UPDATE, "the aggregated status"),
        rule("*", "*/status", PATCH, "the status of a template, aggregated from the member clusters"),
        HOOK_SERVICE,
    ],
};

const CLUSTER_STATUS: Duty = Duty {
    name: "clusterStatus",
    rules: &[
        rule(CLUSTERS, "clusters", GET, "a fresh copy after a conflict"),
        rule(CLUSTERS, "clusters/status", UPDATE, "the condition Ready, versions, sums of nodes and pods"),
    ],
};

const CLUSTER: Duty = Duty {
    name: "cluster",
    rules: &[
        rule(CLUSTERS, "clusters", PATCH, "finalizer of a Cluster"),
        rule(CLUSTERS, "clusters", GET, "a fresh copy after a conflict"),
        rule(CLUSTERS, "clusters/status", UPDATE, "the condition Ready of a Pull cluster that stopped reporting"),
        rule("", "namespaces", &["get", "create", "delete"], "the execution namespace karmada-es-NAME of a cluster"),
        rule(WORK, "works", PATCH, "remove the finalizers of the Works of a removed Pull cluster"),
        within(MEMBERS, rule(LEASES, "leases", GET, "heartbeats of Pull clusters")),
        within(
            MEMBERS,
            rule(LEASES, "leases", &["create"], "the Lease of an agent, which renews it and may not create it"),
        ),
    ],
};

const CLUSTER_TAINT_POLICY: Duty = Duty {
    name: "clustertaintpolicy",
    rules: &[
        rule(CLUSTERS, "clusters", PATCH, "taints, and the annotations that record their owners"),
        rule(CLUSTERS, "clusters", GET, "a fresh copy after a conflict"),
    ],
};

const TAINT_MANAGER: Duty = Duty {
    name: "taintManager",
    rules: &[
        rule(WORK, "resourcebindings", PATCH, "move a target to the eviction tasks"),
        rule(WORK, "clusterresourcebindings", PATCH, "move a target to the eviction tasks"),
        rule(WORK, "resourcebindings", GET, "a fresh copy after a conflict"),
        rule(WORK, "clusterresourcebindings", GET, "a fresh copy after a conflict"),
    ],
};

const CLUSTER_DRAIN: Duty = Duty {
    name: "clusterDrain",
    rules: &[
        rule(OURS, "clusterdrains", GET, "a fresh copy after a conflict"),
        rule(OURS, "clusterdrains/status", UPDATE, "progress of a drain"),
    ],
};

const GRACEFUL_EVICTION: Duty = Duty {
    name: "gracefulEviction",
    rules: &[
        rule(WORK, "resourcebindings", PATCH, "complete or cancel an eviction task"),
        rule(WORK, "clusterresourcebindings", PATCH, "complete or cancel an eviction task"),
        rule(WORK, "resourcebindings", GET, "a fresh copy after a conflict"),
        rule(WORK, "clusterresourcebindings", GET, "a fresh copy after a conflict"),
    ],
};

const APPLICATION_FAILOVER: Duty = Duty {
    name: "applicationFailover",
    rules: &[
        rule(WORK, "resourcebindings", PATCH, "move a target to the eviction tasks, and record its health"),
        rule(WORK, "clusterresourcebindings", PATCH, "move a target to the eviction tasks, and record its health"),
        rule(WORK, "resourcebindings", GET, "a fresh copy after a conflict"),
        rule(WORK, "clusterresourcebindings", GET, "a fresh copy after a conflict"),
    ],
};

const DEPENDENCIES_DISTRIBUTOR: Duty = Duty {
    name: "dependenciesDistributor",
    rules: &[
        rule("*", "*", READ, "objects that workloads depend on"),
        rule("*", "*", GET, "a dependency that no informer knows yet"),
        rule(WORK, "resourcebindings", &["create", "patch", "update", "delete"], "the bindings of dependencies"),
        rule(WORK, "resourcebindings", GET, "a fresh copy after a conflict"),
        HOOK_SERVICE,
    ],
};

const PLUGIN_STATUS: Duty = Duty {
    name: "pluginStatus",
    rules: &[
        rule(OURS, "plugins", GET, "a fresh copy after a conflict"),
        rule(OURS, "plugins/status", UPDATE, "the state of a plugin"),
    ],
};

const INTERPRETER_WEBHOOK: Duty = Duty {
    name: "interpreter webhook",
    rules: &[only(
        "bulkhead",
        rule(
            CONFIG,
            "resourceinterpreterwebhookconfigurations",
            &["create", "patch"],
            "register the interpreter by server-side apply",
        ),
    )],
};
