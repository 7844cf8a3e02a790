//! Kubernetes objects in YAML, read as kubectl and other programs in Go read them.
//!
//! Go's parser accepts two kinds of text that are not valid YAML: a mapping with a repeated key, whose last value
//! counts, and a line of a quoted text that is indented no further than its key. Both occur in exports and test data of
//! other projects. They are read alike here, with a warning.

mod documents;
mod positions;
mod problem;

use serde::de::DeserializeOwned;
use serde_saphyr::Options;

pub use self::documents::Documents;
use self::documents::parse;
pub use self::positions::{Position, Positions};
pub use self::problem::yaml_error;
pub(crate) use self::problem::{message, position};

/// Returns the limits of files that a person names: an export of thousands of objects has millions of nodes. Few or none
/// of them are repeated by aliases, which kubectl does not write.
pub fn limits_of_files() -> Options {
    serde_saphyr::options! {
        alias_limits: serde_saphyr::alias_limits! { max_total_replayed_events: 100_000 },
        budget: serde_saphyr::budget! {
            max_events: 200_000_000,
            max_nodes: 100_000_000,
            max_total_scalar_bytes: 4 * 1024 * 1024 * 1024,
            max_documents: 1_000_000,
        }
    }
}

/// Reads the only document of a text; `origin` is the name of its file.
///
/// # Errors
///
/// The text is not YAML, or the document does not have the shape of `T`. The message is that of [`yaml_error`].
pub fn read_document<T: DeserializeOwned>(origin: &str, text: &str) -> Result<T, String> {
    serde_saphyr::from_str(text).map_err(|error| yaml_error(origin, text, &error))
}

/// Reads the documents of a text within the limits of `options`; `origin` is the name of its file.
///
/// # Errors
///
/// The text is not YAML, or a document does not have the shape of `T`. The message is that of [`yaml_error`].
pub fn read_documents<T: DeserializeOwned>(
    origin: &str,
    text: &str,
    options: &Options,
) -> Result<Documents<T>, String> {
    parse(text, options).map_err(|(text, error)| yaml_error(origin, &text, &error))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn read(text: &str) -> Result<Documents<Value>, String> {
        read_documents("a.yaml", text, &Options::default())
    }

    fn check(text: &str, expected: &[Value], warnings: &[&str]) {
        let read = read(text).unwrap_or_else(|error| panic!("{text}: {error}"));
        assert_eq!(read.documents, expected, "{text}");
        assert_eq!(read.warnings, warnings, "{text}");
    }

    #[test]
    fn the_last_value_of_a_repeated_key_counts() {
        let warning = "line 2: the key \"status\" is repeated; the last value of each key counts";
        check(
            "status: a\nstatus: {b: c}\n",
            &[json!({"status": {"b": "c"}})],
            &[warning],
        );
        check(
            "status: a\n---\nstatus: b\n",
            &[json!({"status": "a"}), json!({"status": "b"})],
            &[],
        );
    }

    #[test]
    fn lines_of_a_quoted_text_may_be_indented_like_their_key() {
        let warning = |line: u32| format!("line {line}: a line of a quoted text must be indented further than its key");
        let text = "conditions:\n  - reason: A\n    message: 'one\n    two\n  three'\n    type: B\n";
        let expected = json!({"conditions": [{"reason": "A", "message": "one two three", "type": "B"}]});
        check(text, &[expected], &[&warning(4), &warning(5)]);
        check("a:\n  b: \"one\n    two\"\n", &[json!({"a": {"b": "one two"}})], &[]);
    }

    #[test]
    fn keys_that_old_yaml_takes_for_booleans_stay_texts() {
        let expected = json!({"data": {"n": "a", "y": "b", "on": "c", "off": "d", "no": "e", "yes": "f"}});
        check("data: {n: a, y: b, on: c, off: d, no: e, yes: f}\n", &[expected], &[]);
    }

    #[test]
    fn other_mistakes_are_errors_with_their_position() {
        for text in ["a: b\n c: d\n", "a: [b\n", "a: 'b\n"] {
            let error = read(text).unwrap_err();
            let place = error
                .strip_prefix("a.yaml:")
                .and_then(|rest| rest.split_once(": "))
                .map(|(place, _)| place);
            let numbers = place
                .unwrap_or_default()
                .split(':')
                .filter(|number| number.parse::<u64>().is_ok());
            assert_eq!(numbers.count(), 2, "{text}: {error}");
            assert!(!error.contains('\n'), "{text}: {error}");
        }
    }
}
