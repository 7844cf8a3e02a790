//! Errors of YAML readers in one line: file, line, column, path in the document, cause, and the nearest valid name.

use serde_saphyr::budget::BudgetBreach;
use serde_saphyr::{DefaultMessageFormatter, DuplicateKeyPolicy, Error, MessageFormatter as _};

use super::positions::{Path, Positions, joined};
use crate::nearest::{alternative, nearest};
use crate::text::one_line;

/// Formats an error about a text as `origin:line:column: path: cause`. The path names the object and the field, for
/// example `clusters[0].replicaReadyAfter`. A misspelt field or value has a suggestion, or the list of valid ones.
pub fn yaml_error(origin: &str, text: &str, error: &Error) -> String {
    format!("{origin}{}: {}", position(error), message(text, error))
}

/// Returns `:line:column`, or nothing if the position of an error is unknown.
pub(crate) fn position(error: &Error) -> String {
    error
        .location()
        .map_or_else(String::new, |at| format!(":{}:{}", at.line(), at.column()))
}

/// Formats an error about a text as `path: cause`.
pub(crate) fn message(text: &str, error: &Error) -> String {
    let error = error.without_snippet();
    let path = |at| {
        let options = serde_saphyr::options! { duplicate_keys: DuplicateKeyPolicy::LastWins };
        Positions::read(text, &options).path(at)
    };
    let Path { object, field } = error.location().and_then(|at| path(at.into())).unwrap_or_default();
    let path = if matches!(error, Error::SerdeMissingField { .. }) {
        object
    } else {
        joined(&object, &field)
    };
    let cause = cause(error);
    one_line(
        &if path.is_empty() {
            cause
        } else {
            format!("{path}: {cause}")
        },
        usize::MAX,
    )
}

fn cause(error: &Error) -> String {
    match error {
        Error::SerdeUnknownField { field, expected, .. } => {
            format!("unknown field{}", choice(field, expected, "the fields are"))
        }
        Error::SerdeUnknownVariant { variant, expected, .. } => {
            format!(
                "unknown value {variant:?}{}",
                choice(variant, expected, "the values are")
            )
        }
        Error::SerdeMissingField { field, .. } => format!("the field {field} is missing"),
        Error::DuplicateMappingKey { .. } => "the field is repeated".to_owned(),
        Error::NonFiniteFloat { value, .. } => format!("{value} is not a finite number"),
        Error::RecursiveReferencesRequireWeakTypes { .. } => "an alias must not be within its own anchor".to_owned(),
        Error::Budget { breach, .. } => exceeded(breach),
        Error::AliasReplayLimitExceeded {
            max_total_replayed_events,
            ..
        } => format!("aliases repeat more than {max_total_replayed_events} values"),
        other => {
            let message = DefaultMessageFormatter.format_message(other).into_owned();
            match suggested(&message) {
                Some(name) => format!("{message}, did you mean {name}?"),
                None => message,
            }
        }
    }
}

/// Names the limit of a reader that a text exceeds. The parser stops at the first element beyond the limit.
fn exceeded(breach: &BudgetBreach) -> String {
    let limit = |count: &usize| count.saturating_sub(1);
    match breach {
        BudgetBreach::Documents { documents } => format!("more than {} documents in one file", limit(documents)),
        BudgetBreach::Nodes { nodes: values } | BudgetBreach::Events { events: values } => {
            format!("more than {} values in one file", limit(values))
        }
        BudgetBreach::Depth { depth } => format!("more than {} levels of nesting", limit(depth)),
        BudgetBreach::ScalarBytes { .. } | BudgetBreach::InputBytes { .. } => "the file is too long".to_owned(),
        // The other limits are about parts that one value shares with another.
        _ => "too many anchors, aliases or merge keys".to_owned(),
    }
}

