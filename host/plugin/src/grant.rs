//! Limits that the trust in an image sets for its plugin.

use std::collections::BTreeSet;

use bulkhead_core::call::CallKind;
use bulkhead_core::manifest::{Budget, BudgetLimits, Tenancy};
use bulkhead_core::policy::Capability;

/// Limits that the trust in an image sets for its plugin. The default limits nothing, as for files and objects with
/// their code.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Grant {
    /// Rule that trusts the image, for messages; empty without one.
    pub rule: String,
    /// Calls that the plugin may answer; none for all.
    pub kinds: Option<BTreeSet<CallKind>>,
    /// Maximum budget.
    pub max_budget: BudgetLimits,
    /// Tenant that the plugin is limited to; none for all namespaces.
    pub tenancy: Option<Tenancy>,
}

impl Grant {
    /// Returns the reason why a plugin may not answer its calls, and those of them that it may answer; `None` if it may
    /// answer all.
    pub(crate) fn refused_calls(&self, all: &[Capability]) -> Option<(String, Vec<Capability>)> {
        let kinds = self.kinds.as_ref()?;
        let (permitted, others): (Vec<_>, Vec<_>) = all.iter().cloned().partition(|one| kinds.contains(&one.kind));
        let first = others.first()?;
        let kinds: Vec<_> = kinds.iter().map(|kind| kind.as_str()).collect();
        let message = format!(
            "it answers {} calls, and the rule that trusts its image permits {}; add the kind to the rule, or remove it \
             from the plugin",
            first.kind,
            kinds.join(", ")
        );
        Some((message, permitted))
    }

    /// Returns those of the calls that the plugin may answer.
    pub(crate) fn permitted(&self, all: Vec<Capability>) -> Vec<Capability> {
        match &self.kinds {
            None => all,
            Some(kinds) => all.into_iter().filter(|one| kinds.contains(&one.kind)).collect(),
        }
    }

    /// Returns the reason why a plugin may not have its budget; `None` if it may.
    pub(crate) fn refused_budget(&self, budget: &Budget) -> Option<String> {
        let excess = self.max_budget.excess(budget)?;
        Some(format!(
            "its {excess}, which {} sets; lower the budget of the plugin, or raise maxBudget.{} of the rule \
             (BudgetTooLarge)",
            self.rule, excess.field
        ))
    }
}
