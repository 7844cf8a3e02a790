//! `bulkhead crds`.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::process::ExitCode;

use clap::Args;
use serde::Serialize;
use serde_json::{Value, json};

use crate::output::{self, Format};

/// Print the definitions (CRDs) of the kinds that Bulkhead serves and uses, for `kubectl apply --server-side -f -`.
///
/// All kinds but those of `bulkhead.dev` are Karmada's. If Karmada is installed, only `--group bulkhead.dev` is
/// missing.
#[derive(Args)]
#[command(after_help = "\
Examples:
  bulkhead crds | kubectl apply --server-side -f -
  bulkhead crds --group bulkhead.dev
  bulkhead crds -o text")]
pub(crate) struct Arguments {
    /// Print only the kinds of this API group.
    #[arg(long)]
    group: Option<String>,

    /// Output format. YAML is one document for each kind, JSON a List, and text the names of the kinds.
    #[arg(short, long, value_enum, default_value_t = Format::Yaml)]
    output: Format,
}

/// Runs the command.
pub(crate) fn run(arguments: &Arguments) -> ExitCode {
    crate::exit::code(print(arguments.group.as_deref(), arguments.output).map(|()| true))
}

fn print(group: Option<&str>, output: Format) -> anyhow::Result<()> {
    let all = bulkhead_api::definition::definitions();
    if let Some(group) = group.filter(|group| all.iter().all(|definition| definition.spec.group != *group)) {
        let groups: BTreeSet<_> = all.iter().map(|definition| definition.spec.group.as_str()).collect();
        let groups: Vec<_> = groups.into_iter().collect();
        anyhow::bail!("--group {group}: there are {}", groups.join(", "));
    }
    let chosen = all
        .iter()
        .filter(|definition| group.is_none_or(|group| definition.spec.group == group));
    let documents = chosen.map(document).collect::<Result<Vec<_>, _>>()?;
    match output {
        Format::Yaml => {
            let mut text = String::new();
            for document in &documents {
                write!(text, "---\n{}", serde_saphyr::to_string(document)?)?;
            }
            output::print(&text)
        }
        other => {
            let list = json!({"apiVersion": "v1", "kind": "List", "items": documents});
            other.print(|| names(&documents), &list)
        }
    }
}

/// Returns a definition as a document. The Rust type has no fields for apiVersion and kind.
fn document(definition: &impl Serialize) -> serde_json::Result<Value> {
    let mut document = json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
    });
    let body = serde_json::to_value(definition)?;
    if let (Some(document), Some(body)) = (document.as_object_mut(), body.as_object()) {
        document.extend(body.clone());
    }
    Ok(document)
}

/// Lists the names of the definitions, such as `clusters.cluster.karmada.io`, with their kinds.
fn names(documents: &[Value]) -> String {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let names: Vec<_> = documents
        .iter()
        .map(|document| {
            (
                text(&document["metadata"]["name"]),
                text(&document["spec"]["names"]["kind"]),
            )
        })
        .collect();
    let width = names.iter().map(|(name, _)| name.len()).max().unwrap_or_default();
    let lines: Vec<_> = names
        .iter()
        .map(|(name, kind)| format!("{name:<width$}  {kind}"))
        .collect();
    lines.join("\n") + "\n"
}
