//! Resource usage of a call.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use bulkhead_core::manifest::Budget;
use bulkhead_core::policy::{Fault, FaultKind};
use mlua::{Lua, VmState};

use crate::position::position;

/// Steps between two checks of the clock and the memory. The number is low, because one step may be a long library
/// call.
const STEPS_PER_LOOK: u64 = 16;

/// Maximum number of refusals per call. Each leaves an error behind, which the script may keep and the memory limit
/// hardly counts.
const REFUSALS_MAX: u64 = 1_000;

/// Memory limit value that means no limit.
pub(crate) const UNLIMITED: usize = 0;

/// Returns the garbage in bytes that is tolerated within a call and between calls. A collection costs as much for one
/// call as for a hundred, so it is deferred until it is worthwhile.
pub(crate) fn garbage_bytes_max(budget: Budget) -> usize {
    (1 << 20).min(budget.memory_bytes / 4)
}

/// Steps and time of one call, and the start of garbage collection.
///
/// Once stopped, the meter stays stopped, and its state answers no other call. A script that catches the error gets
/// it again at its next step; the reply of a script that returns regardless is discarded.
///
/// The counters need no synchronization: only one thread at a time uses a state.
pub(crate) struct Meter {
    budget: Budget,
    steps_left: AtomicU64,
    /// Start of `deadline_ns`.
    origin: Instant,
    deadline_ns: AtomicU64,
    /// Memory use of the state in bytes above which garbage is collected. After that, the collector runs
    /// automatically.
    collect_at_bytes: AtomicUsize,
    /// Maximum memory use of the state while a script runs, in bytes.
    limit_bytes: AtomicUsize,
    /// Memory use in bytes above which the position of the script is kept: the place to name if it uses up its memory.
    watermark_bytes: AtomicUsize,
    /// Position at the last watermark, as `origin:line: `; empty if there was none.
    grown_at: Mutex<String>,
    /// Memory use at the start of the call that does not count against its limit, in bytes.
    left_bytes: AtomicUsize,
    /// Highest memory use of the state that was seen during the call, in bytes.
    peak_bytes: AtomicUsize,
    refusals: AtomicU64,
    stopped: OnceLock<Fault>,
}

/// Resources of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Spent {
    /// Steps.
    pub(crate) steps: u64,
    /// Highest memory use of the state that was seen, including its library and without what earlier calls left
    /// behind, in bytes. The memory limit of the plugin bounds it.
    pub(crate) memory_bytes: usize,
}

/// Error raised in a script that has to stop. The cause is in the meter.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("the budget of the call is used up")]
struct BudgetExhausted;

impl Meter {
    /// Creates a meter at rest.
    pub(crate) fn new(budget: Budget) -> Self {
        let meter = Self {
            budget,
            steps_left: AtomicU64::default(),
            origin: Instant::now(),
            deadline_ns: AtomicU64::default(),
            collect_at_bytes: AtomicUsize::default(),
            limit_bytes: AtomicUsize::new(budget.memory_bytes),
            watermark_bytes: AtomicUsize::default(),
            grown_at: Mutex::default(),
            left_bytes: AtomicUsize::default(),
            peak_bytes: AtomicUsize::default(),
            refusals: AtomicU64::default(),
            stopped: OnceLock::new(),
        };
        meter.rest();
        meter
    }

    /// Suspends the limits while the host's own code runs.
    pub(crate) fn rest(&self) {
        self.set(u64::MAX, u64::MAX, usize::MAX);
    }

    /// Starts the budget of the next script. The state uses `used_bytes` now, including `left_bytes` from earlier
    /// calls, which do not count against the call's memory limit.
    pub(crate) fn begin(&self, used_bytes: usize, left_bytes: usize) {
        let deadline = self.origin.elapsed() + Duration::from_millis(self.budget.wall_clock_ms);
        let deadline_ns = u64::try_from(deadline.as_nanos()).unwrap_or(u64::MAX);
        self.set(
            self.budget.steps,
            deadline_ns,
            used_bytes + garbage_bytes_max(self.budget),
        );
        self.limit_bytes
            .store(self.budget.memory_bytes + left_bytes, Ordering::Relaxed);
        self.watermark_bytes
            .store(used_bytes + self.budget.memory_bytes / 8, Ordering::Relaxed);
        self.grown_at.lock().unwrap_or_else(PoisonError::into_inner).clear();
        self.left_bytes.store(left_bytes, Ordering::Relaxed);
        self.peak_bytes.store(used_bytes, Ordering::Relaxed);
    }

    /// Returns the resources of the call that ends, after which the state uses `used_bytes`. The meter must not have
    /// come to rest in the meantime.
    pub(crate) fn spent(&self, used_bytes: usize) -> Spent {
        let peak_bytes = self.peak_bytes.load(Ordering::Relaxed).max(used_bytes);
        Spent {
            steps: self
                .budget
                .steps
                .saturating_sub(self.steps_left.load(Ordering::Relaxed)),
            memory_bytes: peak_bytes.saturating_sub(self.left_bytes.load(Ordering::Relaxed)),
        }
    }

