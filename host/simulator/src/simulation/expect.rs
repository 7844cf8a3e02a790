//! Evaluation of expectations.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use bulkhead_api::{
    AnyBinding, Cluster, ClusterFailoverRecord, ClusterResourceBinding, FailoverRecord, ResourceBinding, Work,
};
use bulkhead_controllers::flags::GoDuration;
use bulkhead_core::model::{ConditionStatus, FailoverState};
use bulkhead_core::names;
use k8s_openapi::api::core::v1::Event;
use kube::api::ListParams;
use kube::{Api, Client, ResourceExt};

use super::federation::Federation;
use super::timeline;
use crate::report::ExpectationRow;
use crate::scenario::{Expectation, parse_workload};

/// Actual state if it differs from the expected one; `None` if the expectation holds.
pub(super) type Seen = Option<String>;

/// State of one expectation during a run.
pub(super) struct Watched {
    line: u64,
    expectation: Expectation,
    failed: Option<String>,
    looked_at: bool,
}

impl Watched {
    pub(super) fn new(line: u64, expectation: Expectation) -> Self {
        Self {
            line,
            expectation,
            failed: None,
            looked_at: false,
        }
    }

    /// Returns the single time of the check, `end` by default; `None` for an expectation over a period.
    pub(super) fn moment(&self, end: GoDuration) -> Option<GoDuration> {
        self.expectation
            .from
            .is_none()
            .then(|| self.expectation.at.unwrap_or(end))
    }

    /// Returns true if the expectation covers a period that includes `at`, and has not failed yet.
    pub(super) fn covers(&self, at: GoDuration) -> bool {
        self.failed.is_none()
            && self.expectation.from.is_some_and(|from| from <= at)
            && self.expectation.until.is_none_or(|until| at <= until)
    }

    /// Evaluates the expectation now.
    pub(super) async fn look(&mut self, federation: &Federation, at: GoDuration) -> anyhow::Result<()> {
        self.looked_at = true;
        if let Some(seen) = check(federation, &self.expectation).await? {
            self.failed = Some(if self.expectation.from.is_some() {
                format!("at {at}: {seen}")
            } else {
                seen
            });
        }
        Ok(())
    }

    pub(super) fn row(&self) -> ExpectationRow {
        let expectation = &self.expectation;
        let when = match (expectation.at, expectation.from, expectation.until) {
            (Some(at), _, _) => format!("at {at}"),
            (None, Some(from), Some(until)) => format!("from {from} until {until}"),
            (None, Some(from), None) => format!("from {from} on"),
            (None, None, _) => "at the end".to_owned(),
        };
        let seen = if self.looked_at {
            self.failed.clone()
        } else {
            Some("the run ended before that time".to_owned())
        };
        ExpectationRow {
            line: self.line,
            when,
            expected: describe(expectation),
            held: seen.is_none(),
            seen: seen.unwrap_or_default(),
        }
    }
}

fn describe(expectation: &Expectation) -> String {
    let mut parts = Vec::new();
    if let Some(binding) = &expectation.binding {
        if let Some(clusters) = &expectation.clusters {
            parts.push(format!("{binding} is placed {}", placement(clusters)));
        }
        if let Some(placements) = &expectation.clusters_one_of {
            let choices: Vec<_> = placements.iter().map(placement).collect();
            parts.push(format!("{binding} is placed {}", choices.join(" or ")));
        }
        if let Some(clusters) = &expectation.evicting_from {
            parts.push(format!("{binding} is being evicted from {}", list(clusters)));
        }
        if let Some(clusters) = &expectation.works_in {
            parts.push(format!("{binding} has a Work in {}", list(clusters)));
        }
        if let Some(steps) = &expectation.recorded {
            parts.push(format!("{binding} has the record {}", list(steps)));
        }
    }
    if let Some(on) = &expectation.bindings_on {
        parts.push(format!("{} bindings are placed on {}", on.count, on.cluster));
    }
    if let Some(cluster) = &expectation.cluster {
        if let Some(ready) = &expectation.ready {
            parts.push(format!("Ready of {cluster} is {ready}"));
        }
        if let Some(taints) = &expectation.taints {
            parts.push(format!("{cluster} has the taints {}", list(taints)));
        }
    }
    if let Some(workload) = &expectation.workload {
        if let Some(replicas) = &expectation.ready_replicas {
            parts.push(format!("{workload} has ready replicas {}", placement(replicas)));
        }
        if let Some(least) = expectation.ready_replicas_min {
            parts.push(format!("{workload} has at least {least} ready replicas in reach"));
        }
        if let Some(by_cluster) = &expectation.images {
            parts.push(format!("{workload} has the images {}", images(by_cluster)));
        }
    }
    if let Some(event) = &expectation.event {
        let about = event
            .name
            .as_ref()
            .map(|name| format!(" about {name}"))
            .unwrap_or_default();
        parts.push(format!(
            "there is {} event {}{about}",
            if event.absent { "no" } else { "an" },
            event.reason
        ));
    }
    if let Some(decision) = &expectation.decision {
        let mut text = format!(
            "there is {} decision {:?}",
            if decision.absent { "no" } else { "a" },
            decision.decision
        );
        for (word, value) in [
            ("about", &decision.object),
            ("on", &decision.cluster),
            ("because of", &decision.reason),
            ("by", &decision.plugin),
        ] {
            if let Some(value) = value {
                let _ = write!(text, " {word} {value}");
            }
        }
        parts.push(text);
    }
    parts.join(" and ")
}

