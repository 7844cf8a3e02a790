//! Node ports of Services, which an API server assigns itself.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;

use serde_json::{Value, json};

use crate::cause::Cause;
use crate::json::{array, text};
use crate::kind::ResourceKind;
use crate::rng::stable_hash;
use crate::state::State;
use crate::status_error::StatusError;

/// Ports that Kubernetes assigns by default (`--service-node-port-range`).
const RANGE: RangeInclusive<i64> = 30_000..=32_767;

/// Assigns a port to each port of a Service of type `NodePort` or `LoadBalancer` that has none, derived from its
/// namespace, name and port. `old` is the Service before an update, which keeps its ports.
///
/// # Errors
///
/// 422 if the client selects a port out of the range, or one that another Service has.
pub(crate) fn assign(
    state: &State,
    kind: &ResourceKind,
    old: Option<&Value>,
    service: &mut Value,
) -> Result<(), StatusError> {
    if !kind.group.is_empty() || kind.kind != "Service" {
        return Ok(());
    }
    let (namespace, name) = (
        text(service, "/metadata/namespace").to_owned(),
        text(service, "/metadata/name").to_owned(),
    );
    let is_exposed = matches!(text(service, "/spec/type"), "NodePort" | "LoadBalancer");
    let mut used = if is_exposed {
        used_by_others(state, &namespace, &name)
    } else {
        BTreeSet::new()
    };
    let before = old.map(|old| array(old, "/spec/ports")).unwrap_or_default();
    let mut causes = Vec::new();
    let ports = service.pointer_mut("/spec/ports").and_then(Value::as_array_mut);
    for (index, port) in ports.into_iter().flatten().enumerate() {
        let known = before.iter().find(|known| identity(known) == identity(port));
        let kept = known.and_then(node_port);
        match (is_exposed, node_port(port)) {
            // A Service that is no longer exposed loses the ports that the server assigned.
            (false, given) if given.is_some() && given == kept => {
                if let Some(port) = port.as_object_mut() {
                    port.remove("nodePort");
                }
            }
            (false, _) => {}
            (true, None) => {
                let found = kept.or_else(|| free(&used, &[&namespace, &name, &port["port"].to_string()]));
                if let Some(found) = found {
                    port["nodePort"] = json!(found);
                    used.insert(found);
                }
            }
            (true, Some(given)) => {
                let objection = if !RANGE.contains(&given) {
                    let (first, last) = (RANGE.start(), RANGE.end());
                    format!("provided port is not in the valid range. The range of valid ports is {first}-{last}")
                } else if used.insert(given) {
                    continue;
                } else {
                    "provided port is already allocated".to_owned()
                };
                let field = format!("spec.ports[{index}].nodePort");
                causes.push(Cause::invalid(&field, &json!(given), &objection));
            }
        }
    }
    StatusError::refuse(kind, &name, &causes)
}

/// Returns the fields that identify a port of a Service.
fn identity(port: &Value) -> (Option<&str>, Option<i64>, &str) {
    let protocol = port["protocol"].as_str().unwrap_or("TCP");
    (port["name"].as_str(), port["port"].as_i64(), protocol)
}

fn node_port(port: &Value) -> Option<i64> {
    port["nodePort"].as_i64().filter(|port| *port != 0)
}

fn used_by_others(state: &State, namespace: &str, name: &str) -> BTreeSet<i64> {
    let services = state.kind_by_path("", "v1", "services").into_iter();
    let services = services.flat_map(|id| state.table(id).scan(None, None));
    let others = services.filter(|other| (other.namespace(), other.name()) != (namespace, name));
    others
        .flat_map(|other| array(other.content(), "/spec/ports").iter().filter_map(node_port))
        .collect()
}

fn free(used: &BTreeSet<i64>, of: &[&str]) -> Option<i64> {
    let size = RANGE.end() - RANGE.start() + 1;
    let first = i64::try_from(stable_hash(0, of) % size.unsigned_abs()).unwrap_or(0);
    let candidates = (0..size).map(|step| RANGE.start() + (first + step) % size);
    candidates.into_iter().find(|port| !used.contains(port))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SERVICE: ResourceKind = ResourceKind::namespaced("", "v1", "Service", "services");

    fn service(type_: &str, ports: &Value) -> Value {
        json!({"metadata": {"namespace": "default", "name": "web"}, "spec": {"type": type_, "ports": ports}})
    }

    fn ports(service: &Value) -> Vec<Option<i64>> {
        array(service, "/spec/ports").iter().map(node_port).collect()
    }

    #[test]
    fn an_exposed_service_gets_a_port_for_each_of_its_ports_and_keeps_them() {
        let state = State::new(1, 10, None);
        let two = json!([{"name": "a", "port": 80}, {"name": "b", "port": 81}]);
        let mut made = service("NodePort", &two);
        assign(&state, &SERVICE, None, &mut made).unwrap();
        let given = ports(&made);
        assert!(given.iter().all(|port| port.is_some_and(|port| RANGE.contains(&port))));
        assert_ne!(given[0], given[1]);
        let mut updated = service("LoadBalancer", &two);
        assign(&state, &SERVICE, Some(&made), &mut updated).unwrap();
        assert_eq!(ports(&updated), given);
        updated["spec"]["type"] = json!("ClusterIP");
        assign(&state, &SERVICE, Some(&made), &mut updated).unwrap();
        assert_eq!(ports(&updated), [None, None]);
    }

    #[test]
    fn a_service_inside_of_the_cluster_gets_none() {
        let mut made = service("ClusterIP", &json!([{"port": 80}]));
        assign(&State::new(1, 10, None), &SERVICE, None, &mut made).unwrap();
        assert_eq!(ports(&made), [None]);
    }

    #[test]
    fn a_port_out_of_the_range_or_given_twice_is_refused() {
        let check = |listed: Value, expected: &str| {
            let mut made = service("NodePort", &listed);
            let refused = assign(&State::new(1, 10, None), &SERVICE, None, &mut made).unwrap_err();
            let message = String::from_utf8(refused.to_bytes().to_vec()).unwrap();
            assert!(message.contains(expected), "{message}");
        };
        check(
            json!([{"port": 80, "nodePort": 80}]),
            "spec.ports[0].nodePort: Invalid value: 80: provided port is not in the valid range. The range of valid \
             ports is 30000-32767",
        );
        check(
            json!([{"name": "a", "port": 80, "nodePort": 30001}, {"name": "b", "port": 81, "nodePort": 30001}]),
            "spec.ports[1].nodePort: Invalid value: 30001: provided port is already allocated",
        );
    }
}
