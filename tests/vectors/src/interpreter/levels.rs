//! Cases that combine all levels.

use bulkhead_core::policy::PolicySet;

use super::case::{Arguments, Case};
use super::outcome::ask;
use super::scripts::Scripts;
use super::{Ran, native, webhook};

/// Runs a case with its customizations, webhooks, Karmada's bundled customization of the kind, and the native rules,
/// in this order of precedence.
pub(super) fn run(case: &Case, scripts: &Scripts) -> Result<Ran, String> {
    let mut policies = scripts.policies(case, &case.customizations()?);
    policies.extend(webhook::of_levels(case)?);
    if let Some(library) = scripts.of_kind(None, &case.kind)? {
        policies.extend(scripts.policies(case, &[library]));
    }
    policies.extend(native::policies(case));
    ask(
        &PolicySet::new(policies),
        &case.operation,
        &Arguments::read(&case.inputs)?,
    )
    .map(Ran::Outcome)
}
