use bulkhead_controllers::permissions::Mode;
use bulkhead_controllers::{BootClock, JournalGuard};
use bulkhead_controlplane::{ApiServer, Clock, Fault, Options, Verb, kinds};
use bulkhead_core::time::Time;
use kube::api::{Patch, PatchParams};
use serde_json::json;

use super::*;

const RENEW: Duration = Duration::from_secs(10);

fn hub() -> ApiServer {
    let clock = Clock::new(Time::from_millis(0).timestamp());
    let kinds = kinds::kubernetes();
    ApiServer::new(Options { kinds, auto_create_namespaces: true, ..Options::new("hub", 1, clock) })
}

fn candidate(hub: &ApiServer, identity: &str) -> Candidate {
    let election = Election {
        namespace: "default".to_owned(),
        name: "bulkhead".to_owned(),
        identity: identity.to_owned(),
        lease_duration: Duration::from_secs(15),
        renew_deadline: RENEW,
        retry_period: Duration::from_secs(2),
        modes: "all".to_owned(),
    };
    let start = Instant::now();
    let permit = WritePermit::none().with_clock(BootClock::new(move || start.elapsed()));
    Candidate::new(election, hub.client(), permit)
}

async fn elected(hub: &ApiServer, identity: &str) -> Candidate {
    let mut candidate = candidate(hub, identity);
    candidate.acquire(|why| panic!("{why}")).await;
    candidate
}

/// Returns the reason from `hold` if it ends within the time limit.
async fn lost_within(candidate: &mut Candidate, limit_s: u64) -> Option<String> {
    tokio::time::timeout(Duration::from_secs(limit_s), candidate.hold()).await.ok()
}

async fn holder(hub: &ApiServer) -> String {
    let lease = Api::<Lease>::namespaced(hub.client(), "default").get("bulkhead").await.unwrap();
    lease.spec.unwrap().holder_identity.unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_somebody_edits_is_not_lost() {
    let hub = hub();
    let mut leader = elected(&hub, "a").await;
    for _ in 0..3 {
        hub.inject(Fault::Respond(409), |request| request.plural == "leases" && request.verb == Verb::Update);
    }
    assert_eq!(lost_within(&mut leader, 60).await, None);
    assert_eq!((hub.faults_pending_total(), holder(&hub).await.as_str()), (0, "a"));
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_another_took_is_lost_and_stays_with_it() {
    let hub = hub();
    let mut leader = elected(&hub, "a").await;
    let leases = Api::<Lease>::namespaced(hub.client(), "default");
    let taken = Patch::Merge(json!({"spec": {"holderIdentity": "b"}}));
    leases.patch("bulkhead", &PatchParams::default(), &taken).await.unwrap();
    assert_eq!(lost_within(&mut leader, 60).await.unwrap(), "b holds the lease default/bulkhead now");
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
            leases.patch("bulkhead", &PatchParams::default(), &annotation).await.unwrap();
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
async fn a_lease_is_released_although_it_changed_since() {
    let hub = hub();
    let mut leader = elected(&hub, "a").await;
    let leases = Api::<Lease>::namespaced(hub.client(), "default");
    let annotation = Patch::Merge(json!({"metadata": {"annotations": {"x": "1"}}}));
    leases.patch("bulkhead", &PatchParams::default(), &annotation).await.unwrap();
    hub.inject(Fault::Respond(409), |request| request.plural == "leases" && request.verb == Verb::Update);
    leader.release().await;
    assert_eq!(holder(&hub).await, "");
}

#[tokio::test(start_paused = true)]
async fn who_cannot_record_gives_the_lease_up_and_who_is_slow_does_not() {
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
        assert!(error.starts_with(expected) && error.is_empty() == expected.is_empty(), "{arguments:?}: {error}");
    };
    let lease = |text: &'static str| [text, "--leader-elect-renew-deadline=1s", "--leader-elect-retry-period=200ms"];
    check(&[], "");
    check(&lease("--leader-elect-lease-duration=2s"), "");
    let whole = "leader-elect-lease-duration: must be whole seconds, at least 1s";
    check(&lease("--leader-elect-lease-duration=1500ms"), whole);
    check(&lease("--leader-elect-lease-duration=0s"), whole);
    check(&["--leader-elect-renew-deadline=9500ms"], "leader-elect-renew-deadline: must be whole seconds, at least 1s");
    check(&["--leader-elect-renew-deadline=15s"], "leader-elect-lease-duration: must be longer than");
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
        hub.inject(Fault::TimeOut(Duration::from_mins(1)), |request| request.plural == "leases");
    };
    let (lost, ()) = tokio::join!(lost_within(&mut leader, 8), suspend);
    let lost = lost.expect("the lease is given up");
    assert_eq!(lost, "the lease default/bulkhead could not be renewed in time");
}
