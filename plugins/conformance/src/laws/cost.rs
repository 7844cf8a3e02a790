//! The law about cost per cluster.

use super::Examination;
use super::answers::is_over_budget;
use crate::call_result::fault_name;
use crate::inputs::{HUGE_CLUSTERS, with_clusters};
use crate::report::Outcome;

/// Numbers of clusters, each twice the previous one.
const SIZES: [usize; 3] = [HUGE_CLUSTERS / 4, HUGE_CLUSTERS / 2, HUGE_CLUSTERS];
/// Maximum ratio between the cost of the second doubling and that of the first. The ratio is 2 for linear work, 2.2
/// for n log n at these sizes, and 4 for quadratic work.
const GROWTH_MAX: u64 = 3;
/// Additional steps allowed, because growing memory is charged in large amounts.
const SLACK_STEPS: u64 = 5_000;

/// Compares the additional cost of each doubling of the clusters, so that the fixed cost of a call cancels out.
pub(super) fn linear(examined: &Examination<'_>) -> Outcome {
    let Some(sample) = examined
        .inputs
        .plain
        .iter()
        .find(|sample| with_clusters(sample, 1).is_some())
    else {
        return Outcome::skipped("none of its questions is about clusters");
    };
    let mut steps = [0; SIZES.len()];
    for (steps, count) in steps.iter_mut().zip(SIZES) {
        let Some(sample) = with_clusters(sample, count) else {
            continue;
        };
        let answer = examined.ask(&sample);
        if let Some(fault) = answer.fault().filter(|fault| is_over_budget(fault)) {
            let why = format!("with {count} clusters: {} ({fault})", fault_name(fault.kind));
            return if examined.subject.has_reduced_budget() {
                Outcome::skipped(why)
            } else {
                Outcome::failed(why)
            };
        }
        *steps = answer.steps;
    }
    let [some, more, most] = steps;
    if most == 0 {
        return Outcome::skipped("its engine does not meter steps");
    }
    if grows_too_fast(steps) {
        let [first, second, third] = SIZES;
        let counts = format!("{some} steps for {first} clusters, {more} for {second}, {most} for {third}");
        return Outcome::failed(format!(
            "{counts}: more than {GROWTH_MAX} times as much for the second doubling"
        ));
    }
    Outcome::Passed
}

fn grows_too_fast([some, more, most]: [u64; 3]) -> bool {
    let (first, second) = (more.saturating_sub(some), most.saturating_sub(more));
    second > first.saturating_mul(GROWTH_MAX).saturating_add(SLACK_STEPS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_linear_passes_and_what_is_quadratic_does_not() {
        let check = |cost: fn(u64) -> u64, expected| {
            let steps = SIZES.map(|count| cost(count as u64));
            assert_eq!(grows_too_fast(steps), expected, "{steps:?}");
        };
        check(|_| 70_000, false);
        check(|n| 70_000 + 300 * n, false);
        check(|n| 70_000 + 40 * n * u64::from(n.ilog2()), false);
        check(|n| n * n / 10, true);
        check(|n| 70_000 + 300 * n + n * n, true);
    }
}
