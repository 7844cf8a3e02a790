//! One test for each reader.

use std::fs;
use std::sync::Arc;

use bulkhead_api::admission::{AdmissionOptions, Operation};
use bulkhead_api::webhook::serve;
use bulkhead_apiserver::{ApiServer, Clock, Fidelity, Options, kinds};
use bulkhead_core::policy::EngineKind;
use bulkhead_core::time::Time;
use bulkhead_defaults::admission::{AdmissionEnvironment, InProcess};
use bulkhead_engine_lua::LuaEngine;
use bulkhead_engine_wasm::WasmEngine;
use bulkhead_fuzz::load;
use bulkhead_journal::segment;
use bulkhead_plugin::Engine;
use bulkhead_simulator::recorded::Recording;
use bulkhead_simulator::recorded::explain::explain;
use bulkhead_simulator::recorded::replay::Replayer;
use bulkhead_simulator::scenario;
use bulkhead_simulator::simulation::{self, Detail, RunOptions};
use bulkhead_simulator::what_if;
use http_body_util::BodyExt as _;
use serde_json::Value;

use crate::{alone, file, reads, root};

/// Limit of readers of text: trees of 256 KiB of the shortest elements, and of the million events that aliases may
/// repeat.
const TEXT_BYTES_MAX: usize = 128 << 20;
/// Limit of scripts: the default budget, and the engine.
const SCRIPT_BYTES_MAX: usize = 160 << 20;
/// Limit of components: compiling takes the most.
const COMPONENT_BYTES_MAX: usize = 512 << 20;

const PLUGINS: &str = "apiVersion: bulkhead.dev/v1alpha1
kind: PluginList
composition: {health: worst-opinion}
plugins:
- {name: freeze, lua: a.lua, mode: shadow, weight: 3, config: {until: 2026-01-01T00:00:00Z}, fallback: abstain}
- {name: vital, lua: a.lua, kinds: [{apiVersion: apps/v1, kind: Deployment}], answers: [InterpretHealth]}
";

const EXPORT: &str = "apiVersion: v1
kind: List
items:
- apiVersion: cluster.karmada.io/v1alpha1
  kind: Cluster
  metadata: {name: member1, labels: {a: b}}
  spec: {syncMode: Push, taints: [{key: a, effect: NoExecute, timeAdded: 2026-01-01T00:00:00Z}]}
  status: {conditions: [{type: Ready, status: 'True', lastTransitionTime: 2026-01-01T00:00:00Z}]}
- apiVersion: work.karmada.io/v1alpha2
  kind: ResourceBinding
  metadata: {name: web-deployment, namespace: default}
  spec:
    resource: {apiVersion: apps/v1, kind: Deployment, namespace: default, name: web}
    replicas: 3
    clusters: [{name: member1, replicas: 3}]
    replicaRequirements: {resourceRequest: {cpu: 100m, memory: 1Gi}}
";

const SCRIPT: &str = "local kube = require('kube')
function InterpretHealth(object)
  local ready = 0
  for _, condition in ipairs(object.status and object.status.conditions or {}) do
    if condition.type == 'Ready' and condition.status == 'True' then ready = ready + 1 end
  end
  return ready > 0 and tonumber(object.spec.replicas or 1) <= 3
end
";

const REVIEW: &str = r#"{"apiVersion": "config.karmada.io/v1alpha1", "kind": "ResourceInterpreterContext", "request": {
"uid": "1", "kind": {"group": "apps", "version": "v1", "kind": "Deployment"}, "name": "web", "operation": "OP",
"object": {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "generation": 2},
"spec": {"replicas": 2, "template": {"spec": {"containers": [{"name": "a", "resources": {"requests": {"cpu": "1"}}}]}}},
"status": {"replicas": 2, "readyReplicas": 2, "observedGeneration": 2, "conditions": []}},
"observedObject": {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": {"replicas": 1}},
"replicas": 3, "aggregatedStatus": [{"clusterName": "member1", "status": {"replicas": 1}, "applied": true}]}}"#;

