use std::sync::Arc;

use bulkhead_core::call::{Call, InterpretCall, Interpretation, Operation};
use bulkhead_core::manifest::EntryPoint;
use bulkhead_core::policy::FaultKind;
use bulkhead_plugin::Engine as _;
use serde_json::{Value, json};

use super::{interpret, now, source};
use crate::{Conversions, LuaEngine, Options};

/// Returns the result of a script's function, or the text of its bad reply.
fn result_of(point: EntryPoint, operation: Operation<'_>, body: &str) -> Result<Interpretation, String> {
    let function = point.function();
    interpret(
        &format!("function {function}(desired, observed) {body} end"),
        point,
        operation,
    )
    .map_err(|fault| {
        assert_eq!(fault.kind, FaultKind::BadReply, "{body}: {fault}");
        let head = format!("test.lua:1: {function} returned ");
        fault
            .message
            .strip_prefix(&head)
            .unwrap_or_else(|| panic!("{fault}"))
            .to_owned()
    })
}

#[test]
fn retaining_keeps_empty_objects_and_lists_of_either_object() {
    let desired = Arc::new(json!({"kind": "Widget", "spec": {"emptyDir": {}, "args": [], "replicas": 1}}));
    let observed = Arc::new(json!({"kind": "Widget", "spec": {"replicas": 5, "affinity": {}}, "status": {"list": []}}));
    let check = |body: &str, expected: Result<Value, &str>| {
        let operation = Operation::Retain {
            desired: &desired,
            observed: &observed,
        };
        let expected = expected.map(Interpretation::Object).map_err(str::to_owned);
        assert_eq!(result_of(EntryPoint::Retain, operation, body), expected, "{body}");
    };
    let kept = json!({"kind": "Widget", "spec": {"emptyDir": {}, "args": [], "replicas": 5, "affinity": {}}});
    let body = "desired.spec.replicas = observed.spec.replicas desired.spec.affinity = observed.spec.affinity
        desired.spec.new = {} return desired";
    check(body, Ok(kept));
    check(
        "return observed",
        Ok(json!({"kind": "Widget", "spec": {"replicas": 5, "affinity": {}}, "status": {"list": []}})),
    );
    check("return nil", Err("nil, not an object"));
    check("return {1}", Err("a list, not an object"));
    check("desired.kind = nil return desired", Err("an object without kind"));
}

#[test]
fn components_are_a_list_or_nil() {
    let object = Arc::new(json!({}));
    let check = |result: &str, expected: Result<Value, &str>| {
        let body = format!("return {result}");
        let actual = result_of(EntryPoint::Components, Operation::Components { object: &object }, &body);
        let actual = actual.map(|interpretation| match interpretation {
            Interpretation::Components(components) => serde_json::to_value(components).unwrap(),
            other => panic!("{other:?}"),
        });
        assert_eq!(actual, expected.map_err(str::to_owned), "{result}");
    };
    check("nil", Ok(json!([])));
    check("{}", Ok(json!([])));
    check(
        "{{name = 'web', replicas = 3, other = 1}}",
        Ok(json!([{"name": "web", "replicas": 3}])),
    );
    check("{{replicas = 2}, {}}", Ok(json!([{"name": "", "replicas": 2}])));
    check(
        "{{name = 'a'}, {name = 'a'}}",
        Ok(json!([{"name": "a", "replicas": 0}, {"name": "a", "replicas": 0}])),
    );
    let needed = "{resourceRequest = {cpu = 0.5}, priorityClassName = 'high', nodeClaim = {nodeSelector = {a = 'b'}}}";
    let expected = json!({"resourceRequest": {"cpu": "500m"}, "priorityClassName": "high", "nodeClaim": {"nodeSelector": {"a": "b"}}});
    // Using the same table twice is not a cycle.
    check(
        &format!(
            "(function() local n = {needed} return {{{{name = 'a', replicaRequirements = n}}, {{name = 'b', replicaRequirements = n}}}} end)()"
        ),
        Ok(json!([
            {"name": "a", "replicas": 0, "replicaRequirements": expected},
            {"name": "b", "replicas": 0, "replicaRequirements": expected},
        ])),
    );
    check("1", Err("a number, not a list of components"));
    check("{name = 'web'}", Err("a table, not a list of components"));
    check("{1}", Err("a component that is a number, not a table with keys"));
    check("{{name = 1}}", Err("a name that is a number, not a string"));
    check("{{replicas = 0.5}}", Err("0.5 as replicas, not a 32-bit integer"));
    check("{{replicas = '3'}}", Err("\"3\" as replicas, not a 32-bit integer"));
    check(
        "{{replicaRequirements = {1}}}",
        Err("a replicaRequirements that is a list, not a table with keys"),
    );
}

