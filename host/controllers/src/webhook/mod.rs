//! Webhook interpreters: which one is asked, and how what it says takes part in a decision.
//! (Karmada: `pkg/resourceinterpreter/customized/webhook`.)
//!
//! Policies answer at once and hooks do not, so a hook is asked before the decision is made, by the controller that
//! makes it, and its answer stands in the set of policies as one more policy that says what it said. What decides stays
//! synchronous and replays from what is recorded; only controllers wait.
//!
//! A hook is asked only when nobody before it in the order of precedence answers. Whatever goes wrong with it is a
//! fault: the health of the object is unknown then, any other operation is an error, and nobody below answers in its
//! place.

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
use bulkhead_plugin::Answered;
use futures::future::BoxFuture;
use kube::ResourceExt;
use serde_json::Value;

pub use address::WebhookTransport;
pub use https::HttpsWebhooks;

/// How long an answer may take where the hook does not say: what Karmada's client allows, not the 10 seconds that its
/// documentation promises.
const TIMEOUT_DEFAULT: Duration = Duration::from_secs(30);

/// Sends requests to hooks.
pub trait Webhooks: Send + Sync {
    /// Sends a body to a hook and gives back the body of its answer, within that time.
    fn send<'a>(&'a self, hook: &'a Hook, body: Vec<u8>, within: Duration) -> BoxFuture<'a, Result<Vec<u8>, Fault>>;
}

/// For a simulation, whose outcome must not depend on what is outside of it: every hook is out of reach.
pub struct NoWebhooks;

impl Webhooks for NoWebhooks {
    fn send<'a>(&'a self, _: &'a Hook, _: Vec<u8>, _: Duration) -> BoxFuture<'a, Result<Vec<u8>, Fault>> {
        let fault = Fault::new(FaultKind::Unreachable, "webhooks are not asked here");
        Box::pin(std::future::ready(Err(fault)))
    }
}

/// The hook that a call is for, if there is one.
pub fn hook_for(
    configurations: &[Arc<ResourceInterpreterWebhookConfiguration>],
    call: &Call<'_>,
) -> Option<(PolicyId, Hook)> {
    let operation = call.operation_name()?;
    let object = call.object()?;
    let field = |name: &str| object.get(name).and_then(Value::as_str).unwrap_or_default();
    let (name, hook) = choose(configurations.iter().map(|one| &**one), operation, field("apiVersion"), field("kind"))?;
    let (configuration, _) = name.split_once('/').unwrap_or((&name, ""));
    let version = configurations.iter().find(|one| one.name_any() == configuration);
    let version = version.and_then(|one| one.resource_version()).unwrap_or_default();
    Some((PolicyId { name, version, engine: EngineKind::Webhook }, hook.clone()))
}

/// Asks a hook. What it says, or what went wrong, is what the policy that comes back always answers. `uid` tells this
/// request from all others.
pub async fn ask(webhooks: &dyn Webhooks, (id, hook): (PolicyId, Hook), call: &Call<'_>, uid: &str) -> Arc<dyn Policy> {
    let answer = answer(webhooks, &hook, call, uid).await;
    let answer = answer.map_err(|fault| Fault::new(fault.kind, format!("webhook {}: {fault}", id.name)));
    Arc::new(Answered::new(id, call, answer))
}

async fn answer(webhooks: &dyn Webhooks, hook: &Hook, call: &Call<'_>, uid: &str) -> Result<Reply, Fault> {
    if !hook.interpreter_context_versions.iter().any(|version| version == VERSION) {
        let known = hook.interpreter_context_versions.join(", ");
        let message = format!("it understands the versions [{known}], and {VERSION} is what is spoken here");
        return Err(Fault::new(FaultKind::Unreachable, message));
    }
    let body = request(call, uid).ok_or_else(|| Fault::new(FaultKind::HostBug, "webhooks are not asked this"))?;
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
