//! Certificates that connections to the control plane and to the webhook depend on.

use bulkhead_server::expiry;
use bulkhead_server::hub::{HubArguments, client_certificate};
use bulkhead_server::{RunArguments, WEBHOOK_SECRET, WebhookCertificate};
use k8s_openapi::api::core::v1::Secret;
use kube::{Api, Client};

use crate::doctor::checks;
use crate::doctor::facts::{Certificate, Facts};

/// Returns the client certificate and the certificate authority of the kubeconfig.
pub(super) async fn of_kubeconfig(arguments: &HubArguments) -> Vec<Certificate> {
    // The control plane check reports a kubeconfig that cannot be read.
    let Ok(config) = arguments.config().await else {
        return Vec::new();
    };
    let mut found = Vec::new();
    if let Some((place, pem)) = client_certificate(&config) {
        let remedy = "renew the client certificate of the kubeconfig";
        found.push(read(
            "client certificate",
            &place,
            remedy,
            pem.and_then(|pem| expiry::of_chain(&pem)),
        ));
    }
    let ends: anyhow::Result<Vec<_>> = config
        .root_cert
        .iter()
        .flatten()
        .map(|der| expiry::of_der(der))
        .collect();
    if let Some(ends) = ends.map(|ends| ends.into_iter().max()).transpose() {
        let remedy = "put the current certificate authority of the control plane into the kubeconfig";
        found.push(read("certificate authority", "the kubeconfig", remedy, ends));
    }
    found
}

/// Adds the certificate of the webhook, if there is one.
pub(super) async fn of_webhook(arguments: &RunArguments, client: &Client, facts: &mut Facts) {
    let Some(place) = arguments.webhook_certificate() else {
        return;
    };
    let (place, remedy, chain) = match place {
        WebhookCertificate::Directory(directory) => {
            let path = directory.join("tls.crt");
            let chain = std::fs::read(&path).map_err(anyhow::Error::from);
            (
                path.display().to_string(),
                "renew it; the file is read again within 30 s",
                chain,
            )
        }
        WebhookCertificate::Secret { namespace } => {
            let secrets: Api<Secret> = Api::namespaced(client.clone(), namespace);
            let secret = match secrets.get_opt(WEBHOOK_SECRET).await {
                Ok(Some(secret)) => secret,
                // The first process creates it.
                Ok(None) => return,
                Err(error) => return facts.unread(checks::CERTIFICATES, WEBHOOK_SECRET, &error),
            };
            let chain = secret
                .data
                .and_then(|mut data| data.remove("tls.crt"))
                .map(|chain| chain.0);
            let chain = chain.ok_or_else(|| anyhow::anyhow!("tls.crt is missing"));
            let remedy = "a running process renews it a month before it expires; delete the Secret to recreate it";
            (format!("Secret {namespace}/{WEBHOOK_SECRET}"), remedy, chain)
        }
    };
    let ends = chain.and_then(|chain| expiry::of_chain(&chain));
    facts
        .certificates
        .push(read("certificate of the webhook", &place, remedy, ends));
}

/// Converts a certificate to a fact.
pub(super) fn read(
    what: &str,
    place: &str,
    remedy: &str,
    ends: anyhow::Result<bulkhead_core::time::Time>,
) -> Certificate {
    Certificate {
        what: what.to_owned(),
        place: place.to_owned(),
        remedy: remedy.to_owned(),
        error: ends.as_ref().err().map(|error| format!("{error:#}")),
        ends: ends.ok(),
    }
}
