//! Engines that run plugins, configured by the command line.

use std::convert::Infallible;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;

use anyhow::{Context as _, bail};
use bulkhead_core::pod::Detail;
use bulkhead_engine_lua::LuaEngine;
use bulkhead_engine_wasm::{CacheOptions, Options, WasmEngine};
use bulkhead_plugin::Engine;
use clap::Args;

use crate::help;

/// Arguments of the plugin engines.
#[derive(Args, Clone)]
pub(crate) struct EngineArguments {
    /// Cache of compiled components: a folder that only its owner may write to, or `off`. The default is bulkhead in
    /// $XDG_CACHE_HOME or in ~/.cache. Affects loading time only.
    #[arg(long, value_name = "DIR|off", help_heading = help::PLUGINS, env = "BULKHEAD_PLUGIN_CACHE",
          hide_env_values = true)]
    plugin_cache: Option<PluginCache>,
}

/// Value of `--plugin-cache`.
#[derive(Clone, Debug, PartialEq, Eq)]
enum PluginCache {
    Off,
    Folder(PathBuf),
}

impl FromStr for PluginCache {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Infallible> {
        Ok(if text == "off" { Self::Off } else { Self::Folder(PathBuf::from(text)) })
    }
}

impl EngineArguments {
    /// Starts one engine for each kind of plugin. A cache that was requested and cannot be used is an error; if the
    /// default cache cannot be used, components are compiled each time. `detail` is the pod detail that scripts
    /// receive.
    pub(crate) fn start(&self, detail: Detail) -> anyhow::Result<Vec<Arc<dyn Engine>>> {
        let wasm = self.start_wasm()?;
        let lua = LuaEngine::new(bulkhead_engine_lua::Options { pod_detail: detail, ..Default::default() });
        Ok(vec![Arc::new(lua), Arc::new(wasm)])
    }

    /// Starts the engine for components only, with the same cache.
    pub(crate) fn start_wasm(&self) -> anyhow::Result<WasmEngine> {
        let folder = match &self.plugin_cache {
            None => default_folder(|name| std::env::var_os(name)),
            Some(PluginCache::Off) => None,
            Some(PluginCache::Folder(folder)) => Some(folder.clone()),
        };
        let options = Options { cache: folder.map(CacheOptions::in_folder), ..Options::default() };
        let wasm = WasmEngine::new(options).context("starting the Wasm engine")?;
        let problem = wasm.cache_report().and_then(|report| report.problem);
        if let (Some(_), Some(problem)) = (&self.plugin_cache, problem) {
            bail!("--plugin-cache: {problem}");
        }
        Ok(wasm)
    }
}

/// Returns Bulkhead's folder in the user's cache directory (XDG Base Directory Specification; relative paths are
/// ignored).
fn default_folder(variable: impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    let absolute = |name| variable(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let caches = absolute("XDG_CACHE_HOME").or_else(|| absolute("HOME").map(|home| home.join(".cache")))?;
    Some(caches.join(Path::new("bulkhead")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cache_is_where_a_user_keeps_caches() {
        let check = |variables: &[(&str, &str)], expected: Option<&str>| {
            let variable =
                |name: &str| variables.iter().find(|(known, _)| *known == name).map(|(_, value)| value.into());
            assert_eq!(default_folder(variable).as_deref(), expected.map(Path::new), "{variables:?}");
        };
        check(&[("HOME", "/home/me")], Some("/home/me/.cache/bulkhead"));
        check(&[("HOME", "/home/me"), ("XDG_CACHE_HOME", "/var/caches")], Some("/var/caches/bulkhead"));
        check(&[("HOME", "/home/me"), ("XDG_CACHE_HOME", "")], Some("/home/me/.cache/bulkhead"));
        check(&[("HOME", "/home/me"), ("XDG_CACHE_HOME", "caches")], Some("/home/me/.cache/bulkhead"));
        check(&[("XDG_CACHE_HOME", "/var/caches")], Some("/var/caches/bulkhead"));
        check(&[("HOME", "")], None);
        check(&[], None);
    }
}
