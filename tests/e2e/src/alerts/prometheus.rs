//! Prometheus server on a loopback address.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, ensure};
use serde_json::{Value, json};

use crate::control_plane::free_ports;
use crate::federation::http_get;
use crate::process::Process;
use crate::wait;

/// Label `job` that every expression selects.
const JOB: &str = "bulkhead";
/// Interval of scrapes and of the evaluation of rules. The shortest range of the rules has several of them.
const INTERVAL: &str = "1s";
/// Time limit for the start, and for a change of the targets.
const LIMIT: Duration = Duration::from_mins(1);

/// A running server.
pub(super) struct Prometheus {
    address: String,
    targets: PathBuf,
    _server: Process,
}

/// An alert that is pending or firing.
#[derive(Clone, Debug)]
pub(super) struct Alert {
    /// Name of its rule.
    pub(super) name: String,
    /// Labels, with the name.
    pub(super) labels: BTreeMap<String, String>,
    /// Annotation `runbook`: page and section.
    pub(super) runbook: String,
    /// False while its expression has not held for long enough.
    pub(super) is_firing: bool,
}

impl Prometheus {
    /// Starts a server with rules and without targets. It keeps its files in `directory`, which is created.
    pub(super) async fn start(program: &Path, rules: &str, directory: &Path) -> anyhow::Result<Self> {
        fs::create_dir_all(directory)?;
        let (config, targets) = (directory.join("prometheus.yml"), directory.join("targets.json"));
        fs::write(directory.join("alerts.yaml"), rules)?;
        fs::write(&config, configuration().to_string())?;
        fs::write(&targets, "[]")?;
        let [port] = free_ports()?;
        let address = format!("127.0.0.1:{port}");
        let arguments = [
            format!("--config.file={}", config.display()),
            format!("--storage.tsdb.path={}", directory.join("data").display()),
            format!("--web.listen-address={address}"),
            "--log.level=warn".to_owned(),
        ];
        let mut server = Process::start(program, &arguments, directory.join("prometheus.log"))?;
        wait::until("Prometheus is ready", LIMIT, async || {
            let ready = http_get(&address, "/-/ready").await;
            ready.map(drop).map_err(|error| format!("{error:#}"))
        })
        .await
        .with_context(|| format!("it said last: {}", server.last_words()))?;
        ensure!(!server.ended(), "Prometheus ended: {}", server.last_words());
        Ok(Self {
            address,
            targets,
            _server: server,
        })
    }

    /// Scrapes these addresses from now on, and waits until all of them answer.
    pub(super) async fn scrape(&self, addresses: &[String]) -> anyhow::Result<()> {
        let written = self.targets.with_extension("partial");
        fs::write(&written, json!([{"targets": addresses}]).to_string())?;
        fs::rename(&written, &self.targets)?;
        let up = format!("up{{job=\"{JOB}\"}} == 1");
        wait::until("Prometheus scrapes the processes", LIMIT, async || {
            let samples = self.query(&up).await.map_err(|error| format!("{error:#}"))?;
            let mut seen: Vec<_> = samples.iter().filter_map(|labels| labels.get("instance")).collect();
            let mut expected: Vec<_> = addresses.iter().collect();
            seen.sort();
            expected.sort();
            if seen == expected {
                Ok(())
            } else {
                Err(format!("it scrapes {seen:?}"))
            }
        })
        .await
        .map(drop)
    }

    /// Returns the alerts that are pending or firing.
    pub(super) async fn alerts(&self) -> anyhow::Result<Vec<Alert>> {
        let data = self.get("/api/v1/alerts").await?;
        let alerts = data["alerts"].as_array().context("the answer has no alerts")?;
        let alert = |alert: &Value| Alert {
            name: alert["labels"]["alertname"].as_str().unwrap_or_default().to_owned(),
            labels: texts(&alert["labels"]),
            runbook: alert["annotations"]["runbook"].as_str().unwrap_or_default().to_owned(),
            is_firing: alert["state"] == "firing",
        };
        Ok(alerts.iter().map(alert).collect())
    }

    /// Evaluates an expression, and returns the labels of each sample.
    pub(super) async fn query(&self, expression: &str) -> anyhow::Result<Vec<BTreeMap<String, String>>> {
        let data = self
            .get(&format!("/api/v1/query?query={}", encoded(expression)))
            .await
            .with_context(|| format!("evaluating {expression}"))?;
        let samples = data["result"].as_array().context("the answer has no result")?;
        Ok(samples.iter().map(|sample| texts(&sample["metric"])).collect())
    }

    async fn get(&self, path: &str) -> anyhow::Result<Value> {
        let body = http_get(&self.address, path).await?;
        let mut answer: Value = serde_json::from_str(&body).with_context(|| format!("Prometheus answered {body}"))?;
        ensure!(answer["status"] == "success", "Prometheus answered {body}");
        Ok(answer["data"].take())
    }
}

/// Returns the configuration. JSON is YAML.
fn configuration() -> Value {
    json!({
        "global": {"scrape_interval": INTERVAL, "scrape_timeout": INTERVAL, "evaluation_interval": INTERVAL},
        "rule_files": ["alerts.yaml"],
        "scrape_configs": [{
            "job_name": JOB,
            "file_sd_configs": [{"files": ["targets.json"], "refresh_interval": INTERVAL}],
        }],
    })
}

fn texts(object: &Value) -> BTreeMap<String, String> {
    let members = object.as_object().into_iter().flatten();
    let text = |(name, value): (&String, &Value)| Some((name.clone(), value.as_str()?.to_owned()));
    members.filter_map(text).collect()
}

/// Encodes a text for the query of a URL.
fn encoded(text: &str) -> String {
    let byte = |byte: u8| {
        if byte.is_ascii_alphanumeric() {
            char::from(byte).to_string()
        } else {
            format!("%{byte:02X}")
        }
    };
    text.bytes().map(byte).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_expression_is_encoded() {
        assert_eq!(encoded("up{a=\"b\"} 1"), "up%7Ba%3D%22b%22%7D%201");
    }
}
