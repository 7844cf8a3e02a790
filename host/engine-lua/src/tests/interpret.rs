use std::sync::Arc;

use bulkhead_core::call::{Call, InterpretCall, Interpretation, Operation, Reply};
use bulkhead_core::manifest::EntryPoint;
use bulkhead_core::model::AggregatedStatusItem;
use bulkhead_core::policy::FaultKind;
use serde_json::{Value, json};

use super::{interpret, load, now, value_of};

/// Checks the result of `GetReplicas`. `expected` has the replicas and the requirements, or the text of a bad reply.
fn check_replicas(result: &str, expected: Result<(i32, Value), &str>) {
    let script = format!("function GetReplicas(obj) return {result} end");
    let actual = interpret(
        &script,
        EntryPoint::Replicas,
        Operation::Replicas {
            object: &Arc::new(json!({})),
        },
    );
    let actual = actual.map(|interpretation| match interpretation {
        Interpretation::Replicas { replicas, requirements } => (replicas, serde_json::to_value(requirements).unwrap()),
        other => panic!("{other:?}"),
    });
    let expected = expected.map_err(|text| (FaultKind::BadReply, format!("test.lua:1: GetReplicas returned {text}")));
    assert_eq!(
        actual.map_err(|fault| (fault.kind, fault.message)),
        expected,
        "{result}"
    );
}

#[test]
fn replicas_and_requirements() {
    check_replicas("3", Ok((3, Value::Null)));
    check_replicas("3.7", Ok((3, Value::Null)));
    check_replicas("-1.5, nil, 'surplus'", Ok((-1, Value::Null)));
    check_replicas("1, {}", Ok((1, json!({}))));
    let requirements = "{resourceRequest = {cpu = 0.5, memory = '1024Mi'}, unknown = 1, namespace = 'ns', \
                        nodeClaim = {nodeSelector = {a = 'b'}, tolerations = {{key = 'k'}}, other = 1}}";
    let expected = json!({
        "resourceRequest": {"cpu": "500m", "memory": "1Gi"},
        "namespace": "ns",
        "nodeClaim": {"nodeSelector": {"a": "b"}, "tolerations": [{"key": "k"}]},
    });
    check_replicas(&format!("2, {requirements}"), Ok((2, expected)));
    check_replicas("nil", Err("nil, not a number"));
    check_replicas("'3'", Err("a string, not a number"));
    check_replicas("1e10", Err("10000000000, which is not a number of replicas"));
    check_replicas("1, 2", Err("a number as requirements, not a table"));
    check_replicas("1, {1, 2}", Err("a list as requirements, not a table"));
    check_replicas(
        "1, {nodeClaim = {nodeSelector = {a = 1}}}",
        Err("a number in nodeSelector, not a string"),
    );
    let malformed = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";
    check_replicas(
        "1, {resourceRequest = {cpu = 'x'}}",
        Err(&format!("cpu of \"x\": {malformed}")),
    );
}

#[test]
fn revising_keeps_empty_objects_and_lists_of_the_template() {
    let script = "function ReviseReplica(obj, replicas)
        obj.spec.replicas = replicas
        obj.spec.new = {}
        obj.spec.emptied = {}
        return obj
    end";
    let object = json!({
        "kind": "Widget",
        "spec": {
            "replicas": 1, "emptied": [1], "args": [], "emptyDir": {}, "half": 0.5,
            "list": [{"a": []}, {"a": {}}], "a.b|c\\d:e": {},
        },
    });
    let expected = json!({
        "kind": "Widget",
        "spec": {
            "replicas": 7, "args": [], "emptyDir": {}, "half": 0.5,
            "list": [{"a": {}}, {"a": {}}], "a.b|c\\d:e": {},
        },
    });
    let actual = interpret(
        script,
        EntryPoint::Revise,
        Operation::Revise {
            object: &Arc::new(object),
            replicas: 7,
        },
    );
    assert_eq!(actual, Ok(Interpretation::Object(expected)));
}

#[test]
fn an_object_needs_a_kind() {
    let check = |result: &str, expected: &str| {
        let script = format!("function ReviseReplica(obj, replicas) return {result} end");
        let object = Arc::new(json!({"kind": "Widget"}));
        let actual = interpret(
            &script,
            EntryPoint::Revise,
            Operation::Revise {
                object: &object,
                replicas: 1,
            },
        );
        let fault = actual.expect_err(result);
        assert_eq!(fault.kind, FaultKind::BadReply);
        assert_eq!(
            fault.message,
            format!("test.lua:1: ReviseReplica returned {expected}"),
            "{result}"
        );
    };
    check("nil", "nil, not an object");
    check("{1}", "a list, not an object");
    check("{}", "an object without kind");
    check("{kind = ''}", "an object without kind");
}

