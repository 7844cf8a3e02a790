//! What a call has used up.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use bulkhead_core::policy::{Fault, FaultKind};
use bulkhead_plugin::Budget;
use mlua::{Lua, VmState};

use crate::fault::position;

/// Steps between two looks at the clock: few, because one step may be a long library call.
const STEPS_PER_LOOK: u64 = 16;

/// Steps and time of one state. Once it has stopped it stays stopped: a script that catches the error gets it
/// again at its next step, and a script that returns regardless has its reply thrown away.
pub(crate) struct Meter {
    steps_left: AtomicU64,
    budget: Budget,
    deadline: Instant,
    stopped: OnceLock<Fault>,
}

/// Raised in the script when it has to stop. What it means is in the meter.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("the budget of the call is used up")]
struct UsedUp;

impl Meter {
    pub(crate) fn new(budget: Budget) -> Self {
        let deadline = Instant::now() + Duration::from_millis(budget.wall_clock_ms);
        Self { steps_left: AtomicU64::new(budget.steps), budget, deadline, stopped: OnceLock::new() }
    }

    /// Why the call was stopped, if it was.
    pub(crate) fn stopped(&self) -> Option<&Fault> {
        self.stopped.get()
    }

    /// Called at every loop iteration, call, return and pattern match step. The counter needs no exchange: a
    /// state is used by one thread at a time.
    pub(crate) fn step(&self, lua: &Lua) -> mlua::Result<VmState> {
        let left = self.steps_left.load(Ordering::Relaxed);
        let fault = if left == 0 {
            (FaultKind::OutOfFuel, format!("used up its {} steps", self.budget.steps))
        } else if left.is_multiple_of(STEPS_PER_LOOK) && Instant::now() > self.deadline {
            (FaultKind::Deadline, format!("took longer than {} ms", self.budget.wall_clock_ms))
        } else {
            if self.stopped.get().is_some() {
                return Err(mlua::Error::external(UsedUp));
            }
            self.steps_left.store(left - 1, Ordering::Relaxed);
            return Ok(VmState::Continue);
        };
        let (kind, message) = fault;
        self.stopped.get_or_init(|| Fault::new(kind, format!("{}{message}", position(lua))));
        Err(mlua::Error::external(UsedUp))
    }
}
