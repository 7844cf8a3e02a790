//! Sets of fields, in the form of `fieldsV1`.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

/// A tree of fields: `is_member` for the field itself and the fields below it.
///
/// Path elements have their wire format: `f:name`, `k:{"name":"a"}`, `v:"x"`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct FieldSet {
    pub(super) is_member: bool,
    pub(super) children: BTreeMap<String, FieldSet>,
}

impl FieldSet {
    /// Returns a set of the field itself only.
    pub(super) fn leaf() -> Self {
        Self {
            is_member: true,
            children: BTreeMap::new(),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        !self.is_member && self.children.is_empty()
    }

    /// Adds the fields below a path element. An empty set is not added.
    pub(super) fn insert(&mut self, element: String, below: Self) {
        if !below.is_empty() {
            self.children.insert(element, below);
        }
    }

    pub(super) fn union(&self, other: &Self) -> Self {
        let mut all = self.clone();
        all.is_member |= other.is_member;
        for (element, below) in &other.children {
            let own = all.children.entry(element.clone()).or_default();
            *own = own.union(below);
        }
        all
    }

    pub(super) fn without(&self, other: &Self) -> Self {
        let mut remaining = Self {
            is_member: self.is_member && !other.is_member,
            children: BTreeMap::new(),
        };
        for (element, below) in &self.children {
            let kept = other
                .children
                .get(element)
                .map_or_else(|| below.clone(), |other| below.without(other));
            remaining.insert(element.clone(), kept);
        }
        remaining
    }

    pub(super) fn common(&self, other: &Self) -> Self {
        let mut both = Self {
            is_member: self.is_member && other.is_member,
            children: BTreeMap::new(),
        };
        for (element, below) in &self.children {
            if let Some(other) = other.children.get(element) {
                both.insert(element.clone(), below.common(other));
            }
        }
        both
    }

    /// Parses `fieldsV1`; invalid path elements are ignored.
    pub(super) fn parse(value: &Value) -> Self {
        let mut set = Self::below(value);
        set.is_member = false;
        set
    }

    fn below(value: &Value) -> Self {
        let mut set = Self::default();
        for (element, below) in value.as_object().into_iter().flatten() {
            if element == "." {
                set.is_member = true;
            } else if let Some(element) = normal(element) {
                set.children.insert(element, Self::below(below));
            }
        }
        set.is_member |= set.children.is_empty();
        set
    }

    /// Returns the set as `fieldsV1`.
    pub(super) fn to_value(&self) -> Value {
        let mut fields = Map::new();
        for (element, below) in &self.children {
            let mut value = below.to_value();
            if below.is_member && !below.children.is_empty() {
                value["."] = json!({});
            }
            fields.insert(element.clone(), value);
        }
        Value::Object(fields)
    }

    /// Returns the paths of all members for error messages: `.spec.containers[name="a"].image`.
    pub(super) fn paths(&self) -> Vec<String> {
        let mut paths = Vec::new();
        self.collect_paths("", &mut paths);
        paths
    }

    fn collect_paths(&self, path: &str, paths: &mut Vec<String>) {
        if self.is_member {
            paths.push(path.to_owned());
        }
        for (element, below) in &self.children {
            below.collect_paths(&format!("{path}{}", shown(element)), paths);
        }
    }
}

/// Normalizes the JSON of a path element.
fn normal(element: &str) -> Option<String> {
    let (sort, rest) = element.split_once(':')?;
    match sort {
        "f" => Some(element.to_owned()),
        "k" | "v" => Some(format!("{sort}:{}", serde_json::from_str::<Value>(rest).ok()?)),
        _ => None,
    }
}

fn shown(element: &str) -> String {
    match element.split_once(':') {
        Some(("k", key)) => {
            let key: Map<String, Value> = serde_json::from_str(key).unwrap_or_default();
            let parts: Vec<String> = key.iter().map(|(name, value)| format!("{name}={value}")).collect();
            format!("[{}]", parts.join(","))
        }
        Some(("v", value)) => format!("[={value}]"),
        Some((_, name)) => format!(".{name}"),
        None => format!(".{element}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_survive_the_wire_and_show_their_paths() {
        let wire = json!({"f:spec": {"f:containers": {"k:{\"name\":\"a\"}": {".": {}, "f:image": {}}}, "f:replicas": {}},
            "f:metadata": {"f:finalizers": {"v:\"x/y\"": {}}}});
        let set = FieldSet::parse(&wire);
        assert_eq!(set.to_value(), wire);
        assert_eq!(
            set.paths(),
            [
                ".metadata.finalizers[=\"x/y\"]",
                ".spec.containers[name=\"a\"]",
                ".spec.containers[name=\"a\"].image",
                ".spec.replicas",
            ]
        );
    }

    #[test]
    fn sets_are_added_and_taken_apart() {
        let set = |wire: Value| FieldSet::parse(&wire);
        let (a, b) = (
            set(json!({"f:a": {}, "f:b": {"f:x": {}}})),
            set(json!({"f:b": {"f:x": {}, "f:y": {}}})),
        );
        assert_eq!(a.union(&b), set(json!({"f:a": {}, "f:b": {"f:x": {}, "f:y": {}}})));
        assert_eq!(a.common(&b), set(json!({"f:b": {"f:x": {}}})));
        assert_eq!(a.without(&b), set(json!({"f:a": {}})));
        assert!(a.without(&a).is_empty());
    }
}
