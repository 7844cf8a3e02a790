use serde::{Deserialize, Serialize};

/// What one call may cost. Every call has one; there is no unlimited call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct Budget {
    /// Steps: fuel units for a component (about one per instruction), interrupt checks for a script (loop
    /// iterations and function calls). Deterministic: the same call uses the same number.
    pub steps: u64,
    /// Wall-clock backstop for what steps do not count, in milliseconds.
    pub wall_clock_ms: u64,
    /// Memory of the instance or of the script's state, in bytes.
    pub memory_bytes: usize,
    /// Size of a reply that crosses from the guest, in bytes.
    pub reply_bytes: usize,
}

impl Default for Budget {
    /// 10 million steps, five seconds, 64 MiB, 1 MiB of reply.
    ///
    /// The steps take about 0.2 s of a script, so that on a loaded machine too they run out long before the wall
    /// clock does, and the outcome does not depend on the machine. Karmada gives a script one second.
    fn default() -> Self {
        Self { steps: 10_000_000, wall_clock_ms: 5_000, memory_bytes: 64 << 20, reply_bytes: 1 << 20 }
    }
}
