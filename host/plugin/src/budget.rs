use serde::{Deserialize, Serialize};

/// What one call may cost. Every call has one; there is no unlimited call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
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
    /// 50 million steps, one second (Karmada's limit for a script), 64 MiB, 1 MiB of reply.
    fn default() -> Self {
        Self { steps: 50_000_000, wall_clock_ms: 1_000, memory_bytes: 64 << 20, reply_bytes: 1 << 20 }
    }
}
