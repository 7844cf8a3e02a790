//! Alerts about plugins, and about a queue that waits for one.

use anyhow::ensure;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use kube::api::PostParams;
use serde_json::json;

use super::trial::Trial;
use crate::plugins::{VITAL, apply, condition, observed, script};

/// Name of the plugin.
const PLUGIN: &str = "ranks";
/// Number of bindings that a faulty plugin is called for, more than the faults that start a quarantine.
const FEW: usize = 20;
/// Number of bindings that a slow plugin is called for. Two threads need longer than two minutes for them, so that the
/// oldest one waits for longer than the alert allows.
const MANY: usize = 300;
/// A script that fails for the first objects, and not for those of the test that each version has to pass.
const FAULTY: &str = "function Score(binding, clusters, now)\n  local resource = binding.spec.resource or {}\n  \
                      if string.sub(resource.name or '', 1, 4) == 'few-' then error('no rank') end\n  \
                      local scores = {}\n  for index in ipairs(clusters) do scores[index] = 1 end\n  return scores\nend\n";
/// A script that takes two to three seconds for each of the other objects on an idle machine, by about 17 ns for a
/// step.
const SLOW: &str = "function Score(binding, clusters, now)\n  local resource = binding.spec.resource or {}\n  \
                    local sum, scores = 0, {}\n  \
                    if string.sub(resource.name or '', 1, 5) == 'many-' then\n    \
                    for step = 1, 150000000 do sum = sum + step % 7 end\n  end\n  \
                    for index in ipairs(clusters) do scores[index] = sum % 7 end\n  return scores\nend\n";
/// Limits within which the slow script answers, also on a busy machine.
const BUDGET: &str = "  budget: {steps: 1000000000, wallClockMs: 25000}\n";

/// A new version of a plugin fails, and the previous one is restored.
pub(super) async fn faults(trial: &mut Trial<'_>) -> anyhow::Result<()> {
    let policy = policy().to_string();
    trial.federation.kubectl_with(&["apply", "-f", "-"], &policy)?;
    apply(&trial.federation, &script(PLUGIN, VITAL))?;
    active(trial).await?;
    apply(&trial.federation, &script(PLUGIN, FAULTY))?;
    active(trial).await?;
    create(trial, "few", FEW).await?;
    let section = trial.fires_with("BulkheadPluginFaults", &[("plugin", PLUGIN)]).await?;
    let lines = trial.logged(&section, 0, &[])?;
    ensure!(lines.contains(PLUGIN), "the log does not name the plugin: {lines}");
    let plugins = trial.run(&section, "kubectl --kubeconfig KARMADA get plugins", &[])?;
    ensure!(plugins.contains(PLUGIN), "the plugin is not shown: {plugins}");
    section.says("Restore the previous version")?;
    apply(&trial.federation, &script(PLUGIN, VITAL))?;
    trial.end(&["BulkheadPluginFaults"]).await
}

/// A new version of a plugin takes seconds, bindings queue for it, and it is switched off.
pub(super) async fn slow(trial: &mut Trial<'_>) -> anyhow::Result<()> {
    let slow = script(PLUGIN, SLOW) + BUDGET;
    apply(&trial.federation, &slow)?;
    active(trial).await?;
    create(trial, "many", MANY).await?;
    let plugin = trial.fires_with("BulkheadPluginSlow", &[("plugin", PLUGIN)]).await?;
    let labels = [("queue", "scheduler-active")];
    let queue = trial.fires_with("BulkheadQueueOld", &labels).await?;
    queue.says("Remove a slow plugin")?;
    plugin.says("`mode: \"off\"`")?;
    apply(&trial.federation, &(slow + "  mode: \"off\"\n"))?;
    trial.end(&["BulkheadPluginSlow", "BulkheadQueueOld"]).await?;
    let delete = ["delete", "configmap", "-l", "ranked=yes"];
    trial.federation.kubectl(&delete).map(drop)
}

/// Waits until the newest version of the plugin is active.
async fn active(trial: &Trial<'_>) -> anyhow::Result<()> {
    observed(&trial.federation, PLUGIN).await?;
    condition(&trial.federation, PLUGIN, "Loaded", "True", "is active").await
}

/// Creates ConfigMaps, each of which is scheduled with a call of the plugin.
async fn create(trial: &Trial<'_>, prefix: &str, count: usize) -> anyhow::Result<()> {
    let api: Api<ConfigMap> = Api::namespaced(trial.federation.client.clone(), "default");
    for number in 0..count {
        let object = json!({"metadata": {"name": format!("{prefix}-{number}"), "labels": {"ranked": "yes"}}});
        api.create(&PostParams::default(), &serde_json::from_value(object)?)
            .await?;
    }
    Ok(())
}

fn policy() -> serde_json::Value {
    json!({
        "apiVersion": "policy.karmada.io/v1alpha1",
        "kind": "PropagationPolicy",
        "metadata": {"name": "ranked", "namespace": "default"},
        "spec": {
            "resourceSelectors": [{
                "apiVersion": "v1", "kind": "ConfigMap", "labelSelector": {"matchLabels": {"ranked": "yes"}},
            }],
            "placement": {"clusterAffinity": {"clusterNames": ["member2"]}},
        },
    })
}
