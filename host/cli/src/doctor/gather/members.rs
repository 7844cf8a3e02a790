//! Member clusters: their Cluster objects, and the API servers of those that this installation connects to.

use std::time::Duration;

use bulkhead_api::Cluster;
use bulkhead_controllers::{MemberAccess, member_access};
use bulkhead_core::model::SyncMode;
use bulkhead_server::connect_error::ConnectError;
use bulkhead_server::expiry;
use bulkhead_server::hub::in_time;
use kube::{Client, ResourceExt};
use tokio::task::JoinSet;

use super::certificates::read;
use super::server;
use crate::doctor::checks;
use crate::doctor::facts::{Certificate, Facts, Member, Server, ServerError};

/// Result of querying one member.
struct Asked {
    member: Member,
    certificate: Option<Certificate>,
    unread: Option<kube::Error>,
}

/// Queries all members concurrently, so that a hanging member delays no other. Each request has the time limit.
pub(super) async fn gather(client: &Client, clusters: Vec<Cluster>, limit: Duration, facts: &mut Facts) {
    // Other modes do not connect to members, and have no right to read their Secrets.
    let talks = facts.installation.has("all");
    let mut asking = JoinSet::new();
    for (index, cluster) in clusters.into_iter().enumerate() {
        let client = client.clone();
        asking.spawn(async move { (index, ask(&client, &cluster, talks, limit).await) });
    }
    let mut asked = Vec::new();
    while let Some(joined) = asking.join_next().await {
        asked.extend(joined);
    }
    asked.sort_by_key(|(index, _)| *index);
    for (
        _,
        Asked {
            member,
            certificate,
            unread,
        },
    ) in asked
    {
        if let Some(error) = unread {
            let what = format!("Secret of cluster {}", member.cluster.name);
            facts.unread(checks::MEMBERS, &what, &error);
        }
        facts.certificates.extend(certificate);
        facts.members.push(member);
    }
}

async fn ask(hub: &Client, cluster: &Cluster, talks: bool, limit: Duration) -> Asked {
    let mut member = Member {
        cluster: cluster.to_model(),
        no_client: None,
        server: None,
    };
    let (mut certificate, mut unread) = (None, None);
    if talks && cluster.spec.sync_mode == SyncMode::Push {
        match member_access(hub, cluster).await {
            Ok(MemberAccess { client, ca_bundle }) => {
                if !ca_bundle.is_empty() {
                    let place = format!("the Secret of cluster {}", cluster.name_any());
                    let remedy = "join the cluster again with its current certificate authority";
                    certificate = Some(read(
                        "certificate authority",
                        &place,
                        remedy,
                        expiry::of_bundle(&ca_bundle),
                    ));
                }
                match client {
                    Ok(client) => {
                        let client = in_time(client, limit);
                        member.server = Some(of_client(&client, &cluster.spec.api_endpoint).await);
                    }
                    Err(why) => member.no_client = Some(why),
                }
            }
            Err(bulkhead_runtime::controller::Error::Api { source, .. }) => unread = Some(*source),
            Err(error) => member.no_client = Some(error.to_string()),
        }
    }
    Asked {
        member,
        certificate,
        unread,
    }
}

async fn of_client(client: &Client, address: &str) -> Server {
    match client.apiserver_version().await {
        Ok(version) => server::ask(client, address, &version.git_version).await,
        Err(error) => {
            let ConnectError {
                what,
                remedy,
                is_silent,
                ..
            } = ConnectError::of(address, &error);
            // A member has no kubeconfig here, but a Secret.
            let of_secret = |text: String| text.replace("the kubeconfig", "the Secret of the cluster");
            let error = ServerError {
                what: of_secret(what),
                remedy: of_secret(remedy),
                is_silent,
            };
            Server {
                address: address.to_owned(),
                error: Some(error),
                ..Server::default()
            }
        }
    }
}
