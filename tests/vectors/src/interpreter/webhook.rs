//! Cases of webhooks: selection of the hook, content of the request, and interpretation of the response.
//!
//! These cases send no requests; the cases about the transport are in `transport`.

use std::sync::Arc;

use bulkhead_api::webhook::context::{BadAnswer, reply, request};
use bulkhead_api::webhook::{Hook, ResourceInterpreterWebhookConfiguration, choose};
use bulkhead_core::call::{Call, Reply};
use bulkhead_core::policy::{EngineKind, Fault, FaultKind, Policy, PolicyId, PolicySet};
use bulkhead_core::time::Time;
use bulkhead_plugin::PrecomputedPolicy;
use serde_json::{Value, json};

use super::case::{Arguments, Case};
use super::compare::same_values;
use super::outcome::{Outcome, ask, policy_call};
use super::{Ran, transport};

const UID: &str = "the-uid";

/// Runs a case of one hook.
pub(super) fn run(case: &Case) -> Result<Ran, String> {
    if case.operation == "HookEnabled" {
        let hook: Hook = serde_json::from_value(case.customizations.clone()).map_err(|error| error.to_string())?;
        let operation = case.inputs.get("operation").and_then(Value::as_str).unwrap_or_default();
        let enabled = hook.matches(operation, &case.kind.api_version(), &case.kind.kind);
        return Ok(Ran::Outcome(Outcome::Result(json!({"enabled": enabled}))));
    }
    let Some(response) = case.setup.get("webhookResponse") else {
        return transport::run(case);
    };
    let arguments = Arguments::read(&case.inputs)?;
    let call = policy_call(&case.operation, &arguments, Time::from_millis(0))?;
    let sent = request(&call, UID).ok_or("hooks are not asked this")?;
    if let Some(expected) = case
        .setup
        .get("observedRequest")
        .filter(|expected| !same_values(expected, &sent))
    {
        return Err(format!("the request is {sent}, expected {expected}"));
    }
    let body = if response == "" {
        String::new()
    } else {
        response.to_string().replace("{{UID}}", UID)
    };
    let policy = answered(&call, "c/h.example.io", reply(&call, UID, body.as_bytes()));
    ask(&PolicySet::new(vec![policy]), &case.operation, &arguments).map(Ran::Outcome)
}

/// Returns the policy of the matching hook in a case of all levels; `None` if no hook matches.
pub(super) fn of_levels(case: &Case) -> Result<Option<Arc<dyn Policy>>, String> {
    let hooks = case
        .setup
        .get("webhooks")
        .and_then(Value::as_array)
        .map_or(&[][..], Vec::as_slice);
    let configuration = |hook: &Value| {
        let object = json!({
            "metadata": {"name": hook["configuration"]},
            "webhooks": [{"name": hook["webhook"], "rules": hook["rules"], "clientConfig": {"url": hook["answers"]}}],
        });
        serde_json::from_value(object).map_err(|error| error.to_string())
    };
    let configurations: Result<Vec<ResourceInterpreterWebhookConfiguration>, String> =
        hooks.iter().map(configuration).collect();
    let configurations = configurations?;
    let chosen = choose(
        &configurations,
        &case.operation,
        &case.kind.api_version(),
        &case.kind.kind,
    );
    let Some((name, hook)) = chosen else { return Ok(None) };
    let arguments = Arguments::read(&case.inputs)?;
    let call = policy_call(&case.operation, &arguments, Time::from_millis(0))?;
    let answer = |healthy: bool, replicas: i32| {
        let response = json!({"uid": UID, "successful": true, "healthy": healthy, "replicas": replicas});
        reply(&call, UID, json!({"response": response}).to_string().as_bytes())
    };
    // Recorded responses of the servers at these paths.
    let answer = match hook.client_config.url.as_deref() {
        Some("/hookT") => answer(true, 50),
        Some("/hookF") => answer(false, 51),
        _ => Err(BadAnswer::Invalid("an error on the server".to_owned())),
    };
    Ok(Some(answered(&call, &name, answer)))
}

/// Returns the policy of a hook that has answered.
fn answered(call: &Call<'_>, name: &str, answer: Result<Reply, BadAnswer>) -> Arc<dyn Policy> {
    let answer = answer.map_err(|error| Fault::new(FaultKind::BadReply, error.to_string()));
    let id = PolicyId {
        name: name.to_owned(),
        version: String::new(),
        engine: EngineKind::Webhook,
    };
    Arc::new(PrecomputedPolicy::new(id, call, answer))
}
