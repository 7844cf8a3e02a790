//! Kubernetes control plane on this machine: etcd, API server and its other components.

use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use anyhow::Context as _;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Api, Client, Config};
use rustix::process::Signal;
use serde_json::json;
use tempfile::TempDir;

use crate::process::Process;
use crate::servers::Servers;
use crate::wait;

/// A cluster administrator. The token equals the name.
const ADMIN: &str = "admin";
/// Further administrators, so that the audit log distinguishes processes.
pub(crate) const CANDIDATES: [&str; 2] = ["candidate-1", "candidate-2"];
/// Administrator that a test writes as, beside the processes under test.
pub(crate) const NEIGHBOUR: &str = "neighbour";
/// Audit policy of a hub: the metadata of each request, logged once per request.
const AUDIT_POLICY: &str = r#"{"apiVersion": "audit.k8s.io/v1", "kind": "Policy",
    "omitStages": ["RequestReceived", "ResponseStarted"], "rules": [{"level": "Metadata"}]}"#;
/// Time limit for the start of a control plane on a busy machine.
const START_MAX: Duration = Duration::from_mins(2);

/// Role of a control plane, which decides on the components beside the API server.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// Controllers for namespaces, garbage collection and service accounts only.
    Hub,
    /// All Kubernetes controllers, a scheduler, and simulated nodes.
    Member,
}

/// Client rate limits of a member's components. With Kubernetes' default of 20 requests a second they would be the
/// bottleneck of a storm.
const UNHURRIED: [&str; 2] = ["--kube-api-qps=500", "--kube-api-burst=1000"];

/// A request in the audit log.
#[derive(Debug)]
pub(crate) struct Audited {
    /// Verb, such as `get` or `patch`.
    pub(crate) verb: String,
    /// Plural resource name, without the subresource.
    pub(crate) resource: String,
    /// HTTP status code of the response.
    pub(crate) code: u64,
    /// Time of receipt in UTC, as RFC 3339 with microseconds.
    pub(crate) received: String,
}

impl Audited {
    /// True if the verb is neither `get`, `list` nor `watch`.
    pub(crate) fn is_write(&self) -> bool {
        !["get", "list", "watch"].contains(&self.verb.as_str())
    }
}

/// A running control plane.
pub(crate) struct ControlPlane {
    name: String,
    directory: PathBuf,
    port: u16,
    api_server_arguments: Vec<String>,
    api_server: PathBuf,
    server: Option<Process>,
    beside: Vec<Process>,
    /// Simulated nodes of a member.
    nodes: Option<Process>,
    /// Dropped after the servers: an API server without etcd hangs.
    etcd: Process,
    /// Data of etcd, several hundred megabytes. Last field, hence removed after the end of etcd.
    _data: TempDir,
}

