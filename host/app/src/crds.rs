//! `bulkhead crds`.

use std::io::Write;
use std::process::ExitCode;

use clap::Args;

/// Print the definitions of the kinds that Bulkhead serves and uses, for `kubectl apply --server-side -f -`.
///
/// Groups, kinds and fields are Karmada's. Where Karmada itself is installed, they are there already.
#[derive(Args)]
pub(crate) struct Arguments {}

/// Runs the command.
pub(crate) fn run(_: &Arguments) -> ExitCode {
    match print() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(anstream::stderr(), "error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn print() -> anyhow::Result<()> {
    let mut out = anstream::stdout().lock();
    for definition in bulkhead_api::definition::definitions() {
        // The type has no place for them.
        let mut document = serde_json::json!({
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
        });
        let body = serde_json::to_value(&definition)?;
        if let (Some(document), Some(body)) = (document.as_object_mut(), body.as_object()) {
            document.extend(body.clone());
        }
        write!(out, "---\n{}", serde_saphyr::to_string(&document)?)?;
    }
    Ok(())
}
