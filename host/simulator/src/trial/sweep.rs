//! Crashes before and after every write of a shared object.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bulkhead_controllers::flags::GoDuration;
use bulkhead_plugin::Engine;
use serde::Serialize;
use serde_json::json;

use super::draft::Draft;
use super::{Disruption, DisruptionKind, attempt};
use crate::report::Violation;
use crate::scenario::faults::{FaultKind, FaultSpec};

/// Downtime of the controllers after a crash.
const AWAY: GoDuration = GoDuration::from_secs(3);

/// Result of the crashes.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Sweep {
    /// Number of writes of the scenario without a crash.
    pub writes: u64,
    /// Number of crashes: two for each write.
    pub crashes: u64,
    /// Crashes that violated an invariant, by the index of the write, each with its first violation.
    pub broken: Vec<(u64, &'static str, Violation)>,
}

/// Runs a scenario once for each of its writes with a crash before it, and once with a crash after it.
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
                let fault = FaultSpec {
                    after: Some(write),
                    for_: Some(AWAY),
                    ..FaultSpec::of(kind)
                };
                let at = GoDuration::default();
                let disruption = Disruption {
                    kind: DisruptionKind::Fault(kind),
                    at,
                    events: vec![json!({"at": at, "fault": fault})],
                };
                let mut crashed = draft.clone();
                crashed.disruptions.push(disruption);
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
    Ok(Sweep {
        writes,
        crashes: writes * 2,
        broken,
    })
}
