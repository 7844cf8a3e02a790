//! `bulkhead top`: live view of clusters and evictions.

mod gather;
mod policies;
mod show;

use std::io::{IsTerminal, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use bulkhead_controllers::flags::GoDuration;
use bulkhead_runtime::connection::WritePermit;
use bulkhead_server::engines::EngineArguments;
use bulkhead_server::help;
use bulkhead_server::images::ImageArguments;
use bulkhead_server::queries::client::LeaderArguments;
use bulkhead_server::settings::Settings;
use bulkhead_server::{hub, now};
use clap::Args;

use self::gather::Source;
use self::policies::Policies;
use crate::block_on::block_on;
use crate::output::Format;

/// Escape sequence that clears the terminal and moves the cursor to the top left.
const CLEAR: &str = "\x1b[2J\x1b[3J\x1b[H";

/// Show clusters, evictions in progress and their blocking reasons, updated continuously.
///
/// Lists queued evictions too if the leader answers queries (`bulkhead run --query-bind-address`).
///
/// Calls the plugins of Plugin objects and of --plugin-directory, as `bulkhead run` does; pass the same directory
/// and settings to both. Reads from any control plane, without writing: Karmada's, one with Bulkhead's CRDs, or an
/// embedded one.
#[derive(Args)]
#[command(after_help = "\
Examples:
  bulkhead top --kubeconfig bulkhead.kubeconfig
  bulkhead top --once -o json")]
pub(crate) struct Arguments {
    /// Refresh interval.
    #[arg(long, value_name = "DURATION", default_value = "2s")]
    interval: GoDuration,

    /// Print the state once and exit.
    #[arg(long)]
    once: bool,

    /// Output format. Each update is one line of JSON or one document of YAML.
    #[arg(short, long, value_enum, default_value_t = Format::Text)]
    output: Format,

    /// Metrics endpoint of `bulkhead run`, for the length of the eviction queue; `bulkhead run` prints it at
    /// startup.
    #[arg(long, value_name = "URL")]
    metrics: Option<String>,

    #[command(flatten)]
    leader: LeaderArguments,

    /// Directory of the leader's plugins: a plugins.yaml, or components (.wasm) and scripts (.lua).
    #[arg(long, value_name = "PATH", help_heading = help::PLUGINS, env = help::PLUGINS_VARIABLE,
          hide_env_values = true)]
    plugin_directory: Option<PathBuf>,

    #[command(flatten)]
    engines: EngineArguments,

    #[command(flatten)]
    images: ImageArguments,

    #[command(flatten)]
    settings: Settings,
}

/// Runs the command.
pub(crate) fn run(arguments: &Arguments) -> ExitCode {
    crate::exit::code(block_on(watch(arguments)).map(|()| true))
}

async fn watch(arguments: &Arguments) -> anyhow::Result<()> {
    // The permit rejects every write.
    let limit = arguments.leader.limit();
    let hub = hub::Hub::connect_within(arguments.leader.hub(), &WritePermit::report_only(), limit).await?;
    let flags = arguments.settings.flags()?;
    let engines = arguments.engines.start(flags.pod_detail())?;
    let sources = arguments.images.sources(arguments.plugin_directory.as_deref())?;
    let policies = Policies::load(&flags, engines, sources)?;
    let source = Source::new(hub.reader(limit), arguments.metrics.as_deref(), policies)?;
    let source = source.asking(arguments.leader.clone());
    let clears = std::io::stdout().is_terminal() && !arguments.once && arguments.output == Format::Text;
    loop {
        let looked = source.look(now()).await;
        let text = match (looked, arguments.output) {
            // Errors do not end the command: the operator wants to keep watching during an outage.
            (Err(error), Format::Text) if !arguments.once => format!("{}\n\nerror: {error:#}\n", hub.address),
            (Err(error), _) if !arguments.once => {
                let error = error.context(hub.address.clone());
                let _ = writeln!(anstream::stderr(), "error: {}", crate::exit::error_text(&error));
                String::new()
            }
            (Err(error), _) => return Err(error.context(hub.address)),
            (Ok(view), Format::Json) => format!("{}\n", serde_json::to_string(&view)?),
            (Ok(view), Format::Yaml) => format!("---\n{}", Format::Yaml.render(String::new, &view)?),
            (Ok(view), Format::Text) => show::text(&view, &hub.address),
        };
        let mut out = std::io::stdout().lock();
        let written = if clears {
            write!(out, "{CLEAR}{text}")
        } else {
            write!(out, "{text}")
        };
        // The output was closed.
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
