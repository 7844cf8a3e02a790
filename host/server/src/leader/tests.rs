use bulkhead_apiserver::{ApiServer, Fault, Options, Verb, kinds};
use bulkhead_controllers::clock_handover::{DECISION_CLOCK, RecordedClock};
use bulkhead_controllers::permissions::Mode;
use bulkhead_runtime::boot_clock::BootClock;
use bulkhead_runtime::clock::WallClock;
use bulkhead_runtime::connection::JournalGuard;
use k8s_openapi::jiff::SignedDuration;
use kube::api::{Patch, PatchParams};
use serde_json::json;

use super::*;

const RENEW: Duration = Duration::from_secs(10);

fn hub() -> ApiServer {
    let clock = bulkhead_apiserver::Clock::new(Timestamp::UNIX_EPOCH);
    let kinds = kinds::kubernetes();
    ApiServer::new(Options {
        kinds,
        auto_create_namespaces: true,
        ..Options::new("hub", 1, clock)
    })
}

/// Returns a wall clock that starts now at the epoch and advances with tokio's paused clock.
fn wall_clock() -> WallClock {
    let start = Instant::now();
    WallClock::new(move || Timestamp::UNIX_EPOCH + start.elapsed())
}

fn candidate(hub: &ApiServer, identity: &str) -> Candidate {
    candidate_on(hub, identity, &wall_clock())
}

/// Returns a candidate of a process that starts now on a machine with this wall clock.
fn candidate_on(hub: &ApiServer, identity: &str, wall: &WallClock) -> Candidate {
    let election = Election {
        namespace: "default".to_owned(),
        name: "bulkhead".to_owned(),
        identity: identity.to_owned(),
        lease_duration: Duration::from_secs(15),
        renew_deadline: RENEW,
        retry_period: Duration::from_secs(2),
        modes: "all".to_owned(),
        queries: None,
    };
    let start = Instant::now();
    let permit = WritePermit::none().with_clock(BootClock::new(move || start.elapsed()));
    Candidate::new(election, hub.client(), permit, Clock::following(wall.clone()))
}

async fn elected(hub: &ApiServer, identity: &str) -> Candidate {
    let mut candidate = candidate(hub, identity);
    candidate.acquire(|why| panic!("{why}")).await;
    candidate
}

/// Returns the reason from `hold` if it ends within the time limit.
async fn lost_within(candidate: &mut Candidate, limit_s: u64) -> Option<String> {
    tokio::time::timeout(Duration::from_secs(limit_s), candidate.hold())
        .await
        .ok()
}

async fn lease(hub: &ApiServer) -> Lease {
    Api::namespaced(hub.client(), "default").get("bulkhead").await.unwrap()
}

