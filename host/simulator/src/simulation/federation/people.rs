//! Writes of people to the control plane: they apply and delete objects, request reschedulings, and retry.

use std::cell::Cell;
use std::time::Duration;

use anyhow::Context as _;
use bulkhead_api::{ClusterResourceBinding, ResourceBinding};
use bulkhead_apiserver::conform;
use bulkhead_runtime::causes::causes;
use bulkhead_runtime::kinds::ObjectKind;
use kube::api::{Api, DeleteParams, DynamicObject, Patch, PatchParams, PostParams};
use serde_json::{Value, json};

use super::Federation;
use crate::scenario::{ManifestObject, ObjectSpec, builtin};

/// Attempts in a row at one request.
const ATTEMPTS: usize = 6;
/// Pause between two of them.
const ATTEMPT_PAUSE: Duration = Duration::from_millis(200);

/// Returns true if the API server rejected a request as invalid, so that a retry is pointless.
fn is_refused(error: &anyhow::Error) -> bool {
    let known = error.chain().find_map(|cause| cause.downcast_ref::<kube::Error>());
    known.is_none_or(is_final)
}

fn is_final(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if (400..500).contains(&status.code) && ![409, 410, 429].contains(&status.code))
}

/// Returns the error of a request about an object, at the position of the field that was refused. An error that may pass
/// keeps its cause.
fn failure(object: &ManifestObject, error: kube::Error) -> anyhow::Error {
    let field = match &error {
        kube::Error::Api(status) => status.details.iter().flat_map(|details| &details.causes).next(),
        _ => None,
    };
    let path = field.map_or("", |cause| &cause.field);
    let message = field.map_or_else(|| causes(&error), |cause| cause.message.clone());
    let problem = object.origin.problem(path, message);
    if is_final(&error) {
        anyhow::Error::msg(problem)
    } else {
        anyhow::Error::new(error).context(problem)
    }
}

/// Makes a request several times. Returns false if it failed for a reason that passes.
async fn attempted<F: Future<Output = anyhow::Result<()>>>(request: impl Fn() -> F) -> anyhow::Result<bool> {
    for _ in 0..ATTEMPTS {
        match request().await {
            Err(error) if !is_refused(&error) => tokio::time::sleep(ATTEMPT_PAUSE).await,
            done => return done.map(|()| true),
        }
    }
    Ok(false)
}

/// Returns an object with the defaults of its kind. An object that is not whole, because a disturbance deleted what it
/// would change, stays as it is.
fn completed(kind: &ObjectKind, object: &Value) -> Value {
    let mut whole = object.clone();
    let is_valid = builtin(&kind.api_version, &kind.kind).is_some_and(|kind| conform(kind, &mut whole).is_ok());
    if is_valid { whole } else { object.clone() }
}

impl Federation {
    /// Creates an object in the control plane, or merges it into the existing one. Returns false if the request failed for
    /// a reason that passes.
    pub(in crate::simulation) async fn apply(&self, object: &ManifestObject) -> anyhow::Result<bool> {
        attempted(|| self.try_apply(object)).await
    }

    async fn try_apply(&self, object: &ManifestObject) -> anyhow::Result<()> {
        let text = |pointer: &str| {
            object
                .value
                .pointer(pointer)
                .and_then(Value::as_str)
                .unwrap_or_default()
        };
        let kind = ObjectKind::new(text("/apiVersion"), text("/kind"));
        let (namespace, name) = (text("/metadata/namespace"), text("/metadata/name"));
        let about = || object.origin.problem("", "cannot be applied");
        let failed = |error: kube::Error| failure(object, error);
        let known = self
            .kinds
            .resolve(&kind)
            .await
            .map_err(anyhow::Error::new)
            .with_context(about)?;
        let namespace = if namespace.is_empty() { "default" } else { namespace };
        let api: Api<DynamicObject> = known.api(self.client(), namespace);
        if api.get_opt(name).await.map_err(failed)?.is_some() {
            let patch = Patch::Merge(&object.value);
            api.patch(name, &PatchParams::default(), &patch).await.map_err(failed)?;
        } else {
            let typed = serde_json::from_value(completed(&kind, &object.value)).with_context(about)?;
            api.create(&PostParams::default(), &typed).await.map_err(failed)?;
        }
        Ok(())
    }

    /// Deletes an object of the control plane. Returns false if the request failed for a reason that passes.
    pub(in crate::simulation) async fn delete(&self, object: &ObjectSpec) -> anyhow::Result<bool> {
        attempted(|| self.try_delete(object)).await
    }

    async fn try_delete(&self, object: &ObjectSpec) -> anyhow::Result<()> {
        let kind = ObjectKind::new(&object.api_version, &object.kind);
        let about = || format!("deleting {} {}", object.kind, object.name);
        let known = self
            .kinds
            .resolve(&kind)
            .await
            .map_err(anyhow::Error::new)
            .with_context(about)?;
        let api: Api<DynamicObject> = known.api(self.client(), &object.namespace);
        api.delete(&object.name, &DeleteParams::background())
            .await
            .with_context(about)?;
        Ok(())
    }

    /// Sets the field `spec.rescheduleTriggeredAt` of a binding to the virtual time. Returns false if the request failed
    /// for a reason that passes, or if there is no such binding yet.
    pub(in crate::simulation) async fn reschedule(&self, binding: &str) -> anyhow::Result<bool> {
        let exists = Cell::new(true);
        let done = attempted(async || match self.try_reschedule(binding).await {
            Err(kube::Error::Api(status)) if status.code == 404 => {
                exists.set(false);
                Ok(())
            }
            done => done.with_context(|| format!("rescheduling the binding {binding}")),
        });
        Ok(done.await? && exists.get())
    }

    async fn try_reschedule(&self, binding: &str) -> kube::Result<()> {
        let patch = json!({"spec": {"rescheduleTriggeredAt": self.now().truncated()}});
        let (params, patch) = (PatchParams::default(), Patch::Merge(&patch));
        match binding.split_once('/') {
            Some((namespace, name)) => {
                let api = Api::<ResourceBinding>::namespaced(self.client(), namespace);
                api.patch(name, &params, &patch).await.map(|_| ())
            }
            None => Api::<ClusterResourceBinding>::all(self.client())
                .patch(binding, &params, &patch)
                .await
                .map(|_| ()),
        }
    }
}
