use bulkhead_api::kinds::REGISTERED;
use bulkhead_apiserver::{ApiServer, Clock, Options, ResourceKind};
use bulkhead_controllers::flags::Flags;
use bulkhead_engine_lua::LuaEngine;
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};

use super::*;

const NOW: &str = "2026-01-01T00:01:00Z";
const FREEZE: &str = "function EvictionCheck(binding, task, observed, now)
  return { verdict = 'hold', reason = 'Frozen', message = 'a release goes out' }
end";

/// Creates a server that does not separate status subresources, so that a test can write a status at once.
fn hub() -> ApiServer {
    let kind = |info: &bulkhead_api::KindInfo| {
        let make = if info.namespaced {
            ResourceKind::namespaced
        } else {
            ResourceKind::cluster_scoped
        };
        make(info.group, info.version, info.kind, info.plural)
    };
    let (kinds, clock) = (REGISTERED.iter().map(kind).collect(), Clock::new(NOW.parse().unwrap()));
    ApiServer::new(Options {
        kinds,
        auto_create_namespaces: true,
        ..Options::new("hub", 1, clock)
    })
}

async fn create<K>(api: Api<K>, object: Value)
where
    K: kube::Resource<DynamicType = ()> + Clone + DeserializeOwned + Serialize + std::fmt::Debug,
{
    api.create(&Default::default(), &serde_json::from_value(object).unwrap())
        .await
        .unwrap();
}

/// Creates a federation in which a workload has left member1 and is healthy on member2.
async fn drained(hub: &ApiServer) {
    let client = hub.client();
    for name in ["member1", "member2"] {
        let ready =
            json!({"type": "Ready", "status": "True", "reason": "R", "message": "m", "lastTransitionTime": NOW});
        let (spec, status) = (json!({"syncMode": "Push"}), json!({"conditions": [ready]}));
        create(
            Api::<Cluster>::all(client.clone()),
            json!({"metadata": {"name": name}, "spec": spec, "status": status}),
        )
        .await;
    }
    let report = json!({"clusterName": "member2", "applied": true, "health": "Healthy",
        "status": {"replicas": 1, "readyReplicas": 1, "availableReplicas": 1}});
    let task = json!({"fromCluster": "member1", "reason": "Drained", "producer": "ClusterDrain",
        "creationTimestamp": "2026-01-01T00:00:30Z"});
    let placement = json!({"clusterAffinity": {"clusterNames": ["member1", "member2"]}});
    let resource = json!({"apiVersion": "apps/v1", "kind": "Deployment", "namespace": "default", "name": "nginx"});
    let binding = json!({
        "metadata": {"name": "nginx-deployment", "namespace": "default",
            "annotations": {"policy.karmada.io/applied-placement": placement.to_string()}},
        "spec": {"resource": resource, "replicas": 1, "placement": placement,
            "clusters": [{"name": "member2", "replicas": 1}], "gracefulEvictionTasks": [task]},
        "status": {"schedulerObservedGeneration": 1, "aggregatedStatus": [report]},
    });
    create(Api::<ResourceBinding>::namespaced(client, "default"), binding).await;
}

fn source(hub: &ApiServer) -> Source {
    let engines: Vec<std::sync::Arc<dyn bulkhead_plugin::Engine>> = vec![std::sync::Arc::new(LuaEngine::default())];
    let policies = Policies::load(&Flags::default(), engines, Default::default()).unwrap();
    Source::new(
        bulkhead_server::hub::in_time(hub.client(), bulkhead_server::hub::READ_TIME_MAX),
        None,
        policies,
    )
    .unwrap()
}

async fn waits_for(source: &Source) -> String {
    let view = source.look(NOW.parse().unwrap()).await.unwrap();
    assert_eq!(
        (view.tasks.len(), view.plugin_problems.as_slice()),
        (1, &[][..]),
        "{view:?}"
    );
    view.tasks[0].waits_for.clone()
}

#[tokio::test]
async fn a_task_that_a_plugin_holds_waits_for_that_plugin() {
    let hub = hub();
    drained(&hub).await;
    let source = source(&hub);
    assert_eq!(waits_for(&source).await, "may go now, by the plugins known here");
    let plugins: Api<Plugin> = Api::all(hub.client());
    create(
        plugins.clone(),
        json!({"metadata": {"name": "freeze"}, "spec": {"lua": FREEZE}}),
    )
    .await;
    assert_eq!(waits_for(&source).await, "Frozen: a release goes out (plugin freeze)");
    plugins.delete("freeze", &Default::default()).await.unwrap();
    assert_eq!(waits_for(&source).await, "may go now, by the plugins known here");
}

#[tokio::test]
async fn a_plugin_that_is_not_in_force_here_is_named() {
    let hub = hub();
    drained(&hub).await;
    create(
        Api::<Plugin>::all(hub.client()),
        json!({"metadata": {"name": "freeze"}, "spec": {"lua": "function"}}),
    )
    .await;
    let view = source(&hub).look(NOW.parse().unwrap()).await.unwrap();
    let message = super::super::show::text(&view, "https://hub");
    assert!(
        message.contains("plugin freeze is not active") && message.contains("answers of plugins are missing"),
        "{message}"
    );
}

