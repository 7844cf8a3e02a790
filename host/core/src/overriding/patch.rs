//! JSON patches of overriders: add, remove and replace, with the extensions of Karmada's library
//! (`github.com/evanphx/json-patch/v5`).
//!
//! None of the operations copies within the document, so the size of a result is bounded by those of document and
//! patch.

use json_patch::jsonptr::{PointerBuf, Token};
use json_patch::{AddOperation, PatchOperation, RemoveOperation, ReplaceOperation};
use serde_json::Value;

use crate::model::{FieldPatchOperation, OverriderOperator, PlaintextOverrider};

/// Maximum number of operations of one patch, as Kubernetes' API server has it.
const OPERATIONS_MAX: usize = 10_000;

/// Operation of a patch.
pub(super) struct Operation<'a> {
    operator: OverriderOperator,
    path: &'a str,
    value: &'a Value,
}

impl<'a> From<&'a PlaintextOverrider> for Operation<'a> {
    fn from(overrider: &'a PlaintextOverrider) -> Self {
        Self {
            operator: overrider.operator,
            path: &overrider.path,
            value: &overrider.value,
        }
    }
}

impl<'a> From<&'a FieldPatchOperation> for Operation<'a> {
    fn from(operation: &'a FieldPatchOperation) -> Self {
        Self {
            operator: operation.operator,
            path: &operation.sub_path,
            value: &operation.value,
        }
    }
}

/// Applies operations in order. An error names the operation as an item of `list`, and leaves the document half
/// changed.
pub(super) fn apply(document: &mut Value, operations: &[Operation<'_>], list: &str) -> Result<(), String> {
    let count = operations.len();
    if count > OPERATIONS_MAX {
        return Err(format!("{list} has {count} operations; the limit is {OPERATIONS_MAX}"));
    }
    for (index, operation) in operations.iter().enumerate() {
        apply_one(document, operation).map_err(|reason| format!("{list}[{index}]: {reason}"))?;
    }
    Ok(())
}

fn apply_one(document: &mut Value, operation: &Operation<'_>) -> Result<(), String> {
    let Operation { operator, path, value } = *operation;
    let pointer = resolve(document, path, operator)?;
    let (verb, operation) = match operator {
        OverriderOperator::Add => {
            let value = value.clone();
            ("add", PatchOperation::Add(AddOperation { path: pointer, value }))
        }
        OverriderOperator::Remove => ("remove", PatchOperation::Remove(RemoveOperation { path: pointer })),
        OverriderOperator::Replace => {
            let value = value.clone();
            (
                "replace",
                PatchOperation::Replace(ReplaceOperation { path: pointer, value }),
            )
        }
    };
    json_patch::patch_unsafe(document, std::slice::from_ref(&operation))
        .map_err(|_| format!("cannot {verb} {path:?}: the path does not exist"))
}

/// Returns the pointer of a path in which negative indices, which count from the end of a list, are resolved. For
/// `add`, -1 is the place behind the last item.
fn resolve(document: &Value, path: &str, operator: OverriderOperator) -> Result<PointerBuf, String> {
    let pointer = PointerBuf::parse(path).map_err(|error| format!("{path:?} is no JSON pointer: {error}"))?;
    if !path.contains("/-") {
        return Ok(pointer);
    }
    let count = pointer.count();
    let (mut resolved, mut at) = (PointerBuf::new(), Some(document));
    for (index, token) in pointer.tokens().enumerate() {
        let text = token.decoded();
        let from_end = text.strip_prefix('-').and_then(|digits| digits.parse::<usize>().ok());
        let token = match (at, from_end) {
            (Some(Value::Array(items)), Some(from_end)) => {
                let behind = usize::from(operator == OverriderOperator::Add && index + 1 == count);
                let place = (items.len() + behind).checked_sub(from_end);
                let place = place.ok_or_else(|| format!("{path:?}: the list has {} items", items.len()))?;
                Token::from(place)
            }
            _ => Token::new(text),
        };
        at = at.and_then(|value| match value {
            Value::Array(items) => items.get(token.decoded().parse::<usize>().ok()?),
            Value::Object(fields) => fields.get(&*token.decoded()),
            _ => None,
        });
        resolved.push_back(token);
    }
    Ok(resolved)
}
