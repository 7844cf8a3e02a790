//! Conversion of a binding to messages of the service (Karmada: `pkg/estimator/client/accurate.go`).

use std::collections::BTreeMap;

use bulkhead_core::decide::schedule::capacity::AssumedWorkload;
use bulkhead_core::model::{Component, ReplicaRequirements};
use prost::Message;
use serde::Deserialize;
use serde_json::Value;

use crate::messages as wire;

/// Converts the requirements of one replica. Fields of a wrong type count as unset, as in Go; a Karmada API server
/// does not admit them.
pub(crate) fn replica_requirements(needs: &ReplicaRequirements) -> wire::ReplicaRequirements {
    wire::ReplicaRequirements {
        node_claim: node_claim(needs),
        namespace: text(needs, "namespace"),
        priority_class_name: text(needs, "priorityClassName"),
        resource_request_bytes: quantities(needs),
    }
}

fn text(needs: &ReplicaRequirements, name: &str) -> String {
    needs
        .rest
        .get(name)
        .and_then(Value::as_str)
        .unwrap_or_default()
        .to_owned()
}

fn quantities(needs: &ReplicaRequirements) -> BTreeMap<String, Vec<u8>> {
    let quantity = |text: &String| {
        wire::Quantity {
            string: Some(text.clone()),
        }
        .encode_to_vec()
    };
    needs
        .resource_request
        .iter()
        .map(|(name, amount)| (name.clone(), quantity(amount)))
        .collect()
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[derive(Default)]
struct Claim {
    hard_node_affinity: Option<wire::NodeSelector>,
    node_selector: BTreeMap<String, String>,
    tolerations: Vec<wire::Toleration>,
}

fn node_claim(needs: &ReplicaRequirements) -> Option<wire::NodeClaim> {
    let claim = Claim::deserialize(needs.rest.get("nodeClaim")?).ok()?;
    Some(wire::NodeClaim {
        node_selector: claim.node_selector,
        node_affinity_bytes: claim
            .hard_node_affinity
            .map(|affinity| affinity.encode_to_vec())
            .unwrap_or_default(),
        tolerations_bytes: claim.tolerations.iter().map(Message::encode_to_vec).collect(),
    })
}

/// Converts a component.
pub(crate) fn component(component: &Component) -> wire::Component {
    let needs = |needs: &ReplicaRequirements| wire::ComponentReplicaRequirements {
        node_claim: node_claim(needs),
        priority_class_name: text(needs, "priorityClassName"),
        resource_request_bytes: quantities(needs),
    };
    wire::Component {
        name: component.name.clone(),
        replica_requirements: component.replica_requirements.as_ref().map(needs),
        replicas: component.replicas,
    }
}

/// Converts a workload that was placed a moment ago.
pub(crate) fn assumed(workload: &AssumedWorkload) -> wire::AssumedWorkload {
    wire::AssumedWorkload {
        namespace: workload.namespace.clone(),
        components: workload.components.iter().map(component).collect(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn requirements_contain_the_encoding_of_kubernetes() {
        let needs: ReplicaRequirements = serde_json::from_value(json!({
            "resourceRequest": {"cpu": "250m"}, "namespace": "ns", "priorityClassName": "high",
            "nodeClaim": {
                "nodeSelector": {"disk": "ssd"},
                "hardNodeAffinity": {"nodeSelectorTerms": [
                    {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a", "b"]}]},
                ]},
                "tolerations": [{"key": "k", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 5}],
            },
        }))
        .unwrap();
        let actual = replica_requirements(&needs);
        assert_eq!(
            (actual.namespace.as_str(), actual.priority_class_name.as_str()),
            ("ns", "high")
        );
        // Field 1 as a string of four bytes.
        assert_eq!(actual.resource_request_bytes["cpu"], b"\x0a\x04250m");
        let claim = actual.node_claim.as_ref().unwrap();
        assert_eq!(claim.node_selector["disk"], "ssd");
        assert_eq!(
            claim.node_affinity_bytes,
            b"\x0a\x12\x0a\x10\x0a\x04zone\x12\x02In\x1a\x01a\x1a\x01b"
        );
        assert_eq!(
            claim.tolerations_bytes,
            [b"\x0a\x01k\x12\x06Exists\x22\x09NoExecute\x28\x05".to_vec()]
        );
        let decoded = wire::ReplicaRequirements::decode(actual.encode_to_vec().as_slice()).unwrap();
        assert_eq!(decoded, actual);
    }

    #[test]
    fn messages_have_the_field_numbers_of_the_service() {
        let request = wire::MaxAvailableReplicasRequest {
            cluster: "m1".to_owned(),
            replica_requirements: Some(wire::ReplicaRequirements {
                namespace: "n".to_owned(),
                priority_class_name: "p".to_owned(),
                resource_request_bytes: [("cpu".to_owned(), vec![7])].into(),
                ..Default::default()
            }),
            assumed_workloads: vec![wire::AssumedWorkload {
                namespace: "a".to_owned(),
                components: Vec::new(),
            }],
        };
        let expected = b"\x0a\x02m1\x12\x10\x1a\x01n\x22\x01p\x2a\x08\x0a\x03cpu\x12\x01\x07\x1a\x03\x0a\x01a";
        assert_eq!(request.encode_to_vec(), expected);
        let sets = wire::MaxAvailableComponentSetsRequest {
            cluster: "m".to_owned(),
            components: vec![wire::Component {
                name: "c".to_owned(),
                replica_requirements: None,
                replicas: 2,
            }],
            namespace: "n".to_owned(),
            assumed_workloads: Vec::new(),
        };
        assert_eq!(sets.encode_to_vec(), b"\x0a\x01m\x12\x05\x0a\x01c\x18\x02\x1a\x01n");
        assert_eq!(
            wire::MaxAvailableReplicasResponse { max_replicas: 300 }.encode_to_vec(),
            b"\x08\xac\x02"
        );
        assert_eq!(
            wire::MaxAvailableComponentSetsResponse { max_sets: 1 }.encode_to_vec(),
            b"\x08\x01"
        );
    }
}
