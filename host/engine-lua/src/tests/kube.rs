use bulkhead_core::policy::FaultKind;
use serde_json::{Value, json};

use super::value_of;

fn check(expression: &str, expected: Value) {
    assert_eq!(value_of(expression, &json!({})), Ok(expected), "{expression}");
}

fn check_error(expression: &str, expected: &str) {
    let fault = value_of(expression, &json!({})).expect_err(expression);
    assert_eq!(
        (fault.kind, fault.message.as_str()),
        (FaultKind::Trap, expected),
        "{expression}"
    );
}

const MALFORMED: &str = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";

#[test]
fn there_are_exactly_four_functions() {
    let count = "(function() local n = 0 for k, v in pairs(kube) do n = n + 1 end return n end)()";
    check(count, json!(4));
}

#[test]
fn quantities_are_added() {
    check("kube.resourceAdd('100m', '1', '900m')", json!("2"));
    check("kube.resourceAdd()", json!("0"));
    check("kube.resourceAdd('3', nil)", json!("3"));
    check("kube.resourceAdd('1Gi', '1G')", json!("2073741824"));
    check_error(
        "kube.resourceAdd(1)",
        "test.lua:3: bad argument #1 to resourceAdd (string expected, got number)",
    );
    check_error(
        "kube.resourceAdd({})",
        "test.lua:3: bad argument #1 to resourceAdd (string expected, got table)",
    );
    check_error("kube.resourceAdd('')", &format!("cannot parse '': {MALFORMED}"));
    check(
        "select(2, pcall(kube.resourceAdd, 'abc'))",
        json!(format!("cannot parse 'abc': {MALFORMED}")),
    );
}

#[test]
fn quantities_become_numbers() {
    check("kube.getResourceQuantity('250m')", json!(0.25));
    check("kube.getResourceQuantity('1Ki')", json!(1024));
    check("kube.getResourceQuantity(nil)", json!(0));
    check_error(
        "kube.getResourceQuantity()",
        "test.lua:3: getResourceQuantity only accepts one argument",
    );
    check_error(
        "kube.getResourceQuantity('1', '2')",
        "test.lua:3: getResourceQuantity only accepts one argument",
    );
    let negative = "test.lua:3: int approximation unexpectedly returned a negative value: -1";
    check_error("kube.getResourceQuantity('-1')", negative);
    let number = "test.lua:3: bad argument #1 to getResourceQuantity (string expected, got number)";
    check_error("kube.getResourceQuantity(1.5)", number);
}

#[test]
fn requirements_of_a_pod_template() {
    let pod = "{spec = {containers = {{name = 'a', resources = {limits = {cpu = '250m'}}}}, nodeSelector = {a = 'b'}}}";
    let needed = json!({"nodeClaim": {"nodeSelector": {"a": "b"}}, "resourceRequest": {"cpu": "250m"}});
    check(&format!("kube.accuratePodRequirements({pod})"), needed);
    check(
        "type(kube.accuratePodRequirements({spec = {containers = {{name = 'a'}}}}))",
        json!("nil"),
    );
    check_error(
        "kube.accuratePodRequirements()",
        "test.lua:3: getPodRequirements only accepts one argument",
    );
    check_error(
        "kube.accuratePodRequirements({}, 1)",
        "test.lua:3: getPodRequirements only accepts one argument",
    );
    let nil = "test.lua:3: bad argument #1 to accuratePodRequirements (table expected, got nil)";
    check_error("kube.accuratePodRequirements(nil)", nil);
    let text = "test.lua:3: fail to convert lua value to PodTemplateSpec: spec.containers is a string, not a list";
    check_error("kube.accuratePodRequirements({spec = {containers = 'x'}})", text);
}

#[test]
fn dependencies_of_a_pod_template() {
    let account =
        |namespace: &str| format!("kube.getPodDependencies({{spec = {{serviceAccountName = 's'}}}}, {namespace})");
    let reference =
        |namespace: &str| json!([{"apiVersion": "v1", "kind": "ServiceAccount", "name": "s", "namespace": namespace}]);
    check(&account("'ns'"), reference("ns"));
    check(&account("nil"), reference("default"));
    check(&account("5"), reference("5"));
    check(
        &account("''"),
        json!([{"apiVersion": "v1", "kind": "ServiceAccount", "name": "s"}]),
    );
    check("type(kube.getPodDependencies({spec = {}}, 'ns'))", json!("nil"));
    check_error(
        "kube.getPodDependencies({})",
        "test.lua:3: getPodDependencies only accepts two argument",
    );
}
