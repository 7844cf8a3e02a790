//! `bulkhead plugin object`.

use anyhow::bail;
use bulkhead_api::{Plugin, PluginSpec};
use bulkhead_core::label;
use clap::Args;

use super::target::Which;
use crate::output::Format;

/// Maximum size of the object in bytes: the default limit of etcd, which covers the whole object.
const BYTES_MAX: usize = 1_500_000;

/// Maximum length of the name of an object, in bytes.
const NAME_BYTES_MAX: usize = 253;
/// Maximum length of a part of the name between dots, in bytes.
const LABEL_BYTES_MAX: usize = 63;

/// Print a plugin as an object of kind Plugin that contains its code, for `kubectl apply --server-side -f -`.
///
/// The plugin has to load and pass the smoke test, as on the control plane.
#[derive(Args)]
#[command(after_help = "\
Examples:
  bulkhead plugin object hold | kubectl apply --server-side -f -
  bulkhead plugin object hold.lua --name freeze --config @freeze.yaml")]
pub(crate) struct Arguments {
    /// Name of the object, which becomes the name of the plugin; defaults to the plugin's own name.
    #[arg(long, value_name = "NAME")]
    name: Option<String>,

    /// Output format. Text is the name, the size of the object and the digest of the code.
    #[arg(short, long, value_enum, default_value_t = Format::Yaml)]
    output: Format,

    #[command(flatten)]
    which: Which,
}

pub(super) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let spec = arguments.which.spec()?;
    let target = arguments.which.target()?;
    let name = arguments.name.as_deref().unwrap_or(&target.source.name);
    check_name(name)?;
    let (loaded, _) = target.checked()?;
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
    let digest = &loaded.description.digest;
    arguments.output.print(
        || format!("plugin {name}: {} bytes, sha256 {digest}\n", text.len()),
        &object,
    )
}

/// Checks that control planes accept the name of the object.
fn check_name(name: &str) -> anyhow::Result<()> {
    let is_valid = name.len() <= NAME_BYTES_MAX
        && name
            .split('.')
            .all(|part| label::check_dns_label(part, LABEL_BYTES_MAX).is_ok());
    if !is_valid {
        bail!(
            "{name:?} cannot be the name of an object: use --name with lower-case letters, digits, '-' and '.', at most \
             {NAME_BYTES_MAX} bytes, such as hold-evictions"
        );
    }
    Ok(())
}
