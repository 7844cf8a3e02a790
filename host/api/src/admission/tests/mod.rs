//! Requests through [`admit`], by kind.

mod bindings;
mod failover;
mod overrides;
mod policies;

use serde_json::json;

use self::policies::policy;
use super::*;

const NOW: &str = "2023-11-14T22:13:20Z";

/// Runs one request.
fn run(request: &Request<'_>, mut object: Value, options: AdmissionOptions) -> Result<Value, String> {
    admit(request, &mut object, &mut TestContext::default(), options).map_err(|denied| denied.to_string())?;
    Ok(object)
}

/// Test context: ids are `id-1`, `id-2`; a script is valid if it ends with `end`.
#[derive(Default)]
struct TestContext {
    made: usize,
    others: Vec<Value>,
}

impl AdmissionContext for TestContext {
    fn new_id(&mut self) -> String {
        self.made += 1;
        format!("id-{}", self.made)
    }

    fn now(&self) -> Time {
        Time::from_millis(1_700_000_000_999)
    }

    fn others(&self) -> Vec<Value> {
        self.others.clone()
    }

    fn script_error(&self, script: &str) -> Option<String> {
        (!script.ends_with("end")).then(|| "1:1: no end".to_owned())
    }
}

fn create<'a>(group: &'a str, kind: &'a str) -> Request<'a> {
    Request {
        group,
        kind,
        operation: Operation::Create,
        namespace: None,
        old: None,
    }
}

fn merge(base: &mut Value, patch: Value) {
    match (base, patch) {
        (Value::Object(base), Value::Object(patch)) => {
            for (key, value) in patch {
                merge(base.entry(key).or_insert(Value::Null), value);
            }
        }
        (base, patch) => *base = patch,
    }
}

#[test]
fn permanent_ids_are_made_once() {
    let binding = json!({"resource": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "nginx"}});
    let check = |group: &str, kind: &str, label: &str, given: [Option<&str>; 2], operation, expected: Option<&str>| {
        let object = |id: Option<&str>| {
            let spec = match kind {
                "Work" => json!({"workload": {"manifests": []}}),
                "ResourceBinding" | "ClusterResourceBinding" => binding.clone(),
                _ => policy(json!({}))["spec"].take(),
            };
            let mut object = json!({"metadata": {"name": "n", "labels": null}, "spec": spec});
            if let Some(id) = id {
                object["metadata"]["labels"] = json!({label: id});
            }
            object
        };
        let [old, new] = given.map(object);
        let old = (operation == Operation::Update).then_some(&old);
        let request = Request {
            group,
            kind,
            operation,
            namespace: None,
            old,
        };
        let admitted = run(&request, new, AdmissionOptions::default()).unwrap();
        let found = admitted
            .pointer("/metadata/labels")
            .and_then(|labels| labels.get(label))
            .and_then(Value::as_str);
        assert_eq!(found, expected, "{kind} {operation:?} {given:?}");
    };
    for (kind, label) in [
        ("ResourceBinding", keys::RESOURCE_BINDING_ID),
        ("ClusterResourceBinding", keys::CLUSTER_RESOURCE_BINDING_ID),
        ("Work", keys::WORK_ID),
    ] {
        let made_late = (kind == "Work").then_some("id-1");
        let check = |given, operation, expected| check("work.karmada.io", kind, label, given, operation, expected);
        check([None, None], Operation::Create, Some("id-1"));
        check([None, Some("")], Operation::Create, Some("id-1"));
        check([None, Some("a")], Operation::Create, Some("a"));
        check([Some("a"), None], Operation::Update, Some("a"));
        check([Some("a"), Some("a")], Operation::Update, Some("a"));
        check([None, None], Operation::Update, made_late);
    }
    let (kind, label) = ("ClusterPropagationPolicy", keys::CLUSTER_PROPAGATION_POLICY_ID);
    check(
        "policy.karmada.io",
        kind,
        label,
        [None, Some("mine")],
        Operation::Create,
        Some("id-1"),
    );
}