    /// Returns an error once the deadline is over. A later result does not count, regardless of the cause of the
    /// delay.
    pub(crate) fn in_time(&self) -> Result<(), Fault> {
        if self.is_late() {
            Err(Fault::new(FaultKind::Deadline, self.late()))
        } else {
            Ok(())
        }
    }

    fn is_late(&self) -> bool {
        self.origin.elapsed().as_nanos() >= u128::from(self.deadline_ns.load(Ordering::Relaxed))
    }

    fn late(&self) -> String {
        format!("took longer than {} ms", self.budget.wall_clock_ms)
    }

    /// Returns the maximum memory use of the state while a script runs, in bytes.
    pub(crate) fn limit_bytes(&self) -> usize {
        self.limit_bytes.load(Ordering::Relaxed)
    }

    fn set(&self, steps_left: u64, deadline_ns: u64, collect_at_bytes: usize) {
        self.steps_left.store(steps_left, Ordering::Relaxed);
        self.deadline_ns.store(deadline_ns, Ordering::Relaxed);
        self.collect_at_bytes.store(collect_at_bytes, Ordering::Relaxed);
        self.watermark_bytes.store(usize::MAX, Ordering::Relaxed);
        self.refusals.store(0, Ordering::Relaxed);
    }

    /// Returns the reason why the call was stopped, if it was.
    pub(crate) fn stopped(&self) -> Option<&Fault> {
        self.stopped.get()
    }

    /// Charges one step. Called at every loop iteration, call, return and pattern match step.
    pub(crate) fn step(&self, lua: &Lua) -> mlua::Result<VmState> {
        let remaining = self.steps_left.load(Ordering::Relaxed);
        if remaining == 0 {
            return self.stop(lua, FaultKind::OutOfFuel, self.used_up());
        }
        if self.stopped.get().is_some() {
            return Err(mlua::Error::external(BudgetExhausted));
        }
        if remaining.is_multiple_of(STEPS_PER_LOOK) {
            if self.is_late() {
                return self.stop(lua, FaultKind::Deadline, self.late());
            }
            let used_bytes = lua.used_memory();
            self.peak_bytes.fetch_max(used_bytes, Ordering::Relaxed);
            if used_bytes > self.watermark_bytes.load(Ordering::Relaxed) {
                self.watermark_bytes
                    .store(used_bytes + used_bytes / 4, Ordering::Relaxed);
                *self.grown_at.lock().unwrap_or_else(PoisonError::into_inner) = position(lua);
            }
            if used_bytes > self.collect_at_bytes.load(Ordering::Relaxed) {
                self.collect(lua)?;
            }
        }
        self.steps_left.store(remaining - 1, Ordering::Relaxed);
        Ok(VmState::Continue)
    }

    /// Charges the work of a host function, then checks the clock, because that work may have taken long.
    pub(crate) fn spend(&self, lua: &Lua, steps: u64) -> mlua::Result<()> {
        if self.stopped.get().is_some() {
            return Err(mlua::Error::external(BudgetExhausted));
        }
        let Some(remaining) = self.steps_left.load(Ordering::Relaxed).checked_sub(steps) else {
            self.steps_left.store(0, Ordering::Relaxed);
            return self.stop(lua, FaultKind::OutOfFuel, self.used_up()).map(drop);
        };
        self.steps_left.store(remaining, Ordering::Relaxed);
        if self.is_late() {
            self.stop(lua, FaultKind::Deadline, self.late()).map(drop)
        } else {
            Ok(())
        }
    }

    /// Counts a refusal and stops the script if there are too many.
    pub(crate) fn refuse(&self, lua: &Lua) -> mlua::Result<()> {
        let refusals = self.refusals.fetch_add(1, Ordering::Relaxed);
        if refusals < REFUSALS_MAX {
            return self.spend(lua, 1);
        }
        let message = format!("more than {REFUSALS_MAX} of its calls were refused");
        self.stop(lua, FaultKind::Denied, message).map(drop)
    }

    /// Returns the message about a script that used up its memory, with the place where it grew.
    pub(crate) fn out_of_memory(&self) -> String {
        let place = self.grown_at.lock().unwrap_or_else(PoisonError::into_inner);
        format!("{place}used up its memory of {} bytes", self.budget.memory_bytes)
    }

    fn used_up(&self) -> String {
        format!("used up its {} steps", self.budget.steps)
    }

    fn stop(&self, lua: &Lua, kind: FaultKind, message: String) -> mlua::Result<VmState> {
        self.stopped
            .get_or_init(|| Fault::new(kind, format!("{}{message}", position(lua))));
        Err(mlua::Error::external(BudgetExhausted))
    }

    /// Frees the garbage of earlier calls, so that the memory limit means the same as in a new state. From here on
    /// the collector runs automatically.
    fn collect(&self, lua: &Lua) -> mlua::Result<()> {
        self.collect_at_bytes.store(usize::MAX, Ordering::Relaxed);
        lua.gc_collect()?;
        // Earlier calls have left nothing, so the limit needs no allowance.
        self.limit_bytes.store(self.budget.memory_bytes, Ordering::Relaxed);
        lua.set_memory_limit(self.budget.memory_bytes)?;
        Ok(())
    }
}
