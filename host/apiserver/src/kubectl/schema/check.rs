//! Validation of values against a structural schema, with the messages of Kubernetes.

use serde_json::{Value, json};

use super::{Schema, formats, join, pattern, type_name};
use crate::cause::Cause;

impl<'a> Schema<'a> {
    /// Validates a value and records the causes of a refusal. A value that equals `old`, the stored one, is valid.
    pub(super) fn check(self, value: &Value, old: Option<&Value>, path: &str, wrong: &mut Vec<Cause>) {
        if value.is_null() || old == Some(value) {
            return;
        }
        if let Some(expected) = self.mistyped(value) {
            let given = type_name(value);
            let why = format!("{path} in body must be of type {expected}: \"{given}\"");
            wrong.push(Cause::mistyped(path, &json!(given), &why));
            return;
        }
        self.check_enumeration(value, path, wrong);
        match value {
            Value::String(text) => self.check_text(value, text, path, wrong),
            Value::Number(_) => self.check_number(value, path, wrong),
            Value::Array(items) => self.check_items(items, old, path, wrong),
            Value::Object(_) => self.check_fields(value, old, path, wrong),
            Value::Null | Value::Bool(_) => {}
        }
        self.check_alternatives(value, path, wrong);
    }

    /// Returns the expected type if the value has another one.
    fn mistyped(self, value: &Value) -> Option<String> {
        if self.is_int_or_string() {
            let fits = value.is_string() || value.is_number();
            return (!fits).then(|| "integer,string".to_owned());
        }
        let types: Vec<&str> = match &self.node["type"] {
            Value::String(one) => vec![one],
            Value::Array(many) => many.iter().filter_map(Value::as_str).collect(),
            _ => return None,
        };
        let fits = |type_: &&str| match *type_ {
            "string" => value.is_string(),
            "integer" => value.is_i64() || value.is_u64() || value.as_f64().is_some_and(|number| number.fract() == 0.0),
            "number" => value.is_number(),
            "boolean" => value.is_boolean(),
            "array" => value.is_array(),
            "object" => value.is_object(),
            _ => true,
        };
        (!types.iter().any(fits)).then(|| types.join(","))
    }

    fn is_int_or_string(self) -> bool {
        self.says("x-kubernetes-int-or-string") || self.node["format"] == "int-or-string"
    }

    fn limit(self, key: &str) -> Option<f64> {
        self.node[key].as_f64()
    }

    fn length(self, key: &str) -> Option<usize> {
        self.node[key].as_u64().and_then(|length| usize::try_from(length).ok())
    }

    fn check_enumeration(self, value: &Value, path: &str, wrong: &mut Vec<Cause>) {
        if let Some(allowed) = self.node["enum"].as_array()
            && !allowed.contains(value)
        {
            wrong.push(Cause::not_supported(path, value, allowed));
        }
    }

    fn check_text(self, value: &Value, text: &str, path: &str, wrong: &mut Vec<Cause>) {
        let length = || text.chars().count();
        if let Some(least) = self.length("minLength").filter(|least| length() < *least) {
            let why = format!("{path} in body should be at least {least} chars long");
            wrong.push(Cause::invalid(path, value, &why));
        }
        if let Some(most) = self.length("maxLength").filter(|most| length() > *most) {
            wrong.push(Cause::too_long(path, most));
        }
        if let Some(pattern) = self.node["pattern"].as_str()
            && !pattern::matches(pattern, text)
        {
            wrong.push(Cause::invalid(
                path,
                value,
                &format!("{path} in body should match '{pattern}'"),
            ));
        }
        if let Some(format) = self.node["format"].as_str()
            && !self.is_int_or_string()
            && !formats::fits(format, text)
        {
            let why = format!("{path} in body must be of type {format}: {value}");
            wrong.push(Cause::mistyped(path, value, &why));
        }
    }

