//! Engines that run plugins, configured by the command line.

use std::sync::Arc;

use anyhow::{Context as _, bail};
use bulkhead_core::pod::Detail;
use bulkhead_core::policy::PolicyId;
use bulkhead_engine_lua::LuaEngine;
use bulkhead_engine_wasm::{CacheOptions, Options, WasmEngine};
use bulkhead_plugin::{Engine, Level, LogSink};
use clap::Args;
use tracing::{debug, warn};

use crate::help;
use crate::user_folder::{self, FolderOrOff};

/// Arguments of the plugin engines.
#[derive(Args, Clone)]
pub struct EngineArguments {
    /// Cache of compiled components: a folder that only its owner may write to, or `off`. The default is bulkhead in
    /// $XDG_CACHE_HOME or in ~/.cache. Affects loading time only.
    #[arg(long, value_name = "DIR|off", help_heading = help::PLUGINS, env = "BULKHEAD_PLUGIN_CACHE",
          hide_env_values = true)]
    plugin_cache: Option<FolderOrOff>,
}

impl EngineArguments {
    /// Starts one engine for each kind of plugin. A cache that was requested and cannot be used is an error; if the
    /// default cache cannot be used, components are compiled each time. `detail` is the pod detail that scripts
    /// receive. Lines that plugins write are lines of the log.
    pub fn start(&self, detail: Detail) -> anyhow::Result<Vec<Arc<dyn Engine>>> {
        self.start_with(detail, Arc::new(log_line))
    }

    /// Starts the engines with another receiver of the lines that plugins write.
    pub fn start_with(&self, detail: Detail, lines: LogSink) -> anyhow::Result<Vec<Arc<dyn Engine>>> {
        let wasm = self.start_wasm(Arc::clone(&lines))?;
        let options = bulkhead_engine_lua::Options {
            pod_detail: detail,
            ..Default::default()
        };
        let lua = LuaEngine::new(options).with_lines(lines);
        Ok(vec![Arc::new(lua), Arc::new(wasm)])
    }

    /// Starts the engine for components only, with the same cache.
    pub fn start_wasm(&self, lines: LogSink) -> anyhow::Result<WasmEngine> {
        let folder = match &self.plugin_cache {
            None => user_folder::default_folder(user_folder::Kind::Cache),
            Some(FolderOrOff::Off) => None,
            Some(FolderOrOff::Folder(folder)) => Some(folder.clone()),
        };
        let options = Options {
            cache: folder.map(CacheOptions::in_folder),
            log: Some(lines),
            ..Options::default()
        };
        let wasm = WasmEngine::new(options).context("starting the Wasm engine")?;
        let problem = wasm.cache_report().and_then(|report| report.problem);
        if let (Some(_), Some(problem)) = (&self.plugin_cache, problem) {
            bail!("--plugin-cache: {problem}");
        }
        Ok(wasm)
    }
}

/// Writes a line of a plugin to the log. Only warnings are shown by default, and the log limits them: a plugin may write
/// 64 lines in each call.
fn log_line(plugin: &PolicyId, level: Level, line: &str) {
    let plugin = plugin.name.as_str();
    match level {
        Level::Warn => warn!(target: "bulkhead::guest", plugin, "{line}"),
        Level::Info | Level::Debug => debug!(target: "bulkhead::guest", plugin, "{line}"),
    }
}
