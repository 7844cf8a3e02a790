//! Clients of the control plane with renewable credentials: when the kubeconfig or a file that it references
//! changes, requests use a new connection, transparently to the holders of a client.
//!
//! `kube` itself reloads tokens in files.

use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use bulkhead_controllers::connect;
use bulkhead_runtime::connection::{ResponseCounts, WritePermit};
use futures::future::BoxFuture;
use http::{Request, Response};
use kube::client::Body;
use kube::{Client, Config};
use tokio::runtime::Handle;
use tower::{BoxError, Service};
use tracing::{info, warn};

use super::hub_config::{HubArguments, client_certificate, unwrapped};

/// Polling interval of the files.
const POLL_INTERVAL: Duration = Duration::from_secs(10);

/// Clients of a control plane, with and without the permit, and their configuration.
pub(crate) struct Reloading {
    arguments: HubArguments,
    permit: WritePermit,
    responses: Arc<ResponseCounts>,
    namespace: String,
    guarded: Current,
    unguarded: Current,
    lease_runtime: Handle,
    lease_guarded: Current,
    lease_unguarded: Current,
    made_of: Mutex<Vec<Vec<u8>>>,
}

/// Replaceable client.
#[derive(Clone)]
struct Current(Arc<Mutex<Client>>);

impl Current {
    fn get(&self) -> Client {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn set(&self, client: Client) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = client;
    }
}

impl Service<Request<Body>> for Current {
    type Response = Response<Body>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Response<Body>, BoxError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        // The inner client waits for readiness when it sends.
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let client = self.get();
        Box::pin(async move {
            // Unwrapped, so that callers can recognize a rejected write.
            client.send(request).await.map_err(unwrapped)
        })
    }
}

impl Reloading {
    pub(super) fn new(
        arguments: HubArguments,
        config: Config,
        permit: &WritePermit,
        responses: &Arc<ResponseCounts>,
        lease_runtime: &Handle,
    ) -> kube::Result<Self> {
        let current = |client| Current(Arc::new(Mutex::new(client)));
        let (lease_guarded, lease_unguarded) = lease_clients(&config, permit, responses, lease_runtime)?;
        Ok(Self {
            arguments,
            permit: permit.clone(),
            responses: Arc::clone(responses),
            namespace: config.default_namespace.clone(),
            made_of: Mutex::new(parts(&config)),
            guarded: current(connect(config.clone(), permit, responses)?),
            unguarded: current(connect(config, &WritePermit::unlimited(), responses)?),
            lease_runtime: lease_runtime.clone(),
            lease_guarded: current(lease_guarded),
            lease_unguarded: current(lease_unguarded),
        })
    }

    /// Returns the client whose writes need the permit.
    pub(super) fn client(&self) -> Client {
        Client::new(self.guarded.clone(), self.namespace.clone())
    }

    /// Returns the client whose writes do not need the permit.
    pub(super) fn unguarded(&self) -> Client {
        Client::new(self.unguarded.clone(), self.namespace.clone())
    }

    /// Returns the runtime of leases and probes.
    pub(super) fn lease_runtime(&self) -> &Handle {
        &self.lease_runtime
    }

    /// Returns the client on that runtime whose writes need the permit.
    pub(super) fn lease_client(&self) -> Client {
        let _entered = self.lease_runtime.enter();
        Client::new(self.lease_guarded.clone(), self.namespace.clone())
    }

    /// Returns the client on that runtime whose writes do not need the permit.
    pub(super) fn lease_unguarded(&self) -> Client {
        let _entered = self.lease_runtime.enter();
        Client::new(self.lease_unguarded.clone(), self.namespace.clone())
    }

    /// Polls for new credentials. If they are rejected, logs this and keeps the old ones. Never returns.
    pub(super) async fn run(&self) {
        loop {
            tokio::time::sleep(POLL_INTERVAL).await;
            match self.look().await {
                Ok(false) => {}
                Ok(true) => info!("the credentials of the control plane were replaced"),
                Err(error) => {
                    warn!("cannot reload the credentials of the control plane, the old ones stay in use: {error:#}");
                }
            }
        }
    }

    async fn look(&self) -> anyhow::Result<bool> {
        let config = self.arguments.config().await?;
        let made_of = parts(&config);
        if *self.made_of.lock().unwrap_or_else(PoisonError::into_inner) == made_of {
            return Ok(false);
        }
        let unguarded = connect(config.clone(), &WritePermit::unlimited(), &self.responses)?;
        // A configuration by which no API server answers, or that it rejects (401), is not used. Missing permission to
        // read the version does not matter.
        match unguarded.apiserver_version().await {
            Err(kube::Error::Api(status)) if status.code != 401 => {}
            answer => drop(answer?),
        }
        let (lease_guarded, lease_unguarded) =
            lease_clients(&config, &self.permit, &self.responses, &self.lease_runtime)?;
        self.guarded.set(connect(config, &self.permit, &self.responses)?);
        self.unguarded.set(unguarded);
        self.lease_guarded.set(lease_guarded);
        self.lease_unguarded.set(lease_unguarded);
        *self.made_of.lock().unwrap_or_else(PoisonError::into_inner) = made_of;
        Ok(true)
    }
}

/// Creates clients on the runtime of leases and probes, with and without the permit.
fn lease_clients(
    config: &Config,
    permit: &WritePermit,
    responses: &Arc<ResponseCounts>,
    lease_runtime: &Handle,
) -> kube::Result<(Client, Client)> {
    let _entered = lease_runtime.enter();
    let guarded = connect(config.clone(), permit, responses)?;
    Ok((guarded, connect(config.clone(), &WritePermit::unlimited(), responses)?))
}

/// Returns all parts of a configuration that may be replaced while the process runs.
fn parts(config: &Config) -> Vec<Vec<u8>> {
    let certificate = client_certificate(config)
        .and_then(|(_, pem)| pem.ok())
        .unwrap_or_default();
    let key = config
        .auth_info
        .client_key
        .as_ref()
        .and_then(|path| std::fs::read(path).ok())
        .unwrap_or_default();
    let account = serde_json::to_vec(&config.auth_info).unwrap_or_default();
    let mut parts = vec![config.cluster_url.to_string().into_bytes(), certificate, key, account];
    parts.extend(config.root_cert.clone().unwrap_or_default());
    parts
}