    fn check_number(self, value: &Value, path: &str, wrong: &mut Vec<Cause>) {
        let Some(number) = value.as_f64() else { return };
        let mut note = |why: String| wrong.push(Cause::invalid(path, value, &format!("{path} in body {why}")));
        if let Some(least) = self.limit("minimum") {
            if self.says("exclusiveMinimum") && number <= least {
                note(format!("should be greater than {least}"));
            } else if number < least {
                note(format!("should be greater than or equal to {least}"));
            }
        }
        if let Some(most) = self.limit("maximum") {
            if self.says("exclusiveMaximum") && number >= most {
                note(format!("should be less than {most}"));
            } else if number > most {
                note(format!("should be less than or equal to {most}"));
            }
        }
        if let Some(factor) = self.limit("multipleOf").filter(|factor| *factor > 0.0)
            && (number / factor).fract() != 0.0
        {
            note(format!("should be a multiple of {factor}"));
        }
    }

    fn check_items(self, items: &[Value], old: Option<&Value>, path: &str, wrong: &mut Vec<Cause>) {
        if let Some(least) = self.length("minItems").filter(|least| items.len() < *least) {
            let why = format!("{path} in body should have at least {least} items");
            wrong.push(Cause::invalid(path, &json!(items.len()), &why));
        }
        if let Some(most) = self.length("maxItems").filter(|most| items.len() > *most) {
            wrong.push(Cause::too_many(path, items.len(), most));
        }
        let keys = self.list_keys();
        let before = old
            .and_then(Value::as_array)
            .filter(|_| self.list_type() == Some("map"));
        for (index, item) in items.iter().enumerate() {
            let at = format!("{path}[{index}]");
            let is_same = |other: &&Value| keys.iter().all(|key| other.get(key) == item.get(key));
            if let Some(schema) = self.items() {
                schema.check(item, before.and_then(|before| before.iter().find(is_same)), &at, wrong);
            }
            let is_repeated = match self.list_type() {
                Some("map") if !keys.is_empty() => items[..index].iter().any(|other| is_same(&other)),
                Some("set") => items[..index].contains(item),
                _ => false,
            };
            if is_repeated {
                let named: serde_json::Map<String, Value> = keys
                    .iter()
                    .map(|key| ((*key).to_owned(), item.get(*key).cloned().unwrap_or_default()))
                    .collect();
                let shown = if keys.is_empty() {
                    item.clone()
                } else {
                    Value::Object(named)
                };
                wrong.push(Cause::duplicate(at, &shown));
            }
        }
    }

