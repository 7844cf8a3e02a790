//! Behaviours of the documents, and of Karmada's API, that no example shows.

use crate::support::{Folder, TAINT_POLICY, assert_held, run};

/// Head of the scenarios: lost clusters are tainted `NoExecute`, and taints evict.
const FAILOVER: &str = "flags:\n  feature-gates: {Failover: true}\n  \
                        enable-no-execute-taint-eviction: true\n  allow-no-execute-taint-policy: true\n";
/// Placement on one cluster.
const ONE: &str = "spreadConstraints: [{spreadByField: cluster, minGroups: 1, maxGroups: 1}]";

/// Returns a Deployment with two replicas.
fn deployment(name: &str) -> String {
    format!(
        "{{apiVersion: apps/v1, kind: Deployment, metadata: {{name: {name}, namespace: default, labels: {{app: {name}, \
         team: a}}}}, spec: {{replicas: 2, selector: {{matchLabels: {{app: {name}}}}}, template: {{metadata: {{labels: \
         {{app: {name}}}}}, spec: {{containers: [{{name: a, image: a}}]}}}}}}}}"
    )
}

/// Returns a PropagationPolicy for one object, with these fields in its spec.
fn policy(kind: &str, name: &str, spec: &str) -> String {
    let version = if kind == "Job" { "batch/v1" } else { "apps/v1" };
    format!(
        "{{apiVersion: policy.karmada.io/v1alpha1, kind: PropagationPolicy, metadata: {{name: {name}, namespace: default}}, \
         spec: {{resourceSelectors: [{{apiVersion: {version}, kind: {kind}, name: {name}}}], {spec}}}}}"
    )
}

/// Runs these objects for some minutes; `rest` has the clusters, events and expectations.
#[track_caller]
fn check(name: &str, minutes: u32, objects: &[String], rest: &str) {
    let scenario = format!(
        "name: {name}\nduration: {minutes}m\n{FAILOVER}manifests: [taint-policy.yaml, {{objects: [{}]}}]\n{rest}",
        objects.join(", ")
    );
    let files = [
        ("scenario.yaml", scenario.as_str()),
        ("taint-policy.yaml", TAINT_POLICY),
    ];
    let folder = Folder::new(&format!("behaviours-{name}"), &files);
    assert_held(&run(&folder.load().unwrap(), Some(1)));
}

const TWO: &str = "clusters: [{name: member1}, {name: member2}]\n";

#[test]
fn a_copy_whose_dispatching_is_suspended_is_not_created_until_it_is_resumed() {
    let placement = "placement: {clusterAffinity: {clusterNames: [member1, member2]}}";
    let on_one = format!("suspension: {{dispatchingOnClusters: {{clusterNames: [member1]}}}}, {placement}");
    check(
        "dispatching",
        4,
        &[deployment("web"), policy("Deployment", "web", &on_one)],
        &format!(
            "{TWO}events:\n- {{at: 2m, apply: {{objects: [{}]}}}}\nexpect:\n\
             - {{from: 30s, until: 119s, workload: Deployment default/web, readyReplicas: {{member2: 2}}}}\n\
             - {{at: 119s, binding: default/web-deployment, clusters: {{member1: 2, member2: 2}}}}\n\
             - {{workload: Deployment default/web, readyReplicas: {{member1: 2, member2: 2}}}}\n",
            policy("Deployment", "web", &format!("suspension: null, {placement}"))
        ),
    );
}

#[test]
fn an_object_whose_policy_preserves_resources_stays_in_its_member() {
    let spec = |preserves: bool| format!("preserveResourcesOnDeletion: {preserves}, placement: {{{ONE}}}");
    check(
        "preserve",
        4,
        &[
            deployment("kept"),
            deployment("gone"),
            policy("Deployment", "kept", &spec(true)),
            policy("Deployment", "gone", &spec(false)),
        ],
        &format!(
            "{TWO}events:\n\
             - {{at: 2m, delete: {{apiVersion: apps/v1, kind: Deployment, namespace: default, name: kept}}}}\n\
             - {{at: 2m, delete: {{apiVersion: apps/v1, kind: Deployment, namespace: default, name: gone}}}}\nexpect:\n\
             - {{at: 1m, workload: Deployment default/gone, readyReplicas: {{member1: 2}}}}\n\
             - {{from: 1m, workload: Deployment default/kept, readyReplicas: {{member1: 2}}}}\n\
             - {{workload: Deployment default/gone, readyReplicas: {{}}}}\n"
        ),
    );
}

