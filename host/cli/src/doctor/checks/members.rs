//! Check of member clusters: reachability and reported conditions.

use bulkhead_core::model::SyncMode;

use super::control_plane::clock;
use super::stuck_taints;
use crate::doctor::facts::{Facts, Member};
use crate::doctor::finding::{Section, count};

/// Name of the list.
const CLUSTERS: &str = "clusters";

pub(super) fn check(facts: &Facts, section: &mut Section) {
    let is_read = !facts
        .unread
        .iter()
        .any(|unread| unread.check == super::MEMBERS && unread.what == CLUSTERS);
    if !is_read {
        "not known, because they cannot be read".clone_into(&mut section.summary);
        return;
    }
    let ready = facts.members.iter().filter(|member| member.cluster.is_ready()).count();
    section.summary = format!("{ready} of {} are ready", count(facts.members.len(), "member cluster"));
    if facts.members.is_empty() {
        section.note(
            CLUSTERS,
            "there is no member cluster",
            "bulkhead join NAME --cluster-kubeconfig FILE",
        );
    }
    for member in &facts.members {
        of_one(facts, member, section);
        stuck_taints::check(facts, &member.cluster, section);
    }
}

fn of_one(facts: &Facts, member: &Member, section: &mut Section) {
    let cluster = &member.cluster;
    let place = format!("cluster {}", cluster.name);
    if let Some(why) = &member.no_client {
        let remedy = format!(
            "bulkhead join {} --cluster-kubeconfig FILE recreates the account and the Secret",
            cluster.name
        );
        section.error(&place, why, remedy);
    }
    if let Some(server) = &member.server {
        if let Some(error) = &server.error {
            section.error(&place, &error.what, &error.remedy);
        }
        clock(server, &place, section);
    }
    let is_explained =
        member.no_client.is_some() || member.server.as_ref().is_some_and(|server| server.error.is_some());
    match cluster.ready() {
        _ if cluster.is_ready() || is_explained => {}
        Some(ready) => {
            let what = format!("Ready is {:?}: {}: {}", ready.status, ready.reason, ready.message);
            let remedy = match cluster.spec.sync_mode {
                SyncMode::Push => "docs/src/runbook.md#bulkheadclusternotready",
                SyncMode::Pull => "check that its agent runs, and read the agent's log",
            };
            section.warning(&place, what, remedy);
        }
        None if facts.installation.runs("clusterStatus") => {
            section.note(&place, "its status is not reported yet", "bulkhead run reports it");
        }
        None => {
            section.warning(
                &place,
                "it has no condition Ready",
                "check that Karmada's clusterStatus controller runs",
            );
        }
    }
    if cluster.is_terminating() {
        section.note(&place, "it is being removed", "");
    }
}
