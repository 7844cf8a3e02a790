//! Reference pages of the file formats, generated from their schemas.

use std::collections::BTreeMap;
use std::ptr;

use serde_json::Value;

use super::golden;
use crate::schema::Kind;

/// Most values that the row of a field lists.
const VALUES_MAX: usize = 14;

/// Page about a file format.
struct Page {
    file: &'static str,
    kind: Kind,
    /// Fields whose own fields are on another page.
    closed: &'static [&'static str],
    parts: &'static [(&'static str, Part)],
}

/// Generated part of a page.
enum Part {
    /// Fields whose path has a prefix, which is left out. An empty prefix stands for all fields without another part.
    Fields(&'static str),
    /// Values of one field.
    Values(&'static str),
}

const PAGES: [Page; 5] = [
    Page {
        file: "plugins-yaml.md",
        kind: Kind::Plugins,
        closed: &[],
        parts: &[
            ("list", Part::Fields("")),
            ("composition", Part::Fields("composition.")),
            ("plugin", Part::Fields("plugins[].")),
        ],
    },
    Page {
        file: "scenario.md",
        kind: Kind::Scenario,
        closed: &["composition", "events[].apply", "events[].plugins", "flags", "plugins"],
        parts: &[
            ("fields", Part::Fields("")),
            ("clusters", Part::Fields("clusters[].")),
            ("manifests", Part::Fields("manifests[].")),
            ("events", Part::Fields("events[].")),
            ("faults", Part::Values("events[].fault.kind")),
            ("expectations", Part::Fields("expect[].")),
        ],
    },
    Page {
        file: "configuration.md",
        kind: Kind::Configuration,
        closed: &[],
        parts: &[("fields", Part::Fields(""))],
    },
    Page {
        file: "cases.md",
        kind: Kind::Cases,
        closed: &[],
        parts: &[("cases", Part::Fields("cases[].")), ("documents", Part::Fields(""))],
    },
    Page {
        file: "plugin-trust.md",
        kind: Kind::Trust,
        closed: &[],
        parts: &[
            ("file", Part::Fields("")),
            ("rule", Part::Fields("rules[].")),
            ("revocation", Part::Fields("revoked[].")),
        ],
    },
];

/// Field of a file format.
struct Field {
    path: String,
    types: String,
    need: String,
    meaning: String,
    /// Values and their meanings.
    values: Vec<Vec<String>>,
}

/// Fields of a file format, collected from its schema.
struct Fields<'a> {
    root: &'a Value,
    closed: &'a [&'a str],
    found: Vec<Field>,
}

