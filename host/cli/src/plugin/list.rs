//! `bulkhead plugin list`.

use bulkhead_oci::{KnownReference, Reference, Store};
use bulkhead_server::images::ImageArguments;
use bulkhead_simulator::table::Table;
use clap::Args;
use serde_json::{Value, json};

use super::images;
use crate::output::Format;

/// List the tags in the cache of images, with the digest that each had when it was pulled first.
#[derive(Args)]
#[command(after_help = "\
Examples:
  bulkhead plugin list
  bulkhead plugin list --image-cache /var/lib/bulkhead/images -o json")]
pub(crate) struct Arguments {
    /// Output format.
    #[arg(short, long, value_enum, default_value_t = Format::Text)]
    output: Format,

    #[command(flatten)]
    images: ImageArguments,
}

pub(super) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let store = images::store(&arguments.images)?;
    let known = store.cache().references();
    let rows: Vec<_> = known.iter().map(|known| row(&store, known)).collect();
    arguments.output.print(|| table(&rows), &rows)
}

fn row(store: &Store, known: &KnownReference) -> Value {
    let KnownReference { reference, digest } = known;
    let image = reference.parse::<Reference>().ok();
    let stored = image.and_then(|image| store.cached(&image, digest).ok().flatten());
    json!({
        "image": reference,
        "digest": digest,
        "engine": stored.as_ref().map(|stored| stored.engine),
        "codeBytes": stored.as_ref().map(|stored| stored.code.len()),
        "signatures": store.cache().signatures(digest).map_or(0, |signatures| signatures.len()),
        "annotations": stored.map(|stored| stored.manifest.manifest.annotations),
    })
}

fn table(rows: &[Value]) -> String {
    let mut table = Table::new(2, &[]);
    table.row(["image", "digest", "engine", "bytes", "signatures"]);
    for row in rows {
        let text = |name: &str| match &row[name] {
            Value::String(text) => text.clone(),
            Value::Null => "removed".to_owned(),
            other => other.to_string(),
        };
        let digest: String = text("digest").trim_start_matches("sha256:").chars().take(12).collect();
        table.row([
            text("image"),
            digest,
            text("engine"),
            text("codeBytes"),
            text("signatures"),
        ]);
    }
    table.to_string()
}
