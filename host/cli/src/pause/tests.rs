//! The commands on an in-process control plane.

use bulkhead_apiserver::{ApiServer, Clock, Options, ResourceKind, kinds};
use bulkhead_core::model::{ClusterDrainSpec, Taint};

use super::scope::NAME_BYTES_MAX;
use super::*;

/// Creates a control plane with the clusters member1 and member2 and the namespace shop.
async fn control_plane() -> Pauses {
    let kind = |info: &bulkhead_api::KindInfo| {
        ResourceKind::cluster_scoped(info.group, info.version, info.kind, info.plural).with_status()
    };
    let wanted = ["Cluster", "ClusterDrain", "EvictionPause"];
    let ours = bulkhead_api::kinds::REGISTERED
        .iter()
        .filter(|info| wanted.contains(&info.kind))
        .map(kind);
    let clock = Clock::new(Time::from_millis(0).timestamp());
    let kinds = kinds::kubernetes().into_iter().chain(ours).collect();
    let server = ApiServer::new(Options {
        kinds,
        ..Options::new("hub", 1, clock)
    });
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
    ScopeArguments {
        clusters: owned(clusters),
        namespaces: owned(namespaces),
        name: name.map(str::to_owned),
    }
}

async fn start(pauses: &Pauses, scope: &ScopeArguments, reason: Option<&str>) -> anyhow::Result<EvictionPause> {
    Ok(start_at(pauses, scope, None, reason, at(0)).await?.0)
}

/// Runs the command at a time, with an end.
async fn start_at(
    pauses: &Pauses,
    scope: &ScopeArguments,
    end: Option<End>,
    reason: Option<&str>,
    now: Time,
) -> anyhow::Result<(EvictionPause, Change)> {
    pauses
        .start(
            Wanted {
                name: &scope.name(),
                scope: scope.spec(),
                end,
                reason,
            },
            now,
        )
        .await
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
    assert_eq!(end(hour, None, at(500)).unwrap(), Some(End::At(at(3_600_000))));
    assert_eq!(
        end(None, Some(End::At(at(9_000))), at(0)).unwrap(),
        Some(End::At(at(9_000)))
    );
    assert_eq!(end(None, Some(End::Never), at(0)).unwrap(), Some(End::Never));
    assert!(error(end(None, Some(End::At(at(9_000))), at(9_000))).contains("has passed"));
    assert_eq!(parse_end("1970-01-01T00:00:09Z"), Ok(End::At(at(9_000))));
    assert_eq!(parse_end("never"), Ok(End::Never));
    for wrong in ["", "tomorrow", "1970-01-01", "09:00", "Never"] {
        assert!(parse_end(wrong).is_err(), "{wrong:?}");
    }
}

#[test]
fn a_name_that_no_object_can_have_is_refused_with_a_remedy() {
    for right in ["all-evictions", "a", "quarter-end.2026", &"a".repeat(NAME_BYTES_MAX)] {
        check_name(right).unwrap();
    }
    for wrong in ["", "-a", "a-", "a..b", "A", "a_b", "a/b", "é"] {
        let refused = error(check_name(wrong));
        assert!(refused.ends_with("choose one with --name"), "{wrong:?}: {refused}");
    }
    // Thirty clusters with long names.
    let clusters: Vec<_> = (0..30).map(|number| format!("{}{number:02}", "c".repeat(46))).collect();
    let clusters: Vec<_> = clusters.iter().map(String::as_str).collect();
    let refused = error(check_name(&scope(&clusters, &[], None).name()));
    let expected = "the name of the EvictionPause, cluster-cccccccccccccccccccccccccccccccc…, has 1477 bytes, and at \
                    most 253 are allowed; choose a shorter one with --name, for `bulkhead resume` too";
    assert_eq!(refused, expected);
}

