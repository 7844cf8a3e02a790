//! Columns of `kubectl get` for Kubernetes' own kinds (Kubernetes: `pkg/printers/internalversion/printers.go`).

use serde_json::{Value, json};

use super::cells::{AGE, Columns, Rule, access_modes, listed, match_labels, or_none};
use super::{Cell, Heading, age, stored, workload};
use crate::json::{array, text};

/// Returns a heading of a built-in kind.
pub(super) fn heading(name: &str, priority: i64, rule: Rule) -> Heading {
    let numeric = [
        "Data",
        "Secrets",
        "Restarts",
        "Desired",
        "Current",
        "Ready Nodes",
        "Up-to-date",
        "Available",
    ];
    Heading {
        name: name.to_owned(),
        type_: if numeric.contains(&name) { "integer" } else { "string" }.to_owned(),
        format: "",
        description: String::new(),
        priority,
        cell: Cell::Rule(rule),
    }
}

/// Returns the headings of a kind after its name, or `None` if it is not one of these.
pub(super) fn columns(group: &str, kind: &str) -> Option<Vec<Heading>> {
    let columns: Vec<(&str, i64, Rule)> = match (group, kind) {
        ("", "Namespace") => {
            vec![("Status", 0, |object, _| json!(text(object, "/status/phase"))), AGE]
        }
        ("", "Node") => node(),
        ("", "Pod") => workload::pod(),
        ("", "Service") => service(),
        ("", "ConfigMap") => vec![
            ("Data", 0, |object, _| json!(size(object, &["data", "binaryData"]))),
            AGE,
        ],
        ("", "Secret") => vec![
            ("Type", 0, |object, _| json!(text(object, "/type"))),
            ("Data", 0, |object, _| json!(size(object, &["data"]))),
            AGE,
        ],
        ("", "ServiceAccount") => vec![("Secrets", 0, |object, _| json!(array(object, "/secrets").len())), AGE],
        ("", "PersistentVolumeClaim") => claim(),
        ("", "Event") => event(),
        ("apps", "Deployment") => workload::deployment(),
        ("apps", "StatefulSet") => workload::stateful_set(),
        ("apps", "DaemonSet") => workload::daemon_set(),
        ("apps", "ReplicaSet") => workload::replica_set(),
        ("batch", "Job") => workload::job(),
        ("batch", "CronJob") => workload::cron_job(),
        ("coordination.k8s.io", "Lease") => {
            vec![
                ("Holder", 0, |object, _| json!(text(object, "/spec/holderIdentity"))),
                AGE,
            ]
        }
        ("rbac.authorization.k8s.io", "Role" | "ClusterRole")
        | ("apiextensions.k8s.io", "CustomResourceDefinition") => {
            vec![("Created At", 0, |object, _| {
                json!(text(object, "/metadata/creationTimestamp"))
            })]
        }
        ("rbac.authorization.k8s.io", "RoleBinding" | "ClusterRoleBinding") => role_binding(),
        ("networking.k8s.io", "Ingress") => ingress(),
        ("scheduling.k8s.io", "PriorityClass") => vec![
            ("Value", 0, |object, _| object["value"].clone()),
            ("Global-Default", 0, |object, _| {
                json!(object["globalDefault"].as_bool().unwrap_or(false))
            }),
            AGE,
        ],
        ("policy", "PodDisruptionBudget") => vec![
            ("Min Available", 0, |object, _| or_na(&object["spec"]["minAvailable"])),
            ("Max Unavailable", 0, |object, _| {
                or_na(&object["spec"]["maxUnavailable"])
            }),
            ("Allowed Disruptions", 0, |object, _| {
                json!(object["status"]["disruptionsAllowed"].as_i64().unwrap_or(0))
            }),
            AGE,
        ],
        _ => stored::columns(group, kind)?,
    };
    Some(
        columns
            .into_iter()
            .map(|(name, priority, rule)| heading(name, priority, rule))
            .collect(),
    )
}

/// Counts the entries of some maps of an object.
fn size(object: &Value, fields: &[&str]) -> usize {
    fields
        .iter()
        .filter_map(|field| object.get(field)?.as_object())
        .map(serde_json::Map::len)
        .sum()
}

/// Returns a value as text, `N/A` if it is absent.
fn or_na(value: &Value) -> Value {
    match value {
        Value::Null => json!("N/A"),
        Value::String(text) => json!(text),
        other => json!(other.to_string()),
    }
}

fn node() -> Columns {
    vec![
        ("Status", 0, |object, _| {
            let ready = array(object, "/status/conditions")
                .iter()
                .find(|condition| condition["type"] == "Ready");
            let mut status = match ready.and_then(|ready| ready["status"].as_str()) {
                Some("True") => "Ready",
                Some(_) => "NotReady",
                None => "Unknown",
            }
            .to_owned();
            if object["spec"]["unschedulable"] == true {
                status.push_str(",SchedulingDisabled");
            }
            json!(status)
        }),
        ("Roles", 0, |object, _| {
            let labels = object["metadata"]["labels"].as_object().into_iter().flatten();
            listed(
                labels
                    .filter_map(|(key, _)| key.strip_prefix("node-role.kubernetes.io/"))
                    .map(str::to_owned)
                    .collect(),
            )
        }),
        AGE,
        ("Version", 0, |object, _| {
            json!(text(object, "/status/nodeInfo/kubeletVersion"))
        }),
    ]
}

