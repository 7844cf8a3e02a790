//! Log of interpreter requests that plugins failed to answer. Karmada logs the messages too, but authors of plugins read
//! this log.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use serde_json::Value;
use tokio::time::Instant;

/// Interval at which the same message is logged again.
const REPEAT_INTERVAL: Duration = Duration::from_mins(10);
/// Maximum number of messages whose time is remembered. Messages may contain names of objects.
const REMEMBERED_MAX: usize = 128;
/// Code of a response about a fault, or about a policy without a verdict.
const FAULT: i64 = 500;

/// Messages that were logged, with the time.
#[derive(Default)]
pub(super) struct FaultLog(Mutex<BTreeMap<String, Instant>>);

impl FaultLog {
    /// Returns the line to log about a response; `None` if it is an answer, or if the same message was logged lately.
    pub(super) fn line(&self, response: &Value, now: Instant) -> Option<String> {
        let status = &response["response"]["status"];
        let message = status["message"].as_str().filter(|_| status["code"] == FAULT)?;
        let mut logged = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        logged.retain(|_, at| now.duration_since(*at) < REPEAT_INTERVAL);
        if logged.contains_key(message) || logged.len() >= REMEMBERED_MAX {
            return None;
        }
        logged.insert(message.to_owned(), now);
        Some(format!("interpreter: {message}"))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_fault_is_logged_once_and_again_later() {
        let response = |code: i64, message: &str| json!({"response": {"uid": "1", "successful": false, "status": {"code": code, "message": message}}});
        let (log, start) = (FaultLog::default(), Instant::now());
        let endless = response(500, "PluginOutOfFuel: plugin endless used up its steps");
        let line = "interpreter: PluginOutOfFuel: plugin endless used up its steps";
        assert_eq!(log.line(&endless, start).as_deref(), Some(line));
        assert_eq!(log.line(&endless, start + REPEAT_INTERVAL / 2), None);
        assert!(log.line(&response(500, "PluginTrap: plugin broken"), start).is_some());
        assert_eq!(log.line(&endless, start + REPEAT_INTERVAL).as_deref(), Some(line));
        assert_eq!(log.line(&response(501, "no plugin answers Retain for Job"), start), None);
        assert_eq!(log.line(&json!({"response": {"uid": "1", "successful": true}}), start), None);
    }

    #[test]
    fn messages_without_end_are_not_remembered_without_end() {
        let (log, now) = (FaultLog::default(), Instant::now());
        let line = |number: usize| {
            log.line(&json!({"response": {"status": {"code": 500, "message": format!("object {number}")}}}), now)
        };
        assert_eq!((0..2 * REMEMBERED_MAX).filter_map(line).count(), REMEMBERED_MAX);
    }
}