impl ControlPlane {
    /// Starts a control plane and waits until it is ready.
    pub(crate) async fn start(servers: &Servers, directory: &Path, name: &str, role: Role) -> anyhow::Result<Self> {
        let directory = directory.join(name);
        fs::create_dir_all(&directory)?;
        let program = |name: &str| servers.programs.join(name);
        let log = |name: &str| directory.join(format!("{name}.log"));
        let path = |name: &str| directory.join(name).display().to_string();
        let [client, peer, port] = free_ports()?;
        let data = tempfile::Builder::new().prefix("etcd-").tempdir_in(&directory)?;
        let etcd = Process::start(
            &program("etcd"),
            &[
                format!("--data-dir={}", data.path().display()),
                format!("--listen-client-urls=http://127.0.0.1:{client}"),
                format!("--advertise-client-urls=http://127.0.0.1:{client}"),
                format!("--listen-peer-urls=http://127.0.0.1:{peer}"),
                format!("--initial-advertise-peer-urls=http://127.0.0.1:{peer}"),
                format!("--initial-cluster=default=http://127.0.0.1:{peer}"),
                "--unsafe-no-fsync".to_owned(),
                "--log-level=error".to_owned(),
            ],
            log("etcd"),
        )?;
        let key = rcgen::KeyPair::generate()?;
        fs::write(directory.join("sa.key"), key.serialize_pem())?;
        fs::write(directory.join("sa.pub"), key.public_key_pem())?;
        fs::write(directory.join("tokens.csv"), tokens())?;
        fs::write(directory.join("audit-policy.yaml"), AUDIT_POLICY)?;
        let mut api_server_arguments = vec![
            format!("--etcd-servers=http://127.0.0.1:{client}"),
            format!("--secure-port={port}"),
            "--bind-address=127.0.0.1".to_owned(),
            format!("--cert-dir={}", path("certificates")),
            format!("--service-account-key-file={}", path("sa.pub")),
            format!("--service-account-signing-key-file={}", path("sa.key")),
            "--service-account-issuer=https://e2e.bulkhead.dev".to_owned(),
            format!("--token-auth-file={}", path("tokens.csv")),
            "--authorization-mode=RBAC".to_owned(),
            "--service-cluster-ip-range=10.0.0.0/16".to_owned(),
            "--disable-admission-plugins=ServiceAccount".to_owned(),
        ];
        if role == Role::Hub {
            api_server_arguments.push(format!("--audit-policy-file={}", path("audit-policy.yaml")));
            api_server_arguments.push(format!("--audit-log-path={}", path("audit.log")));
        }
        let mut plane = Self {
            name: name.to_owned(),
            port,
            api_server_arguments,
            api_server: program("kube-apiserver"),
            server: None,
            beside: Vec::new(),
            nodes: None,
            etcd,
            _data: data,
            directory: directory.clone(),
        };
        plane.start_api_server().await?;
        let kubeconfig = format!("--kubeconfig={}", plane.kubeconfig().display());
        let mut manager = vec![
            kubeconfig.clone(),
            "--leader-elect=false".to_owned(),
            "--secure-port=0".to_owned(),
            format!("--service-account-private-key-file={}", path("sa.key")),
            format!("--root-ca-file={}", path("certificates/apiserver.crt")),
        ];
        if role == Role::Hub {
            let wanted = "namespace-controller,garbage-collector-controller,serviceaccount-controller";
            manager.push(format!("--controllers={wanted},serviceaccount-token-controller"));
        } else {
            manager.extend(UNHURRIED.map(str::to_owned));
        }
        let beside = &mut plane.beside;
        beside.push(Process::start(
            &program("kube-controller-manager"),
            &manager,
            log("kube-controller-manager"),
        )?);
        if role == Role::Member {
            let mut scheduler = vec![
                kubeconfig.clone(),
                "--leader-elect=false".to_owned(),
                "--secure-port=0".to_owned(),
            ];
            scheduler.extend(UNHURRIED.map(str::to_owned));
            beside.push(Process::start(
                &program("kube-scheduler"),
                &scheduler,
                log("kube-scheduler"),
            )?);
            let kwok = [
                kubeconfig,
                "--manage-all-nodes=true".to_owned(),
                format!("--config={}", servers.stages.display()),
                "--node-lease-duration-seconds=40".to_owned(),
            ];
            plane.nodes = Some(Process::start(&program("kwok"), &kwok, log("kwok"))?);
            plane.add_nodes(4).await?;
        }
        Ok(plane)
    }

    /// Starts the API server, also after it was killed, and waits until it is ready.
    pub(crate) async fn start_api_server(&mut self) -> anyhow::Result<()> {
        let log = self.directory.join("kube-apiserver.log");
        let mut server = Process::start(&self.api_server, &self.api_server_arguments, log)?;
        let what = format!("the API server of {} is ready", self.name);
        let certificate = self.directory.join("certificates/apiserver.crt");
        wait::until(&what, START_MAX, async || {
            if server.ended() {
                return Ok(());
            }
            if !certificate.exists() {
                return Err("it has no certificate yet".to_owned());
            }
            self.write_kubeconfig(ADMIN, ADMIN).map_err(|error| error.to_string())?;
            let client = self.client().await.map_err(|error| error.to_string())?;
            let request = http_get("/readyz").map_err(|error| error.to_string())?;
            let answer = tokio::time::timeout(Duration::from_secs(2), client.request_text(request)).await;
            answer
                .map_err(|_| "no answer".to_owned())?
                .map(drop)
                .map_err(|error| error.to_string())
        })
        .await?;
        if server.ended() {
            anyhow::bail!(
                "{what}: it ended and said last: {}; see {}",
                server.last_words(),
                server.log().display()
            );
        }
        self.server = Some(server);
        Ok(())
    }

