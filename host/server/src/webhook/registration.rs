//! Registration of the endpoint with the API server and Karmada.

use anyhow::Context as _;
use bulkhead_api::webhook::Rule;
use bulkhead_api::{KindInfo, REGISTERED, ResourceInterpreterWebhookConfiguration};
use k8s_openapi::ByteString;
use k8s_openapi::api::admissionregistration::v1::MutatingWebhookConfiguration;
use kube::api::{Patch, PatchParams};
use kube::{Api, Client};
use serde_json::{Value, json};

use super::interpreter::{self, INTERPRETER_TIMEOUT_S};
use super::review;

/// API group of Bulkhead's own kinds.
const OURS: &str = "bulkhead.dev";
/// Timeout of admission in seconds, same as Karmada's. A response takes well under a millisecond; the rest is for a
/// busy machine.
const TIMEOUT_S: u32 = 3;

/// Content of the registration.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Registration {
    /// Name of the webhook configurations.
    pub(super) name: String,
    /// URL of the endpoint, without a path.
    pub(super) url: String,
    /// CA bundle for API servers, in PEM.
    pub(super) authorities: String,
    /// True to register Karmada's kinds as well.
    pub(super) karmada_kinds: bool,
    /// Rules of the interpreter webhook; `None` if it is disabled.
    pub(super) interprets: Option<Vec<Rule>>,
}

impl Registration {
    /// Applies the webhook configurations, replacing previous ones. They refer to the endpoint by URL, which API
    /// servers outside the cluster can reach too.
    pub(super) async fn write(&self, client: &Client) -> anyhow::Result<()> {
        let parameters = PatchParams::apply("bulkhead").force();
        let api: Api<MutatingWebhookConfiguration> = Api::all(client.clone());
        let written = api
            .patch(&self.name, &parameters, &Patch::Apply(self.admission()))
            .await;
        written.with_context(|| format!("registering the webhook {}", self.url))?;
        if let Some(rules) = &self.interprets {
            let api: Api<ResourceInterpreterWebhookConfiguration> = Api::all(client.clone());
            let written = api
                .patch(&self.name, &parameters, &Patch::Apply(self.interpreter(rules)))
                .await;
            written.with_context(|| format!("registering the interpreter webhook {}", self.url))?;
        }
        Ok(())
    }

    fn client_config(&self, path: &str) -> Value {
        json!({"url": format!("{}{path}", self.url), "caBundle": ByteString(self.authorities.as_bytes().to_vec())})
    }

    fn admission(&self) -> Value {
        // Records of failovers have no rules, and a review would delay each of their writes.
        let reviewed = REGISTERED.iter().filter(|info| !info.kind.ends_with("FailoverRecord"));
        let (ours, theirs): (Vec<_>, Vec<_>) = reviewed.partition(|info| info.group == OURS);
        let hook = |name: &str, kinds: &[&KindInfo], failure_policy: &str| {
            json!({
                "name": name,
                "admissionReviewVersions": ["v1"],
                "sideEffects": "None",
                "timeoutSeconds": TIMEOUT_S,
                "failurePolicy": failure_policy,
                "matchPolicy": "Equivalent",
                "reinvocationPolicy": "IfNeeded",
                "rules": kinds.iter().map(|info| rule(info)).collect::<Vec<_>>(),
                "clientConfig": self.client_config(review::PATH),
            })
        };
        // An EvictionPause must be writable while this process is down: there are no evictions then, and it is
        // validated again when it is read.
        let mut hooks = vec![hook("admit.bulkhead.dev", &ours, "Ignore")];
        if self.karmada_kinds {
            // Objects of these kinds are unusable without admission, which adds their permanent ids.
            hooks.push(hook("admit-karmada.bulkhead.dev", &theirs, "Fail"));
        }
        json!({
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": "MutatingWebhookConfiguration",
            "metadata": {"name": self.name},
            "webhooks": hooks,
        })
    }

    fn interpreter(&self, rules: &[Rule]) -> Value {
        let hook = json!({
            "name": "interpret.bulkhead.dev",
            "interpreterContextVersions": [bulkhead_api::webhook::context::VERSION],
            "timeoutSeconds": INTERPRETER_TIMEOUT_S,
            "rules": rules,
            "clientConfig": self.client_config(interpreter::PATH),
        });
        json!({
            "apiVersion": "config.karmada.io/v1alpha1",
            "kind": "ResourceInterpreterWebhookConfiguration",
            "metadata": {"name": self.name},
            "webhooks": if rules.is_empty() { json!([]) } else { json!([hook]) },
        })
    }
}

fn rule(info: &KindInfo) -> Value {
    json!({
        "apiGroups": [info.group],
        "apiVersions": [info.version],
        "resources": [info.plural],
        "operations": ["CREATE", "UPDATE"],
        "scope": if info.namespaced { "Namespaced" } else { "Cluster" },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn registration(karmada_kinds: bool) -> Registration {
        Registration {
            name: "bulkhead".to_owned(),
            url: "https://bulkhead".to_owned(),
            authorities: "PEM".to_owned(),
            karmada_kinds,
            interprets: None,
        }
    }

    #[test]
    fn the_interpreter_has_a_second_to_answer() {
        let hook = &registration(false).interpreter(&[Rule::default()])["webhooks"][0];
        assert_eq!(hook["timeoutSeconds"], 1);
    }

    #[test]
    fn beside_karmada_its_kinds_are_left_to_it() {
        let hooks = registration(false).admission()["webhooks"].clone();
        assert_eq!(hooks.as_array().unwrap().len(), 1);
        assert_eq!(hooks[0]["failurePolicy"], "Ignore");
        let groups: Vec<_> = hooks[0]["rules"]
            .as_array()
            .unwrap()
            .iter()
            .map(|rule| &rule["apiGroups"])
            .collect();
        assert!(
            !groups.is_empty() && groups.iter().all(|groups| **groups == json!([OURS])),
            "{groups:?}"
        );
        assert_eq!(registration(true).admission()["webhooks"].as_array().unwrap().len(), 2);
    }

    #[test]
    fn failover_records_are_not_reviewed() {
        let admission = registration(true).admission().to_string();
        assert!(
            admission.contains("evictionpauses") && !admission.contains("failoverrecords"),
            "{admission}"
        );
    }
}
