//! Upgrade from the previous version and rollback to it, in the middle of a storm of evictions.
//!
//! Two processes share a Lease. The leader is stopped and replaced again and again, so that every pair of versions
//! hands over: previous to previous, previous to current, current to current, and current to previous. Tasks of both
//! versions are held until the other version leads.

mod records;

use std::collections::BTreeMap;
use std::ops::Range;
use std::time::{Duration, Instant};

use anyhow::ensure;
use bulkhead_api::ResourceBinding;
use bulkhead_core::names::keys;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Node;
use kube::api::{Patch, PatchParams};
use kube::{Api, ResourceExt};
use rustix::process::Signal;
use serde_json::json;

use self::records::Journals;
use crate::annotations::annotated;
use crate::control_plane::Audited;
use crate::faults::some_left;
use crate::federation::{ACCOUNT, Federation, Plan, QUICK};
use crate::modes::{EVICT, STAND_IN};
use crate::pair::Pair;
use crate::requests::Writes;
use crate::site::Site;
use crate::{storm, wait};

/// Number of Deployments to evict. Mode `all` evicts them in the order of their priority labels. Mode `evict` reads no
/// templates, and evicts them in the order of their names. The groups leave in the same phase in both orders.
const DEPLOYMENTS: usize = 90;
const RATE: &str = "--resource-eviction-rate=2";
/// Numbers of the Deployments that the previous version evicts, and the current one ends.
const FIRST: Range<usize> = 10..14;
/// Numbers of the Deployments that the current version evicts, and the previous one ends.
const SECOND: Range<usize> = 33..37;
/// Numbers of bindings that have left when the leader is replaced, twice for each direction.
const UPGRADE_AT: [usize; 2] = [8, 16];
const ROLLBACK_AT: [usize; 2] = [52, 64];
/// Resources whose writes are attributed to the evictions.
const COUNTED: &[&str] = &["resourcebindings", "works"];
/// Required time without writes until the system counts as settled.
const QUIET: Duration = Duration::from_secs(5);
/// Time limit of each phase.
const LIMIT: Duration = Duration::from_mins(3);

/// Runs the scenario in each mode, and prints its figures. Returns true if all of them passed.
pub(crate) async fn run(site: &Site, previous: &Site, modes: &[String]) -> anyhow::Result<bool> {
    let mut passed = true;
    for mode in modes {
        let started = Instant::now();
        let outcome = Box::pin(upgraded(site, previous, mode)).await;
        let seconds = started.elapsed().as_secs();
        match outcome {
            Ok(()) => println!("ok    upgrade and rollback in mode {mode} ({seconds} s)"),
            Err(error) => {
                passed = false;
                println!("FAIL  upgrade and rollback in mode {mode} ({seconds} s)\n      {error:#}");
            }
        }
    }
    if !passed {
        println!("logs in {}", site.logs().display());
    }
    Ok(passed)
}

