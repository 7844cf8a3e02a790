//! Observations of the program at the API servers: renewals of Leases, probes of members and taints of Clusters.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use anyhow::bail;
use bulkhead_apiserver::{ApiServer, ChangeType, Clock, KindId, Object};
use k8s_openapi::jiff::Timestamp;
use serde_json::Value;

/// Path of a probe.
const PROBE: &str = "/readyz";

/// Pauses between the events of one sort.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Gaps {
    last_ms: Option<i64>,
    longest_ms: i64,
    /// Number of pauses.
    pub(crate) count: u64,
}

impl Gaps {
    /// Adds an event. An event at the time of the last one is the same event.
    fn add(&mut self, at_ms: i64) {
        let last_ms = self.last_ms.replace(at_ms);
        if let Some(last_ms) = last_ms.filter(|last_ms| *last_ms != at_ms) {
            self.longest_ms = self.longest_ms.max(at_ms - last_ms);
            self.count += 1;
        }
    }

    /// Returns the longest pause in seconds, with the one that still lasts. `None` if there was no event.
    pub(crate) fn longest_s(&self, now_ms: i64) -> Option<f64> {
        let open_ms = now_ms - self.last_ms?;
        Some(self.longest_ms.max(open_ms) as f64 / 1_000.0)
    }
}

#[derive(Default)]
struct State {
    /// Times of renewals, by namespace and name of the Lease.
    leases: BTreeMap<String, Gaps>,
    /// Times of probes, by member.
    probes: BTreeMap<String, Gaps>,
    /// Taints, each with its cluster.
    taints: BTreeSet<String>,
}

/// Observer of one federation.
pub(crate) struct Observer {
    clock: Clock,
    state: Mutex<State>,
}

/// Observations of one measurement.
pub(crate) struct Observed {
    /// Longest pause between two renewals of a Lease in seconds, and the number of pauses, by namespace and name.
    pub(crate) leases: BTreeMap<String, (f64, u64)>,
    /// Longest pause between two probes in seconds, and the number of pauses, by member.
    pub(crate) probes: BTreeMap<String, (f64, u64)>,
    /// Taints that a Cluster had at any time, each with its cluster.
    pub(crate) taints: BTreeSet<String>,
}

impl Observer {
    pub(crate) fn new(clock: Clock) -> Self {
        Self {
            clock,
            state: Mutex::default(),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn now_ms(&self) -> i64 {
        self.clock.now().as_millisecond()
    }

    /// Notes a request to a member.
    pub(crate) fn request(&self, member: &str, path: &str) {
        if path == PROBE {
            let now_ms = self.now_ms();
            self.state().probes.entry(member.to_owned()).or_default().add(now_ms);
        }
    }

    /// Follows the Leases and Clusters of the control plane.
    ///
    /// # Errors
    ///
    /// Changes were lost, so the observations are incomplete.
    pub(crate) async fn follow(&self, hub: &ApiServer) -> anyhow::Result<()> {
        let Some(leases) = hub.kind_id("coordination.k8s.io/v1", "Lease") else {
            bail!("no Leases are served")
        };
        let clusters = clusters(hub)?;
        let mut changes = hub.store().subscribe(&[leases, clusters]);
        loop {
            changes.changed().await;
            for change in changes.drain()? {
                if change.change_type() == ChangeType::Deleted {
                    continue;
                }
                if change.key.kind == leases {
                    self.lease(&change.object);
                } else {
                    self.state().taints.extend(taints(&change.object));
                }
            }
        }
    }

    fn lease(&self, lease: &Object) {
        let renewed = lease.content()["spec"]["renewTime"]
            .as_str()
            .and_then(|time| time.parse::<Timestamp>().ok());
        if let Some(renewed) = renewed {
            let name = format!("{}/{}", lease.namespace(), lease.name());
            self.state()
                .leases
                .entry(name)
                .or_default()
                .add(renewed.as_millisecond());
        }
    }

    /// Starts a measurement. A pause that lasts counts from its start.
    pub(crate) fn restart(&self, hub: &ApiServer) -> anyhow::Result<()> {
        let clusters = clusters(hub)?;
        let mut state = self.state();
        let State { leases, probes, .. } = &mut *state;
        for gaps in leases.values_mut().chain(probes.values_mut()) {
            *gaps = Gaps {
                last_ms: gaps.last_ms,
                ..Gaps::default()
            };
        }
        state.taints = hub
            .store()
            .list(clusters, None)
            .iter()
            .flat_map(|cluster| taints(cluster))
            .collect();
        Ok(())
    }

    /// Ends a measurement.
    pub(crate) fn observed(&self) -> Observed {
        let (now_ms, state) = (self.now_ms(), self.state());
        let longest = |gaps: &BTreeMap<String, Gaps>| {
            let of = |(name, gaps): (&String, &Gaps)| Some((name.clone(), (gaps.longest_s(now_ms)?, gaps.count)));
            gaps.iter().filter_map(of).collect()
        };
        Observed {
            leases: longest(&state.leases),
            probes: longest(&state.probes),
            taints: state.taints.clone(),
        }
    }
}

fn clusters(hub: &ApiServer) -> anyhow::Result<KindId> {
    let kind = hub.kind_id("cluster.karmada.io/v1alpha1", "Cluster");
    kind.ok_or_else(|| anyhow::anyhow!("no Clusters are served"))
}

/// Returns the taints of a Cluster, each with the name of the Cluster.
fn taints(cluster: &Object) -> Vec<String> {
    let taints = cluster.content()["spec"]["taints"]
        .as_array()
        .cloned()
        .unwrap_or_default();
    let text = |taint: &Value, field: &str| taint[field].as_str().unwrap_or_default().to_owned();
    let named = |taint: &Value| format!("{}: {}:{}", cluster.name(), text(taint, "key"), text(taint, "effect"));
    taints.iter().map(named).collect()
}
