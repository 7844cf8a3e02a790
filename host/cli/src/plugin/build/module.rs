//! Components from core modules.

use std::path::Path;

use anyhow::Context as _;
use wit_component::{ComponentEncoder, StringEncoding, embed_component_metadata};
use wit_parser::Resolve;

/// World of the contract for an adapter: it may import any input and exports nothing.
const ADAPTER_WORLD: &str = "inputs";

/// Module that implements the imports of another name over the contract.
pub(super) struct Adapter {
    /// Name of the imports.
    pub(super) name: &'static str,
    /// Module as text.
    pub(super) text: &'static str,
}

/// Returns the component of a module whose functions have the names of the canonical ABI. `wit` is the folder of the
/// contract with the world of the component.
pub(super) fn component(mut module: Vec<u8>, wit: &Path, world: &str, adapter: &Adapter) -> anyhow::Result<Vec<u8>> {
    let mut contract = Resolve::default();
    let (package, _) = contract.push_dir(wit).context("reading the plugin contract")?;
    let selected = contract.select_world(&[package], Some(world))?;
    embed_component_metadata(&mut module, &contract, selected, StringEncoding::UTF8)?;
    let adapted = contract.select_world(&[package], Some(ADAPTER_WORLD))?;
    let mut bytes = wat::parse_str(adapter.text).context("reading the adapter")?;
    embed_component_metadata(&mut bytes, &contract, adapted, StringEncoding::UTF8)?;
    ComponentEncoder::default()
        .validate(true)
        .module(&module)
        .and_then(|encoder| encoder.adapter(adapter.name, &bytes))
        .and_then(|mut encoder| encoder.encode())
        .context("turning the module into a component")
}
