//! Alert about a second writer.

use std::time::Duration;

use anyhow::ensure;
use bulkhead_api::ResourceBinding;
use kube::api::{Patch, PatchParams};
use kube::{Api, Client};
use serde_json::json;
use tokio::task::JoinSet;

use super::trial::Trial;
use crate::control_plane::NEIGHBOUR;
use crate::policies::to_member2;
use crate::storm;

/// Numbers of the Deployments whose bindings the second writer changes, above those of a storm.
const APPS: [usize; 3] = [1_000, 1_001, 1_002];
/// Pause after a write that failed.
const AGAIN: Duration = Duration::from_millis(200);

/// Another program changes the replicas of bindings, so that the scheduler places them over and over and is always too
/// late.
pub(super) async fn run(trial: &mut Trial<'_>) -> anyhow::Result<()> {
    let federation = &trial.federation;
    federation.kubectl_with(
        &["apply", "-f", "-"],
        &to_member2("contested", "apps/v1", "Deployment").to_string(),
    )?;
    for number in APPS {
        federation.kubectl_with(&["apply", "-f", "-"], &deployment(number).to_string())?;
    }
    for number in APPS {
        federation.wait_placed(&binding(number), &[("member2", 1)]).await?;
    }
    let mut writers = JoinSet::new();
    for number in APPS {
        let client = federation.hub.client_of(NEIGHBOUR).await?;
        writers.spawn(rescale(client, binding(number)));
    }
    let section = trial.fires("BulkheadWriteConflicts").await?;
    let binding = binding(APPS[0]);
    let show = "kubectl --kubeconfig KARMADA get resourcebinding NAME";
    let managers = trial.run(&section, show, &[("NAME", &binding)])?;
    ensure!(
        managers.contains(&format!("manager: {NEIGHBOUR}")),
        "the second writer is not shown: {managers}"
    );
    section.says("Switch off one of the two writers")?;
    writers.shutdown().await;
    trial.end(&["BulkheadWriteConflicts"]).await?;
    let delete = ["delete", "deployment", "-l", "contested=yes"];
    trial.federation.kubectl(&delete).map(drop)
}

/// Changes the replicas of a binding without a pause.
async fn rescale(client: Client, binding: String) {
    let api: Api<ResourceBinding> = Api::namespaced(client, "default");
    let parameters = PatchParams {
        field_manager: Some(NEIGHBOUR.to_owned()),
        ..PatchParams::default()
    };
    for number in 0_u32.. {
        let patch = Patch::Merge(json!({"spec": {"replicas": 2 + number % 3}}));
        if api.patch(&binding, &parameters, &patch).await.is_err() {
            tokio::time::sleep(AGAIN).await;
        }
    }
}

fn binding(number: usize) -> String {
    format!("app-{number}-deployment")
}

fn deployment(number: usize) -> serde_json::Value {
    let mut deployment = storm::deployment(number, 1, &json!({}));
    deployment["metadata"]["labels"] = json!({"contested": "yes"});
    deployment
}
