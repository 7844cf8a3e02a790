//! Services.

use serde_json::{Value, json};

use super::pod::{check_port, check_protocol};
use crate::cause::Cause;
use crate::json::{array, text};

const TYPES: [&str; 4] = ["ClusterIP", "ExternalName", "LoadBalancer", "NodePort"];

/// Validates the spec of a Service.
pub(super) fn check(spec: &Value, wrong: &mut Vec<Cause>) {
    let type_ = &spec["type"];
    if !type_.is_null() && !TYPES.iter().any(|known| type_ == known) {
        wrong.push(Cause::not_supported("spec.type", type_, &TYPES.map(Value::from)));
    }
    let is_external = type_ == "ExternalName";
    if is_external && text(spec, "/externalName").is_empty() {
        wrong.push(Cause::required("spec.externalName", ""));
    }
    let ports = array(spec, "/ports");
    let is_headless = text(spec, "/clusterIP") == "None";
    if ports.is_empty() && !is_external && !is_headless {
        wrong.push(Cause::required("spec.ports", ""));
    }
    for (index, port) in ports.iter().enumerate() {
        let path = format!("spec.ports[{index}]");
        match text(port, "/name") {
            "" if ports.len() > 1 => wrong.push(Cause::required(format!("{path}.name"), "")),
            name if !name.is_empty() && ports[..index].iter().any(|other| other["name"] == name) => {
                wrong.push(Cause::duplicate(format!("{path}.name"), &json!(name)));
            }
            _ => {}
        }
        check_port(port["port"].as_i64().unwrap_or(0), &format!("{path}.port"), wrong);
        check_protocol(&port["protocol"], &path, wrong);
        if let Some(number) = port["targetPort"].as_i64() {
            check_port(number, &format!("{path}.targetPort"), wrong);
        }
    }
}
