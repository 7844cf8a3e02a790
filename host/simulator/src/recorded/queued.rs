//! Waits that the records show, completed with the queue of evictions of a running process.

use std::collections::{BTreeMap, BTreeSet};

use bulkhead_controllers::{IN_PROGRESS, NOT_DUE, QueuedEviction, RATE};
use bulkhead_core::journal::Subject;
use bulkhead_core::time::Time;

use super::waiting::{Step, Waiting, opens};

/// Gates of bindings that stay on a tainted cluster without an eviction in the queue.
const NOT_QUEUED: [&str; 3] = ["ToleratedWithoutEnd", "NoClusterFailover", "EvictionOff"];

/// Completes waits with the evictions that the process has queued at `now`: tolerations that run and rates have no
/// record. A recorded wait for an eviction that is not in the queue has ended.
pub fn with_queue(waits: Vec<Waiting>, queued: &[QueuedEviction], now: Time) -> Vec<Waiting> {
    let evictions: BTreeMap<_, _> = queued.iter().map(|eviction| (key_of(eviction), eviction)).collect();
    let mut all = Vec::new();
    for mut wait in waits {
        if wait.step != Step::Eviction || wait.subject.kind == "Cluster" || NOT_QUEUED.contains(&wait.gate.as_str()) {
            all.push(wait);
            continue;
        }
        let eviction = key(&wait).and_then(|key| evictions.get(&key));
        if let Some(eviction) = eviction.filter(|eviction| eviction.gate == wait.gate) {
            wait.next_check_ms = eviction.next_check_ms.map(millis);
            wait.may_have_ended = false;
            all.push(wait);
        }
    }
    let of_evictions = all.iter().filter(|wait| wait.step == Step::Eviction);
    let recorded: BTreeSet<_> = of_evictions.filter_map(key).collect();
    let others = queued.iter().filter(|eviction| !recorded.contains(&key_of(eviction)));
    let others: Vec<_> = others.map(|eviction| of_eviction(eviction, now)).collect();
    all.extend(others);
    all
}

/// Binding and cluster of an eviction: kind, namespace, name and name of the cluster.
type Key<'a> = (&'a str, &'a str, &'a str, &'a str);

fn key(wait: &Waiting) -> Option<Key<'_>> {
    let Subject { kind, namespace, name } = &wait.subject;
    Some((kind, namespace, name, wait.cluster.as_deref()?))
}

fn key_of(eviction: &QueuedEviction) -> Key<'_> {
    let QueuedEviction {
        kind,
        namespace,
        name,
        cluster,
        ..
    } = eviction;
    (kind, namespace, name, cluster)
}

fn of_eviction(eviction: &QueuedEviction, now: Time) -> Waiting {
    let since = Time::from_millis(now.as_millis().saturating_sub(millis(eviction.waited_ms)));
    let message = match eviction.gate.as_str() {
        NOT_DUE => "the eviction is queued and not due yet",
        RATE => "the eviction is due, and its rates have no free slot",
        IN_PROGRESS => "the eviction is being decided or written",
        _ => "the eviction was judged, and the reason is in the journal of another process",
    };
    Waiting {
        step: Step::Eviction,
        subject: Subject::new(&eviction.kind, &eviction.namespace, &eviction.name),
        cluster: Some(eviction.cluster.clone()),
        decision: None,
        opens: opens(&eviction.gate, Step::Eviction, None),
        gate: eviction.gate.clone(),
        policy: None,
        message: message.to_owned(),
        since,
        since_ms: since.as_millis(),
        checked_every_ms: None,
        next_check_ms: eviction.next_check_ms.map(millis),
        may_have_ended: false,
    }
}

fn millis(ms: u64) -> i64 {
    i64::try_from(ms).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn queued(name: &str, gate: &str, next_check_ms: Option<u64>) -> QueuedEviction {
        QueuedEviction {
            kind: "ResourceBinding".to_owned(),
            namespace: "default".to_owned(),
            name: name.to_owned(),
            cluster: "m1".to_owned(),
            is_failback: false,
            gate: gate.to_owned(),
            waited_ms: 60_000,
            next_check_ms,
        }
    }

    fn recorded(name: &str, gate: &str) -> Waiting {
        let now = Time::from_millis(1_000_000);
        Waiting {
            decision: Some("41".to_owned()),
            checked_every_ms: Some(10_000),
            ..of_eviction(&queued(name, gate, None), now)
        }
    }

    #[test]
    fn the_queue_adds_what_has_no_record_and_ends_what_it_does_not_have() {
        let now = Time::from_millis(1_000_000);
        let waits = vec![
            recorded("paused", "EvictionPaused"),
            recorded("evicted", "NoTargetCluster"),
            recorded("stays", "EvictionOff"),
        ];
        let queue = [
            queued("paused", "EvictionPaused", Some(4_000)),
            queued("tolerates", NOT_DUE, Some(30_000)),
            queued("ready", RATE, None),
        ];
        let found = with_queue(waits, &queue, now);
        let found: Vec<_> = found
            .iter()
            .map(|wait| (wait.subject.name.as_str(), wait.next_check_ms, wait.decision.is_some()))
            .collect();
        let expected = [
            ("paused", Some(4_000), true),
            ("stays", None, true),
            ("tolerates", Some(30_000), false),
            ("ready", None, false),
        ];
        assert_eq!(found, expected);
        let text = with_queue(Vec::new(), &queue[1..2], now)[0].text(now);
        let expected = "\
ResourceBinding default/tolerates on m1 waits to leave
  gate   NotDue: the eviction is queued and not due yet
  since  1970-01-01T00:15:40Z (1m)
  opens  the end of the toleration, or of the pause after a failed attempt
  next   checked in 30s, or when something it depends on changes
";
        assert_eq!(text, expected);
    }
}
