//! Evictions under way, and the objects that reconciles about them have.
//!
//! Marks of the controllers name an eviction. Reconciles without a mark belong to it by their object: the binding,
//! and the Works that earlier reconciles of the eviction wrote. This knowledge is lost with the process; the marks of
//! the graceful eviction controller bring it back.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use bulkhead_controllers::eviction_trace::{self, steps};
use tokio::time::Instant;

use super::ids::EvictionId;
use super::recorded::{Line, Recorded};

/// Time for which a binding belongs to its eviction after the last mark.
const UNDER_WAY: Duration = Duration::from_hours(1);
/// Time for which a binding belongs to its eviction after its end, and a Work after it was last written.
const SETTLING: Duration = Duration::from_mins(2);
/// Maximum number of objects; further ones belong to no eviction.
const OBJECTS_MAX: usize = 1 << 16;
/// Eviction of a binding from a cluster.
#[derive(Debug)]
pub(super) struct Eviction {
    pub(super) id: EvictionId,
    /// Kind of the binding.
    pub(super) kind: String,
    /// Namespace and name of the binding.
    pub(super) binding: String,
    /// Reason of the task.
    pub(super) reason: String,
    /// Producer of the task.
    pub(super) producer: String,
}

/// Way of an eviction through the queue. Times are absent if they are unknown.
#[derive(Clone, Debug)]
pub(super) struct Departure {
    /// Time when the eviction left the queue.
    pub(super) at: SystemTime,
    /// Time when it entered the queue.
    pub(super) queued: SystemTime,
    /// Time when the cluster stopped being ready.
    pub(super) lost: Option<SystemTime>,
    /// Taint that causes the eviction.
    pub(super) taint: Option<String>,
    /// Time when the taint was added.
    pub(super) tainted: Option<SystemTime>,
    /// Last decision about the cluster that the cluster has as an annotation.
    pub(super) decision: Option<String>,
}

/// Start of an eviction.
#[derive(Debug)]
pub(super) struct Begun {
    pub(super) eviction: Arc<Eviction>,
    pub(super) at: SystemTime,
    pub(super) departure: Option<Departure>,
}

/// End of an eviction.
#[derive(Debug)]
pub(super) struct Ended {
    pub(super) eviction: Arc<Eviction>,
    pub(super) at: SystemTime,
    pub(super) outcome: &'static str,
}

/// Object that a reconcile is about, and the evictions that its marks name.
#[derive(Debug, Default)]
pub(super) struct Subject {
    /// Kind and name of the object.
    object: Option<String>,
    start: Option<SystemTime>,
    departure: Option<Departure>,
    looked_at: Vec<Arc<Eviction>>,
    pub(super) begun: Vec<Begun>,
    pub(super) ended: Vec<Ended>,
}

impl Subject {
    /// Returns the subject of the reconcile with this span.
    pub(super) fn of(root: &Recorded) -> Self {
        let (kind, object) = (root.fields.text("kind"), root.fields.text("object"));
        Self {
            object: kind.zip(object).map(|(kind, object)| named(kind, object)),
            start: Some(root.start),
            ..Self::default()
        }
    }

    /// Returns the evictions that marks name, the most concerned one first.
    fn marked(&self) -> Vec<Arc<Eviction>> {
        let begun = self.begun.iter().map(|begun| &begun.eviction);
        let ended = self.ended.iter().map(|ended| &ended.eviction);
        let mut all: Vec<Arc<Eviction>> = Vec::new();
        for eviction in begun.chain(ended).chain(&self.looked_at) {
            if all.iter().all(|known| known.id != eviction.id) {
                all.push(Arc::clone(eviction));
            }
        }
        all
    }
}

/// Memory of evictions under way.
#[derive(Debug, Default)]
pub(super) struct Evictions {
    /// Eviction of each object, by kind and name, and the time until which it counts.
    objects: HashMap<String, (Arc<Eviction>, Instant)>,
}