impl<'a> Fields<'a> {
    /// Returns the forms of a value without null: its schema behind references and alternatives.
    fn forms(&self, schema: &'a Value) -> Vec<&'a Value> {
        if let Some(name) = schema["$ref"].as_str() {
            let target = self.root.pointer(name.trim_start_matches('#'));
            return self.forms(target.unwrap_or_else(|| panic!("there is no {name}")));
        }
        if schema["then"].is_object() {
            return [&schema["else"], &schema["then"]]
                .into_iter()
                .flat_map(|one| self.forms(one))
                .collect();
        }
        let several = ["allOf", "anyOf", "oneOf"]
            .into_iter()
            .find_map(|key| schema[key].as_array());
        match several {
            Some(schemas) if !schema["properties"].is_object() => {
                schemas.iter().flat_map(|one| self.forms(one)).collect()
            }
            _ if schema["type"] == "null" => Vec::new(),
            _ => vec![schema],
        }
    }

    /// Returns the types of a value in words.
    fn types(&self, schema: &'a Value) -> String {
        let mut names: Vec<String> = Vec::new();
        for form in self.forms(schema) {
            let name = self.type_of(form);
            if !names.contains(&name) {
                names.push(name);
            }
        }
        names.join(" or ")
    }

    fn type_of(&self, form: &'a Value) -> String {
        let mut several = form["type"].as_array().into_iter().flatten().filter_map(Value::as_str);
        match form["type"].as_str().or_else(|| several.find(|name| *name != "null")) {
            Some("array") => format!("list of {}", self.types(&form["items"])),
            Some("object") if form["additionalProperties"].is_object() => {
                format!("map of {}", self.types(&form["additionalProperties"]))
            }
            Some("string") if form["format"] == "date-time" => "time".to_owned(),
            Some("string")
                if form["pattern"]
                    .as_str()
                    .is_some_and(|pattern| pattern.contains("(ms|s|m|h)")) =>
            {
                "duration".to_owned()
            }
            Some(name) => name.to_owned(),
            None if form["const"].is_string() || form["enum"].is_array() => "string".to_owned(),
            None => "any".to_owned(),
        }
    }

    /// Returns the values that a field, or an element of it, can have, with their meanings.
    fn values(&self, schema: &'a Value) -> Vec<Vec<String>> {
        let mut found = Vec::new();
        for form in self.forms(schema) {
            if let Some(value) = form["const"].as_str() {
                // A field with only one value has a description of its own.
                let meaning = if ptr::eq(form, schema) {
                    String::new()
                } else {
                    prose(form)
                };
                found.push(vec![format!("`{value}`"), meaning]);
            }
            let names = form["enum"].as_array().into_iter().flatten().filter_map(Value::as_str);
            found.extend(names.map(|name| vec![format!("`{name}`"), String::new()]));
            for inner in [&form["items"], &form["propertyNames"]] {
                if inner.is_object() {
                    found.extend(self.values(inner));
                }
            }
        }
        found
    }

    /// Collects the fields below a value.
    fn descend(&mut self, schema: &'a Value, path: &str) {
        for form in self.forms(schema) {
            if form["items"].is_object() {
                self.descend(&form["items"], &format!("{path}[]"));
            }
            if form["additionalProperties"].is_object() {
                self.descend(&form["additionalProperties"], &format!("{path}.*"));
            }
            let properties: BTreeMap<_, _> = form["properties"].as_object().into_iter().flatten().collect();
            for (name, field) in properties {
                let path = if path.is_empty() {
                    name.clone()
                } else {
                    format!("{path}.{name}")
                };
                let found = self.field(form, name, field, &path);
                self.found.push(found);
                if !self.closed.contains(&path.as_str()) {
                    self.descend(field, &path);
                }
            }
        }
    }

    fn field(&self, owner: &'a Value, name: &str, field: &'a Value, path: &str) -> Field {
        let is_required = owner["required"]
            .as_array()
            .into_iter()
            .flatten()
            .any(|required| required == name);
        let need = match &field["default"] {
            _ if is_required => "required".to_owned(),
            Value::Null => "–".to_owned(),
            Value::String(text) => golden::prose(&format!("`{text}`")),
            default => format!("`{default}`"),
        };
        // The only field of a form may have the description of the form.
        let described = if field["description"].is_string() { field } else { owner };
        let (types, meaning, values) = (self.types(field), prose(described), self.values(field));
        Field {
            path: path.to_owned(),
            types,
            need,
            meaning,
            values,
        }
    }
}

/// Returns the first paragraph of a description.
fn prose(schema: &Value) -> String {
    let description = schema["description"].as_str().unwrap_or_default();
    golden::prose(description.split("\n\n").next().unwrap_or_default())
}

/// Returns the row of a field without a prefix of its path.
fn row(field: &Field, prefix: &str) -> Vec<String> {
    let value = |value: &Vec<String>| {
        let parts: Vec<_> = value
            .iter()
            .map(|part| part.trim_end_matches('.'))
            .filter(|part| !part.is_empty())
            .collect();
        parts.join(": ")
    };
    let values: Vec<_> = field.values.iter().map(value).collect();
    let mut meaning = field.meaning.clone();
    if (1..=VALUES_MAX).contains(&values.len()) {
        meaning = format!("{meaning} Values: {}.", values.join("; "));
    }
    let path = field.path.strip_prefix(prefix).unwrap_or(&field.path);
    vec![
        format!("`{path}`"),
        field.types.clone(),
        field.need.clone(),
        meaning.trim().to_owned(),
    ]
}

impl Page {
    fn text(&self, part: &Part, fields: &[Field]) -> String {
        let prefixes = self.parts.iter().filter_map(|(_, part)| match part {
            Part::Fields(prefix) if !prefix.is_empty() => Some(*prefix),
            Part::Fields(_) | Part::Values(_) => None,
        });
        let prefixes: Vec<_> = prefixes.collect();
        match part {
            Part::Fields(prefix) => {
                let is_own = |field: &&Field| match *prefix {
                    "" => !prefixes.iter().any(|other| field.path.starts_with(other)),
                    prefix => field.path.starts_with(prefix),
                };
                let rows: Vec<_> = fields.iter().filter(is_own).map(|field| row(field, prefix)).collect();
                assert!(!rows.is_empty(), "{} has no fields below {prefix:?}", self.file);
                golden::table(&["field", "type", "default", "meaning"], &rows)
            }
            Part::Values(path) => {
                let field = fields.iter().find(|field| field.path == *path);
                let field = field.unwrap_or_else(|| panic!("{} has no field {path}", self.file));
                assert!(field.values.len() > VALUES_MAX, "the row of {path} lists its values");
                golden::table(&["value", "meaning"], &field.values)
            }
        }
    }
}

#[test]
fn the_page_of_each_file_format_is_generated_from_its_schema() {
    for page in PAGES {
        let schema = page.kind.schema().to_value();
        let mut fields = Fields {
            root: &schema,
            closed: page.closed,
            found: Vec::new(),
        };
        fields.descend(&schema, "");
        for path in page.closed {
            assert!(
                fields.found.iter().any(|field| field.path == *path),
                "{} has no field {path}",
                page.file
            );
        }
        let parts: Vec<_> = page
            .parts
            .iter()
            .map(|(name, part)| (*name, page.text(part, &fields.found)))
            .collect();
        golden::check(page.file, &parts);
    }
}
