//! Evictions: the detection that a binding must leave a cluster, the queue that limits their rate, and the edit that
//! evicts it.
//!
//! * [`taint_based`]: decision that a binding must leave a tainted cluster, and the edit that evicts it.
//! * [`bucket`]: rate limit that holds in any time window.
//! * [`brake`]: reduction of the rate when many clusters fail at once.
//! * [`target`]: check for a feasible target cluster.
//! * [`pause`]: eviction pauses set by an operator.
//! * [`judge`](mod@judge): combination of these checks for one binding.
//! * [`queue`]: order of evictions, and the only place that consumes slots.
//!
//! The time is always an argument. Rates use a monotonic clock ([`Duration`](std::time::Duration) since some start),
//! so jumps of the wall clock do not affect them.

pub mod brake;
pub mod bucket;
pub mod judge;
pub mod pause;
pub mod queue;
pub mod taint_based;
pub mod target;

pub use brake::{Brake, BrakeBy, BrakeSettings, BrakeState};
pub use bucket::{Bucket, Rate};
pub use judge::{JudgeSnapshot, Judgement, judge};
pub use pause::{EvictionPause, PauseScope, Paused, paused};
pub use queue::{EvictionQueue, Finished, Limit, Next, Priority, QueuedItem, QueuedState, Slot, Waiting};
pub use target::{PreCheck, has_target, would_return};