/// Formats the nearest of the valid names, or all of them.
fn choice(name: &str, valid: &[&'static str], title: &str) -> String {
    if let Some(alternative) = alternative(name) {
        return format!("; {alternative}");
    }
    match nearest(name, valid.iter().copied()) {
        Some(name) => format!(", did you mean {name}?"),
        None if valid.is_empty() => "; no name is valid here".to_owned(),
        None => format!("; {title} {}", valid.join(", ")),
    }
}

/// Returns the nearest valid name in a message of serde about a value that a type read by itself.
fn suggested(message: &str) -> Option<&str> {
    let starts = ["unknown field `", "unknown variant `"];
    let (_, rest) = starts.iter().find_map(|start| message.split_once(start))?;
    let (name, rest) = rest.split_once('`')?;
    nearest(name, rest.split('`').skip(1).step_by(2))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_saphyr::Spanned;

    use super::*;

    #[derive(Debug, serde::Deserialize)]
    #[serde(rename_all = "camelCase", deny_unknown_fields)]
    #[expect(dead_code, reason = "the fields are only read by the parser")]
    struct Fleet {
        name: String,
        #[serde(default)]
        clusters: Vec<Spanned<Member>>,
        #[serde(default)]
        gates: BTreeMap<Gate, bool>,
    }

    #[derive(Debug, serde::Deserialize)]
    #[serde(rename_all = "camelCase", deny_unknown_fields)]
    #[expect(dead_code, reason = "the fields are only read by the parser")]
    struct Member {
        name: String,
        #[serde(default)]
        ready_after: u32,
        #[serde(default)]
        state: Option<Gate>,
    }

    #[derive(Debug, PartialEq, Eq, PartialOrd, Ord, serde::Deserialize)]
    enum Gate {
        Failover,
        Propagation,
    }

    #[test]
    fn an_error_names_position_path_and_the_nearest_name_once() {
        let check = |text: &str, expected: &str| {
            let error = serde_saphyr::from_str::<Fleet>(text).unwrap_err();
            assert_eq!(yaml_error("a.yaml", text, &error), expected, "{text}");
        };
        check(
            "name: a\ncluster: []\n",
            "a.yaml:2:1: cluster: unknown field, did you mean clusters?",
        );
        check(
            "name: a\ncolour: red\n",
            "a.yaml:2:1: colour: unknown field; the fields are name, clusters, gates",
        );
        check(
            "name: a\nclusters:\n- name: b\n- name: c\n  redyAfter: 3\n",
            "a.yaml:5:3: clusters[1].redyAfter: unknown field, did you mean readyAfter?",
        );
        check(
            "name: a\nclusters: [{name: b, state: failovr}]\n",
            "a.yaml:2:29: clusters[0].state: unknown value \"failovr\", did you mean Failover?",
        );
        check(
            "name: a\ngates: {Propagaton: true}\n",
            "a.yaml:2:9: gates.Propagaton: unknown value \"Propagaton\", did you mean Propagation?",
        );
        check(
            "name: a\nclusters:\n- readyAfter: 3\n",
            "a.yaml:3:3: clusters[0]: the field name is missing",
        );
        check("name: a\nname: b\n", "a.yaml:2:1: name: the field is repeated");
        check("name: a\nclusters: [{name: b}\n", "a.yaml:2:11: unclosed bracket '['");
    }

    #[test]
    fn a_value_of_the_wrong_type_is_named_with_its_path() {
        let text = "name: a\nclusters: [{name: b, readyAfter: soon}]\n";
        let error = serde_saphyr::from_str::<Fleet>(text).unwrap_err();
        let message = yaml_error("a.yaml", text, &error);
        assert!(
            message.starts_with("a.yaml:2:34: clusters[0].readyAfter: "),
            "{message}"
        );
        assert!(!message.contains('\n'), "{message}");
    }

    #[test]
    fn causes_do_not_name_options_of_the_parser() {
        let check = |text: &str, expected: &str| {
            let error = serde_saphyr::from_str::<serde_json::Value>(text).unwrap_err();
            let message = yaml_error("a.yaml", text, &error);
            assert!(message.ends_with(expected), "{message}");
        };
        check("rate: .inf\n", ": .inf is not a finite number");
        check("rate: .nan\n", ": .nan is not a finite number");
    }

    #[test]
    fn a_limit_is_named_with_its_number() {
        let check = |text: &str, expected: &str| {
            let options = serde_saphyr::options! { budget: serde_saphyr::budget! { max_documents: 2, max_nodes: 4 } };
            let error = serde_saphyr::from_multiple_with_options::<serde_json::Value>(text, options).unwrap_err();
            let message = yaml_error("a.yaml", text, &error);
            assert!(message.ends_with(expected), "{message}");
        };
        check("a\n---\nb\n---\nc\n", ": more than 2 documents in one file");
        check("[1, 2, 3, 4]\n", ": more than 4 values in one file");
    }

    #[test]
    fn an_alias_within_its_own_anchor_is_named() {
        let text = "a: &a\n  b: *a\n";
        let error = serde_saphyr::from_str::<serde_json::Value>(text).unwrap_err();
        let message = yaml_error("a.yaml", text, &error);
        assert!(
            message.ends_with("an alias must not be within its own anchor"),
            "{message}"
        );
    }

    #[test]
    fn messages_of_other_readers_get_a_suggestion_too() {
        let message = "neither: unknown field `fiel`, expected one of `file`, `first`, `count`";
        assert_eq!(suggested(message), Some("file"));
        assert_eq!(suggested("unknown variant `x`, expected `y`"), None);
        assert_eq!(suggested("expected a number"), None);
    }
}
