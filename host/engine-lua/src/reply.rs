//! Parsing of the results of functions with Bulkhead's own conventions. Errors describe the actual result.

use bulkhead_core::call::{EvictionVerdict, FilterVerdict, HealthVerdict, Reason, TaintChange, TaintVerdict};
use bulkhead_core::model::{Health, Taint, TaintEffect};
use serde_json::Value;

/// Returns the name of the Lua type with its article.
pub(crate) fn lua_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "nil",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) | Value::Object(_) => "a table",
    }
}

fn unexpected(value: &Value, expected: &str) -> String {
    match value {
        Value::String(text) => format!("{text:?}, not {expected}"),
        other => format!("{}, not {expected}", lua_type(other)),
    }
}

/// Returns the elements of a list; an empty table is an empty list.
fn elements(value: &Value) -> Result<&[Value], String> {
    match value {
        Value::Array(elements) => Ok(elements),
        Value::Object(members) if members.is_empty() => Ok(&[]),
        Value::Object(_) => Err("a table with keys, not a list".to_owned()),
        other => Err(unexpected(other, "a list")),
    }
}

/// Returns the elements of a list of the given length.
fn elements_for(value: &Value, count: usize) -> Result<&[Value], String> {
    let elements = elements(value)?;
    if elements.len() == count {
        Ok(elements)
    } else {
        Err(format!("a list of {} for {count} clusters", elements.len()))
    }
}

fn numbered<T>((index, result): (usize, Result<T, String>)) -> Result<T, String> {
    result.map_err(|error| format!("as element {}: {error}", index + 1))
}

/// Returns an optional text of a table.
fn text<'a>(table: &'a Value, name: &str) -> Result<&'a str, String> {
    match table.get(name) {
        None => Ok(""),
        Some(Value::String(text)) => Ok(text),
        Some(other) => Err(format!("a table whose {name} is {}", unexpected(other, "a string"))),
    }
}

/// Returns the reason in a table; `code` is the default.
fn reason(table: &Value, code: &str) -> Result<Reason, String> {
    let own = text(table, "reason")?;
    Ok(Reason::new(
        if own.is_empty() { code } else { own },
        text(table, "message")?,
    ))
}

pub(crate) fn health(result: &Value) -> Result<HealthVerdict, String> {
    let expected = "a boolean or a table with a health";
    let (value, table) = match result {
        Value::Bool(_) => (result, &Value::Null),
        Value::Object(members) => (members.get("health").unwrap_or(&Value::Null), result),
        other => return Err(unexpected(other, expected)),
    };
    let health = match value {
        Value::Bool(true) => Health::Healthy,
        Value::Bool(false) => Health::Unhealthy,
        Value::String(text) if text == "Healthy" => Health::Healthy,
        Value::String(text) if text == "Unhealthy" => Health::Unhealthy,
        Value::String(text) if text == "Unknown" => Health::Unknown,
        other => {
            return Err(format!(
                "a table whose health is {}",
                unexpected(other, "a health or a boolean")
            ));
        }
    };
    Ok(HealthVerdict {
        health,
        reason: reason(table, &format!("Script{}", health.as_str()))?,
    })
}

pub(crate) fn cluster_taint(result: &Value) -> Result<TaintVerdict, String> {
    let changes: Result<_, _> = elements(result)?
        .iter()
        .map(taint_change)
        .enumerate()
        .map(numbered)
        .collect();
    Ok(TaintVerdict { changes: changes? })
}

fn taint_change(change: &Value) -> Result<TaintChange, String> {
    let reason = reason(change, "ScriptTaint")?;
    let effect = |taint: &Value| match taint.get("effect").and_then(Value::as_str) {
        Some("NoSchedule") => Ok(TaintEffect::NoSchedule),
        Some("PreferNoSchedule") => Ok(TaintEffect::PreferNoSchedule),
        Some("NoExecute") => Ok(TaintEffect::NoExecute),
        Some("PreferNoExecute") => Ok(TaintEffect::PreferNoExecute),
        _ => Err("a taint without a known effect".to_owned()),
    };
    let key = |taint: &Value| match text(taint, "key")? {
        "" => Err("a taint without a key".to_owned()),
        key => Ok(key.to_owned()),
    };
    match (change.get("add"), change.get("remove")) {
        (Some(taint), None) => {
            let value = text(taint, "value")?.to_owned();
            let taint = Taint {
                key: key(taint)?,
                value,
                effect: effect(taint)?,
                time_added: None,
            };
            Ok(TaintChange::Add { taint, reason })
        }
        (None, Some(taint)) => Ok(TaintChange::Remove {
            key: key(taint)?,
            effect: effect(taint)?,
            reason,
        }),
        _ => Err(unexpected(change, "a table with either add or remove")),
    }
}

pub(crate) fn filter(result: &Value, clusters: usize) -> Result<Vec<FilterVerdict>, String> {
    elements_for(result, clusters)?
        .iter()
        .map(filter_verdict)
        .enumerate()
        .map(numbered)
        .collect()
}

fn filter_verdict(verdict: &Value) -> Result<FilterVerdict, String> {
    let (fit, table) = match verdict {
        Value::Bool(fit) => (*fit, &Value::Null),
        Value::String(text) if text == "abstain" => return Ok(FilterVerdict::Abstain),
        Value::Object(members) => match members.get("fit") {
            Some(Value::Bool(fit)) => (*fit, verdict),
            _ => return Err("a table without a boolean fit".to_owned()),
        },
        other => return Err(unexpected(other, "true, false, \"abstain\" or a table with fit")),
    };
    let reason = reason(table, "ScriptRejected")?;
    Ok(if fit {
        FilterVerdict::Fit
    } else {
        FilterVerdict::Unfit(reason)
    })
}

/// Parses scores. Fractions are truncated, as Karmada does with replicas.
pub(crate) fn score(result: &Value, clusters: usize) -> Result<Vec<i64>, String> {
    let score = |score: &Value| {
        let number = score
            .as_i64()
            .or_else(|| score.as_f64().map(|number| number.trunc() as i64));
        number.ok_or_else(|| unexpected(score, "a number"))
    };
    elements_for(result, clusters)?
        .iter()
        .map(score)
        .enumerate()
        .map(numbered)
        .collect()
}

pub(crate) fn eviction_check(result: &Value) -> Result<EvictionVerdict, String> {
    let (verdict, table) = match result {
        Value::String(_) => (result, &Value::Null),
        Value::Object(members) => (members.get("verdict").unwrap_or(&Value::Null), result),
        other => return Err(unexpected(other, "a verdict or a table with a verdict")),
    };
    match verdict.as_str() {
        Some("release") => Ok(EvictionVerdict::Release(reason(table, "ScriptReleased")?)),
        Some("hold") => {
            let recheck_after_s = table.get("recheckAfterSeconds").map(seconds).transpose()?;
            Ok(EvictionVerdict::Hold {
                reason: reason(table, "ScriptHeld")?,
                recheck_after_s,
            })
        }
        Some("abstain") => Ok(EvictionVerdict::Abstain),
        _ => Err(format!(
            "the verdict {}",
            unexpected(verdict, "\"release\", \"hold\" or \"abstain\"")
        )),
    }
}

fn seconds(value: &Value) -> Result<u32, String> {
    let seconds = value.as_u64().or_else(|| {
        value
            .as_f64()
            .filter(|number| *number >= 0.0)
            .map(|number| number as u64)
    });
    let seconds = seconds.and_then(|seconds| u32::try_from(seconds).ok());
    seconds.ok_or_else(|| "a table whose recheckAfterSeconds is not a number of seconds".to_owned())
}
