//! A crash before and after every write that the controllers share.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bulkhead_controllers::flags::GoDuration;
use bulkhead_plugin::Engine;
use serde::Serialize;
use serde_json::json;

use super::draft::Draft;
use super::{Sort, Trouble, attempt};
use crate::report::Violation;
use crate::scenario::faults::{FaultKind, FaultSpec};

/// How long the controllers stay away.
const AWAY: GoDuration = GoDuration::from_secs(3);

/// What the crashes came to.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Sweep {
    /// How many writes there are without a crash.
    pub writes: u64,
    /// How many crashes were made: two for each write.
    pub crashes: u64,
    /// The crashes that broke a promise, by their number among the writes, with the first one that each broke.
    pub broken: Vec<(u64, &'static str, Violation)>,
}

/// Runs a scenario once for each of its writes with a crash before it, and once with one after it.
///
/// # Errors
///
/// The scenario cannot run.
pub fn sweep(path: &Path, engines: &[Arc<dyn Engine>], threads: usize) -> anyhow::Result<Sweep> {
    let draft = Draft::read(path)?;
    let writes = attempt(&draft, engines)?.shared_writes;
    let kinds = [FaultKind::CrashBeforeWrite, FaultKind::CrashAfterWrite];
    let next = AtomicU64::new(0);
    let found = std::thread::scope(|scope| {
        let worker = || {
            let mut broken = Vec::new();
            loop {
                let index = next.fetch_add(1, Ordering::Relaxed);
                if index >= writes * 2 {
                    return anyhow::Ok(broken);
                }
                let (write, kind) = (index / 2, kinds[usize::from(index % 2 == 1)]);
                let fault = FaultSpec { after: Some(write), for_: Some(AWAY), ..FaultSpec::of(kind) };
                let at = GoDuration::default();
                let trouble = Trouble { sort: Sort::Fault(kind), at, events: vec![json!({"at": at, "fault": fault})] };
                let mut crashed = draft.clone();
                crashed.troubles.push(trouble);
                let first = attempt(&crashed, engines)?.violations.into_iter().next();
                broken.extend(first.map(|violation| (write, kind.as_str(), violation)));
            }
        };
        let workers: Vec<_> = (0..threads.max(1)).map(|_| scope.spawn(worker)).collect();
        let join = |worker: std::thread::ScopedJoinHandle<'_, _>| match worker.join() {
            Ok(result) => result,
            Err(panic) => std::panic::resume_unwind(panic),
        };
        workers.into_iter().map(join).collect::<anyhow::Result<Vec<_>>>()
    })?;
    let mut broken: Vec<_> = found.into_iter().flatten().collect();
    broken.sort_by_key(|(write, kind, _)| (*write, *kind));
    Ok(Sweep { writes, crashes: writes * 2, broken })
}