/// A workload moves on while the first lost cluster is still gone, and again when that one is back.
#[test]
fn a_workload_moves_from_each_of_several_clusters_that_are_lost_one_after_the_other() {
    check(
        "chain",
        20,
        &[
            deployment("web"),
            policy("Deployment", "web", &format!("placement: {{{ONE}}}")),
        ],
        "clusters: [{name: member1}, {name: member2}, {name: member3}]\nevents:\n\
         - {at: 2m, cluster: member1, state: unreachable}\n- {at: 7m, cluster: member2, state: unreachable}\n\
         - {at: 10m, cluster: member1, state: recover}\n- {at: 13m, cluster: member3, state: unreachable}\nexpect:\n\
         - {at: 110s, binding: default/web-deployment, clusters: {member1: 2}}\n\
         - {at: 6m, binding: default/web-deployment, clusters: {member2: 2}, evictingFrom: []}\n\
         - {at: 12m, binding: default/web-deployment, clusters: {member3: 2}, evictingFrom: []}\n\
         - {at: 12m, workload: Deployment default/web, readyReplicasMin: 2}\n\
         - {binding: default/web-deployment, clusters: {member1: 2}, evictingFrom: []}\n\
         - {workload: Deployment default/web, readyReplicasMin: 2}\n",
    );
}

/// The replacement of the workload is not ready for minutes, so the changes come during its failover.
#[test]
fn a_workload_that_is_scaled_or_deleted_during_its_failover_ends_as_it_was_changed() {
    let web = |spec: &str| {
        format!("{{apiVersion: apps/v1, kind: Deployment, metadata: {{name: web, namespace: default}}, spec: {spec}}}")
    };
    let objects = [
        deployment("web"),
        policy("Deployment", "web", &format!("placement: {{{ONE}}}")),
        deployment("gone"),
        policy("Deployment", "gone", &format!("placement: {{{ONE}}}")),
    ];
    check(
        "changed",
        12,
        &objects,
        &format!(
            "clusters: [{{name: member1}}, {{name: member2, replicaReadyAfter: 3m}}]\nevents:\n\
             - {{at: 2m, cluster: member1, state: unreachable}}\n\
             - {{at: 4m, apply: {{objects: [{}]}}}}\n\
             - {{at: 4m, delete: {{apiVersion: apps/v1, kind: Deployment, namespace: default, name: gone}}}}\n\
             - {{at: 5m, cluster: member1, state: recover}}\nexpect:\n\
             - {{at: 3m50s, binding: default/web-deployment, clusters: {{member2: 2}}, evictingFrom: [member1]}}\n\
             - {{at: 3m50s, binding: default/gone-deployment, clusters: {{member2: 2}}, evictingFrom: [member1]}}\n\
             - {{binding: default/web-deployment, clusters: {{member2: 5}}, evictingFrom: [], worksIn: [member2]}}\n\
             - {{workload: Deployment default/web, readyReplicas: {{member2: 5}}}}\n\
             - {{workload: Deployment default/gone, readyReplicas: {{}}}}\n\
             - {{bindingsOn: {{cluster: member2, count: 1}}}}\n",
            web("{replicas: 5}")
        ),
    );
}

#[test]
fn a_job_that_runs_on_a_lost_cluster_is_started_on_another_one() {
    let job = "{apiVersion: batch/v1, kind: Job, metadata: {name: sum, namespace: default}, spec: {parallelism: 2, \
               completions: 2, template: {spec: {restartPolicy: Never, containers: [{name: a, image: a}]}}}}";
    check(
        "job",
        8,
        &[job.to_owned(), policy("Job", "sum", &format!("placement: {{{ONE}}}"))],
        "clusters: [{name: member1, replicaReadyAfter: 4m}, {name: member2}]\nevents:\n\
         - {at: 2m, cluster: member1, state: unreachable}\nexpect:\n\
         - {at: 110s, binding: default/sum-job, clusters: {member1: 2}}\n\
         - {binding: default/sum-job, clusters: {member2: 2}, evictingFrom: []}\n\
         - {decision: {decision: Evicted, object: default/sum-job, cluster: member1, reason: TaintUntolerated}}\n",
    );
}

