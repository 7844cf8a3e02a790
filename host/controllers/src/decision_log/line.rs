//! Log line of a decision.

use bulkhead_core::combine::Attribution;
use bulkhead_core::journal::{Decision, Entry, Subject};
use tracing::{Level, enabled};

/// Target of the spans and log lines of decisions.
pub(super) const TARGET: &str = "bulkhead::decision";

/// Parts of a decision that are logged. Copied only for a line that is shown.
pub(super) struct DecisionLine {
    level: Level,
    controller: String,
    subject: Subject,
    cluster: Option<String>,
    decision: Decision,
    attribution: Attribution,
    effect: String,
}

/// Returns the level of a decision: INFO if it changes the place of a workload or prevents that, WARN for a fault.
fn level(decision: Decision) -> Level {
    match decision {
        Decision::PluginFault => Level::WARN,
        Decision::ReadyChanged | Decision::PluginsChanged => Level::INFO,
        other if other.is_about_place() => Level::INFO,
        _ => Level::DEBUG,
    }
}

impl DecisionLine {
    /// Returns the line of a decision; `None` if no subscriber shows it.
    pub(super) fn of(entry: &Entry) -> Option<Self> {
        let level = level(entry.decision);
        let is_shown = match level {
            Level::WARN => enabled!(target: TARGET, Level::WARN),
            Level::INFO => enabled!(target: TARGET, Level::INFO),
            _ => enabled!(target: TARGET, Level::DEBUG),
        };
        is_shown.then(|| Self {
            level,
            controller: entry.controller.clone(),
            subject: entry.subject.clone(),
            cluster: entry.cluster.clone(),
            decision: entry.decision,
            attribution: entry.attribution.clone(),
            effect: entry.effect.clone(),
        })
    }

    /// Logs the line in the current span, which has the id of the decision.
    pub(super) fn log(&self) {
        let Self {
            level,
            controller,
            subject,
            cluster,
            decision,
            attribution,
            effect,
        } = self;
        let (code, message) = (attribution.reason.code.as_str(), attribution.reason.message.as_str());
        let policy = attribution.policy.as_ref().map(tracing::field::display);
        // The level of a callsite is a constant.
        macro_rules! line {
            ($level:expr) => {
                tracing::event!(
                    target: TARGET,
                    $level,
                    controller,
                    cluster,
                    reason = code,
                    policy,
                    effect = Some(effect.as_str()).filter(|effect| !effect.is_empty()),
                    "{decision:?} {subject}: {message}"
                )
            };
        }
        match *level {
            Level::WARN => line!(Level::WARN),
            Level::INFO => line!(Level::INFO),
            _ => line!(Level::DEBUG),
        }
    }
}
