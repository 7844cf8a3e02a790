//! Aggregation of load balancer entries of Services and Ingresses over all clusters. (Karmada:
//! `pkg/util/helper/service.go`, `pkg/util/helper/ingress.go`.)

use std::collections::{BTreeMap, BTreeSet};

use bulkhead_core::model::AggregatedStatusItem;
use serde_json::{Value, json};

use crate::aggregated_items::collected;
use bulkhead_core::shape::{Malformed, count, field, list, text};

/// Text that may be missing, and sorts last then.
type Last<'a> = (bool, &'a str);
/// Text that may be missing, and sorts first then.
type First<'a> = (bool, &'a str);

/// Identity of an entry, in the sort order of entries: those without a host name last, those without an address
/// first, those without a mode last.
type Entry<'a> = (Last<'a>, &'a str, Last<'a>);

/// Identity of a port, in the sort order of ports: those without an error first.
type Port<'a> = (i64, &'a str, First<'a>);

/// Returns the union of all entries and nothing else: conditions of the template are dropped, as in Karmada. The list
/// is present even if it is empty.
pub(crate) fn status(kind: (&str, &str), items: &[AggregatedStatusItem]) -> Result<Value, Malformed> {
    let mut entries = BTreeMap::<Entry<'_>, BTreeSet<Port<'_>>>::new();
    for (_, member) in collected(items) {
        for entry in list(member, &["loadBalancer", "ingress"])? {
            let hostname = text(entry, &["hostname"])?;
            // An Ingress has no mode.
            let mode = if kind.1 == "Service" {
                optional(entry, "ipMode")?
            } else {
                None
            };
            let identity = ((hostname.is_empty(), hostname), text(entry, &["ip"])?, last(mode));
            let ports = entries.entry(identity).or_default();
            for port in list(entry, &["ports"])? {
                let error = optional(port, "error")?;
                let error = (error.is_some(), error.unwrap_or_default());
                ports.insert((count(port, &["port"])?, text(port, &["protocol"])?, error));
            }
        }
    }
    let ingress: Vec<_> = entries
        .into_iter()
        .map(|(identity, ports)| printed(identity, ports))
        .collect();
    Ok(json!({"loadBalancer": {"ingress": ingress}}))
}

/// Returns the text of a pointer; an empty text is not a missing one.
fn optional<'a>(object: &'a Value, name: &str) -> Result<Option<&'a str>, Malformed> {
    field(object, &[name])?.map(|_| text(object, &[name])).transpose()
}

fn last(text: Option<&str>) -> Last<'_> {
    (text.is_none(), text.unwrap_or_default())
}

fn printed(identity: Entry<'_>, ports: BTreeSet<Port<'_>>) -> Value {
    let ((_, hostname), ip, (no_mode, mode)) = identity;
    let mode = (!no_mode).then_some(mode);
    let ports = (!ports.is_empty()).then(|| ports.into_iter().map(printed_port).collect::<Vec<_>>());
    json!({"hostname": hostname, "ip": ip, "ipMode": mode, "ports": ports})
}

