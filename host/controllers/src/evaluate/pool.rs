//! Fixed pool of threads that policies run on, with one queue per lane.
//!
//! A lane is one controller together with the plugins that a decision calls. Threads serve lanes in turn, and a lane
//! occupies only some of them, so a slow plugin delays only the decisions that call it.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use bulkhead_core::policy::{EngineKind, Policy, PolicySet};
use tokio::sync::oneshot;

/// Amount by which the scheduling priority of policy threads is lowered (Unix `nice`). Probes and leases go first
/// when processors are scarce.
#[cfg(target_os = "linux")]
const NICE: i32 = 5;

/// A controller and the plugins that one of its decisions calls.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Lane {
    controller: &'static str,
    plugins: Vec<String>,
}

impl Lane {
    /// Returns the lane of a decision that calls the policies that `asks` selects.
    pub fn of(controller: &'static str, policies: &PolicySet, asks: impl Fn(&dyn Policy) -> bool) -> Self {
        let plugins = policies.iter().filter(|policy| is_guest(*policy) && asks(*policy));
        Self {
            controller,
            plugins: plugins.map(|policy| policy.id().name.clone()).collect(),
        }
    }

    /// Returns the lane of other work of a controller that may take long.
    pub fn of_work(controller: &'static str) -> Self {
        Self {
            controller,
            plugins: vec![String::new()],
        }
    }

    /// True if no plugin is called. Such a decision takes microseconds.
    pub(crate) fn is_host_only(&self) -> bool {
        self.plugins.is_empty()
    }
}

/// True for policies that run code from outside the program, which may use their full time limit.
pub(crate) fn is_guest(policy: &dyn Policy) -> bool {
    matches!(policy.id().engine, EngineKind::Wasm | EngineKind::Lua)
}

/// Bounds of a pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PoolLimits {
    /// Number of threads, all started with the pool.
    pub threads: usize,
    /// Maximum number of threads that one lane may occupy.
    pub lane_threads: usize,
    /// Maximum number of decisions that wait for a thread. Further ones are refused.
    pub waiting: usize,
}

impl PoolLimits {
    /// Returns the limits for the controllers of one process on a machine with that many processors. Six slow plugins
    /// occupy all threads of the smallest pool; other lanes then wait for one call, because threads serve lanes in
    /// turn.
    pub fn for_processors(processors: usize) -> Self {
        let lane_threads = (processors / 2).clamp(2, 8);
        Self {
            threads: (8 + 2 * processors).clamp(12, 48),
            lane_threads,
            waiting: 4_096,
        }
    }
}

/// Reason why a job has no result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unanswered {
    /// The job did not end in time, counted from its submission.
    #[error("plugins did not answer within {} s", .0.as_secs_f64())]
    Deadline(Duration),
    /// The queue is full.
    #[error("too many decisions wait for plugins")]
    QueueFull,
}

impl Unanswered {
    /// Returns the reason as the value of a label.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Deadline(_) => "deadline",
            Self::QueueFull => "queue_full",
        }
    }
}

/// Fixed pool of threads with a queue per lane.
#[derive(Debug)]
pub struct Pool(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    limits: PoolLimits,
    state: Mutex<State>,
    work: Condvar,
}

type Job = Box<dyn FnOnce() + Send>;

#[derive(Default)]
struct State {
    lanes: BTreeMap<Lane, Queue>,
    /// Lanes with waiting jobs, in the order in which they are served.
    round_robin: VecDeque<Lane>,
    waiting: usize,
    is_closed: bool,
}

#[derive(Default)]
struct Queue {
    jobs: VecDeque<Job>,
    running: usize,
}

impl std::fmt::Debug for State {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("State")
            .field("waiting", &self.waiting)
            .finish_non_exhaustive()
    }
}

