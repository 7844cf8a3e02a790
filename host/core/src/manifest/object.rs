//! Plugins as objects of the kind `Plugin`, which contain their code.

use std::fmt;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Map, Value};

use super::{ManifestProblem, PluginManifest};

/// A plugin as an object.
#[derive(Clone, Debug, PartialEq)]
pub struct PluginObject {
    /// Name of the object and of the plugin.
    pub name: String,
    /// Generation of the object.
    pub generation: i64,
    /// Its `spec`: the fields of a plugin in a list except for the name, with the text of the script in `lua`, or the
    /// component in `wasm`, base64-encoded.
    pub spec: Map<String, Value>,
}

/// Prefix of the name of the field that contains the code.
const SPEC: &str = "spec.";
/// Fields that may contain the code.
const CODE: [&str; 2] = ["wasm", "lua"];

impl PluginObject {
    /// Returns the object as messages name it.
    pub fn origin(&self) -> String {
        format!("Plugin {}", self.name)
    }

    /// Checks that the object describes a plugin, without loading it: its fields are consistent, and the code is
    /// present and has the digest.
    ///
    /// # Errors
    ///
    /// The invalid fields, with cause and remedy.
    pub fn check(&self) -> Result<(), String> {
        let manifest = self.manifest().map_err(|problem| problem.to_string())?;
        let mistakes: Vec<_> = manifest.mistakes().iter().map(ToString::to_string).collect();
        if !mistakes.is_empty() {
            return Err(mistakes.join("; "));
        }
        if manifest.image.is_some() {
            // Its code is not here. Processes report a reference or an image that they cannot use.
            return Ok(());
        }
        manifest
            .read_code(|field| self.code(field))
            .map(drop)
            .map_err(|problem| problem.to_string())
    }

    /// Returns the manifest. In place of a file, it names the field that contains the code.
    ///
    /// # Errors
    ///
    /// A field is invalid.
    pub fn manifest(&self) -> Result<PluginManifest, ManifestProblem> {
        let mut fields = self.spec.clone();
        for field in CODE {
            match fields.get_mut(field) {
                Some(Value::String(code)) if code.is_empty() => {
                    return Err(ManifestProblem::mistake(field, "is empty; it holds the code"));
                }
                Some(Value::String(code)) => *code = format!("{SPEC}{field}"),
                Some(Value::Null) | None => {}
                Some(other) => {
                    return Err(ManifestProblem::mistake(
                        field,
                        format!("is {other}; it holds the code, as text"),
                    ));
                }
            }
        }
        if fields.insert("name".to_owned(), self.name.clone().into()).is_some() {
            let message = "must not be set: a plugin has the name of its object";
            return Err(ManifestProblem::mistake("name", message));
        }
        serde_json::from_value(Value::Object(fields)).map_err(|error| ManifestProblem::mistake("", error.to_string()))
    }

    /// Returns the location and the code in a field that the manifest names.
    pub fn code(&self, field: &str) -> (String, Result<Vec<u8>, NotBase64>) {
        let key = field.trim_start_matches(SPEC);
        let text = self.spec.get(key).and_then(Value::as_str).unwrap_or_default();
        let code = if key == "lua" {
            Ok(text.as_bytes().to_vec())
        } else {
            // Line breaks are removed: `base64` prints lines by default.
            let text: String = text.split_ascii_whitespace().collect();
            BASE64_STANDARD.decode(text).map_err(NotBase64)
        };
        (format!("{} {field}", self.origin()), code)
    }
}

/// Error for a component that is not encoded in base64.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotBase64(base64::DecodeError);

impl fmt::Display for NotBase64 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "it is not base64: {}", self.0)
    }
}

impl std::error::Error for NotBase64 {}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_check_names_the_field_and_reads_the_code() {
        let check = |spec: Value, expected: Result<(), &str>| {
            let Value::Object(spec) = spec else {
                panic!("a spec is a map")
            };
            let object = PluginObject {
                name: "p".to_owned(),
                generation: 1,
                spec,
            };
            assert_eq!(object.check(), expected.map_err(str::to_owned));
        };
        check(json!({"lua": "x"}), Ok(()));
        check(json!({"wasm": "AGFz\nbQ==\n"}), Ok(()));
        check(json!({"image": "r.io/a:1", "movedTag": "follow"}), Ok(()));
        check(
            json!({"image": "r.io/a:1", "lua": "x"}),
            Err("needs exactly one of wasm, lua and image, the location of its code"),
        );
        check(
            json!({}),
            Err("needs exactly one of wasm, lua and image, the location of its code"),
        );
        check(json!({"lua": ""}), Err("lua is empty; it holds the code"));
        check(
            json!({"lua": "x", "name": "q"}),
            Err("name must not be set: a plugin has the name of its object"),
        );
        check(
            json!({"wasm": "?"}),
            Err("failed to fetch Plugin p spec.wasm: it is not base64: Invalid symbol 63, offset 0."),
        );
        let zeros = "0".repeat(64);
        let error = format!(
            "sha256 is {zeros}, and the digest of the file is \
             2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881"
        );
        check(json!({"lua": "x", "sha256": zeros}), Err(&error));
    }
}
