//! Data collection for `bulkhead top`.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, bail};
use bulkhead_api::{AnyBinding, Cluster, ClusterResourceBinding, EvictionPause, Plugin, PluginTrust, ResourceBinding};
use bulkhead_controllers::{QueuedEviction, connect};
use bulkhead_core::combine::Attribution;
use bulkhead_core::decide::eviction::taint_based::applied_placement;
use bulkhead_core::decide::graceful_eviction::{self, GracefulEvictionSnapshot, Unconfirmed, UnconfirmedTargets};
use bulkhead_core::model::{self, Binding, ConditionStatus};
use bulkhead_core::policy::EngineKind;
use bulkhead_core::time::Time;
use bulkhead_runtime::connection::WritePermit;
use bulkhead_runtime::pages;
use bulkhead_server::hub::in_time;
use bulkhead_server::queries::client::{LeaderArguments, Leaders};
use http::{Request, Uri};
use k8s_openapi::jiff::Timestamp;
use kube::{Api, Client, Config, ResourceExt};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::policies::Policies;

/// Time limit of the metrics request.
const METRICS_TIME_MAX: Duration = Duration::from_secs(2);

/// Data sources.
pub(super) struct Source {
    client: Client,
    metrics: Option<MetricsEndpoint>,
    policies: Policies,
    leader: Option<LeaderArguments>,
}

/// Metrics endpoint of `bulkhead run`.
struct MetricsEndpoint {
    /// Host and port.
    host: String,
    client: Client,
}

/// State at one moment.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct View {
    /// Time of the observation.
    pub(super) at: Timestamp,
    pub(super) clusters: Vec<ClusterRow>,
    pub(super) tasks: Vec<TaskRow>,
    /// Number of evictions that are ready to be processed; absent without metrics.
    pub(super) queue_depth: Option<u64>,
    /// Evictions in the queue of the leader, those that wait longest first; absent if it was not asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) queued: Option<Vec<QueuedEviction>>,
    /// Error of asking the leader.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) queue_problem: Option<String>,
    /// Reasons of the EvictionPauses, by name.
    pub(super) pauses: BTreeMap<String, String>,
    /// Error of reading the EvictionPauses.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) pause_problem: Option<String>,
    /// Bindings without a placement.
    pub(super) unplaced: Vec<String>,
    /// Reasons for plugins of the control plane not being in force here. Their verdicts are missing in `tasks`.
    pub(super) plugin_problems: Vec<String>,
    /// Error of the metrics request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) metrics_problem: Option<String>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ClusterRow {
    pub(super) name: String,
    /// `True`, `False` or `Unknown`.
    pub(super) ready: &'static str,
    /// Last transition of the Ready condition, if known.
    pub(super) since: Option<Timestamp>,
    /// Reason for not being ready.
    pub(super) reason: String,
    pub(super) taints: Vec<String>,
    /// Number of bindings with the cluster as a target.
    pub(super) bindings: usize,
    /// Replicas of those bindings on the cluster.
    pub(super) replicas: i64,
    /// Number of bindings with a graceful eviction task from the cluster.
    pub(super) leaving: usize,
    /// Number of bindings that have a healthy copy on the cluster, a leaving one included.
    pub(super) healthy: usize,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct TaskRow {
    /// Binding, as `namespace/name` or `name`.
    pub(super) binding: String,
    pub(super) from: String,
    /// Current placement: replicas by cluster.
    pub(super) to: BTreeMap<String, i32>,
    pub(super) reason: String,
    pub(super) producer: String,
    /// Start of the grace period.
    pub(super) since: Option<Timestamp>,
    /// Reason for keeping the old copy, according to the locally known plugins and settings.
    pub(super) waits_for: String,
}

impl Source {
    pub(super) fn new(client: Client, metrics: Option<&str>, policies: Policies) -> anyhow::Result<Self> {
        let endpoint = |url: &str| -> anyhow::Result<MetricsEndpoint> {
            let parsed: Uri = url.parse().with_context(|| format!("--metrics {url}"))?;
            if !matches!(parsed.scheme_str(), None | Some("http")) {
                bail!("--metrics {url}: it must be a plain http URL, as bulkhead run serves it");
            }
            let authority = parsed
                .authority()
                .with_context(|| format!("--metrics {url} has no host"))?;
            let host = authority.to_string();
            let address = format!("http://{host}")
                .parse::<Uri>()
                .with_context(|| format!("--metrics {url}"))?;
            let mut config = Config::new(address);
            // Plain HTTP needs no certificates, and the machine may have none.
            config.root_cert = Some(Vec::new());
            let client = connect(config, &WritePermit::report_only(), &Arc::default())?;
            Ok(MetricsEndpoint {
                host,
                client: in_time(client, METRICS_TIME_MAX),
            })
        };
        let metrics = metrics.map(endpoint).transpose()?;
        Ok(Self {
            client,
            metrics,
            policies,
            leader: None,
        })
    }

