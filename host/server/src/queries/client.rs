//! Client of the endpoint: finds the leader through its Lease, and asks with the credentials of the kubeconfig.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, anyhow, bail};
use bulkhead_controllers::{QueuedEviction, connect};
use bulkhead_journal::{Stored, wire};
use bulkhead_runtime::connection::WritePermit;
use clap::Args;
use http::{Request, Uri};
use k8s_openapi::api::coordination::v1::Lease;
use kube::{Api, Client, Config};
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject;
use serde::Deserialize;
use serde_json::Value;

use super::advertised::Advertised;
pub use super::records::Query;
use super::{EVICTIONS, RECORDS};
use crate::help;
use crate::hub::{Hub, HubArguments, RequestTimeout, in_time};

/// Arguments of commands that ask the leader.
#[derive(Args, Clone)]
pub struct LeaderArguments {
    #[command(flatten)]
    pub(super) hub: HubArguments,

    #[command(flatten)]
    pub(super) timeout: RequestTimeout,

    /// Namespace of the leader's Lease.
    #[arg(long, default_value = "karmada-system", value_name = "NAMESPACE", help_heading = help::CONTROL_PLANE)]
    leader_elect_resource_namespace: String,

    /// Name of the leader's Lease.
    #[arg(long, default_value = "bulkhead", value_name = "NAME", help_heading = help::CONTROL_PLANE)]
    leader_elect_resource_name: String,
}

/// Records of one process.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Records {
    /// Records, oldest first.
    pub records: Vec<Stored>,
    /// Problems: damaged parts of the journal, or records that were left out.
    pub problems: Vec<String>,
}

/// Processes that answer queries: the leader, and leaders before it.
pub struct Leaders {
    /// Connection to the control plane, whose credentials are used.
    pub(super) config: Config,
    /// Addresses, the leader's first.
    pub(super) endpoints: Vec<Advertised>,
    /// Time limit of a request.
    pub(super) limit: Duration,
}

impl LeaderArguments {
    /// Returns the arguments of the connection to the control plane.
    pub fn hub(&self) -> &HubArguments {
        &self.hub
    }

    /// Returns the time limit of a request.
    pub fn limit(&self) -> Duration {
        self.timeout.limit()
    }

    fn lease(&self) -> String {
        format!(
            "{}/{}",
            self.leader_elect_resource_namespace, self.leader_elect_resource_name
        )
    }

    /// Returns true if an argument names the control plane.
    pub fn names_control_plane(&self) -> bool {
        self.hub.is_given()
    }
}

impl Leaders {
    /// Connects to the control plane, and finds the processes in the Lease.
    ///
    /// # Errors
    ///
    /// The Lease cannot be read, or no process answers queries.
    pub async fn find(arguments: &LeaderArguments) -> anyhow::Result<Self> {
        let limit = arguments.timeout.limit();
        let hub = Hub::connect_within(&arguments.hub, &WritePermit::report_only(), limit).await?;
        Self::of_control_plane(hub.reader(limit), arguments)
            .await?
            .with_context(|| {
                format!(
                    "no leader of the Lease {} answers queries; start `bulkhead run` with --query-bind-address",
                    arguments.lease()
                )
            })
    }

    /// Finds the processes in the Lease of a connected control plane. Returns `None` if no process answers queries.
    ///
    /// # Errors
    ///
    /// The Lease or the kubeconfig cannot be read.
    pub async fn of_control_plane(client: Client, arguments: &LeaderArguments) -> anyhow::Result<Option<Self>> {
        let leases: Api<Lease> = Api::namespaced(client, &arguments.leader_elect_resource_namespace);
        let lease = leases.get_opt(&arguments.leader_elect_resource_name).await;
        let lease = lease.with_context(|| format!("reading the Lease {}", arguments.lease()))?;
        let endpoints = lease.as_ref().map(Advertised::of).unwrap_or_default();
        if endpoints.is_empty() {
            return Ok(None);
        }
        Ok(Some(Self {
            config: arguments.hub.config().await?,
            endpoints,
            limit: arguments.timeout.limit(),
        }))
    }

    /// Returns the records of each process that answers, the leader's first, and the errors of the others.
    ///
    /// # Errors
    ///
    /// No process answers.
    pub async fn records(&self, query: &Query) -> anyhow::Result<(Vec<Records>, Vec<String>)> {
        let path = format!("{RECORDS}?{}", query.text());
        let answers = self.endpoints.iter().map(|endpoint| self.get(endpoint, &path));
        let (mut found, mut errors) = (Vec::new(), Vec::new());
        for answer in futures::future::join_all(answers).await {
            match answer.and_then(|text| parse(&text)) {
                Ok(records) => found.push(records),
                Err(error) => errors.push(bulkhead_runtime::causes::causes(error.as_ref())),
            }
        }
        if found.is_empty() {
            bail!("{}", errors.join("; "));
        }
        Ok((found, errors))
    }

    /// Returns the evictions that the leader has queued.
    ///
    /// # Errors
    ///
    /// The leader does not answer.
    pub async fn evictions(&self) -> anyhow::Result<Vec<QueuedEviction>> {
        let endpoint = self.endpoints.first().context("there is no leader")?;
        let text = self.get(endpoint, EVICTIONS).await?;
        let mut answer: Value =
            serde_json::from_str(&text).with_context(|| format!("the answer of {}", endpoint.url))?;
        let evictions = answer.get_mut("evictions").map(Value::take).unwrap_or_default();
        serde_json::from_value(evictions).with_context(|| format!("the answer of {}", endpoint.url))
    }

    async fn get(&self, endpoint: &Advertised, path: &str) -> anyhow::Result<String> {
        let url = &endpoint.url;
        let address: Uri = url
            .parse()
            .with_context(|| format!("the address {url:?} in the Lease"))?;
        if address.scheme_str() != Some("https") {
            bail!("the address {url:?} in the Lease must begin with https://");
        }
        let authorities: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(endpoint.ca.as_bytes()).collect();
        let authorities = authorities.map_err(|error| anyhow!("the certificate of {url} in the Lease: {error}"))?;
        let mut config = Config::new(address);
        config.auth_info = self.config.auth_info.clone();
        config.root_cert = Some(
            authorities
                .into_iter()
                .map(|certificate| certificate.to_vec())
                .collect(),
        );
        let client = connect(config, &WritePermit::report_only(), &Arc::default())?;
        let request = Request::get(path).body(Vec::new())?;
        let answer = in_time(client, self.limit).request_text(request).await;
        answer.with_context(|| format!("asking {url}"))
    }
}

/// Line of an answer: a record, or the end.
#[derive(Deserialize)]
struct Line {
    end: Option<Value>,
}

/// Reads the lines of an answer. Without its last line it was cut off.
pub(super) fn parse(text: &str) -> anyhow::Result<Records> {
    let mut found = Records::default();
    for line in text.lines() {
        let Line { end } = serde_json::from_str(line).context("a line of the answer")?;
        let Some(end) = end else {
            let stored = wire::from_json(line.as_bytes()).map_err(anyhow::Error::msg)?;
            found.records.push(stored);
            continue;
        };
        let problems = end["problems"].as_array().into_iter().flatten();
        found.problems = problems.filter_map(Value::as_str).map(str::to_owned).collect();
        if end["truncated"] == true {
            let oldest = found
                .records
                .first()
                .map(|stored| stored.record.decision_id().to_string());
            let oldest = oldest.unwrap_or_else(|| "none".to_owned());
            found
                .problems
                .push(format!("the answer was full: decisions before {oldest} are left out"));
        }
        return Ok(found);
    }
    bail!("the answer was cut off")
}
