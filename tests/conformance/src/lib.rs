//! What every policy plugin has to hold to, whoever wrote it and whatever runs it.
//!
//! There are two sorts of check. A *case* is written by a person: an input and the verdict that it has to lead to, in
//! YAML ([`cases`]). A *law* needs no cases: it holds for every plugin of a kind, and the suite makes up the inputs
//! itself, the same ones each time ([`laws`]). The inputs of cases are put to the laws too, since nobody knows better
//! what a plugin looks at than its author.
//!
//! Nothing here knows an engine or a cluster. A plugin comes as a loaded [`Policy`](bulkhead_core::policy::Policy),
//! wrapped in [`Bounded`](bulkhead_plugin::Bounded) as it would be in a host, so that a panic is a fault and not the end of
//! the suite. Nothing reads a clock either: what a plugin costs is told in steps.
//!
//! Start reading at [`run`], then `laws`.

mod answer;
pub mod cases;
mod expectation;
mod inputs;
mod junit;
pub mod laws;
mod outputs;
mod question;
mod report;
#[cfg(test)]
mod scripted;
mod smoke;
mod subject;

pub use cases::{Case, CaseErrors, parse_cases, read_cases};
pub use expectation::{Expectation, ExpectedChange, ExpectedFilter, ExpectedVerdict, Why};
pub use inputs::plain_questions;
pub use outputs::Outputs;
pub use question::{Candidates, Eviction, Question, Request};
pub use report::{Check, Outcome, Report};
pub use smoke::smoke;
pub use subject::{Loader, Subject};

/// Runs cases and laws, in this order, and tells what came of each.
///
/// It stops at nothing: a check that fails does not keep the others from running.
pub fn run(subject: &Subject<'_>, cases: &[Case]) -> Report {
    let mut checks = cases::run(subject, cases);
    checks.extend(laws::run(subject, cases));
    Report { plugin: subject.policy().id().to_string(), checks }
}