const REQUESTS: [&str; 12] = [
    "GET /api/v1/namespaces/default/configmaps?limit=2&labelSelector=a%20in%20(b)&fieldSelector=metadata.name%3Dx\n\
     accept: application/json;as=Table;g=meta.k8s.io;v=v1\n\n",
    "GET /apis/apps/v1/deployments?watch=true&resourceVersion=0&timeoutSeconds=1&allowWatchBookmarks=true\n\n",
    "POST /api/v1/namespaces/default/configmaps?dryRun=All&fieldValidation=Strict\ncontent-type: application/json\n\n\
     {\"apiVersion\": \"v1\", \"kind\": \"ConfigMap\", \"metadata\": {\"name\": \"x\"}, \"data\": {\"a\": \"b\"}}",
    "PATCH /apis/apps/v1/namespaces/default/deployments/x?fieldManager=a&force=true\n\
     content-type: application/apply-patch+yaml\n\n\
     {apiVersion: apps/v1, kind: Deployment, metadata: {name: x}, spec: {replicas: 2, selector: {matchLabels: {a: b}}}}",
    "PATCH /api/v1/namespaces/default\ncontent-type: application/json-patch+json\n\n\
     [{\"op\": \"add\", \"path\": \"/metadata/labels/a\", \"value\": \"b\"}, {\"op\": \"move\", \"from\": \"/a\", \"path\": \"\"}]",
    "DELETE /api/v1/namespaces/default?propagationPolicy=Foreground&gracePeriodSeconds=0\n\
     content-type: application/json\n\n{\"preconditions\": {\"uid\": \"1\"}}",
    "POST /apis/example.io/v1/namespaces/default/widgets?fieldValidation=Warn\ncontent-type: application/json\n\n\
     {\"apiVersion\": \"example.io/v1\", \"kind\": \"Widget\", \"metadata\": {\"name\": \"a\"}, \
     \"spec\": {\"name\": \"abc\", \"min\": 1, \"max\": 2, \"tags\": [\"a\", \"b\"]}}",
    "PATCH /apis/example.io/v1/namespaces/default/widgets/a?fieldManager=a\n\
     content-type: application/apply-patch+yaml\n\n\
     {apiVersion: example.io/v1, kind: Widget, metadata: {name: a}, spec: {min: 3, max: 2, tags: [a, a]}}",
    "POST /apis/apps/v1/namespaces/default/deployments?fieldValidation=Strict\ncontent-type: application/yaml\n\n\
     {apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, spec: {replicas: 2, \
     selector: {matchLabels: {app: web}}, strategy: {rollingUpdate: {maxSurge: 25%}}, template: \
     {metadata: {labels: {app: web}}, spec: {containers: [{name: a, image: a, ports: [{containerPort: 80}], \
     resources: {requests: {cpu: 100m}, limits: {cpu: 1}}}]}}}}",
    "POST /apis/autoscaling/v1/namespaces/default/horizontalpodautoscalers\ncontent-type: application/json\n\n\
     {\"apiVersion\": \"autoscaling/v1\", \"kind\": \"HorizontalPodAutoscaler\", \"metadata\": {\"name\": \"a\"}, \
     \"spec\": {\"maxReplicas\": 3, \"scaleTargetRef\": {\"kind\": \"Deployment\", \"name\": \"web\"}}}",
    "POST /apis/authorization.k8s.io/v1/selfsubjectaccessreviews\n\
     content-type: application/vnd.kubernetes.protobuf\n\nk8s\u{0}\n.\n\u{18}authorization.k8s.io/v1\u{12}\u{17}",
    "POST /apis/policy.karmada.io/v1alpha1/namespaces/default/propagationpolicies\ncontent-type: application/yaml\n\n\
     {apiVersion: policy.karmada.io/v1alpha1, kind: PropagationPolicy, metadata: {name: a}, spec: {resourceSelectors: \
     [{apiVersion: apps/v1, kind: Deployment}], placement: {clusterAffinity: {clusterNames: [m1]}, \
     spreadConstraints: [{spreadByField: region, minGroups: 2, maxGroups: 2}]}, failover: {cluster: {}}}}",
];

/// Definition of the custom resource that some requests concern.
const WIDGETS: &str = "apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.io}
spec:
  group: example.io
  scope: Namespaced
  names: {plural: widgets, kind: Widget}
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}, scale: {specReplicasPath: .spec.min, statusReplicasPath: .status.replicas}}
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            required: [min]
            x-kubernetes-validations:
            - {rule: '!has(self.max) || self.min <= self.max', message: min is above max}
            properties:
              name: {type: string, pattern: '^[a-z]([-a-z0-9]*[a-z0-9])?$', maxLength: 63, default: a}
              min: {type: integer, minimum: 0, x-kubernetes-validations: [{rule: self >= oldSelf}]}
              max: {type: integer}
              tags: {type: array, maxItems: 100, x-kubernetes-list-type: set, items: {type: string}}
              any: {type: object, x-kubernetes-preserve-unknown-fields: true}
