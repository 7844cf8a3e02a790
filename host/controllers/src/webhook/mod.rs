//! Webhook interpreters: the choice of a webhook, and the effect of its answer on a decision
//! (Karmada: `pkg/resourceinterpreter/customized/webhook`).
//!
//! Policies answer synchronously and webhooks do not. So the controller calls a webhook before it makes the decision,
//! and adds its answer to the set of policies as one more policy. The decision stays synchronous and replays from its
//! record; only controllers wait.
//!
//! A webhook is called only if no policy before it in the order of precedence answers. Each failure is a fault: the
//! health of the object is then unknown, any other operation is an error, and no policy below answers in its place.

mod address;
mod breaker;
mod https;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use bulkhead_api::ResourceInterpreterWebhookConfiguration;
use bulkhead_api::webhook::context::{BadAnswer, VERSION, reply, request};
use bulkhead_api::webhook::{Hook, choose};
use bulkhead_core::call::{Call, Reply};
use bulkhead_core::policy::{EngineKind, Fault, FaultKind, Policy, PolicyId};
use bulkhead_plugin::PrecomputedPolicy;
use futures::future::BoxFuture;
use kube::ResourceExt;
use serde_json::Value;

pub use address::WebhookTransport;
pub use https::HttpsWebhooks;

/// Time limit of a webhook that does not set one: 30 seconds as in Karmada's client, not the 10 seconds of its
/// documentation.
const TIMEOUT_DEFAULT: Duration = Duration::from_secs(30);

/// Transport of requests to webhooks.
pub trait Webhooks: Send + Sync {
    /// Sends a body to a webhook and returns the body of its response, within a time limit.
    fn send<'a>(&'a self, hook: &'a Hook, body: Vec<u8>, within: Duration) -> BoxFuture<'a, Result<Vec<u8>, Fault>>;
}

/// Transport for simulations, whose outcome must not depend on anything outside: no webhook is reachable.
pub struct NoWebhooks;

impl Webhooks for NoWebhooks {
    fn send<'a>(&'a self, _: &'a Hook, _: Vec<u8>, _: Duration) -> BoxFuture<'a, Result<Vec<u8>, Fault>> {
        let fault = Fault::new(FaultKind::Unreachable, "webhooks are not called here");
        Box::pin(std::future::ready(Err(fault)))
    }
}

/// Returns the webhook that a call is for, if there is one.
pub fn hook_for(
    configurations: &[Arc<ResourceInterpreterWebhookConfiguration>],
    call: &Call<'_>,
) -> Option<(PolicyId, Hook)> {
    let operation = call.operation_name()?;
    let object = call.object()?;
    let field = |name: &str| object.get(name).and_then(Value::as_str).unwrap_or_default();
    let (name, hook) = choose(
        configurations.iter().map(|one| &**one),
        operation,
        field("apiVersion"),
        field("kind"),
    )?;
    let (configuration, _) = name.split_once('/').unwrap_or((&name, ""));
    let version = configurations.iter().find(|one| one.name_any() == configuration);
    let version = version.and_then(|one| one.resource_version()).unwrap_or_default();
    Some((
        PolicyId {
            name,
            version,
            engine: EngineKind::Webhook,
        },
        hook.clone(),
    ))
}

/// Calls a webhook. Returns a policy that always gives its answer, or its fault. `uid` identifies the request.
pub async fn ask(webhooks: &dyn Webhooks, (id, hook): (PolicyId, Hook), call: &Call<'_>, uid: &str) -> Arc<dyn Policy> {
    let answer = answer(webhooks, &hook, call, uid).await;
    let answer = answer.map_err(|fault| Fault::new(fault.kind, format!("webhook {}: {fault}", id.name)));
    Arc::new(PrecomputedPolicy::new(id, call, answer))
}

async fn answer(webhooks: &dyn Webhooks, hook: &Hook, call: &Call<'_>, uid: &str) -> Result<Reply, Fault> {
    if !hook
        .interpreter_context_versions
        .iter()
        .any(|version| version == VERSION)
    {
        let known = hook.interpreter_context_versions.join(", ");
        let message = format!("it supports the versions [{known}], and Bulkhead uses {VERSION}");
        return Err(Fault::new(FaultKind::Unreachable, message));
    }
    let body = request(call, uid).ok_or_else(|| Fault::new(FaultKind::HostBug, "webhooks do not support this call"))?;
    let seconds = hook.timeout_seconds.and_then(|seconds| u64::try_from(seconds).ok());
    let within = seconds.map_or(TIMEOUT_DEFAULT, Duration::from_secs);
    let answer = webhooks.send(hook, body.to_string().into_bytes(), within).await?;
    reply(call, uid, &answer).map_err(|error| {
        let kind = match error {
            BadAnswer::Refused { .. } => FaultKind::GuestError,
            BadAnswer::Invalid(_) | BadAnswer::Patch(_) => FaultKind::BadReply,
        };
        Fault::new(kind, error.to_string())
    })
}