#[test]
fn taint_policies_are_checked() {
    let check = |taints: Value, allow_no_execute_taint_policy, expected: &str| {
        let conditions = json!([{"conditionType": "Ready", "operator": "Whatever", "statusValues": ["False"]}]);
        let object = json!({"metadata": {"name": "p"}, "spec": {"addOnConditions": conditions, "taints": taints}});
        let request = create("policy.karmada.io", "ClusterTaintPolicy");
        let result = run(
            &request,
            object,
            AdmissionOptions {
                allow_no_execute_taint_policy,
                ..AdmissionOptions::default()
            },
        );
        assert_eq!(result.err().unwrap_or_default(), expected);
    };
    let no_schedule = json!({"key": "k", "effect": "NoSchedule"});
    let no_execute = json!({"key": "k", "effect": "NoExecute"});
    check(json!([no_schedule]), false, "");
    check(json!([no_schedule, no_execute]), true, "");
    check(json!([]), true, "spec.taints: Required value: at least one is needed");
    check(
        json!([no_schedule, no_execute]),
        false,
        "spec.taints[1]: Forbidden: NoExecute taints are not allowed unless --allow-no-execute-taint-policy is set",
    );
    check(
        json!([no_schedule, {"key": "k", "effect": "NoSchedule", "value": "v"}]),
        true,
        "spec.taints[0]: Duplicate value: \"taint(k:NoSchedule) already exist\"",
    );
}

#[test]
fn clusters_are_completed() {
    let check = |spec: Value, expected: Value| {
        let object = json!({"metadata": {"name": "member1"}, "spec": spec});
        let admitted = run(
            &create("cluster.karmada.io", "Cluster"),
            object,
            AdmissionOptions::default(),
        )
        .unwrap();
        assert_eq!(admitted["spec"], expected);
    };
    check(
        json!({"syncMode": "Push", "zone": "a", "insecureSkipTLSVerification": true}),
        json!({"syncMode": "Push", "zones": ["a"], "insecureSkipTLSVerification": true}),
    );
    let early = "2020-01-01T00:00:00Z";
    check(
        json!({"syncMode": "Pull", "taints": [
            {"key": "a", "effect": "NoExecute"},
            {"key": "b", "effect": "NoExecute", "timeAdded": early},
            {"key": "c", "effect": "NoSchedule"},
        ]}),
        json!({"syncMode": "Pull", "taints": [
            {"key": "a", "effect": "NoExecute", "timeAdded": NOW},
            {"key": "b", "effect": "NoExecute", "timeAdded": early},
            {"key": "c", "effect": "NoSchedule"},
        ]}),
    );
}