";

/// Reviews for the webhook that admits objects: group, kind, object.
const ADMITTED: &str = r"
- {group: policy.karmada.io, kind: PropagationPolicy, object: {metadata: {name: a, namespace: default}, spec: {propagateDeps: true,
    resourceSelectors: [{apiVersion: apps/v1, kind: Deployment, labelSelector: {matchLabels: {a: b}}}],
    placement: {clusterAffinities: [{affinityName: a, clusterNames: [m1]}], clusterTolerations: [{operator: Exists}],
      replicaScheduling: {replicaSchedulingType: Divided, weightPreference: {staticWeightList: [{targetCluster: {clusterNames: [m1]}, weight: 1}]}}},
    failover: {application: {decisionConditions: {tolerationSeconds: 1}, gracePeriodSeconds: 1, purgeMode: Gracefully,
      statePreservation: {rules: [{aliasLabelName: a, jsonPath: '{.a}'}]}}}}}}
- {group: policy.karmada.io, kind: ClusterPropagationPolicy, object: {metadata: {name: a}, spec: {
    resourceSelectors: [{apiVersion: v1, kind: Namespace}], suspension: {dispatching: true}}}}
- {group: policy.karmada.io, kind: OverridePolicy, object: {metadata: {name: a, namespace: default}, spec: {
    overrideRules: [{targetCluster: {fieldSelector: {matchExpressions: [{key: region, operator: In, values: [a]}]}},
      overriders: {plaintext: [{path: /a, operator: add, value: 1}], imageOverrider: [{component: Tag, operator: replace,
        value: a}], labelsOverrider: [{operator: add, value: {a: b}}]}}]}}}
- {group: policy.karmada.io, kind: ClusterTaintPolicy, object: {metadata: {name: a}, spec: {targetClusters: {},
    addOnConditions: [{conditionType: Ready, operator: In, statusValues: ['False']}], taints: [{key: a, effect: NoSchedule}]}}}
- {group: work.karmada.io, kind: ResourceBinding, object: {metadata: {name: a, namespace: default}, spec: {
    resource: {apiVersion: apps/v1, kind: Deployment, name: a}, gracefulEvictionTasks: [{fromCluster: m1, reason: a, producer: a}]}}}
- {group: work.karmada.io, kind: Work, object: {metadata: {name: a, namespace: karmada-es-m1}, spec: {
    workload: {manifests: [{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}]}}}}
- {group: cluster.karmada.io, kind: Cluster, object: {metadata: {name: m1}, spec: {syncMode: Push, resourceModels: [
    {grade: 0, ranges: [{name: cpu, min: '0', max: '1'}]}], taints: [{key: a, effect: NoSchedule}]}}}
- {group: config.karmada.io, kind: ResourceInterpreterCustomization, object: {metadata: {name: a}, spec: {
    target: {apiVersion: apps/v1, kind: Deployment}, customizations: {healthInterpretation: {luaScript:
      'function InterpretHealth(o) return true end'}}}}}
- {group: config.karmada.io, kind: ResourceInterpreterWebhookConfiguration, object: {metadata: {name: a}, webhooks: [
    {name: a.example.io, clientConfig: {url: 'https://a.example.io/a'}, interpreterContextVersions: [v1alpha1],
      rules: [{operations: ['*'], apiGroups: [apps], apiVersions: [v1], kinds: [Deployment]}]}]}}
- {group: apps.karmada.io, kind: WorkloadRebalancer, object: {metadata: {name: a}, spec: {workloads: [
    {apiVersion: apps/v1, kind: Deployment, name: a, namespace: default}], ttlSecondsAfterFinished: 1}}}
- {group: bulkhead.dev, kind: Plugin, object: {metadata: {name: a}, spec: {lua: 'function InterpretHealth(o) end'}}}
- {group: bulkhead.dev, kind: PluginTrust, object: {metadata: {name: a}, spec: {rules: [{images: r.io, unsigned: true,
    kinds: [health], maxBudget: {steps: 1}, namespaces: [a]}], revoked: [{digest: 'sha256:0000000000000000000000000000000000000000000000000000000000000000', reason: a}]}}}
