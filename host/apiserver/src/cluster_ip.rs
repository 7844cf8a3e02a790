//! Addresses of Services, which an API server assigns itself.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::cause::Cause;
use crate::json::{array, text};
use crate::kind::ResourceKind;
use crate::rng::stable_hash;
use crate::state::State;
use crate::status_error::StatusError;

/// Fields that the server fills.
const ASSIGNED: [&str; 4] = ["clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"];

fn is_service(kind: &ResourceKind) -> bool {
    kind.group.is_empty() && kind.kind == "Service"
}

/// Copies the assigned fields that an update leaves out.
pub(crate) fn keep(kind: &ResourceKind, old: &Value, object: &mut Value) {
    let is_external = |service: &Value| service["spec"]["type"] == "ExternalName";
    if !is_service(kind) || !object["spec"].is_object() || is_external(object) || is_external(old) {
        return;
    }
    for field in ASSIGNED {
        let given = &object["spec"][field];
        let is_unset = given.is_null() || given == "" || given.as_array().is_some_and(Vec::is_empty);
        if let Some(known) = old["spec"].get(field).filter(|_| is_unset) {
            object["spec"][field] = known.clone();
        }
    }
}

/// Assigns an address of 10.96.0.0/16 to a new Service, derived from its namespace and name.
///
/// # Errors
///
/// 422 if the client selects an address that another Service has.
pub(crate) fn allocate(state: &State, kind: &ResourceKind, service: &mut Value) -> Result<(), StatusError> {
    if !is_service(kind) || service["spec"]["type"] == "ExternalName" || !service["spec"].is_object() {
        return Ok(());
    }
    let used: BTreeSet<String> = state
        .kind_by_path("", "v1", "services")
        .into_iter()
        .flat_map(|id| state.table(id).scan(None, None))
        .map(|service| text(service.content(), "/spec/clusterIP").to_owned())
        .collect();
    let (namespace, name) = (
        text(service, "/metadata/namespace").to_owned(),
        text(service, "/metadata/name").to_owned(),
    );
    let listed = array(service, "/spec/clusterIPs").first().and_then(Value::as_str);
    let given = match text(service, "/spec/clusterIP") {
        "" => listed.unwrap_or_default().to_owned(),
        given => given.to_owned(),
    };
    if !matches!(given.as_str(), "" | "None") && used.contains(&given) {
        let why = format!("failed to allocate IP {given}: provided IP is already allocated");
        let cause = Cause::invalid("spec.clusterIPs", &json!([given]), &why);
        return StatusError::refuse(kind, &name, &[cause]);
    }
    let ip = if given.is_empty() {
        free(&used, &namespace, &name)
    } else {
        given
    };
    let assigned = [json!(ip), json!([ip]), json!(["IPv4"]), json!("SingleStack")];
    for (field, value) in ASSIGNED.into_iter().zip(assigned) {
        if service["spec"]
            .get(field)
            .is_none_or(|known| known.is_null() || known == "")
        {
            service["spec"][field] = value;
        }
    }
    Ok(())
}

fn free(used: &BTreeSet<String>, namespace: &str, name: &str) -> String {
    // Kubernetes gives the first address to its own Service.
    let first = if (namespace, name) == ("default", "kubernetes") {
        1
    } else {
        stable_hash(0, &[namespace, name])
    };
    let address = |number: u64| {
        let number = number & 0xFFFF;
        format!("10.96.{}.{}", number >> 8, number & 0xFF)
    };
    let candidates = (0..=0xFFFF_u64).map(|step| first.wrapping_add(step) & 0xFFFF);
    let is_host = |number: &u64| !matches!(number & 0xFF, 0 | 0xFF);
    let found = candidates.filter(is_host).map(address).find(|ip| !used.contains(ip));
    found.unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn service() -> ResourceKind {
        ResourceKind::namespaced("", "v1", "Service", "services")
    }

    #[test]
    fn a_service_gets_an_address_and_keeps_it() {
        let state = State::new(1, 10, None);
        let mut made = json!({"metadata": {"namespace": "default", "name": "kubernetes"}, "spec": {}});
        allocate(&state, &service(), &mut made).expect("a free address");
        assert_eq!(made["spec"]["clusterIP"], "10.96.0.1");
        assert_eq!(made["spec"]["clusterIPs"], json!(["10.96.0.1"]));
        let mut updated = json!({"metadata": {"name": "kubernetes"}, "spec": {"type": "ClusterIP"}});
        keep(&service(), &made, &mut updated);
        assert_eq!(updated["spec"]["clusterIP"], "10.96.0.1");
    }

    #[test]
    fn headless_services_and_external_names_get_none() {
        let state = State::new(1, 10, None);
        let mut headless = json!({"metadata": {"name": "a"}, "spec": {"clusterIP": "None"}});
        allocate(&state, &service(), &mut headless).expect("no address");
        assert_eq!(headless["spec"]["clusterIPs"], json!(["None"]));
        let mut external = json!({"metadata": {"name": "a"}, "spec": {"type": "ExternalName"}});
        allocate(&state, &service(), &mut external).expect("no address");
        assert_eq!(external["spec"], json!({"type": "ExternalName"}));
    }

    #[test]
    fn no_address_is_given_twice() {
        let first = free(&BTreeSet::new(), "a", "b");
        assert_ne!(free(&BTreeSet::from([first.clone()]), "a", "b"), first);
    }
}
