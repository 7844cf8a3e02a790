//! Permissions of the process itself, in any mode: leader election, informers, events and webhooks.

use super::{
    CLUSTERS, CONFIG, Duty, GET, KARMADA, LEASES, LIST, MEMBERS, OURS, POLICY, Place, READ, Rule, WORK, only, rule,
    within,
};

pub(super) const LEADER_ELECTION: Duty = Duty {
    name: "leader election",
    rules: &[
        within(
            Place::LeaseNamespace,
            rule(
                LEASES,
                "leases",
                &["create"],
                "create the Lease; a rule for create cannot name it",
            ),
        ),
        within(
            Place::LeaseNamespace,
            only(
                "bulkhead",
                rule(
                    LEASES,
                    "leases",
                    &["get", "update"],
                    "take, renew and release the Lease",
                ),
            ),
        ),
    ],
};

pub(super) const QUERIES: Duty = Duty {
    name: "queries",
    rules: &[
        rule(
            "authentication.k8s.io",
            "tokenreviews",
            &["create"],
            "the user of a query; only with --query-bind-address or --console-bind-address",
        ),
        rule(
            "authorization.k8s.io",
            "subjectaccessreviews",
            &["create"],
            "the right of that user to read decisions; only with --query-bind-address or --console-bind-address",
        ),
    ],
};

pub(super) const DEFAULT_MODE: Duty = Duty {
    name: "default mode",
    rules: &[
        within(
            KARMADA,
            only(
                "karmada-controller-manager",
                rule(
                    LEASES,
                    "leases",
                    GET,
                    "refuse to run without --mode while Karmada's controllers run",
                ),
            ),
        ),
        within(
            KARMADA,
            only(
                "karmada-scheduler",
                rule(
                    LEASES,
                    "leases",
                    GET,
                    "refuse to run without --mode while Karmada schedules",
                ),
            ),
        ),
    ],
};

pub(super) const DOCTOR: Duty = Duty {
    name: "doctor",
    rules: &[
        within(
            Place::LeaseNamespace,
            rule(
                LEASES,
                "leases",
                &["list"],
                "the Leases of Karmada's controllers, for `bulkhead doctor`",
            ),
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

pub(super) const INFORMERS: Duty = Duty {
    name: "informers",
    rules: &[
        rule(CLUSTERS, "clusters", READ, "clusters and their state"),
        rule(
            POLICY,
            "propagationpolicies",
            READ,
            "selected resources, their placement and failover",
        ),
        rule(
            POLICY,
            "clusterpropagationpolicies",
            READ,
            "selected resources of the whole control plane, their placement and failover",
        ),
        rule(POLICY, "clustertaintpolicies", READ, "conditions that taint a cluster"),
        rule(WORK, "resourcebindings", READ, "scheduling results and eviction tasks"),
        rule(
            WORK,
            "clusterresourcebindings",
            READ,
            "scheduling results and eviction tasks of cluster-scoped objects",
        ),
        rule(WORK, "works", READ, "objects dispatched to each cluster"),
        CUSTOMIZATIONS,
        rule(
            CONFIG,
            "resourceinterpreterwebhookconfigurations",
            READ,
            "webhooks that interpret kinds",
        ),
        rule(OURS, "evictionpauses", READ, "pauses of evictions"),
        rule(OURS, "clusterdrains", READ, "clusters to drain"),
        PLUGINS,
        PLUGIN_TRUSTS,
    ],
};

const CUSTOMIZATIONS: Rule = rule(
    CONFIG,
    "resourceinterpretercustomizations",
    READ,
    "scripts that interpret kinds",
);

const PLUGINS: Rule = rule(OURS, "plugins", READ, "plugins that are objects");

const PLUGIN_TRUSTS: Rule = rule(OURS, "plugintrusts", READ, "trust in the images of plugins");

/// Informers of a process in mode `interpret` alone, which decides nothing.
pub(super) const INTERPRETER_INFORMERS: Duty = Duty {
    name: "interpreter informers",
    rules: &[CUSTOMIZATIONS, PLUGINS, PLUGIN_TRUSTS],
};

/// Kinds that only `bulkhead doctor` reads in mode `interpret`.
pub(super) const DOCTOR_OF_INTERPRETER: Duty = Duty {
    name: "doctor",
    rules: &[
        rule(CLUSTERS, "clusters", LIST, "member clusters and their state"),
        rule(POLICY, "propagationpolicies", LIST, "kinds in use"),
        rule(POLICY, "clusterpropagationpolicies", LIST, "kinds in use"),
        rule(
            POLICY,
            "clustertaintpolicies",
            LIST,
            "taints that a policy would remove",
        ),
        rule(
            CONFIG,
            "resourceinterpreterwebhookconfigurations",
            LIST,
            "registrations without a process",
        ),
        rule(OURS, "evictionpauses", LIST, "pauses of evictions"),
    ],
};

pub(super) const EVENTS: Duty = Duty {
    name: "events",
    rules: &[rule(
        "",
        "events",
        &["create", "patch"],
        "report actions; a repeated event increments the count",
    )],
};

pub(super) const ADMISSION: Duty = Duty {
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

pub(super) const WEBHOOK_CERTIFICATE: Duty = Duty {
    name: "webhook certificate",
    rules: &[
        within(
            Place::LeaseNamespace,
            rule(
                "",
                "secrets",
                &["create"],
                "store the certificate; only without --webhook-cert-dir",
            ),
        ),
        within(
            Place::LeaseNamespace,
            only(
                "bulkhead-webhook",
                rule("", "secrets", &["get", "update"], "share and renew the certificate"),
            ),
        ),
    ],
};

pub(super) const MEMBER_CREDENTIALS: Duty = Duty {
    name: "member clients",
    rules: &[within(
        MEMBERS,
        rule(
            "",
            "secrets",
            GET,
            "token and CA of each Push member, where `bulkhead join` and karmadactl keep them",
        ),
    )],
};

pub(super) const INTERPRETER_CUSTOMIZATION: Duty = Duty {
    name: "interpreterCustomization",
    rules: &[],
};

pub(super) const INTERPRETER_WEBHOOK: Duty = Duty {
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
