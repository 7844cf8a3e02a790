use bulkhead_core::call::Reason;
use bulkhead_core::model::Health;
use bulkhead_core::policy::FaultKind;
use serde_json::json;

use super::{fault_of, health_of};

#[test]
fn karmadas_documented_script_works_as_a_folded_scalar() {
    let script = "function InterpretHealth(observedObj) \
                  return observedObj.status.readyReplicas == observedObj.spec.replicas end";
    let object = |ready: i64| json!({"spec": {"replicas": 3}, "status": {"readyReplicas": ready}});
    assert_eq!(
        health_of(script, &object(3)).map(|verdict| verdict.health),
        Ok(Health::Healthy)
    );
    assert_eq!(
        health_of(script, &object(2)).map(|verdict| verdict.health),
        Ok(Health::Unhealthy)
    );
    let fault = health_of(script, &json!({"spec": {}})).expect_err("no status");
    assert_eq!(fault.kind, FaultKind::Trap);
    let cause = "observedObj.status is nil, test it first";
    assert_eq!(
        fault.message,
        format!("test.lua:1: attempt to index nil with 'readyReplicas': {cause}")
    );
}

#[test]
fn health_is_a_boolean_or_a_table() {
    let check = |result: &str, health: Health, code: &str, message: &str| {
        let verdict = health_of(
            &format!("function InterpretHealth(obj) return {result} end"),
            &json!({}),
        )
        .expect(result);
        assert_eq!(
            (verdict.health, verdict.reason),
            (health, Reason::new(code, message)),
            "{result}"
        );
    };
    check("true", Health::Healthy, "ScriptHealthy", "");
    check("false", Health::Unhealthy, "ScriptUnhealthy", "");
    check("{health = true}", Health::Healthy, "ScriptHealthy", "");
    check("{health = 'Unknown'}", Health::Unknown, "ScriptUnknown", "");
    check(
        "{health = 'Unhealthy', reason = 'R', message = 'm'}",
        Health::Unhealthy,
        "R",
        "m",
    );
}

#[test]
fn anything_else_is_a_bad_reply_that_names_what_was_returned() {
    let check = |result: &str, expected: &str| {
        let fault = fault_of(&format!("return {result}"));
        assert_eq!(fault.kind, FaultKind::BadReply, "{result}");
        assert_eq!(
            fault.message,
            format!("test.lua:1: InterpretHealth returned {expected}"),
            "{result}"
        );
    };
    check("nil", "nil, not a boolean or a table with a health");
    check("1", "a number, not a boolean or a table with a health");
    check("'true'", "\"true\", not a boolean or a table with a health");
    check("{}", "a table whose health is nil, not a health or a boolean");
    check(
        "{health = 'healthy'}",
        "a table whose health is \"healthy\", not a health or a boolean",
    );
    check(
        "{health = true, reason = 1}",
        "a table whose reason is a number, not a string",
    );
    check("print", "a bad value: a function cannot be returned");
    check("0/0", "a bad value: NaN is not a JSON number");
}
