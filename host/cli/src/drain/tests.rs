//! The commands on an in-process control plane, with the test in the role of the controller.

use std::sync::Mutex;

use bulkhead_apiserver::{ApiServer, Clock, Options, ResourceKind};
use bulkhead_core::model::SyncMode;
use bulkhead_core::time::Time;
use serde_json::Value;

use super::*;

/// Creates a control plane with the named member clusters.
async fn control_plane(clusters: &[&str]) -> Drains {
    let kind = |info: &bulkhead_api::KindInfo| {
        ResourceKind::cluster_scoped(info.group, info.version, info.kind, info.plural).with_status()
    };
    let kinds = bulkhead_api::kinds::REGISTERED
        .iter()
        .filter(|info| ["Cluster", "ClusterDrain"].contains(&info.kind));
    let clock = Clock::new(Time::from_millis(0).timestamp());
    let server = ApiServer::new(Options {
        kinds: kinds.map(kind).collect(),
        ..Options::new("hub", 1, clock)
    });
    let drains = Drains::new(&server.client());
    for name in clusters {
        let mut cluster = Cluster::new(*name, Default::default());
        cluster.spec.sync_mode = SyncMode::Push;
        drains.clusters.create(&PostParams::default(), &cluster).await.unwrap();
    }
    drains
}

async fn report(drains: &Drains, name: &str, status: Value) {
    let patch = Patch::Merge(json!({"status": status}));
    drains
        .drains
        .patch_status(name, &PatchParams::default(), &patch)
        .await
        .unwrap();
}

fn error<T: std::fmt::Debug>(outcome: anyhow::Result<T>) -> String {
    format!("{:#}", outcome.unwrap_err())
}

#[test]
fn a_rate_is_a_number_or_unlimited() {
    let check = |text: &str, expected: Option<DrainRate>| assert_eq!(parse_rate(text).ok(), expected, "{text:?}");
    check("0.5", Some(DrainRate::PerSecond(0.5)));
    check("0", Some(DrainRate::PerSecond(0.0)));
    check("unlimited", Some(DrainRate::Unlimited));
    for wrong in ["", "-1", "NaN", "inf", "fast", "1/s"] {
        check(wrong, None);
    }
}

#[tokio::test(start_paused = true)]
async fn a_dry_run_is_checked_and_changes_nothing() {
    let drains = control_plane(&["member1"]).await;
    let rehearsed = || Drains {
        clusters: drains.clusters.clone(),
        drains: drains.drains.clone(),
        dry_run: true,
    };
    let made = rehearsed()
        .start("member1", Some(DrainRate::PerSecond(0.5)))
        .await
        .unwrap();
    assert_eq!(made.spec.evictions_per_second, Some(0.5));
    assert!(drains.find("member1").await.unwrap().is_none());
    assert!(error(rehearsed().start("member2", None).await).contains("there is no member cluster member2"));
    drains.start("member1", None).await.unwrap();
    rehearsed()
        .start("member1", Some(DrainRate::PerSecond(2.0)))
        .await
        .unwrap();
    assert!(
        rehearsed()
            .stop("member1")
            .await
            .unwrap()
            .starts_with("member1 would not be drained any more (dry run)")
    );
    assert_eq!(
        drains.find("member1").await.unwrap().unwrap().spec.evictions_per_second,
        None
    );
}

#[tokio::test(start_paused = true)]
async fn a_drain_is_made_once_and_the_same_command_changes_only_its_rate() {
    let drains = control_plane(&["member1", "member2"]).await;
    let made = drains.start("member1", Some(DrainRate::PerSecond(0.5))).await.unwrap();
    assert_eq!(
        made.spec,
        ClusterDrainSpec {
            cluster_name: "member1".into(),
            evictions_per_second: Some(0.5)
        }
    );
    let message = "member1 is to be drained (at most 0.5 evictions per second); no controller has processed it yet";
    assert_eq!(describe(&made), message);
    let version = |drain: &ClusterDrain| drain.metadata.resource_version.clone();
    let again = drains.start("member1", None).await.unwrap();
    assert_eq!(
        version(&again),
        version(&made),
        "nothing is written when nothing changes"
    );
    let stopped = drains.start("member1", Some(DrainRate::PerSecond(0.0))).await.unwrap();
    assert_eq!(stopped.spec.evictions_per_second, Some(0.0));
    let resumed = drains.start("member1", Some(DrainRate::Unlimited)).await.unwrap();
    assert_eq!(resumed.spec.evictions_per_second, None);
    assert_eq!(
        resumed.metadata.uid, made.metadata.uid,
        "it is the same drain all the time"
    );
    assert!(drains.find("member2").await.unwrap().is_none());
}

