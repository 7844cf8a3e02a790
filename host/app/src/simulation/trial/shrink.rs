//! What is the least that has to go wrong?

use super::{Failure, TrialOptions, Trouble, attempt, failure_file, write};
use crate::report::Violation;
use crate::scenario::Loaded;

/// Most trials to make a failure smaller.
const ATTEMPTS_MAX: usize = 200;

/// Leaves out whatever is not needed to break the same promise, and writes what is left to a file.
pub(super) fn shrink(
    scenario: &Loaded,
    options: &TrialOptions,
    seed: u64,
    troubles: Vec<Trouble>,
    violations: Vec<Violation>,
) -> anyhow::Result<Failure> {
    let before = troubles.len();
    let broken = violations.first().map(|violation| violation.invariant).unwrap_or_default();
    let mut least = Least { troubles, violations };
    let mut attempts = 0;
    let mut try_without = |least: &mut Least, left: Vec<Trouble>| -> anyhow::Result<bool> {
        attempts += 1;
        let outcome = attempt(scenario, &options.engines, seed, &left)?;
        let same = outcome.violations.iter().any(|violation| violation.invariant == broken);
        if same {
            *least = Least { troubles: left, violations: outcome.violations };
        }
        Ok(same && attempts < ATTEMPTS_MAX)
    };
    // First halves, then one after the other, until nothing more can be left out.
    let mut size = before.div_ceil(2);
    while size > 0 {
        let (mut start, mut shrunk) = (0, false);
        while start < least.troubles.len() {
            let mut left = least.troubles.clone();
            left.drain(start..(start + size).min(left.len()));
            if try_without(&mut least, left)? { shrunk = true } else { start += size }
        }
        if !shrunk || size > 1 {
            size /= 2;
        }
    }
    let Least { troubles, violations } = least;
    let file = failure_file(&options.file, seed);
    write::scenario(&options.file, &file, &super::staged(scenario, &troubles), seed)?;
    Ok(Failure { seed, violations, troubles: (before, troubles.len()), file })
}

/// The smallest that still breaks the promise.
struct Least {
    troubles: Vec<Trouble>,
    violations: Vec<Violation>,
}