#[test]
fn dependencies_are_a_list() {
    let object = Arc::new(json!({}));
    let check = |result: &str, expected: Result<Value, &str>| {
        let body = format!("return {result}");
        let actual = result_of(
            EntryPoint::Dependencies,
            Operation::Dependencies { object: &object },
            &body,
        );
        let actual = actual.map(|interpretation| match interpretation {
            Interpretation::Dependencies(dependencies) => serde_json::to_value(dependencies).unwrap(),
            other => panic!("{other:?}"),
        });
        assert_eq!(actual, expected.map_err(str::to_owned), "{result}");
    };
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "namespace": "ns", "name": "s"});
    check("{}", Ok(json!([])));
    check(
        "{{apiVersion = 'v1', kind = 'Secret', namespace = 'ns', name = 's', other = 1}}",
        Ok(json!([secret])),
    );
    check(
        "require('kube').getPodDependencies({spec = {serviceAccountName = 's'}}, 'ns')",
        Ok(json!([{"apiVersion": "v1", "kind": "ServiceAccount", "namespace": "ns", "name": "s"}])),
    );
    let selector = json!({"apiVersion": "v1", "kind": "Pod", "labelSelector": {"matchLabels": {"app": "web"}}});
    check(
        "{{apiVersion = 'v1', kind = 'Pod', labelSelector = {matchLabels = {app = 'web'}}}}",
        Ok(json!([selector])),
    );
    let both =
        json!({"apiVersion": "v1", "kind": "Pod", "name": "p", "labelSelector": {"matchLabels": {"app": "web"}}});
    check(
        "{{apiVersion = 'v1', kind = 'Pod', name = 'p', labelSelector = {matchLabels = {app = 'web'}}}}",
        Ok(json!([both])),
    );
    check("nil", Ok(json!([])));
    check("'x'", Err("a string, not a list of dependencies"));
    check("{kind = 'Pod'}", Err("a table, not a list of dependencies"));
    check(
        "{{kind = 'Pod', name = 'x'}}",
        Err("a dependency.apiVersion: missing required apiVersion"),
    );
    check(
        "{{apiVersion = 'v1', name = 'x'}}",
        Err("a dependency.kind: missing required kind"),
    );
    let unnamed = "a dependency: dependency can not leave name and labelSelector all empty";
    check("{{apiVersion = 'v1', kind = 'Pod'}}", Err(unnamed));
    let beside = "{{apiVersion = 'v1', kind = 'Pod', name = 'p', labelSelector = {matchExpressions = {{key = 'a', \
                  operator = 'In'}}}}}";
    check(
        beside,
        Err("a dependency.labelSelector.matchExpressions[0].values: In needs a value"),
    );
    check(
        "{{apiVersion = 'v1', kind = 'Pod', name = 1}}",
        Err("a name that is a number, not a string"),
    );
}

#[test]
fn nil_in_place_of_dependencies_is_an_error_with_karmadas_conversions() {
    let engine = LuaEngine::new(Options {
        conversions: Conversions::Karmada,
        ..Options::default()
    });
    let source = source("function GetDependencies(object) end", &[EntryPoint::Dependencies]);
    let policy = engine.load(&source).unwrap_or_else(|error| panic!("{error}")).policy;
    let object = Arc::new(json!({}));
    let operation = Operation::Dependencies { object: &object };
    let fault = policy
        .call(&Call::Interpret(InterpretCall { operation, now: now() }))
        .unwrap_err();
    assert_eq!(fault.kind, FaultKind::BadReply);
    assert_eq!(
        fault.message,
        "test.lua:1: GetDependencies returned nil, not a list of dependencies"
    );
}
