//! Pods and pod templates.

use serde_json::{Value, json};

use super::names;
use crate::cause::Cause;
use crate::json::{array, text};

const PULL_POLICIES: [&str; 3] = ["Always", "IfNotPresent", "Never"];
const PROTOCOLS: [&str; 3] = ["SCTP", "TCP", "UDP"];
const RESTART_POLICIES: [&str; 3] = ["Always", "OnFailure", "Never"];

/// Validates a pod's spec at `path`.
pub(super) fn check(spec: &Value, path: &str, wrong: &mut Vec<Cause>) {
    let policy = &spec["restartPolicy"];
    if !policy.is_null() && !RESTART_POLICIES.iter().any(|known| policy == known) {
        wrong.push(Cause::not_supported(
            format!("{path}.restartPolicy"),
            policy,
            &RESTART_POLICIES.map(Value::from),
        ));
    }
    let containers = array(spec, "/containers");
    if containers.is_empty() {
        wrong.push(Cause::required(format!("{path}.containers"), ""));
    }
    let mut known = Vec::new();
    for (list, containers) in [
        ("containers", containers),
        ("initContainers", array(spec, "/initContainers")),
    ] {
        for (index, container) in containers.iter().enumerate() {
            let path = format!("{path}.{list}[{index}]");
            check_container(container, &path, wrong);
            let name = text(container, "/name");
            if !name.is_empty() && known.contains(&name) {
                wrong.push(Cause::duplicate(format!("{path}.name"), &json!(name)));
            }
            known.push(name);
        }
    }
    check_volumes(spec, path, wrong);
}

fn check_container(container: &Value, path: &str, wrong: &mut Vec<Cause>) {
    match text(container, "/name") {
        "" => wrong.push(Cause::required(format!("{path}.name"), "")),
        name => {
            let mistakes = names::label(name);
            wrong.extend(
                mistakes
                    .iter()
                    .map(|why| Cause::invalid(format!("{path}.name"), &json!(name), why)),
            );
        }
    }
    if text(container, "/image").is_empty() {
        wrong.push(Cause::required(format!("{path}.image"), ""));
    }
    let policy = &container["imagePullPolicy"];
    if !policy.is_null() && !PULL_POLICIES.iter().any(|known| policy == known) {
        let path = format!("{path}.imagePullPolicy");
        wrong.push(Cause::not_supported(path, policy, &PULL_POLICIES.map(Value::from)));
    }
    for (index, port) in array(container, "/ports").iter().enumerate() {
        let path = format!("{path}.ports[{index}]");
        match port["containerPort"].as_i64() {
            None | Some(0) => wrong.push(Cause::required(format!("{path}.containerPort"), "")),
            Some(number) => check_port(number, &format!("{path}.containerPort"), wrong),
        }
        check_protocol(&port["protocol"], &path, wrong);
    }
    for (index, variable) in array(container, "/env").iter().enumerate() {
        if text(variable, "/name").is_empty() {
            wrong.push(Cause::required(format!("{path}.env[{index}].name"), ""));
        }
    }
}

fn check_volumes(spec: &Value, path: &str, wrong: &mut Vec<Cause>) {
    let volumes = array(spec, "/volumes");
    for (index, volume) in volumes.iter().enumerate() {
        let path = format!("{path}.volumes[{index}].name");
        match text(volume, "/name") {
            "" => wrong.push(Cause::required(path, "")),
            name if volumes[..index].iter().any(|other| other["name"] == name) => {
                wrong.push(Cause::duplicate(path, &json!(name)));
            }
            _ => {}
        }
    }
}

/// Validates the number of a port.
pub(super) fn check_port(number: i64, path: &str, wrong: &mut Vec<Cause>) {
    if !(1..=65535).contains(&number) {
        wrong.push(Cause::invalid(
            path,
            &json!(number),
            "must be between 1 and 65535, inclusive",
        ));
    }
}

/// Validates the protocol of the port at `path`.
pub(super) fn check_protocol(protocol: &Value, path: &str, wrong: &mut Vec<Cause>) {
    if !protocol.is_null() && !PROTOCOLS.iter().any(|known| protocol == known) {
        wrong.push(Cause::not_supported(
            format!("{path}.protocol"),
            protocol,
            &PROTOCOLS.map(Value::from),
        ));
    }
}
