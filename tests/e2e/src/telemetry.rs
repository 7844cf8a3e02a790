//! Consumers of the telemetry of a process: an open page of the console, a receiver of traces, and scrapes.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anyhow::{Context as _, ensure};
use clap::{Args, ValueEnum};
use http::{Request, Response};
use http_body_util::{BodyExt as _, Full};
use hyper::body::{Bytes, Incoming};
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use kube::client::Body;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use tokio::net::TcpListener;
use tokio::task::JoinSet;

use crate::federation::{Federation, Plan, http_get};
use crate::site::Site;
use crate::wait;

/// Interval of scrapes.
const SCRAPE: Duration = Duration::from_secs(5);
/// Pause before the stream of the console is opened again, as in a browser.
const AGAIN: Duration = Duration::from_secs(3);

/// Part of the telemetry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Part {
    /// The console, with an open page.
    Console,
    /// Traces, with a receiver.
    Traces,
    /// A log in JSON.
    Log,
    /// Scrapes of the metrics.
    Scrapes,
}

/// Telemetry of a measured process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Telemetry<'a> {
    /// No telemetry beyond that of a process without further arguments.
    Default,
    /// A journal, which the console needs, and these parts.
    Journal(&'a [Part]),
}

/// Arguments of a measurement.
#[derive(Args)]
pub(crate) struct Choice {
    /// Number of pairs of runs, without and with telemetry; prints a table.
    #[arg(long, value_name = "PAIRS")]
    pub(crate) compare: Option<usize>,
    /// Parts of the telemetry. With --compare, the default is all of them; otherwise none, and no journal.
    #[arg(long, value_delimiter = ',')]
    parts: Vec<Part>,
}

impl Choice {
    /// Returns the telemetry of a single run.
    pub(crate) fn single(&self) -> Telemetry<'_> {
        if self.parts.is_empty() {
            return Telemetry::Default;
        }
        Telemetry::Journal(&self.parts)
    }

    /// Returns the telemetry of the second run of each pair.
    pub(crate) fn compared(&self) -> Telemetry<'_> {
        let all = Part::value_variants();
        Telemetry::Journal(if self.parts.is_empty() { all } else { &self.parts })
    }
}

/// Counts of consumed telemetry.
#[derive(Debug, Default)]
struct Counts {
    pages: AtomicU64,
    exports: AtomicU64,
    scrapes: AtomicU64,
}

/// Arguments and variables of a process, and the receiver of its traces.
struct Setup<'p> {
    parts: &'p [Part],
    arguments: Vec<String>,
    /// Environment variables.
    variables: Vec<(String, String)>,
    counts: Arc<Counts>,
    tasks: JoinSet<()>,
}

/// Running consumers. They stop on drop.
pub(crate) struct Consumers {
    parts: Vec<Part>,
    counts: Arc<Counts>,
    _tasks: JoinSet<()>,
}

impl<'p> Telemetry<'p> {
    /// Starts a federation whose first process has this telemetry, and the consumers. `name` is that of its log folder.
    pub(crate) async fn start<'a>(
        self,
        site: &'a Site,
        name: &str,
        settings: &[&str],
    ) -> anyhow::Result<(Federation<'a>, Consumers)> {
        let setup = self.set_up(&site.logs().join(name)).await?;
        let plan = Plan {
            settings,
            first: &setup.arguments(),
            variables: &setup.variables,
            ..Plan::default()
        };
        let federation = Box::pin(Federation::start(site, name, plan)).await?;
        let consumers = setup.consume(&federation).await?;
        Ok((federation, consumers))
    }

    /// Prepares the telemetry of the first process of a federation with a log folder. Starts the receiver.
    async fn set_up(self, logs: &Path) -> anyhow::Result<Setup<'p>> {
        let mut setup = Setup {
            parts: match self {
                Self::Default => &[],
                Self::Journal(parts) => parts,
            },
            arguments: Vec::new(),
            variables: Vec::new(),
            counts: Arc::default(),
            tasks: JoinSet::new(),
        };
        if let Self::Journal(_) = self {
            let journal = format!("--journal={}", logs.join("journal").display());
            setup.arguments.push(journal);
        }
        if setup.parts.contains(&Part::Console) {
            setup.arguments.push("--console-bind-address=127.0.0.1:0".to_owned());
        }
        if setup.parts.contains(&Part::Log) {
            setup.arguments.push("--log-format=json".to_owned());
        }
        if setup.parts.contains(&Part::Traces) {
            let listener = TcpListener::bind(("127.0.0.1", 0)).await;
            let listener = listener.context("listening for traces")?;
            let endpoint = format!("http://{}", listener.local_addr()?);
            let variable = "OTEL_EXPORTER_OTLP_ENDPOINT".to_owned();
            setup.variables.push((variable, endpoint));
            setup.tasks.spawn(receive(listener, Arc::clone(&setup.counts)));
        }
        Ok(setup)
    }
}