fn placement<N: std::fmt::Display>(clusters: &BTreeMap<String, N>) -> String {
    if clusters.is_empty() {
        return "nowhere".to_owned();
    }
    clusters
        .iter()
        .map(|(cluster, replicas)| format!("{cluster}:{replicas}"))
        .collect::<Vec<_>>()
        .join(", ")
}

fn list(items: &[String]) -> String {
    if items.is_empty() {
        "none".to_owned()
    } else {
        items.join(", ")
    }
}

async fn check(federation: &Federation, expectation: &Expectation) -> anyhow::Result<Seen> {
    if let Some(key) = &expectation.binding {
        let client = federation.client();
        let seen = if let Some((namespace, name)) = key.split_once('/') {
            let api: Api<ResourceBinding> = Api::namespaced(client, namespace);
            check_binding(federation, expectation, api.get_opt(name).await?).await?
        } else {
            let api: Api<ClusterResourceBinding> = Api::all(client);
            check_binding(federation, expectation, api.get_opt(key).await?).await?
        };
        return match &expectation.recorded {
            Some(wanted) if seen.is_none() => check_record(federation.client(), key, wanted).await,
            _ => Ok(seen),
        };
    }
    if let Some(on) = &expectation.bindings_on {
        let count = federation.bindings_on(&on.cluster);
        return Ok((count != on.count).then(|| format!("{count}")));
    }
    if let Some(name) = &expectation.cluster {
        let api: Api<Cluster> = Api::all(federation.client());
        return Ok(match api.get_opt(name).await? {
            None => Some("the cluster does not exist".to_owned()),
            Some(cluster) => check_cluster(expectation, &cluster),
        });
    }
    if let Some(workload) = &expectation.workload {
        return Ok(check_workload(federation, expectation, workload));
    }
    if let Some(event) = &expectation.event {
        let events = Api::<Event>::all(federation.client())
            .list(&ListParams::default())
            .await?;
        let found = events.items.iter().any(|found| {
            found.reason.as_deref() == Some(&event.reason)
                && event
                    .name
                    .as_ref()
                    .is_none_or(|name| found.involved_object.name.as_ref() == Some(name))
        });
        return Ok((found == event.absent).then(|| if found { "there is one" } else { "there is none" }.to_owned()));
    }
    if let Some(wanted) = &expectation.decision {
        let found = timeline::taken(federation.journal()).into_iter().any(|record| {
            let entry = &record.entry;
            let plugin = entry.attribution.policy.as_ref().map(|policy| policy.name.as_str());
            entry.decision == wanted.decision
                && wanted
                    .reason
                    .as_ref()
                    .is_none_or(|reason| *reason == entry.attribution.reason.code)
                && wanted.plugin.as_deref().is_none_or(|name| plugin == Some(name))
                && wanted
                    .object
                    .as_ref()
                    .is_none_or(|object| *object == entry.subject.key())
                && wanted
                    .cluster
                    .as_ref()
                    .is_none_or(|cluster| entry.cluster.as_ref() == Some(cluster))
        });
        return Ok((found == wanted.absent).then(|| if found { "there is one" } else { "there is none" }.to_owned()));
    }
    Ok(None)
}

