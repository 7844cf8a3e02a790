//! Clients of Push members, created from their Cluster objects and Secrets (Karmada:
//! `pkg/util/membercluster_client.go`).

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::client::connect;
use bulkhead_api::Cluster;
use bulkhead_core::model::SyncMode;
use bulkhead_runtime::connection::{ResponseCounts, WritePermit};
use bulkhead_runtime::controller::{self, Action, Error, Unobserved};
use bulkhead_runtime::handlers::Handlers;
use bulkhead_runtime::key::Key;
use bulkhead_runtime::queue::WorkQueue;
use bulkhead_runtime::store::Store;
use k8s_openapi::api::core::v1::Secret;
use kube::{Api, Client, Config, ResourceExt};
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject;

/// Maximum number of clusters whose credentials are read at the same time.
const WORKERS: usize = 5;
/// Interval at which a Secret is read again: tokens are replaced without a change of the Cluster.
const SECRET_REFRESH: Duration = Duration::from_secs(30);
/// Interval at which a Secret is read again while credentials are missing.
const SECRET_RETRY: Duration = Duration::from_secs(5);

/// Access to the API servers of member clusters.
pub trait Members: Send + Sync {
    /// Returns a client for a member cluster.
    fn client(&self, cluster: &str) -> Result<Client, MemberError>;

    /// Registers `handler`, which is called when a cluster gets a new client because its address or credentials
    /// changed. The handler stays registered until the caller drops it. By default clients never change and the
    /// handler is not called.
    fn on_replaced(&self, _handler: &Arc<ReplacedHandler>) {}
}

/// Reason why a member cluster has no client.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MemberError {
    /// No client yet; says nothing about the state of the cluster.
    #[error("{0}")]
    NotYet(String),
    /// The Cluster object does not yield a client, for example because a credential is missing.
    #[error("{0}")]
    Broken(String),
}

/// Member clusters that a set of controllers talks to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Scope {
    /// All Push clusters, from the control plane.
    Push,
    /// One Pull cluster, from inside it.
    Agent(String),
    /// None: the process only answers requests to interpreters.
    Interpreter,
}

impl Scope {
    /// True if controllers of this scope are responsible for a member cluster.
    pub(crate) fn serves(&self, cluster: &Cluster) -> bool {
        match self {
            Self::Push => cluster.spec.sync_mode == SyncMode::Push,
            Self::Agent(name) => cluster.name_any() == *name,
            Self::Interpreter => false,
        }
    }
}

impl dyn Members {
    /// Returns a client for a member cluster. Without one the reconcile is retried.
    pub(crate) fn required(&self, cluster: &str) -> Result<Client, Error> {
        self.client(cluster).map_err(|error| Error::NotYet(error.to_string()))
    }
}

/// Clients of all Push members. Each has its own connections, so that a member that hangs delays no other.
pub struct MemberClients {
    hub: Client,
    clusters: Arc<Store<Cluster>>,
    known: Mutex<BTreeMap<String, CachedClient>>,
    permit: WritePermit,
    responses: Arc<ResponseCounts>,
    replaced: Handlers<ReplacedHandler>,
}

/// Callback that gets the name of a cluster and its new client.
pub type ReplacedHandler = dyn Fn(&str, &Client) + Send + Sync;

/// Access to the only member of an agent.
pub struct OneMember {
    name: String,
    client: Client,
}

impl OneMember {
    /// Creates the access to a member through a client.
    pub fn new(name: String, client: Client) -> Self {
        Self { name, client }
    }
}

impl Members for OneMember {
    fn client(&self, cluster: &str) -> Result<Client, MemberError> {
        if cluster == self.name {
            return Ok(self.client.clone());
        }
        Err(MemberError::NotYet(format!(
            "this is the agent of {}, not of {cluster}",
            self.name
        )))
    }
}

/// Client, or the reason why there is none, with its source.
struct CachedClient {
    made_of: Source,
    client: Result<Client, String>,
}

/// Data that a client is created from.
#[derive(Clone, Debug, PartialEq)]
struct Source {
    endpoint: String,
    insecure: bool,
    proxy: String,
    secret: Result<Credentials, String>,
}

#[derive(Clone, PartialEq)]
struct Credentials {
    token: String,
    ca_bundle: Vec<u8>,
}

/// Omits the token.
impl std::fmt::Debug for Credentials {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Credentials")
            .field("ca_bundle_bytes", &self.ca_bundle.len())
            .finish_non_exhaustive()
    }
}

impl MemberClients {
    /// Creates a set without clients; [`run`](Self::run) adds them.
    pub fn new(
        hub: Client,
        clusters: Arc<Store<Cluster>>,
        permit: WritePermit,
        responses: Arc<ResponseCounts>,
    ) -> Arc<Self> {
        Arc::new(Self {
            hub,
            clusters,
            known: Mutex::default(),
            permit,
            responses,
            replaced: Handlers::default(),
        })
    }

    /// Keeps the clients in step with Clusters and Secrets until the future is dropped.
    pub async fn run(self: Arc<Self>) {
        let queue: Arc<WorkQueue<Key>> = Arc::default();
        let changed = Arc::clone(&queue);
        let _clusters = self.clusters.subscribe(move |change| {
            if change.is_generation_change() {
                changed.add(Key::of(change.object()));
            }
        });
        let reconcile = move |key: Key| {
            let clients = Arc::clone(&self);
            async move { clients.refresh(&key).await }
        };
        // The Ready condition of the Cluster shows the errors.
        controller::run(queue, WORKERS, reconcile, Unobserved).await;
    }