    fn check_fields(self, value: &Value, old: Option<&Value>, path: &str, wrong: &mut Vec<Cause>) {
        let Some(fields) = value.as_object() else { return };
        if let Some(least) = self.length("minProperties").filter(|least| fields.len() < *least) {
            let why = format!("{path} in body should have at least {least} properties");
            wrong.push(Cause::invalid(path, &json!(fields.len()), &why));
        }
        if let Some(most) = self.length("maxProperties").filter(|most| fields.len() > *most) {
            wrong.push(Cause::too_many(path, fields.len(), most));
        }
        for name in self.node["required"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
        {
            if fields.get(name).is_none_or(Value::is_null) {
                wrong.push(Cause::required(join(path, name), ""));
            }
        }
        for (name, inner) in fields {
            if let Some(schema) = self.field(name) {
                schema.check(inner, old.and_then(|old| old.get(name)), &join(path, name), wrong);
            }
        }
    }

    /// Validates `allOf`, `anyOf`, `oneOf` and `not`. Kubernetes reports them without a field.
    pub(super) fn check_alternatives(self, value: &Value, path: &str, wrong: &mut Vec<Cause>) {
        if self.is_int_or_string() {
            return;
        }
        let causes_of = |schema: &'a Value| {
            let mut causes = Vec::new();
            Schema::new(schema).check(value, None, path, &mut causes);
            causes
        };
        let branches = |key: &str| -> Option<&'a [Value]> {
            self.node[key]
                .as_array()
                .map(Vec::as_slice)
                .filter(|branches| !branches.is_empty())
        };
        let fitting = |branches: &'a [Value]| branches.iter().filter(|&branch| causes_of(branch).is_empty()).count();
        let mut notes = Vec::new();
        if let Some(branches) = branches("anyOf").filter(|&branches| fitting(branches) == 0) {
            // A single alternative is as good as the schema itself.
            match branches {
                [only] => wrong.extend(causes_of(only)),
                _ => notes.push("must validate at least one schema (anyOf)".to_owned()),
            }
        }
        match branches("oneOf").map(fitting) {
            None | Some(1) => {}
            Some(0) => notes.push("must validate one and only one schema (oneOf). Found none valid".to_owned()),
            Some(many) => {
                notes.push(format!(
                    "must validate one and only one schema (oneOf). Found {many} valid alternatives"
                ));
            }
        }
        for branch in branches("allOf").into_iter().flatten() {
            wrong.extend(causes_of(branch));
        }
        if self.node.get("not").is_some_and(|not| causes_of(not).is_empty()) {
            notes.push("must not validate the schema (not)".to_owned());
        }
        wrong.extend(
            notes
                .iter()
                .map(|note| Cause::invalid("<nil>", &json!(""), &format!("\"{path}\" {note}"))),
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(schema: &Value, value: &Value, old: Option<&Value>, expected: &[&str]) {
        let mut wrong = Vec::new();
        Schema::new(schema).check(value, old, "spec", &mut wrong);
        let messages: Vec<String> = wrong
            .iter()
            .map(|cause| format!("{}: {}", cause.field, cause.message))
            .collect();
        assert_eq!(messages, expected, "{schema} {value}");
    }

    #[test]
    fn values_are_refused_with_the_messages_of_kubernetes() {
        let cases = [
            (
                json!({"type": "string", "pattern": "^a+$"}),
                json!("b"),
                "spec: Invalid value: \"b\": spec in body should match '^a+$'",
            ),
            (
                json!({"type": "string", "format": "ipv4"}),
                json!("b"),
                "spec: Invalid value: \"b\": spec in body must be of type ipv4: \"b\"",
            ),
            (
                json!({"type": "string", "minLength": 2}),
                json!("b"),
                "spec: Invalid value: \"b\": spec in body should be at least 2 chars long",
            ),
            (
                json!({"type": "string", "maxLength": 2}),
                json!("bbb"),
                "spec: Too long: may not be more than 2 bytes",
            ),
            (
                json!({"type": "number", "minimum": 1, "exclusiveMinimum": true}),
                json!(1),
                "spec: Invalid value: 1: spec in body should be greater than 1",
            ),
            (
                json!({"type": "integer", "multipleOf": 5}),
                json!(7),
                "spec: Invalid value: 7: spec in body should be a multiple of 5",
            ),
            (
                json!({"type": "array", "maxItems": 1}),
                json!([1, 2]),
                "spec: Too many: 2: must have at most 1 item",
            ),
            (
                json!({"type": "array", "x-kubernetes-list-type": "set"}),
                json!(["a", "a"]),
                "spec[1]: Duplicate value: \"a\"",
            ),
            (
                json!({"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]}),
                json!([{"name": "a", "x": 1}, {"name": "a"}]),
                "spec[1]: Duplicate value: {\"name\":\"a\"}",
            ),
            (
                json!({"type": "object", "oneOf": [{"required": ["a"]}, {"required": ["b"]}]}),
                json!({"a": 1, "b": 1}),
                "<nil>: Invalid value: \"\": \"spec\" must validate one and only one schema (oneOf). Found 2 valid \
                 alternatives",
            ),
            (
                json!({"type": "object", "anyOf": [{"required": ["a"]}, {"required": ["b"]}]}),
                json!({}),
                "<nil>: Invalid value: \"\": \"spec\" must validate at least one schema (anyOf)",
            ),
            (
                json!({"type": "string", "not": {"enum": ["a"]}}),
                json!("a"),
                "<nil>: Invalid value: \"\": \"spec\" must not validate the schema (not)",
            ),
        ];
        for (schema, value, expected) in cases {
            check(&schema, &value, None, &[expected]);
        }
    }

    #[test]
    fn parts_that_do_not_change_are_not_validated_again() {
        let schema = json!({"type": "object", "properties": {
            "old": {"type": "string", "pattern": "^a$"}, "new": {"type": "string", "pattern": "^a$"},
        }});
        let stored = json!({"old": "b"});
        check(&schema, &json!({"old": "b", "new": "a"}), Some(&stored), &[]);
        let message = "spec.new: Invalid value: \"c\": spec.new in body should match '^a$'";
        check(&schema, &json!({"old": "b", "new": "c"}), Some(&stored), &[message]);
    }
}
