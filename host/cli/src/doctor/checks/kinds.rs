//! Checks of the served kinds and versions, and of the interpreters for kinds in use.

use std::fmt::Write as _;

use bulkhead_api::{KindInfo, REGISTERED};
use bulkhead_controllers::NoInterpreter;

use crate::doctor::facts::{Facts, KindInUse, UnknownHealth};
use crate::doctor::finding::{Section, count};

/// Group of Bulkhead's own kinds.
const OURS: &str = "bulkhead.dev";

pub(super) fn served(facts: &Facts, section: &mut Section) {
    // An API that does not answer is reported as a separate error.
    let is_known = |info: &&KindInfo| {
        let api = info.api_version();
        !facts.unread.iter().any(|unread| !unread.answered && unread.what == api)
    };
    let known: Vec<_> = REGISTERED.iter().filter(is_known).collect();
    let lacking: Vec<_> = known.iter().filter(|info| !is_served(facts, info)).collect();
    let kinds = count(REGISTERED.len(), "kind");
    section.summary = format!("{} of {kinds} are served", known.len() - lacking.len());
    if known.len() < REGISTERED.len() {
        let _ = write!(section.summary, ", {} are not known", REGISTERED.len() - known.len());
    }
    for info in lacking {
        let place = format!("{}.{}", info.plural, info.group);
        let others: Vec<_> = facts
            .served
            .iter()
            .filter(|served| served.group == info.group && served.resources.iter().any(|name| name == info.plural))
            .map(|served| served.version.as_str())
            .collect();
        if others.is_empty() {
            let group = format!(
                "bulkhead crds --group {} | kubectl apply --server-side -f -",
                info.group
            );
            let remedy = if info.group == OURS {
                group
            } else {
                format!("install Karmada, or {group}")
            };
            section.error(
                place,
                format!("the control plane does not serve {}", info.api_version()),
                remedy,
            );
        } else {
            let what = format!(
                "served as {}, but this program uses {}",
                others.join(", "),
                info.version
            );
            section.error(
                place,
                what,
                "use the Bulkhead version for this Karmada, or serve the older version too",
            );
        }
    }
    for info in REGISTERED
        .iter()
        .filter(|info| info.status_subresource && is_served(facts, info))
    {
        if !has(facts, info, &format!("{}/status", info.plural)) {
            let place = format!("{}.{}", info.plural, info.group);
            let remedy = format!(
                "bulkhead crds --group {} | kubectl apply --server-side -f -",
                info.group
            );
            section.error(place, "has no status subresource, so no status can be written", remedy);
        }
    }
}

fn is_served(facts: &Facts, info: &KindInfo) -> bool {
    has(facts, info, info.plural)
}

fn has(facts: &Facts, info: &KindInfo, resource: &str) -> bool {
    let of_kind = facts
        .served
        .iter()
        .filter(|served| served.group == info.group && served.version == info.version);
    of_kind
        .flat_map(|served| &served.resources)
        .any(|name| name == resource)
}

pub(super) fn interpreters(facts: &Facts, section: &mut Section) {
    let covered = facts.kinds.iter().filter(|kind| kind.health.is_some()).count();
    section.summary = format!(
        "{covered} of {} in use have a health interpreter",
        count(facts.kinds.len(), "kind")
    );
    for kind in &facts.kinds {
        let place = format!("{} {}", kind.api_version, kind.kind);
        if !kind.served {
            let remedy = "install its definition, or take it out of the policies";
            section.error(
                place,
                "policies select it, and the control plane does not serve it",
                remedy,
            );
        } else if kind.health.is_none() {
            let what = match facts.installation.flags.health_without_interpreter {
                NoInterpreter::Healthy => "no interpreter reports its health, so every object always counts as healthy",
                NoInterpreter::Unknown => {
                    "no interpreter reports its health, so it stays unknown: no eviction or release depends on it"
                }
                NoInterpreter::Refuse => "no interpreter reports its health, so its objects are bound to no policy",
            };
            let remedy = "write a ResourceInterpreterCustomization or a plugin with InterpretHealth; \
                bulkhead interpret --show list names examples";
            section.warning(place, what, remedy);
        }
    }
    facts
        .unknown_health
        .iter()
        .for_each(|kind| unknown(facts, kind, section));
}

/// Reports a kind whose health is unknown although an interpreter knows it. Kinds without one have a finding already.
fn unknown(facts: &Facts, unknown: &UnknownHealth, section: &mut Section) {
    let UnknownHealth {
        api_version,
        kind,
        works,
        example,
        since,
    } = unknown;
    let is_reported = |known: &&KindInUse| {
        (&known.api_version, &known.kind) == (api_version, kind) && known.served && known.health.is_none()
    };
    if facts.kinds.iter().any(|known| is_reported(&known)) {
        return;
    }
    let what = format!(
        "the health in {} is Unknown, in {example} since {since}: its interpreter did not answer, or returned no verdict",
        count(*works, "Work")
    );
    let remedy = if facts.installation.has("all") {
        "read the log for faults of the interpreter; bulkhead interpret runs it on one object"
    } else {
        "once the interpreter answers, restart karmada-controller-manager, which asks for every object; it asks again \
            only when an object changes"
    };
    section.warning(format!("{api_version} {kind}"), what, remedy);
}
