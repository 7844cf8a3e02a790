//! The tutorial "Beside Karmada", executed literally.

use std::fs;

use anyhow::{Context as _, ensure};

use crate::federation::ACCOUNT;
use crate::site::Site;
use crate::tutorial::{Tutorial, blocks};

/// Page of the tutorial.
const PAGE: &str = "docs/src/tutorials/beside-karmada.md";

/// Follows the tutorial on a control plane with Karmada's kinds and without Bulkhead's.
pub(crate) async fn follow(site: &Site) -> anyhow::Result<()> {
    let mut tutorial = Box::pin(Tutorial::start(site, "sidecar")).await?;
    let page = fs::read_to_string(site.root.join(PAGE)).with_context(|| format!("reading {PAGE}"))?;
    for block in blocks(&page) {
        tutorial.follow(&block).await?;
    }
    ensure!(
        tutorial.runs == 2,
        "the tutorial runs the program {} times",
        tutorial.runs
    );
    // The process now runs in mode finish, so a task that Karmada created is completed.
    tutorial.end_task().await?;
    let federation = &tutorial.federation;
    let requests = federation.hub.requests_of(ACCOUNT)?;
    ensure!(
        !requests.is_empty(),
        "the process does not use the account of the tutorial"
    );
    // Commands of the tutorial that read the journal.
    let journal = tutorial.path("journal").display().to_string();
    let history = federation.bulkhead(&["history", "--journal", &journal])?;
    ensure!(
        history.contains("default/till"),
        "the history has no decision about it: {history}"
    );
    let why = federation.bulkhead(&["explain", "--journal", &journal, "default/till"])?;
    ensure!(
        why.contains("member1"),
        "the explanation does not name the cluster: {why}"
    );
    Ok(())
}
