//! Time frame of a trial.

/// Time frame of the faults and of the fault-free period after them, in seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Timing {
    /// Earliest start of a fault; everything is placed by then.
    pub(super) from_s: u64,
    /// Latest end of the last fault.
    pub(super) until_s: u64,
    /// Maximum duration of one fault.
    pub(super) lasts_max_s: u64,
    /// Length of the fault-free period at the end, in addition to the scenario's timers if [`Self::counts_timers`].
    pub(super) quiet_s: u64,
    /// True if the longest timers of the scenario have to expire as well.
    pub(super) counts_timers: bool,
}

impl Timing {
    /// Time frame of handwritten scenarios with production timers.
    pub(super) const LONG: Self = Self {
        from_s: 30,
        until_s: 480,
        lasts_max_s: 180,
        quiet_s: 300,
        counts_timers: true,
    };
    /// Time frame of random federations, whose timers are either short or too long to wait for.
    pub(super) const SHORT: Self = Self {
        from_s: 20,
        until_s: 200,
        lasts_max_s: 80,
        quiet_s: 180,
        counts_timers: false,
    };
}