- {group: bulkhead.dev, kind: EvictionPause, object: {metadata: {name: a}, spec: {until: '2026-01-01T00:00:00Z'}}}
- {group: bulkhead.dev, kind: ClusterDrain, object: {metadata: {name: a}, spec: {clusterName: m1, perSecond: 0.5}}}
";

fn bytes(texts: &[&str]) -> Vec<Vec<u8>> {
    texts.iter().map(|text| text.as_bytes().to_vec()).collect()
}

#[test]
fn yaml_and_json_are_read_within_a_bound() {
    let inputs = [
        file("examples/nginx-divided/nginx.yaml"),
        file("examples/dependencies/web.yaml"),
        EXPORT.into(),
    ];
    reads("yaml", &inputs, TEXT_BYTES_MAX, bulkhead_fuzz::yaml);
}

#[test]
fn scenarios_are_read_within_a_bound() {
    let names =
        ["nginx-divided", "dependencies", "failback", "drain"].map(|name| format!("examples/{name}/scenario.yaml"));
    let path = root().join(&names[0]);
    reads("scenario", &names.map(|name| file(&name)), TEXT_BYTES_MAX, |input| {
        drop(scenario::parse(&path, &String::from_utf8_lossy(input)));
    });
}

/// Problems have the positions of their values, for which the text is parsed again.
#[test]
fn manifests_of_a_scenario_are_read_within_a_bound() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("scenario.yaml");
    let scenario = "name: a\nduration: 1m\nclusters: [{name: a}]\nmanifests: [{file: a.yaml, count: 2}]\n";
    let inputs = ["nginx-divided/nginx", "nginx-divided/policy", "dependencies/web"]
        .map(|name| file(&format!("examples/{name}.yaml")));
    reads("manifest", &inputs, TEXT_BYTES_MAX, |input| {
        fs::write(folder.path().join("a.yaml"), input).unwrap();
        drop(scenario::parse(&path, scenario));
    });
}

#[test]
fn lists_of_plugins_are_read_within_a_bound() {
    reads("plugins", &bytes(&[PLUGINS]), TEXT_BYTES_MAX, bulkhead_fuzz::plugins);
}

#[test]
fn exports_of_a_control_plane_are_read_within_a_bound() {
    let folder = tempfile::tempdir().unwrap();
    reads("export", &bytes(&[EXPORT]), TEXT_BYTES_MAX, |input| {
        fs::write(folder.path().join("export.yaml"), input).unwrap();
        drop(what_if::load(folder.path()));
    });
}

/// Runs an example and returns the only segment of its journal, with its file name.
fn recorded_segment() -> (String, Vec<u8>) {
    let scenario = scenario::load(&root().join("examples/nginx-duplicated/scenario.yaml")).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let recording = Recording::start(folder.path()).unwrap();
    let engines: Vec<Arc<dyn Engine>> = vec![
        Arc::new(LuaEngine::default()),
        Arc::new(WasmEngine::new(Default::default()).unwrap()),
    ];
    let detail = Detail::Highlights;
    let options = RunOptions {
        seed: None,
        engines,
        detail,
        explain: None,
        sink: Some(recording.sink()),
        progress: None,
        is_last: false,
    };
    simulation::run(&scenario, options).unwrap();
    recording.end().unwrap();
    let segments = segment::list(folder.path()).unwrap();
    let [(_, path)] = segments.as_slice() else {
        panic!("one segment, not {segments:?}")
    };
    (
        path.file_name().unwrap().to_string_lossy().into_owned(),
        fs::read(path).unwrap(),
    )
}

#[test]
fn segments_of_a_journal_are_read_and_replayed_within_a_bound() {
    let (name, segment) = alone(recorded_segment);
    let folder = tempfile::tempdir().unwrap();
    let replayer = Replayer::with_recorded_replies();
    reads("journal", &[segment], TEXT_BYTES_MAX, |input| {
        fs::write(folder.path().join(&name), input).unwrap();
        let Ok(contents) = bulkhead_journal::read(folder.path()) else {
            return;
        };
        for stored in contents.records.iter().take(20) {
            drop(explain(stored).text(None));
            if let Some(kept) = &stored.decision {
                drop(replayer.replay(0, kept));
            }
        }
    });
}

