//! The commands on an in-process control plane.

use bulkhead_controlplane::{ApiServer, Clock, Options, ResourceKind, kinds};
use bulkhead_core::model::{ClusterDrainSpec, Taint};

use super::*;

/// Creates a control plane with the clusters member1 and member2 and the namespace shop.
async fn control_plane() -> Pauses {
    let kind = |info: &bulkhead_api::KindInfo| {
        ResourceKind::cluster_scoped(info.group, info.version, info.kind, info.plural).with_status()
    };
    let wanted = ["Cluster", "ClusterDrain", "EvictionPause"];
    let ours = bulkhead_api::kinds::REGISTERED.iter().filter(|info| wanted.contains(&info.kind)).map(kind);
    let clock = Clock::new(Time::from_millis(0).timestamp());
    let kinds = kinds::kubernetes().into_iter().chain(ours).collect();
    let server = ApiServer::new(Options { kinds, ..Options::new("hub", 1, clock) });
    let pauses = Pauses::new(&server.client());
    for name in ["member1", "member2"] {
        let cluster = Cluster::new(name, Default::default());
        pauses.clusters.create(&PostParams::default(), &cluster).await.unwrap();
    }
    let shop = serde_json::from_value(json!({"metadata": {"name": "shop"}})).unwrap();
    pauses.namespaces.create(&PostParams::default(), &shop).await.unwrap();
    pauses
}

fn scope(clusters: &[&str], namespaces: &[&str], name: Option<&str>) -> ScopeArguments {
    let owned = |list: &[&str]| list.iter().map(|&item| item.to_owned()).collect();
    ScopeArguments { clusters: owned(clusters), namespaces: owned(namespaces), name: name.map(str::to_owned) }
}

async fn start(pauses: &Pauses, scope: &ScopeArguments, reason: Option<&str>) -> anyhow::Result<EvictionPause> {
    pauses.start(&scope.name(), scope.spec(), reason).await
}

async fn names(pauses: &Pauses) -> Vec<String> {
    let listed = pauses.pauses.list(&ListParams::default()).await.unwrap();
    listed.iter().map(ResourceExt::name_any).collect()
}

fn error<T: std::fmt::Debug>(outcome: anyhow::Result<T>) -> String {
    format!("{:#}", outcome.unwrap_err())
}

fn at(millis: i64) -> Time {
    Time::from_millis(millis)
}

#[test]
fn the_name_of_a_pause_follows_from_its_scope() {
    let check = |scope: &ScopeArguments, expected: &str| assert_eq!(scope.name(), expected);
    check(&scope(&[], &[], None), "all-evictions");
    check(&scope(&["b", "a", "b"], &[], None), "cluster-a-b");
    check(&scope(&[], &["shop"], None), "namespace-shop");
    check(&scope(&["a"], &["shop"], None), "cluster-a-namespace-shop");
    check(&scope(&["a"], &[], Some("quarter-end")), "quarter-end");
}

