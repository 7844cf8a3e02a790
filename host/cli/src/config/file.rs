//! Fields of a configuration file, with the position of each.

use std::fmt;
use std::path::{Path, PathBuf};

use bulkhead_plugin::read_document;
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::Value;
use serde_saphyr::Spanned;

/// API version of configuration files.
pub(super) const API_VERSION: &str = "bulkhead.dev/v1alpha1";
/// Kind of configuration files.
pub(super) const KIND: &str = "BulkheadConfiguration";

/// Position in a configuration file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Place {
    /// Path of the file.
    pub(super) file: PathBuf,
    /// Line number, starting at 1.
    pub(super) line: u64,
    /// Column number of the field, starting at 1.
    pub(super) column: u64,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.file.display(), self.line, self.column)
    }
}

/// Field of a configuration file.
#[derive(Clone, Debug)]
pub(super) struct Field {
    /// Name of the field, which is the name of an argument.
    pub(super) name: String,
    /// Value of the field.
    pub(super) value: Value,
    /// Position of the field.
    pub(super) place: Place,
}

/// Fields of a document, in document order.
struct Document(Vec<(Spanned<String>, Value)>);

impl<'de> Deserialize<'de> for Document {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Fields;
        impl<'de> Visitor<'de> for Fields {
            type Value = Document;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("fields with their values")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Document, A::Error> {
                let mut fields = Vec::new();
                while let Some(entry) = map.next_entry()? {
                    fields.push(entry);
                }
                Ok(Document(fields))
            }
        }
        deserializer.deserialize_map(Fields)
    }
}

/// Reads a file, and checks its API version and kind.
///
/// # Errors
///
/// A message with file, position and cause: the file cannot be read or parsed, or is not for this program.
pub(super) fn read(path: &Path) -> Result<Vec<Field>, String> {
    let text = std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
    parse(path, &text)
}

fn parse(path: &Path, text: &str) -> Result<Vec<Field>, String> {
    let document: Document = read_document(&path.display().to_string(), text)?;
    let field = |(name, value): (Spanned<String>, Value)| {
        let (line, column) = (name.referenced.line(), name.referenced.column());
        Field {
            place: Place {
                file: path.to_path_buf(),
                line,
                column,
            },
            value,
            name: name.value,
        }
    };
    let mut fields: Vec<_> = document.0.into_iter().map(field).collect();
    for (name, right) in [("apiVersion", API_VERSION), ("kind", KIND)] {
        match fields.iter().find(|field| field.name == name) {
            Some(field) if field.value == right => {}
            Some(Field { value, place, .. }) => {
                let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
                return Err(format!("{place}: {name}: {value} is not supported; it must be {right}"));
            }
            None => return Err(format!("{}:1:1: {name} is missing; it must be {right}", path.display())),
        }
    }
    fields.retain(|field| field.name != "apiVersion" && field.name != "kind");
    Ok(fields)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = "apiVersion: bulkhead.dev/v1alpha1\nkind: BulkheadConfiguration\n";

    #[test]
    fn fields_have_their_positions() {
        let text = format!("{HEAD}# why\nmode: evict\nfeature-gates:\n  Failover: true\n\"kube-api-qps\": 40\n");
        let fields = parse(Path::new("a.yaml"), &text).unwrap();
        let seen: Vec<_> = fields
            .iter()
            .map(|field| format!("{} {}", field.place, field.name))
            .collect();
        assert_eq!(
            seen,
            ["a.yaml:4:1 mode", "a.yaml:5:1 feature-gates", "a.yaml:7:1 kube-api-qps"]
        );
        assert_eq!(fields[1].value, serde_json::json!({"Failover": true}));
    }

    #[test]
    fn a_file_for_something_else_is_refused() {
        let check = |text: &str, expected: &str| {
            let error = parse(Path::new("a.yaml"), text).unwrap_err();
            assert!(error.contains(expected), "{text} says: {error}");
        };
        check(
            "kind: BulkheadConfiguration\n",
            "a.yaml:1:1: apiVersion is missing; it must be bulkhead.dev/v1alpha1",
        );
        check(
            "apiVersion: v1\nkind: BulkheadConfiguration\n",
            "a.yaml:1:1: apiVersion: v1 is not supported",
        );
        check(
            "apiVersion: bulkhead.dev/v1alpha1\nkind: 3\n",
            "a.yaml:2:1: kind: 3 is not supported",
        );
        check(
            &format!("{HEAD}mode: evict\nmode: all\n"),
            "a.yaml:4:1: mode: the field is repeated",
        );
        check(&format!("{HEAD}mode: [evict\nkubeconfig: a\n"), "a.yaml:4:");
    }
}
