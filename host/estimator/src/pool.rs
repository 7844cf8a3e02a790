//! Connections to estimators, one per cluster, and concurrent queries of many clusters.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bulkhead_core::decide::schedule::capacity::{AccurateEstimates, AssumedWorkload, EstimateRequest};
use bulkhead_core::model::Binding;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tonic::client::Grpc;
use tonic::codegen::http::uri::PathAndQuery;
use tonic::metadata::{Ascii, MetadataValue};
use tonic::transport::{Channel, Endpoint};
use tonic_prost::ProstCodec;

use crate::messages::{
    MaxAvailableComponentSetsRequest, MaxAvailableComponentSetsResponse, MaxAvailableReplicasRequest,
    MaxAvailableReplicasResponse,
};
use crate::request;
use crate::security::{Security, SecurityError};

const MAX_AVAILABLE_REPLICAS: &str =
    "/github.com.karmada_io.karmada.pkg.estimator.service.Estimator/MaxAvailableReplicas";
const MAX_AVAILABLE_COMPONENT_SETS: &str =
    "/github.com.karmada_io.karmada.pkg.estimator.service.Estimator/MaxAvailableComponentSets";
/// Timeout of a connection attempt (Karmada: `grpcconnection.go`).
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// Pool of connections to estimators.
#[derive(Debug)]
pub struct EstimatorPool {
    security: Security,
    /// Timeout of all answers to one query together (`--scheduler-estimator-timeout`).
    timeout: Duration,
    connections: Mutex<BTreeMap<String, Channel>>,
}

/// Reason why a connection failed.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// The certificates cannot be used.
    #[error(transparent)]
    Security(#[from] SecurityError),
    /// No address answered.
    #[error("no estimator answers at {0}")]
    Unreachable(String, #[source] Option<tonic::transport::Error>),
}

/// Query about one binding.
#[derive(Clone, Copy, Debug)]
pub struct EstimatorQuery<'a> {
    /// Binding to place.
    pub binding: &'a Binding,
    /// Clusters to query, and the replicas or components to place.
    pub about: &'a EstimateRequest,
    /// Workloads that were placed on each cluster a moment ago.
    pub assumed: &'a BTreeMap<String, Vec<AssumedWorkload>>,
}

/// Request to one cluster.
enum ClusterRequest {
    Replicas(MaxAvailableReplicasRequest),
    Sets(MaxAvailableComponentSetsRequest),
}

impl EstimatorPool {
    /// Creates a pool without connections.
    pub fn new(security: Security, timeout: Duration) -> Self {
        Self {
            security,
            timeout,
            connections: Mutex::default(),
        }
    }

    fn connections(&self) -> MutexGuard<'_, BTreeMap<String, Channel>> {
        self.connections.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns true if there is a connection to the estimator of a cluster.
    pub fn is_connected(&self, cluster: &str) -> bool {
        self.connections().contains_key(cluster)
    }

    /// Connects to the first address that answers. Keeps an existing connection, which reconnects automatically.
    pub async fn connect(&self, cluster: &str, addresses: &[String]) -> Result<(), ConnectError> {
        if self.is_connected(cluster) {
            return Ok(());
        }
        let mut last = None;
        for address in addresses {
            let uri = format!("{}://{address}", self.security.scheme());
            let endpoint = match Endpoint::from_shared(uri) {
                Ok(endpoint) => self.security.apply(endpoint.connect_timeout(CONNECT_TIMEOUT))?,
                Err(error) => {
                    last = Some(error);
                    continue;
                }
            };
            match endpoint.connect().await {
                Ok(channel) => {
                    self.connections().insert(cluster.to_owned(), channel);
                    return Ok(());
                }
                Err(error) => last = Some(error),
            }
        }
        Err(ConnectError::Unreachable(addresses.join(", "), last))
    }

    /// Drops the connection to a cluster that no longer exists.
    pub fn disconnect(&self, cluster: &str) {
        self.connections().remove(cluster);
    }

