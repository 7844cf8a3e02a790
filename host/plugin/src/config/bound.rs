//! Bound on the cost of validating a configuration against a schema.
//!
//! A schema comes from the author of a plugin. Two references to the same definition, repeated sixty times, take 2^60
//! visits to validate and nine kilobytes to write. The visits are counted before validation. The count for a schema
//! and a value is computed once, however many references lead there.

use std::collections::HashMap;

use serde_json::{Map, Value};

/// Maximum number of schema visits of one validation; each takes well under a microsecond.
const VISITS_MAX: u64 = 1_000_000;
/// Maximum number of counted pairs of schema and value.
const PAIRS_MAX: usize = 100_000;
/// Maximum depth of references and keywords.
const DEPTH_MAX: usize = 256;

/// Keywords with one schema for the same value.
const SAME_ONE: [&str; 4] = ["not", "if", "then", "else"];
/// Keywords with a list of schemas for the same value.
const SAME_LIST: [&str; 3] = ["allOf", "anyOf", "oneOf"];
/// Keywords with named schemas for the same value.
const SAME_NAMED: [&str; 2] = ["dependentSchemas", "dependencies"];
/// Keywords with one schema for each part of the value.
const PARTS_ONE: [&str; 7] = [
    "additionalProperties",
    "unevaluatedProperties",
    "items",
    "additionalItems",
    "unevaluatedItems",
    "contains",
    "propertyNames",
];
/// Keywords whose schemas the validator may evaluate again to describe an error.
const REPEATED: [&str; 6] = ["anyOf", "oneOf", "not", "if", "dependentSchemas", "dependencies"];
/// Keywords for which the validator evaluates the schema a second time.
const UNEVALUATED: [&str; 2] = ["unevaluatedProperties", "unevaluatedItems"];
/// Cost factor of a repeated keyword.
const REPEATS: u64 = 3;

/// Rejects a schema whose validation of the configuration takes too long.
pub(super) fn check(schema: &Value, config: &Value) -> Result<(), String> {
    let mut count = Count {
        root: schema,
        known: HashMap::new(),
        depth: 0,
    };
    let visits = count.visits(schema, config)?;
    if visits > VISITS_MAX {
        return Err(format!(
            "it takes more than {VISITS_MAX} steps to check a configuration; use fewer references"
        ));
    }
    Ok(())
}

struct Count<'a> {
    root: &'a Value,
    /// Visits of a schema at a value; `None` while they are being counted.
    known: HashMap<(*const Value, *const Value), Option<u64>>,
    depth: usize,
}

impl<'a> Count<'a> {
    fn visits(&mut self, schema: &'a Value, value: &'a Value) -> Result<u64, String> {
        let Value::Object(keywords) = schema else { return Ok(1) };
        let pair = (std::ptr::from_ref(schema), std::ptr::from_ref(value));
        match self.known.get(&pair) {
            Some(Some(visits)) => return Ok(*visits),
            Some(None) => return Err("a reference leads back to itself for the same value".to_owned()),
            None => {}
        }
        if self.known.len() >= PAIRS_MAX {
            return Err(format!("it has more than {PAIRS_MAX} schemas for this configuration"));
        }
        if self.depth >= DEPTH_MAX {
            return Err(format!(
                "references and keywords lead more than {DEPTH_MAX} levels deep"
            ));
        }
        self.known.insert(pair, None);
        self.depth += 1;
        let visits = self.of_keywords(keywords, value);
        self.depth -= 1;
        let visits = visits?;
        self.known.insert(pair, Some(visits));
        Ok(visits)
    }

    fn of_keywords(&mut self, keywords: &'a Map<String, Value>, value: &'a Value) -> Result<u64, String> {
        let mut visits: u64 = 1;
        for (keyword, schema) in keywords {
            let keyword = keyword.as_str();
            let cost = self.of_keyword(keyword, schema, value)?;
            let times = if REPEATED.contains(&keyword) { REPEATS } else { 1 };
            visits = visits.saturating_add(cost.saturating_mul(times));
        }
        let is_repeated = UNEVALUATED.iter().any(|keyword| keywords.contains_key(*keyword));
        Ok(if is_repeated {
            visits.saturating_mul(REPEATS)
        } else {
            visits
        })
    }

    fn of_keyword(&mut self, keyword: &str, schema: &'a Value, value: &'a Value) -> Result<u64, String> {
        match (keyword, schema) {
            ("$ref", Value::String(reference)) => match self.target(reference)? {
                Some(target) => self.visits(target, value),
                // The validator reports the missing definition.
                None => Ok(1),
            },
            ("$dynamicRef" | "$recursiveRef", _) => Err(format!("{keyword} is not supported here; use $ref")),
            (_, schema) if SAME_ONE.contains(&keyword) => self.visits(schema, value),
            (_, Value::Array(schemas)) if SAME_LIST.contains(&keyword) => self.sum(schemas, value),
            (_, Value::Object(schemas)) if SAME_NAMED.contains(&keyword) => self.sum(schemas.values(), value),
            ("properties", Value::Object(schemas)) => {
                let Value::Object(fields) = value else { return Ok(0) };
                let parts = schemas
                    .iter()
                    .filter_map(|(name, schema)| Some((schema, fields.get(name)?)));
                self.total(parts)
            }
            // The patterns are not evaluated: each may match every field.
            ("patternProperties", Value::Object(schemas)) => {
                let pairs = schemas
                    .values()
                    .flat_map(|schema| parts(value).map(move |part| (schema, part)));
                self.total(pairs)
            }
            ("prefixItems" | "items", Value::Array(schemas)) => self.total(schemas.iter().zip(parts(value))),
            (_, schema) if PARTS_ONE.contains(&keyword) => self.total(parts(value).map(|part| (schema, part))),
            _ => Ok(0),
        }
    }