#[test]
fn malformed_clusters_are_refused() {
    let check = |name: &str, patch: Value, expected: &str| {
        let mut spec = json!({"syncMode": "Push"});
        merge(&mut spec, patch);
        let object = json!({"metadata": {"name": name}, "spec": spec});
        match run(
            &create("cluster.karmada.io", "Cluster"),
            object,
            AdmissionOptions::default(),
        ) {
            Ok(_) => assert_eq!(expected, "", "{name}"),
            Err(text) => assert!(
                !expected.is_empty() && text.starts_with(expected),
                "{text}\nis not\n{expected}"
            ),
        }
    };
    check(&"a".repeat(48), json!({}), "");
    check(&"a".repeat(49), json!({}), "metadata.name: Invalid value: ");
    check(
        "Member",
        json!({}),
        "metadata.name: Invalid value: \"Member\": a lowercase RFC 1123 label must",
    );
    check(
        "m",
        json!({"syncMode": "Both"}),
        "spec.syncMode: Invalid value: unknown variant `Both`",
    );
    check(
        "m",
        json!({"zone": "a", "zones": ["b"]}),
        "spec.zone: Invalid value: \"a\"",
    );
    check(
        "m",
        json!({"region": "a/b"}),
        "spec.region: Invalid value: \"a/b\": a valid label must",
    );
    check(
        "m",
        json!({"secretRef": {"namespace": "n"}}),
        "spec.secretRef.name: Required value",
    );
    check(
        "m",
        json!({"impersonatorSecretRef": {"name": "n"}}),
        "spec.impersonatorSecretRef.namespace: Required value",
    );
    check("m", json!({"proxyURL": "socks5://proxy:1080"}), "");
    check(
        "m",
        json!({"proxyURL": "ftp://proxy"}),
        "spec.proxyURL: Invalid value: \"ftp://proxy\": unsupported scheme",
    );
    check(
        "m",
        json!({"proxyURL": "proxy:1080"}),
        "spec.proxyURL: Invalid value: \"proxy:1080\": must be a URL",
    );
    check(
        "m",
        json!({"proxyURL": "http:///path"}),
        "spec.proxyURL: Invalid value: \"http:///path\": must have a host",
    );
    let taint = |key: &str, effect: &str| json!({"key": key, "effect": effect});
    check(
        "m",
        json!({"taints": [taint("a", "NoSchedule"), taint("a", "NoExecute")]}),
        "",
    );
    check(
        "m",
        json!({"taints": [taint("", "NoSchedule")]}),
        "spec.taints[0].key: Invalid value: \"\": name part",
    );
    check(
        "m",
        json!({"taints": [taint("a", "PreferNoSchedule")]}),
        "spec.taints[0].effect: Unsupported value: \"PreferNoSchedule\": supported values: \"NoSchedule\", \"NoExecute\"",
    );
    check(
        "m",
        json!({"taints": [taint("a", "NoExecute"), taint("a", "NoExecute")]}),
        "spec.taints[1]: Duplicate value: ",
    );
}

#[test]
fn what_has_no_rules_passes_and_what_cannot_be_read_does_not() {
    let check = |request: &Request<'_>, object: Value, expected: Result<(), &str>| {
        let result = run(request, object.clone(), AdmissionOptions::default());
        assert_eq!(result.as_ref().map_err(String::as_str), expected.map(|()| &object));
    };
    let odd = json!({"metadata": {}, "spec": 7});
    check(&create("apps", "Deployment"), odd.clone(), Ok(()));
    check(&create("other.io", "PropagationPolicy"), odd.clone(), Ok(()));
    let binding = create("work.karmada.io", "ResourceBinding");
    check(
        &Request {
            operation: Operation::Delete,
            ..binding
        },
        odd,
        Ok(()),
    );
    check(
        &binding,
        json!({"spec": {"resource": {}}}),
        Err("spec.resource.apiVersion: Required value"),
    );
    check(&binding, json!({}), Err("spec: Required value"));
    let customization = create("config.karmada.io", "ResourceInterpreterCustomization");
    check(&customization, json!({"spec": {}}), Err("spec.target: Required value"));
}

