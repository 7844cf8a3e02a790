//! Sums over the nodes and pods of large members, whose API servers answer page by page.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use anyhow::{Context as _, bail};
use bulkhead_controllers::MemberResources;
use futures::future::join_all;

use crate::large_member::{NODES, PODS, Served, member, models};
use crate::peak::{Peak, THIS};

/// Members whose pods are listed at the same time: as many as the controller admits.
const MEMBERS: usize = 8;

/// Sums up all members. Returns the description of the measurement, and the peak in KiB.
pub(crate) async fn sum() -> anyhow::Result<(String, u64)> {
    let models = models();
    let served = Arc::<Served>::default();
    let members: Vec<_> = (0..MEMBERS)
        .map(|number| (format!("m{number}"), member(&served)))
        .collect();
    let resources = MemberResources::default();
    let peak = Peak::start(THIS)?;
    let sums = members
        .iter()
        .map(|(name, client)| resources.sums(name, client, &models));
    let sums = join_all(sums).await;
    let peak_kib = peak.kib()?;
    for sum in sums {
        let (nodes, resources) = sum.context("a member cannot be summed")?;
        if nodes.total_num as usize != NODES || resources.allocated["pods"] != "20k" {
            bail!("the sums are wrong: {nodes:?} {resources:?}");
        }
    }
    let (pages, bytes) = (
        served.pages.load(Ordering::Relaxed),
        served.bytes.load(Ordering::Relaxed),
    );
    let subject = format!(
        "list {MEMBERS} members with {PODS} pods each, {pages} pages and {} MiB of JSON, and sum them up",
        bytes >> 20
    );
    Ok((subject, peak_kib))
}