#[tokio::test(start_paused = true)]
async fn a_pause_is_made_once_and_the_same_command_changes_its_end_and_reason() {
    let pauses = control_plane().await;
    let all = scope(&[], &[], None);
    let made = start(&pauses, &all, Some("incident 4711")).await.unwrap();
    let held = "EvictionPause all-evictions holds all evictions until it is deleted (reason: incident 4711)";
    assert_eq!(describe(&made), held);
    let again = start(&pauses, &all, None).await.unwrap();
    assert_eq!(
        again.metadata.resource_version, made.metadata.resource_version,
        "the same command writes nothing"
    );
    let (limited, _) = start_at(&pauses, &all, Some(End::At(at(60_000))), None, at(0))
        .await
        .unwrap();
    let expected = EvictionPauseSpec {
        until: Some(at(60_000)),
        reason: "incident 4711".into(),
        ..all.spec()
    };
    assert_eq!(limited.spec, expected);
    // A new reason leaves the end alone.
    let (kept, change) = start_at(&pauses, &all, None, Some("longer"), at(59_000)).await.unwrap();
    assert_eq!(
        (kept.spec.until, kept.spec.reason.as_str(), change),
        (Some(at(60_000)), "longer", Change::KeptEnd)
    );
    let summary = pauses.started(&kept, change).await;
    let unchanged = "until 1970-01-01T00:01:00Z (reason: longer)\n  its end is unchanged; --for or --until changes it";
    assert!(summary.contains(unchanged), "{summary}");
    let (endless, change) = start_at(&pauses, &all, Some(End::Never), None, at(59_000))
        .await
        .unwrap();
    assert_eq!(
        (endless.spec.until, endless.spec.reason.as_str(), change),
        (None, "longer", Change::Continued)
    );
    assert_eq!(endless.metadata.uid, made.metadata.uid);
}

