//! Control plane and simulated members, served over HTTP on loopback.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context as _, anyhow};
use bulkhead_api::definition::definitions;
use bulkhead_apiserver::{ApiBody, ApiServer, ApiService, Clock, ConnectionError, Fidelity, ObjectKey, Options, kinds};
use bulkhead_controllers::flags::Flags;
use bulkhead_defaults::admission::InProcess;
use bulkhead_emulator::{Capacity, MemberCluster, MemberOptions};
use http::{Request, Response};
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use k8s_openapi::ByteString;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tower::ServiceExt as _;

/// Initial namespaces of the control plane.
const NAMESPACES: [&str; 4] = ["default", "kube-system", "karmada-system", "karmada-cluster"];
/// Namespace of the Secrets with members' credentials.
const CREDENTIALS: &str = "karmada-cluster";
/// Token of every client. The servers do not check it.
const TOKEN: &str = "measured";
/// Path prefix of the members.
const MEMBERS: &str = "/members/";
/// Room for all workloads on a single member.
const NODES: u32 = 10;
const PODS: u64 = 4_000;

/// Synchronization mode of a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SyncMode {
    /// The control plane's process connects to the member.
    Push,
    /// An agent connects to both.
    Pull,
}

/// Receiver of each request to a member: the name of the member, and the path.
pub(crate) type OnRequest = Box<dyn Fn(&str, &str) + Send + Sync>;

/// Running servers. Dropping it stops them.
pub(crate) struct Federation {
    /// Control plane.
    pub(crate) hub: ApiServer,
    url: String,
    _tasks: JoinSet<()>,
}

struct Served {
    hub: ApiService,
    members: BTreeMap<String, ApiService>,
    on_request: OnRequest,
}

/// Returns a clock that starts at the current time.
#[expect(
    clippy::disallowed_methods,
    reason = "the servers' clock has to agree with that of the program"
)]
pub(crate) fn clock() -> Clock {
    Clock::new(k8s_openapi::jiff::Timestamp::now())
}

impl Federation {
    /// Starts the servers and registers the members.
    pub(crate) async fn start(
        clock: &Clock,
        members: &[(&str, SyncMode)],
        on_request: OnRequest,
    ) -> anyhow::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")
            .await
            .context("listening on loopback")?;
        let url = format!("http://{}", listener.local_addr()?);
        let hub = hub(clock)?;
        let (mut tasks, mut services) = (JoinSet::new(), BTreeMap::new());
        for (seed, (name, mode)) in (2_u64..).zip(members) {
            let capacity = Capacity {
                cpu: "640".to_owned(),
                memory: "4Ti".to_owned(),
                pods: PODS,
            };
            let options = MemberOptions {
                nodes: NODES,
                capacity,
                ..MemberOptions::new(name, seed, clock.clone())
            };
            let member = MemberCluster::new(options);
            tasks.spawn(member.run());
            register(&hub, &member, *mode, &format!("{url}{MEMBERS}{name}"))?;
            services.insert((*name).to_owned(), member.server().service());
        }
        let served = Served {
            hub: hub.service(),
            members: services,
            on_request,
        };
        tasks.spawn(serve(listener, Arc::new(served)));
        Ok(Self {
            hub,
            url,
            _tasks: tasks,
        })
    }

    /// Writes a kubeconfig of the control plane, or of a member.
    pub(crate) fn write_kubeconfig(&self, path: &Path, member: Option<&str>) -> anyhow::Result<()> {
        let server = member.map_or_else(|| self.url.clone(), |name| format!("{}{MEMBERS}{name}", self.url));
        let kubeconfig = json!({
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "measured",
            "clusters": [{"name": "measured", "cluster": {"server": server}}],
            "contexts": [{"name": "measured", "context": {"cluster": "measured", "user": "measured"}}],
            "users": [{"name": "measured", "user": {"token": TOKEN}}],
        });
        std::fs::write(path, kubeconfig.to_string()).with_context(|| format!("writing {}", path.display()))
    }
}

/// Creates an object on a server; `namespace` is empty for cluster scope.
pub(crate) fn create(server: &ApiServer, namespace: &str, object: Value) -> anyhow::Result<()> {
    let (api_version, kind) = (text(&object, "apiVersion"), text(&object, "kind"));
    let id = server
        .kind_id(&api_version, &kind)
        .ok_or_else(|| anyhow!("{api_version} {kind} is not served"))?;
    let name = text(&object["metadata"], "name");
    server
        .store()
        .create(id, namespace, object)
        .map(drop)
        .with_context(|| format!("creating {kind} {name}"))
}