#[test]
fn scripts_are_loaded_within_a_bound() {
    let engine = alone(LuaEngine::default);
    assert_eq!(engine.kind(), EngineKind::Lua);
    reads("script", &bytes(&[SCRIPT]), SCRIPT_BYTES_MAX, |input| {
        load(&engine, input);
    });
}

#[test]
fn components_are_loaded_within_a_bound() {
    let inputs = ["deployment-health", "most-free"].map(|name| file(&format!("target/guests/{name}.wasm")));
    let engine = alone(|| WasmEngine::new(Default::default()).unwrap());
    reads("component", &inputs, COMPONENT_BYTES_MAX, |input| load(&engine, input));
}

/// Builds a request from its text: method and path, headers, an empty line, and the body.
fn request(input: &[u8]) -> Option<http::Request<kube::client::Body>> {
    let end = input.windows(2).position(|pair| pair == b"\n\n")?;
    let head = String::from_utf8_lossy(&input[..end]).into_owned();
    let mut lines = head.lines();
    let (method, path) = lines.next()?.split_once(' ')?;
    let mut request = http::Request::builder().method(method).uri(path);
    for (name, value) in lines.filter_map(|line| line.split_once(": ")) {
        request = request.header(name, value);
    }
    request.body(input[end + 2..].to_vec().into()).ok()
}

#[test]
fn requests_to_the_embedded_server_are_answered_within_a_bound() {
    reads("request", &bytes(&REQUESTS), TEXT_BYTES_MAX, |input| {
        let Some(request) = request(input) else { return };
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .unwrap();
        runtime.block_on(async {
            let server = for_people();
            let answer = async {
                let response = server.client().send(request).await.unwrap();
                assert_ne!(response.status(), http::StatusCode::INTERNAL_SERVER_ERROR);
                drop(response.into_body().collect().await);
            };
            // The clock is paused: a watch ends at once.
            drop(tokio::time::timeout(std::time::Duration::from_mins(1), answer).await);
        });
    });
}

/// Creates a control plane with everything that `run --embedded` offers to people, and one custom resource.
fn for_people() -> ApiServer {
    let clock = Clock::new("2026-01-01T00:00:00Z".parse().unwrap());
    let kubernetes = kinds::kubernetes().into_iter();
    let server = ApiServer::new(Options {
        kinds: kubernetes
            .chain(kinds::stored())
            .chain([kinds::definitions()])
            .collect(),
        admission: Some(Arc::new(InProcess(AdmissionOptions::default()))),
        fidelity: Fidelity::People,
        auto_create_namespaces: true,
        ..Options::new("host", 1, clock)
    });
    let kind = "CustomResourceDefinition";
    let id = server.kind_id("apiextensions.k8s.io/v1", kind).unwrap();
    let definition = serde_saphyr::from_str(WIDGETS).unwrap();
    server.store().create(id, "", definition).unwrap();
    server
}

/// Admits something in a control plane without other objects, where scripts are compiled.
fn in_environment<T>(admit: impl FnOnce(&mut AdmissionEnvironment<'_>) -> T) -> T {
    admit(&mut AdmissionEnvironment {
        ids: &mut || "1".to_owned(),
        now: Time::from_millis(0),
        others: &Vec::new,
    })
}

#[test]
fn objects_for_admission_are_answered_within_a_bound() {
    let reviews: Vec<Value> = serde_saphyr::from_str(ADMITTED).unwrap();
    for review in &reviews {
        let admitted = in_environment(|environment| bulkhead_fuzz::admit(review, Operation::Create, environment));
        let admitted = admitted.map_err(|denied| denied.to_string());
        assert_eq!(admitted, Ok(()), "{review}");
    }
    let bytes = |review: &Value| serde_json::to_vec(review).unwrap();
    let inputs: Vec<_> = reviews.iter().map(bytes).collect();
    reads("admission", &inputs, TEXT_BYTES_MAX, |input| {
        in_environment(|environment| bulkhead_fuzz::admissions(input, environment));
    });
}

#[test]
fn reviews_of_an_interpreter_are_answered_within_a_bound() {
    let reviews = serve::OPERATIONS.map(|operation| REVIEW.replace("\"OP\"", &format!("\"{operation}\"")).into_bytes());
    reads("review", &reviews, TEXT_BYTES_MAX, bulkhead_fuzz::review);
}
