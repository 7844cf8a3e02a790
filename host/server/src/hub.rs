//! Connection to the control plane.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use bulkhead_controllers::connect;
use bulkhead_controllers::flags::GoDuration;
use bulkhead_core::time::Time;
use bulkhead_runtime::connection::{ResponseCounts, WritePermit};
use http::{Request, Response};
use http_body_util::BodyExt as _;
use kube::client::Body;
use kube::{Client, Config};
use tokio::runtime::Handle;
use tower::BoxError;
use tracing::warn;

use super::connect_error::ConnectError;
use super::endpoint::State;
use super::reload::Reloading;

use super::hub_config::unwrapped;
pub use super::hub_config::{HubArguments, RequestTimeout, client_certificate, config_in};

/// First pause before reconnecting to an unavailable control plane; doubles with each attempt.
const RETRY_BASE: Duration = Duration::from_secs(1);
/// Maximum pause between attempts.
const RETRY_MAX: Duration = Duration::from_secs(15);

/// Time limit of a request in an interactive command without an argument for it.
pub const READ_TIME_MAX: Duration = Duration::from_secs(10);

/// Connected control plane.
pub struct Hub {
    /// Client of the controllers, whose writes need the permit.
    pub client: Client,
    /// Client without the permit, for registration, which precedes the election.
    pub unguarded: Client,
    /// URL of the API server.
    pub address: String,
    /// Kubernetes version of the API server.
    pub version: String,
    /// Response counts by status code.
    pub(super) responses: Arc<ResponseCounts>,
    /// Clients that are recreated when the credentials change.
    pub(super) reloading: Reloading,
}

impl Hub {
    /// Connects, and requests the version so that errors are reported immediately.
    ///
    /// # Errors
    ///
    /// A [`ConnectError`] if there is a kubeconfig but the control plane cannot be used.
    pub async fn connect(arguments: &HubArguments, permit: &WritePermit) -> anyhow::Result<Self> {
        Self::connect_within(arguments, permit, READ_TIME_MAX).await
    }

    /// Connects like [`connect`](Self::connect), with a time limit for the first request.
    ///
    /// # Errors
    ///
    /// Those of [`connect`](Self::connect).
    pub async fn connect_within(
        arguments: &HubArguments,
        permit: &WritePermit,
        limit: Duration,
    ) -> anyhow::Result<Self> {
        Self::connect_with(arguments, permit, &Handle::current(), limit).await
    }

    /// Connects like [`connect`](Self::connect), with a separate runtime for leases and probes.
    async fn connect_with(
        arguments: &HubArguments,
        permit: &WritePermit,
        lease_runtime: &Handle,
        limit: Duration,
    ) -> anyhow::Result<Self> {
        let config = arguments.config().await?;
        let address = config.cluster_url.to_string();
        if let Some(error) = expired(&config, Time::new(super::now())) {
            return Err(error.into());
        }
        let responses = Arc::<ResponseCounts>::default();
        let made = || format!("connecting to the control plane {address}");
        let first = connect(config.clone(), &WritePermit::report_only(), &responses).with_context(made)?;
        let first = in_time(first, limit);
        let version = first
            .apiserver_version()
            .await
            .map_err(|error| ConnectError::of(&address, &error))?;
        let reloading = Reloading::new(arguments.clone(), config, permit, &responses, lease_runtime)?;
        let (client, unguarded) = (reloading.client(), reloading.unguarded());
        Ok(Self {
            client,
            unguarded,
            address,
            version: version.git_version,
            responses,
            reloading,
        })
    }

    /// Returns a client for interactive reads: each request has a time limit and is never retried.
    ///
    /// The hub must have been connected with a permit that rejects all writes.
    pub fn reader(&self, limit: Duration) -> Client {
        in_time(self.client.clone(), limit)
    }

