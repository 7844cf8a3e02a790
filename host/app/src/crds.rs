//! `bulkhead crds`.

use std::collections::BTreeSet;
use std::io::Write;
use std::process::ExitCode;

use clap::Args;

/// Print the definitions (CRDs) of the kinds that Bulkhead serves and uses, for `kubectl apply --server-side -f -`.
///
/// All kinds but those of `bulkhead.dev` are Karmada's. If Karmada is installed, only `--group bulkhead.dev` is
/// missing.
#[derive(Args)]
pub(crate) struct Arguments {
    /// Print only the kinds of this API group.
    #[arg(long)]
    group: Option<String>,
}

/// Runs the command.
pub(crate) fn run(arguments: &Arguments) -> ExitCode {
    crate::exit::code(print(arguments.group.as_deref()).map(|()| true))
}

fn print(group: Option<&str>) -> anyhow::Result<()> {
    let all = bulkhead_api::definition::definitions();
    if let Some(group) = group.filter(|group| all.iter().all(|definition| definition.spec.group != *group)) {
        let groups: BTreeSet<_> = all.iter().map(|definition| definition.spec.group.as_str()).collect();
        let groups: Vec<_> = groups.into_iter().collect();
        anyhow::bail!("--group {group}: there are {}", groups.join(", "));
    }
    let mut out = anstream::stdout().lock();
    for definition in all.iter().filter(|definition| group.is_none_or(|group| definition.spec.group == group)) {
        // The Rust type has no fields for apiVersion and kind.
        let mut document = serde_json::json!({
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
        });
        let body = serde_json::to_value(definition)?;
        if let (Some(document), Some(body)) = (document.as_object_mut(), body.as_object()) {
            document.extend(body.clone());
        }
        write!(out, "---\n{}", serde_saphyr::to_string(&document)?)?;
    }
    Ok(())
}
