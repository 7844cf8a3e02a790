//! Plugins as objects of the control plane.

use std::time::Duration;

use anyhow::{Context as _, ensure};
use serde_json::Value;

use crate::federation::{Federation, Plan};
use crate::losses::{BINDING, DIVIDED};
use crate::modes::{self, FINISH, STAND_IN};
use crate::site::Site;
use crate::wait;

/// Time limit for the effect of an applied object, or of a change in a registry.
pub(crate) const SOON: Duration = Duration::from_mins(1);

pub(crate) const VITAL: &str = "function Score(binding, clusters, now)\n  local scores = {}\n  \
                     for index in ipairs(clusters) do scores[index] = 1 end\n  return scores\nend\n";
const BROKEN: &str = "function Score(binding, clusters, now)";

/// A component that holds old copies does so from the first eviction until its object is deleted. The status of
/// plugin objects shows their state, and a faulty update leaves the previous version active.
pub(crate) async fn objects(site: &Site) -> anyhow::Result<()> {
    let plan = Plan {
        first: &[FINISH, STAND_IN],
        ..Plan::default()
    };
    let mut federation = Box::pin(Federation::start(site, "plugins", plan)).await?;
    let component = site
        .root
        .join("target/guests/hold-during-freeze.wasm")
        .display()
        .to_string();
    let freeze = federation.bulkhead(&["plugin", "object", &component, "--name=freeze"])?;
    apply(&federation, &freeze)?;
    apply(&federation, &script("vital", BROKEN))?;
    let user = federation.start_bulkhead_in("finish", &[]).await?;
    federation.apply_example("nginx-divided", DIVIDED)?;
    federation
        .wait_placed(BINDING, &[("member1", 1), ("member2", 2)])
        .await?;
    federation.member("member1")?.kill_api_server();
    federation.wait_ready("member1", false).await?;
    federation.wait_deployed("member2", "nginx", Some(3)).await?;
    wait::stays("the old copy is held", Duration::from_secs(8), async || {
        leaving(&federation, 1)
    })
    .await?;

    condition(&federation, "freeze", "Loaded", "True", "is active").await?;
    condition(
        &federation,
        "freeze",
        "Answering",
        "True",
        "the answers of the plugin count",
    )
    .await?;
    condition(
        &federation,
        "vital",
        "Loaded",
        "False",
        "Plugin vital spec.lua failed to compile",
    )
    .await?;
    condition(&federation, "vital", "Answering", "False", "no version is in force").await?;
    apply(&federation, &script("vital", VITAL))?;
    condition(&federation, "vital", "Loaded", "True", "is active").await?;
    apply(&federation, &script("vital", BROKEN))?;
    condition(&federation, "vital", "Loaded", "False", "failed to compile").await?;
    condition(
        &federation,
        "vital",
        "Answering",
        "True",
        "the answers of the plugin count",
    )
    .await?;
    let output = federation.kubectl(&["get", "plugins"])?;
    let freeze = output
        .lines()
        .find(|line| line.starts_with("freeze"))
        .context("get shows no plugin")?;
    ensure!(
        freeze.split_whitespace().take(3).eq(["freeze", "True", "True"]),
        "get shows {output}"
    );
    let events = federation.kubectl(&["get", "events", "-A", "-o", "jsonpath={.items[*].reason}"])?;
    ensure!(
        events.contains("PluginLoaded") && events.contains("PluginRefused"),
        "events: {events}"
    );

    // Rejected by the validating webhook of the first process.
    let refused = |text: &str| {
        apply(&federation, text)
            .err()
            .map(|error| format!("{error:#}"))
            .unwrap_or_default()
    };
    let mode = refused(&script("wrong", "x").replace("spec:", "spec:\n  mode: of"));
    ensure!(
        mode.contains("spec.mode: Invalid value: unknown variant `of`"),
        "{mode}"
    );
    let instances = refused(&script("wrong", "x").replace("spec:", "spec:\n  instances: reused"));
    ensure!(instances.contains("instances is for components"), "{instances}");

    federation.kubectl(&["delete", "plugin", "freeze"])?;
    wait::until("the old copy may go", SOON, async || leaving(&federation, 0)).await?;
    modes::nothing_refused(&federation, &user)
}

/// Applies an object.
pub(crate) fn apply(federation: &Federation<'_>, object: &str) -> anyhow::Result<()> {
    federation
        .kubectl_with(&["apply", "--server-side", "-f", "-"], object)
        .map(drop)
}

/// Returns a plugin with a script.
pub(crate) fn script(name: &str, code: &str) -> String {
    format!("apiVersion: bulkhead.dev/v1alpha1\nkind: Plugin\nmetadata: {{name: {name}}}\nspec:\n  lua: {code:?}\n")
}

/// Returns an error unless the binding has `expected` eviction tasks.
fn leaving(federation: &Federation<'_>, expected: usize) -> Result<(), String> {
    let tasks = "jsonpath={.spec.gracefulEvictionTasks[*].fromCluster}";
    let output = federation
        .kubectl(&["get", "resourcebinding", BINDING, "-o", tasks])
        .map_err(|error| error.to_string())?;
    if output.split_whitespace().count() == expected {
        Ok(())
    } else {
        Err(format!("tasks: {output:?}"))
    }
}

/// Waits until the leader has loaded, or refused, the newest version of a plugin.
pub(crate) async fn observed(federation: &Federation<'_>, plugin: &str) -> anyhow::Result<()> {
    wait::until(&format!("{plugin} is observed"), SOON, async || {
        let generations = "jsonpath={.metadata.generation} {.status.observedGeneration}";
        let generations = federation
            .kubectl(&["get", "plugin", plugin, "-o", generations])
            .map_err(|error| error.to_string())?;
        match generations.split_once(' ') {
            Some((newest, observed)) if newest == observed => Ok(()),
            _ => Err(generations),
        }
    })
    .await
    .map(drop)
}

/// Waits until a plugin has a condition.
pub(crate) async fn condition(
    federation: &Federation<'_>,
    plugin: &str,
    type_: &str,
    status: &str,
    message: &str,
) -> anyhow::Result<()> {
    wait::until(&format!("{plugin} is {type_}={status}"), SOON, async || {
        let text = federation
            .kubectl(&["get", "plugin", plugin, "-o", "json"])
            .map_err(|error| error.to_string())?;
        let plugin: Value = serde_json::from_str(&text).map_err(|error| error.to_string())?;
        let found = plugin["status"]["conditions"]
            .as_array()
            .into_iter()
            .flatten()
            .find(|found| found["type"] == type_);
        let found = found.ok_or_else(|| "there is no such condition".to_owned())?;
        let is_so =
            found["status"] == status && found["message"].as_str().is_some_and(|output| output.contains(message));
        if is_so { Ok(()) } else { Err(found.to_string()) }
    })
    .await
    .map(drop)
}
