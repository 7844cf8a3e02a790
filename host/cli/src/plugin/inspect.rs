//! `bulkhead plugin inspect`.

use std::fmt::Write as _;

use bulkhead_core::policy::Capability;
use clap::Args;
use serde_json::{Value, json};

use super::target::{Which, bounded};
use crate::output::Format;

/// Show a plugin's identity, capabilities, imports, digest and resource usage.
#[derive(Args)]
#[command(after_help = "\
Examples:
  bulkhead plugin inspect
  bulkhead plugin inspect hold.lua -o json")]
pub(crate) struct Arguments {
    /// Output format.
    #[arg(short, long, value_enum, default_value_t = Format::Text)]
    output: Format,

    #[command(flatten)]
    which: Which,
}

pub(super) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let target = arguments.which.target()?;
    let loaded = target.load()?;
    let policy = bounded(&loaded);
    let smoke = bulkhead_conformance::smoke(&*policy);
    let usage = policy.usage();
    let about = &loaded.description;
    let answers: Vec<_> = policy.capabilities().iter().map(describe).collect();
    let data = json!({
        "name": policy.id().name,
        "declaredName": about.name,
        "version": about.version,
        "description": about.summary,
        "engine": policy.id().engine,
        "contract": about.contract,
        "answers": answers,
        "imports": about.imports,
        "taintKeys": about.taint_keys,
        "reusable": about.reusable,
        "remarks": about.remarks,
        "configSchema": about.config_schema,
        "sha256": about.digest.to_string(),
        "codeBytes": about.code_bytes,
        "smokeTest": smoke.as_ref().map_or_else(Clone::clone, |()| "passed".to_owned()),
        "memoryBytesMax": usage.memory_bytes_max,
    });
    arguments.output.print(|| text(&data), &data)
}

fn text(data: &Value) -> String {
    let mut text = String::new();
    for (name, value) in data
        .as_object()
        .into_iter()
        .flatten()
        .filter(|(_, value)| !is_empty(value))
    {
        let _ = writeln!(text, "{name:<15} {}", plain(value));
    }
    text
}

/// Formats a capability as `kind`, or `kind of apiVersion Kind`.
fn describe(capability: &Capability) -> String {
    match &capability.object_kind {
        None => capability.kind.to_string(),
        Some((api_version, kind)) => format!("{} of {api_version} {kind}", capability.kind),
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        _ => false,
    }
}

fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(items) => items.iter().map(plain).collect::<Vec<_>>().join(", "),
        other => other.to_string(),
    }
}