    /// Asks the leader for queued evictions too.
    pub(super) fn asking(self, leader: LeaderArguments) -> Self {
        Self {
            leader: Some(leader),
            ..self
        }
    }

    /// Returns the evictions that the leader has queued; `None` if it does not answer queries.
    async fn queued(&self) -> anyhow::Result<Option<Vec<QueuedEviction>>> {
        let Some(arguments) = &self.leader else { return Ok(None) };
        match Leaders::of_control_plane(self.client.clone(), arguments).await? {
            Some(leaders) => leaders.evictions().await.map(Some),
            None => Ok(None),
        }
    }

    /// Collects the current state. An error names every API of clusters and bindings that cannot be read; all other
    /// problems are part of the view.
    pub(super) async fn look(&self, now: Timestamp) -> anyhow::Result<View> {
        let client = &self.client;
        let (clusters, of_namespaces, of_cluster_scope, pauses, plugins, trust) = tokio::join!(
            list::<Cluster>(client),
            list::<ResourceBinding>(client),
            list::<ClusterResourceBinding>(client),
            list::<EvictionPause>(client),
            list::<Plugin>(client),
            list::<PluginTrust>(client),
        );
        let failed = [
            clusters.as_ref().err(),
            of_namespaces.as_ref().err(),
            of_cluster_scope.as_ref().err(),
        ];
        let failed: Vec<_> = failed.into_iter().flatten().map(crate::exit::error_text).collect();
        if failed.len() > 1 {
            bail!("{}", failed.join("; "));
        }
        let (clusters, of_namespaces, of_cluster_scope) = (clusters?, of_namespaces?, of_cluster_scope?);
        let mut bindings: Vec<Binding> = of_namespaces.iter().map(AnyBinding::to_model).collect();
        bindings.extend(of_cluster_scope.iter().map(AnyBinding::to_model));
        // In a Karmada installation, the CRDs of this project may be missing.
        let (pauses, pause_problem) = match pauses {
            Ok(pauses) => (pauses, None),
            Err(error) if is_not_served(&error) => (Vec::new(), None),
            Err(error) => (Vec::new(), Some(crate::exit::error_text(&error))),
        };
        let mut plugin_problems = Vec::new();
        match plugins {
            Ok(plugins) => self.policies.refresh(&plugins),
            Err(error) if is_not_served(&error) => {}
            Err(error) => plugin_problems.push(crate::exit::error_text(&error)),
        }
        match trust {
            Ok(trust) => self.policies.trust(&trust),
            Err(error) if is_not_served(&error) => self.policies.trust(&[]),
            Err(error) if self.policies.needs_trust() => plugin_problems.push(crate::exit::error_text(&error)),
            Err(_) => {}
        }
        plugin_problems.extend(self.policies.refused());
        let (queue_depth, metrics_problem) = match &self.metrics {
            None => (None, None),
            Some(endpoint) => match queue_depth(endpoint).await {
                Ok(depth) => (Some(depth), None),
                Err(error) => (None, Some(crate::exit::error_text(&error))),
            },
        };
        let (queued, queue_problem) = match self.queued().await {
            Ok(queued) => (queued, None),
            Err(error) => (None, Some(crate::exit::error_text(&error))),
        };
        let clusters: Vec<model::Cluster> = clusters.iter().map(Cluster::to_model).collect();
        Ok(View {
            at: now,
            clusters: clusters.iter().map(|cluster| cluster_row(cluster, &bindings)).collect(),
            tasks: self.tasks(&clusters, &bindings, Time::new(now)),
            queue_depth,
            queued,
            queue_problem,
            pauses: pauses
                .iter()
                .map(|pause| (pause.name_any(), pause.spec.reason.clone()))
                .collect(),
            pause_problem,
            unplaced: bindings
                .iter()
                .filter(|binding| is_unplaced(binding))
                .map(Binding::key)
                .collect(),
            plugin_problems,
            metrics_problem,
        })
    }

    fn tasks(&self, clusters: &[model::Cluster], bindings: &[Binding], now: Time) -> Vec<TaskRow> {
        let (policies, options) = (self.policies.current(), self.policies.options());
        let mut rows = Vec::new();
        for binding in bindings
            .iter()
            .filter(|binding| !binding.spec.graceful_eviction_tasks.is_empty())
        {
            let tasks = &binding.spec.graceful_eviction_tasks;
            let is_source = |cluster: &&model::Cluster| tasks.iter().any(|task| task.from_cluster == cluster.name);
            let sources: Vec<_> = clusters.iter().filter(is_source).cloned().collect();
            let unconfirmed = unconfirmed(binding, clusters);
            let snapshot = GracefulEvictionSnapshot {
                binding,
                sources: &sources,
                unconfirmed: &unconfirmed,
                options,
                now,
            };
            let plan = graceful_eviction::decide(snapshot, &policies);
            for task in tasks {
                let held = plan.held.iter().find(|(held, _)| held == task);
                let waits_for = match held {
                    Some((_, attribution)) => held_by(attribution),
                    None if plan.released.iter().any(|(released, _)| released == task) => {
                        "may go now, by the plugins known here".to_owned()
                    }
                    None => "its grace period begins".to_owned(),
                };
                rows.push(TaskRow {
                    binding: binding.key(),
                    from: task.from_cluster.clone(),
                    to: binding
                        .spec
                        .clusters
                        .iter()
                        .map(|target| (target.name.clone(), target.replicas))
                        .collect(),
                    reason: task.reason.clone(),
                    producer: task.producer.clone(),
                    since: task.creation_timestamp.map(Time::timestamp),
                    waits_for,
                });
            }
        }
        // Oldest first.
        rows.sort_by(|a, b| (a.since, &a.binding).cmp(&(b.since, &b.binding)));
        rows
    }
}

