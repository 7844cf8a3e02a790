//! Scenarios on real control planes, each with its name.

use std::pin::Pin;

use crate::losses::{Loss, agent, divided, duplicated, leaders, manifests};
use crate::site::Site;
use crate::{
    documents, faults, kubectl, modes, neighbour, plugins, sidecar, signed_plugin, soundness, successions, takeover,
};

type Outcome<'s> = Pin<Box<dyn Future<Output = anyhow::Result<()>> + 's>>;
pub(crate) type Scenario = for<'s> fn(&'s Site) -> Outcome<'s>;

/// Returns every scenario with its name.
pub(crate) fn all() -> Vec<(&'static str, Scenario)> {
    vec![
        ("divided, the member is killed", |site| {
            Box::pin(divided(site, Loss::Killed))
        }),
        ("divided, the member hangs", |site| Box::pin(divided(site, Loss::Hangs))),
        ("duplicated, the member hangs", |site| Box::pin(duplicated(site))),
        ("the leader is killed, paused and stopped", |site| {
            Box::pin(leaders(site))
        }),
        ("an agent works in a member and is lost", |site| Box::pin(agent(site))),
        ("the chart and the manifests are accepted", |site| {
            Box::pin(manifests(site))
        }),
        ("kubectl sees no difference to an embedded control plane", |site| {
            Box::pin(kubectl::compared(site))
        }),
        ("the manifests of the documents are stored or refused", |site| {
            Box::pin(documents::manifests(site))
        }),
        ("report writes nothing", |site| Box::pin(modes::report(site))),
        ("finish beside what Karmada keeps", |site| {
            Box::pin(modes::beside(site, "finish", modes::FINISH))
        }),
        ("interpret and finish beside what Karmada keeps", |site| {
            Box::pin(modes::combined(site))
        }),
        ("evict beside what Karmada keeps", |site| {
            Box::pin(modes::beside(site, "evict", modes::EVICT))
        }),
        ("plugins are objects", |site| Box::pin(plugins::objects(site))),
        ("all with its own role", |site| Box::pin(modes::all(site))),
        ("the control plane fails in the middle of a storm", |site| {
            Box::pin(faults::control_plane(site))
        }),
        ("the leader is paused in the middle of a storm", |site| {
            Box::pin(faults::paused(site))
        }),
        ("credentials are replaced", |site| Box::pin(faults::credentials(site))),
        ("killed over and over in a storm", |site| Box::pin(faults::kills(site))),
        ("leaders change over and over in a storm", |site| {
            Box::pin(successions::leaders(site))
        }),
        ("the tutorial of the sidecar is followed word by word", |site| {
            Box::pin(sidecar::follow(site))
        }),
        ("doctor finds what an installation lacks", |site| {
            Box::pin(soundness::doctor(site))
        }),
        ("a mode with a verb less says which", |site| {
            Box::pin(soundness::roles(site))
        }),
        ("interpret answers what Karmada asks", |site| {
            Box::pin(modes::interpret(site))
        }),
        ("evict beside a quarrelsome neighbour", |site| {
            Box::pin(neighbour::storm(site, "evict", modes::EVICT))
        }),
        ("finish beside a quarrelsome neighbour", |site| {
            Box::pin(neighbour::storm(site, "finish", modes::FINISH))
        }),
        ("the tutorial of a signed plugin is followed word by word", |site| {
            Box::pin(signed_plugin::follow(site))
        }),
        ("a rehearsal writes nothing and says what changes", |site| {
            Box::pin(takeover::rehearsed(site))
        }),
    ]
}
