//! Each mode, next to a second `bulkhead run` that stands in for Karmada's remaining controllers.

use std::fs;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use k8s_openapi::api::apps::v1::Deployment;
use kube::Api;
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::federation::{Federation, Plan, QUICK};
use crate::losses::{BINDING, DIVIDED};
use crate::site::Site;
use crate::wait;

/// Controllers of the Karmada stand-in next to mode `finish`.
pub(crate) const FINISH: &str = "--controllers=*,-gracefulEviction";
/// Controllers of the Karmada stand-in next to mode `evict`.
pub(crate) const EVICT: &str =
    "--controllers=*,-gracefulEviction,-clustertaintpolicy,-taintManager,-clusterDrain,-applicationFailover";
/// Lease name of the stand-in, so that both processes are leaders.
pub(crate) const STAND_IN: &str = "--leader-elect-resource-name=stand-in";

/// The failover example works with the work divided between two processes, neither of which could do it alone.
pub(crate) async fn beside(site: &Site, mode: &str, stand_in: &str) -> anyhow::Result<()> {
    let mut federation = Box::pin(Federation::start(
        site,
        mode,
        Plan {
            first: &[stand_in, STAND_IN],
            ..Plan::default()
        },
    ))
    .await?;
    let user = federation.start_bulkhead_in(mode, &[]).await?;
    federation.apply_example("nginx-divided", DIVIDED)?;
    federation
        .wait_placed(BINDING, &[("member1", 1), ("member2", 2)])
        .await?;
    federation.member("member1")?.kill_api_server();
    federation.wait_ready("member1", false).await?;
    federation.wait_placed(BINDING, &[("member2", 3)]).await?;
    ensure!(
        federation.metric(1, "bulkhead_decisions").await? > 0.0,
        "the second process decided nothing"
    );
    nothing_refused(&federation, &user)
}

/// The failover example works with two modes in the second process, which has the roles of both.
pub(crate) async fn combined(site: &Site) -> anyhow::Result<()> {
    let first = [FINISH, STAND_IN];
    let mut federation = Box::pin(Federation::start(
        site,
        "combined",
        Plan {
            first: &first,
            ..Plan::default()
        },
    ))
    .await?;
    let directory = write_plugins(&federation, site)?;
    let address = "--webhook-bind-address=127.0.0.1:0";
    let user = federation
        .start_bulkhead_in("interpret,finish", &[&directory, address])
        .await?;
    registered(&federation).await?;
    // Without the customization, which has precedence over the webhook.
    federation.apply_example("nginx-divided", &["taint-policy.yaml", "policy.yaml", "nginx.yaml"])?;
    federation
        .wait_placed(BINDING, &[("member1", 1), ("member2", 2)])
        .await?;
    federation.member("member1")?.kill_api_server();
    federation.wait_ready("member1", false).await?;
    federation.wait_placed(BINDING, &[("member2", 3)]).await?;
    ensure!(federation.metric(1, ASKED).await? > 0.0, "the plugin was not asked");
    ensure!(
        federation.metric(1, "bulkhead_decisions").await? > 0.0,
        "the second process decided nothing"
    );
    nothing_refused(&federation, &user)
}

/// All modes work with the role from `host/deploy` instead of administrator rights. The first process stops
/// beforehand.
pub(crate) async fn all(site: &Site) -> anyhow::Result<()> {
    let mut federation = Box::pin(Federation::start(site, "all", Plan::default())).await?;
    let plugins = write_plugins(&federation, site)?;
    federation.signal(0, Signal::TERM)?;
    let user = federation
        .start_bulkhead_in("all", &[&plugins, "--webhook-bind-address=127.0.0.1:0"])
        .await?;
    federation.apply_example_when_admitted("nginx-divided", DIVIDED).await?;
    federation.kubectl_with(&["apply", "-f", "-"], CONFIG)?;
    federation
        .wait_placed(BINDING, &[("member1", 1), ("member2", 2)])
        .await?;
    overridden_and_rebalanced(&mut federation).await?;
    federation.member("member1")?.kill_api_server();
    federation.wait_ready("member1", false).await?;
    federation.wait_placed(BINDING, &[("member2", 3)]).await?;
    federation.member("member1")?.start_api_server().await?;
    federation.wait_ready("member1", true).await?;
    federation.wait_deployed("member1", "nginx", None).await?;
    // Deleting a template removes its binding, and deleting a Cluster removes its execution namespace.
    federation.kubectl(&["delete", "deployment", "nginx"])?;
    federation.wait_deployed("member2", "nginx", None).await?;
    federation.kubectl(&["delete", "cluster", "member1", "--timeout=60s"])?;
    ensure!(
        federation.metric(1, "bulkhead_decisions").await? > 0.0,
        "the process decided nothing"
    );
    nothing_refused(&federation, &user)
}

