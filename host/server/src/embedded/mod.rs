//! `bulkhead run --embedded`: control plane and members in this process, served on loopback.
//!
//! The controllers reach both over TLS, as in a real federation. Only the implementation behind the API differs.

mod data;
mod kubeconfig;
mod members;
mod serve;

use std::collections::BTreeMap;
use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, bail};
use bulkhead_api::Cluster;
use bulkhead_api::definition::definitions;
use bulkhead_apiserver::json::field;
use bulkhead_apiserver::{ApiServer, Clock, DeleteOptions, Fidelity, ObjectKey, Options, StatusError, Store, kinds};
use bulkhead_controllers::flags::Flags;
use bulkhead_defaults::admission::InProcess;
use bulkhead_emulator::MemberCluster;
use bulkhead_journal::private;
use clap::Args;
use kube::{Api, Client};
use serde_json::{Value, json};
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;
use tracing::{info, warn};

use self::data::DataDirectory;
use super::now;
use super::server::{self, Transport};
use super::webhook::certificate::Certificate;
use crate::private_file;

/// Kubernetes version that the control plane reports.
const KUBERNETES_VERSION: &str = "v1.35.0";
/// Maximum number of members; each is a complete API server.
const MEMBERS_MAX: u64 = 100;
/// Initial namespaces.
const NAMESPACES: [&str; 5] = [
    "default",
    "kube-system",
    "kube-public",
    "karmada-system",
    "karmada-cluster",
];
/// Retention of events, as in Kubernetes.
const EVENT_AGE_MAX: Duration = Duration::from_hours(1);
/// Interval of the removal of old events.
const EVENT_SWEEP: Duration = Duration::from_mins(1);
/// Interval of fsync. A crash of the process alone loses no data in between.
const SYNC: Duration = Duration::from_secs(1);
/// Validity of a self-signed certificate, in years.
const CERTIFICATE_YEARS: i16 = 10;

/// Help heading of the arguments.
pub const HEADING: &str = "Embedded control plane";

#[derive(Args)]
#[command(next_help_heading = HEADING)]
pub(super) struct EmbeddedArguments {
    /// Run the control plane and simulated members in this process as well, for kubectl on this machine.
    #[arg(long, conflicts_with_all = ["kubeconfig", "context", "webhook_bind_address"])]
    pub(super) embedded: bool,

    /// Number of simulated members, named member1 and so on.
    #[arg(long, value_name = "N", default_value_t = 2, requires = "embedded",
          value_parser = clap::value_parser!(u64).range(..=MEMBERS_MAX))]
    members: u64,

    /// Directory that stores the objects of control plane and members across restarts.
    #[arg(long, value_name = "DIR", requires = "embedded")]
    data_dir: Option<PathBuf>,

    /// Address of the API; port 0 selects a free one, with --data-dir the last used one.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:0", requires = "embedded")]
    bind_address: SocketAddr,

    /// File to write the kubeconfig to; defaults to bulkhead.kubeconfig in the working directory, or kubeconfig in
    /// --data-dir.
    #[arg(long, value_name = "FILE", requires = "embedded")]
    write_kubeconfig: Option<PathBuf>,
}

/// Running control plane with members. Dropping it stops them.
pub(super) struct Embedded {
    /// Path of the kubeconfig for the controllers and other clients.
    pub(super) kubeconfig: PathBuf,
    members: BTreeMap<String, MemberCluster>,
    url: String,
    ca_pem: String,
    token: String,
    data: Option<Arc<DataDirectory>>,
    _tasks: JoinSet<()>,
}