#[tokio::test]
async fn a_binding_of_a_dependency_is_not_placed_independently() {
    let hub = hub();
    let resource = json!({"apiVersion": "v1", "kind": "ConfigMap", "namespace": "default", "name": "conf"});
    let binding = |name: &str, spec: Value| json!({"metadata": {"name": name, "namespace": "default"}, "spec": spec});
    let bindings: Api<ResourceBinding> = Api::namespaced(hub.client(), "default");
    let required_by = json!([{"namespace": "default", "name": "nginx-deployment", "clusters": [{"name": "member1"}]}]);
    create(
        bindings.clone(),
        binding(
            "conf-configmap",
            json!({"resource": resource, "requiredBy": required_by}),
        ),
    )
    .await;
    create(bindings, binding("lost-configmap", json!({"resource": resource}))).await;
    let view = source(&hub).look(NOW.parse().unwrap()).await.unwrap();
    assert_eq!(view.unplaced, ["default/lost-configmap"]);
}

#[tokio::test]
async fn a_report_that_outlives_its_copy_is_not_counted_as_healthy() {
    let hub = hub();
    drained(&hub).await;
    let bindings: Api<ResourceBinding> = Api::namespaced(hub.client(), "default");
    let healthy = |cluster: &str| json!({"clusterName": cluster, "applied": true, "health": "Healthy"});
    let status = json!({"status": {"aggregatedStatus": [healthy("member1"), healthy("member2")]}});
    let (name, parameters) = ("nginx-deployment", PatchParams::default());
    bindings.patch(name, &parameters, &Patch::Merge(status)).await.unwrap();
    let source = source(&hub);
    let counts = async || {
        let view = source.look(NOW.parse().unwrap()).await.unwrap();
        let rows = view.clusters.iter();
        rows.map(|row| (row.bindings, row.leaving, row.healthy))
            .collect::<Vec<_>>()
    };
    assert_eq!(counts().await, [(0, 1, 1), (1, 0, 1)], "a leaving copy is there");
    let ended = json!({"spec": {"gracefulEvictionTasks": null}});
    bindings.patch(name, &parameters, &Patch::Merge(ended)).await.unwrap();
    assert_eq!(counts().await, [(0, 0, 0), (1, 0, 1)]);
}

#[tokio::test(start_paused = true)]
async fn an_api_that_does_not_answer_is_named() {
    let hub = hub();
    drained(&hub).await;
    let source = source(&hub);
    let later = tokio::time::Instant::now() + std::time::Duration::from_hours(1);
    hub.inject(bulkhead_apiserver::Fault::HoldUntil(later), |request| {
        request.plural == "clusters"
    });
    let message = crate::exit::error_text(&source.look(NOW.parse().unwrap()).await.map(drop).unwrap_err());
    assert!(message.contains("reading clusters: "), "{message}");
    assert!(
        message.contains("GET /apis/cluster.karmada.io/v1alpha1/clusters: no answer within 10s"),
        "{message}"
    );
}

#[tokio::test(start_paused = true)]
async fn every_api_that_does_not_answer_is_named() {
    let hub = hub();
    drained(&hub).await;
    let source = source(&hub);
    let hour = std::time::Duration::from_hours(1);
    let hold = bulkhead_apiserver::Fault::HoldUntil(tokio::time::Instant::now() + hour);
    hub.inject_for(hour, hold, |request| {
        ["clusters", "resourcebindings"].contains(&request.plural.as_str())
    });
    let message = crate::exit::error_text(&source.look(NOW.parse().unwrap()).await.map(drop).unwrap_err());
    for part in [
        "reading clusters: ",
        "v1alpha1/clusters: no",
        "reading resourcebindings: ",
        "resourcebindings: no",
    ] {
        assert!(message.contains(part), "{part}: {message}");
    }
}

#[tokio::test(start_paused = true)]
async fn pauses_that_cannot_be_read_are_not_shown_as_none() {
    let hub = hub();
    drained(&hub).await;
    let source = source(&hub);
    let later = tokio::time::Instant::now() + std::time::Duration::from_hours(1);
    hub.inject(bulkhead_apiserver::Fault::HoldUntil(later), |request| {
        request.plural == "evictionpauses"
    });
    let view = source.look(NOW.parse().unwrap()).await.unwrap();
    assert_eq!((view.clusters.len(), view.tasks.len()), (2, 1));
    let text = super::super::show::text(&view, "https://hub");
    assert!(
        text.contains("/evictionpauses: no answer within 10s; pauses are missing below"),
        "{text}"
    );
}

#[tokio::test]
async fn the_length_of_the_queue_is_read_from_the_metrics() {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    let hub = hub();
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let policies = Policies::load(&Flags::default(), Vec::new(), Default::default()).unwrap();
    let source = Source::new(hub.client(), Some(&format!("http://{address}/metrics")), policies).unwrap();
    let serving = async {
        let (mut stream, _) = listener.accept().await.unwrap();
        let (mut request, mut buffer) = (Vec::new(), [0; 1024]);
        while !request.ends_with(b"\r\n\r\n") {
            let read = stream.read(&mut buffer).await.unwrap();
            assert!(read > 0, "the request is cut off");
            request.extend_from_slice(&buffer[..read]);
        }
        let text = "eviction_queue_depth{name=\"a\"} 3\neviction_queue_depth{name=\"b\"} 4\n# EOF\n";
        let head = format!(
            "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: {}\r\n\r\n",
            text.len()
        );
        stream.write_all(format!("{head}{text}").as_bytes()).await.unwrap();
        String::from_utf8(request).unwrap()
    };
    let (view, request) = tokio::join!(source.look(NOW.parse().unwrap()), serving);
    let view = view.unwrap();
    assert_eq!((view.queue_depth, view.metrics_problem), (Some(7), None));
    assert!(request.starts_with("GET /metrics HTTP/1.1\r\n"), "{request}");
}