fn printed_port((port, protocol, (failed, error)): Port<'_>) -> Value {
    json!({"port": port, "protocol": protocol, "error": failed.then_some(error)})
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::aggregate::check;

    const INGRESS: (&str, &str) = ("networking.k8s.io/v1", "Ingress");

    #[test]
    fn entries_are_united_and_sorted() {
        let service = json!({"spec": {"type": "LoadBalancer"}, "status": {"conditions": [{"type": "X"}]}});
        let check = |lists: &[Value], expected: Value| {
            let reported: Vec<_> = lists
                .iter()
                .map(|list| ("m", json!({"loadBalancer": {"ingress": list}})))
                .collect();
            check(
                ("v1", "Service"),
                service.clone(),
                &reported,
                Ok(json!({"loadBalancer": expected})),
            );
            check(INGRESS, json!({}), &reported, Ok(json!({"loadBalancer": expected})));
        };
        check(&[], json!({}));
        check(&[json!([])], json!({}));
        let first = json!([{"ip": "9.9.9.9"}, {"hostname": "b.example"}]);
        let second = json!([{"ip": "1.1.1.1"}, {"ip": "9.9.9.9"}, {"hostname": "a.example", "ip": "2.2.2.2"}]);
        let sorted = json!([
            {"hostname": "a.example", "ip": "2.2.2.2"}, {"hostname": "b.example"}, {"ip": "1.1.1.1"}, {"ip": "9.9.9.9"},
        ]);
        check(&[first, second], json!({"ingress": sorted}));
        let hosts = json!([{"hostname": "h", "ip": "1.1.1.1"}, {"hostname": "h"}]);
        check(
            &[hosts],
            json!({"ingress": [{"hostname": "h"}, {"hostname": "h", "ip": "1.1.1.1"}]}),
        );
        let unknown = json!([{"ip": "1.1.1.1", "hostname": "", "zone": "a"}, {"ip": "1.1.1.1", "ports": []}]);
        check(&[unknown], json!({"ingress": [{"ip": "1.1.1.1"}]}));
    }

    #[test]
    fn ports_of_an_entry_are_united_and_sorted() {
        let port = |port: i64, protocol: &str| json!({"port": port, "protocol": protocol});
        let failed = |error: &str| json!({"port": 80, "protocol": "TCP", "error": error});
        let with_ports = |ports: &[Value]| json!({"loadBalancer": {"ingress": [{"ip": "1.1.1.1", "ports": ports}]}});
        let reported = [
            (
                "m1",
                with_ports(&[port(443, "TCP"), failed("no quota"), port(80, "UDP")]),
            ),
            (
                "m2",
                with_ports(&[
                    failed("in use"),
                    port(443, "TCP"),
                    json!({"port": 80.0, "protocol": "TCP"}),
                ]),
            ),
            (
                "m3",
                with_ports(&[failed("no quota"), failed(""), json!({"name": "web"})]),
            ),
        ];
        let zero = port(0, "");
        let sorted = [
            zero,
            port(80, "TCP"),
            failed(""),
            failed("in use"),
            failed("no quota"),
            port(80, "UDP"),
            port(443, "TCP"),
        ];
        check(INGRESS, json!({}), &reported, Ok(with_ports(&sorted)));
        let service = json!({"spec": {"type": "LoadBalancer"}});
        check(("v1", "Service"), service.clone(), &reported, Ok(with_ports(&sorted)));
        let malformed = [("m1", with_ports(&[json!({"port": "http"})]))];
        let message = "status in m1: loadBalancer.ingress[0].ports[0].port is a string, not an integer";
        check(("v1", "Service"), service, &malformed, Err(message));
    }

    #[test]
    fn modes_distinguish_the_entries_of_a_service_alone() {
        let list = |entries: Value| json!({"loadBalancer": {"ingress": entries}});
        let modes =
            json!([{"ip": "1.1.1.1"}, {"ip": "1.1.1.1", "ipMode": "VIP"}, {"ip": "1.1.1.1", "ipMode": "Proxy"}]);
        let reported = [("m1", list(modes))];
        let sorted =
            json!([{"ip": "1.1.1.1", "ipMode": "Proxy"}, {"ip": "1.1.1.1", "ipMode": "VIP"}, {"ip": "1.1.1.1"}]);
        let service = json!({"spec": {"type": "LoadBalancer"}});
        check(("v1", "Service"), service, &reported, Ok(list(sorted)));
        check(INGRESS, json!({}), &reported, Ok(list(json!([{"ip": "1.1.1.1"}]))));
    }

    #[test]
    fn an_unchanged_list_is_not_written() {
        let check = |old: Value, expected: Value| {
            let object = json!({"spec": {"type": "LoadBalancer"}, "status": old});
            let reported = [("m1", json!({"loadBalancer": {"ingress": [{"ip": "1.1.1.1"}]}}))];
            check(("v1", "Service"), object, &reported, Ok(expected));
        };
        let new = json!({"loadBalancer": {"ingress": [{"ip": "1.1.1.1"}]}});
        check(
            json!({"loadBalancer": {"ingress": [{"ip": "1.1.1.1", "zone": "a"}]}}),
            json!("unchanged"),
        );
        check(json!({"loadBalancer": {"ingress": [{"ip": "2.2.2.2"}]}}), new.clone());
        let condition = json!({"type": "X", "status": "True"});
        check(
            json!({"loadBalancer": new["loadBalancer"], "conditions": [condition]}),
            new.clone(),
        );
    }
}