#[test]
fn customizations_do_not_conflict_and_have_scripts_that_compile() {
    let customization = |name: &str, kind: &str, rules: Value| {
        let rules: Vec<(String, Value)> = serde_json::from_value::<serde_json::Map<_, _>>(rules)
            .unwrap()
            .into_iter()
            .collect();
        let rules: Value = rules
            .into_iter()
            .map(|(rule, script)| (rule, json!({"luaScript": script})))
            .collect();
        json!({
            "apiVersion": "config.karmada.io/v1alpha1", "kind": "ResourceInterpreterCustomization",
            "metadata": {"name": name},
            "spec": {"target": {"apiVersion": "apps/v1", "kind": kind}, "customizations": rules},
        })
    };
    let stored = customization(
        "stored",
        "Deployment",
        json!({"retention": "end", "dependencyInterpretation": "end"}),
    );
    let check = |name: &str, kind: &str, rules: Value, expected: Option<&str>| {
        let mut around = TestContext {
            made: 0,
            others: vec![stored.clone(), json!({"spec": 1})],
        };
        let request = create("config.karmada.io", "ResourceInterpreterCustomization");
        let mut object = customization(name, kind, rules);
        let admitted = admit(&request, &mut object, &mut around, AdmissionOptions::default());
        assert_eq!(
            admitted.err().map(|denied| denied.to_string()).as_deref(),
            expected,
            "{name} {kind}"
        );
    };
    check("new", "Deployment", json!({"healthInterpretation": "end"}), None);
    check("new", "Deployment", json!({"dependencyInterpretation": "end"}), None);
    check("new", "StatefulSet", json!({"retention": "end"}), None);
    check("stored", "Deployment", json!({"retention": "end"}), None);
    let conflict = "spec.target: conflicting with retention of existing ResourceInterpreterCustomization(stored)";
    check("new", "Deployment", json!({"retention": "other"}), Some(conflict));
    let mistake = "spec.customizations.retention.luaScript: Lua script error: 1:1: no end";
    check("new", "StatefulSet", json!({"retention": "other"}), Some(mistake));
}

#[test]
fn trust_with_a_mistake_is_refused_with_the_field() {
    let check = |spec: Value, expected: &str| {
        let object = json!({"metadata": {"name": "p"}, "spec": spec});
        let actual = run(
            &create("bulkhead.dev", "PluginTrust"),
            object,
            AdmissionOptions::default(),
        )
        .err();
        let actual = actual.unwrap_or_default();
        assert!(
            actual.starts_with(expected) && actual.is_empty() == expected.is_empty(),
            "{actual}\n{expected}"
        );
    };
    let open = || json!({"images": "r.io", "unsigned": true});
    check(json!({"rules": []}), "");
    check(json!({"rules": [open()]}), "");
    check(json!({}), "spec.rules: Invalid value: is missing; write rules: []");
    check(
        json!({"rules": [open(), {"images": "r.io/a"}]}),
        "spec.rules[1]: Invalid value: needs either keys",
    );
    check(
        json!({"rules": [{"images": "r.io", "keys": [{"pem": "x"}]}]}),
        "spec.rules[0].keys[0].pem: Invalid value: is not a public key in PEM",
    );
    check(
        json!({"rules": [open(), open()]}),
        "spec.rules[1].images: Invalid value: \"r.io\" has a rule already",
    );
    check(
        json!({"rules": [], "revoked": [{"digest": "abc"}]}),
        "spec.revoked[0].digest: Invalid value: \"abc\" is not a digest",
    );
}

#[test]
fn plugins_that_make_no_sense_are_refused_with_the_field() {
    let check = |spec: Value, expected: &str| {
        let object = json!({"metadata": {"name": "p"}, "spec": spec});
        let actual = run(&create("bulkhead.dev", "Plugin"), object, AdmissionOptions::default()).err();
        let actual = actual.unwrap_or_default();
        assert!(
            actual.starts_with(expected) && actual.is_empty() == expected.is_empty(),
            "{actual}\n{expected}"
        );
    };
    check(
        json!({"lua": "x", "mode": "shadow", "fallback": {"builtin": "ResourceHealth"}}),
        "",
    );
    check(json!({"wasm": "AGFzbQ=="}), "");
    check(
        json!({}),
        "spec: Invalid value: needs exactly one of wasm, lua and image",
    );
    check(
        json!({"wasm": "?"}),
        "spec: Invalid value: failed to fetch Plugin p spec.wasm: it is not base64",
    );
    check(
        json!({"lua": "x", "mode": "of"}),
        "spec.mode: Invalid value: unknown variant `of`",
    );
    check(
        json!({"lua": "x", "breaker": {"fault": 3}}),
        "spec.breaker: Invalid value: unknown field `fault`, expected one of `faults`",
    );
    check(
        json!({"lua": "x", "sha256": "00"}),
        "spec: Invalid value: sha256 must have 64 hexadecimal digits",
    );
}
