//! Evaluation of templates.

use std::cmp::Ordering;

use serde_json::Value;

use super::{Comparison, Node, Operand, PathError, Step, VALUES_MAX};

/// Renders the nodes with `object` as both the root and the current value.
pub(super) fn print(nodes: &[Node], object: &Value) -> Result<String, PathError> {
    let mut text = String::new();
    print_with(nodes, object, object, &mut text)?;
    Ok(text)
}

fn print_with(nodes: &[Node], root: &Value, current: &Value, text: &mut String) -> Result<(), PathError> {
    for node in nodes {
        match node {
            Node::Text(literal) => text.push_str(literal),
            Node::Path(steps) => {
                let words: Vec<_> = walk(steps, root, current)?.into_iter().map(word).collect();
                text.push_str(&words.join(" "));
            }
            Node::Range(steps, body) => {
                for element in walk(steps, root, current)? {
                    print_with(body, root, element, text)?;
                }
            }
        }
    }
    Ok(())
}

/// Formats a value: strings unquoted, whole numbers in plain decimal, everything else as JSON.
fn word(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Number(number) => match number.as_f64() {
            Some(float) if number.is_f64() && float.fract() == 0.0 && float.abs() < 1e15 => format!("{float:.0}"),
            _ => number.to_string(),
        },
        other => other.to_string(),
    }
}

/// Returns the values that a path selects from `object`, without those that are missing. Too many values count as none.
pub(super) fn present<'a>(steps: &[Step], object: &'a Value) -> Vec<&'a Value> {
    select(steps, object, object, true).unwrap_or_default()
}

fn walk<'a>(steps: &[Step], root: &'a Value, current: &'a Value) -> Result<Vec<&'a Value>, PathError> {
    select(steps, root, current, false)
}

fn select<'a>(
    steps: &[Step],
    root: &'a Value,
    current: &'a Value,
    allow_missing: bool,
) -> Result<Vec<&'a Value>, PathError> {
    let mut values = vec![current];
    // After a recursive descent, a field may be missing from some of the values.
    let mut lenient = allow_missing;
    for step in steps {
        let mut next = Vec::new();
        for value in values {
            match take(step, root, value, &mut next) {
                Err(PathError::Missing(_)) if lenient => {}
                result => result?,
            }
            if next.len() > VALUES_MAX {
                return Err(PathError::TooMany);
            }
        }
        lenient = allow_missing || *step == Step::Descend;
        values = next;
    }
    Ok(values)
}

fn take<'a>(step: &Step, root: &'a Value, value: &'a Value, into: &mut Vec<&'a Value>) -> Result<(), PathError> {
    match step {
        Step::Root => into.push(root),
        Step::Field(name) => into.push(value.get(name).ok_or_else(|| PathError::Missing(name.clone()))?),
        Step::Wildcard => into.extend(children(value)),
        Step::Descend => descend(value, into)?,
        Step::Index(index) => {
            let items = value.as_array().map(Vec::as_slice).unwrap_or_default();
            let item = position(*index, items.len()).and_then(|position| items.get(position));
            into.push(item.ok_or_else(|| PathError::Missing(format!("[{index}]")))?);
        }
        Step::Slice(from, to, by) => {
            let items = value.as_array().map(Vec::as_slice).unwrap_or_default();
            let end = |edge: i64| position(edge, items.len()).unwrap_or(if edge < 0 { 0 } else { items.len() });
            let (from, to) = (from.map_or(0, end), to.map_or(items.len(), end));
            let by = usize::try_from(by.unwrap_or(1)).unwrap_or(0).max(1);
            into.extend(items.iter().take(to).skip(from).step_by(by));
        }
        Step::Union(steps) => {
            for step in steps {
                take(step, root, value, into)?;
            }
        }
        Step::Filter(left, right) => {
            into.extend(
                children(value)
                    .into_iter()
                    .filter(|element| holds(left, right.as_ref(), root, element)),
            );
        }
    }
    Ok(())
}

/// Resolves an index; a negative index counts from the end.
fn position(index: i64, length: usize) -> Option<usize> {
    let length = i64::try_from(length).ok()?;
    let index = if index < 0 { index.checked_add(length)? } else { index };
    usize::try_from(index).ok().filter(|_| index < length)
}

fn children(value: &Value) -> Vec<&Value> {
    match value {
        Value::Array(items) => items.iter().collect(),
        Value::Object(members) => members.values().collect(),
        _ => Vec::new(),
    }
}

fn descend<'a>(value: &'a Value, into: &mut Vec<&'a Value>) -> Result<(), PathError> {
    if into.len() > VALUES_MAX {
        return Err(PathError::TooMany);
    }
    into.push(value);
    children(value).into_iter().try_for_each(|child| descend(child, into))
}

/// Evaluates a filter; a path without a value makes it false.
fn holds(left: &Operand, right: Option<&(Comparison, Operand)>, root: &Value, element: &Value) -> bool {
    let Some(left) = operand(left, root, element) else {
        return false;
    };
    let Some((comparison, right)) = right else { return true };
    let Some(right) = operand(right, root, element) else {
        return false;
    };
    let order = match (left, right) {
        (Value::String(left), Value::String(right)) => Some(left.cmp(right)),
        (Value::Number(left), Value::Number(right)) => left
            .as_f64()
            .zip(right.as_f64())
            .and_then(|(left, right)| left.partial_cmp(&right)),
        (left, right) => (left == right).then_some(Ordering::Equal),
    };
    match comparison {
        Comparison::Equal => order == Some(Ordering::Equal),
        Comparison::NotEqual => order != Some(Ordering::Equal),
        Comparison::Less => order == Some(Ordering::Less),
        Comparison::LessOrEqual => matches!(order, Some(Ordering::Less | Ordering::Equal)),
        Comparison::Greater => order == Some(Ordering::Greater),
        Comparison::GreaterOrEqual => matches!(order, Some(Ordering::Greater | Ordering::Equal)),
    }
}

fn operand<'a>(operand: &'a Operand, root: &'a Value, element: &'a Value) -> Option<&'a Value> {
    match operand {
        Operand::Literal(value) => Some(value),
        Operand::Path(steps) => walk(steps, root, element).ok()?.into_iter().next(),
    }
}