#[test]
fn statuses_lose_empty_members_as_in_karmada() {
    let check = |expression: &str, expected: Value| assert_eq!(value_of(expression, &json!({"l": []})), Ok(expected));
    check("{a = 1, b = {}, c = {d = {}}}", json!({"a": 1, "c": {}}));
    check("{1, {}, 3}", json!([1, 3]));
    check("obj.l", Value::Null);
    check("{3.0, 0.5, -0.0, 2^53}", json!([3, 0.5, 0, 9_007_199_254_740_992_i64]));
}

#[test]
fn values_that_are_no_json_are_bad_replies() {
    let check = |expression: &str, expected: &str| {
        let fault = value_of(expression, &json!({})).expect_err(expression);
        let expected = format!("test.lua:2: ReflectStatus returned a bad value: v: {expected}");
        assert_eq!(
            (fault.kind, fault.message),
            (FaultKind::BadReply, expected),
            "{expression}"
        );
    };
    check("{1, nil, 3}", "a list has a hole or an index that is not a position");
    check("{[0] = 1}", "a list has a hole or an index that is not a position");
    check("{[1.5] = 1}", "a list has a hole or an index that is not a position");
    check("{1, a = 2}", "a table has keys of different or impossible types");
    check("{[true] = 1}", "a table has keys of different or impossible types");
    check("1/0", "inf is not a JSON number");
    check("print", "a function cannot be returned");
}

#[test]
fn the_same_table_may_occur_twice() {
    let shared = "(function() local t = {x = 1} return {a = t, b = t} end)()";
    assert_eq!(value_of(shared, &json!({})), Ok(json!({"a": {"x": 1}, "b": {"x": 1}})));
}

#[test]
fn a_status_is_a_table() {
    let check = |result: &str, expected: Result<Value, &str>| {
        let script = format!("function ReflectStatus(obj) return {result} end");
        let actual = interpret(
            &script,
            EntryPoint::ReflectStatus,
            Operation::ReflectStatus {
                object: &Arc::new(json!({})),
            },
        );
        let expected = expected
            .map(|status| Interpretation::Status(Some(status)))
            .map_err(str::to_owned);
        assert_eq!(actual.map_err(|fault| fault.message), expected, "{result}");
    };
    check("{}", Ok(json!({})));
    check("{1}", Ok(json!([1])));
    check("nil", Err("test.lua:1: ReflectStatus returned nil, not a table"));
    check("true", Err("test.lua:1: ReflectStatus returned a boolean, not a table"));
}

#[test]
fn aggregation_gets_the_items_or_nil() {
    let script = "function AggregateStatus(desiredObj, statusItems)
        if statusItems == nil then desiredObj.status = {ready = -1} return desiredObj end
        local ready = 0
        for i = 1, #statusItems do
            if statusItems[i].status ~= nil and statusItems[i].applied then ready = ready + statusItems[i].status.ready end
        end
        desiredObj.status = {ready = ready, first = statusItems[1].clusterName, none = {}}
        return desiredObj
    end";
    let object = Arc::new(json!({"kind": "Widget", "spec": {"empty": {}}}));
    let item = |cluster: &str, applied: bool| AggregatedStatusItem {
        cluster_name: cluster.to_owned(),
        status: Some(json!({"ready": 2})),
        applied,
        ..AggregatedStatusItem::default()
    };
    let check = |items: &[AggregatedStatusItem], expected: Value| {
        let operation = Operation::AggregateStatus { object: &object, items };
        let actual = interpret(script, EntryPoint::AggregateStatus, operation);
        assert_eq!(
            actual,
            Ok(Interpretation::Object(
                json!({"kind": "Widget", "spec": {}, "status": expected})
            ))
        );
    };
    check(
        &[item("m1", true), item("m2", false), item("m3", true)],
        json!({"ready": 4, "first": "m1"}),
    );
    check(&[], json!({"ready": -1}));
}

#[test]
fn an_operation_without_function_has_no_answer() {
    let policy = load("function GetReplicas(obj) return 1 end", EntryPoint::Replicas);
    let operation = Operation::ReflectStatus {
        object: &Arc::new(json!({})),
    };
    assert_eq!(
        policy.call(&Call::Interpret(InterpretCall { operation, now: now() })),
        Ok(Reply::Interpret(None))
    );
}