    /// Connects, retrying until the control plane is available. Logs the reason for waiting.
    ///
    /// # Errors
    ///
    /// A problem that needs manual action.
    pub(super) async fn connect_in_time(
        arguments: &HubArguments,
        permit: &WritePermit,
        state: &State,
        lease_runtime: &Handle,
    ) -> anyhow::Result<Self> {
        let mut pause = RETRY_BASE;
        loop {
            let error = match Self::connect_with(arguments, permit, lease_runtime, READ_TIME_MAX).await {
                Ok(hub) => return Ok(hub),
                Err(error) => error,
            };
            if !error
                .downcast_ref::<ConnectError>()
                .is_some_and(|error| error.is_transient)
            {
                return Err(error);
            }
            state.set_stage(format!("connecting to the control plane: {error:#}"));
            warn!("waiting: {error:#}");
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(RETRY_MAX);
        }
    }
}

/// Wraps a client so that each request, including the body, has a time limit. The error names the request.
pub fn in_time(client: Client, limit: Duration) -> Client {
    let namespace = client.default_namespace().to_owned();
    let service = tower::service_fn(move |request: Request<Body>| {
        let client = client.clone();
        async move {
            let asked = format!("{} {}", request.method(), request.uri().path());
            let answer = async {
                let (head, body) = client.send(request).await.map_err(unwrapped)?.into_parts();
                let body = body.collect().await?.to_bytes();
                Ok::<_, BoxError>(Response::from_parts(head, Body::from(body)))
            };
            let in_time = tokio::time::timeout(limit, answer).await;
            in_time.unwrap_or_else(|_| Err(format!("{asked}: no answer within {}", GoDuration(limit)).into()))
        }
    });
    Client::new(service, namespace)
}

/// Returns a problem if the client certificate has expired. The API server would only report an unknown user.
fn expired(config: &Config, now: Time) -> Option<ConnectError> {
    let (place, pem) = client_certificate(config)?;
    let ends = crate::expiry::of_chain(&pem.ok()?).ok()?;
    (ends <= now).then(|| {
        let what = format!("the client certificate in {place} expired at {ends}");
        ConnectError::permanent(what, "renew the client certificate of the kubeconfig")
    })
}

#[cfg(test)]
mod tests {
    use k8s_openapi::ByteString;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_request_that_hangs_ends_in_time_and_is_named() {
        let hangs = tower::service_fn(|_: Request<Body>| std::future::pending::<Result<Response<Body>, BoxError>>());
        let clusters = kube::Api::<bulkhead_api::Cluster>::all(in_time(Client::new(hangs, "default"), READ_TIME_MAX));
        let error = clusters.list(&Default::default()).await.unwrap_err();
        let message = bulkhead_runtime::causes::causes(&error);
        assert!(
            message.contains("GET /apis/cluster.karmada.io/v1alpha1/clusters: no answer within 10s"),
            "{message}"
        );

        let stops = tower::service_fn(|_: Request<Body>| async {
            let frames = futures::stream::pending::<Result<hyper::body::Frame<bytes::Bytes>, BoxError>>();
            Ok::<_, BoxError>(Response::new(http_body_util::StreamBody::new(frames)))
        });
        let clusters =
            kube::Api::<bulkhead_api::Cluster>::all(in_time(Client::new(stops, "default"), Duration::from_millis(200)));
        let error = clusters.list(&Default::default()).await.unwrap_err();
        assert!(
            bulkhead_runtime::causes::causes(&error).contains("no answer within 200ms"),
            "{error}"
        );
    }

    #[test]
    fn an_expired_client_certificate_is_reported_before_the_first_request() {
        let key = rcgen::KeyPair::generate().unwrap();
        let mut params = rcgen::CertificateParams::new(vec!["a".to_owned()]).unwrap();
        params.not_after = rcgen::date_time_ymd(2031, 2, 3);
        let pem = params.self_signed(&key).unwrap().pem();
        let mut config = Config::new("https://hub".parse().unwrap());
        let data = serde_json::to_value(ByteString(pem.into_bytes())).unwrap();
        config.auth_info.client_certificate_data = data.as_str().map(str::to_owned);
        let at = |text: &str| Time::new(text.parse().unwrap());
        assert_eq!(expired(&config, at("2031-02-02T00:00:00Z")), None);
        let error = expired(&config, at("2031-02-04T00:00:00Z")).unwrap();
        assert!(
            !error.is_transient && error.what.contains("expired at 2031-02-03T00:00:00Z"),
            "{error}"
        );
    }
}
