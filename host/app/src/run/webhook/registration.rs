//! Tells the API server about the endpoint.

use anyhow::Context as _;
use bulkhead_api::REGISTERED;
use k8s_openapi::api::admissionregistration::v1::MutatingWebhookConfiguration;
use kube::api::{Patch, PatchParams};
use kube::{Api, Client};
use serde_json::{Value, json};

use super::{Certificate, review};

const NAME: &str = "bulkhead";
/// As Karmada's. A review takes well under a millisecond; the rest is for a busy machine.
const TIMEOUT_S: u32 = 3;

/// Registers the endpoint for the kinds that we own, in place of what was registered before.
///
/// The endpoint is asked by `url`, which API servers outside of a cluster can reach too.
pub(in crate::run) async fn register(client: &Client, url: &str, certificate: &Certificate) -> anyhow::Result<()> {
    let api: Api<MutatingWebhookConfiguration> = Api::all(client.clone());
    let desired = configuration(url, certificate.authority());
    let parameters = PatchParams::apply("bulkhead").force();
    let written = api.patch(NAME, &parameters, &Patch::Apply(&desired)).await;
    written.with_context(|| format!("registering the webhook {url}"))?;
    Ok(())
}

fn configuration(url: &str, authority: &str) -> Value {
    let rules: Vec<_> = REGISTERED
        .iter()
        .map(|info| {
            json!({
                "apiGroups": [info.group],
                "apiVersions": [info.version],
                "resources": [info.plural],
                "operations": ["CREATE", "UPDATE"],
                "scope": if info.namespaced { "Namespaced" } else { "Cluster" },
            })
        })
        .collect();
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "MutatingWebhookConfiguration",
        "metadata": {"name": NAME},
        "webhooks": [{
            "name": "admit.bulkhead.dev",
            "admissionReviewVersions": ["v1"],
            "sideEffects": "None",
            "timeoutSeconds": TIMEOUT_S,
            // Objects of these kinds that were not completed, without permanent ids, would be of no use to anybody.
            "failurePolicy": "Fail",
            "matchPolicy": "Equivalent",
            "reinvocationPolicy": "IfNeeded",
            "rules": rules,
            "clientConfig": {
                "url": format!("{url}{}", review::PATH),
                "caBundle": k8s_openapi::ByteString(authority.as_bytes().to_vec()),
            },
        }],
    })
}
