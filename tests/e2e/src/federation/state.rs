//! Waits for states of clusters, bindings and Deployments.

use std::time::Duration;

use anyhow::Context as _;
use bulkhead_api::{Cluster, FailoverRecord, ResourceBinding};
use bulkhead_core::model::{FailoverState, Health};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Pod;
use kube::api::ListParams;
use kube::{Api, Client};

use super::Federation;
use crate::wait;

impl Federation<'_> {
    /// Waits until a member's Ready condition is as wanted, and returns the elapsed time.
    pub(crate) async fn wait_ready(&self, name: &str, ready: bool) -> anyhow::Result<Duration> {
        let what = format!("{name} is {}", if ready { "ready" } else { "not ready" });
        wait::until(&what, Duration::from_secs(90), async || {
            self.is_ready(name, ready).await
        })
        .await
    }

    /// Returns an error unless a member's Ready condition is as wanted.
    pub(crate) async fn is_ready(&self, name: &str, ready: bool) -> Result<(), String> {
        let api: Api<Cluster> = Api::all(self.client.clone());
        let cluster = api.get(name).await.map_err(|error| error.to_string())?.to_model();
        if cluster.is_ready() == ready {
            Ok(())
        } else {
            Err(format!("{:?}", cluster.ready()))
        }
    }

    /// Waits until a binding has these replicas per cluster, all healthy, and no eviction task. Returns the elapsed
    /// time.
    pub(crate) async fn wait_placed(&self, binding: &str, expected: &[(&str, i32)]) -> anyhow::Result<Duration> {
        let what = format!("{binding} is healthy on {expected:?}");
        wait::until(&what, Duration::from_secs(90), async || {
            self.placed(binding, expected).await
        })
        .await
    }

    /// Waits until the record of a binding ends with these steps and their clusters; holds are left out.
    pub(crate) async fn wait_recorded(&self, binding: &str, expected: &[(FailoverState, &str)]) -> anyhow::Result<()> {
        let api: Api<FailoverRecord> = Api::namespaced(self.client.clone(), "default");
        let what = format!("the record of {binding} ends with {expected:?}");
        let elapsed = wait::until(&what, Duration::from_secs(30), async || {
            let record = api.get(binding).await.map_err(|error| error.to_string())?;
            let steps = record.status.steps.iter();
            let steps: Vec<_> = steps
                .filter(|step| step.state != FailoverState::Held)
                .map(|step| (step.state, step.from.as_str()))
                .collect();
            if steps.ends_with(expected) {
                Ok(())
            } else {
                Err(format!("{:?}", record.status))
            }
        });
        elapsed.await.map(drop)
    }

    /// Returns an error unless a binding has these replicas per cluster, all healthy, and no eviction task.
    pub(crate) async fn placed(&self, binding: &str, expected: &[(&str, i32)]) -> Result<(), String> {
        let api: Api<ResourceBinding> = Api::namespaced(self.client.clone(), "default");
        let binding = api.get(binding).await.map_err(|error| error.to_string())?;
        let mut targets: Vec<_> = binding
            .spec
            .clusters
            .iter()
            .map(|t| (t.name.as_str(), t.replicas))
            .collect();
        targets.sort_unstable();
        if let Some(task) = binding.spec.graceful_eviction_tasks.first() {
            return Err(format!("still on {}", task.from_cluster));
        }
        let health = |cluster: &str| {
            let items = &binding.status.aggregated_status;
            items
                .iter()
                .find(|item| item.cluster_name == cluster)
                .and_then(|item| item.health)
        };
        if targets != expected {
            return Err(format!("placed on {targets:?}"));
        }
        if let Some((cluster, _)) = targets
            .iter()
            .find(|(cluster, _)| health(cluster) != Some(Health::Healthy))
        {
            return Err(format!("health on {cluster} is {:?}", health(cluster)));
        }
        Ok(())
    }

    /// Waits until a Deployment in a member has `ready` ready replicas; `None` means that the Deployment must not
    /// exist.
    pub(crate) async fn wait_deployed(&self, member: &str, name: &str, ready: Option<i32>) -> anyhow::Result<()> {
        let api: Api<Deployment> = Api::namespaced(self.client_of(member).await?, "default");
        let what = format!("{name} in {member} has {ready:?} ready replicas");
        wait::until(&what, Duration::from_mins(1), async || {
            let found = api.get_opt(name).await.map_err(|error| error.to_string())?;
            let seen = found.map(|found| found.status.and_then(|status| status.ready_replicas).unwrap_or(0));
            if seen == ready {
                Ok(())
            } else {
                Err(format!("{seen:?}"))
            }
        })
        .await?;
        Ok(())
    }

    /// Waits until the status of a member counts the pods that run in it.
    pub(crate) async fn wait_summed(&self, member: &str) -> anyhow::Result<()> {
        let (pods, clusters): (Api<Pod>, Api<Cluster>) =
            (Api::all(self.client_of(member).await?), Api::all(self.client.clone()));
        let what = format!("the status of {member} counts its pods");
        wait::until(&what, Duration::from_secs(30), async || {
            let pods = pods
                .list(&ListParams::default())
                .await
                .map_err(|error| error.to_string())?;
            let cluster = clusters.get(member).await.map_err(|error| error.to_string())?;
            let takes_room = |pod: &&Pod| {
                let on_node = pod.spec.as_ref().is_some_and(|spec| spec.node_name.is_some());
                let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
                on_node && !matches!(phase, Some("Succeeded" | "Failed"))
            };
            let running = pods.items.iter().filter(takes_room).count();
            let summary = cluster.status.resource_summary.unwrap_or_default();
            let counted = summary.allocated.get("pods").map_or("0", String::as_str);
            if counted == running.to_string() {
                Ok(())
            } else {
                Err(format!("{counted} of {running}"))
            }
        })
        .await?;
        Ok(())
    }

    async fn client_of(&self, member: &str) -> anyhow::Result<Client> {
        let plane = self.members.get(member);
        let plane = plane.with_context(|| format!("there is no member {member}"))?;
        plane.client().await
    }

    /// Returns the UID of a Deployment in a member.
    pub(crate) async fn deployment_uid(&self, member: &str, name: &str) -> anyhow::Result<String> {
        let api: Api<Deployment> = Api::namespaced(self.client_of(member).await?, "default");
        api.get(name).await?.metadata.uid.context("a Deployment without a uid")
    }
}