async fn holder(hub: &ApiServer) -> String {
    lease(hub).await.spec.unwrap().holder_identity.unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_somebody_edits_is_not_lost() {
    let hub = hub();
    let mut leader = elected(&hub, "a").await;
    for _ in 0..3 {
        hub.inject(Fault::Respond(409), |request| {
            request.plural == "leases" && request.verb == Verb::Update
        });
    }
    assert_eq!(lost_within(&mut leader, 60).await, None);
    assert_eq!((hub.pending_fault_count(), holder(&hub).await.as_str()), (0, "a"));
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_another_took_is_lost_and_stays_with_it() {
    let hub = hub();
    let mut leader = elected(&hub, "a").await;
    let leases = Api::<Lease>::namespaced(hub.client(), "default");
    let taken = Patch::Merge(json!({"spec": {"holderIdentity": "b"}}));
    leases.patch("bulkhead", &PatchParams::default(), &taken).await.unwrap();
    assert_eq!(
        lost_within(&mut leader, 60).await.unwrap(),
        "b holds the lease default/bulkhead now"
    );
    assert!(!leader.holds());
    leader.release().await;
    assert_eq!(holder(&hub).await, "b");
}

#[tokio::test(start_paused = true)]
async fn a_lease_runs_out_however_often_somebody_annotates_it() {
    let hub = hub();
    drop(elected(&hub, "a").await);
    let leases = Api::<Lease>::namespaced(hub.client(), "default");
    let mut next = candidate(&hub, "b");
    let annotated = async {
        for number in 0.. {
            let annotation = Patch::Merge(json!({"metadata": {"annotations": {"x": number.to_string()}}}));
            leases
                .patch("bulkhead", &PatchParams::default(), &annotation)
                .await
                .unwrap();
            tokio::time::sleep(Duration::from_secs(3)).await;
        }
    };
    tokio::select! {
        () = annotated => {}
        _ = next.acquire(|_| {}) => {}
        () = tokio::time::sleep(Duration::from_mins(1)) => panic!("nobody took over"),
    }
    assert_eq!(holder(&hub).await, "b");
}

#[tokio::test(start_paused = true)]
async fn a_standby_follows_a_lost_or_stopped_leader_without_delay() {
    let hub = hub();
    drop(elected(&hub, "a").await);
    tokio::time::sleep(Duration::from_millis(700)).await;
    let start = Instant::now();
    let mut next = candidate(&hub, "b");
    next.acquire(|_| {}).await;
    let waited = start.elapsed();
    assert!((15_000..15_010).contains(&waited.as_millis()), "{waited:?}");
    let mut standby = candidate(&hub, "c");
    let (released, acquired) = tokio::join!(
        async {
            tokio::time::sleep(Duration::from_millis(5_100)).await;
            next.release().await;
            Instant::now()
        },
        async {
            standby.acquire(|_| {}).await;
            Instant::now()
        }
    );
    let waited = acquired - released;
    assert!(waited <= Duration::from_millis(500), "{waited:?}");
}

#[tokio::test(start_paused = true)]
async fn a_lease_is_released_although_it_changed_since() {
    let hub = hub();
    let mut leader = elected(&hub, "a").await;
    let leases = Api::<Lease>::namespaced(hub.client(), "default");
    let annotation = Patch::Merge(json!({"metadata": {"annotations": {"x": "1"}}}));
    leases
        .patch("bulkhead", &PatchParams::default(), &annotation)
        .await
        .unwrap();
    hub.inject(Fault::Respond(409), |request| {
        request.plural == "leases" && request.verb == Verb::Update
    });
    leader.release().await;
    assert_eq!(holder(&hub).await, "");
}

#[tokio::test(start_paused = true)]
async fn a_leader_without_a_journal_releases_the_lease_and_a_slow_one_does_not() {
    let hub = hub();
    let mut leader = elected(&hub, "a").await;
    let permit = leader.permit.clone();
    let guard = JournalGuard::of(&permit);
    let slow = async {
        for _ in 0..10 {
            permit.journal_barrier().add();
            tokio::time::sleep(Duration::from_secs(6)).await;
            guard.stored();
        }
    };
    tokio::select! {
        () = slow => {}
        why = leader.hold() => panic!("{why}"),
    }
    permit.journal_barrier().add();
    let lost = lost_within(&mut leader, 20).await.unwrap();
    assert!(lost.contains("the disk of the journal does not answer"), "{lost}");
    drop(guard);
}

/// Parses and validates election arguments.
fn checked(arguments: &[&str]) -> Result<Election, String> {
    #[derive(clap::Parser)]
    struct Program {
        #[command(flatten)]
        election: ElectionArguments,
    }
    let program = <Program as clap::Parser>::parse_from(std::iter::once(&"bulkhead").chain(arguments));
    program
        .election
        .check(&Modes::new(&[Mode::All]).map_err(|error| error.to_string())?)
        .map_err(|error| error.to_string())
}

#[test]
fn parts_of_a_second_are_refused_where_a_lease_counts_in_seconds() {
    let check = |arguments: &[&str], expected: &str| {
        let error = checked(arguments).err().unwrap_or_default();
        assert!(
            error.starts_with(expected) && error.is_empty() == expected.is_empty(),
            "{arguments:?}: {error}"
        );
    };
    let lease = |text: &'static str| {
        [
            text,
            "--leader-elect-renew-deadline=1s",
            "--leader-elect-retry-period=200ms",
        ]
    };
    check(&[], "");
    check(&lease("--leader-elect-lease-duration=2s"), "");
    let whole = "leader-elect-lease-duration: must be whole seconds, at least 1s";
    check(&lease("--leader-elect-lease-duration=1500ms"), whole);
    check(&lease("--leader-elect-lease-duration=0s"), whole);
    check(
        &["--leader-elect-renew-deadline=9500ms"],
        "leader-elect-renew-deadline: must be whole seconds, at least 1s",
    );
    check(
        &["--leader-elect-renew-deadline=15s"],
        "leader-elect-lease-duration: must be longer than",
    );
}

#[tokio::test(start_paused = true)]
async fn a_leader_whose_machine_was_suspended_gives_the_lease_up() {
    let hub = hub();
    let suspended = std::sync::Arc::new(std::sync::Mutex::new(Duration::ZERO));
    let mut leader = candidate(&hub, "a");
    let (counted, start) = (std::sync::Arc::clone(&suspended), Instant::now());
    leader.permit = WritePermit::none().with_clock(BootClock::new(move || start.elapsed() + *counted.lock().unwrap()));
    leader.acquire(|why| panic!("{why}")).await;
    assert_eq!(lost_within(&mut leader, 60).await, None);
    let suspend = async {
        tokio::time::sleep(Duration::from_secs(5)).await;
        *suspended.lock().unwrap() = RENEW;
        hub.inject(Fault::TimeOut(Duration::from_mins(1)), |request| {
            request.plural == "leases"
        });
    };
    let (lost, ()) = tokio::join!(lost_within(&mut leader, 8), suspend);
    let lost = lost.expect("the lease is given up");
    assert_eq!(lost, "the lease default/bulkhead could not be renewed in time");
}

/// Returns the decision clock that the last renewal recorded.
async fn recorded(hub: &ApiServer) -> RecordedClock {
    serde_json::from_str(&lease(hub).await.metadata.annotations.unwrap()[DECISION_CLOCK]).unwrap()
}

/// Returns the decision time of a candidate's process minus the virtual time since `start`, in seconds.
fn ahead_s(candidate: &Candidate, start: Instant) -> i64 {
    let ahead_ms =
        candidate.clock.now::<Timestamp>().as_millisecond() - i64::try_from(start.elapsed().as_millis()).unwrap();
    (ahead_ms + 500).div_euclid(1000)
}

#[tokio::test(start_paused = true)]
async fn a_successor_continues_the_clock_of_a_leader_whose_wall_clock_stepped() {
    for by_ms in [3_600_000, -3_600_000] {
        let (hub, start, wall) = (hub(), Instant::now(), wall_clock());
        let mut leader = candidate_on(&hub, "a", &wall);
        assert_eq!(leader.acquire(|why| panic!("{why}")).await.clock, None);
        wall.step(by_ms);
        assert_eq!(lost_within(&mut leader, 10).await, None);
        assert_eq!(ahead_s(&leader, start), 0);
        leader.release().await;
        let mut successor = candidate_on(&hub, "b", &wall);
        assert_eq!(ahead_s(&successor, start), by_ms / 1000);
        let line = successor.acquire(|why| panic!("{why}")).await.clock.unwrap();
        assert_eq!(ahead_s(&successor, start), 0, "{line}");
        let set = if by_ms > 0 {
            "is set 3599 s back, and is 3599 s behind"
        } else {
            "is set 3599 s ahead"
        };
        assert!(line.contains(set), "{line}");
        // The write that elects it has the offset already.
        let offset_ms = recorded(&hub).await.offset_ms;
        assert_eq!((offset_ms + by_ms).abs() / 1000, 0, "{offset_ms} ms");
    }
}

#[tokio::test(start_paused = true)]
async fn a_standby_whose_own_wall_clock_is_wrong_continues_the_clock_of_the_leader() {
    let (hub, start, wall) = (hub(), Instant::now(), wall_clock());
    let mut leader = candidate_on(&hub, "a", &wall);
    leader.acquire(|why| panic!("{why}")).await;
    let right = wall.clone();
    let wrong = WallClock::new(move || right.now() + SignedDuration::from_hours(1));
    let mut standby = candidate_on(&hub, "b", &wrong);
    let dies = async {
        lost_within(&mut leader, 30).await;
        drop(leader);
    };
    tokio::join!(dies, standby.acquire(|_| {}));
    assert_eq!(holder(&hub).await, "b");
    let ahead_s = ahead_s(&standby, start);
    assert!((-3..=0).contains(&ahead_s), "{ahead_s}");
}

#[tokio::test(start_paused = true)]
async fn a_successor_of_an_earlier_version_keeps_its_own_clock() {
    let (hub, start, wall) = (hub(), Instant::now(), wall_clock());
    let mut leader = candidate_on(&hub, "a", &wall);
    leader.acquire(|why| panic!("{why}")).await;
    wall.step(-3_600_000);
    leader.release().await;
    let offset_ms = recorded(&hub).await.offset_ms;
    assert_eq!((offset_ms - 3_600_000).abs() / 1000, 0, "{offset_ms} ms");
    tokio::time::sleep(Duration::from_secs(2)).await;
    // A leader of the earlier version renews the Lease with the time of the wall clock, and keeps all annotations.
    let renewed = json!({"spec": {"renewTime": MicroTime(wall.now()), "holderIdentity": ""}});
    let leases = Api::<Lease>::namespaced(hub.client(), "default");
    leases
        .patch("bulkhead", &PatchParams::default(), &Patch::Merge(renewed))
        .await
        .unwrap();
    let mut successor = candidate_on(&hub, "b", &wall);
    assert_eq!(successor.acquire(|why| panic!("{why}")).await.clock, None);
    assert_eq!(ahead_s(&successor, start), -3600, "it has the time of the wall clock");
}

#[tokio::test(start_paused = true)]
async fn a_malformed_offset_is_logged_and_replaced() {
    let hub = hub();
    elected(&hub, "a").await.release().await;
    let leases = Api::<Lease>::namespaced(hub.client(), "default");
    let annotation = Patch::Merge(json!({"metadata": {"annotations": {DECISION_CLOCK: "soon"}}}));
    leases
        .patch("bulkhead", &PatchParams::default(), &annotation)
        .await
        .unwrap();
    let mut successor = candidate(&hub, "b");
    let line = successor.acquire(|why| panic!("{why}")).await.clock.unwrap();
    assert!(line.contains("is not continued") && line.contains("\"soon\""), "{line}");
    assert_eq!(recorded(&hub).await.offset_ms, 0);
}

#[tokio::test(start_paused = true)]
async fn the_lease_names_the_leaders_that_answer_queries_the_current_one_first() {
    let hub = hub();
    for identity in ["a", "b"] {
        let mut leader = candidate(&hub, identity);
        leader.election.queries = Some(Advertised {
            url: format!("https://{identity}"),
            ca: "pem".to_owned(),
        });
        leader.acquire(|why| panic!("{why}")).await;
        assert_eq!(lost_within(&mut leader, 5).await, None, "it renews the Lease");
        leader.release().await;
    }
    let urls = async || {
        let advertised = Advertised::of(&lease(&hub).await).into_iter();
        advertised.map(|endpoint| endpoint.url).collect::<Vec<_>>()
    };
    assert_eq!(urls().await, ["https://b", "https://a"]);
    // A leader that answers no queries leaves those that do.
    elected(&hub, "c").await;
    assert_eq!(urls().await, ["https://b", "https://a"]);
}
