//! Permissions of each controller on the control plane.

use super::{
    APPS, CLUSTERS, Duty, GET, HOOK_SERVICE, KARMADA, LEASES, MEMBERS, OURS, PATCH, POLICY, READ, UPDATE, WORK, rule,
    within,
};

pub(super) const DETECTOR: Duty = Duty {
    name: "detector",
    rules: &[
        rule("*", "*", READ, "resource templates, of the kinds that policies select"),
        rule(
            "*",
            "*",
            PATCH,
            "labels and annotations of a template that a policy claims",
        ),
        rule(
            "scheduling.k8s.io",
            "priorityclasses",
            GET,
            "the priority that a policy names",
        ),
        rule(
            WORK,
            "resourcebindings",
            &["create", "update"],
            "the binding of a template",
        ),
        rule(
            WORK,
            "clusterresourcebindings",
            &["create", "update"],
            "the binding of a template without a namespace",
        ),
        rule(
            WORK,
            "resourcebindings",
            PATCH,
            "remove the labels and annotations of a deleted policy",
        ),
        rule(
            WORK,
            "clusterresourcebindings",
            PATCH,
            "remove the labels and annotations of a deleted policy",
        ),
        rule(WORK, "resourcebindings", GET, "a fresh copy after a conflict"),
        rule(WORK, "clusterresourcebindings", GET, "a fresh copy after a conflict"),
        rule(
            POLICY,
            "propagationpolicies",
            &["get", "patch"],
            "remove the finalizer of a deleted policy",
        ),
        rule(
            POLICY,
            "clusterpropagationpolicies",
            &["get", "patch"],
            "remove the finalizer of a deleted policy",
        ),
        HOOK_SERVICE,
    ],
};

pub(super) const SCHEDULER: Duty = Duty {
    name: "scheduler",
    rules: &[
        rule(
            WORK,
            "resourcebindings",
            PATCH,
            "the scheduling result and the applied placement",
        ),
        rule(
            WORK,
            "clusterresourcebindings",
            PATCH,
            "the scheduling result and the applied placement",
        ),
        rule(WORK, "resourcebindings", GET, "a fresh copy after a conflict"),
        rule(WORK, "clusterresourcebindings", GET, "a fresh copy after a conflict"),
        rule(WORK, "resourcebindings/status", UPDATE, "the condition Scheduled"),
        rule(
            WORK,
            "clusterresourcebindings/status",
            UPDATE,
            "the condition Scheduled",
        ),
        within(
            KARMADA,
            rule(
                "",
                "services",
                GET,
                "addresses of accurate estimators; only with --enable-scheduler-estimator",
            ),
        ),
    ],
};

pub(super) const BINDING: Duty = Duty {
    name: "binding",
    rules: &[
        rule(
            POLICY,
            "overridepolicies",
            READ,
            "changes of the objects that a cluster gets",
        ),
        rule(
            POLICY,
            "clusteroverridepolicies",
            READ,
            "changes of the objects that a cluster gets, of the whole control plane",
        ),
        rule(
            WORK,
            "works",
            &["create", "update", "delete"],
            "the Work of each target cluster",
        ),
        rule(
            WORK,
            "resourcebindings",
            PATCH,
            "remove the finalizer of a deleted binding",
        ),
        rule(
            WORK,
            "clusterresourcebindings",
            PATCH,
            "remove the finalizer of a deleted binding",
        ),
        rule("*", "*", GET, "a template that no informer knows yet"),
        HOOK_SERVICE,
    ],
};

pub(super) const EXECUTION: Duty = Duty {
    name: "execution",
    rules: &[
        rule(
            WORK,
            "works",
            PATCH,
            "remove the finalizer of a deleted Work after its objects",
        ),
        rule(WORK, "works", GET, "a fresh copy after a conflict"),
        rule(WORK, "works/status", UPDATE, "the conditions Applied and Dispatching"),
        HOOK_SERVICE,
    ],
};

pub(super) const WORK_STATUS: Duty = Duty {
    name: "workStatus",
    rules: &[
        rule(WORK, "works", GET, "a fresh copy after a conflict"),
        rule(
            WORK,
            "works/status",
            UPDATE,
            "status and health of the objects in the member",
        ),
        HOOK_SERVICE,
    ],
};

pub(super) const BINDING_STATUS: Duty = Duty {
    name: "bindingStatus",
    rules: &[
        rule(WORK, "resourcebindings", GET, "a fresh copy after a conflict"),
        rule(WORK, "clusterresourcebindings", GET, "a fresh copy after a conflict"),
        rule(WORK, "resourcebindings/status", UPDATE, "the aggregated status"),
        rule(WORK, "clusterresourcebindings/status", UPDATE, "the aggregated status"),
        rule(
            "*",
            "*/status",
            PATCH,
            "the status of a template, aggregated from the member clusters",
        ),
        HOOK_SERVICE,
    ],
};

pub(super) const CLUSTER_STATUS: Duty = Duty {
    name: "clusterStatus",
    rules: &[
        rule(CLUSTERS, "clusters", GET, "a fresh copy after a conflict"),
        rule(
            CLUSTERS,
            "clusters/status",
            UPDATE,
            "the condition Ready, versions, sums of nodes and pods",
        ),
    ],
};