impl EmbeddedArguments {
    /// Starts the control plane, if it is enabled.
    pub(super) async fn start(&self, flags: &Flags) -> anyhow::Result<Option<Embedded>> {
        if !self.embedded {
            return Ok(None);
        }
        if !self.bind_address.ip().is_loopback() {
            bail!(
                "--bind-address {}: it must be a loopback address, such as 127.0.0.1:6443",
                self.bind_address
            );
        }
        let path = self.kubeconfig_path();
        kubeconfig::refuse_running(&path).await?;
        let data = self
            .data_dir
            .as_deref()
            .map(DataDirectory::open)
            .transpose()?
            .map(Arc::new);
        let clock = Clock::new(now());
        let mut tasks = JoinSet::new();
        let hub = hub(flags, &clock, data.as_deref())?;
        let identity = Identity::new(&self.bind_address.ip().to_string(), data.as_deref())?;
        let mut members = BTreeMap::new();
        for name in members::names(usize::try_from(self.members)?, data.as_deref())? {
            let member = members::build(&name, seed(), &clock, &identity.certificate.ca_pem, data.as_deref())?;
            tasks.spawn(member.run());
            members.insert(name, member);
        }
        let listener = serve::listen(self.bind_address, identity.port).await?;
        let address = listener.local_addr()?;
        keep_port(address.port(), data.as_deref())?;
        let token = identity.token.clone();
        let served = members
            .iter()
            .map(|(name, member)| (name.clone(), member.server().service_through(member.link())));
        let api = serve::Api {
            hub: hub.service(),
            members: served.collect(),
            token: token.clone(),
        };
        let acceptor = TlsAcceptor::from(Arc::new(identity.certificate.server_config(None)?));
        let transport = Transport::Tls(Box::new(move || acceptor.clone()));
        tasks.spawn(server::serve(
            listener,
            transport,
            api,
            serve::LIMITS,
            "the embedded control plane",
        ));
        tasks.spawn(members::follow_annotations(hub.clone(), members.clone()));
        tasks.spawn(expire_events(hub.clone()));
        if let Some(data) = data.clone() {
            tasks.spawn(keep_up(data));
        }

        let (url, ca_pem) = (format!("https://{address}"), identity.certificate.ca_pem.clone());
        let contexts = members
            .keys()
            .map(|name| (name.clone(), format!("{url}{}", serve::member_path(name))));
        let contexts: Vec<_> = std::iter::once((kubeconfig::CONTEXT.to_owned(), url.clone()))
            .chain(contexts)
            .collect();
        kubeconfig::write(&path, &contexts, &ca_pem, &token)?;
        info!(
            "embedded control plane at {url} with {} simulated members",
            members.len()
        );
        info!("try: kubectl --kubeconfig {} get clusters", path.display());
        Ok(Some(Embedded {
            kubeconfig: path,
            members,
            url,
            ca_pem,
            token,
            data,
            _tasks: tasks,
        }))
    }

    /// Returns the directory that stores the objects, if there is one.
    pub(super) fn data_dir(&self) -> Option<&Path> {
        self.data_dir.as_deref()
    }

    fn kubeconfig_path(&self) -> PathBuf {
        match (&self.write_kubeconfig, &self.data_dir) {
            (Some(path), _) => path.clone(),
            (None, Some(directory)) => directory.join("kubeconfig"),
            (None, None) => PathBuf::from("bulkhead.kubeconfig"),
        }
    }
}

impl Embedded {
    /// Registers the members on the control plane.
    pub(super) async fn join_members(&self, hub: &Client) -> anyhow::Result<()> {
        for (name, member) in &self.members {
            let url = format!("{}{}", self.url, serve::member_path(name));
            members::join(hub, member, &url, &self.ca_pem, &self.token).await?;
        }
        Ok(())
    }