    /// Writes a kubeconfig for a user with a token.
    pub(crate) fn write_kubeconfig(&self, user: &str, token: &str) -> anyhow::Result<PathBuf> {
        self.write_kubeconfig_for(&format!("https://127.0.0.1:{}", self.port), user, token)
    }

    /// Writes a kubeconfig for [`ADMIN`] with another address than that of the API server.
    pub(crate) fn kubeconfig_for(&self, address: &str) -> anyhow::Result<PathBuf> {
        let (_, port) = address.rsplit_once(':').context("the address has a port")?;
        let written = self.write_kubeconfig_for(address, ADMIN, ADMIN)?;
        let path = self.directory.join(format!("kubeconfig-at-{port}"));
        fs::rename(written, &path)?;
        self.write_kubeconfig(ADMIN, ADMIN)?;
        Ok(path)
    }

    fn write_kubeconfig_for(&self, address: &str, user: &str, token: &str) -> anyhow::Result<PathBuf> {
        let text = json!({
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "e2e", "cluster": {
                "server": address,
                "certificate-authority": self.directory.join("certificates/apiserver.crt"),
            }}],
            "users": [{"name": user, "user": {"token": token}}],
            "contexts": [{"name": "e2e", "context": {"cluster": "e2e", "user": user}}],
            "current-context": "e2e",
        });
        let path = self.directory.join(format!("kubeconfig-{user}"));
        fs::write(&path, serde_json::to_vec_pretty(&text)?).context("writing the kubeconfig")?;
        Ok(path)
    }

    /// Returns the certificate of the API server, which is its own authority.
    pub(crate) fn certificate(&self) -> PathBuf {
        self.directory.join("certificates/apiserver.crt")
    }

    /// Returns the port of the API server.
    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// Returns the kubeconfig of [`ADMIN`].
    pub(crate) fn kubeconfig(&self) -> PathBuf {
        self.directory.join(format!("kubeconfig-{ADMIN}"))
    }

    /// Returns a user's requests from the audit log of a hub, as `verb resource code`.
    pub(crate) fn requests_of(&self, user: &str) -> anyhow::Result<Vec<String>> {
        let audited = self.audited(user)?;
        Ok(audited
            .iter()
            .map(
                |Audited {
                     verb, resource, code, ..
                 }| format!("{verb} {resource} {code}"),
            )
            .collect())
    }

    /// Returns a user's requests from the audit log of a hub, in the order of their completion.
    pub(crate) fn audited(&self, user: &str) -> anyhow::Result<Vec<Audited>> {
        let text = fs::read_to_string(self.directory.join("audit.log")).context("reading the audit log")?;
        let mut requests = Vec::new();
        for line in text.lines() {
            let entry: serde_json::Value = serde_json::from_str(line).context("reading a line of the audit log")?;
            let said = |pointer: &str| {
                entry
                    .pointer(pointer)
                    .and_then(serde_json::Value::as_str)
                    .unwrap_or_default()
            };
            if said("/user/username") == user {
                let code = entry
                    .pointer("/responseStatus/code")
                    .and_then(serde_json::Value::as_u64)
                    .unwrap_or_default();
                let [verb, resource, received] =
                    ["/verb", "/objectRef/resource", "/requestReceivedTimestamp"].map(|part| said(part).to_owned());
                requests.push(Audited {
                    verb,
                    resource,
                    code,
                    received,
                });
            }
        }
        Ok(requests)
    }

    /// Returns a client for [`ADMIN`].
    pub(crate) async fn client(&self) -> anyhow::Result<Client> {
        client_in(&self.kubeconfig()).await
    }

    /// Returns a client for another administrator.
    pub(crate) async fn client_of(&self, user: &str) -> anyhow::Result<Client> {
        client_in(&self.write_kubeconfig(user, user)?).await
    }

    /// Kills the API server. New connections are refused.
    pub(crate) fn kill_api_server(&mut self) {
        if let Some(mut server) = self.server.take() {
            server.kill();
        }
    }

    /// Kills etcd and the API server, and starts them again.
    pub(crate) async fn restart(&mut self) -> anyhow::Result<()> {
        self.kill_api_server();
        self.etcd.restart()?;
        self.start_api_server().await
    }

    /// Starts the API server with a new certificate from a new authority, and restarts the other components.
    pub(crate) async fn replace_certificate(&mut self) -> anyhow::Result<()> {
        self.kill_api_server();
        fs::remove_dir_all(self.directory.join("certificates")).context("removing the certificates")?;
        self.start_api_server().await?;
        self.beside
            .iter_mut()
            .chain(&mut self.nodes)
            .try_for_each(Process::restart)
    }

    /// Pauses the API server. Connections are accepted but get no response.
    pub(crate) fn pause_api_server(&self) -> anyhow::Result<()> {
        self.server.as_ref().context("it does not run")?.signal(Signal::STOP)
    }

    /// Resumes a paused API server.
    pub(crate) fn resume_api_server(&self) -> anyhow::Result<()> {
        self.server.as_ref().context("it does not run")?.signal(Signal::CONT)
    }

    /// Pauses the simulated nodes of a member: they send no heartbeats.
    pub(crate) fn pause_nodes(&self) -> anyhow::Result<()> {
        self.nodes()?.signal(Signal::STOP)
    }

    /// Resumes paused nodes.
    pub(crate) fn resume_nodes(&self) -> anyhow::Result<()> {
        self.nodes()?.signal(Signal::CONT)
    }

    /// Returns the process that simulates the nodes.
    fn nodes(&self) -> anyhow::Result<&Process> {
        self.nodes.as_ref().context("a hub has no nodes")
    }

    async fn add_nodes(&self, count: usize) -> anyhow::Result<()> {
        let api: Api<k8s_openapi::api::core::v1::Node> = Api::all(self.client().await?);
        let room = json!({"cpu": "64", "memory": "256Gi", "pods": "1000"});
        for number in 0..count {
            let node = json!({
                "apiVersion": "v1",
                "kind": "Node",
                "metadata": {
                    "name": format!("node-{number}"),
                    "annotations": {"kwok.x-k8s.io/node": "fake"},
                    "labels": {"type": "kwok", "kubernetes.io/hostname": format!("node-{number}")},
                },
                "status": {"allocatable": room, "capacity": room},
            });
            api.create(&Default::default(), &serde_json::from_value(node)?).await?;
        }
        Ok(())
    }
}

