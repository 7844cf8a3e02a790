//! Circuit breaker: webhooks that do not respond are not called for a while, so that their callers do not wait.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bulkhead_core::policy::{Fault, FaultKind};
use tokio::time::Instant;

/// Number of failures in a row after which a webhook is not called for a while.
const SILENCES_MAX: u32 = 3;
/// Time without calls. The first call after that is a trial for all.
const PAUSE: Duration = Duration::from_secs(5);

/// Webhooks that did not respond, by address.
#[derive(Default)]
pub(super) struct Breaker(Mutex<BTreeMap<String, UnresponsiveHook>>);

struct UnresponsiveHook {
    in_a_row: u32,
    last: Fault,
    until: Instant,
}

impl Breaker {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, UnresponsiveHook>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Checks that a webhook may be called. The error is the fault that a call would end in.
    pub(super) fn check(&self, hook: &str) -> Result<(), Fault> {
        let mut hooks = self.lock();
        let Some(silent) = hooks.get_mut(hook).filter(|silent| silent.in_a_row >= SILENCES_MAX) else {
            return Ok(());
        };
        let now = Instant::now();
        if now >= silent.until {
            silent.until = now + PAUSE;
            return Ok(());
        }
        let message = format!(
            "{}; not called again after {} failures in a row",
            silent.last.message, silent.in_a_row
        );
        Err(Fault::new(silent.last.kind, message))
    }

    /// Records the result. Any response counts as reachable.
    pub(super) fn note(&self, hook: String, answer: Result<(), &Fault>) {
        let mut hooks = self.lock();
        match answer {
            Err(fault) if matches!(fault.kind, FaultKind::Deadline | FaultKind::Unreachable) => {
                let until = Instant::now() + PAUSE;
                let in_a_row = hooks.get(&hook).map_or(0, |silent| silent.in_a_row).saturating_add(1);
                hooks.insert(
                    hook,
                    UnresponsiveHook {
                        in_a_row,
                        last: fault.clone(),
                        until,
                    },
                );
            }
            _ => drop(hooks.remove(&hook)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_hook_that_does_not_answer_is_asked_once_in_a_while() {
        let (breaker, late) = (
            Breaker::default(),
            Fault::new(FaultKind::Deadline, "no answer within 30 s"),
        );
        let ask = |answer: Result<(), &Fault>| {
            let asked = breaker.check("a");
            if asked.is_ok() {
                breaker.note("a".to_owned(), answer);
            }
            asked
        };
        let wrong = Fault::new(FaultKind::BadReply, "no JSON");
        for answer in [Err(&late), Err(&late), Err(&wrong), Err(&late), Err(&late), Err(&late)] {
            ask(answer).unwrap();
        }
        let refused = ask(Ok(())).unwrap_err();
        assert_eq!(refused.kind, FaultKind::Deadline);
        assert_eq!(
            refused.message,
            "no answer within 30 s; not called again after 3 failures in a row"
        );
        breaker.check("b").unwrap();
        tokio::time::advance(PAUSE).await;
        breaker.check("a").unwrap();
        breaker.check("a").unwrap_err();
        breaker.note("a".to_owned(), Err(&late));
        tokio::time::advance(PAUSE).await;
        ask(Ok(())).unwrap();
        ask(Ok(())).unwrap();
    }
}
