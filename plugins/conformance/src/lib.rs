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
//!
//! # Example
//!
//! A policy of a host with its own engine, checked with one case and all laws:
//!
//! ```
//! use std::sync::Arc;
//!
//! use bulkhead_conformance::{Subject, parse_cases};
//! use bulkhead_core::call::{Call, CallKind, HealthVerdict, Reason, Reply};
//! use bulkhead_core::manifest::Budget;
//! use bulkhead_core::model::Health;
//! use bulkhead_core::policy::{Capability, Fault, FaultKind, Policy, PolicyId};
//! use bulkhead_plugin::Bounded;
//!
//! struct Games {
//!     id: PolicyId,
//!     capabilities: Vec<Capability>,
//! }
//!
//! impl Policy for Games {
//!     fn id(&self) -> &PolicyId {
//!         &self.id
//!     }
//!
//!     fn capabilities(&self) -> &[Capability] {
//!         &self.capabilities
//!     }
//!
//!     fn call(&self, call: &Call<'_>) -> Result<Reply, Fault> {
//!         let Call::Health(call) = call else {
//!             return Err(Fault::new(FaultKind::Unsupported, "it answers health calls only"));
//!         };
//!         let ready = call.object.pointer("/status/readyReplicas").and_then(|value| value.as_i64());
//!         let (health, code) = match ready {
//!             Some(3..) => (Health::Healthy, "Ready"),
//!             Some(_) => (Health::Unhealthy, "NotReady"),
//!             None => (Health::Unknown, "NoStatus"),
//!         };
//!         let reason = Reason::new(code, "as reported");
//!         Ok(Reply::Health(HealthVerdict { health, reason }))
//!     }
//! }
//!
//! let cases = parse_cases(
//!     "games.yaml",
//!     "
//! cases:
//!   - name: three servers are ready
//!     kind: health
//!     input:
//!       object: {apiVersion: example.io/v1, kind: Game, metadata: {name: chess}, status: {readyReplicas: 3}}
//!     expect: {health: Healthy, reason: Ready}
//! ",
//! )?;
//! let policy = Bounded::new(Arc::new(Games {
//!     id: PolicyId::builtin("games"),
//!     capabilities: vec![Capability::on(CallKind::Health, "example.io/v1", "Game")],
//! }));
//! let report = bulkhead_conformance::run(&Subject::new(&policy, Budget::default()), &cases);
//! assert!(report.passed(), "{}", report.to_json());
//! # Ok::<(), bulkhead_conformance::CaseErrors>(())
//! ```

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
