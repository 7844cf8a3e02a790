//! `bulkhead plugin object`.

use std::io::Write as _;

use anyhow::bail;
use bulkhead_api::{Plugin, PluginSpec};
use bulkhead_plugin::{LoadError, LoadStage};
use clap::Args;

use super::target::{Which, bounded};

/// Maximum size of the object in bytes: the default limit of etcd, which covers the whole object.
const BYTES_MAX: usize = 1_500_000;

/// Print a plugin as an object of kind Plugin that contains its code, for `kubectl apply --server-side -f -`.
///
/// The plugin has to load and pass the smoke test, as on the control plane.
#[derive(Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    which: Which,

    /// Name of the object, which becomes the name of the plugin; defaults to the plugin's own name.
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
}

pub(super) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let spec = arguments.which.spec()?;
    let target = arguments.which.target()?;
    let loaded = target.load()?;
    let name = arguments.name.as_deref().unwrap_or(&target.source.name);
    bulkhead_conformance::smoke(&*bounded(&loaded))
        .map_err(|message| LoadError::new(&target.source, LoadStage::SmokeTested, message))?;
    let mut object = serde_json::to_value(Plugin::new(name, PluginSpec(spec)))?;
    // The controllers write the status.
    object.as_object_mut().map(|object| object.remove("status"));
    let text = serde_saphyr::to_string(&object)?;
    if text.len() > BYTES_MAX {
        bail!(
            "{name}: the object would have {} bytes, and control planes accept {BYTES_MAX}; put the plugin into the \
             directory of --plugin-directory",
            text.len()
        );
    }
    write!(anstream::stdout().lock(), "{text}")?;
    Ok(())
}