/// An OverridePolicy changes the image of nginx on member2 only, and a WorkloadRebalancer has nginx scheduled again.
async fn overridden_and_rebalanced(federation: &mut Federation<'_>) -> anyhow::Result<()> {
    federation.kubectl_with(&["apply", "-f", "-"], MIRROR)?;
    for (member, image) in [("member1", "nginx"), ("member2", "mirror.example/nginx")] {
        let client = federation.member(member)?.client().await?;
        let deployments: Api<Deployment> = Api::namespaced(client, "default");
        let what = format!("{member} runs the image {image}");
        wait::until(&what, Duration::from_secs(30), async || {
            let deployment = deployments.get("nginx").await.map_err(|error| error.to_string())?;
            let spec = deployment.spec.and_then(|spec| spec.template.spec);
            let found = spec.and_then(|spec| spec.containers.into_iter().next()?.image);
            if found.as_deref() == Some(image) {
                Ok(())
            } else {
                Err(format!("{found:?}"))
            }
        })
        .await?;
    }
    let events = federation.kubectl(&["get", "events", "-o", "jsonpath={.items[*].reason}"])?;
    ensure!(events.contains("ApplyOverridePolicySucceed"), "the events are {events}");
    federation.kubectl_with(&["apply", "-f", "-"], REBALANCER)?;
    wait::until("nginx is scheduled again", Duration::from_secs(30), async || {
        let result = "jsonpath={.status.observedWorkloads[*].result}";
        match federation
            .kubectl(&["get", "workloadrebalancer", "again", "-o", result])
            .as_deref()
        {
            Ok("Successful") => Ok(()),
            other => Err(format!("{other:?}")),
        }
    })
    .await?;
    let requested = federation.kubectl(&[
        "get",
        "resourcebinding",
        "nginx-deployment",
        "-o",
        "jsonpath={.spec.rescheduleTriggeredAt}",
    ])?;
    ensure!(!requested.is_empty(), "the binding has no request");
    Ok(())
}

/// Mode `report` makes the same decisions as the process beside it, `what-if` predicts them, and the audit log shows
/// that neither wrote anything.
pub(crate) async fn report(site: &Site) -> anyhow::Result<()> {
    let mut federation = Box::pin(Federation::start(site, "report", Plan::default())).await?;
    let user = federation.start_bulkhead_in("report", &[]).await?;
    federation.apply_example("nginx-divided", DIVIDED)?;
    federation
        .wait_placed(BINDING, &[("member1", 1), ("member2", 2)])
        .await?;
    let kubeconfig = federation.account_kubeconfig().await?.display().to_string();
    let question = [
        "what-if",
        "--kubeconfig",
        &kubeconfig,
        "--down=member1",
        "--output=json",
    ];
    let foreseen: Value = serde_json::from_str(&federation.bulkhead(&[&question, QUICK].concat())?)?;
    let load = json!([
        {"cluster": "member1", "down": true, "before": 1, "after": 0},
        {"cluster": "member2", "down": false, "before": 2, "after": 3},
    ]);
    ensure!(foreseen["load"] == load, "what-if answers {foreseen:#}");
    federation.member("member1")?.kill_api_server();
    federation.wait_ready("member1", false).await?;
    federation.wait_placed(BINDING, &[("member2", 3)]).await?;
    let decided = federation.metric(1, "bulkhead_decisions").await?;
    let withheld = federation.metric(1, "bulkhead_withheld_writes_total").await?;
    ensure!(
        decided > 0.0 && withheld > 0.0,
        "it decided {decided} times and withheld {withheld} writes"
    );
    let requests = federation.hub.requests_of(&user)?;
    let reads = ["get ", "list ", "watch "];
    // A SelfSubjectAccessReview is a `create` that stores nothing.
    let asks = |request: &str| request.starts_with("create selfsubjectaccessreviews ");
    let writes: Vec<_> = requests
        .iter()
        .filter(|request| !asks(request) && !reads.iter().any(|read| request.starts_with(read)))
        .collect();
    ensure!(requests.len() > writes.len(), "the audit log has no request of it");
    ensure!(writes.is_empty(), "it wrote: {writes:?}");
    nothing_refused(&federation, &user)
}

