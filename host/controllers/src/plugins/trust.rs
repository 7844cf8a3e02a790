//! Status of `PluginTrust` objects: their mistakes.
//!
//! It follows from the objects alone, so every process computes the same. It is written after a change of an object
//! and not after a write of the status, so that two leaders of different versions do not contradict each other without
//! end.

use std::sync::Arc;

use bulkhead_api::{PluginTrust, PluginTrustStatus};
use bulkhead_core::manifest::trust::object::{ReadTrust, read_objects};
use bulkhead_core::model::{Condition, ConditionStatus};
use bulkhead_core::time::Time;
use bulkhead_runtime::controller::{self, Action, Error};
use bulkhead_runtime::events::EventType;
use bulkhead_runtime::key::Key;
use bulkhead_runtime::queue::WorkQueue;
use kube::Api;

use super::Dependencies;
use crate::subjects::about;
use crate::writers::writer;

const NAME: &str = "plugin-trust-status-controller";
/// Type of the condition that tells if the object has no mistake.
const VALID: &str = "Valid";
/// Maximum number of mistakes in a message.
const MISTAKES_MAX: usize = 10;

/// Runs the controller until the future is dropped.
pub(super) async fn run(deps: Dependencies) {
    deps.stores.plugin_trusts.wait_for_cache_sync().await;
    let queue: Arc<WorkQueue<Key>> = Arc::default();
    let (trusts, stores) = (Arc::clone(&queue), Arc::clone(&deps.stores));
    let _trusts = deps.stores.plugin_trusts.subscribe(move |change| {
        // Of several rules with one prefix the first counts, so a change of one object concerns the others too.
        if change.is_generation_change() {
            trusts.add(Key::of(change.object()));
            for other in stores.plugin_trusts.list() {
                trusts.add(Key::of(&*other));
            }
        }
    });
    let reconcile = {
        let deps = deps.clone();
        move |key| reconcile(deps.clone(), key)
    };
    controller::run(
        queue,
        1,
        reconcile,
        deps.failures.counter(NAME, |key: &Key| key.named("PluginTrust")),
    )
    .await;
}

async fn reconcile(deps: Dependencies, key: Key) -> Result<Action, Error> {
    let Some(trust) = deps.stores.plugin_trusts.get(&key) else {
        return Ok(Action::Wait);
    };
    let objects: Vec<_> = deps
        .stores
        .plugin_trusts
        .list()
        .iter()
        .map(|trust| trust.to_object())
        .collect();
    let Some(read) = read_objects(&objects).into_iter().find(|read| read.name == key.name) else {
        return Ok(Action::Wait);
    };
    let status = status(&trust, &read, deps.clock.now::<Time>().truncated());
    let before = Condition::find(&trust.status.conditions, VALID).map(|condition| condition.message.clone());
    let changed = |trust: &mut PluginTrust| {
        let changed = trust.status != status;
        trust.status = status.clone();
        changed
    };
    let writer = writer(&deps.stores.plugin_trusts, Api::all(deps.hub.clone()));
    writer.update_status(&trust, changed).await?;
    let condition =
        Condition::find(&status.conditions, VALID).filter(|condition| before.as_ref() != Some(&condition.message));
    match condition {
        Some(condition) if condition.status == ConditionStatus::False => deps.log.events.emit(
            NAME,
            about(&*trust),
            EventType::Warning,
            "PluginTrustInvalid",
            condition.message.clone(),
        ),
        Some(condition) if before.is_some() => deps.log.events.emit(
            NAME,
            about(&*trust),
            EventType::Normal,
            "PluginTrustMended",
            condition.message.clone(),
        ),
        Some(_) | None => {}
    }
    Ok(Action::Wait)
}

fn status(trust: &PluginTrust, read: &ReadTrust, now: Time) -> PluginTrustStatus {
    let mut status = PluginTrustStatus {
        observed_generation: read.generation,
        conditions: trust.status.conditions.clone(),
    };
    status.set(valid(read, now));
    status
}

fn valid(read: &ReadTrust, now: Time) -> Condition {
    let mut mistakes: Vec<_> = read.mistakes.iter().map(ToString::to_string).collect();
    if mistakes.is_empty() {
        let message = "the object has no mistake";
        return Condition::new(VALID, ConditionStatus::True, "NoMistakes", message, now);
    }
    let others = mistakes.len().saturating_sub(MISTAKES_MAX);
    mistakes.truncate(MISTAKES_MAX);
    if others > 0 {
        mistakes.push(format!("and {others} more"));
    }
    let message = format!("{}; the other parts of the object count", mistakes.join("; "));
    Condition::new(VALID, ConditionStatus::False, "InvalidFields", message, now)
}

#[cfg(test)]
mod tests {
    use kube::api::PostParams;
    use serde_json::json;

    use super::*;
    use crate::testing::{components, hub_of_everything, member, object, written_events};

    #[tokio::test]
    async fn mistakes_are_in_the_status_of_their_object_and_events_only_about_changes() {
        let server = hub_of_everything(1);
        let (components, events) = components(server.client(), member().client());
        let api: Api<PluginTrust> = Api::all(server.client());
        let make = async |name: &str, rules: serde_json::Value| {
            let trust = object(json!({"metadata": {"name": name}, "spec": {"rules": rules}}));
            api.create(&PostParams::default(), &trust).await.unwrap()
        };
        let first = make("a", json!([{"images": "r.io", "unsigned": true}])).await;
        let second = make("b", json!([{"images": "r.io", "unsigned": true}, {"images": "r.io/x"}])).await;
        let store = Arc::clone(&components.stores.plugin_trusts);
        store.replace_all([first, second]);
        let valid = async |name: &str| {
            reconcile(components.plugins(), Key::new("", name)).await.unwrap();
            let status = api.get(name).await.unwrap().status;
            let condition = Condition::find(&status.conditions, VALID).unwrap();
            assert_eq!(status.observed_generation, 1);
            format!(
                "{}={} {}",
                condition.status.as_str(),
                condition.reason,
                condition.message
            )
        };
        assert_eq!(valid("a").await, "True=NoMistakes the object has no mistake");
        assert_eq!(
            valid("b").await,
            "False=InvalidFields spec.rules[1]: needs either keys or identities, one of which must have signed, or \
             unsigned: true; spec.rules[0].images: \"r.io\" has a rule already in PluginTrust a spec.rules[0]; put its keys into that \
             one; the other parts of the object count"
        );
        let writes = server.writes();
        store.replace_all([api.get("a").await.unwrap(), api.get("b").await.unwrap()]);
        valid("b").await;
        assert_eq!(server.writes(), writes, "nothing changed");
        drop((store, components));
        let events = written_events(server.client(), events).await;
        let reasons: Vec<_> = events.into_iter().filter_map(|event| event.reason).collect();
        assert_eq!(reasons, ["PluginTrustInvalid"]);
    }
}
