//! Limits of one call of a plugin, and limits of those limits.

use std::fmt;

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

/// Maximum budget of a plugin. An absent limit permits any value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct BudgetLimits {
    /// Maximum of `budget.steps`.
    pub steps: Option<u64>,
    /// Maximum of `budget.wallClockMs`, in milliseconds.
    pub wall_clock_ms: Option<u64>,
    /// Maximum of `budget.memoryBytes`, in bytes.
    pub memory_bytes: Option<usize>,
}

/// Field of a budget that is above its limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Excess {
    /// Field, as a manifest has it.
    pub field: &'static str,
    /// Value of the plugin.
    pub demand: u64,
    /// Maximum.
    pub limit: u64,
}

impl fmt::Display for Excess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { field, demand, limit } = self;
        write!(f, "budget.{field} of {demand} is above the maximum of {limit}")
    }
}

impl BudgetLimits {
    /// Returns the limits by field, as a manifest has it.
    fn by_field(&self) -> [(&'static str, Option<u64>); 3] {
        [
            ("steps", self.steps),
            ("wallClockMs", self.wall_clock_ms),
            ("memoryBytes", self.memory_bytes.map(of_size)),
        ]
    }

    /// Returns the first field of a budget that is above its limit; `None` if the budget is permitted.
    pub fn excess(&self, budget: &Budget) -> Option<Excess> {
        let demands = [budget.steps, budget.wall_clock_ms, of_size(budget.memory_bytes)];
        let mut compared = self.by_field().into_iter().zip(demands);
        compared.find_map(|((field, limit), demand)| {
            let limit = limit.filter(|limit| demand > *limit)?;
            Some(Excess { field, demand, limit })
        })
    }

    /// Returns the first field whose limit is zero, so that no plugin could answer.
    pub fn zero(&self) -> Option<&'static str> {
        let mut limits = self.by_field().into_iter();
        limits.find_map(|(field, limit)| (limit == Some(0)).then_some(field))
    }
}

fn of_size(bytes: usize) -> u64 {
    u64::try_from(bytes).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_is_compared_field_by_field() {
        let check = |limits: BudgetLimits, expected: Option<&str>| {
            let excess = limits.excess(&Budget::default()).map(|excess| excess.to_string());
            assert_eq!(excess.as_deref(), expected, "{limits:?}");
        };
        let none = BudgetLimits::default();
        check(none, None);
        let equal = BudgetLimits {
            steps: Some(10_000_000),
            wall_clock_ms: Some(5_000),
            memory_bytes: Some(64 << 20),
        };
        check(equal, None);
        let steps = Some(9_999_999);
        check(
            BudgetLimits { steps, ..equal },
            Some("budget.steps of 10000000 is above the maximum of 9999999"),
        );
        let wall_clock_ms = Some(1_000);
        check(
            BudgetLimits { wall_clock_ms, ..none },
            Some("budget.wallClockMs of 5000 is above the maximum of 1000"),
        );
        let memory_bytes = Some(1);
        check(
            BudgetLimits { memory_bytes, ..none },
            Some("budget.memoryBytes of 67108864 is above the maximum of 1"),
        );
        assert_eq!((equal.zero(), none.zero()), (None, None));
        let memory_bytes = Some(0);
        assert_eq!(BudgetLimits { memory_bytes, ..equal }.zero(), Some("memoryBytes"));
    }
}