/// Checks that the role of the mode was sufficient: the audit log has no forbidden request of the user.
pub(crate) fn nothing_refused(federation: &Federation<'_>, user: &str) -> anyhow::Result<()> {
    let requests = federation.hub.requests_of(user)?;
    let refused: Vec<_> = requests.iter().filter(|request| request.ends_with(" 403")).collect();
    ensure!(!requests.is_empty(), "the audit log has no request of {user}");
    ensure!(refused.is_empty(), "its role lacks: {refused:?}");
    Ok(())
}

/// A Lua and a Wasm plugin determine the health of objects for a control plane that has no plugins.
pub(crate) async fn interpret(site: &Site) -> anyhow::Result<()> {
    let mut federation = Box::pin(Federation::start(
        site,
        "interpret",
        Plan {
            first: &[STAND_IN],
            ..Plan::default()
        },
    ))
    .await?;
    let directory = write_plugins(&federation, site)?;
    let address = "--webhook-bind-address=127.0.0.1:0";
    let user = federation
        .start_bulkhead_in("interpret", &[&directory, address])
        .await?;
    registered(&federation).await?;
    federation.apply_example("nginx-divided", &["policy.yaml", "nginx.yaml"])?;
    federation.kubectl_with(&["apply", "-f", "-"], CONFIG)?;
    federation
        .wait_placed(BINDING, &[("member1", 1), ("member2", 2)])
        .await?;
    ensure!(federation.metric(1, ASKED).await? > 0.0, "Wasm not asked");
    let health = "jsonpath={.status.aggregatedStatus[*].health}";
    wait::until("the ConfigMap is unhealthy", Duration::from_secs(30), async || {
        let output = federation.kubectl(&["get", "resourcebinding", "game-configmap", "-o", health]);
        match output.as_deref() {
            Ok("Unhealthy") => Ok(()),
            Ok(other) => Err(other.to_owned()),
            Err(error) => Err(error.to_string()),
        }
    })
    .await?;
    // Fixed at run time: the plugin file is replaced, and the next evaluation finds the object healthy.
    let script = federation.logs().join("plugins/config-health.lua");
    fs::write(script, CONFIG_HEALTH.replace("good", "bad"))?;
    let log = federation
        .processes()
        .get(1)
        .map(|process| process.log().to_path_buf())
        .context("no second process")?;
    wait::until(
        "the other version of the plugin is active",
        Duration::from_secs(10),
        async || {
            let said = fs::read_to_string(&log).map_err(|error| error.to_string())?;
            let active = said
                .lines()
                .filter(|line| line.contains("plugin config-health ") && line.contains(" is active"));
            let versions = active.count();
            if versions == 2 {
                Ok(())
            } else {
                Err(format!("{versions} versions were"))
            }
        },
    )
    .await?;
    federation.kubectl(&["label", "configmap", "game", "again=yes"])?;
    wait::until("the ConfigMap is healthy", Duration::from_secs(30), async || {
        let output = federation.kubectl(&["get", "resourcebinding", "game-configmap", "-o", health]);
        if output.as_deref().ok() == Some("Healthy") {
            Ok(())
        } else {
            Err(format!("{output:?}"))
        }
    })
    .await?;
    nothing_refused(&federation, &user)?;
    taken_out(&mut federation)
}

