//! Checks of a run at its moments: expectations, invariants, and writes that were never accepted.

use bulkhead_controllers::flags::GoDuration;

use super::federation::Federation;
use super::invariants::Observed;
use super::{Act, PENDING_MAX, Run};
use crate::scenario::ObjectSpec;

/// Problem of a write that was never accepted.
const REFUSED: &str = "the control plane refused writes until the end";

impl Run {
    /// Evaluates the expectations that apply at a time.
    pub(super) async fn check_expectations(
        &mut self,
        federation: &Federation,
        at: GoDuration,
        end: GoDuration,
    ) -> anyhow::Result<()> {
        for watched in &mut self.watched {
            if watched.covers(at) || watched.moment(end) == Some(at) {
                watched.look(federation, at).await?;
            }
        }
        Ok(())
    }

    /// Returns an error if a write of a person was never accepted.
    pub(super) fn check_acts(&self) -> anyhow::Result<()> {
        match self.acts.front() {
            Some((_, Act::Apply(object))) => {
                anyhow::bail!(object.origin.problem("", REFUSED));
            }
            Some((_, Act::Delete(ObjectSpec { name, .. }))) => anyhow::bail!("{name}: {REFUSED}"),
            Some((_, Act::Reschedule(binding))) => {
                anyhow::bail!(
                    "reschedule {binding}: there was no such binding, or it could not be written until the end"
                );
            }
            None => {}
        }
        Ok(())
    }

    /// Checks the invariants, after reporting the disturbances since the last check.
    pub(super) fn look(&mut self, observed: &mut Observed, federation: &Federation, at: GoDuration) {
        // A fault that waits for its request can be injected at any time, and can delay one for its whole
        // duration.
        let waits = (federation.hub().pending_fault_count() > 0).then_some(GoDuration(at.0 + PENDING_MAX));
        if let Some(until) = self.disturbed_until.take().into_iter().chain(waits).max() {
            observed.disturbed(until);
        }
        if let Some(lasts) = self.blind_for.take() {
            observed.record_hidden_members(lasts);
        }
        self.taints_replaced
            .drain(..)
            .for_each(|cluster| observed.taints_replaced(cluster));
        // The write of a person may have been held, so that this moment is later than planned.
        let looks_at = GoDuration(self.clock_start.elapsed().max(at.0));
        observed.look(federation, &self.observer, looks_at);
    }
}
