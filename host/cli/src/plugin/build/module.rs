//! Components from core modules.

use std::path::Path;

use anyhow::Context as _;
use wit_component::{ComponentEncoder, StringEncoding, embed_component_metadata};
use wit_parser::Resolve;

/// World of the contract for an adapter: it may import any input and exports nothing.
const ADAPTER_WORLD: &str = "inputs";

/// Name of the imports that toolchains require.
const WASI: &str = "wasi_snapshot_preview1";
/// Module that implements these imports over the contract.
const ADAPTER: &str = include_str!("wasi.wat");

/// Returns the component of a module whose functions have the names of the canonical ABI. `wit` is the folder of the
/// contract with the world of the component.
pub(super) fn component(mut module: Vec<u8>, wit: &Path, world: &str) -> anyhow::Result<Vec<u8>> {
    let mut contract = Resolve::default();
    let (package, _) = contract.push_dir(wit).context("reading the plugin contract")?;
    let selected = contract.select_world(&[package], Some(world))?;
    embed_component_metadata(&mut module, &contract, selected, StringEncoding::UTF8, false)?;
    let adapted = contract.select_world(&[package], Some(ADAPTER_WORLD))?;
    let mut bytes = wat::parse_str(ADAPTER).context("reading the adapter")?;
    embed_component_metadata(&mut bytes, &contract, adapted, StringEncoding::UTF8, false)?;
    ComponentEncoder::default()
        .validate(true)
        .module(&module)
        .and_then(|encoder| encoder.adapter(WASI, &bytes))
        .and_then(|encoder| encoder.encode())
        .context("turning the module into a component")
}
