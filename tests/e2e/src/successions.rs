//! Changes of the leader in a storm: the history has every decision, from whichever process it came.

use std::collections::BTreeSet;

use anyhow::ensure;

use crate::annotations::{Listed, annotated, listed, resolved, sample};
use crate::control_plane::Audited;
use crate::faults::{LEASE, some_left};
use crate::federation::{ACCOUNT, Federation, Plan, QUICK};
use crate::pair::{self, Pair};
use crate::site::Site;
use crate::storm;

/// Changes of the leader and Deployments that leave the lost member, in the long and in the short form.
const LONG: Size = Size {
    changes: 20,
    deployments: 120,
};
const SHORT: Size = Size {
    changes: 6,
    deployments: 50,
};

/// Size of the storm.
#[derive(Clone, Copy)]
struct Size {
    changes: usize,
    deployments: usize,
}

/// Two processes with a journal each lead in turn. Afterwards one command lists the decisions of both, finds the one of
/// each annotation, and agrees with the bindings and with the audit log of the control plane about their number.
pub(crate) async fn leaders(site: &Site) -> anyhow::Result<()> {
    let size = if site.is_long { LONG } else { SHORT };
    let storm = size.deployments;
    let settings: Vec<_> = QUICK[..QUICK.len() - 1]
        .iter()
        .chain(LEASE)
        .copied()
        .chain(["--resource-eviction-rate=1"])
        .collect();
    let plan = Plan {
        settings: &settings,
        ..Plan::default()
    };
    let mut federation = Box::pin(Federation::start(site, "successions", plan)).await?;
    federation.signal(0, rustix::process::Signal::TERM)?;
    federation.wait_ended(0).await?;
    federation.apply_role("all")?;
    let mut pair = Pair::start(&mut federation, "all").await?;
    storm::prepare(pair.federation, storm).await?;
    let recorder = storm::Recorder::start(&pair.federation.client, "member1");
    pair.federation.member("member1")?.kill_api_server();
    some_left(pair.federation, 1).await?;
    for change in 1..=size.changes {
        let left = storm::left(&pair.federation.client, "member1").await?;
        ensure!(left < storm, "the storm was over before change {change}");
        pair.replace_leader().await?;
    }
    storm::everything_on(&pair.federation.client, storm, "member2").await?;
    recorder.check(storm, storm * 9 / 10).await?;
    recorder.check_replaced()?;
    pair.stop().await?;

    let journals = pair::directories(federation.logs())?;
    let journals: Vec<_> = journals.iter().flat_map(|journal| ["--journal", journal]).collect();
    let text = federation.bulkhead(&[&["history", "-o", "json"], &journals[..]].concat())?;
    let records = listed(&text)?;
    let ids = annotated(&federation, &recorder)?;
    resolved(&records, &ids)?;
    for (_, id) in sample(&ids) {
        federation.bulkhead(&[&["explain", id.as_str()], &journals[..]].concat())?;
    }
    counted(&records, &federation.hub.audited(ACCOUNT)?, size)
}

/// Checks that the records have an eviction and an end of each binding, and that the audit log has as many writes. A
/// leader that is stopped between a record and its write leaves the decision to its successor, which records it again.
fn counted(records: &[Listed], requests: &[Audited], size: Size) -> anyhow::Result<()> {
    let storm = size.deployments;
    for decision in ["Evicted", "Released"] {
        let found: Vec<_> = records.iter().filter(|record| record.decision == decision).collect();
        let subjects: BTreeSet<&str> = found.iter().map(|record| record.subject.as_str()).collect();
        ensure!(
            subjects.len() == storm,
            "{} of {storm} bindings have a record {decision}",
            subjects.len()
        );
        let repeated = found.len() - storm;
        ensure!(repeated <= size.changes, "{repeated} records {decision} are repeated");
        println!("      {} records {decision}, {repeated} of them repeated", found.len());
    }
    let is_write = |request: &&Audited| {
        request.is_write() && request.resource == "resourcebindings" && (200..300).contains(&request.code)
    };
    let writes = requests.iter().filter(is_write).count();
    println!(
        "      {} records, {writes} writes of bindings in the audit log",
        records.len()
    );
    ensure!(
        writes >= 2 * storm,
        "{writes} writes of bindings in the audit log, fewer than evictions and their ends"
    );
    Ok(())
}
