//! Interpreter webhook for Karmada, served by plugins.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use bulkhead_api::webhook::serve;
use bulkhead_controllers::{Lane, Pool, PoolLimits};
use bulkhead_core::time::Time;
use bulkhead_plugin::Registry;
use tokio::time::Instant;

use super::fault_log::FaultLog;
use super::operations::OfferedOperations;

/// Path of interpreter requests.
pub(super) const PATH: &str = "/interpret";

/// Limits of the threads for requests, which are separate from those of the controllers, and of the waiting
/// requests.
const LIMITS: PoolLimits = PoolLimits { threads: 4, lane_threads: 4, waiting: 64 };
/// Timeout of a response. Karmada waits ten seconds by default.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(10);

/// Plugins behind Karmada's interpreter, on separate threads: any caller may send requests, and controllers must not
/// wait for them.
#[derive(Clone)]
pub(crate) struct Interpreter {
    pub(super) registry: Arc<Registry>,
    /// Operations that are registered.
    pub(super) offered: OfferedOperations,
    pool: Arc<Pool>,
    faults: Arc<FaultLog>,
}

impl Interpreter {
    /// Starts the threads.
    ///
    /// # Errors
    ///
    /// The system cannot create a thread.
    pub(crate) fn new(registry: Arc<Registry>, offered: OfferedOperations) -> anyhow::Result<Self> {
        let pool = Pool::start("interpret", LIMITS).context("starting the threads of the interpreter")?;
        Ok(Self { registry, offered, pool: Arc::new(pool), faults: Arc::default() })
    }

    /// Answers an interpreter request.
    ///
    /// # Errors
    ///
    /// The request is malformed, or [`Unanswered`](bulkhead_controllers::Unanswered) if the plugins are busy.
    pub(super) async fn answer(self, body: bytes::Bytes) -> anyhow::Result<Vec<u8>> {
        let (registry, now) = (self.registry, Time::new(crate::now()));
        let work = move || serve::answer(&registry.policies(), &body, now);
        let answered = self.pool.run(Lane::of_work("interpret"), ANSWER_TIME_MAX, work).await?;
        let answer = answered.map_err(anyhow::Error::msg)?;
        if let Some(line) = self.faults.line(&answer, Instant::now()) {
            crate::say(&line);
        }
        Ok(serde_json::to_vec(&answer)?)
    }
}
