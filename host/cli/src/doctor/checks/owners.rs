//! Check for other programs that do the work of this installation's modes.

use bulkhead_server::unimplemented::listed;

use crate::doctor::facts::{Facts, Installation, Lease, Writer};
use crate::doctor::finding::Section;

/// Name of the Lease of Karmada's controllers.
const KARMADA: &str = "karmada-controller-manager";
/// Name of the Lease of Karmada's scheduler.
const KARMADA_SCHEDULER: &str = "karmada-scheduler";
/// Field manager of Karmada's agent in a Pull member.
const KARMADA_AGENT: &str = "karmada-agent";

pub(super) fn check(facts: &Facts, section: &mut Section) {
    let ours = facts.installation.lease.as_ref();
    let own = facts.leases.iter().find(|lease| Some(&lease.name) == ours);
    section.summary = match (ours, own) {
        (None, _) if facts.installation.has("report") => {
            "no election: mode report writes nothing, so several processes may run".to_owned()
        }
        (None, _) => "no election: there must be one process only".to_owned(),
        (Some(name), Some(lease)) if lease.is_held(facts.now) => format!("{} holds the Lease {name}", lease.holder),
        (Some(name), _) => format!("no process holds the Lease {name}"),
    };
    if let Some(own) = own.filter(|own| own.is_held(facts.now)) {
        other_mode(facts, own, section);
    }
    for lease in facts
        .leases
        .iter()
        .filter(|lease| Some(&lease.name) != ours && lease.is_held(facts.now))
    {
        if !lease.modes.is_empty() {
            other_bulkhead(facts, lease, section);
        } else if lease.name.name == KARMADA {
            karmada(facts, lease, section);
        } else if lease.name.name == KARMADA_SCHEDULER && facts.installation.runs("scheduler") {
            let remedy = "stop karmada-scheduler, or leave scheduling to it with --controllers=*,-scheduler";
            section.error(place(lease), format!("{} also schedules", lease.holder), remedy);
        }
    }
    unimplemented(facts, section);
    writers(facts, own, section);
}

/// Reports the objects that nothing acts upon once mode `all` replaces Karmada's controllers.
fn unimplemented(facts: &Facts, section: &mut Section) {
    if facts.unimplemented.is_empty() {
        return;
    }
    let what = format!("only Karmada's controllers act upon {}", listed(&facts.unimplemented));
    if facts.installation.flags.ignore_unimplemented {
        section.note("mode all", what, "");
    } else {
        let remedy = "choose mode evict or finish, delete these objects, or use --ignore-unimplemented, with which \
            nothing acts upon them";
        section.error("mode all", format!("{what}, so bulkhead run does not start"), remedy);
    }
}

fn place(lease: &Lease) -> String {
    format!("Lease {}", lease.name)
}

fn other_mode(facts: &Facts, own: &Lease, section: &mut Section) {
    let (theirs, ours) = (own.modes.join(","), facts.installation.modes.join(","));
    if !theirs.is_empty() && theirs != ours {
        let what = format!("{} runs in mode {theirs}, and this would be mode {ours}", own.holder);
        let remedy = "give all processes of an installation the same --mode, and each installation its own \
            --leader-elect-resource-name";
        section.error(place(own), what, remedy);
    }
}

/// Reports another installation, which has its own Lease.
fn other_bulkhead(facts: &Facts, lease: &Lease, section: &mut Section) {
    let both = |mode: &&String| {
        let is_shared = |known: &String| known == *mode || (acts(known) && acts(mode));
        facts.installation.modes.iter().any(is_shared)
    };
    let shared: Vec<_> = lease.modes.iter().filter(both).map(String::as_str).collect();
    let modes = lease.modes.join(",");
    if shared.iter().any(|mode| acts(mode)) {
        let what = format!(
            "{} is another Bulkhead in mode {modes}: both would evict, at their rates together",
            lease.holder
        );
        section.error(place(lease), what, "remove one of them, or give both the same Lease");
    } else {
        section.note(
            place(lease),
            format!("{} is another Bulkhead, in mode {modes}", lease.holder),
            "",
        );
    }
}

/// Returns true if a mode changes where workloads run.
fn acts(mode: &str) -> bool {
    matches!(mode, "all" | "evict" | "finish")
}

fn karmada(facts: &Facts, lease: &Lease, section: &mut Section) {
    let installation = &facts.installation;
    let who = &lease.holder;
    if installation.has("all") {
        let what = format!("{who} is running, and mode all does the same work");
        section.error(
            place(lease),
            what,
            "stop karmada-controller-manager, or choose mode evict or finish",
        );
        return;
    }
    let given_up = if installation.has("evict") {
        "--controllers=*,-gracefulEviction,-clustertaintpolicy,-applicationFailover \
            --enable-no-execute-taint-eviction=false"
    } else if installation.has("finish") {
        "--controllers=*,-gracefulEviction"
    } else {
        return;
    };
    let what = format!("{who} is running; its disabled controllers cannot be determined");
    section.note(place(lease), what, format!("make sure that it runs with {given_up}"));
}

fn writers(facts: &Facts, own: Option<&Lease>, section: &mut Section) {
    let since = own.filter(|own| own.is_held(facts.now)).and_then(|own| own.acquired);
    for writer in &facts.writers {
        let place = format!("{} {}", writer.kind, writer.field);
        let last = writer.last.map(|last| format!(" at {last}")).unwrap_or_default();
        let wrote = format!(
            "{} wrote it last in {} of them, {}{last}",
            writer.manager, writer.objects, writer.example
        );
        let is_active = since.zip(writer.last).is_some_and(|(since, last)| last > since);
        if let Some(keeps) = keeps(&facts.installation, writer) {
            section.note(place, wrote, format!("{} {keeps}", writer.manager));
        } else if is_active {
            let remedy = format!(
                "two programs own this field: switch {} off, or choose a mode that leaves it alone",
                writer.manager
            );
            section.error(place, format!("{wrote}, while Bulkhead was running"), remedy);
        } else {
            section.note(
                place,
                wrote,
                format!("{} must stop writing it once Bulkhead runs", writer.manager),
            );
        }
    }
}

/// Returns the part of a field that another program may keep writing beside these modes, if there is one.
fn keeps(installation: &Installation, writer: &Writer) -> Option<&'static str> {
    match writer.field.as_str() {
        "status.conditions" if writer.manager == KARMADA_AGENT => {
            Some("may keep reporting the state of its Pull member")
        }
        _ if installation.has("all") => None,
        "spec.gracefulEvictionTasks" if !installation.has("evict") => {
            Some("may begin evictions and must not end them: --controllers=*,-gracefulEviction")
        }
        "spec.taints" => Some(
            "may keep taints of its own, such as that of a cluster that is not ready, and must not follow \
                ClusterTaintPolicies: --controllers=*,-clustertaintpolicy",
        ),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn writer(manager: &str, field: &str) -> Writer {
        Writer {
            manager: manager.to_owned(),
            kind: "Cluster".to_owned(),
            field: field.to_owned(),
            objects: 1,
            example: Default::default(),
            last: None,
        }
    }

    #[test]
    fn an_agent_of_karmada_keeps_reporting_its_member_in_mode_all() {
        let installation = Installation {
            modes: vec!["all".to_owned()],
            ..Installation::default()
        };
        let kept = |manager, field| keeps(&installation, &writer(manager, field)).is_some();
        assert!(kept("karmada-agent", "status.conditions"));
        assert!(!kept("karmada-controller-manager", "status.conditions"));
        assert!(!kept("karmada-agent", "spec.taints"));
    }
}
