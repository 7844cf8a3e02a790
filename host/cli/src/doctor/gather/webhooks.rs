//! Registered webhooks, and whether their endpoints accept connections.

use std::time::Duration;

use bulkhead_api::ResourceInterpreterWebhookConfiguration;
use k8s_openapi::api::admissionregistration::v1::MutatingWebhookConfiguration;
use kube::{Api, Client, ResourceExt};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

use super::listed;
use crate::doctor::checks;
use crate::doctor::facts::{Endpoint, Facts, Webhook};

/// Name of the registration of admission, unless the Lease has another name.
const NAME: &str = "bulkhead";
/// Timeout of a connection.
const CONNECT_TIME_MAX: Duration = Duration::from_secs(3);

/// Records the webhooks of Karmada's interpreter, and those of this installation's admission. Those of Services are
/// skipped, because only the control plane can resolve them.
pub(super) async fn gather(client: &Client, facts: &mut Facts) {
    let mut found = of_interpreter(client, facts).await;
    found.extend(of_admission(client, facts).await);
    let mut asking = JoinSet::new();
    for (index, webhook) in found.iter().enumerate() {
        let url = webhook.url.clone();
        asking.spawn(async move { (index, ask(&url).await) });
    }
    while let Some(joined) = asking.join_next().await {
        if let Ok((index, endpoint)) = joined
            && let Some(webhook) = found.get_mut(index)
        {
            webhook.endpoint = endpoint;
        }
    }
    facts.webhooks = found;
}

async fn of_interpreter(client: &Client, facts: &mut Facts) -> Vec<Webhook> {
    let configurations = listed::<ResourceInterpreterWebhookConfiguration>(client, checks::WEBHOOKS, facts).await;
    let mut found = Vec::new();
    for configuration in configurations {
        let name = configuration.name_any();
        let with_url = |hook: bulkhead_api::webhook::Hook| Some((hook.name, hook.client_config.url?));
        for (webhook, url) in configuration.webhooks.into_iter().filter_map(with_url) {
            let configuration = format!("ResourceInterpreterWebhookConfiguration {name}");
            found.push(Webhook {
                configuration,
                name: webhook,
                url,
                is_required: true,
                endpoint: Endpoint::Accepts,
            });
        }
    }
    found
}

async fn of_admission(client: &Client, facts: &mut Facts) -> Vec<Webhook> {
    let name = facts
        .installation
        .lease
        .as_ref()
        .map_or(NAME, |lease| &lease.name)
        .to_owned();
    let api: Api<MutatingWebhookConfiguration> = Api::all(client.clone());
    let configuration = format!("MutatingWebhookConfiguration {name}");
    let hooks = match api.get_opt(&name).await {
        Ok(found) => found.and_then(|found| found.webhooks).unwrap_or_default(),
        Err(error) => {
            facts.unread(checks::WEBHOOKS, &configuration, &error);
            Vec::new()
        }
    };
    let webhook = |hook: k8s_openapi::api::admissionregistration::v1::MutatingWebhook| {
        // The default of Kubernetes is Fail.
        let is_required = hook.failure_policy.as_deref() != Some("Ignore");
        let (configuration, endpoint) = (configuration.clone(), Endpoint::Accepts);
        Some(Webhook {
            configuration,
            name: hook.name,
            url: hook.client_config.url?,
            is_required,
            endpoint,
        })
    };
    hooks.into_iter().filter_map(webhook).collect()
}

/// Connects to the endpoint of a URL.
async fn ask(url: &str) -> Endpoint {
    let Some((host, port)) = address(url) else {
        return Endpoint::Unreachable {
            why: "the URL has no host".to_owned(),
        };
    };
    match tokio::time::timeout(CONNECT_TIME_MAX, TcpStream::connect((host.as_str(), port))).await {
        Ok(Ok(_)) => Endpoint::Accepts,
        Ok(Err(error)) if error.kind() == std::io::ErrorKind::ConnectionRefused => Endpoint::Refuses,
        Ok(Err(error)) => Endpoint::Unreachable { why: error.to_string() },
        Err(_) => {
            let why = format!("no answer within {} s", CONNECT_TIME_MAX.as_secs());
            Endpoint::Unreachable { why }
        }
    }
}

/// Returns host and port of an HTTPS URL.
fn address(url: &str) -> Option<(String, u16)> {
    let url: http::Uri = url.parse().ok()?;
    let host = url.host()?.trim_start_matches('[').trim_end_matches(']').to_owned();
    Some((host, url.port_u16().unwrap_or(443)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn an_endpoint_without_a_process_refuses() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("https://{}/interpret", listener.local_addr().unwrap());
        assert_eq!(ask(&url).await, Endpoint::Accepts);
        drop(listener);
        assert_eq!(ask(&url).await, Endpoint::Refuses);
        assert!(matches!(ask("/interpret").await, Endpoint::Unreachable { .. }));
    }

    #[test]
    fn the_port_of_a_url_is_that_of_https_unless_it_has_one() {
        assert_eq!(
            address("https://bulkhead/interpret"),
            Some(("bulkhead".to_owned(), 443))
        );
        assert_eq!(address("https://[::1]:8443"), Some(("::1".to_owned(), 8443)));
    }
}
