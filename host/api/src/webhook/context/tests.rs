use std::sync::Arc;

use bulkhead_core::call::{HealthCall, InterpretCall};
use bulkhead_core::model::AggregatedStatusItem;
use bulkhead_core::time::Time;

use super::*;

fn widget() -> Arc<Value> {
    Arc::new(json!({
        "apiVersion": "example.io/v1", "kind": "Widget", "metadata": {"name": "x", "namespace": "ns"},
        "spec": {"replicas": 3},
    }))
}

fn interpret(operation: Operation<'_>) -> Call<'_> {
    Call::Interpret(InterpretCall {
        operation,
        now: Time::from_millis(0),
    })
}

fn check(call: &Call<'_>, response: Value, expected: Result<Reply, &str>) {
    let mut response = response;
    if response.get("uid").is_none() {
        response["uid"] = json!("u");
    }
    let body = json!({"apiVersion": API_VERSION, "kind": KIND, "response": response});
    let actual = reply(call, "u", body.to_string().as_bytes()).map_err(|error| error.to_string());
    assert_eq!(actual, expected.map_err(str::to_owned), "{body}");
}

#[test]
fn a_request_carries_what_the_operation_is_about() {
    let object = widget();
    let check = |call: &Call<'_>, expected: Value| {
        let mut sent = request(call, "u").unwrap()["request"].take();
        let kind = json!({"group": "example.io", "version": "v1", "kind": "Widget"});
        for (name, value) in [
            ("uid", json!("u")),
            ("kind", kind),
            ("name", json!("x")),
            ("namespace", json!("ns")),
        ] {
            assert_eq!(sent.as_object_mut().unwrap().remove(name), Some(value));
        }
        assert_eq!(sent, expected);
    };
    let health = Call::Health(HealthCall {
        object: &object,
        now: Time::from_millis(0),
    });
    check(
        &health,
        json!({"operation": "InterpretHealth", "object": *object, "replicas": 0}),
    );
    let revise = interpret(Operation::Revise {
        object: &object,
        replicas: 5,
    });
    check(
        &revise,
        json!({"operation": "ReviseReplica", "object": *object, "replicas": 5}),
    );
    let observed = Arc::new(json!({"spec": {}}));
    let retain = interpret(Operation::Retain {
        desired: &object,
        observed: &observed,
    });
    let expected = json!({"operation": "Retain", "object": *object, "observedObject": *observed, "replicas": 0});
    check(&retain, expected);
    let items = [AggregatedStatusItem {
        cluster_name: "m1".to_owned(),
        ..Default::default()
    }];
    let aggregate = interpret(Operation::AggregateStatus {
        object: &object,
        items: &items,
    });
    check(
        &aggregate,
        json!({
            "operation": "AggregateStatus", "object": *object, "replicas": 0, "aggregatedStatus": [{"clusterName": "m1"}],
        }),
    );
}

#[test]
fn a_response_without_health_has_no_health() {
    let object = widget();
    let call = Call::Health(HealthCall {
        object: &object,
        now: Time::from_millis(0),
    });
    let verdict = |health: Health| {
        let reason = Reason::new(format!("Webhook{}", health.as_str()), "");
        Ok(Reply::Health(HealthVerdict { health, reason }))
    };
    check(
        &call,
        json!({"successful": true, "healthy": true, "extra": 1}),
        verdict(Health::Healthy),
    );
    check(
        &call,
        json!({"successful": true, "healthy": false}),
        verdict(Health::Unhealthy),
    );
    let invalid = "received invalid webhook response: ";
    let missing = format!("{invalid}webhook returned nil response.healthy");
    check(&call, json!({"successful": true}), Err(&missing));
    check(&call, json!({"successful": true, "healthy": null}), Err(&missing));
    let wrong = format!("{invalid}response.healthy: invalid type: string \"true\", expected a boolean");
    check(&call, json!({"successful": true, "healthy": "true"}), Err(&wrong));
    let refused = json!({"successful": false, "healthy": true, "status": {"code": 403, "message": "nope"}});
    check(
        &call,
        refused,
        Err("webhook call failed, get status code: 403, msg: nope"),
    );
    let silent = format!("{invalid}webhook require response.status when response.successful is false");
    check(&call, json!({"healthy": true}), Err(&silent));
    let other = format!("{invalid}expected response.uid \"u\", got \"other\"");
    check(
        &call,
        json!({"uid": "other", "successful": true, "healthy": true}),
        Err(&other),
    );
}

