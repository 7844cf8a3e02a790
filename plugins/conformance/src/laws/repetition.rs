//! Laws about repeated calls.

use super::{Examination, each};
use crate::call_result::CallResult;
use crate::inputs::Sample;
use crate::report::Outcome;

/// Makes every call twice in a row, except the huge ones.
pub(super) fn same_answer(examined: &Examination<'_>) -> Outcome {
    each(examined.inputs.all_small(), |sample| {
        let (first, second) = (examined.ask(sample), examined.ask(sample));
        (!first.same(&second)).then(|| first.difference(&second))
    })
}

/// Makes all plain and empty calls in order, then backwards with junk in between. The answer must not depend on
/// the preceding calls, even if one of them made the plugin fail.
pub(super) fn no_state(examined: &Examination<'_>) -> Outcome {
    let inputs = examined.inputs;
    let first: Vec<(&Sample, CallResult)> = inputs
        .plain
        .iter()
        .chain(&inputs.empty)
        .map(|sample| (sample, examined.ask(sample)))
        .collect();
    let mut between = inputs.junk.iter().chain(&inputs.deep).cycle();
    for (sample, first) in first.into_iter().rev() {
        let before = between.next();
        if let Some(before) = before {
            examined.ask(before);
        }
        let second = examined.ask(sample);
        if !first.same(&second) {
            let (what, before) = (&sample.what, before.map_or("other questions", |before| &before.what));
            let why = first.difference(&second);
            return Outcome::failed(format!("on {what}, asked again after {before}: {why}"));
        }
    }
    Outcome::Passed
}