    /// Logs when members become ready. Returns the reason if objects can no longer be stored.
    pub(super) async fn attend(&self, hub: Client) -> String {
        let ready = async {
            for name in self.members.keys() {
                let clusters: Api<Cluster> = Api::all(hub.clone());
                let is_ready = |cluster: Option<&Cluster>| cluster.is_some_and(|cluster| cluster.is_ready());
                if kube::runtime::wait::await_condition(clusters, name, is_ready)
                    .await
                    .is_ok()
                {
                    info!("{name} is ready");
                }
            }
            std::future::pending::<String>().await
        };
        let failed = async {
            match &self.data {
                Some(data) => data.failed().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            why = failed => why,
            why = ready => why,
        }
    }
}

impl Drop for Embedded {
    fn drop(&mut self) {
        if let Some(data) = &self.data {
            data.sync();
        }
    }
}

/// Creates the control plane with its namespaces and CRDs.
fn hub(flags: &Flags, clock: &Clock, data: Option<&DataDirectory>) -> anyhow::Result<ApiServer> {
    let (contents, persistence) = data.map(|data| data.server(data::HUB)).transpose()?.unzip();
    let hub = ApiServer::new(Options {
        kinds: kinds::kubernetes()
            .into_iter()
            .chain(kinds::stored())
            .chain([kinds::definitions()])
            .collect(),
        admission: Some(Arc::new(members::CheckedAnnotations(InProcess(flags.admission())))),
        kubernetes_version: KUBERNETES_VERSION.to_owned(),
        fidelity: Fidelity::People,
        namespace_objects: vec![kinds::default_account()],
        persistence,
        ..Options::new("control plane", seed(), clock.clone())
    });
    for object in hub.restore(contents.unwrap_or_default()) {
        warn!(
            "left out: {} {}, which is not served",
            object["kind"], object["metadata"]["name"]
        );
    }
    let put = |api_version: &str, kind: &str, object: Value| -> Result<(), StatusError> {
        let id = hub
            .kind_id(api_version, kind)
            .ok_or_else(|| StatusError::unknown_path(kind))?;
        let name = object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        let namespace = if kind == "Service" { "default" } else { "" };
        put(&hub.store(), &ObjectKey::new(id, namespace, &name), object)
    };
    for name in NAMESPACES {
        put("v1", "Namespace", json!({"metadata": {"name": name}})).context("making the first namespaces")?;
    }
    put("v1", "Service", kinds::api_service()).context("making the Service kubernetes")?;
    for definition in definitions() {
        let object = serde_json::to_value(&definition)?;
        put("apiextensions.k8s.io/v1", "CustomResourceDefinition", object)
            .with_context(|| format!("defining {}", definition.spec.names.kind))?;
    }
    Ok(hub)
}

/// Creates an object, or updates the existing one.
fn put(store: &Store, key: &ObjectKey, mut object: Value) -> Result<(), StatusError> {
    match store.get(key) {
        None => store.create(key.kind, &key.namespace, object).map(drop),
        // Only CRDs have a spec that may have changed.
        Some(_) if object.get("spec").is_none() => Ok(()),
        Some(known) => {
            object["status"] = known.content()["status"].clone();
            store.update(key, object).map(drop)
        }
    }
}

/// Returns a random seed, so that new names never match those of deleted objects.
fn seed() -> u64 {
    uuid::Uuid::new_v4().as_u64_pair().1
}

/// Syncs stored objects to disk periodically. Never returns.
async fn keep_up(data: Arc<DataDirectory>) {
    loop {
        tokio::time::sleep(SYNC).await;
        let data = Arc::clone(&data);
        let _ = tokio::task::spawn_blocking(move || data.sync()).await;
    }
}

/// Removes expired events periodically.
async fn expire_events(hub: ApiServer) {
    let Some(kind) = hub.kind_id("v1", "Event") else { return };
    let store = hub.store();
    loop {
        tokio::time::sleep(EVENT_SWEEP).await;
        let oldest = hub.clock().now() - EVENT_AGE_MAX;
        for event in store.list(kind, None) {
            let seen = ["/lastTimestamp", "/metadata/creationTimestamp"];
            let seen = seen.iter().find_map(|path| field(event.content(), path)?.as_str());
            let seen = seen.and_then(|seen| seen.parse::<k8s_openapi::jiff::Timestamp>().ok());
            if seen.is_some_and(|seen| seen < oldest) {
                // The event may be gone already.
                let key = ObjectKey::new(kind, event.namespace(), event.name());
                let _ = store.delete(&key, &DeleteOptions::default());
            }
        }
    }
}

/// Certificate and token of the control plane.
struct Identity {
    certificate: Certificate,
    token: String,
    /// Last used port.
    port: Option<u16>,
}

impl Identity {
    /// Reads the identity in the data directory, or creates a new one.
    fn new(host: &str, data: Option<&DataDirectory>) -> anyhow::Result<Self> {
        let made = || {
            let until = now().to_zoned(k8s_openapi::jiff::tz::TimeZone::UTC).date();
            let until = until.saturating_add(k8s_openapi::jiff::Span::new().years(CERTIFICATE_YEARS));
            Certificate::self_made(host, until, None).context("making a certificate")
        };
        let Some(folder) = data.map(|data| data.path().join("identity")) else {
            return Ok(Self {
                certificate: made()?,
                token: random_token(),
                port: None,
            });
        };
        let restricted = private::directory(&folder).and_then(|()| private::files(&folder));
        restricted.with_context(|| format!("making {}", folder.display()))?;
        let kept = |name: &str| {
            fs::read_to_string(folder.join(name))
                .ok()
                .map(|text| text.trim().to_owned())
        };
        if let (Some(token), true) = (
            kept("token"),
            folder.join("tls.crt").exists() && kept("host").as_deref() == Some(host),
        ) {
            let certificate = Certificate::from_directory(&folder)?;
            return Ok(Self {
                certificate,
                token,
                port: kept("port").and_then(|port| port.parse().ok()),
            });
        }
        let identity = Self {
            certificate: made()?,
            token: kept("token").unwrap_or_else(random_token),
            port: None,
        };
        for (name, text) in [
            ("token", &identity.token),
            ("tls.crt", &identity.certificate.chain_pem),
            ("tls.key", &identity.certificate.key_pem),
            ("ca.crt", &identity.certificate.ca_pem),
            ("host", &host.to_owned()),
        ] {
            keep(&folder.join(name), text)?;
        }
        Ok(identity)
    }
}

/// Stores the port for the next start.
fn keep_port(port: u16, data: Option<&DataDirectory>) -> anyhow::Result<()> {
    match data {
        Some(data) => keep(&data.path().join("identity/port"), &port.to_string()),
        None => Ok(()),
    }
}

fn random_token() -> String {
    format!("{}{}", uuid::Uuid::new_v4().simple(), uuid::Uuid::new_v4().simple())
}

/// Stores a part of the identity, which only its owner can read.
fn keep(path: &Path, text: &str) -> anyhow::Result<()> {
    private_file::replace(path, text.as_bytes()).with_context(|| format!("writing {}", path.display()))
}
