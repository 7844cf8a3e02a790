//! `bulkhead top`: clusters, evictions and what they wait for, live.

mod gather;
mod policies;
mod show;

use std::io::{IsTerminal, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context as _;
use bulkhead_controllers::WritePermit;
use bulkhead_controllers::flags::GoDuration;
use clap::{Args, ValueEnum};

use self::gather::Source;
use self::policies::Policies;
use crate::engines::EngineArguments;
use crate::run::settings::Settings;
use crate::run::{hub, now};

/// Clears a terminal and goes to its first cell.
const CLEAR: &str = "\x1b[2J\x1b[3J\x1b[H";

/// Show clusters, evictions under way and what they wait for, again and again.
///
/// It asks the plugins that are objects, and those of --plugin-directory, as `bulkhead run` does; give both the same
/// directory and settings. It reads only, from any control plane: Karmada's, one with Bulkhead's definitions, or an embedded one.
#[derive(Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    hub: hub::HubArguments,

    /// Where `bulkhead run` serves its metrics, for the queue of evictions: the address that it says when it starts.
    #[arg(long, value_name = "URL")]
    metrics: Option<String>,

    /// Plugins of the process that leads: a directory of manifests, or a list (plugins.yaml).
    #[arg(long, value_name = "PATH")]
    plugin_directory: Option<PathBuf>,

    /// How often to look.
    #[arg(long, value_name = "DURATION", default_value = "2s")]
    interval: GoDuration,

    /// Look once and end.
    #[arg(long)]
    once: bool,

    /// How to print it; as JSON, each look is one document.
    #[arg(short, long, value_enum, default_value_t = Output::Text)]
    output: Output,

    #[command(flatten)]
    engines: EngineArguments,

    #[command(flatten)]
    settings: Settings,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Output {
    /// Tables for people.
    Text,
    /// The same as data.
    Json,
}

/// Runs the command.
pub(crate) fn run(arguments: &Arguments) -> ExitCode {
    let outcome = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("starting the runtime")
        .and_then(|runtime| runtime.block_on(watch(arguments)));
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(anstream::stderr(), "error: {}", crate::exit::told(&error));
            ExitCode::FAILURE
        }
    }
}

async fn watch(arguments: &Arguments) -> anyhow::Result<()> {
    // Nothing is ever written.
    let hub = hub::Hub::connect(&arguments.hub, &WritePermit::report_only()).await?;
    let flags = arguments.settings.flags()?;
    let engines = arguments.engines.start(flags.pod_detail())?;
    let policies = Policies::load(&flags, engines, arguments.plugin_directory.as_ref())?;
    let source = Source::new(hub.reader(), arguments.metrics.as_deref(), policies)?;
    let clears = std::io::stdout().is_terminal() && !arguments.once && arguments.output == Output::Text;
    loop {
        let looked = source.look(now()).await;
        let text = match (looked, arguments.output) {
            // Somebody who watches an outage wants to go on watching.
            (Err(error), Output::Text) if !arguments.once => format!("{}\n\nerror: {error:#}\n", hub.address),
            (Err(error), _) if !arguments.once => {
                let _ = writeln!(anstream::stderr(), "error: {}", crate::exit::told(&error));
                String::new()
            }
            (Err(error), _) => return Err(error),
            (Ok(view), Output::Json) => format!("{}\n", serde_json::to_string(&view)?),
            (Ok(view), Output::Text) => show::text(&view, &hub.address),
        };
        let mut out = std::io::stdout().lock();
        let written = if clears { write!(out, "{CLEAR}{text}") } else { write!(out, "{text}") };
        // Whoever read this went away.
        if written.and_then(|()| out.flush()).is_err() || arguments.once {
            return Ok(());
        }
        drop(out);
        tokio::select! {
            _ = tokio::signal::ctrl_c() => return Ok(()),
            () = tokio::time::sleep(arguments.interval.0) => {}
        }
    }
}