#[tokio::test(start_paused = true)]
async fn a_cluster_that_is_not_there_is_not_drained() {
    let drains = control_plane(&["member1", "member2"]).await;
    let message = error(drains.start("membre1", None).await);
    assert_eq!(
        message,
        "there is no member cluster membre1; there are: member1, member2"
    );
    assert!(drains.find("membre1").await.unwrap().is_none());
}

#[tokio::test(start_paused = true)]
async fn waiting_ends_when_the_cluster_is_empty_and_says_what_changes() {
    let drains = control_plane(&["member1"]).await;
    drains.start("member1", None).await.unwrap();
    let said = Mutex::new(Vec::new());
    let controller = async {
        let message = "2 bindings left, 1 old copies wait for their replacement";
        report(
            &drains,
            "member1",
            json!({"phase": "Draining", "bindingsLeft": 2, "message": message}),
        )
        .await;
        tokio::time::sleep(Duration::from_mins(1)).await;
        report(
            &drains,
            "member1",
            json!({"phase": "Drained", "message": "no binding is placed on the cluster"}),
        )
        .await;
    };
    let say = |text: &str| said.lock().unwrap().push(text.to_owned());
    let (waited, ()) = tokio::join!(drains.wait("member1", Some(Duration::from_mins(5)), say), controller);
    assert_eq!(
        describe(&waited.unwrap()),
        "member1 is drained: no binding is placed on the cluster"
    );
    let said = said.into_inner().unwrap();
    let message =
        "member1 is being drained (no rate of its own): 2 bindings left, 1 old copies wait for their replacement";
    assert_eq!(said.last().map(String::as_str), Some(message));
    assert!(said.len() <= 2, "only changes are reported: {said:?}");
}

#[tokio::test(start_paused = true)]
async fn waiting_gives_up_in_time_and_leaves_the_drain_alone() {
    let drains = control_plane(&["member1"]).await;
    drains.start("member1", None).await.unwrap();
    let message = error(drains.wait("member1", Some(Duration::from_secs(30)), |_| {}).await);
    assert!(
        message.ends_with("the drain continues, but this command stopped waiting"),
        "{message}"
    );
    assert!(drains.find("member1").await.unwrap().is_some());
    drains.stop("member1").await.unwrap();
    let message = error(drains.wait("member1", None, |_| {}).await);
    assert_eq!(
        message,
        "the drain of member1 ended: another client deleted its ClusterDrain"
    );
}

#[tokio::test(start_paused = true)]
async fn only_the_drain_of_the_command_is_ended() {
    let drains = control_plane(&["member1", "member2"]).await;
    drains.start("member1", None).await.unwrap();
    report(
        &drains,
        "member1",
        json!({"phase": "Draining", "bindingsLeft": 3, "copiesLeft": 1}),
    )
    .await;
    let spec = |cluster: &str| ClusterDrainSpec {
        cluster_name: cluster.to_owned(),
        evictions_per_second: None,
    };
    for (name, cluster) in [("maintenance", "member1"), ("member2", "member1")] {
        drains
            .drains
            .create(&PostParams::default(), &ClusterDrain::new(name, spec(cluster)))
            .await
            .unwrap();
    }
    let message = drains.stop("member1").await.unwrap();
    assert_eq!(
        message,
        "member1 is no longer drained; 3 bindings stay there, 1 evictions continue; ClusterDrain \
         maintenance, member2 drains it too"
    );
    assert!(
        error(drains.stop("member1").await).starts_with("there is no ClusterDrain member1; ClusterDrain maintenance")
    );
    let message = "ClusterDrain member2 drains another cluster, member1; this command does not change it";
    assert_eq!(error(drains.stop("member2").await), message);
    assert_eq!(error(drains.start("member2", None).await), message);
}
