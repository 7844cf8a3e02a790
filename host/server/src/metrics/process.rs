//! Metrics of the program and its process, by the names that Prometheus' client libraries use.

use std::fmt;

use prometheus_client::encoding::DescriptorEncoder;

use super::BuildInfo;
use super::collected::{Counters, Gauges};

const BUILD_INFO: Gauges<3> = Gauges::new(
    "bulkhead_build_info",
    "1, with the version of the program, its commit, and the plugin contract.",
    ["version", "commit", "contract"],
);
const CPU: Counters<0> = Counters::new(
    "process_cpu_seconds",
    "Processor time of the process, in user and system mode.",
    [],
);
const RESIDENT: Gauges<0> = Gauges::new("process_resident_memory_bytes", "Resident memory of the process.", []);
const VIRTUAL: Gauges<0> = Gauges::new("process_virtual_memory_bytes", "Virtual memory of the process.", []);
const OPEN_FDS: Gauges<0> = Gauges::new("process_open_fds", "Open file descriptors of the process.", []);
const MAX_FDS: Gauges<0> = Gauges::new("process_max_fds", "Limit of open file descriptors.", []);
const THREADS: Gauges<0> = Gauges::new("process_threads", "Threads of the process.", []);
const START: Gauges<0> = Gauges::new(
    "process_start_time_seconds",
    "Start of the process, in seconds since 1970.",
    [],
);

/// Highest value of an integer gauge.
const GAUGE_MAX: u64 = i64::MAX as u64;

/// Encodes the version of the program, and the resources of the process where the system reports them.
pub(super) fn encode(encoder: &mut DescriptorEncoder<'_>, build: &BuildInfo) -> fmt::Result {
    let BuildInfo {
        version,
        commit,
        contract,
    } = build;
    let labels = [version, commit, contract].map(Clone::clone);
    BUILD_INFO.encode(encoder, [(labels, 1_i64)])?;
    // A value that cannot be read is absent: zero would look like a measurement.
    let Some(resources) = resources() else { return Ok(()) };
    CPU.encode(encoder, [([], resources.cpu_s)])?;
    RESIDENT.encode(encoder, [([], resources.resident_bytes)])?;
    VIRTUAL.encode(encoder, [([], resources.virtual_bytes)])?;
    OPEN_FDS.encode(encoder, resources.open_fds.map(|count| ([], count)))?;
    MAX_FDS.encode(encoder, resources.max_fds.map(|count| ([], count)))?;
    THREADS.encode(encoder, [([], resources.threads)])?;
    START.encode(encoder, [([], resources.start_s)])
}

/// Resources of the process.
struct Resources {
    cpu_s: f64,
    resident_bytes: u64,
    virtual_bytes: u64,
    open_fds: Option<u64>,
    max_fds: Option<u64>,
    threads: i64,
    start_s: f64,
}

#[cfg(target_os = "linux")]
fn resources() -> Option<Resources> {
    use procfs::process::{LimitValue, Process};

    let process = Process::myself().ok()?;
    let stat = process.stat().ok()?;
    let ticks_per_second = procfs::ticks_per_second() as f64;
    let max_fds = process
        .limits()
        .ok()
        .map(|limits| match limits.max_open_files.soft_limit {
            LimitValue::Value(limit) => limit.min(GAUGE_MAX),
            LimitValue::Unlimited => GAUGE_MAX,
        });
    Some(Resources {
        cpu_s: (stat.utime + stat.stime) as f64 / ticks_per_second,
        resident_bytes: stat.rss.saturating_mul(procfs::page_size()),
        virtual_bytes: stat.vsize,
        open_fds: process.fd_count().ok().and_then(|count| u64::try_from(count).ok()),
        max_fds,
        threads: stat.num_threads,
        start_s: procfs::boot_time_secs().ok()? as f64 + stat.starttime as f64 / ticks_per_second,
    })
}

#[cfg(not(target_os = "linux"))]
fn resources() -> Option<Resources> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(target_os = "linux")]
    #[test]
    fn the_resources_are_those_of_this_process() {
        let resources = resources().unwrap();
        assert!(resources.resident_bytes > 1 << 20 && resources.resident_bytes <= resources.virtual_bytes);
        assert!(resources.threads >= 1 && resources.cpu_s >= 0.0);
        // Standard input, output and error.
        assert!(resources.open_fds.unwrap() >= 3 && resources.open_fds < resources.max_fds);
        let age_s = crate::now().as_second() as f64 - resources.start_s;
        assert!((-1.0..86_400.0).contains(&age_s), "the process is {age_s} s old");
    }
}