fn text(object: &Value, field: &str) -> String {
    object[field].as_str().unwrap_or_default().to_owned()
}

/// Creates the control plane with its namespaces and definitions, as `run --embedded` does.
fn hub(clock: &Clock) -> anyhow::Result<ApiServer> {
    let flags = Flags {
        allow_no_execute_taint_policy: true,
        ..Flags::default()
    };
    let hub = ApiServer::new(Options {
        kinds: kinds::kubernetes().into_iter().chain([kinds::definitions()]).collect(),
        admission: Some(Arc::new(InProcess(flags.admission()))),
        fidelity: Fidelity::People,
        ..Options::new("control plane", 1, clock.clone())
    });
    for name in NAMESPACES {
        create(
            &hub,
            "",
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}),
        )?;
    }
    for definition in definitions() {
        create(&hub, "", serde_json::to_value(&definition)?)?;
    }
    Ok(hub)
}

/// Registers a member, as `bulkhead join` does.
fn register(hub: &ApiServer, member: &MemberCluster, mode: SyncMode, url: &str) -> anyhow::Result<()> {
    let name = member.name();
    let namespaces = member
        .server()
        .kind_id("v1", "Namespace")
        .context("the member has no namespaces")?;
    let system = member
        .server()
        .store()
        .get(&ObjectKey::new(namespaces, "", "kube-system"));
    let id = system.map(|system| system.uid().to_owned()).unwrap_or_default();
    let spec = match mode {
        SyncMode::Pull => json!({"id": id, "syncMode": "Pull"}),
        SyncMode::Push => {
            let secret = json!({
                "apiVersion": "v1",
                "kind": "Secret",
                "metadata": {"name": name, "namespace": CREDENTIALS},
                "data": {"token": ByteString(TOKEN.as_bytes().to_vec())},
            });
            create(hub, CREDENTIALS, secret)?;
            json!({
                "id": id,
                "syncMode": "Push",
                "apiEndpoint": url,
                "insecureSkipTLSVerification": true,
                "secretRef": {"namespace": CREDENTIALS, "name": name},
            })
        }
    };
    let cluster = json!({
        "apiVersion": "cluster.karmada.io/v1alpha1",
        "kind": "Cluster",
        "metadata": {"name": name},
        "spec": spec,
    });
    create(hub, "", cluster)
}

/// Accepts connections until the future is dropped, which closes them.
async fn serve(listener: TcpListener, served: Arc<Served>) {
    let mut connections = JoinSet::new();
    loop {
        while connections.try_join_next().is_some() {}
        let Ok((stream, _)) = listener.accept().await else {
            continue;
        };
        // Watch events are small and must not be delayed.
        let _ = stream.set_nodelay(true);
        let served = Arc::clone(&served);
        connections.spawn(async move {
            let answer = service_fn(|request| answer(Arc::clone(&served), request));
            // A client that disconnects is none of the server's errors.
            let _ = http1::Builder::new()
                .serve_connection(TokioIo::new(stream), answer)
                .await;
        });
    }
}

async fn answer(served: Arc<Served>, request: Request<Incoming>) -> Result<Response<ApiBody>, ConnectionError> {
    let reset = || ConnectionError::Reset {
        server: "the measuring process".to_owned(),
    };
    let (mut head, body) = request.into_parts();
    let service = match head.uri.path().strip_prefix(MEMBERS) {
        None => served.hub.clone(),
        Some(rest) => {
            let (name, path) = rest.split_once('/').unwrap_or((rest, ""));
            let member = served.members.get(name).ok_or_else(reset)?.clone();
            let path = format!("/{path}");
            (served.on_request)(name, &path);
            let query = head.uri.query().map(|query| format!("?{query}")).unwrap_or_default();
            head.uri = format!("{path}{query}").parse().map_err(|_| reset())?;
            member
        }
    };
    let body = body.collect().await.map_err(|_| reset())?.to_bytes();
    service
        .oneshot(Request::from_parts(head, kube::client::Body::from(body)))
        .await
}
