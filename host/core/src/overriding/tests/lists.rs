//! Cases of `commandOverrider` and `argsOverrider`.

use super::*;

const PLACE: &str = "/spec/template/spec/containers/0";

fn overrider(list: &str, container: &str, operator: &str, value: &[&str]) -> Value {
    json!({list: [{"containerName": container, "operator": operator, "value": value}]})
}

#[test]
fn items_are_appended_and_every_occurrence_is_removed() {
    let check = |list: &str, operator: &str, value: &[&str], expected: Value| {
        let (field, overrider) = (list.replace("Overrider", ""), overrider(list, "web", operator, value));
        check(
            &workload("Deployment"),
            overrider,
            &format!("{PLACE}/{field}"),
            Some(expected),
        );
    };
    check("commandOverrider", "add", &["-T", "-q"], json!(["nginx", "-T", "-q"]));
    check("commandOverrider", "add", &[], json!(["nginx"]));
    check("commandOverrider", "remove", &["nginx"], json!([]));
    check("argsOverrider", "remove", &["-g"], json!(["daemon off;"]));
    check("argsOverrider", "remove", &["-x"], json!(["-g", "daemon off;", "-g"]));
    check(
        "argsOverrider",
        "add",
        &["-x"],
        json!(["-g", "daemon off;", "-g", "-x"]),
    );
}

#[test]
fn an_absent_list_starts_empty() {
    let check = |operator: &str, value: &[&str], expected: Value| {
        let place = "/spec/containers/1/args";
        check(
            &workload("Pod"),
            overrider("argsOverrider", "log", operator, value),
            place,
            Some(expected),
        );
    };
    check("add", &["-v"], json!(["-v"]));
    check("remove", &["-v"], json!([]));
}

#[test]
fn an_absent_container_and_another_kind_are_left_alone() {
    for (kind, container) in [("Deployment", "sidecar"), ("Deployment", "init"), ("CronJob", "web")] {
        let object = workload(kind);
        assert_eq!(
            overridden(&object, overrider("argsOverrider", container, "add", &["-v"])),
            Ok(object)
        );
    }
}

#[test]
fn every_container_with_the_name_is_changed() {
    let mut object = workload("Pod");
    object["spec"]["containers"][1]["name"] = json!("web");
    let overriders = overrider("argsOverrider", "web", "add", &["-v"]);
    check(
        &object,
        overriders.clone(),
        "/spec/containers/1/args",
        Some(json!(["-v"])),
    );
    check(&object, overriders, "/spec/containers/0/args/3", Some(json!("-v")));
}

#[test]
fn a_command_of_another_type_is_an_error() {
    let mut object = workload("Pod");
    object["spec"]["containers"][0]["command"] = json!("nginx");
    let overriders = overrider("commandOverrider", "web", "add", &["-v"]);
    fails(
        &object,
        overriders,
        "commandOverrider[0]: command of container \"web\" is a string, not a list",
    );
}