/// Returns the targets of a binding whose reports do not count, according to their Cluster objects.
fn unconfirmed(binding: &Binding, clusters: &[model::Cluster]) -> UnconfirmedTargets {
    let doubt = |name: &String| match clusters.iter().find(|cluster| cluster.name == *name) {
        Some(cluster) => Unconfirmed::of_cluster(cluster.is_terminating(), &cluster.status.conditions),
        None => Some(Unconfirmed::Missing),
    };
    let targets = binding.spec.clusters.iter();
    targets
        .filter_map(|target| Some((target.name.clone(), doubt(&target.name)?)))
        .collect()
}

/// Formats a reason, with the plugin that gave it.
fn held_by(attribution: &Attribution) -> String {
    match attribution
        .policy
        .as_ref()
        .filter(|policy| policy.engine != EngineKind::Builtin)
    {
        Some(plugin) => format!("{} (plugin {})", attribution.reason, plugin.name),
        None => attribution.reason.to_string(),
    }
}

/// Returns true if the scheduler has not placed a binding. Bindings that exist only as dependencies of others are
/// not counted: they follow the placement of those.
fn is_unplaced(binding: &Binding) -> bool {
    let is_dependency = binding.spec.placement.is_none() && !binding.spec.required_by.is_empty();
    applied_placement(binding).is_none() && !is_dependency
}

fn cluster_row(cluster: &model::Cluster, bindings: &[Binding]) -> ClusterRow {
    let ready = cluster.ready();
    let name = &cluster.name;
    let targets = bindings
        .iter()
        .flat_map(|b| &b.spec.clusters)
        .filter(|target| target.name == *name);
    let leaves = |b: &&Binding| {
        b.spec
            .graceful_eviction_tasks
            .iter()
            .any(|task| task.from_cluster == *name)
    };
    // A report may outlive the copy that it is about.
    let has_copy = |b: &&Binding| leaves(b) || b.spec.clusters.iter().any(|target| target.name == *name);
    let is_healthy = |b: &&Binding| {
        let mut items = b.status.aggregated_status.iter();
        items.any(|item| item.cluster_name == *name && item.health == Some(model::Health::Healthy))
    };
    ClusterRow {
        name: name.clone(),
        ready: ready.map_or(ConditionStatus::Unknown, |ready| ready.status).as_str(),
        since: ready.and_then(|ready| ready.last_transition_time).map(Time::timestamp),
        reason: ready
            .filter(|_| !cluster.is_ready())
            .map(|ready| ready.reason.clone())
            .unwrap_or_default(),
        taints: cluster.spec.taints.iter().map(ToString::to_string).collect(),
        bindings: targets.clone().count(),
        replicas: targets.map(|target| i64::from(target.replicas)).sum(),
        leaving: bindings.iter().filter(leaves).count(),
        healthy: bindings.iter().filter(has_copy).filter(is_healthy).count(),
    }
}

/// Lists every object of a kind, page by page.
async fn list<K>(client: &Client) -> anyhow::Result<Vec<K>>
where
    K: kube::Resource<DynamicType = ()> + Clone + DeserializeOwned + std::fmt::Debug,
{
    let api: Api<K> = Api::all(client.clone());
    let mut all = Vec::new();
    pages::each(async |page| api.list(page).await, |object| all.push(object))
        .await
        .with_context(|| format!("reading {}", K::plural(&())))?;
    Ok(all)
}

fn is_not_served(error: &anyhow::Error) -> bool {
    matches!(error.downcast_ref(), Some(kube::Error::Api(status)) if status.code == 404)
}

/// Reads the number of evictions that are ready to be processed.
async fn queue_depth(MetricsEndpoint { host, client }: &MetricsEndpoint) -> anyhow::Result<u64> {
    let request = Request::get("/metrics").body(Vec::new())?;
    let text = client
        .request_text(request)
        .await
        .with_context(|| format!("reading the metrics at {host}"))?;
    let depths = text.lines().filter(|line| line.starts_with("eviction_queue_depth"));
    let depths = depths.filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok());
    Ok(depths.sum::<f64>() as u64)
}

#[cfg(test)]
mod tests;