fn service() -> Columns {
    vec![
        ("Type", 0, |object, _| {
            json!(object["spec"]["type"].as_str().unwrap_or("ClusterIP"))
        }),
        ("Cluster-IP", 0, |object, _| or_none(object, "/spec/clusterIP")),
        ("External-IP", 0, |object, _| {
            let balanced = array(object, "/status/loadBalancer/ingress").iter();
            let balanced = balanced.filter_map(|point| point["ip"].as_str().or_else(|| point["hostname"].as_str()));
            if let Some(name) = object["spec"]["externalName"]
                .as_str()
                .filter(|_| object["spec"]["type"] == "ExternalName")
            {
                return json!(name);
            }
            let given = array(object, "/spec/externalIPs").iter().filter_map(Value::as_str);
            let all: Vec<String> = balanced.chain(given).map(str::to_owned).collect();
            if all.is_empty() && object["spec"]["type"] == "LoadBalancer" {
                json!("<pending>")
            } else {
                listed(all)
            }
        }),
        ("Port(s)", 0, |object, _| {
            let port = |port: &Value| {
                let node = port["nodePort"].as_i64().filter(|node| *node > 0);
                let node = node.map(|node| format!(":{node}")).unwrap_or_default();
                format!("{}{node}/{}", port["port"], port["protocol"].as_str().unwrap_or("TCP"))
            };
            listed(array(object, "/spec/ports").iter().map(port).collect())
        }),
        AGE,
        ("Selector", 1, |object, _| match_labels(&object["spec"]["selector"])),
    ]
}

fn claim() -> Columns {
    vec![
        ("Status", 0, |object, _| json!(text(object, "/status/phase"))),
        ("Volume", 0, |object, _| json!(text(object, "/spec/volumeName"))),
        ("Capacity", 0, |object, _| {
            json!(text(object, "/status/capacity/storage"))
        }),
        ("Access Modes", 0, |object, _| {
            access_modes(object, "/status/accessModes")
        }),
        ("StorageClass", 0, |object, _| {
            json!(text(object, "/spec/storageClassName"))
        }),
        AGE,
    ]
}

fn event() -> Columns {
    vec![
        ("Last Seen", 0, |object, now| {
            let seen = [
                "/lastTimestamp",
                "/eventTime",
                "/firstTimestamp",
                "/metadata/creationTimestamp",
            ];
            let seen = seen
                .into_iter()
                .map(|pointer| text(object, pointer))
                .find(|moment| !moment.is_empty());
            json!(age::at(seen.unwrap_or_default(), now))
        }),
        ("Type", 0, |object, _| json!(text(object, "/type"))),
        ("Reason", 0, |object, _| json!(text(object, "/reason"))),
        ("Object", 0, |object, _| {
            let about = &object["involvedObject"];
            let part = |field: &str| about[field].as_str().unwrap_or_default();
            json!(format!("{}/{}", part("kind").to_lowercase(), part("name")))
        }),
        ("Subobject", 1, |object, _| {
            json!(text(object, "/involvedObject/fieldPath"))
        }),
        ("Source", 1, |object, _| {
            let source = [text(object, "/source/component"), text(object, "/source/host")];
            json!(
                source
                    .into_iter()
                    .filter(|part| !part.is_empty())
                    .collect::<Vec<_>>()
                    .join(", ")
            )
        }),
        ("Message", 0, |object, _| json!(text(object, "/message").trim())),
        ("First Seen", 1, |object, now| {
            json!(age::at(text(object, "/firstTimestamp"), now))
        }),
        ("Count", 1, |object, _| json!(object["count"].as_i64().unwrap_or(1))),
    ]
}

fn role_binding() -> Columns {
    fn subjects(object: &Value, kind: &str) -> Value {
        let of_kind = array(object, "/subjects")
            .iter()
            .filter(|subject| subject["kind"] == kind);
        let name = |subject: &Value| {
            let name = subject["name"].as_str().unwrap_or_default();
            let namespace = subject["namespace"].as_str().filter(|_| kind == "ServiceAccount");
            namespace.map_or_else(|| name.to_owned(), |namespace| format!("{namespace}/{name}"))
        };
        json!(of_kind.map(name).collect::<Vec<_>>().join(", "))
    }
    vec![
        ("Role", 0, |object, _| {
            json!(format!(
                "{}/{}",
                text(object, "/roleRef/kind"),
                text(object, "/roleRef/name")
            ))
        }),
        AGE,
        ("Users", 1, |object, _| subjects(object, "User")),
        ("Groups", 1, |object, _| subjects(object, "Group")),
        ("ServiceAccounts", 1, |object, _| subjects(object, "ServiceAccount")),
    ]
}

fn ingress() -> Columns {
    vec![
        ("Class", 0, |object, _| or_none(object, "/spec/ingressClassName")),
        ("Hosts", 0, |object, _| {
            let hosts = array(object, "/spec/rules")
                .iter()
                .filter_map(|rule| rule["host"].as_str());
            let hosts: Vec<_> = hosts.collect();
            if hosts.is_empty() {
                json!("*")
            } else {
                json!(hosts.join(","))
            }
        }),
        ("Address", 0, |object, _| {
            let points = array(object, "/status/loadBalancer/ingress").iter();
            let points = points.filter_map(|point| point["ip"].as_str().or_else(|| point["hostname"].as_str()));
            json!(points.collect::<Vec<_>>().join(","))
        }),
        ("Ports", 0, |object, _| {
            json!(if array(object, "/spec/tls").is_empty() {
                "80"
            } else {
                "80, 443"
            })
        }),
        AGE,
    ]
}
