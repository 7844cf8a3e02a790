//! Periodic checks for missing permissions and expiring certificates, before they cause failures.

use std::time::Duration;

use bulkhead_core::time::Time;
use kube::Client;
use tracing::{info, warn};

use super::endpoint::State;
use super::hub::{HubArguments, client_certificate};
use super::now;
use super::webhook::Endpoint;
use crate::access::{self, Need};

/// Interval of the permission check while permissions are missing.
const MISSING: Duration = Duration::from_secs(30);
/// Interval of the certificate check.
const CERTIFICATES: Duration = Duration::from_mins(5);
/// Remaining lifetime below which a certificate is logged, in seconds.
const ENDS_SOON_S: i64 = 14 * 24 * 3600;

/// Logs missing permissions until there are none. Runs in the background; permitted operations work meanwhile.
pub(super) async fn permissions(client: Client, needs: Vec<Need>, state: State) {
    let mut reported = Vec::new();
    loop {
        let answers = access::review(&client, &needs).await;
        let refused = needs.iter().zip(&answers).filter(|(_, allowed)| **allowed == Ok(false));
        let missing: Vec<_> = refused.map(|(need, _)| need).collect();
        state.update(|status| status.missing_permissions = missing.len());
        if missing != reported {
            for need in &missing {
                warn!("missing permission: {need}; {}", need.why.join("; "));
            }
            if missing.is_empty() {
                info!("no permission is missing any more");
            }
            reported = missing;
        }
        if reported.is_empty() {
            return;
        }
        tokio::time::sleep(MISSING).await;
    }
}

/// Exports the expiry of certificates as metrics and logs those that expire soon. Never returns.
pub(super) async fn certificates(hub: HubArguments, webhook: Option<&Endpoint>, state: State) {
    let mut reported = Vec::new();
    loop {
        let mut ends = std::collections::BTreeMap::new();
        let config = hub.config().await.ok();
        let client = config
            .as_ref()
            .and_then(client_certificate)
            .and_then(|(_, pem)| pem.ok());
        for (name, pem) in [("kubeconfig", client), ("webhook", webhook.map(Endpoint::certificate))] {
            if let Some(end) = pem.and_then(|pem| crate::expiry::of_chain(&pem).ok()) {
                ends.insert(name.to_owned(), end);
            }
        }
        let near = Time::new(now()).plus_seconds(ENDS_SOON_S);
        let soon: Vec<_> = ends
            .iter()
            .filter(|(_, end)| **end < near)
            .map(|(name, end)| (name.clone(), *end))
            .collect();
        if soon != reported {
            for (name, end) in &soon {
                warn!("the certificate of the {name} expires at {end}");
            }
            reported = soon;
        }
        state.update(|status| status.certificates = ends);
        tokio::time::sleep(CERTIFICATES).await;
    }
}