#[test]
fn an_envelope_may_lack_its_type_but_not_have_another() {
    let object = widget();
    let call = Call::Health(HealthCall {
        object: &object,
        now: Time::from_millis(0),
    });
    let check = |body: &str, fine: bool| {
        assert_eq!(reply(&call, "u", body.as_bytes()).is_ok(), fine, "{body}");
    };
    check(
        r#"{"response": {"uid": "u", "successful": true, "healthy": true}}"#,
        true,
    );
    check(
        r#"{"apiVersion": "v1", "response": {"uid": "u", "successful": true, "healthy": true}}"#,
        false,
    );
    check(
        r#"{"kind": "Pod", "response": {"uid": "u", "successful": true, "healthy": true}}"#,
        false,
    );
    check("", false);
    check("hello", false);
    check("\"hello\"", false);
    check("{}", false);
}

#[test]
fn patches_change_the_object_or_are_errors() {
    let object = widget();
    let call = interpret(Operation::Revise {
        object: &object,
        replicas: 5,
    });
    let object_reply = |object: Value| Ok(Reply::Interpret(Some(Interpretation::Object(object))));
    let patch = |patch: &str| json!({"successful": true, "patchType": "JSONPatch", "patch": patch});
    check(&call, json!({"successful": true}), object_reply(Value::clone(&object)));
    check(&call, patch("W10="), object_reply(Value::clone(&object)));
    // [{"op":"replace","path":"/spec/replicas","value":5}]
    let mut revised = Value::clone(&object);
    revised["spec"]["replicas"] = json!(5);
    check(
        &call,
        patch("W3sib3AiOiJyZXBsYWNlIiwicGF0aCI6Ii9zcGVjL3JlcGxpY2FzIiwidmFsdWUiOjV9XQ=="),
        object_reply(revised),
    );
    // [{"op":"remove","path":"/kind"}]
    let kindless = Err("applying the patch of the webhook: the object no longer has a kind");
    check(&call, patch("W3sib3AiOiJyZW1vdmUiLCJwYXRoIjoiL2tpbmQifV0="), kindless);
    let invalid = "received invalid webhook response: webhook returned ";
    let nil = format!("{invalid}nil response.patchType");
    check(&call, json!({"successful": true, "patch": "W10="}), Err(&nil));
    let empty = format!("{invalid}empty response.patch");
    check(
        &call,
        json!({"successful": true, "patchType": "JSONPatch"}),
        Err(&empty),
    );
    let type_ = format!("{invalid}invalid response.patchType of \"MergePatch\"");
    check(
        &call,
        json!({"successful": true, "patchType": "MergePatch", "patch": "e30="}),
        Err(&type_),
    );
    let bytes = reply(
        &call,
        "u",
        br#"{"response": {"uid": "u", "successful": true, "patchType": "JSONPatch", "patch": "***"}}"#,
    );
    assert!(matches!(bytes, Err(BadAnswer::Invalid(_))), "{bytes:?}");
}

#[test]
fn dependencies_are_checked_and_a_status_has_to_be_there() {
    let object = widget();
    let depend = interpret(Operation::Dependencies { object: &object });
    let missing = "received invalid webhook response: dependencies[0].apiVersion: missing required apiVersion";
    check(
        &depend,
        json!({"successful": true, "dependencies": [{"kind": "Secret", "apiVersion": ""}]}),
        Err(missing),
    );
    let none = Ok(Reply::Interpret(Some(Interpretation::Dependencies(Vec::new()))));
    check(&depend, json!({"successful": true}), none);
    let reflect = interpret(Operation::ReflectStatus { object: &object });
    let status = Ok(Reply::Interpret(Some(Interpretation::Status(Some(json!(3))))));
    check(&reflect, json!({"successful": true, "rawStatus": 3}), status);
    let nil = "received invalid webhook response: webhook returned nil response.rawStatus";
    check(&reflect, json!({"successful": true}), Err(nil));
    let named = json!([{"apiVersion": "v1", "kind": "Secret", "namespace": null, "name": "s", "labelSelector": null}]);
    let reference = DependentObjectReference {
        api_version: "v1".to_owned(),
        kind: "Secret".to_owned(),
        name: "s".to_owned(),
        ..DependentObjectReference::default()
    };
    let found = Ok(Reply::Interpret(Some(Interpretation::Dependencies(vec![reference]))));
    check(&depend, json!({"successful": true, "dependencies": named}), found);
    // The order is that of the webhook, and what is there twice stays twice, as in Karmada.
    let named = |name: &str| json!({"apiVersion": "v1", "kind": "Secret", "name": name});
    let reference = |name: &str| DependentObjectReference {
        api_version: "v1".to_owned(),
        kind: "Secret".to_owned(),
        name: name.to_owned(),
        ..DependentObjectReference::default()
    };
    let (names, given) = (["b", "a", "b"].map(reference), ["b", "a", "b"].map(named));
    let found = Ok(Reply::Interpret(Some(Interpretation::Dependencies(names.into()))));
    check(&depend, json!({"successful": true, "dependencies": given}), found);
    let replicas = interpret(Operation::Replicas { object: &object });
    let nil = "received invalid webhook response: webhook returned nil response.replicas";
    check(&replicas, json!({"successful": true, "replicas": null}), Err(nil));
}