impl Evictions {
    /// Learns from a mark, and from the write of a Work, as soon as they occur: the reconciles that follow may end
    /// before this one.
    pub(super) fn learn(&mut self, subject: &mut Subject, line: &Line, now: Instant) {
        if line.target == eviction_trace::TARGET {
            self.learn_mark(subject, line, now);
        } else if line.fields.text("kind") == Some("Work") && line.fields.text("verb").is_some() {
            let text = |name| line.fields.text(name).unwrap_or_default();
            let work = named("Work", &format!("{}/{}", text("namespace"), text("name")));
            if let Some(eviction) = self.of(subject, now).first() {
                self.put(work, &Arc::clone(eviction), now + SETTLING, now);
            }
        }
    }

    fn learn_mark(&mut self, subject: &mut Subject, line: &Line, now: Instant) {
        let step = line.fields.text("step").unwrap_or_default();
        if step == steps::LEFT_QUEUE {
            subject.departure = departure_of(line);
            return;
        }
        let Some(eviction) = eviction_of(line).map(Arc::new) else {
            return;
        };
        let outcome = [steps::RELEASED, steps::CALLED_OFF]
            .into_iter()
            .find(|outcome| *outcome == step);
        let until = now + if outcome.is_some() { SETTLING } else { UNDER_WAY };
        self.put(named(&eviction.kind, &eviction.binding), &eviction, until, now);
        match outcome {
            Some(outcome) => subject.ended.push(Ended {
                eviction,
                at: line.at,
                outcome,
            }),
            None if step == steps::BEGAN => subject.begun.push(Begun {
                eviction,
                at: line.at,
                departure: subject.departure.clone(),
            }),
            None => subject.looked_at.push(eviction),
        }
    }

    /// Returns the evictions that a reconcile belongs to: those of its marks, or else the one of its object, if the
    /// reconcile started after it.
    pub(super) fn of(&self, subject: &Subject, now: Instant) -> Vec<Arc<Eviction>> {
        let marked = subject.marked();
        if !marked.is_empty() {
            return marked;
        }
        let known = subject.object.as_ref().and_then(|object| self.objects.get(object));
        let is_later = |eviction: &Eviction| subject.start >= time(eviction.id.created_ms);
        let found = known.filter(|(eviction, until)| *until > now && is_later(eviction));
        found.map(|(eviction, _)| Arc::clone(eviction)).into_iter().collect()
    }

    fn put(&mut self, object: String, eviction: &Arc<Eviction>, until: Instant, now: Instant) {
        if self.objects.len() >= OBJECTS_MAX && !self.objects.contains_key(&object) {
            self.objects.retain(|_, (_, until)| *until > now);
            if self.objects.len() >= OBJECTS_MAX {
                return;
            }
        }
        self.objects.insert(object, (Arc::clone(eviction), until));
    }
}

/// Returns the way through the queue that a mark describes.
fn departure_of(line: &Line) -> Option<Departure> {
    let fields = &line.fields;
    let waited = Duration::from_millis(u64::try_from(fields.number("waited_ms")?).ok()?);
    Some(Departure {
        at: line.at,
        queued: line.at.checked_sub(waited)?,
        lost: fields.number("lost_ms").and_then(time),
        taint: fields.text("taint").map(str::to_owned),
        tainted: fields.number("tainted_ms").and_then(time),
        decision: fields.text("decision").map(str::to_owned),
    })
}

/// Returns the eviction that a mark names.
fn eviction_of(line: &Line) -> Option<Eviction> {
    let fields = &line.fields;
    let text = |name| fields.text(name).map(str::to_owned);
    Some(Eviction {
        id: EvictionId {
            uid: text("uid")?,
            cluster: text("cluster")?,
            created_ms: fields.number("created_ms")?,
        },
        kind: text("kind")?,
        binding: text("object")?,
        reason: text("reason").unwrap_or_default(),
        producer: text("producer").unwrap_or_default(),
    })
}

fn named(kind: &str, object: &str) -> String {
    format!("{kind} {object}")
}

/// Returns a time in milliseconds since 1970.
pub(super) fn time(millis: i64) -> Option<SystemTime> {
    SystemTime::UNIX_EPOCH.checked_add(Duration::from_millis(u64::try_from(millis).ok()?))
}
