//! Aggregation of load balancer entries of Services and Ingresses over all clusters.

use std::collections::BTreeMap;

use bulkhead_core::model::AggregatedStatusItem;
use serde_json::{Map, Value, json};

use crate::aggregate::collected;
use bulkhead_core::shape::{Malformed, field, list, text};

/// Identity of an entry, in the sort order of entries: first those with a host name, by name, then by address, those
/// without a mode last. `true` stands for "absent".
type Identity<'a> = ((bool, &'a str), (bool, &'a str), (bool, &'a str));

/// Returns the union of all entries and nothing else: conditions of the template are dropped, as in Karmada.
pub(crate) fn status(items: &[AggregatedStatusItem]) -> Result<Map<String, Value>, Malformed> {
    let mut entries = BTreeMap::<Identity<'_>, Vec<Value>>::new();
    for (_, member) in collected(items) {
        for entry in list(member, &["loadBalancer", "ingress"])? {
            let ports = entries.entry(identity(entry)?).or_default();
            for port in list(entry, &["ports"])? {
                if !ports.contains(port) {
                    ports.push(port.clone());
                }
            }
        }
    }
    let ingress: Vec<_> = entries.into_iter().map(|(identity, ports)| printed(identity, ports)).collect();
    let load_balancer = if ingress.is_empty() { json!({}) } else { json!({"ingress": ingress}) };
    Ok(Map::from_iter([("loadBalancer".to_owned(), load_balancer)]))
}

fn identity(entry: &Value) -> Result<Identity<'_>, Malformed> {
    let part = |name: &str| text(entry, &[name]).map(|text| (text.is_empty(), text));
    let mode = text(entry, &["ipMode"])?;
    Ok((part("hostname")?, part("ip")?, (field(entry, &["ipMode"])?.is_none(), mode)))
}

fn printed(identity: Identity<'_>, ports: Vec<Value>) -> Value {
    let ((no_hostname, hostname), (no_ip, ip), (no_mode, mode)) = identity;
    let texts = [("hostname", no_hostname, hostname), ("ip", no_ip, ip), ("ipMode", no_mode, mode)];
    let mut entry: Map<_, _> = texts
        .into_iter()
        .filter(|(_, absent, _)| !absent)
        .map(|(name, _, text)| (name.to_owned(), json!(text)))
        .collect();
    if !ports.is_empty() {
        entry.insert("ports".to_owned(), Value::Array(ports));
    }
    Value::Object(entry)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::aggregate::check;

    #[test]
    fn entries_are_united_and_sorted() {
        let service = json!({"spec": {"type": "LoadBalancer"}, "status": {"conditions": [{"type": "X"}]}});
        let check = |lists: &[Value], expected: Value| {
            let reported: Vec<_> = lists.iter().map(|list| ("m", json!({"loadBalancer": {"ingress": list}}))).collect();
            check(("v1", "Service"), service.clone(), &reported, Ok(json!({"loadBalancer": expected})));
            check(("networking.k8s.io/v1", "Ingress"), json!({}), &reported, Ok(json!({"loadBalancer": expected})));
        };
        check(&[], json!({}));
        check(&[json!([])], json!({}));
        let first = json!([{"ip": "9.9.9.9"}, {"hostname": "b.example"}]);
        let second = json!([{"ip": "1.1.1.1"}, {"ip": "9.9.9.9"}, {"hostname": "a.example", "ip": "2.2.2.2"}]);
        let sorted = json!([
            {"hostname": "a.example", "ip": "2.2.2.2"}, {"hostname": "b.example"}, {"ip": "1.1.1.1"}, {"ip": "9.9.9.9"},
        ]);
        check(&[first, second], json!({"ingress": sorted}));
        let modes = json!([{"ip": "1.1.1.1"}, {"ip": "1.1.1.1", "ipMode": "VIP"}]);
        check(&[modes], json!({"ingress": [{"ip": "1.1.1.1", "ipMode": "VIP"}, {"ip": "1.1.1.1"}]}));
        let (http, https) = (json!({"port": 80, "protocol": "TCP"}), json!({"port": 443, "protocol": "TCP"}));
        let with_ports = |ports: &[&Value]| json!([{"ip": "1.1.1.1", "ports": ports}]);
        check(&[with_ports(&[&http]), with_ports(&[&http, &https])], json!({"ingress": with_ports(&[&http, &https])}));
    }
}