pub(super) const CLUSTER: Duty = Duty {
    name: "cluster",
    rules: &[
        rule(CLUSTERS, "clusters", PATCH, "finalizer of a Cluster"),
        rule(CLUSTERS, "clusters", GET, "a fresh copy after a conflict"),
        rule(
            CLUSTERS,
            "clusters/status",
            UPDATE,
            "the condition Ready of a Pull cluster that stopped reporting",
        ),
        rule(
            "",
            "namespaces",
            &["get", "create", "delete"],
            "the execution namespace karmada-es-NAME of a cluster",
        ),
        rule(
            WORK,
            "works",
            PATCH,
            "remove the finalizers of the Works of a removed Pull cluster",
        ),
        within(MEMBERS, rule(LEASES, "leases", GET, "heartbeats of Pull clusters")),
        within(
            MEMBERS,
            rule(
                LEASES,
                "leases",
                &["create"],
                "the Lease of an agent, which renews it and may not create it",
            ),
        ),
    ],
};

pub(super) const CLUSTER_TAINT_POLICY: Duty = Duty {
    name: "clustertaintpolicy",
    rules: &[
        rule(
            CLUSTERS,
            "clusters",
            PATCH,
            "taints, and the annotations that record their owners",
        ),
        rule(CLUSTERS, "clusters", GET, "a fresh copy after a conflict"),
    ],
};

pub(super) const TAINT_MANAGER: Duty = Duty {
    name: "taintManager",
    rules: &[
        rule(WORK, "resourcebindings", PATCH, "move a target to the eviction tasks"),
        rule(
            WORK,
            "clusterresourcebindings",
            PATCH,
            "move a target to the eviction tasks",
        ),
        rule(WORK, "resourcebindings", GET, "a fresh copy after a conflict"),
        rule(WORK, "clusterresourcebindings", GET, "a fresh copy after a conflict"),
    ],
};

pub(super) const CLUSTER_DRAIN: Duty = Duty {
    name: "clusterDrain",
    rules: &[
        rule(OURS, "clusterdrains", GET, "a fresh copy after a conflict"),
        rule(OURS, "clusterdrains/status", UPDATE, "progress of a drain"),
    ],
};

pub(super) const WORKLOAD_REBALANCER: Duty = Duty {
    name: "workloadRebalancer",
    rules: &[
        rule(
            APPS,
            "workloadrebalancers",
            READ,
            "requests to schedule workloads again",
        ),
        rule(APPS, "workloadrebalancers", GET, "a fresh copy after a conflict"),
        rule(
            APPS,
            "workloadrebalancers",
            &["delete"],
            "finished requests whose time is over",
        ),
        rule(APPS, "workloadrebalancers/status", UPDATE, "the result of each request"),
        rule(WORK, "resourcebindings", PATCH, "the request of a binding"),
        rule(WORK, "clusterresourcebindings", PATCH, "the request of a binding"),
        rule(WORK, "resourcebindings", GET, "a binding that the cache does not have"),
        rule(
            WORK,
            "clusterresourcebindings",
            GET,
            "a binding that the cache does not have",
        ),
    ],
};

pub(super) const GRACEFUL_EVICTION: Duty = Duty {
    name: "gracefulEviction",
    rules: &[
        rule(WORK, "resourcebindings", PATCH, "complete or cancel an eviction task"),
        rule(
            WORK,
            "clusterresourcebindings",
            PATCH,
            "complete or cancel an eviction task",
        ),
        rule(WORK, "resourcebindings", GET, "a fresh copy after a conflict"),
        rule(WORK, "clusterresourcebindings", GET, "a fresh copy after a conflict"),
    ],
};

pub(super) const FAILOVER_RECORD: Duty = Duty {
    name: "failoverRecord",
    rules: &[
        rule(OURS, "failoverrecords", READ, "records of failovers"),
        rule(
            OURS,
            "clusterfailoverrecords",
            READ,
            "records of failovers of cluster-scoped objects",
        ),
        rule(OURS, "failoverrecords", RECORDS, "the record of each binding"),
        rule(OURS, "clusterfailoverrecords", RECORDS, "the record of each binding"),
    ],
};

/// A record is read again after a conflict, and deleted with its binding.
const RECORDS: &[&str] = &["get", "create", "patch", "delete"];

pub(super) const APPLICATION_FAILOVER: Duty = Duty {
    name: "applicationFailover",
    rules: &[
        rule(
            WORK,
            "resourcebindings",
            PATCH,
            "move a target to the eviction tasks, and record its health",
        ),
        rule(
            WORK,
            "clusterresourcebindings",
            PATCH,
            "move a target to the eviction tasks, and record its health",
        ),
        rule(WORK, "resourcebindings", GET, "a fresh copy after a conflict"),
        rule(WORK, "clusterresourcebindings", GET, "a fresh copy after a conflict"),
    ],
};

pub(super) const DEPENDENCIES_DISTRIBUTOR: Duty = Duty {
    name: "dependenciesDistributor",
    rules: &[
        rule("*", "*", READ, "objects that workloads depend on"),
        rule("*", "*", GET, "a dependency that no informer knows yet"),
        rule(
            WORK,
            "resourcebindings",
            &["create", "patch", "update", "delete"],
            "the bindings of dependencies",
        ),
        rule(WORK, "resourcebindings", GET, "a fresh copy after a conflict"),
        HOOK_SERVICE,
    ],
};

pub(super) const PLUGIN_STATUS: Duty = Duty {
    name: "pluginStatus",
    rules: &[
        rule(OURS, "plugins", GET, "a fresh copy after a conflict"),
        rule(OURS, "plugins/status", UPDATE, "the state of a plugin"),
        rule(OURS, "plugintrusts", GET, "a fresh copy after a conflict"),
        rule(OURS, "plugintrusts/status", UPDATE, "mistakes in rules of trust"),
    ],
};