#[test]
fn the_end_of_a_pause_is_a_time_or_a_duration_and_lies_ahead() {
    let hour = Some(GoDuration::from_secs(3600));
    assert_eq!(end(None, None, at(0)).unwrap(), None);
    assert_eq!(end(hour, None, at(500)).unwrap(), Some(at(3_600_000)));
    assert_eq!(end(None, Some(at(9_000)), at(0)).unwrap(), Some(at(9_000)));
    assert!(error(end(None, Some(at(9_000)), at(9_000))).contains("has passed"));
    assert_eq!(parse_time("1970-01-01T00:00:09Z"), Ok(at(9_000)));
    for wrong in ["", "tomorrow", "1970-01-01", "09:00"] {
        assert!(parse_time(wrong).is_err(), "{wrong:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_pause_is_made_once_and_the_same_command_changes_its_end_and_reason() {
    let pauses = control_plane().await;
    let all = scope(&[], &[], None);
    let made = start(&pauses, &all, Some("incident 4711")).await.unwrap();
    let held = "EvictionPause all-evictions holds all evictions until it is deleted (reason: incident 4711)";
    assert_eq!(describe(&made), held);
    let again = start(&pauses, &all, None).await.unwrap();
    assert_eq!(again.metadata.resource_version, made.metadata.resource_version, "the same command writes nothing");
    let wanted = EvictionPauseSpec { until: Some(at(60_000)), ..all.spec() };
    let limited = pauses.start(&all.name(), wanted, None).await.unwrap();
    let expected = EvictionPauseSpec { until: Some(at(60_000)), reason: "incident 4711".into(), ..all.spec() };
    assert_eq!(limited.spec, expected);
    let endless = start(&pauses, &all, Some("longer")).await.unwrap();
    assert_eq!((endless.spec.until, endless.spec.reason.as_str()), (None, "longer"));
    assert_eq!(endless.metadata.uid, made.metadata.uid);
}

#[tokio::test(start_paused = true)]
async fn a_pause_of_something_that_does_not_exist_is_refused() {
    let pauses = control_plane().await;
    let refused = error(start(&pauses, &scope(&["membre1"], &[], None), None).await);
    assert_eq!(refused, "there is no member cluster membre1; there are: member1, member2");
    let refused = error(start(&pauses, &scope(&[], &["shpo"], None), None).await);
    assert_eq!(refused, "there is no namespace shpo on the control plane");
    assert_eq!(names(&pauses).await, [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn a_name_that_another_scope_has_is_refused() {
    let pauses = control_plane().await;
    start(&pauses, &scope(&["member1"], &[], Some("incident")), None).await.unwrap();
    let refused = error(start(&pauses, &scope(&[], &["shop"], Some("incident")), None).await);
    let expected =
        "EvictionPause incident holds evictions from member1, not evictions of namespace shop; choose another --name";
    assert_eq!(refused, expected);
    let refused = error(pauses.end(Some(&scope(&["member2"], &[], Some("incident"))), at(0)).await);
    assert!(refused.starts_with("EvictionPause incident holds evictions from member1, not"), "{refused}");
    assert_eq!(names(&pauses).await, ["incident"]);
}

#[tokio::test(start_paused = true)]
async fn a_dry_run_changes_nothing() {
    let pauses = control_plane().await;
    let dry = Pauses { dry_run: true, ..control_plane().await };
    let all = scope(&[], &[], None);
    let shown = start(&dry, &all, Some("a test")).await.unwrap();
    assert!(dry.started(&shown).await.starts_with("dry run: EvictionPause all-evictions holds all evictions"));
    assert_eq!(names(&dry).await, [""; 0]);

    start(&pauses, &all, None).await.unwrap();
    let dry = Pauses { dry_run: true, ..pauses };
    let shown = dry.end(Some(&all), at(0)).await.unwrap();
    assert!(shown.starts_with("dry run: would delete EvictionPause all-evictions"), "{shown}");
    assert_eq!(names(&dry).await, ["all-evictions"]);
}

#[tokio::test(start_paused = true)]
async fn both_commands_name_the_drains_and_taints_of_their_scope() {
    let pauses = control_plane().await;
    for name in ["member1", "member2"] {
        let spec = ClusterDrainSpec { cluster_name: name.to_owned(), evictions_per_second: None };
        pauses.drains.create(&PostParams::default(), &ClusterDrain::new(name, spec)).await.unwrap();
    }
    let status = Patch::Merge(json!({"status": {"phase": "Draining", "bindingsLeft": 3}}));
    pauses.drains.patch_status("member1", &PatchParams::default(), &status).await.unwrap();
    let taint = |key: &str, effect| Taint { key: key.to_owned(), value: String::new(), effect, time_added: None };
    let taints = [
        taint(DRAIN_TAINT, TaintEffect::NoExecute),
        taint("zone-down", TaintEffect::NoExecute),
        taint("full", TaintEffect::NoSchedule),
    ];
    let tainted = Patch::Merge(json!({"spec": {"taints": taints}}));
    pauses.clusters.patch("member1", &PatchParams::default(), &tainted).await.unwrap();

    let scope = scope(&["member1"], &[], None);
    let pause = start(&pauses, &scope, None).await.unwrap();
    let summary = pauses.started(&pause).await;
    let expected = "EvictionPause cluster-member1 holds evictions from member1 until it is deleted\n  \
                    held: drain of member1 (3 bindings left)\n  held: taint zone-down:NoExecute of member1\n  \
                    not held: old copies of earlier evictions, which leave when their replacements are healthy\n  \
                    to continue: bulkhead resume --name cluster-member1";
    assert_eq!(summary, expected);
    let summary = pauses.end(Some(&scope), at(0)).await.unwrap();
    let expected = "deleted EvictionPause cluster-member1, which held evictions from member1\n  \
                    can evict now: drain of member1 (3 bindings left)\n  \
                    can evict now: taint zone-down:NoExecute of member1";
    assert_eq!(summary, expected);
    assert_eq!(names(&pauses).await, [""; 0]);
    let narrow = ScopeArguments { namespaces: vec!["shop".to_owned()], ..scope };
    let pause = start(&pauses, &narrow, None).await.unwrap();
    let summary = pauses.started(&pause).await;
    assert!(summary.contains("held for its workloads: drain of member1 (3 bindings left)"), "{summary}");
}

#[tokio::test(start_paused = true)]
async fn a_resume_names_the_pauses_that_are_left_in_force() {
    let pauses = control_plane().await;
    start(&pauses, &scope(&[], &[], None), None).await.unwrap();
    start(&pauses, &scope(&[], &["shop"], None), Some("quarter-end")).await.unwrap();
    let over = EvictionPauseSpec { until: Some(at(1_000)), ..EvictionPauseSpec::default() };
    pauses.start("over", over, None).await.unwrap();
    let summary = pauses.end(Some(&scope(&[], &[], None)), at(2_000)).await.unwrap();
    let left = "still in force: EvictionPause namespace-shop holds evictions of namespace shop until it is deleted \
                (reason: quarter-end)";
    assert!(summary.ends_with(left) && !summary.contains("EvictionPause over"), "{summary}");
    assert!(!summary.contains("can evict now"), "{summary}");
    let missing = error(pauses.end(Some(&scope(&[], &[], None)), at(2_000)).await);
    assert_eq!(missing, "there is no EvictionPause all-evictions; there are: namespace-shop, over");
    let summary = pauses.end(None, at(2_000)).await.unwrap();
    assert!(summary.contains("EvictionPause namespace-shop,") && summary.contains("EvictionPause over,"), "{summary}");
    assert_eq!(error(pauses.end(None, at(2_000)).await), "there is no EvictionPause; there are: none");
}