impl Setup<'_> {
    /// Returns the arguments.
    fn arguments(&self) -> Vec<&str> {
        self.arguments.iter().map(String::as_str).collect()
    }

    /// Starts the other consumers of the first process.
    async fn consume(self, federation: &Federation<'_>) -> anyhow::Result<Consumers> {
        let Self {
            parts,
            counts,
            mut tasks,
            ..
        } = self;
        if parts.contains(&Part::Console) {
            let mut console = String::new();
            wait::until("the console is served", Duration::from_mins(1), async || {
                console = federation.console(0).map_err(|error| format!("{error:#}"))?;
                Ok(())
            })
            .await?;
            let client = console_client(federation, &console).await?;
            tasks.spawn(follow(client, Arc::clone(&counts)));
        }
        if parts.contains(&Part::Scrapes) {
            tasks.spawn(scrape(federation.address(0)?, Arc::clone(&counts)));
        }
        Ok(Consumers {
            parts: parts.to_vec(),
            counts,
            _tasks: tasks,
        })
    }
}

impl Consumers {
    /// Prints the counts. Returns an error if a part of the telemetry was not consumed.
    pub(crate) fn check(&self) -> anyhow::Result<()> {
        let Counts {
            pages,
            exports,
            scrapes,
        } = &*self.counts;
        for part in &self.parts {
            let (count, name) = match part {
                Part::Console => (pages, "pages of the console"),
                Part::Traces => (exports, "exports of traces"),
                Part::Log => continue,
                Part::Scrapes => (scrapes, "scrapes"),
            };
            let count = count.load(Ordering::Relaxed);
            println!("{count} {name}");
            ensure!(count > 0, "no {name}");
        }
        Ok(())
    }
}

/// Accepts every export of traces.
async fn receive(listener: TcpListener, counts: Arc<Counts>) {
    let mut connections = JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        let counts = Arc::clone(&counts);
        let service = service_fn(move |request: Request<Incoming>| {
            let counts = Arc::clone(&counts);
            async move {
                // The sender of a request that is cut off sends it again.
                let _ = request.into_body().collect().await;
                counts.exports.fetch_add(1, Ordering::Relaxed);
                Ok::<_, Infallible>(Response::new(Full::<Bytes>::default()))
            }
        });
        let connection = hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service);
        connections.spawn(async move { drop(connection.await) });
        while connections.try_join_next().is_some() {}
    }
}

/// Creates a client for the console, with the token of the hub's administrator. The certificate of the console comes
/// from an authority of its own.
async fn console_client(federation: &Federation<'_>, address: &str) -> anyhow::Result<Client> {
    let address: SocketAddr = address.parse().context("reading the address of the console")?;
    let administrator = Kubeconfig::read_from(federation.hub.kubeconfig())?;
    let mut config = Config::from_custom_kubeconfig(administrator, &KubeConfigOptions::default()).await?;
    config.cluster_url = format!("https://{address}").parse()?;
    config.accept_invalid_certs = true;
    Ok(Client::try_from(config)?)
}

/// Keeps a page open: reads it again after each change that the stream reports.
async fn follow(client: Client, counts: Arc<Counts>) {
    let mut shown = String::new();
    loop {
        // An error of one stream or page is repeated, as in a browser; the counts show a console that never answers.
        let _ = follow_stream(&client, &mut shown, &counts).await;
        tokio::time::sleep(AGAIN).await;
    }
}

async fn follow_stream(client: &Client, shown: &mut String, counts: &Counts) -> anyhow::Result<()> {
    let request = Request::get("/live").body(Body::empty())?;
    let mut stream = client.send(request).await?.into_body();
    while let Some(frame) = stream.frame().await {
        let Ok(data) = frame?.into_data() else { continue };
        let text = String::from_utf8_lossy(&data);
        let Some(version) = text.lines().find_map(|line| line.strip_prefix("data: ")) else {
            continue;
        };
        if *shown != version {
            client.request_text(Request::get("/").body(Vec::new())?).await?;
            version.clone_into(shown);
            counts.pages.fetch_add(1, Ordering::Relaxed);
        }
    }
    Ok(())
}

/// Reads the metrics again and again.
async fn scrape(address: String, counts: Arc<Counts>) {
    loop {
        if http_get(&address, "/metrics").await.is_ok() {
            counts.scrapes.fetch_add(1, Ordering::Relaxed);
        }
        tokio::time::sleep(SCRAPE).await;
    }
}