/// Story of the configurable proposal: one workload leaves a lost cluster after 100 s, and another one after 400 s.
#[test]
fn each_workload_leaves_a_lost_cluster_after_its_own_toleration() {
    let tolerant = |seconds: u32| {
        format!(
            "placement: {{{ONE}, clusterTolerations: [{{key: cluster.karmada.io/not-ready, operator: Exists, effect: \
             NoExecute, tolerationSeconds: {seconds}}}]}}"
        )
    };
    check(
        "stories",
        14,
        &[
            deployment("soon"),
            deployment("late"),
            policy("Deployment", "soon", &tolerant(100)),
            policy("Deployment", "late", &tolerant(400)),
        ],
        &format!(
            "{TWO}events:\n- {{at: 2m, cluster: member1, state: unreachable}}\nexpect:\n\
             - {{from: 1m, until: 4m5s, binding: default/soon-deployment, clusters: {{member1: 2}}}}\n\
             - {{at: 4m35s, binding: default/soon-deployment, clusters: {{member2: 2}}}}\n\
             - {{from: 1m, until: 9m5s, binding: default/late-deployment, clusters: {{member1: 2}}}}\n\
             - {{at: 9m35s, binding: default/late-deployment, clusters: {{member2: 2}}}}\n"
        ),
    );
}

/// One binding of a namespace and one of the cluster scope: a slot opens every ten seconds.
#[test]
fn bindings_of_namespaces_and_of_the_cluster_scope_leave_at_one_rate() {
    let role = "{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: demo}, rules: []}";
    let policy = format!(
        "{{apiVersion: policy.karmada.io/v1alpha1, kind: ClusterPropagationPolicy, metadata: {{name: all}}, spec: \
         {{resourceSelectors: [{{apiVersion: apps/v1, kind: Deployment}}, {{apiVersion: rbac.authorization.k8s.io/v1, kind: \
         ClusterRole, name: demo}}], placement: {{{ONE}}}}}}}"
    );
    let scenario = format!(
        "name: rate\nduration: 4m\n{}manifests: [{{objects: [{role}, {}, {policy}]}}]\n{TWO}events:\n\
         - {{at: 2m, apply: {{objects: [{{apiVersion: cluster.karmada.io/v1alpha1, kind: Cluster, metadata: {{name: \
         member1}}, spec: {{taints: [{{key: a, effect: NoExecute}}]}}}}]}}}}\nexpect:\n\
         - {{at: 119s, bindingsOn: {{cluster: member1, count: 2}}}}\n\
         - {{from: 122s, until: 129s, bindingsOn: {{cluster: member1, count: 1}}}}\n\
         - {{from: 133s, bindingsOn: {{cluster: member1, count: 0}}}}\n",
        FAILOVER.replace("flags:\n", "flags:\n  resource-eviction-rate: 0.1\n"),
        deployment("web"),
    );
    let folder = Folder::new("behaviours-rate", &[("scenario.yaml", &scenario)]);
    assert_held(&run(&folder.load().unwrap(), Some(1)));
}

/// An application with dependencies of every kind that its document names.
#[test]
fn claims_configuration_secrets_and_accounts_travel_with_an_application() {
    let object = |kind: &str, name: &str, rest: &str| {
        format!("{{apiVersion: v1, kind: {kind}, metadata: {{name: {name}, namespace: default}}{rest}}}")
    };
    let claim = ", spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}";
    let web = "{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: default}, spec: {replicas: 2, selector: \
               {matchLabels: {app: web}}, template: {metadata: {labels: {app: web}}, spec: {serviceAccountName: runner, \
               containers: [{name: a, image: a, envFrom: [{secretRef: {name: key}}]}], volumes: [{name: s, configMap: {name: \
               settings}}, {name: d, persistentVolumeClaim: {claimName: data}}]}}}}";
    let application = format!(
        "propagateDeps: true, failover: {{application: {{preConditions: {{healthyState: Healthy}}, decisionConditions: \
         {{tolerationSeconds: 0}}, purgeMode: Gracefully}}}}, placement: {{{ONE}}}"
    );
    let needs = [
        "settings-configmap",
        "key-secret",
        "data-persistentvolumeclaim",
        "runner-serviceaccount",
    ];
    let expect = needs.map(|name| {
        format!(
            "- {{at: 110s, binding: default/{name}, worksIn: [member1]}}\n- {{binding: default/{name}, worksIn: [member2]}}\n"
        )
    });
    let expect = expect.concat();
    check(
        "needs",
        6,
        &[
            object("ConfigMap", "settings", ", data: {a: b}"),
            object("Secret", "key", ", data: {a: YQ==}"),
            object("PersistentVolumeClaim", "data", claim),
            object("ServiceAccount", "runner", ""),
            web.to_owned(),
            policy("Deployment", "web", &application),
        ],
        &format!(
            "{TWO}events:\n- {{at: 2m, cluster: member1, failureModes: [{{mode: never-ready}}]}}\nexpect:\n\
             - {{from: 1m, until: 119s, binding: default/web-deployment, clusters: {{member1: 2}}}}\n\
             - {{at: 2m20s, binding: default/web-deployment, clusters: {{member2: 2}}}}\n{expect}"
        ),
    );
}
