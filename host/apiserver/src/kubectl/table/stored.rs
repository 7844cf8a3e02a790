//! Columns of the kinds that are only stored.

use serde_json::{Map, Value, json};

use super::cells::{AGE, Columns, access_modes, match_labels, or_none};
use super::workload::{container_columns, of_containers};
use crate::json::{array, text};

/// Returns the columns of a kind, or `None` if it is not one of these.
pub(super) fn columns(group: &str, kind: &str) -> Option<Columns> {
    let columns: Columns = match (group, kind) {
        ("", "Endpoints") => vec![("Endpoints", 0, |object, _| endpoints(object)), AGE],
        ("", "LimitRange") => {
            vec![("Created At", 0, |object, _| {
                json!(text(object, "/metadata/creationTimestamp"))
            })]
        }
        ("", "ResourceQuota") => vec![
            ("Request", 0, |object, _| {
                json!(quota(object, |resource| !is_limit(resource)))
            }),
            ("Limit", 0, |object, _| json!(quota(object, is_limit))),
            AGE,
        ],
        ("", "PersistentVolume") => volume(),
        ("", "PodTemplate") => pod_template(),
        ("", "ReplicationController") => replication_controller(),
        ("apps", "ControllerRevision") => controller_revision(),
        ("autoscaling", "HorizontalPodAutoscaler") => autoscaler(),
        ("discovery.k8s.io", "EndpointSlice") => endpoint_slice(),
        ("networking.k8s.io", "NetworkPolicy") => {
            vec![
                ("Pod-Selector", 0, |object, _| {
                    match_labels(&object["spec"]["podSelector"]["matchLabels"])
                }),
                AGE,
            ]
        }
        ("networking.k8s.io", "IngressClass") => ingress_class(),
        ("node.k8s.io", "RuntimeClass") => vec![("Handler", 0, |object, _| json!(text(object, "/handler"))), AGE],
        ("storage.k8s.io", "StorageClass") => vec![
            ("Provisioner", 0, |object, _| json!(text(object, "/provisioner"))),
            ("ReclaimPolicy", 0, |object, _| {
                json!(or_default(text(object, "/reclaimPolicy"), "Delete"))
            }),
            ("VolumeBindingMode", 0, |object, _| {
                json!(or_default(text(object, "/volumeBindingMode"), "Immediate"))
            }),
            ("AllowVolumeExpansion", 0, |object, _| {
                json!(object["allowVolumeExpansion"].as_bool().unwrap_or(false))
            }),
            AGE,
        ],
        ("admissionregistration.k8s.io", _) => {
            vec![
                ("Webhooks", 0, |object, _| json!(array(object, "/webhooks").len())),
                AGE,
            ]
        }
        _ => return None,
    };
    Some(columns)
}

fn or_default<'a>(given: &'a str, default: &'a str) -> &'a str {
    if given.is_empty() { default } else { given }
}

fn is_limit(resource: &str) -> bool {
    resource.starts_with("limits.")
}

fn quota(object: &Value, wanted: fn(&str) -> bool) -> String {
    let used = &object["status"]["used"];
    let amounts = object["status"]["hard"].as_object().into_iter().flat_map(Map::iter);
    let shown = amounts
        .filter(|(resource, _)| wanted(resource))
        .map(|(resource, hard)| {
            let amount = |amount: &Value| amount.as_str().unwrap_or("0").to_owned();
            format!("{resource}: {}/{}", amount(&used[resource]), amount(hard))
        });
    shown.collect::<Vec<_>>().join(", ")
}

fn endpoints(object: &Value) -> Value {
    let subsets = array(object, "/subsets").iter();
    let points = subsets.flat_map(|subset| {
        let ports = array(subset, "/ports");
        array(subset, "/addresses").iter().flat_map(move |address| {
            let ip = text(address, "/ip");
            ports.iter().map(move |port| format!("{ip}:{}", port["port"]))
        })
    });
    let points: Vec<String> = points.collect();
    match points.len() {
        0 => json!("<none>"),
        total if total > 3 => json!(format!("{} + {} more...", points[..3].join(","), total - 3)),
        _ => json!(points.join(",")),
    }
}

fn endpoint_slice() -> Columns {
    vec![
        ("AddressType", 0, |object, _| json!(text(object, "/addressType"))),
        ("Ports", 0, |object, _| {
            let ports: Vec<String> = array(object, "/ports")
                .iter()
                .map(|port| port["port"].to_string())
                .collect();
            json!(if ports.is_empty() {
                "<unset>".to_owned()
            } else {
                ports.join(",")
            })
        }),
        ("Endpoints", 0, |object, _| {
            let points = array(object, "/endpoints")
                .iter()
                .flat_map(|point| array(point, "/addresses"));
            let points: Vec<&str> = points.filter_map(Value::as_str).collect();
            json!(if points.is_empty() {
                "<unset>".to_owned()
            } else {
                points.join(",")
            })
        }),
        AGE,
    ]
}

fn volume() -> Columns {
    vec![
        ("Capacity", 0, |object, _| json!(text(object, "/spec/capacity/storage"))),
        ("Access Modes", 0, |object, _| access_modes(object, "/spec/accessModes")),
        ("Reclaim Policy", 0, |object, _| {
            json!(text(object, "/spec/persistentVolumeReclaimPolicy"))
        }),
        ("Status", 0, |object, _| json!(text(object, "/status/phase"))),
        ("Claim", 0, |object, _| {
            let claim = [
                text(object, "/spec/claimRef/namespace"),
                text(object, "/spec/claimRef/name"),
            ];
            json!(if claim[1].is_empty() {
                String::new()
            } else {
                claim.join("/")
            })
        }),
        ("StorageClass", 0, |object, _| {
            json!(text(object, "/spec/storageClassName"))
        }),
        ("VolumeAttributesClass", 0, |object, _| {
            match text(object, "/spec/volumeAttributesClassName") {
                "" => json!("<unset>"),
                name => json!(name),
            }
        }),
        ("Reason", 0, |object, _| json!(text(object, "/status/reason"))),
        AGE,
        ("VolumeMode", 1, |object, _| or_none(object, "/spec/volumeMode")),
    ]
}