#[tokio::test(start_paused = true)]
async fn two_commands_at_once_do_not_overwrite_each_other() {
    let pauses = control_plane().await;
    let all = scope(&[], &[], None);
    start(&pauses, &all, None).await.unwrap();
    // The other command acts when this one has read the pause, or its absence.
    let client = pauses.pauses.clone().into_client();
    let other = |method: http::Method| {
        let server = client.clone();
        let service = tower::service_fn(move |request: http::Request<kube::client::Body>| {
            let (server, is_write) = (server.clone(), *request.method() == method);
            async move {
                if is_write {
                    let other = Pauses::new(&server);
                    let end = Some(End::At(at(90_000)));
                    start_at(&other, &scope(&[], &[], None), end, None, at(0))
                        .await
                        .unwrap();
                }
                Ok::<_, tower::BoxError>(server.send(request).await?)
            }
        });
        Pauses::new(&Client::new(service, "default"))
    };
    let refused = error(start(&other(http::Method::PATCH), &all, Some("ours")).await);
    let expected =
        "changing EvictionPause all-evictions; another client wrote it meanwhile: run the same command again";
    assert!(refused.starts_with(expected), "{refused}");
    let (kept, _) = start_at(&pauses, &all, None, None, at(0)).await.unwrap();
    assert_eq!((kept.spec.until, kept.spec.reason.as_str()), (Some(at(90_000)), ""));
    pauses.end(Some(&all), at(0)).await.unwrap();
    let refused = error(start(&other(http::Method::POST), &all, Some("ours")).await);
    assert!(
        refused.starts_with("creating EvictionPause all-evictions; another client wrote it meanwhile"),
        "{refused}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_pause_that_is_over_begins_anew() {
    let pauses = control_plane().await;
    let all = scope(&[], &[], None);
    let (_, change) = start_at(&pauses, &all, Some(End::At(at(60_000))), Some("upgrade"), at(0))
        .await
        .unwrap();
    assert_eq!(change, Change::Begun);
    // To keep the end would hold nothing, and the former reason is not that of this pause.
    let (anew, change) = start_at(&pauses, &all, None, None, at(60_000)).await.unwrap();
    assert_eq!(
        (anew.spec.until, anew.spec.reason.as_str(), change),
        (None, "", Change::Anew { over: at(60_000) })
    );
    let summary = pauses.started(&anew, change).await;
    let expected = "EvictionPause all-evictions holds all evictions until it is deleted\n  it begins anew: the earlier \
                    pause ended at 1970-01-01T00:01:00Z\n";
    assert!(summary.starts_with(expected), "{summary}");
}

#[tokio::test(start_paused = true)]
async fn a_pause_of_something_that_does_not_exist_is_refused() {
    let pauses = control_plane().await;
    let refused = error(start(&pauses, &scope(&["membre1"], &[], None), None).await);
    assert_eq!(
        refused,
        "there is no member cluster membre1; there are: member1, member2"
    );
    let refused = error(start(&pauses, &scope(&[], &["shpo"], None), None).await);
    assert_eq!(refused, "there is no namespace shpo on the control plane");
    assert_eq!(names(&pauses).await, [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn a_name_that_another_scope_has_is_refused() {
    let pauses = control_plane().await;
    start(&pauses, &scope(&["member1"], &[], Some("incident")), None)
        .await
        .unwrap();
    let refused = error(start(&pauses, &scope(&[], &["shop"], Some("incident")), None).await);
    let expected =
        "EvictionPause incident holds evictions from member1, not evictions of namespace shop; choose another --name";
    assert_eq!(refused, expected);
    let refused = error(
        pauses
            .end(Some(&scope(&["member2"], &[], Some("incident"))), at(0))
            .await,
    );
    assert!(
        refused.starts_with("EvictionPause incident holds evictions from member1, not"),
        "{refused}"
    );
    assert_eq!(names(&pauses).await, ["incident"]);
}

#[tokio::test(start_paused = true)]
async fn a_dry_run_changes_nothing() {
    let pauses = control_plane().await;
    let dry = Pauses {
        dry_run: true,
        ..control_plane().await
    };
    let all = scope(&[], &[], None);
    let shown = start(&dry, &all, Some("a test")).await.unwrap();
    assert!(
        dry.started(&shown, Change::Begun)
            .await
            .starts_with("dry run: EvictionPause all-evictions holds all evictions")
    );
    assert_eq!(names(&dry).await, [""; 0]);

    start(&pauses, &all, None).await.unwrap();
    let dry = Pauses {
        dry_run: true,
        ..pauses
    };
    let shown = dry.end(Some(&all), at(0)).await.unwrap();
    assert!(
        shown.starts_with("dry run: would delete EvictionPause all-evictions"),
        "{shown}"
    );
    assert_eq!(names(&dry).await, ["all-evictions"]);
}

#[tokio::test(start_paused = true)]
async fn both_commands_name_the_drains_and_taints_of_their_scope() {
    let pauses = control_plane().await;
    for name in ["member1", "member2"] {
        let spec = ClusterDrainSpec {
            cluster_name: name.to_owned(),
            evictions_per_second: None,
        };
        pauses
            .drains
            .create(&PostParams::default(), &ClusterDrain::new(name, spec))
            .await
            .unwrap();
    }
    let status = Patch::Merge(json!({"status": {"phase": "Draining", "bindingsLeft": 3}}));
    pauses
        .drains
        .patch_status("member1", &PatchParams::default(), &status)
        .await
        .unwrap();
    let taint = |key: &str, effect| Taint {
        key: key.to_owned(),
        value: String::new(),
        effect,
        time_added: None,
    };
    let taints = [
        taint(DRAIN_TAINT, TaintEffect::NoExecute),
        taint("zone-down", TaintEffect::NoExecute),
        taint("full", TaintEffect::NoSchedule),
    ];
    let tainted = Patch::Merge(json!({"spec": {"taints": taints}}));
    pauses
        .clusters
        .patch("member1", &PatchParams::default(), &tainted)
        .await
        .unwrap();

    let scope = scope(&["member1"], &[], None);
    let pause = start(&pauses, &scope, None).await.unwrap();
    let summary = pauses.started(&pause, Change::Begun).await;
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
    let narrow = ScopeArguments {
        namespaces: vec!["shop".to_owned()],
        ..scope
    };
    let pause = start(&pauses, &narrow, None).await.unwrap();
    let summary = pauses.started(&pause, Change::Begun).await;
    assert!(
        summary.contains("held for its workloads: drain of member1 (3 bindings left)"),
        "{summary}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_resume_names_the_pauses_that_are_left_in_force() {
    let pauses = control_plane().await;
    start(&pauses, &scope(&[], &[], None), None).await.unwrap();
    start(&pauses, &scope(&[], &["shop"], None), Some("quarter-end"))
        .await
        .unwrap();
    let over = scope(&[], &[], Some("over"));
    start_at(&pauses, &over, Some(End::At(at(1_000))), None, at(0))
        .await
        .unwrap();
    let summary = pauses.end(Some(&scope(&[], &[], None)), at(2_000)).await.unwrap();
    let left = "still in force: EvictionPause namespace-shop holds evictions of namespace shop until it is deleted \
                (reason: quarter-end)";
    assert!(
        summary.ends_with(left) && !summary.contains("EvictionPause over"),
        "{summary}"
    );
    assert!(!summary.contains("can evict now"), "{summary}");
    let missing = error(pauses.end(Some(&scope(&[], &[], None)), at(2_000)).await);
    assert_eq!(
        missing,
        "there is no EvictionPause all-evictions; there are: namespace-shop, over"
    );
    let summary = pauses.end(None, at(2_000)).await.unwrap();
    assert!(
        summary.contains("EvictionPause namespace-shop,") && summary.contains("EvictionPause over,"),
        "{summary}"
    );
    assert_eq!(
        error(pauses.end(None, at(2_000)).await),
        "there is no EvictionPause; there are: none"
    );
}
