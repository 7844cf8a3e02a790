//! Interpreter webhook for Karmada, served by plugins.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use bulkhead_api::webhook::serve;
use bulkhead_controllers::{Lane, Pool, PoolLimits};
use bulkhead_core::time::Time;
use bulkhead_plugin::Registry;
use serde_json::Value;
use tracing::{Span, warn};

use super::operations::OfferedOperations;

/// Timeout of the interpreter in seconds, the shortest that Karmada accepts. Each request to a process that hangs
/// occupies one of Karmada's few workers for this time.
pub(super) const INTERPRETER_TIMEOUT_S: u32 = 1;

/// Path of interpreter requests.
pub(super) const PATH: &str = "/interpret";

/// Limits of the threads for requests, which are separate from those of the controllers, and of the waiting
/// requests.
const LIMITS: PoolLimits = PoolLimits {
    threads: 4,
    lane_threads: 4,
    waiting: 64,
};
/// Code of a response about a fault, or about a policy without a verdict.
const FAULT: i64 = 500;
/// Timeout of a response. Karmada does not wait longer, so a later one is of no use.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(INTERPRETER_TIMEOUT_S as u64);

/// Plugins behind Karmada's interpreter, on separate threads: any caller may send requests, and controllers must not
/// wait for them.
#[derive(Clone)]
pub(crate) struct Interpreter {
    pub(super) registry: Arc<Registry>,
    /// Operations that are registered.
    pub(super) offered: OfferedOperations,
    pool: Arc<Pool>,
}

impl Interpreter {
    /// Starts the threads.
    ///
    /// # Errors
    ///
    /// The system cannot create a thread.
    pub(crate) fn new(registry: Arc<Registry>, offered: OfferedOperations) -> anyhow::Result<Self> {
        let pool = Pool::start("interpret", LIMITS).context("starting the threads of the interpreter")?;
        Ok(Self {
            registry,
            offered,
            pool: Arc::new(pool),
        })
    }

    /// Answers an interpreter request.
    ///
    /// # Errors
    ///
    /// The request is malformed, or [`Unanswered`](bulkhead_controllers::Unanswered) if the plugins are busy.
    pub(super) async fn answer(self, body: bytes::Bytes) -> anyhow::Result<Vec<u8>> {
        let (registry, now) = (self.registry, Time::new(crate::now()));
        let span = Span::current();
        let work = move || span.in_scope(|| serve::answer(&registry.policies(), &body, now));
        let answered = self.pool.run(Lane::of_work("interpret"), ANSWER_TIME_MAX, work).await?;
        let answer = answered.map_err(anyhow::Error::msg)?;
        if let Some(fault) = fault(&answer) {
            warn!(target: "bulkhead::plugin", "interpreter: {fault}");
        }
        Ok(serde_json::to_vec(&answer)?)
    }
}

/// Returns the message of a response about a fault, or about a policy without a verdict. Karmada logs it too, but
/// authors of plugins read this log.
fn fault(response: &Value) -> Option<&str> {
    let status = &response["response"]["status"];
    status["message"].as_str().filter(|_| status["code"] == FAULT)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_faults_are_logged() {
        let response = |code: i64| json!({"response": {"uid": "1", "successful": false, "status": {"code": code, "message": "no"}}});
        assert_eq!(fault(&response(500)), Some("no"));
        assert_eq!(fault(&response(501)), None);
        assert_eq!(fault(&json!({"response": {"uid": "1", "successful": true}})), None);
    }
}
