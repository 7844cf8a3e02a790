//! Conformance suite for policy plugins, independent of author and engine.
//!
//! There are two sorts of check. A *case* is written by a person in YAML: an input and the expected verdict
//! ([`cases`]). A *law* holds for every plugin of a kind; the suite generates its inputs deterministically
//! ([`laws`]). Laws are also checked on the inputs of cases, because plugin authors know best which fields their
//! plugin reads.
//!
//! This crate depends on no engine and no cluster. A plugin is passed in as a loaded
//! [`Policy`](bulkhead_core::policy::Policy), wrapped in [`Bounded`](bulkhead_plugin::Bounded) as in a host, so that
//! a panic becomes a fault and does not end the suite. The suite reads no clock either: cost is measured in steps.
//!
//! Start reading at [`run`], then `laws`.

mod call_result;
pub mod cases;
mod coverage;
mod expectation;
mod inputs;
mod junit;
pub mod laws;
mod outputs;
mod owned_call;
mod report;
#[cfg(test)]
mod scripted;
mod smoke;
mod subject;

pub use cases::{Case, CaseErrors, CaseSchema, parse_cases, read_cases, read_cases_with};
pub use coverage::coverage;
pub use expectation::{Expectation, ExpectedChange, ExpectedFilter, ExpectedVerdict, Why};
pub use inputs::plain_calls;
pub use outputs::Outputs;
pub use owned_call::{Candidates, Eviction, OwnedCall, Request};
pub use report::{Check, Coverage, Outcome, Report};
pub use smoke::smoke;
pub use subject::{Loader, Subject};

/// Runs cases, then laws, and returns the outcome of each check.
///
/// A failed check does not stop the remaining ones.
pub fn run(subject: &Subject<'_>, cases: &[Case]) -> Report {
    let mut checks = cases::run(subject, cases);
    checks.extend(laws::run(subject, cases));
    Report {
        plugin: subject.policy().id().to_string(),
        checks,
        coverage: coverage(subject.policy(), cases),
    }
}
