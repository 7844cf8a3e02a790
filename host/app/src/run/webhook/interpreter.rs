//! Karmada's questions to its interpreter, answered by plugins.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use bulkhead_api::webhook::serve;
use bulkhead_controllers::{Lane, Pool, PoolLimits};
use bulkhead_core::time::Time;
use bulkhead_plugin::Registry;

/// Where questions are posted.
pub(super) const PATH: &str = "/interpret";

/// Threads for questions, apart from those of the controllers, and questions that may wait for them.
const LIMITS: PoolLimits = PoolLimits { threads: 4, lane_threads: 4, waiting: 64 };
/// How long an answer may take. Karmada waits ten seconds by default.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(10);

/// Plugins that answer Karmada's interpreter, on threads of their own: any caller may ask, and controllers do not wait
/// for callers.
#[derive(Clone)]
pub(in crate::run) struct Interpreter {
    pub(super) registry: Arc<Registry>,
    pool: Arc<Pool>,
}

impl Interpreter {
    /// # Errors
    ///
    /// If the system refuses a thread.
    pub(in crate::run) fn new(registry: Arc<Registry>) -> anyhow::Result<Self> {
        let pool = Pool::start("interpret", LIMITS).context("starting the threads of the interpreter")?;
        Ok(Self { registry, pool: Arc::new(pool) })
    }

    /// Answers a question.
    ///
    /// # Errors
    ///
    /// If the request is no question, or [`Unanswered`](bulkhead_controllers::Unanswered) if plugins are busy.
    pub(super) async fn answer(self, body: bytes::Bytes) -> anyhow::Result<Vec<u8>> {
        let (registry, now) = (self.registry, Time::new(crate::run::now()));
        let work = move || serve::answer(&registry.policies(), &body, now);
        let answered = self.pool.run(Lane::of_work("interpret"), ANSWER_TIME_MAX, work).await?;
        Ok(serde_json::to_vec(&answered.map_err(anyhow::Error::msg)?)?)
    }
}
