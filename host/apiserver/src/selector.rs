//! Label and field selectors.

use serde_json::Value;

use crate::field_labels;
use crate::json::{HasFields, field, follow};
use crate::kind::ResourceKind;
use crate::status_error::StatusError;

/// Conjunction of requirements on labels and fields; the default matches everything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selector {
    labels: Vec<LabelRequirement>,
    fields: Vec<FieldRequirement>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct LabelRequirement {
    key: String,
    operator: LabelOperator,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum LabelOperator {
    In(Vec<String>),
    NotIn(Vec<String>),
    Exists,
    DoesNotExist,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct FieldRequirement {
    path: Vec<String>,
    /// Value of an absent field.
    default: String,
    value: String,
    wants_equal: bool,
}

impl Selector {
    /// Parses the query parameters `labelSelector` and `fieldSelector`; empty text selects everything.
    ///
    /// # Errors
    ///
    /// 400 if a requirement cannot be parsed.
    pub fn parse(labels: &str, fields: &str) -> Result<Self, StatusError> {
        Ok(Self {
            labels: split_requirements(labels)
                .into_iter()
                .map(parse_label)
                .collect::<Result<_, _>>()?,
            fields: split_requirements(fields)
                .into_iter()
                .map(parse_field)
                .collect::<Result<_, _>>()?,
        })
    }

    /// Parses the selectors of a request for objects of a kind.
    ///
    /// # Errors
    ///
    /// 400 if a requirement cannot be parsed, or if the kind cannot be selected by a field.
    pub(crate) fn of(kind: &ResourceKind, labels: &str, fields: &str) -> Result<Self, StatusError> {
        let mut selector = Self::parse(labels, fields)?;
        for requirement in &mut selector.fields {
            if let Some(label) = field_labels::resolve(kind, &requirement.path.join("."))? {
                requirement.path = path_of(label.path);
                label.default.clone_into(&mut requirement.default);
            }
        }
        Ok(selector)
    }

    pub(crate) fn and_name(mut self, name: &str) -> Self {
        self.fields.push(FieldRequirement {
            path: vec!["metadata".to_owned(), "name".to_owned()],
            default: String::new(),
            value: name.to_owned(),
            wants_equal: true,
        });
        self
    }

    /// Returns true if the selector matches everything.
    pub fn is_empty(&self) -> bool {
        self.labels.is_empty() && self.fields.is_empty()
    }

    /// Returns true if an object satisfies every requirement.
    pub fn matches(&self, object: &impl HasFields) -> bool {
        let labels = field(object, "/metadata/labels").unwrap_or(&Value::Null);
        self.labels.iter().all(|requirement| requirement.matches(labels))
            && self.fields.iter().all(|requirement| requirement.matches(object))
    }
}

impl LabelRequirement {
    fn matches(&self, labels: &Value) -> bool {
        let actual = labels.get(&self.key).and_then(Value::as_str);
        match &self.operator {
            LabelOperator::In(values) => actual.is_some_and(|actual| values.iter().any(|value| value == actual)),
            LabelOperator::NotIn(values) => actual.is_none_or(|actual| values.iter().all(|value| value != actual)),
            LabelOperator::Exists => actual.is_some(),
            LabelOperator::DoesNotExist => actual.is_none(),
        }
    }
}

impl FieldRequirement {
    fn matches(&self, object: &impl HasFields) -> bool {
        let found = follow(object, self.path.iter().map(String::as_str));
        let is_equal = match found {
            None | Some(Value::Null) => self.value == self.default,
            Some(Value::String(actual)) => *actual == self.value,
            // Numbers and booleans are compared as text, because field selectors are text.
            Some(other) => format!("{other}") == self.value,
        };
        is_equal == self.wants_equal
    }
}

/// Splits at commas outside parentheses.
fn split_requirements(text: &str) -> Vec<&str> {
    let mut depth = 0_usize;
    text.split(|character| {
        match character {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        character == ',' && depth == 0
    })
    .map(str::trim)
    .filter(|part| !part.is_empty())
    .collect()
}

fn parse_label(text: &str) -> Result<LabelRequirement, StatusError> {
    let (key, operator) = if let Some(key) = text.strip_prefix('!') {
        (key, LabelOperator::DoesNotExist)
    } else if let Some((head, list)) = text.split_once('(') {
        parse_set(text, head, list)?
    } else if let Some((key, value)) = text.split_once("!=") {
        (key, LabelOperator::NotIn(vec![value.trim().to_owned()]))
    } else if let Some((key, value)) = text.split_once("==").or_else(|| text.split_once('=')) {
        (key, LabelOperator::In(vec![value.trim().to_owned()]))
    } else {
        (text, LabelOperator::Exists)
    };
    let key = key.trim();
    if key.is_empty() || key.contains(char::is_whitespace) || key.contains(['<', '>', ')']) {
        return Err(unparsable("label", text));
    }
    Ok(LabelRequirement {
        key: key.to_owned(),
        operator,
    })
}

fn parse_set<'a>(text: &str, head: &'a str, list: &str) -> Result<(&'a str, LabelOperator), StatusError> {
    let values: Vec<String> = list
        .trim_end()
        .strip_suffix(')')
        .ok_or_else(|| unparsable("label", text))?
        .split(',')
        .map(|value| value.trim().to_owned())
        .collect();
    let head = head.trim_end();
    if let Some(key) = head.strip_suffix(" notin") {
        Ok((key, LabelOperator::NotIn(values)))
    } else if let Some(key) = head.strip_suffix(" in") {
        Ok((key, LabelOperator::In(values)))
    } else {
        Err(unparsable("label", text))
    }
}

fn parse_field(text: &str) -> Result<FieldRequirement, StatusError> {
    let (path, value, wants_equal) = if let Some((path, value)) = text.split_once("!=") {
        (path, value, false)
    } else if let Some((path, value)) = text.split_once("==").or_else(|| text.split_once('=')) {
        (path, value, true)
    } else {
        return Err(unparsable("field", text));
    };
    Ok(FieldRequirement {
        path: path_of(path.trim()),
        default: String::new(),
        value: value.trim().to_owned(),
        wants_equal,
    })
}

fn path_of(field: &str) -> Vec<String> {
    field.split('.').map(str::to_owned).collect()
}

fn unparsable(what: &str, text: &str) -> StatusError {
    StatusError::bad_request(format!("unable to parse {what} requirement \"{text}\""))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn requirements_select_as_kubernetes_defines_them() {
        let object = json!({
            "metadata": {"name": "web", "labels": {"app": "web", "tier": "front"}},
            "status": {"phase": "Running", "replicas": 2},
        });
        let cases = [
            ("", "", true),
            ("app=web", "", true),
            ("app==web,tier!=back", "", true),
            ("app=web,tier=back", "", false),
            ("tier in (front, back)", "", true),
            ("tier notin (front,back)", "", false),
            ("zone notin (a)", "", true),
            ("zone!=a", "", true),
            ("app", "", true),
            ("!app", "", false),
            ("!zone", "", true),
            ("", "metadata.name=web", true),
            ("", "metadata.name!=web", false),
            ("", "status.phase=Running,status.replicas=2", true),
            ("", "spec.nodeName=", true),
            ("", "spec.nodeName=a", false),
        ];
        for (labels, fields, expected) in cases {
            let selector = Selector::parse(labels, fields).expect("a valid selector");
            assert_eq!(selector.matches(&object), expected, "labels={labels} fields={fields}");
        }
    }

    #[test]
    fn fields_have_names_and_defaults_of_their_kind() {
        let node = ResourceKind::cluster_scoped("", "v1", "Node", "nodes");
        let selects = |fields: &str, object: Value| {
            Selector::of(&node, "", fields)
                .expect("a selectable field")
                .matches(&object)
        };
        assert!(selects("spec.unschedulable=false", json!({"spec": {}})));
        assert!(!selects(
            "spec.unschedulable=false",
            json!({"spec": {"unschedulable": true}})
        ));
        assert_eq!(
            Selector::of(&node, "", "spec.podCIDR=a")
                .expect_err("not selectable")
                .code,
            400
        );
    }

    #[test]
    fn a_requirement_that_cannot_be_parsed_is_a_bad_request() {
        for labels in ["a in b", "a in (b", "a b", "=x", "replicas > 3"] {
            let error = Selector::parse(labels, "").expect_err(labels);
            assert_eq!(error.code, 400, "{labels}");
        }
        assert_eq!(Selector::parse("", "metadata.name").expect_err("no operator").code, 400);
    }
}
