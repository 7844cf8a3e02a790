//! Version and clock of an API server.

use std::sync::Arc;
use std::time::Duration;

use bulkhead_controllers::connect;
use bulkhead_runtime::connection::WritePermit;
use bulkhead_server::connect_error::ConnectError;
use bulkhead_server::hub::{HubArguments, in_time};
use http::{Request, header};
use k8s_openapi::jiff::fmt::rfc2822::DateTimeParser;
use kube::Client;
use kube::client::Body;

use super::server_error;
use crate::doctor::facts::{NO_ADDRESS, Server};

/// Queries the clock of a server that answered before. Requests of the client have a time limit.
pub(super) async fn ask(client: &Client, address: &str, version: &str) -> Server {
    let mut server = Server {
        address: address.to_owned(),
        version: version.to_owned(),
        ..Server::default()
    };
    match clock_ahead_ms(client).await {
        Ok(ahead) => server.clock_ahead_ms = ahead,
        Err(error) => server.error = Some(server_error(&ConnectError::of(address, &error).into())),
    }
    server
}

/// Returns how far a server's clock is ahead of the local clock, in milliseconds: its `Date` header minus the middle
/// of the request.
async fn clock_ahead_ms(client: &Client) -> kube::Result<Option<i64>> {
    let request = Request::get("/version")
        .body(Body::empty())
        .map_err(kube::Error::HttpError)?;
    let before = bulkhead_server::now();
    let response = client.send(request).await?;
    let after = bulkhead_server::now();
    if response.status().is_client_error() || response.status().is_server_error() {
        let message = response.status().to_string();
        let status = kube::core::Status::failure(&message, "").with_code(response.status().as_u16());
        return Err(kube::Error::Api(Box::new(status)));
    }
    let date = response.headers().get(header::DATE).and_then(|date| date.to_str().ok());
    let date = date.and_then(|date| DateTimeParser::new().parse_timestamp(date).ok());
    let middle = i64::midpoint(before.as_millisecond(), after.as_millisecond());
    // The header is cut to whole seconds, so it is half a second behind on average.
    Ok(date.map(|date| date.as_millisecond() + 500 - middle))
}

/// Describes a control plane that could not be connected to.
pub(super) async fn out_of_reach(arguments: &HubArguments, error: &anyhow::Error) -> Server {
    let address = arguments
        .config()
        .await
        .map_or_else(|_| NO_ADDRESS.to_owned(), |config| config.cluster_url.to_string());
    Server {
        address,
        error: Some(server_error(error)),
        ..Server::default()
    }
}

/// Returns a client that impersonates another user.
pub(super) async fn impersonating(arguments: &HubArguments, user: &str, limit: Duration) -> anyhow::Result<Client> {
    let mut config = arguments.config().await?;
    config.auth_info.impersonate = Some(user.to_owned());
    Ok(in_time(
        connect(config, &WritePermit::unlimited(), &Arc::default())?,
        limit,
    ))
}