#[test]
fn requirements_and_components_are_decoded_as_by_go() {
    let object = widget();
    let replicas = interpret(Operation::Replicas { object: &object });
    let needed = |cpu: Value| json!({"successful": true, "replicas": 1, "replicaRequirements": {"resourceRequest": {"cpu": cpu}}});
    let half = ReplicaRequirements {
        resource_request: [("cpu".to_owned(), "500m".to_owned())].into(),
        ..ReplicaRequirements::default()
    };
    let interpreted = Interpretation::Replicas {
        replicas: 1,
        requirements: Some(half.clone()),
    };
    check(&replicas, needed(json!(0.5)), Ok(Reply::Interpret(Some(interpreted))));
    let body = json!({"response": {"uid": "u", "successful": true, "replicas": 1, "replicaRequirements": {"resourceRequest": {"cpu": "much"}}}});
    let wrong = reply(&replicas, "u", body.to_string().as_bytes())
        .unwrap_err()
        .to_string();
    assert!(
        wrong.contains("response.replicaRequirements: cpu of \"much\": "),
        "{wrong}"
    );
    let components = interpret(Operation::Components { object: &object });
    let listed = json!([{"replicas": 2, "replicaRequirements": {"resourceRequest": {"cpu": "0.5"}}}, {"name": "b", "replicas": null}]);
    let expected = vec![
        Component {
            name: String::new(),
            replicas: 2,
            replica_requirements: Some(half),
        },
        Component {
            name: "b".to_owned(),
            replicas: 0,
            replica_requirements: None,
        },
    ];
    let expected = Ok(Reply::Interpret(Some(Interpretation::Components(expected))));
    check(&components, json!({"successful": true, "components": listed}), expected);
    let message = "received invalid webhook response: response.components: a component is not an object";
    check(
        &components,
        json!({"successful": true, "components": [3]}),
        Err(message),
    );
}

/// Karmada decodes the whole response before it looks at any field.
#[test]
fn a_field_of_another_operation_has_to_have_its_type_too() {
    let object = widget();
    let call = Call::Health(HealthCall {
        object: &object,
        now: Time::from_millis(0),
    });
    for (name, value) in [
        ("replicas", json!("3")),
        ("replicas", json!(1_i64 << 40)),
        ("patch", json!(3)),
        ("patchType", json!({})),
        ("components", json!({})),
        ("dependencies", json!("none")),
        ("dependencies", json!([{"name": 1}])),
        ("replicaRequirements", json!([])),
        ("status", json!("ok")),
        ("status", json!({"code": "200"})),
    ] {
        let mut response = json!({"uid": "u", "successful": true, "healthy": true});
        response[name] = value;
        let body = json!({"response": response}).to_string();
        let answer = reply(&call, "u", body.as_bytes());
        assert!(
            matches!(&answer, Err(BadAnswer::Invalid(message)) if message.contains(name) || name == "status"),
            "{answer:?}"
        );
    }
    let status = json!({"uid": "u", "successful": true, "healthy": true, "status": {"code": 200}, "rawStatus": 3});
    assert!(reply(&call, "u", json!({"response": status}).to_string().as_bytes()).is_ok());
}
