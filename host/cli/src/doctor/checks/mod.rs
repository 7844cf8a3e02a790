//! Checks: from facts to findings, without I/O.

mod certificates_and_plugins;
mod control_plane;
mod failover;
mod kinds;
mod members;
mod owners;
mod permissions;
mod rehearsal;
mod stuck_taints;
mod trust;
mod webhooks;

use super::facts::{Facts, NO_ADDRESS};
use super::finding::Section;

/// Remedy for an API that does not answer on a control plane that does.
const NO_ANSWER: &str = "check the server of that API; `kubectl get apiservices` lists aggregated APIs";

type Check = fn(&Facts, &mut Section);

/// All checks with their names, in the order of the report: earlier checks explain findings of later ones.
const CHECKS: &[(&str, Check)] = &[
    (CONTROL_PLANE, control_plane::check),
    (KINDS, kinds::served),
    (PERMISSIONS, permissions::check),
    (OWNERS, owners::check),
    (CERTIFICATES, certificates_and_plugins::certificates),
    (PLUGINS, certificates_and_plugins::plugins),
    (WEBHOOKS, webhooks::check),
    (INTERPRETERS, kinds::interpreters),
    (FAILOVER, failover::check),
    (MEMBERS, members::check),
    (REHEARSAL, rehearsal::check),
];

pub(super) const CONTROL_PLANE: &str = "control plane";
pub(super) const KINDS: &str = "kinds";
pub(super) const PERMISSIONS: &str = "permissions";
pub(super) const OWNERS: &str = "owners";
pub(super) const CERTIFICATES: &str = "certificates";
pub(super) const PLUGINS: &str = "plugins";
pub(super) const WEBHOOKS: &str = "webhooks";
pub(super) const INTERPRETERS: &str = "interpreters";
pub(super) const FAILOVER: &str = "failover";
pub(super) const MEMBERS: &str = "members";
/// Only with `--for`.
pub(super) const REHEARSAL: &str = "rehearsal";

/// Checks that do not need an answer from the control plane.
const WITHOUT: &[&str] = &[CONTROL_PLANE, CERTIFICATES, PLUGINS];

/// Runs every check. Facts that could not be gathered become findings of the check that needs them.
pub(super) fn all(facts: &Facts) -> Vec<Section> {
    let answers = facts.control_plane.error.is_none();
    let check = |(name, check): &(&'static str, Check)| {
        let mut section = Section::new(name);
        if answers || WITHOUT.contains(name) {
            check(facts, &mut section);
        } else {
            section.skipped = true;
            let why = if facts.control_plane.address == NO_ADDRESS {
                "there is no usable kubeconfig"
            } else {
                "the control plane does not answer"
            };
            section.summary = format!("skipped: {why}");
        }
        for unread in facts.unread.iter().filter(|unread| unread.check == *name) {
            let why = &unread.why;
            if unread.answered {
                section.note(&unread.what, format!("cannot be checked: {why}"), "");
            } else {
                section.error(&unread.what, format!("the API does not answer: {why}"), NO_ANSWER);
            }
        }
        section
    };
    let is_rehearsed = facts.rehearsal.is_some() || facts.unread.iter().any(|unread| unread.check == REHEARSAL);
    let wanted = |(name, _): &&(&'static str, Check)| *name != REHEARSAL || is_rehearsed;
    CHECKS.iter().filter(wanted).map(check).collect()
}
