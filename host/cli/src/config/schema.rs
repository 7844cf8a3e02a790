//! JSON Schema of configuration files, from the arguments that their fields are.

use std::any::TypeId;

use bulkhead_controllers::flags::{Flags, GoDuration};
use bulkhead_controllers::permissions::Mode;
use bulkhead_server::RunArguments;
use bulkhead_server::agent::AgentArguments;
use clap::{Arg, Args, Command};
use schemars::{Schema, SchemaGenerator};
use serde_json::{Map, Value, json};

use super::file::{API_VERSION, KIND};
use super::is_field;

/// Returns the schema of a file for `bulkhead run` or `bulkhead agent`.
pub(crate) fn schema() -> Schema {
    // Settings of the controllers have a schema of their own, which knows more than their arguments.
    let mut schema = crate::json_schema::of::<Flags>();
    let settings = match schema.remove("properties") {
        Some(Value::Object(settings)) => settings,
        _ => Map::new(),
    };
    let mut fields: Map<_, _> = settings
        .into_iter()
        .map(|(name, setting)| (name, of_setting(setting)))
        .collect();
    let run = arguments(<RunArguments as Args>::augment_args(Command::new("run")));
    let agent = arguments(<AgentArguments as Args>::augment_args(Command::new("agent")));
    for argument in run.iter().chain(&agent) {
        let Some(name) = argument.get_long() else { continue };
        let takes = |arguments: &[Arg]| arguments.iter().any(|other| other.get_long() == Some(name));
        if !fields.contains_key(name) {
            let only = match (takes(&run), takes(&agent)) {
                (true, false) => "Only for `bulkhead run`.",
                (false, true) => "Only for `bulkhead agent`.",
                _ => "",
            };
            fields.insert(name.to_owned(), of_argument(argument, only));
        }
    }
    fields.insert(
        "apiVersion".to_owned(),
        json!({"description": "API version of the file.", "const": API_VERSION}),
    );
    fields.insert(
        "kind".to_owned(),
        json!({"description": "Kind of the file.", "const": KIND}),
    );
    schema.insert("title".to_owned(), KIND.into());
    schema.insert(
        "description".to_owned(),
        "Arguments of `bulkhead run` or `bulkhead agent` in a file.".into(),
    );
    schema.insert("properties".to_owned(), fields.into());
    schema.insert("required".to_owned(), json!(["apiVersion", "kind"]));
    schema
}

fn arguments(command: Command) -> Vec<Arg> {
    command
        .get_arguments()
        .filter(|argument| is_field(argument))
        .cloned()
        .collect()
}

/// Returns the schema of a field for a setting. Its value is never null, and lists and maps may be written as on the
/// command line.
fn of_setting(setting: Value) -> Value {
    let Value::Object(mut setting) = setting else {
        return setting;
    };
    if let Some(only) = setting.get("type").and_then(|types| types.get(0)).cloned() {
        setting.insert("type".to_owned(), only);
    }
    match setting.get("type").and_then(Value::as_str) {
        Some("array" | "object") => {
            let description = setting.remove("description");
            json!({"description": description, "anyOf": [setting, {"type": "string"}]})
        }
        _ => Value::Object(setting),
    }
}

/// Returns the schema of a field for another argument, from the type that its values are parsed into.
fn of_argument(argument: &Arg, only: &str) -> Value {
    let of = |type_: TypeId| argument.get_value_parser().type_id() == type_;
    let mut field = if of(TypeId::of::<Mode>()) {
        let names = Mode::ALL.map(Mode::name);
        let name = names.join("|");
        let text = json!({"type": "string", "pattern": format!("^({name})(,({name}))*$")});
        json!({"anyOf": [{"type": "array", "items": {"enum": names}}, text]})
    } else if argument.get_value_delimiter().is_some() {
        json!({"anyOf": [{"type": "array", "items": {"type": "string"}}, {"type": "string"}]})
    } else if of(TypeId::of::<GoDuration>()) {
        SchemaGenerator::default().subschema_for::<GoDuration>().to_value()
    } else if of(TypeId::of::<bool>()) {
        json!({"type": "boolean"})
    } else if of(TypeId::of::<u64>()) {
        json!({"type": "integer", "minimum": 0})
    } else {
        json!({"type": "string"})
    };
    let help = argument
        .get_long_help()
        .or(argument.get_help())
        .map(ToString::to_string)
        .unwrap_or_default();
    field["description"] = format!("{}. {only}", help.trim_end_matches('.')).trim_end().into();
    if let [default] = argument.get_default_values() {
        let text = default.to_string_lossy();
        field["default"] = serde_json::from_str(&text).unwrap_or_else(|_| Value::from(&*text));
    }
    field
}