async fn upgraded(site: &Site, previous: &Site, mode: &str) -> anyhow::Result<()> {
    let mut federation = Box::pin(start(previous, mode)).await?;
    let mut processes = Pair::start(&mut federation, mode).await?;
    let federation = &mut *processes.federation;
    prepare(federation).await?;
    let writes = Writes::settled(&federation.client, COUNTED, QUIET, LIMIT).await?;
    let recorder = storm::Recorder::start(&federation.client, "member1");
    federation.member("member1")?.kill_api_server();

    some_left(federation, UPGRADE_AT[0]).await?;
    federation.switch_to(site);
    federation.apply_definitions()?;
    federation.apply_role(mode)?;
    processes.replace_leader().await?;
    some_left(processes.federation, UPGRADE_AT[1]).await?;
    processes.replace_leader().await?;
    some_left(processes.federation, SECOND.end).await?;
    release(processes.federation, &FIRST).await?;

    // Kinds and roles of the current version stay.
    processes.federation.switch_to(previous);
    some_left(processes.federation, ROLLBACK_AT[0]).await?;
    processes.replace_leader().await?;
    some_left(processes.federation, ROLLBACK_AT[1]).await?;
    processes.replace_leader().await?;
    some_left(processes.federation, DEPLOYMENTS).await?;
    release(processes.federation, &SECOND).await?;
    storm::everything_on(&processes.federation.client, DEPLOYMENTS, "member2").await?;

    recorder.check(DEPLOYMENTS, DEPLOYMENTS).await?;
    recorder.check_replaced()?;
    let after = Writes::settled(&processes.federation.client, COUNTED, QUIET, LIMIT).await?;
    report(&recorder.evictions(), &processes.stopped, &after.since(&writes));
    members(processes.federation).await?;
    requests(processes.federation)?;
    processes.stop().await?;

    let federation = &mut *processes.federation;
    let ids = annotated(federation, &recorder)?;
    let journals = Journals::of(federation.logs())?;
    federation.switch_to(site);
    journals.check_current(federation, &ids)?;
    federation.switch_to(previous);
    journals.check_previous(federation)
}

/// Starts a federation of the previous version. In mode `evict`, the first process stands in for Karmada until the end.
async fn start<'s>(previous: &'s Site, mode: &str) -> anyhow::Result<Federation<'s>> {
    // The default lease: processes that end are not restarted, and a stopped one releases it.
    let settings = [&QUICK[..QUICK.len() - 1], &[RATE]].concat();
    let stand_in: &[&str] = if mode == "evict" { &[EVICT, STAND_IN] } else { &[] };
    let plan = Plan {
        settings: &settings,
        first: stand_in,
        ..Plan::default()
    };
    let mut federation = Box::pin(Federation::start(previous, &format!("upgrade-{mode}"), plan)).await?;
    if stand_in.is_empty() {
        federation.signal(0, Signal::TERM)?;
        federation.wait_ended(0).await?;
    }
    federation.apply_role(mode)?;
    Ok(federation)
}

/// Creates the Deployments. Those of a group run only on nodes with the label of the group, which `member2` lacks.
async fn prepare(federation: &mut Federation<'_>) -> anyhow::Result<()> {
    for group in [FIRST, SECOND] {
        label_nodes(federation, "member1", &group).await?;
    }
    let deployment = |number: usize| {
        let mut deployment = storm::deployment(number, 1, &json!({}));
        // The lowest number leaves first.
        let priority = (DEPLOYMENTS - number).to_string();
        deployment["metadata"]["labels"][keys::EVICTION_PRIORITY] = json!(priority);
        if let Some(group) = [FIRST, SECOND].into_iter().find(|group| group.contains(&number)) {
            deployment["spec"]["template"]["spec"]["nodeSelector"] = json!({label(&group): "yes"});
        }
        deployment
    };
    federation
        .apply_example_when_admitted("nginx-divided", &["taint-policy.yaml"])
        .await?;
    storm::prepare_with(federation, DEPLOYMENTS, deployment).await
}

fn label(group: &Range<usize>) -> String {
    format!("group-{}", group.start)
}

async fn label_nodes(federation: &mut Federation<'_>, member: &str, group: &Range<usize>) -> anyhow::Result<()> {
    let nodes: Api<Node> = Api::all(federation.member(member)?.client().await?);
    let patch = Patch::Merge(json!({"metadata": {"labels": {label(group): "yes"}}}));
    for node in nodes.list(&Default::default()).await?.items {
        nodes.patch(&node.name_any(), &PatchParams::default(), &patch).await?;
    }
    Ok(())
}