async fn client_in(kubeconfig: &Path) -> anyhow::Result<Client> {
    let file = Kubeconfig::read_from(kubeconfig)?;
    let config = Config::from_custom_kubeconfig(file, &KubeConfigOptions::default()).await?;
    Ok(Client::try_from(config)?)
}

/// Returns the token file: each user's token equals the name.
fn tokens() -> String {
    let users = CANDIDATES.iter().chain([&ADMIN, &NEIGHBOUR]);
    let lines: Vec<_> = users
        .map(|user| format!("{user},{user},{user},system:masters\n"))
        .collect();
    lines.concat()
}

fn http_get(path: &str) -> anyhow::Result<http::Request<Vec<u8>>> {
    Ok(http::Request::get(path).body(Vec::new())?)
}

/// Returns free ports below the range of ephemeral ports. API servers open hundreds of connections to etcd, and an
/// ephemeral port could take a server's port just before the server listens. A client that keeps retrying a port
/// could also connect to itself.
pub(crate) fn free_ports<const N: usize>() -> anyhow::Result<[u16; N]> {
    const RANGE: std::ops::Range<u16> = 20_000..32_000;
    static TAKEN: AtomicU32 = AtomicU32::new(0);
    // Concurrent test runs start at different offsets.
    let begin = std::process::id().wrapping_mul(97);
    let mut ports = [0; N];
    for port in &mut ports {
        let candidates = RANGE.map(|_| {
            let offset = begin.wrapping_add(TAKEN.fetch_add(1, Ordering::Relaxed)) % RANGE.len() as u32;
            RANGE.start + offset as u16
        });
        let is_free = |port: &u16| TcpListener::bind(("127.0.0.1", *port)).is_ok();
        *port = candidates
            .into_iter()
            .find(is_free)
            .context("there are not enough ports")?;
    }
    Ok(ports)
}
