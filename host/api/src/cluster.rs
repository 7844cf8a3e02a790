//! Member clusters (Karmada: `pkg/apis/cluster/v1alpha1/types.go`).

use std::collections::BTreeMap;

use bulkhead_core::model::{self, ClusterSpec, ClusterStatus, Condition, ConditionStatus};
use bulkhead_core::names::keys;
use kube::ResourceExt;
use kube::core::ClusterResourceScope;
use serde::de::DeserializeOwned;

use crate::object::api_object;
use crate::time::from_meta;

api_object! {
    /// Member cluster. Karmada serves it from an aggregated API server, not as a CRD.
    Cluster {
        group: "cluster.karmada.io",
        version: "v1alpha1",
        plural: "clusters",
        scope: ClusterResourceScope,
        spec: ClusterSpec,
        status: ClusterStatus
    }
}

impl Cluster {
    /// Converts the cluster to the model that decisions use.
    pub fn to_model(&self) -> model::Cluster {
        model::Cluster {
            name: self.name_any(),
            labels: self.labels().clone(),
            generation: self.metadata.generation.unwrap_or_default(),
            creation_timestamp: self.metadata.creation_timestamp.as_ref().map(from_meta),
            deletion_timestamp: self.metadata.deletion_timestamp.as_ref().map(from_meta),
            spec: self.spec.clone(),
            status: self.status.clone(),
            taint_owners: self.annotation(keys::TAINT_OWNERS).unwrap_or_default(),
            taint_owners_unknown: self.has_malformed_taint_owners(),
            condition_history: self.annotation(keys::CONDITION_HISTORY).unwrap_or_default(),
        }
    }

    /// Returns true if the `Ready` condition is True.
    pub fn is_ready(&self) -> bool {
        Condition::find(&self.status.conditions, "Ready").is_some_and(|ready| ready.status == ConditionStatus::True)
    }

    /// Returns true if the annotation with the owners of taints cannot be read.
    pub fn has_malformed_taint_owners(&self) -> bool {
        self.annotation::<BTreeMap<String, String>>(keys::TAINT_OWNERS).is_err()
    }

    /// Decodes one of Bulkhead's annotations; a default value if it is absent.
    fn annotation<T: Default + DeserializeOwned>(&self, key: &str) -> serde_json::Result<T> {
        self.annotations()
            .get(key)
            .map_or(Ok(T::default()), |text| serde_json::from_str(text))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_model_gets_the_metadata_that_decisions_read() {
        let cluster: Cluster = serde_json::from_value(json!({
            "apiVersion": "cluster.karmada.io/v1alpha1",
            "kind": "Cluster",
            "metadata": {
                "name": "member1",
                "labels": {"zone": "a"},
                "generation": 3,
                "creationTimestamp": "2023-11-14T22:13:20Z",
                "deletionTimestamp": "2023-11-14T22:13:21Z",
            },
            "spec": {
                "syncMode": "Pull",
                "apiEndpoint": "https://10.0.0.1:6443",
                "taints": [{"key": "k", "effect": "NoExecute", "timeAdded": "2023-11-14T22:13:20Z"}],
                "insecureSkipTLSVerification": true,
                "proxyHeader": {"X-Tenant": "a"},
                "later": {"than": "this"},
            },
            "status": {"conditions": [{
                "type": "Ready", "status": "True", "lastTransitionTime": "2023-11-14T22:13:20Z",
                "reason": "ClusterReady", "message": "cluster is healthy and ready to accept workloads",
            }]},
        }))
        .unwrap();
        let model = cluster.to_model();
        assert_eq!(model.name, "member1");
        assert_eq!(model.labels["zone"], "a");
        assert_eq!(model.generation, 3);
        assert_eq!(model.creation_timestamp.unwrap().as_millis(), 1_700_000_000_000);
        assert!(model.is_terminating() && model.is_ready() && cluster.is_ready());
        assert_eq!(model.spec.sync_mode, model::SyncMode::Pull);
        let written = serde_json::to_value(&cluster).unwrap();
        assert_eq!(written["spec"]["insecureSkipTLSVerification"], json!(true));
        assert_eq!(written["spec"]["proxyHeader"], json!({"X-Tenant": "a"}));
        assert_eq!(
            written["spec"]["later"],
            json!({"than": "this"}),
            "an unread field survives"
        );
    }

    #[test]
    fn owners_of_taints_are_known_none_or_unreadable() {
        let check = |text: Option<&str>, owners: &[(&str, &str)], is_unknown: bool| {
            let annotations = text.map(|text| json!({keys::TAINT_OWNERS: text}));
            let cluster = json!({"metadata": {"name": "m", "annotations": annotations}, "spec": {"syncMode": "Push"}});
            let model = serde_json::from_value::<Cluster>(cluster).unwrap().to_model();
            let found: Vec<_> = model
                .taint_owners
                .iter()
                .map(|(key, owner)| (key.as_str(), owner.as_str()))
                .collect();
            assert_eq!(
                (found.as_slice(), model.taint_owners_unknown),
                (owners, is_unknown),
                "{text:?}"
            );
        };
        check(None, &[], false);
        check(Some("{}"), &[], false);
        check(Some(r#"{"k:NoExecute": "p"}"#), &[("k:NoExecute", "p")], false);
        for malformed in ["", "none", "[]", r#"{"k:NoExecute": 1}"#, r#"{"k:NoExecute": "p""#] {
            check(Some(malformed), &[], true);
        }
    }

    /// An unknown taint effect is preserved; otherwise one such Cluster would make a whole list undecodable.
    #[test]
    fn a_taint_with_an_effect_of_another_program_is_read_and_written_back() {
        let spec = json!({"syncMode": "Push", "taints": [
            {"key": "a", "effect": "NoScheduleAtNight", "value": "v"}, {"key": "b", "effect": "NoExecute"},
        ]});
        let cluster = json!({"metadata": {"name": "m"}, "spec": spec});
        let cluster: Cluster = serde_json::from_value(cluster).unwrap();
        assert!(cluster.spec.taints[0].effect.is_foreign() && !cluster.spec.taints[1].effect.is_foreign());
        assert_eq!(serde_json::to_value(&cluster).unwrap()["spec"], spec);
    }
}
