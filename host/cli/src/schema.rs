//! `bulkhead schema`: JSON Schemas of the files that people write.
//!
//! Each schema is generated from the type, or from the arguments, that the file is parsed into. A schema describes
//! fields, types and names. Combinations of fields and references between them are checked when a file is used.

use std::io::Write as _;
use std::process::ExitCode;

use bulkhead_conformance::CaseSchema;
use bulkhead_core::manifest::Fallback;
use bulkhead_core::manifest::trust::PluginTrust;
use bulkhead_plugin::PluginList;
use bulkhead_simulator::scenario::Scenario;
use clap::{Args, ValueEnum};
use schemars::Schema;
use serde_json::json;

use crate::json_schema::of;

/// Print the JSON Schema of a file format, for editors and other checkers.
#[derive(Args)]
#[command(after_help = "\
Examples:
  bulkhead schema scenario > scenario.schema.json
  bulkhead schema plugins")]
pub(crate) struct Arguments {
    /// File format.
    #[arg(value_enum)]
    kind: Kind,
}

/// File format with a schema.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Kind {
    /// Scenario of `bulkhead simulate`.
    Scenario,
    /// List of plugins, `plugins.yaml`.
    Plugins,
    /// Test cases of a plugin or of an interpreter.
    Cases,
    /// Configuration file of `bulkhead run` and `bulkhead agent`.
    Configuration,
    /// Trust file of `--plugin-trust`.
    Trust,
}

/// Runs the command.
pub(crate) fn run(arguments: &Arguments) -> ExitCode {
    let schema = arguments.kind.schema().to_value();
    // A closed output pipe is not an error.
    let _ = writeln!(anstream::stdout(), "{schema:#}");
    ExitCode::SUCCESS
}

impl Kind {
    /// Returns the schema of the format.
    pub(crate) fn schema(self) -> Schema {
        match self {
            Self::Scenario => with_plugins(of::<Scenario>()),
            Self::Plugins => with_plugins(of::<PluginList>()),
            Self::Cases => of::<CaseSchema>(),
            Self::Configuration => crate::config::schema(),
            Self::Trust => of::<PluginTrust>(),
        }
    }
}

/// Adds the rules about plugins that the schema of the type leaves out. The definition of the kind `Plugin` is made
/// from the same type, and a structural schema cannot contain them.
fn with_plugins(mut schema: Schema) -> Schema {
    let mut fallback = of::<Fallback>();
    for key in ["$schema", "title", "description"] {
        fallback.remove(key);
    }
    if let Some(plugin) = schema.pointer_mut("/definitions/PluginManifest") {
        plugin["oneOf"] = json!([{"required": ["wasm"]}, {"required": ["lua"]}, {"required": ["image"]}]);
        plugin["properties"]["fallback"]["allOf"] = json!([fallback]);
    }
    schema
}
