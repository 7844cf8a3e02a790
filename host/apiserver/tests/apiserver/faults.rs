//! Slow and broken links, injected faults, readiness.

use std::time::Duration;

use bulkhead_apiserver::{Fault, Link, LinkState, ReadyState, Verb};
use futures::TryStreamExt;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, ListParams, PostParams, WatchParams};

use crate::support::*;

#[tokio::test(start_paused = true)]
async fn a_link_that_is_down_refuses_at_once_and_breaks_watches() {
    let server = server();
    let link = Link::new();
    let api: Api<ConfigMap> = Api::default_namespaced(server.client_through(link.clone()));
    let mut watch = Box::pin(api.watch(&WatchParams::default(), "0").await.unwrap());
    // The connection is lost even if the link is up again before the watch is polled.
    link.set(LinkState::Down);
    link.set(LinkState::Up);
    assert!(watch.try_next().await.is_err());

    link.set(LinkState::Down);
    let started = tokio::time::Instant::now();
    let error = api.get("a").await.unwrap_err();
    assert!(matches!(error, kube::Error::Service(_)), "{error:?}");
    assert_eq!(started.elapsed(), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn a_slow_link_delays_requests() {
    let server = server();
    let link = Link::new();
    let api: Api<ConfigMap> = Api::default_namespaced(server.client_through(link.clone()));
    link.set(LinkState::Slow(Duration::from_millis(700)));
    let started = tokio::time::Instant::now();
    assert_eq!(refusal(api.get("a").await).0, 404);
    assert_eq!(started.elapsed(), Duration::from_millis(700));
}

#[tokio::test(start_paused = true)]
async fn an_injected_fault_strikes_once() {
    let server = server();
    let api = configmaps(&server);
    for code in [409, 410, 429, 500] {
        server.inject(Fault::Respond(code), |request| request.verb == Verb::Get);
    }
    for code in [409, 410, 429, 500] {
        assert_eq!(refusal(api.get("a").await).0, code);
    }
    assert_eq!(refusal(api.get("a").await).0, 404);

    server.inject(Fault::LoseReply, |request| request.verb == Verb::Create);
    let lost = api.create(&PostParams::default(), &configmap("a", "1")).await;
    assert!(matches!(lost, Err(kube::Error::Service(_))), "{lost:?}");
    assert!(api.get("a").await.is_ok(), "the request was carried out");

    server.inject(Fault::Refuse, |request| request.plural == "configmaps");
    assert!(api.get("a").await.is_err());
    assert_eq!(server.pending_fault_count(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_request_that_is_held_is_carried_out_at_its_moment() {
    let server = server();
    let (api, started) = (configmaps(&server), tokio::time::Instant::now());
    let seconds = Duration::from_secs;
    let hold = Fault::HoldUntil(started + seconds(5));
    server.inject_for(seconds(5), hold, |request| request.verb == Verb::List);
    let lists = async {
        tokio::time::sleep(seconds(2)).await;
        let found = api.list(&ListParams::default()).await.unwrap();
        (found.items.len(), started.elapsed())
    };
    let creates = async {
        tokio::time::sleep(seconds(4)).await;
        api.create(&PostParams::default(), &configmap("a", "1")).await.unwrap();
        started.elapsed()
    };
    assert_eq!(futures::join!(lists, creates), ((1, seconds(5)), seconds(4)));
    assert_eq!(api.list(&ListParams::default()).await.unwrap().items.len(), 1);
    assert_eq!((started.elapsed(), server.pending_fault_count()), (seconds(5), 0));
}

#[tokio::test(start_paused = true)]
async fn dropped_watches_end_with_an_error() {
    let server = server();
    let api = configmaps(&server);
    let mut watch = Box::pin(api.watch(&WatchParams::default(), "0").await.unwrap());
    server.drop_watches(server.kind_id("v1", "ConfigMap").unwrap());
    assert!(watch.try_next().await.is_err());
    assert!(watch.try_next().await.unwrap().is_none());
}

#[tokio::test(start_paused = true)]
async fn readiness_can_be_switched_off() {
    let server = server();
    let probe = |path: &'static str| {
        let client = server.client();
        async move {
            client
                .request_text(http::Request::get(path).body(Vec::new()).unwrap())
                .await
        }
    };
    assert_eq!(probe("/readyz").await.unwrap(), "ok");
    server.set_ready(ReadyState::Failing(500));
    assert!(probe("/readyz").await.is_err());
    assert!(probe("/healthz").await.is_err());
    assert_eq!(probe("/livez").await.unwrap(), "ok");
}
