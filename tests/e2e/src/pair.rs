//! Two processes with one Lease, the leader of which is replaced.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::Context as _;
use rustix::process::Signal;

use crate::federation::Federation;
use crate::losses;
use crate::soundness::wait_for_line;

/// Names of the journals, one for each place of a process.
const SLOTS: [&str; 2] = ["a", "b"];

/// Returns the directory of a journal, in a folder that is created.
fn directory(logs: &Path, slot: &str) -> anyhow::Result<PathBuf> {
    let folder = logs.join("journals");
    fs::create_dir_all(&folder).with_context(|| format!("creating {}", folder.display()))?;
    Ok(folder.join(slot))
}

/// Returns the directories of both journals.
///
/// # Errors
///
/// Their folder cannot be created.
pub(crate) fn directories(logs: &Path) -> anyhow::Result<Vec<String>> {
    let directory = |slot| anyhow::Ok(directory(logs, slot)?.display().to_string());
    SLOTS.into_iter().map(directory).collect()
}

/// Two processes with one Lease, each with a journal that its successor continues.
pub(crate) struct Pair<'f, 's> {
    pub(crate) federation: &'f mut Federation<'s>,
    mode: &'f str,
    leader: Slot,
    standby: Slot,
    /// Identity of the leader.
    holder: String,
    /// Times at which a leader was stopped.
    pub(crate) stopped: Vec<Instant>,
}

/// Place of a process.
struct Slot {
    journal: &'static str,
    /// Number of the process in start order.
    process: usize,
}

impl<'f, 's> Pair<'f, 's> {
    /// Starts both, and waits until one leads and the other one waits.
    pub(crate) async fn start(federation: &'f mut Federation<'s>, mode: &'f str) -> anyhow::Result<Self> {
        let [first, second] = SLOTS;
        let leader = start_process(federation, mode, first).await?;
        let holder = losses::next_holder(federation, "").await?;
        let standby = start_process(federation, mode, second).await?;
        let mut processes = Self {
            federation,
            mode,
            leader,
            standby,
            holder,
            stopped: Vec::new(),
        };
        processes.wait_standby().await?;
        Ok(processes)
    }

    /// Stops the leader, waits until the other process leads, and starts a process of the federation's version in its
    /// place.
    pub(crate) async fn replace_leader(&mut self) -> anyhow::Result<()> {
        self.federation.signal(self.leader.process, Signal::TERM)?;
        self.stopped.push(Instant::now());
        self.federation.wait_ended(self.leader.process).await?;
        self.holder = losses::next_holder(self.federation, &self.holder).await?;
        std::mem::swap(&mut self.leader, &mut self.standby);
        self.standby = start_process(self.federation, self.mode, self.standby.journal).await?;
        self.wait_standby().await
    }

    async fn wait_standby(&mut self) -> anyhow::Result<()> {
        wait_for_line(self.federation, self.standby.process, "holds the lease").await
    }

    /// Ends both processes, so that their journals are complete.
    pub(crate) async fn stop(&mut self) -> anyhow::Result<()> {
        for process in [self.standby.process, self.leader.process] {
            self.federation.signal(process, Signal::TERM)?;
            self.federation.wait_ended(process).await?;
        }
        Ok(())
    }
}

async fn start_process(federation: &mut Federation<'_>, mode: &str, journal: &'static str) -> anyhow::Result<Slot> {
    let directory = directory(federation.logs(), journal)?;
    let journal_argument = format!("--journal={}", directory.display());
    let webhook = "--webhook-bind-address=127.0.0.1:0";
    let more = [journal_argument.as_str(), webhook];
    let more = if mode == "all" { &more[..] } else { &more[..1] };
    federation.start_bulkhead_as_account(mode, more).await?;
    let process = federation.processes().len() - 1;
    Ok(Slot { journal, process })
}
