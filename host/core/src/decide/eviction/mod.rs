//! Who is evicted next, and how fast: the queue between "this binding must leave" and the edit that makes it leave.
//!
//! * [`bucket`]: a rate that holds in any window of time.
//! * [`brake`]: how much of that rate is left when many clusters fail at once.
//! * [`target`]: whether there is a cluster to go to.
//! * [`pause`]: whether a person stopped evictions.
//! * [`judge`](mod@judge): all of that together, for one binding.
//! * [`queue`]: the order, and the one place where a slot is charged.
//!
//! Everything here is given the time. Rates go by a clock that only moves forward ([`Duration`](std::time::Duration)
//! since some start), so a wall clock that jumps neither opens nor closes them.

pub mod brake;
pub mod bucket;
pub mod judge;
pub mod pause;
pub mod queue;
pub mod target;

pub use brake::{Brake, BrakeBy, BrakeSettings, BrakeState};
pub use bucket::{Bucket, Rate};
pub use judge::{JudgeSnapshot, Judgement, judge};
pub use pause::{EvictionPause, PauseScope, Paused, paused};
pub use queue::{EvictionQueue, Finished, Limit, Next, Priority, Slot, Waiting};
pub use target::{PreCheck, has_target};
