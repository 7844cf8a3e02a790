use bulkhead_core::call::{EvictionCheckCall, EvictionVerdict, Reason};
use bulkhead_core::combine;
use bulkhead_core::model::{Binding, GracefulEvictionTask};
use bulkhead_core::policy::EngineKind;
use bulkhead_core::time::Time;

use tracing::{Instrument as _, info_span};
use tracing_subscriber::filter::LevelFilter;

use super::*;
use crate::testing::captured;

struct Releases {
    id: PolicyId,
    capabilities: Vec<Capability>,
}

impl Releases {
    fn by(name: &str, engine: EngineKind) -> Arc<dyn Policy> {
        let id = PolicyId {
            engine,
            ..PolicyId::builtin(name)
        };
        Arc::new(Self {
            id,
            capabilities: vec![Capability::any(CallKind::EvictionCheck)],
        })
    }
}

impl Policy for Releases {
    fn id(&self) -> &PolicyId {
        &self.id
    }

    fn capabilities(&self) -> &[Capability] {
        &self.capabilities
    }

    fn call(&self, _: &Call<'_>) -> Result<Reply, Fault> {
        Ok(Reply::EvictionCheck(EvictionVerdict::Release(Reason::new(
            "Released", "test",
        ))))
    }
}

fn outcome(policies: &PolicySet) -> combine::EvictionOutcome {
    let (binding, task) = (Binding::default(), GracefulEvictionTask::default());
    let now = Time::from_millis(0);
    combine::eviction_check(
        policies,
        EvictionCheckCall {
            binding: &binding,
            task: &task,
            observed: &[],
            now,
        },
    )
}

#[test]
fn a_plugin_that_does_not_answer_in_time_holds_an_eviction() {
    let (host, guest) = (
        Releases::by("host", EngineKind::Builtin),
        Releases::by("guest", EngineKind::Lua),
    );
    let policies = PolicySet::new(vec![host, guest]);
    assert!(outcome(&policies).released);
    let late = outcome(&without_guests(&policies, Unanswered::Deadline(DECISION_TIME_MAX)));
    assert!(!late.released);
    let faults: Vec<_> = late
        .diagnostics
        .faults
        .iter()
        .map(|fault| fault.reason().to_string())
        .collect();
    assert_eq!(faults, ["HostBusy: guest (lua): plugins did not answer within 30 s"]);
}

#[test]
fn a_plugin_in_shadow_that_does_not_answer_in_time_changes_nothing() {
    let shadow = PolicyEntry {
        mode: Mode::Shadow,
        ..PolicyEntry::enforced(Releases::by("guest", EngineKind::Wasm))
    };
    let host = PolicyEntry::enforced(Releases::by("host", EngineKind::Builtin));
    let policies = PolicySet::composed(vec![shadow, host], Default::default());
    let late = outcome(&without_guests(&policies, Unanswered::QueueFull));
    assert!(late.released && late.diagnostics.faults.is_empty());
}

#[test]
fn decisions_that_ask_no_plugin_need_no_thread() {
    let lane = |engine, kinds: &[CallKind]| {
        let policies = PolicySet::new(vec![Releases::by("p", engine)]);
        Lane::of("c", &policies, |policy| answers(policy, kinds))
    };
    assert!(lane(EngineKind::Builtin, &[CallKind::EvictionCheck]).is_host_only());
    assert!(lane(EngineKind::Lua, &[CallKind::Filter]).is_host_only());
    assert!(!lane(EngineKind::Lua, &[CallKind::EvictionCheck]).is_host_only());
}

#[tokio::test]
async fn a_decision_on_a_thread_is_in_the_span_of_its_caller() {
    let (dispatch, _) = captured::subscriber(LevelFilter::INFO);
    let _subscribed = tracing::dispatcher::set_default(&dispatch);
    let limits = PoolLimits {
        threads: 1,
        lane_threads: 1,
        waiting: 1,
    };
    let evaluator = Evaluator::on(Pool::start("test", limits).unwrap());
    let (span, on_thread) = (info_span!("reconcile"), dispatch.clone());
    let job = move || tracing::dispatcher::with_default(&on_thread, || Span::current().id());
    let lane = Lane::of_work("test");
    let deciding = evaluator.run(lane, DECISION_TIME_MAX, job).instrument(span.clone());
    let (id, main) = (deciding.await.unwrap(), std::thread::current().id());
    assert!(id.is_some() && id == span.id(), "{id:?}");
    let elsewhere = evaluator
        .run(Lane::of_work("test"), DECISION_TIME_MAX, || std::thread::current().id())
        .await;
    assert_ne!(elsewhere, Ok(main));
}