    fn sum(&mut self, schemas: impl IntoIterator<Item = &'a Value>, value: &'a Value) -> Result<u64, String> {
        self.total(schemas.into_iter().map(|schema| (schema, value)))
    }

    fn total(&mut self, pairs: impl Iterator<Item = (&'a Value, &'a Value)>) -> Result<u64, String> {
        let mut total: u64 = 0;
        for (schema, value) in pairs {
            total = total.saturating_add(self.visits(schema, value)?);
        }
        Ok(total)
    }

    /// Returns the definition that a reference names. References by URI would need other resolution rules.
    fn target(&self, reference: &str) -> Result<Option<&'a Value>, String> {
        let Some(fragment) = reference.strip_prefix('#') else {
            return Err(format!(
                "$ref {reference:?} does not begin with #; references stay in the schema"
            ));
        };
        if fragment.is_empty() {
            return Ok(Some(self.root));
        }
        if !fragment.starts_with('/') {
            return Err(format!(
                "$ref {reference:?} is an anchor; use a path such as #/$defs/name"
            ));
        }
        if fragment.contains('%') {
            return Err(format!("$ref {reference:?} is percent-encoded; use plain names"));
        }
        Ok(self.root.pointer(fragment))
    }
}

/// Returns the parts of a value that schemas are applied to.
fn parts(value: &Value) -> Box<dyn Iterator<Item = &Value> + '_> {
    match value {
        Value::Object(fields) => Box::new(fields.values()),
        Value::Array(items) => Box::new(items.iter()),
        _ => Box::new(std::iter::empty()),
    }
}

/// Returns false for a schema with an `$id` below the root, which changes the resolution of references.
pub(super) fn has_one_base(schema: &Value) -> bool {
    let mut rest = vec![(schema, 0)];
    while let Some((value, level)) = rest.pop() {
        if level > 0 && value.get("$id").is_some_and(Value::is_string) {
            return false;
        }
        rest.extend(parts(value).map(|part| (part, level + 1)));
    }
    true
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Returns definitions `a0` to `a<levels>`, each of which references the next by `refer`.
    fn chain(levels: usize, refer: impl Fn(&str) -> Value) -> Value {
        let mut definitions = Map::new();
        for level in 0..levels {
            definitions.insert(format!("a{level}"), refer(&format!("#/$defs/a{}", level + 1)));
        }
        definitions.insert(format!("a{levels}"), json!({"type": "object"}));
        json!({"$ref": "#/$defs/a0", "$defs": definitions})
    }

    fn refused(schema: &Value, config: &Value, part: &str) {
        let message = check(schema, config).expect_err("a schema without end");
        assert!(message.contains(part), "no {part:?} in: {message}");
    }

    #[test]
    fn a_schema_whose_references_multiply_is_refused_before_it_is_used() {
        let twice = chain(60, |next| json!({"allOf": [{"$ref": next}, {"$ref": next}]}));
        refused(&twice, &json!({}), "more than 1000000 steps");
        let any = chain(60, |next| json!({"anyOf": [{"$ref": next}]}));
        refused(&any, &json!({}), "more than 1000000 steps");
        let unevaluated = chain(60, |next| json!({"$ref": next, "unevaluatedProperties": false}));
        refused(&unevaluated, &json!({}), "more than 1000000 steps");
        let fields = chain(
            60,
            |next| json!({"properties": {"a": {"allOf": [{"$ref": next}, {"$ref": next}]}}}),
        );
        let deep = (0..40).fold(json!({}), |inner, _| json!({"a": inner}));
        refused(&fields, &deep, "more than 1000000 steps");
        assert_eq!(
            check(&fields, &json!({"a": {}})),
            Ok(()),
            "a configuration that does not go down there"
        );
    }

    #[test]
    fn references_that_lead_nowhere_new_or_out_of_the_schema_are_refused() {
        refused(&json!({"$ref": "#"}), &json!({}), "leads back to itself");
        refused(&json!({"anyOf": [{"$ref": "#"}]}), &json!({}), "leads back to itself");
        refused(&json!({"$ref": "file:///etc/passwd"}), &json!({}), "begin with #");
        refused(&json!({"$ref": "#name", "$anchor": "name"}), &json!({}), "anchor");
        refused(&json!({"$dynamicRef": "#a"}), &json!({}), "$dynamicRef");
        refused(&chain(300, |next| json!({"$ref": next})), &json!({}), "levels deep");
        assert!(!has_one_base(&json!({"$defs": {"a": {"$id": "other"}}})));
        assert!(has_one_base(
            &json!({"$id": "root", "properties": {"$id": {"type": "string"}}})
        ));
    }

    #[test]
    fn ordinary_schemas_pass() {
        let tree = json!({
            "type": "object",
            "properties": {"children": {"type": "array", "items": {"$ref": "#"}}},
            "additionalProperties": false,
        });
        let leaf = json!({"children": []});
        let config = json!({"children": vec![json!({"children": vec![leaf; 50]}); 20]});
        assert_eq!(check(&tree, &config), Ok(()));
        let shared =
            json!({"properties": {"a": {"$ref": "#/$defs/q"}, "b": {"$ref": "#/$defs/q"}}, "$defs": {"q": {}}});
        assert_eq!(check(&shared, &json!({"a": 1, "b": 2})), Ok(()));
    }
}