    /// Queries all clusters concurrently. Returns one answer per cluster; a missing connection or a
    /// timeout is an error.
    pub async fn ask(&self, query: &EstimatorQuery<'_>) -> AccurateEstimates {
        let deadline = Instant::now() + self.timeout;
        let (mut calls, mut answers) = (JoinSet::new(), BTreeMap::new());
        for cluster in &query.about.clusters {
            let connection = self.connections().get(cluster).cloned();
            match connection {
                None => {
                    answers.insert(
                        cluster.clone(),
                        Err("there is no connection to its estimator".to_owned()),
                    );
                }
                Some(channel) => {
                    // A call that panics returns no answer, which counts as a failure.
                    answers.insert(cluster.clone(), Err("no answer".to_owned()));
                    let (cluster, request, about) = (cluster.clone(), query.of(cluster), query.object());
                    calls.spawn(async move {
                        let answer = tokio::time::timeout_at(deadline, request.call(channel, about)).await;
                        (cluster, answer.unwrap_or_else(|_| Err("no answer in time".to_owned())))
                    });
                }
            }
        }
        while let Some(call) = calls.join_next().await {
            if let Ok((cluster, answer)) = call {
                answers.insert(cluster, answer);
            }
        }
        AccurateEstimates(answers)
    }
}

impl EstimatorQuery<'_> {
    fn of(&self, cluster: &str) -> ClusterRequest {
        let spec = &self.binding.spec;
        let assumed = self.assumed.get(cluster).map(Vec::as_slice).unwrap_or_default();
        let assumed_workloads = assumed.iter().map(request::assumed).collect();
        match &self.about.components {
            Some(components) => ClusterRequest::Sets(MaxAvailableComponentSetsRequest {
                cluster: cluster.to_owned(),
                components: components.iter().map(request::component).collect(),
                namespace: spec.resource.namespace.clone(),
                assumed_workloads,
            }),
            None => ClusterRequest::Replicas(MaxAvailableReplicasRequest {
                cluster: cluster.to_owned(),
                replica_requirements: Some(
                    spec.replica_requirements
                        .as_ref()
                        .map(request::replica_requirements)
                        .unwrap_or_default(),
                ),
                assumed_workloads,
            }),
        }
    }

    /// Returns metadata that identifies the object in the estimator's log. Kubernetes names are ASCII; other text is
    /// omitted.
    fn object(&self) -> Option<MetadataValue<Ascii>> {
        let resource = &self.binding.spec.resource;
        format!("kind={}, name={}/{}", resource.kind, resource.namespace, resource.name)
            .parse()
            .ok()
    }
}

impl ClusterRequest {
    async fn call(self, channel: Channel, about: Option<MetadataValue<Ascii>>) -> Result<i32, String> {
        match self {
            Self::Replicas(request) => {
                let answer: MaxAvailableReplicasResponse =
                    call(channel, MAX_AVAILABLE_REPLICAS, request, about).await?;
                Ok(answer.max_replicas)
            }
            Self::Sets(request) => {
                let answer: MaxAvailableComponentSetsResponse =
                    call(channel, MAX_AVAILABLE_COMPONENT_SETS, request, about).await?;
                Ok(answer.max_sets)
            }
        }
    }
}

async fn call<Q, A>(
    channel: Channel,
    method: &'static str,
    request: Q,
    about: Option<MetadataValue<Ascii>>,
) -> Result<A, String>
where
    Q: prost::Message + Send + Sync + 'static,
    A: prost::Message + Default + Send + Sync + 'static,
{
    let mut request = tonic::Request::new(request);
    if let Some(about) = about {
        request.metadata_mut().insert("object", about);
    }
    let mut client = Grpc::new(channel);
    client
        .ready()
        .await
        .map_err(|error| format!("its estimator cannot be reached: {error}"))?;
    let codec = ProstCodec::<Q, A>::default();
    let answer = client.unary(request, PathAndQuery::from_static(method), codec).await;
    answer.map(tonic::Response::into_inner).map_err(|status| {
        let code = status.code();
        format!("its estimator answered {code:?}: {}", status.message())
    })
}