    async fn refresh(&self, key: &Key) -> Result<Action, Error> {
        let cluster = self
            .clusters
            .get(key)
            .filter(|cluster| cluster.spec.sync_mode == SyncMode::Push);
        let Some(cluster) = cluster else {
            self.lock().remove(&key.name);
            return Ok(Action::Wait);
        };
        let source = Source::of(&self.hub, &cluster).await?;
        let again = if source.secret.is_ok() {
            SECRET_REFRESH
        } else {
            SECRET_RETRY
        };
        if self.lock().get(&key.name).is_none_or(|known| known.made_of != source) {
            let client = source.connect(&self.permit, &self.responses);
            let known = CachedClient {
                made_of: source,
                client: client.clone(),
            };
            let before = self.lock().insert(key.name.clone(), known);
            if let (Some(_), Ok(client)) = (before, client) {
                self.replaced.call(|handler| handler(&key.name, &client));
            }
        }
        Ok(Action::After(again))
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeMap<String, CachedClient>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Reads the Secret of a Push member. The inner error is for the condition of the Cluster. The outer one means that
/// the control plane did not answer, which says nothing about the member.
async fn credentials(hub: &Client, cluster: &Cluster) -> Result<Result<Credentials, String>, Error> {
    let name = cluster.name_any();
    let reference = |field| {
        cluster
            .spec
            .secret_ref
            .as_ref()?
            .get(field)?
            .as_str()
            .filter(|text| !text.is_empty())
    };
    let (Some(namespace), Some(secret_name)) = (reference("namespace"), reference("name")) else {
        return Ok(Err(format!(
            "cluster {name} does not have a secret: spec.secretRef needs namespace and name"
        )));
    };
    let api: Api<Secret> = Api::namespaced(hub.clone(), namespace);
    let secret = api.get_opt(secret_name).await;
    let secret = secret.map_err(Error::api(format!("reading the Secret {namespace}/{secret_name}")))?;
    let Some(secret) = secret else {
        return Ok(Err(format!(
            "the Secret {namespace}/{secret_name} of cluster {name} does not exist"
        )));
    };
    let data = secret.data.unwrap_or_default();
    let token = data
        .get("token")
        .and_then(|token| std::str::from_utf8(&token.0).ok())
        .unwrap_or_default()
        .trim();
    if token.is_empty() {
        return Ok(Err(format!(
            "the Secret {namespace}/{secret_name} of cluster {name} has no token"
        )));
    }
    let ca_bundle = data.get("caBundle").map(|bundle| bundle.0.clone()).unwrap_or_default();
    Ok(Ok(Credentials {
        token: token.to_owned(),
        ca_bundle,
    }))
}

/// Access to a Push member.
pub struct MemberAccess {
    /// Client that may only read, or the reason why there is none.
    pub client: Result<Client, String>,
    /// Authorities that its certificate is verified against, PEM; empty without verification.
    pub ca_bundle: Vec<u8>,
}

/// Creates the client of a Push member as [`MemberClients`] does, once.
///
/// # Errors
///
/// If the control plane does not let its Secret be read.
pub async fn member_access(hub: &Client, cluster: &Cluster) -> Result<MemberAccess, Error> {
    let source = Source::of(hub, cluster).await?;
    let ca_bundle = source
        .secret
        .as_ref()
        .map(|secret| secret.ca_bundle.clone())
        .unwrap_or_default();
    Ok(MemberAccess {
        client: source.connect(&WritePermit::report_only(), &Arc::default()),
        ca_bundle,
    })
}

impl Source {
    async fn of(hub: &Client, cluster: &Cluster) -> Result<Self, Error> {
        Ok(Self {
            endpoint: cluster.spec.api_endpoint.clone(),
            insecure: cluster.spec.insecure_skip_tls_verification,
            proxy: cluster.spec.proxy_url.clone(),
            secret: credentials(hub, cluster).await?,
        })
    }

    fn connect(&self, permit: &WritePermit, responses: &Arc<ResponseCounts>) -> Result<Client, String> {
        let credentials = self.secret.as_ref().map_err(String::clone)?;
        if self.endpoint.is_empty() {
            return Err("spec.apiEndpoint is empty".to_owned());
        }
        let endpoint = self
            .endpoint
            .parse()
            .map_err(|error| format!("spec.apiEndpoint {}: {error}", self.endpoint))?;
        let mut config = Config::new(endpoint);
        config.auth_info.token = Some(credentials.token.clone().into());
        if self.insecure {
            config.accept_invalid_certs = true;
        } else {
            config.root_cert = Some(certificates(&credentials.ca_bundle)?);
        }
        if !self.proxy.is_empty() {
            let proxy = self
                .proxy
                .parse()
                .map_err(|error| format!("spec.proxyURL {}: {error}", self.proxy))?;
            config.proxy_url = Some(proxy);
        }
        connect(config, permit, responses).map_err(|error| error.to_string())
    }
}

/// Parses the certificates of a PEM bundle.
fn certificates(bundle: &[u8]) -> Result<Vec<Vec<u8>>, String> {
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(bundle).collect();
    let found = found.map_err(|error| format!("caBundle of the Secret is not PEM: {error}"))?;
    if found.is_empty() {
        return Err("caBundle of the Secret has no certificate; the alternative is \
            spec.insecureSkipTLSVerification"
            .to_owned());
    }
    Ok(found.into_iter().map(|certificate| certificate.to_vec()).collect())
}

impl Members for MemberClients {
    fn client(&self, cluster: &str) -> Result<Client, MemberError> {
        match self.lock().get(cluster) {
            Some(known) => known.client.clone().map_err(MemberError::Broken),
            None => Err(MemberError::NotYet(format!(
                "the credentials of cluster {cluster} are not read yet"
            ))),
        }
    }

    fn on_replaced(&self, handler: &Arc<ReplacedHandler>) {
        self.replaced.add(handler);
    }
}
