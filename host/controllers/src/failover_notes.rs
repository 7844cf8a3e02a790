//! Decisions about old copies that no `FailoverRecord` has yet.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use bulkhead_core::failover_record::FailoverNote;
use bulkhead_runtime::key::Key;
use bulkhead_runtime::queue::WorkQueue;

/// Maximum number of notes about one binding. More than a record has steps are of no use; the oldest are dropped.
const NOTES_MAX: usize = 2 * bulkhead_core::model::FAILOVER_STEPS_MAX;

/// Delay between a change and the write of the record. An eviction and the first hold follow each other at once, and
/// one write has both.
pub(crate) const WRITE_DELAY: Duration = Duration::from_secs(1);

/// Notes by binding, for the controller that writes the records. Nothing is kept before its first start; while it
/// restarts, notes wait for it.
#[derive(Default)]
pub struct FailoverNotes {
    notes: Mutex<BTreeMap<Key, Vec<FailoverNote>>>,
    /// Queue of the last start of the controller.
    queue: Mutex<Option<Weak<WorkQueue<Key>>>>,
}

impl FailoverNotes {
    fn notes(&self) -> MutexGuard<'_, BTreeMap<Key, Vec<FailoverNote>>> {
        self.notes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn queue(&self) -> MutexGuard<'_, Option<Weak<WorkQueue<Key>>>> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps notes from now on, and queues their bindings, also those of notes that have no record yet.
    pub(crate) fn keep_for(&self, queue: &Arc<WorkQueue<Key>>) {
        *self.queue() = Some(Arc::downgrade(queue));
        for binding in self.notes().keys() {
            queue.add_after(binding.clone(), WRITE_DELAY);
        }
    }

    /// Adds the note of a decision whose effects are applied, or of a task that is gone.
    pub(crate) fn add(&self, binding: &Key, note: FailoverNote) {
        let Some(queue) = self.queue().clone() else { return };
        {
            let mut all = self.notes();
            let notes = all.entry(binding.clone()).or_default();
            if notes.len() >= NOTES_MAX {
                notes.remove(0);
            }
            notes.push(note);
        }
        if let Some(queue) = queue.upgrade() {
            queue.add_after(binding.clone(), WRITE_DELAY);
        }
    }

    /// Returns the notes about a binding.
    pub(crate) fn of(&self, binding: &Key) -> Vec<FailoverNote> {
        self.notes().get(binding).cloned().unwrap_or_default()
    }

    /// Removes notes that a record has. Notes that were added meanwhile stay.
    pub(crate) fn done(&self, binding: &Key, recorded: &[FailoverNote]) {
        let mut all = self.notes();
        let Some(notes) = all.get_mut(binding) else { return };
        notes.retain(|note| !recorded.contains(note));
        if notes.is_empty() {
            all.remove(binding);
        }
    }
}

#[cfg(test)]
mod tests {
    use bulkhead_core::model::FailoverState;
    use bulkhead_core::time::Time;

    use super::*;

    fn note(number: u64) -> FailoverNote {
        FailoverNote {
            number,
            time: Time::from_millis(0),
            state: FailoverState::Held,
            cluster: "m1".to_owned(),
            reason: "NotHealthy".to_owned(),
            message: String::new(),
            decision: String::new(),
        }
    }

    #[tokio::test(start_paused = true)]
    async fn notes_are_bounded_and_wait_for_a_controller_that_restarts() {
        let (notes, key) = (FailoverNotes::default(), Key::new("default", "web"));
        let numbers = || notes.of(&key).iter().map(|note| note.number).collect::<Vec<_>>();
        notes.add(&key, note(1));
        assert_eq!(numbers(), [0; 0]);
        let queue: Arc<WorkQueue<Key>> = Arc::default();
        notes.keep_for(&queue);
        (1..=100).for_each(|number| notes.add(&key, note(number)));
        assert_eq!(numbers(), (61..=100).collect::<Vec<_>>());
        assert_eq!(queue.next().await, key);
        let recorded = notes.of(&key);
        notes.add(&key, note(101));
        notes.done(&key, &recorded);
        assert_eq!(numbers(), [101]);
        drop(queue);
        notes.add(&key, note(102));
        let queue: Arc<WorkQueue<Key>> = Arc::default();
        notes.keep_for(&queue);
        assert_eq!(queue.next().await, key);
        assert_eq!(numbers(), [101, 102]);
    }
}
