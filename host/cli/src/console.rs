//! `bulkhead console`, and the pages of the console of `bulkhead run`.

mod leader;
mod rehearsal;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Context as _;
use bulkhead_console::Console;
use bulkhead_console::source::{Journals, Process};
use bulkhead_core::time::Time;
use bulkhead_server::console::{Pages, Sources, serve_local};
use bulkhead_server::engines::EngineArguments;
use bulkhead_server::help;
use bulkhead_server::queries::client::LeaderArguments;
use bulkhead_server::settings::Settings;
use bytes::Bytes;
use clap::Args;
use http::Response;
use http::request::Parts;
use tokio::runtime::Handle;

use self::leader::Leader;
use self::rehearsal::Objects;
use crate::block_on::block_on;
use crate::output;

/// Serve the web console over recorded decisions, on this machine.
///
/// Shows the federation with clusters, taints and evictions, the timeline of the decisions, each binding with its
/// decisions, gates and inputs, the plugins with their answers, and the loss of clusters as `bulkhead what-if`
/// rehearses it. Follows new decisions. Serves plain HTTP without authentication, at a loopback address only, until it
/// is interrupted. Exit code: 2 if there is no journal, if the leader does not answer, or if the address cannot be used.
#[derive(Args)]
#[command(after_help = "\
Examples:
  bulkhead console --journal journal --export export
  bulkhead console --kubeconfig karmada.kubeconfig --bind-address 127.0.0.1:8080")]
pub(crate) struct ConsoleArguments {
    /// Directory of a journal that `bulkhead run` or `bulkhead simulate` writes, or of the journals of several
    /// processes, each in a directory of its own. Repeat it for more; all are read as one. Without it, the leader is
    /// asked.
    #[arg(long, value_name = "DIR", env = help::JOURNAL_VARIABLE, hide_env_values = true)]
    journal: Vec<PathBuf>,

    /// Loopback address of the console; port 0 selects a free one.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:10372")]
    bind_address: SocketAddr,

    /// Directory of exported objects for rehearsals, as `bulkhead what-if` reads it. Without it, they begin with the
    /// objects of the control plane, if one is named or asked.
    #[arg(long, value_name = "DIR")]
    export: Option<PathBuf>,

    #[command(flatten)]
    leader: LeaderArguments,

    #[command(flatten)]
    engines: EngineArguments,

    #[command(flatten)]
    settings: Settings,
}

/// Runs the command.
pub(crate) fn run(arguments: ConsoleArguments) -> ExitCode {
    crate::exit::code(block_on(serve(arguments)).map(|()| true))
}

async fn serve(arguments: ConsoleArguments) -> anyhow::Result<()> {
    let (address, asks) = (arguments.bind_address, arguments.journal.is_empty());
    let console = Arc::new(Served(console(arguments)));
    let running = serve_local(address, Arc::<Served>::clone(&console))
        .await
        .context("--bind-address")?;
    let read = tokio::task::spawn_blocking(move || console.0.read()).await?;
    if asks {
        read.context("asking the leader for its decisions; --journal DIR reads a journal instead")?;
    } else {
        read?;
    }
    output::print(&format!("console at http://{}/\n", running.address))?;
    tokio::signal::ctrl_c().await.context("waiting for an interrupt")
}

/// Returns the console of the arguments.
fn console(arguments: ConsoleArguments) -> Console {
    let ConsoleArguments {
        journal,
        export,
        leader,
        engines,
        settings,
        ..
    } = arguments;
    let (hub, asks) = (leader.hub().clone(), journal.is_empty());
    let has_objects = asks || export.is_some() || leader.names_control_plane();
    let console = if asks {
        Console::new(Leader::new(leader, Handle::current()), now)
    } else {
        Console::new(Journals::new(journal), now)
    };
    if !has_objects {
        return console;
    }
    console.with_rehearsal(Objects {
        export,
        hub,
        engines,
        settings,
    })
}

/// Makes the pages of the console of `bulkhead run`.
pub(crate) fn pages(sources: Sources) -> Arc<dyn Pages> {
    let process = Process {
        queued: sources.queued,
        registry: sources.registry,
    };
    let journals = Journals::new(vec![sources.journal]).with_process(process);
    Arc::new(Served(Console::new(journals, now)))
}

fn now() -> Time {
    Time::new(bulkhead_server::now())
}

/// Console as the server serves it.
struct Served(Console);

impl Pages for Served {
    fn answer(&self, head: &Parts) -> Response<Bytes> {
        self.0.answer(head)
    }

    fn version(&self) -> u64 {
        self.0.version()
    }
}
