//! Plugin objects that name images, their status, and the results of their calls.

use anyhow::{Context as _, ensure};
use serde_json::Value;

use crate::federation::{Federation, http_get};
use crate::plugins::{SOON, condition};
use crate::wait;

/// Returns the code of an eviction check that leaves each decision to the other policies. `comment` makes it another
/// version.
pub(super) fn script(comment: &str) -> String {
    format!(
        "-- {comment}\nfunction EvictionCheck(binding, task, observed, now)\n  return {{verdict = 'abstain'}}\nend\n"
    )
}

/// Returns an object that names an image, with further fields.
pub(super) fn object(name: &str, image: &str, more: &str) -> String {
    let header = "apiVersion: bulkhead.dev/v1alpha1\nkind: Plugin\n";
    format!("{header}metadata: {{name: {name}}}\nspec: {{image: '{image}'{more}}}\n")
}

/// Waits until the newest version of a plugin is in force.
pub(super) async fn loaded(federation: &Federation<'_>, name: &str) -> anyhow::Result<()> {
    condition(federation, name, "Loaded", "True", "is active").await
}

/// Waits until the newest version of a plugin is refused: condition and event contain each of the texts.
pub(super) async fn refused(federation: &Federation<'_>, name: &str, texts: &[&str]) -> anyhow::Result<()> {
    for text in texts {
        condition(federation, name, "Loaded", "False", text).await?;
    }
    let what = format!("an event about {name} says {texts:?}");
    wait::until(&what, SOON, async || {
        let text = federation
            .kubectl(&["get", "events", "-A", "-o", "json"])
            .map_err(|error| error.to_string())?;
        let events: Value = serde_json::from_str(&text).map_err(|error| error.to_string())?;
        let events: Vec<_> = events["items"].as_array().into_iter().flatten().collect();
        let of_plugin = |event: &&&Value| {
            let about = &event["involvedObject"];
            about["kind"] == "Plugin" && about["name"] == name && event["reason"] == "PluginRefused"
        };
        let messages: Vec<_> = events
            .iter()
            .filter(of_plugin)
            .filter_map(|event| event["message"].as_str())
            .collect();
        let says_all = |message: &&str| texts.iter().all(|text| message.contains(text));
        if messages.iter().any(says_all) {
            Ok(())
        } else {
            Err(format!("{messages:?}"))
        }
    })
    .await
    .map(drop)
}

/// Checks that a version of a plugin is in force and answers, and returns the digest of its code.
pub(super) async fn in_force(federation: &Federation<'_>, name: &str) -> anyhow::Result<String> {
    condition(federation, name, "Answering", "True", "the answers of the plugin count").await?;
    let digest = federation.kubectl(&["get", "plugin", name, "-o", "jsonpath={.status.sha256}"])?;
    ensure!(!digest.is_empty(), "{name} has no digest");
    Ok(digest)
}

/// Checks that a process has called a plugin, and that neither a call nor a decision has failed. Returns the number of
/// the calls.
pub(super) async fn check_decisions(federation: &Federation<'_>, process: usize, name: &str) -> anyhow::Result<f64> {
    let text = http_get(&federation.address(process)?, "/metrics").await?;
    let plugin = format!("plugin=\"{name}\"");
    let calls = sum(&text, "bulkhead_plugin_calls_total", |labels| labels.contains(&plugin));
    let faults = sum(&text, "bulkhead_plugin_faults_total", |_| true);
    let failed = sum(&text, "bulkhead_plugin_decisions_total", |labels| {
        !labels.contains("result=\"answered\"")
    });
    ensure!(calls > 0.0, "{name} was not called");
    ensure!(
        faults + failed < 0.5,
        "{faults} calls were faults, and {failed} decisions had no answer"
    );
    Ok(calls)
}

/// Returns the sum of the series of a metric whose labels are of interest.
fn sum(text: &str, metric: &str, is_counted: impl Fn(&str) -> bool) -> f64 {
    let of_metric = |line: &str| {
        let (labels, value) = line.strip_prefix(metric)?.rsplit_once(' ')?;
        is_counted(labels).then(|| value.parse::<f64>().ok())?
    };
    text.lines().filter_map(of_metric).sum()
}

/// Returns the number of the first line with a text.
pub(super) fn line_of(log: &str, text: &str) -> anyhow::Result<usize> {
    log.lines()
        .position(|line| line.contains(text))
        .with_context(|| format!("the log has no line with {text:?}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn series_with_other_labels_and_other_metrics_are_not_counted() {
        let text = "# HELP calls_total x\ncalls_total{plugin=\"a\"} 2\ncalls_total{plugin=\"b\"} 3\ncalls 7\n";
        let of = |part: &str| sum(text, "calls_total", |labels| labels.contains(part));
        assert!((of("\"a\"") - 2.0).abs() < 0.1);
        assert!((of("") - 5.0).abs() < 0.1);
    }
}