async fn check_binding<B: AnyBinding>(
    federation: &Federation,
    expectation: &Expectation,
    binding: Option<B>,
) -> anyhow::Result<Seen> {
    let Some(binding) = binding else {
        return Ok(Some("the binding does not exist".to_owned()));
    };
    let spec = binding.spec();
    let placed: BTreeMap<_, _> = spec
        .clusters
        .iter()
        .map(|target| (target.name.clone(), target.replicas))
        .collect();
    let accepted = expectation
        .clusters
        .iter()
        .chain(expectation.clusters_one_of.iter().flatten());
    let accepted: Vec<_> = accepted.collect();
    let mut seen = Vec::new();
    if !accepted.is_empty() && !accepted.contains(&&placed) {
        seen.push(format!("placed {}", placement(&placed)));
    }
    if let Some(wanted) = &expectation.evicting_from {
        let tasks: Vec<_> = spec
            .graceful_eviction_tasks
            .iter()
            .map(|task| task.from_cluster.clone())
            .collect();
        if sorted(&tasks) != sorted(wanted) {
            seen.push(format!("being evicted from {}", list(&tasks)));
        }
    }
    if let Some(wanted) = &expectation.works_in {
        let name = names::work_name(&spec.resource.kind, &spec.resource.name, &spec.resource.namespace);
        let works = Api::<Work>::all(federation.client())
            .list(&ListParams::default())
            .await?;
        let clusters = works
            .items
            .iter()
            .filter(|work| work.name_any() == name)
            .filter_map(|work| {
                let namespace = work.namespace()?;
                names::cluster_of_execution_namespace(&namespace).map(str::to_owned)
            });
        let clusters: Vec<_> = clusters.collect();
        if sorted(&clusters) != sorted(wanted) {
            seen.push(format!("Works in {}", list(&clusters)));
        }
    }
    Ok((!seen.is_empty()).then(|| seen.join("; ")))
}

async fn check_record(client: Client, binding: &str, wanted: &[String]) -> anyhow::Result<Seen> {
    let status = if let Some((namespace, name)) = binding.split_once('/') {
        let api: Api<FailoverRecord> = Api::namespaced(client, namespace);
        api.get_opt(name).await?.map(|record| record.status)
    } else {
        let api: Api<ClusterFailoverRecord> = Api::all(client);
        api.get_opt(binding).await?.map(|record| record.status)
    };
    let steps = status.into_iter().flat_map(|status| status.steps);
    let steps = steps.filter(|step| step.state != FailoverState::Held);
    let steps: Vec<_> = steps.map(|step| format!("{:?} {}", step.state, step.from)).collect();
    Ok((steps != wanted).then(|| format!("the record {}", list(&steps))))
}

fn sorted(items: &[String]) -> BTreeSet<&String> {
    items.iter().collect()
}

fn check_cluster(expectation: &Expectation, cluster: &Cluster) -> Seen {
    let mut seen = Vec::new();
    let model = cluster.to_model();
    if let Some(wanted) = &expectation.ready {
        let ready = model
            .ready()
            .map_or(ConditionStatus::Unknown, |ready| ready.status)
            .as_str();
        if ready != wanted {
            seen.push(format!("Ready is {ready}"));
        }
    }
    if let Some(wanted) = &expectation.taints {
        let taints: Vec<_> = model.spec.taints.iter().map(ToString::to_string).collect();
        if sorted(&taints) != sorted(wanted) {
            seen.push(format!("taints are {}", list(&taints)));
        }
    }
    (!seen.is_empty()).then(|| seen.join("; "))
}

/// Formats images by member cluster.
fn images(by_cluster: &BTreeMap<String, Vec<String>>) -> String {
    let of_cluster = |(cluster, images): (&String, &Vec<String>)| format!("{cluster}: {}", list(images));
    by_cluster.iter().map(of_cluster).collect::<Vec<_>>().join("; ")
}

fn check_workload(federation: &Federation, expectation: &Expectation, workload: &str) -> Seen {
    let (kind, namespace, name) = parse_workload(workload)?;
    let mut seen = Vec::new();
    if let Some(wanted) = &expectation.ready_replicas {
        let ready = federation.ready_replicas(kind, namespace, name, false);
        if ready != *wanted {
            seen.push(placement(&ready));
        }
    }
    if let Some(least) = expectation.ready_replicas_min {
        let reachable = federation.ready_replicas(kind, namespace, name, true);
        if reachable.values().sum::<i64>() < least {
            seen.push(format!("{} in reach", placement(&reachable)));
        }
    }
    if let Some(wanted) = &expectation.images {
        let found = federation.images(kind, namespace, name);
        if found != *wanted {
            seen.push(format!("images are {}", images(&found)));
        }
    }
    (!seen.is_empty()).then(|| seen.join("; "))
}