fn pod_template() -> Columns {
    vec![
        ("Containers", 0, |object, _| of_containers(&object["template"], "name")),
        ("Images", 0, |object, _| of_containers(&object["template"], "image")),
        ("Pod Labels", 0, |object, _| {
            match_labels(&object["template"]["metadata"]["labels"])
        }),
        AGE,
    ]
}

fn replication_controller() -> Columns {
    let mut columns: Columns = vec![
        ("Desired", 0, |object, _| {
            json!(object["spec"]["replicas"].as_i64().unwrap_or(0))
        }),
        ("Current", 0, |object, _| {
            json!(object["status"]["replicas"].as_i64().unwrap_or(0))
        }),
        ("Ready", 0, |object, _| {
            json!(object["status"]["readyReplicas"].as_i64().unwrap_or(0))
        }),
        AGE,
    ];
    columns.extend(container_columns());
    columns.push(("Selector", 1, |object, _| match_labels(&object["spec"]["selector"])));
    columns
}

fn controller_revision() -> Columns {
    vec![
        ("Controller", 0, |object, _| {
            let mut owners = array(object, "/metadata/ownerReferences").iter();
            match owners.find(|owner| owner["controller"] == true) {
                Some(owner) => {
                    let (group, kind) = (text(owner, "/apiVersion"), text(owner, "/kind").to_lowercase());
                    let group = group.split_once('/').map_or("", |(group, _)| group);
                    let separator = if group.is_empty() { "" } else { "." };
                    json!(format!("{kind}{separator}{group}/{}", text(owner, "/name")))
                }
                None => json!("<none>"),
            }
        }),
        ("Revision", 0, |object, _| {
            json!(object["revision"].as_i64().unwrap_or(0))
        }),
        AGE,
    ]
}

fn ingress_class() -> Columns {
    vec![
        ("Controller", 0, |object, _| json!(text(object, "/spec/controller"))),
        ("Parameters", 0, |object, _| {
            let parameters = &object["spec"]["parameters"];
            let kind = text(parameters, "/kind");
            if kind.is_empty() {
                return json!("<none>");
            }
            let group = match text(parameters, "/apiGroup") {
                "" => String::new(),
                group => format!(".{group}"),
            };
            json!(format!("{kind}{group}/{}", text(parameters, "/name")))
        }),
        AGE,
    ]
}

fn autoscaler() -> Columns {
    vec![
        ("Reference", 0, |object, _| {
            let target = [
                text(object, "/spec/scaleTargetRef/kind"),
                text(object, "/spec/scaleTargetRef/name"),
            ];
            json!(target.join("/"))
        }),
        ("Targets", 0, |object, _| {
            // Metrics are not measured here.
            let metric = |metric: &Value| {
                let resource = &metric["resource"];
                let name = text(resource, "/name");
                match resource["target"]["averageUtilization"].as_i64() {
                    Some(percent) => format!("{name}: <unknown>/{percent}%"),
                    None => "<unknown>".to_owned(),
                }
            };
            let metrics: Vec<String> = array(object, "/spec/metrics").iter().map(metric).collect();
            json!(if metrics.is_empty() {
                "<none>".to_owned()
            } else {
                metrics.join(", ")
            })
        }),
        ("MinPods", 0, |object, _| match object["spec"]["minReplicas"].as_i64() {
            Some(least) => json!(least.to_string()),
            None => json!("<unset>"),
        }),
        ("MaxPods", 0, |object, _| {
            json!(object["spec"]["maxReplicas"].as_i64().unwrap_or(0))
        }),
        ("Replicas", 0, |object, _| {
            json!(object["status"]["currentReplicas"].as_i64().unwrap_or(0))
        }),
        AGE,
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cells(group: &str, kind: &str, object: &Value) -> Vec<Value> {
        let columns = columns(group, kind).expect("columns");
        let shown = columns.iter().filter(|(name, ..)| *name != "Age");
        shown
            .map(|(_, _, rule)| rule(object, jiff::Timestamp::UNIX_EPOCH))
            .collect()
    }

    #[test]
    fn stored_kinds_have_the_columns_of_kubernetes() {
        let hpa = json!({"spec": {
            "scaleTargetRef": {"kind": "Deployment", "name": "web"}, "minReplicas": 1, "maxReplicas": 3,
            "metrics": [{"type": "Resource", "resource": {"name": "cpu", "target": {"averageUtilization": 80}}}],
        }});
        let expected = [
            json!("Deployment/web"),
            json!("cpu: <unknown>/80%"),
            json!("1"),
            json!(3),
            json!(0),
        ];
        assert_eq!(cells("autoscaling", "HorizontalPodAutoscaler", &hpa), expected);
        let points = json!([{"addresses": [{"ip": "10.0.0.1"}, {"ip": "10.0.0.2"}], "ports": [{"port": 80}]}]);
        let expected = [json!("10.0.0.1:80,10.0.0.2:80")];
        assert_eq!(cells("", "Endpoints", &json!({"subsets": points})), expected);
        let quota = json!({"status": {"hard": {"pods": "10", "limits.cpu": "2"}, "used": {"pods": "1"}}});
        assert_eq!(
            cells("", "ResourceQuota", &quota),
            [json!("pods: 1/10"), json!("limits.cpu: 0/2")]
        );
    }
}
