//! Laws: properties of every plugin of a kind, independent of its decisions.
//!
//! | law | kinds |
//! | --- | --- |
//! | no state survives a call | all |
//! | no input makes it fail | all |
//! | well-formed questions stay within the budget | all |
//! | the same question gets the same answer | all |
//! | unknown fields change nothing | all |
//! | every reason has a code of one CamelCase word | all but score and interpret |
//! | every cluster gets one verdict, and a score is from 0 to 100 | filter, score |
//! | the order of clusters changes nothing | filter, score |
//! | steps grow at most linearly with the clusters | filter, score, eviction check, interpret |
//! | taints have declared keys only | cluster taint |
//! | the configuration schema accepts its own examples, and they load | – |
//!
//! # What counts as a failure
//!
//! `unsupported` and the plugin's own error are valid answers to an odd call. Every other fault is a failure,
//! because it would count against the plugin in production. A law that is not violated, but whose calls all ended in
//! faults, the plugin's own errors included, is reported as not judged instead of passed.
//!
//! The same applies to huge inputs, which the default budget is large enough for. With a smaller budget a huge input
//! may end in `out-of-fuel`, `deadline` or `memory`, because the operator has chosen not to pay for such inputs.

mod answers;
mod configuration;
mod cost;
mod relations;
mod repetition;
#[cfg(test)]
mod tests;

use std::cell::{Cell, OnceCell};

use bulkhead_core::call::CallKind;

use crate::call_result::{CallResult, ask};
use crate::cases::Case;
use crate::inputs::{Inputs, Sample};
use crate::report::{Check, Outcome};
use crate::subject::Subject;

/// A law of one kind of call.
struct Law {
    name: &'static str,
    applies: fn(CallKind) -> bool,
    check: fn(&Examination<'_>) -> Outcome,
}

fn all(_: CallKind) -> bool {
    true
}

fn among_clusters(kind: CallKind) -> bool {
    matches!(kind, CallKind::Filter | CallKind::Score)
}

fn reasoned(kind: CallKind) -> bool {
    !matches!(kind, CallKind::Score | CallKind::Interpret)
}

fn growing(kind: CallKind) -> bool {
    !matches!(kind, CallKind::Health | CallKind::ClusterTaint)
}

/// Laws about calls, in the order in which they are checked.
const LAWS: [Law; 10] = [
    // This law is first, because a plugin that an input corrupts permanently gives consistent answers afterwards.
    Law {
        name: "no state survives a call",
        applies: all,
        check: repetition::no_state,
    },
    Law {
        name: "no input makes it fail",
        applies: all,
        check: answers::no_input_makes_it_fail,
    },
    Law {
        name: "well-formed questions stay within the budget",
        applies: all,
        check: answers::budget,
    },
    Law {
        name: "the same question gets the same answer",
        applies: all,
        check: repetition::same_answer,
    },
    Law {
        name: "unknown fields change nothing",
        applies: all,
        check: relations::unknown_fields,
    },
    Law {
        name: "every reason has a code of one CamelCase word",
        applies: reasoned,
        check: answers::reasons,
    },
    Law {
        name: "every cluster gets one verdict, and a score is from 0 to 100",
        applies: among_clusters,
        check: answers::one_verdict_each,
    },
    Law {
        name: "the order of clusters changes nothing",
        applies: among_clusters,
        check: relations::order,
    },
    Law {
        name: "steps grow at most linearly with the clusters",
        applies: growing,
        check: cost::linear,
    },
    Law {
        name: "taints have declared keys only",
        applies: |kind| kind == CallKind::ClusterTaint,
        check: answers::declared_taints,
    },
];

/// Checks every law of every call kind that the plugin answers.
///
/// The laws are also checked on the inputs of those `cases` that need no configuration of their own.
pub(crate) fn run(subject: &Subject<'_>, cases: &[Case]) -> Vec<Check> {
    let mut checks = Vec::new();
    for kind in CallKind::ALL {
        let capabilities = subject.policy().capabilities();
        if !capabilities.iter().any(|capability| capability.kind == kind) {
            continue;
        }
        let inputs = Inputs::of(kind, capabilities, cases);
        for law in LAWS.iter().filter(|law| (law.applies)(kind)) {
            let examination = Examination::new(subject, &inputs);
            let outcome = examination.judged((law.check)(&examination));
            checks.push(Check {
                name: law.name.to_owned(),
                kind: Some(kind),
                outcome,
                steps: examination.steps.get(),
            });
        }
    }
    checks.push(Check {
        name: "the configuration schema accepts its own examples, and they load".to_owned(),
        kind: None,
        outcome: configuration::examples(subject),
        steps: 0,
    });
    checks
}

/// Check of one law for one call kind.
pub(crate) struct Examination<'a> {
    pub(crate) subject: &'a Subject<'a>,
    pub(crate) inputs: &'a Inputs,
    steps: Cell<u64>,
    /// True once a call returned a reply other than an abstention.
    answered: Cell<bool>,
    /// First fault other than `unsupported`.
    fault: OnceCell<String>,
}

impl<'a> Examination<'a> {
    fn new(subject: &'a Subject<'a>, inputs: &'a Inputs) -> Self {
        Self {
            subject,
            inputs,
            steps: Cell::new(0),
            answered: Cell::new(false),
            fault: OnceCell::new(),
        }
    }

    /// Calls the policy; records the steps, and the fault or the fact that it answered.
    pub(crate) fn ask(&self, sample: &Sample) -> CallResult {
        let answer = ask(self.subject.policy(), &sample.call);
        self.steps.set(self.steps.get().saturating_add(answer.steps));
        if let Some(fault) = answers::fault(&answer) {
            self.fault.get_or_init(|| fault);
        } else if !answer.is_abstention() {
            self.answered.set(true);
        }
        answer
    }

    /// Returns the outcome, or `Skipped` if the law passed only because every call faulted.
    fn judged(&self, outcome: Outcome) -> Outcome {
        match self.fault.get() {
            Some(fault) if outcome == Outcome::Passed && !self.answered.get() => {
                Outcome::skipped(format!("not judged: the call faults: {fault}"))
            }
            _ => outcome,
        }
    }
}

/// Fails with the first objection to any of these samples.
fn each<'s>(samples: impl Iterator<Item = &'s Sample>, objection: impl Fn(&Sample) -> Option<String>) -> Outcome {
    for sample in samples {
        if let Some(why) = objection(sample) {
            return Outcome::failed(format!("on {}: {why}", sample.what));
        }
    }
    Outcome::Passed
}
