//! Limits of one call of a plugin.

use serde::{Deserialize, Serialize};

/// Limits of one call. Every call has a budget; there are no unlimited calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct Budget {
    /// Maximum number of steps: fuel units for a component (about one per instruction), interrupt checks for a script
    /// (loop iterations and function calls). Deterministic: the same call uses the same number.
    pub steps: u64,
    /// Maximum wall-clock time in milliseconds, as a backstop for work that steps do not count.
    pub wall_clock_ms: u64,
    /// Maximum memory of the instance or of the script's state, in bytes.
    pub memory_bytes: usize,
    /// Maximum size of a reply of the guest, in bytes.
    pub reply_bytes: usize,
}

impl Default for Budget {
    /// Returns a budget of 10 million steps, five seconds, 64 MiB of memory and 1 MiB of reply.
    ///
    /// The steps take a script about 0.2 s. Even on a loaded machine they run out long before the wall-clock time, so
    /// the outcome does not depend on the machine. Karmada gives a script one second.
    fn default() -> Self {
        Self {
            steps: 10_000_000,
            wall_clock_ms: 5_000,
            memory_bytes: 64 << 20,
            reply_bytes: 1 << 20,
        }
    }
}