/// Checks that the tasks of a group are held, lets its pods run, and waits until the tasks ended.
async fn release(federation: &mut Federation<'_>, group: &Range<usize>) -> anyhow::Result<()> {
    let bindings: Api<ResourceBinding> = Api::namespaced(federation.client.clone(), "default");
    let tasks = async || {
        let mut tasks = 0;
        for number in group.clone() {
            let binding = bindings.get(&format!("app-{number}-deployment")).await?;
            tasks += binding.spec.graceful_eviction_tasks.len();
        }
        anyhow::Ok(tasks)
    };
    let held = tasks().await?;
    ensure!(
        held == group.len(),
        "{held} of the {} tasks of apps {group:?} are in flight",
        group.len()
    );
    label_nodes(federation, "member2", group).await?;
    wait::until(
        &format!("the tasks of apps {group:?} end"),
        LIMIT,
        async || match tasks().await {
            Ok(0) => Ok(()),
            other => Err(format!("{other:?} are in flight")),
        },
    )
    .await
    .map(drop)
}

/// Checks the members: after its return the first one has no copy left, and the second one has every Deployment.
async fn members(federation: &mut Federation<'_>) -> anyhow::Result<()> {
    federation.member("member1")?.start_api_server().await?;
    federation.wait_ready("member1", true).await?;
    let deployments: Api<Deployment> = Api::namespaced(federation.member("member1")?.client().await?, "default");
    wait::until("the old copies are deleted", LIMIT, async || {
        let left = deployments.list(&Default::default()).await;
        let left = left.map_err(|error| error.to_string())?.items.len();
        if left == 0 {
            Ok(())
        } else {
            Err(format!("{left} are left"))
        }
    })
    .await?;
    for number in 0..DEPLOYMENTS {
        federation
            .wait_deployed("member2", &format!("app-{number}"), Some(1))
            .await?;
    }
    storm::everything_on(&federation.client, DEPLOYMENTS, "member2").await
}

/// Checks the audit log: no request was refused for its content or its user, and conflicts are rare.
fn requests(federation: &Federation<'_>) -> anyhow::Result<()> {
    let requests = federation.hub.audited(ACCOUNT)?;
    ensure!(!requests.is_empty(), "the audit log has no request of {ACCOUNT}");
    let is_refused = |request: &&Audited| [400, 401, 403, 422].contains(&request.code);
    let refused: Vec<_> = requests.iter().filter(is_refused).take(10).collect();
    ensure!(refused.is_empty(), "requests were refused: {refused:?}");
    let mut conflicts: BTreeMap<&str, usize> = BTreeMap::new();
    for request in requests.iter().filter(|request| request.code == 409) {
        *conflicts.entry(&request.resource).or_default() += 1;
    }
    println!("      conflicts: {conflicts:?}");
    let most = conflicts.values().max().copied().unwrap_or_default();
    ensure!(most < DEPLOYMENTS, "writes repeat conflicts: {conflicts:?}");
    Ok(())
}

fn report(evictions: &[Instant], stopped: &[Instant], writes: &Writes) {
    let count = evictions.len().max(1) as f64;
    println!(
        "      {} evictions, {:.1} writes of bindings and Works per eviction, {:.0} conflicts of all programs",
        evictions.len(),
        writes.total(COUNTED) / count,
        writes.conflicts(COUNTED)
    );
    let pairs = evictions.iter().zip(evictions.iter().skip(1));
    let gaps: Vec<_> = pairs.map(|(before, after)| (*after, *after - *before)).collect();
    let mut sorted: Vec<_> = gaps.iter().map(|(_, gap)| *gap).collect();
    sorted.sort_unstable();
    let median = sorted.get(sorted.len() / 2).copied().unwrap_or_default();
    println!("      median gap between evictions: {:.1} s", median.as_secs_f32());
    let names = [
        "previous to previous",
        "previous to current",
        "current to current",
        "current to previous",
    ];
    for (position, (name, at)) in names.iter().zip(stopped).enumerate() {
        let next = stopped.get(position + 1);
        let within = gaps
            .iter()
            .filter(|(end, _)| end > at && next.is_none_or(|next| end < next));
        let longest = within.map(|(_, gap)| *gap).max().unwrap_or_default();
        println!("      longest gap after {name}: {:.1} s", longest.as_secs_f32());
    }
}
