//! Watches, resumption, and kube's watcher and reflector on top.

use std::pin::pin;
use std::time::Duration;

use bulkhead_apiserver::{LinkState, Options};
use futures::{StreamExt, TryStreamExt};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, WatchEvent, WatchParams};
use kube::runtime::{WatchStreamExt, reflector, watcher};
use kube::{Client, ResourceExt};
use serde_json::json;

use crate::support::*;

fn shown(event: &WatchEvent<ConfigMap>) -> String {
    match event {
        WatchEvent::Added(object) => format!("added {}", object.name_any()),
        WatchEvent::Modified(object) => format!("modified {}", object.name_any()),
        WatchEvent::Deleted(object) => format!("deleted {}", object.name_any()),
        WatchEvent::Bookmark(_) => "bookmark".to_owned(),
        WatchEvent::Error(status) => format!("error {}", status.code),
    }
}

async fn events(api: &Api<ConfigMap>, params: WatchParams, version: &str) -> Vec<String> {
    let stream = api.watch(&params.timeout(5), version).await.unwrap();
    stream.map_ok(|event| shown(&event)).try_collect().await.unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_watch_resumes_after_the_version_it_names() {
    let server = server();
    let api = configmaps(&server);
    create_configmap(&server, "a", "1").await;
    let second = create_configmap(&server, "b", "1").await.resource_version().unwrap();
    create_configmap(&server, "c", "1").await;
    api.delete("a", &DeleteParams::default()).await.unwrap();
    let started = tokio::time::Instant::now();
    let seen = events(&api, WatchParams::default(), &second).await;
    assert_eq!(seen, ["added c", "deleted a", "bookmark"]);
    assert_eq!(started.elapsed(), Duration::from_secs(5));
    let present = events(&api, WatchParams::default(), "0").await;
    assert_eq!(present, ["added b", "added c", "bookmark"]);
}

#[tokio::test(start_paused = true)]
async fn a_watch_ends_in_time_although_events_keep_coming() {
    let server = server();
    let api = configmaps(&server);
    let mut stream = pin!(api.watch(&WatchParams::default().timeout(5), "0").await.unwrap());
    let (started, mut seen) = (tokio::time::Instant::now(), Vec::new());
    for number in 0..20 {
        create_configmap(&server, &format!("c{number}"), "1").await;
        tokio::time::advance(Duration::from_secs(1)).await;
        let Some(event) = stream.try_next().await.unwrap() else {
            break;
        };
        seen.push(shown(&event));
    }
    assert_eq!(started.elapsed(), Duration::from_secs(6));
    assert_eq!(seen, ["added c0", "added c1", "added c2", "added c3", "bookmark"]);
}

#[tokio::test(start_paused = true)]
async fn a_watch_ends_in_time_while_it_is_paused() {
    let server = server();
    server.delay_watches(server.kind_id("v1", "ConfigMap").unwrap(), Duration::from_mins(1));
    let started = tokio::time::Instant::now();
    assert_eq!(
        events(&configmaps(&server), WatchParams::default(), "0").await,
        ["bookmark"]
    );
    assert_eq!(started.elapsed(), Duration::from_secs(5));
}

#[tokio::test(start_paused = true)]
async fn a_timeout_of_zero_is_no_timeout() {
    let server = server();
    let api = configmaps(&server);
    let mut stream = pin!(api.watch(&WatchParams::default().timeout(0), "0").await.unwrap());
    create_configmap(&server, "c", "1").await;
    let event = stream.try_next().await.unwrap().unwrap();
    assert_eq!(shown(&event), "added c");
}

#[tokio::test(start_paused = true)]
async fn a_timeout_beyond_the_clock_is_no_timeout() {
    let server = server();
    let path = format!("/api/v1/configmaps?watch=true&timeoutSeconds={}", u64::MAX);
    let request = http::Request::get(path).body(kube::client::Body::empty()).unwrap();
    assert_eq!(
        server.client().send(request).await.unwrap().status(),
        http::StatusCode::OK
    );
}

#[tokio::test(start_paused = true)]
async fn an_object_that_starts_or_stops_matching_comes_and_goes() {
    let server = server();
    let api = configmaps(&server);
    let start = create_configmap(&server, "a", "1").await.resource_version().unwrap();
    for labels in [json!({"x": "1"}), json!({"x": "1", "y": "1"}), json!({"x": null})] {
        let patch = Patch::Merge(json!({"metadata": {"labels": labels}}));
        api.patch("a", &PatchParams::default(), &patch).await.unwrap();
    }
    api.delete("a", &DeleteParams::default()).await.unwrap();
    let seen = events(&api, WatchParams::default().labels("x=1"), &start).await;
    assert_eq!(seen, ["added a", "modified a", "deleted a", "bookmark"]);
}

#[tokio::test(start_paused = true)]
async fn a_version_older_than_the_history_is_gone() {
    let server = server_with(Options {
        watch_history_events_max: 3,
        ..options()
    });
    let api = configmaps(&server);
    let first = create_configmap(&server, "a", "1").await.resource_version().unwrap();
    let page = api.list(&ListParams::default().limit(1)).await.unwrap();
    create_configmap(&server, "b", "1").await;
    let slow = api.watch(&WatchParams::default(), &first).await.unwrap();
    let token = api
        .list(&ListParams::default().limit(1))
        .await
        .unwrap()
        .metadata
        .continue_
        .unwrap();
    for name in ["c", "d", "e", "f", "g"] {
        create_configmap(&server, name, "1").await;
    }
    assert_eq!(page.metadata.continue_, None);
    assert_eq!(
        refusal(api.watch(&WatchParams::default(), &first).await.map(|_| ())),
        (410, "Expired".to_owned())
    );
    let continued = ListParams::default().limit(1).continue_token(&token);
    assert_eq!(refusal(api.list(&continued).await).0, 410);
    let seen: Vec<String> = slow.map_ok(|event| shown(&event)).try_collect().await.unwrap();
    assert_eq!(seen, ["error 410"]);
    assert_eq!(
        refusal(api.watch(&WatchParams::default(), "9999").await.map(|_| ())).0,
        504
    );
}

#[tokio::test(start_paused = true)]
async fn a_watcher_reads_pages_or_a_streaming_list() {
    let server = server();
    for name in ["a", "b", "c"] {
        create_configmap(&server, name, "1").await;
    }
    for config in [
        watcher::Config::default().page_size(2),
        watcher::Config::default().streaming_lists(),
    ] {
        let mut stream = pin!(watcher(configmaps(&server), config));
        let mut seen = Vec::new();
        loop {
            match stream.try_next().await.unwrap().unwrap() {
                watcher::Event::InitApply(object) => seen.push(object.name_any()),
                watcher::Event::InitDone => break,
                _ => {}
            }
        }
        assert_eq!(seen, ["a", "b", "c"]);
    }
}

fn reflect(client: Client) -> (reflector::Store<ConfigMap>, tokio::task::JoinHandle<()>) {
    let (reader, writer) = reflector::store();
    let api: Api<ConfigMap> = Api::all(client);
    let stream = reflector(writer, watcher(api, watcher::Config::default()).default_backoff());
    let task = tokio::spawn(async move { stream.for_each(|_| async {}).await });
    (reader, task)
}

fn names(store: &reflector::Store<ConfigMap>) -> Vec<String> {
    let mut names: Vec<String> = store.state().iter().map(|object| object.name_any()).collect();
    names.sort();
    names
}

#[tokio::test(start_paused = true)]
async fn a_reflector_catches_up_after_its_link_was_down() {
    let server = server();
    let link = bulkhead_apiserver::Link::new();
    let (store, task) = reflect(server.client_through(link.clone()));
    create_configmap(&server, "a", "1").await;
    create_configmap(&server, "b", "1").await;
    store.wait_until_ready().await.unwrap();
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(names(&store), ["a", "b"]);

    link.set(LinkState::Down);
    create_configmap(&server, "c", "1").await;
    configmaps(&server).delete("a", &DeleteParams::default()).await.unwrap();
    tokio::time::sleep(Duration::from_mins(2)).await;
    assert_eq!(names(&store), ["a", "b"]);

    link.set(LinkState::Up);
    tokio::time::sleep(Duration::from_mins(2)).await;
    assert_eq!(names(&store), ["b", "c"]);
    task.abort();
}

#[tokio::test(start_paused = true)]
async fn a_reflector_follows_a_day_of_watches_that_time_out() {
    let server = server();
    let (store, task) = reflect(server.client());
    store.wait_until_ready().await.unwrap();
    for hour in 0..24 {
        create_configmap(&server, &format!("h{hour}"), "1").await;
        tokio::time::sleep(Duration::from_hours(1)).await;
    }
    assert_eq!(store.len(), 24);
    assert_eq!(server.requests()["list configmaps"], 1);
    task.abort();
}