impl Pool {
    /// Starts the threads. They end after their current job when the pool is dropped.
    ///
    /// # Errors
    ///
    /// If the system refuses a thread.
    pub fn start(name: &str, limits: PoolLimits) -> io::Result<Self> {
        let shared = Arc::new(Shared {
            limits,
            state: Mutex::default(),
            work: Condvar::new(),
        });
        let pool = Self(Arc::clone(&shared));
        for number in 0..limits.threads {
            let shared = Arc::clone(&shared);
            thread::Builder::new()
                .name(format!("{name}-{number}"))
                .spawn(move || shared.serve())?;
        }
        Ok(pool)
    }

    /// Runs a job on a thread of the pool. A job that did not start in time is dropped. One that started runs to its
    /// end, and its result is discarded.
    ///
    /// # Errors
    ///
    /// If the queue is full or the job does not end in time.
    ///
    /// # Panics
    ///
    /// If the job panics.
    pub async fn run<T: Send + 'static>(
        &self,
        lane: Lane,
        limit: Duration,
        job: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Unanswered> {
        let (sender, result) = oneshot::channel();
        let job = move || {
            if !sender.is_closed() {
                let _ = sender.send(catch_unwind(AssertUnwindSafe(job)));
            }
        };
        self.0.push(lane, Box::new(job))?;
        match tokio::time::timeout(limit, result).await {
            Ok(Ok(Ok(value))) => Ok(value),
            Ok(Ok(Err(panic))) => resume_unwind(panic),
            // The sender is dropped only with the pool, which `self` keeps.
            Ok(Err(_)) | Err(_) => Err(Unanswered::Deadline(limit)),
        }
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        self.0.lock().is_closed = true;
        self.0.work.notify_all();
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn push(&self, lane: Lane, job: Job) -> Result<(), Unanswered> {
        let mut state = self.lock();
        if state.waiting >= self.limits.waiting {
            return Err(Unanswered::QueueFull);
        }
        state.waiting += 1;
        let jobs = &mut state.lanes.entry(lane.clone()).or_default().jobs;
        jobs.push_back(job);
        if jobs.len() == 1 {
            state.round_robin.push_back(lane);
        }
        drop(state);
        self.work.notify_one();
        Ok(())
    }

    /// Runs jobs until the pool is dropped.
    fn serve(&self) {
        lower_priority();
        let mut state = self.lock();
        while !state.is_closed {
            let Some((lane, job)) = state.take(self.limits.lane_threads) else {
                state = self.work.wait(state).unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            drop(state);
            job();
            state = self.lock();
            // This thread serves the next lane itself.
            state.end(&lane);
        }
    }
}

impl State {
    /// Takes the next job of the next lane that has a free thread, and moves the lane to the end of that order.
    fn take(&mut self, lane_threads: usize) -> Option<(Lane, Job)> {
        let has_room = |lane: &Lane| self.lanes.get(lane).is_some_and(|queue| queue.running < lane_threads);
        let next = self.round_robin.iter().position(has_room)?;
        let lane = self.round_robin.remove(next)?;
        let queue = self.lanes.get_mut(&lane)?;
        let job = queue.jobs.pop_front()?;
        queue.running += 1;
        self.waiting -= 1;
        if !queue.jobs.is_empty() {
            self.round_robin.push_back(lane.clone());
        }
        Some((lane, job))
    }

    /// Records the end of a job.
    fn end(&mut self, lane: &Lane) {
        let Some(queue) = self.lanes.get_mut(lane) else { return };
        queue.running -= 1;
        if queue.running == 0 && queue.jobs.is_empty() {
            self.lanes.remove(lane);
        }
    }
}

/// Lowers the priority of the calling thread. On Linux `setpriority` with process 0 applies to the thread.
fn lower_priority() {
    #[cfg(target_os = "linux")]
    {
        // A failure is harmless: the threads then run at normal priority.
        let _ = rustix::process::setpriority_process(None, NICE);
    }
}

#[cfg(test)]
mod tests;