/// A registration outlives its process: `doctor` reports it in any mode, and `uninstall` removes it with the role.
fn taken_out(federation: &mut Federation<'_>) -> anyhow::Result<()> {
    if let Some(process) = federation.processes().get_mut(1) {
        process.kill();
    }
    let kubeconfig = federation.hub.kubeconfig().display().to_string();
    let (_, said) = federation.bulkhead_with_code(&["doctor", "--mode=report", "--kubeconfig", &kubeconfig])?;
    let words = said.split_whitespace().collect::<Vec<_>>().join(" ");
    ensure!(words.contains("refuses connections; Karmada gets no answer"), "{said}");
    let uninstall = ["uninstall", "--mode=interpret", "--force", "--kubeconfig", &kubeconfig];
    let (code, said) = federation.bulkhead_with_code(&uninstall)?;
    for object in [
        "ResourceInterpreterWebhookConfiguration bulkhead",
        "ClusterRole bulkhead-interpret",
    ] {
        ensure!(
            code == Some(0) && said.contains(&format!("removed {object}\n")),
            "{code:?}: {said}"
        );
    }
    let (code, said) = federation.bulkhead_with_code(&uninstall)?;
    ensure!(
        code == Some(0) && !said.contains("removed "),
        "a repetition found: {said}"
    );
    Ok(())
}

/// Writes a Wasm and a Lua plugin, and returns the argument for their directory.
fn write_plugins(federation: &Federation<'_>, site: &Site) -> anyhow::Result<String> {
    let plugins = federation.logs().join("plugins");
    fs::create_dir_all(&plugins)?;
    fs::copy(
        site.root.join("target/guests/deployment-health.wasm"),
        plugins.join("deployment-health.wasm"),
    )?;
    fs::write(plugins.join("config-health.lua"), CONFIG_HEALTH)?;
    fs::write(plugins.join("plugins.yaml"), PLUGINS)?;
    Ok(format!("--plugin-directory={}", plugins.display()))
}

/// Waits until the webhook is registered with Karmada.
async fn registered(federation: &Federation<'_>) -> anyhow::Result<()> {
    wait::until("the plugins are registered", Duration::from_secs(30), async || {
        let registered = "resourceinterpreterwebhookconfiguration/bulkhead";
        federation
            .kubectl(&["get", registered])
            .map(drop)
            .map_err(|error| error.to_string())
    })
    .await
    .map(drop)
}

/// Metric of calls of the Wasm plugin.
const ASKED: &str = "bulkhead_plugin_calls_total{plugin=\"deployment-health\"";

const PLUGINS: &str = "\
apiVersion: bulkhead.dev/v1alpha1
kind: PluginList
plugins:
  - {name: deployment-health, wasm: deployment-health.wasm}
  - name: config-health
    lua: config-health.lua
    kinds: [{apiVersion: v1, kind: ConfigMap}]
";

const MIRROR: &str = "\
apiVersion: policy.karmada.io/v1alpha1
kind: OverridePolicy
metadata: {name: mirror, namespace: default}
spec:
  resourceSelectors: [{apiVersion: apps/v1, kind: Deployment, name: nginx}]
  overrideRules:
  - targetCluster: {clusterNames: [member2]}
    overriders: {imageOverrider: [{component: Registry, operator: add, value: mirror.example}]}
";

const REBALANCER: &str = "\
apiVersion: apps.karmada.io/v1alpha1
kind: WorkloadRebalancer
metadata: {name: again}
spec: {workloads: [{apiVersion: apps/v1, kind: Deployment, namespace: default, name: nginx}]}
";

const CONFIG_HEALTH: &str = "\
function InterpretHealth(observedObj)
  return observedObj.data ~= nil and observedObj.data.state == 'good'
end
";

const CONFIG: &str = "\
apiVersion: v1
kind: ConfigMap
metadata: {name: game, namespace: default}
data: {state: bad}
---
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata: {name: game, namespace: default}
spec:
  resourceSelectors: [{apiVersion: v1, kind: ConfigMap, name: game}]
  placement: {clusterAffinity: {clusterNames: [member2]}}
";
