//! Interpreter webhook for Karmada, served by plugins.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use bulkhead_api::webhook::serve::{self, Answer};
use bulkhead_controllers::{Lane, Pool, PoolLimits};
use bulkhead_core::time::Time;
use bulkhead_plugin::Registry;
use bulkhead_runtime::clock::Clock;
use kube::Client;
use tracing::{Span, warn};

use super::fault_events::FaultEvents;
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
    faults: Arc<FaultEvents>,
}

impl Interpreter {
    /// Starts the threads, and the writer of events about faults. Every process answers requests, so `client` writes
    /// without a permit.
    ///
    /// # Errors
    ///
    /// The system cannot create a thread.
    pub(crate) fn new(
        registry: Arc<Registry>,
        offered: OfferedOperations,
        client: Client,
        clock: Clock,
    ) -> anyhow::Result<Self> {
        let pool = Pool::start("interpret", LIMITS).context("starting the threads of the interpreter")?;
        Ok(Self {
            registry,
            offered,
            pool: Arc::new(pool),
            faults: Arc::new(FaultEvents::start(client, clock)),
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
        let Answer { response, failure } = answered.map_err(anyhow::Error::msg)?;
        if let Some(failure) = failure {
            // Karmada logs it too, but authors of plugins read this log.
            warn!(target: "bulkhead::plugin", "interpreter: {}", failure.message);
            self.faults.report(&failure);
        }
        Ok(serde_json::to_vec(&response)?)
    }
}
