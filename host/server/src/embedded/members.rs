//! Simulated members of an embedded control plane, controlled by annotations of their Clusters.

use std::collections::BTreeMap;

use anyhow::Context as _;
use bulkhead_api::Cluster;
use bulkhead_apiserver::{
    Admission, AdmissionRequest, ApiServer, Clock, DenialReason, Denied, Fidelity, ObjectKey, kinds,
};
use bulkhead_emulator::{ClusterState, MemberCluster, MemberOptions, WorkloadFailure};
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::{Namespace, Secret};
use kube::api::{Patch, PatchParams};
use kube::{Api, Client};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tracing::{info, warn};

use super::data::DataDirectory;

/// Namespace of the Secrets with members' credentials, same as for `bulkhead join`.
const NAMESPACE: &str = "karmada-cluster";
/// Field manager of the embedded control plane's own writes.
const MANAGER: &str = "bulkhead-embedded";
/// Annotation of a Cluster: `unreachable`, `readyz-failing` or `readyz-degraded`; ready without it.
const STATE: &str = "simulation.bulkhead.dev/state";
/// Annotation of a Cluster: `never-ready`, `crash-loop` or `image-pull`; workloads are healthy without it.
const WORKLOADS: &str = "simulation.bulkhead.dev/workloads";

/// Admission that also refuses unknown values of the annotations of Clusters.
pub(super) struct CheckedAnnotations<A>(pub(super) A);

impl<A: Admission> Admission for CheckedAnnotations<A> {
    fn admit(&self, request: AdmissionRequest<'_>) -> Result<(), Denied> {
        if request.kind.kind == "Cluster" {
            check_annotation::<ClusterState>(&request, STATE)?;
            check_annotation::<WorkloadFailure>(&request, WORKLOADS)?;
        }
        self.0.admit(request)
    }
}

/// Checks the value of an annotation if the request changes it, so that a stored value does not block other changes.
fn check_annotation<T: DeserializeOwned>(request: &AdmissionRequest<'_>, key: &str) -> Result<(), Denied> {
    let value = |object: &Value| {
        object["metadata"]["annotations"][key]
            .as_str()
            .unwrap_or_default()
            .to_owned()
    };
    let (text, before) = (value(request.object), request.old.map(value));
    if text.is_empty() || before.is_some_and(|before| before == text) {
        return Ok(());
    }
    serde_json::from_value::<T>(Value::from(text.as_str()))
        .map(drop)
        .map_err(|error| Denied {
            reason: DenialReason::Invalid,
            field: format!("metadata.annotations[{key}]"),
            message: format!("Invalid value: {text:?}: {error}"),
        })
}

/// Returns the names of the members: `total` numbered ones, and those in the data directory.
pub(super) fn names(total: usize, data: Option<&DataDirectory>) -> anyhow::Result<Vec<String>> {
    let mut names: Vec<String> = (1..=total).map(|number| format!("member{number}")).collect();
    if let Some(data) = data {
        let folder = data.path().join("members");
        std::fs::create_dir_all(&folder).with_context(|| format!("making {}", folder.display()))?;
        for entry in std::fs::read_dir(&folder).with_context(|| format!("reading {}", folder.display()))? {
            names.extend(entry?.file_name().into_string().ok());
        }
        names.sort_by_key(|name| (name.len(), name.clone()));
        names.dedup();
    }
    Ok(names)
}

/// Creates a member with its stored objects.
pub(super) fn build(
    name: &str,
    seed: u64,
    clock: &Clock,
    ca_pem: &str,
    data: Option<&DataDirectory>,
) -> anyhow::Result<MemberCluster> {
    let mut options = MemberOptions {
        fidelity: Fidelity::People,
        ..MemberOptions::new(name, seed, clock.clone())
    };
    options.namespace_objects = vec![
        kinds::default_account(),
        json!({
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "kube-root-ca.crt"},
            "data": {"ca.crt": ca_pem},
        }),
    ];
    if let Some(data) = data {
        let (contents, persistence) = data.server(&format!("members/{name}"))?;
        options.contents = contents;
        options.persistence = Some(persistence);
    }
    Ok(MemberCluster::new(options))
}

/// Registers a member on the control plane, as `bulkhead join` does.
pub(super) async fn join(
    hub: &Client,
    member: &MemberCluster,
    url: &str,
    ca_pem: &str,
    token: &str,
) -> anyhow::Result<()> {
    let name = member.name();
    let id = member.server().kind_id("v1", "Namespace").and_then(|kind| {
        member
            .server()
            .store()
            .get(&ObjectKey::new(kind, "", "kube-system"))
            .map(|system| system.uid().to_owned())
    });
    let bytes = |text: &str| ByteString(text.as_bytes().to_vec());
    let secret = json!({
        "metadata": {"name": name, "namespace": NAMESPACE},
        "data": {"token": bytes(token), "caBundle": bytes(ca_pem)},
    });
    let cluster = json!({
        "metadata": {"name": name},
        "spec": {
            "id": id,
            "syncMode": "Push",
            "apiEndpoint": url,
            "provider": "simulated",
            "secretRef": {"namespace": NAMESPACE, "name": name},
        },
    });
    apply::<Namespace>(&Api::all(hub.clone()), json!({"metadata": {"name": NAMESPACE}})).await?;
    apply::<Secret>(&Api::namespaced(hub.clone(), NAMESPACE), secret).await?;
    apply::<Cluster>(&Api::all(hub.clone()), cluster).await
}

async fn apply<K>(api: &Api<K>, mut object: Value) -> anyhow::Result<()>
where
    K: kube::Resource<DynamicType = ()> + Clone + DeserializeOwned + std::fmt::Debug,
{
    object["apiVersion"] = K::api_version(&()).into();
    object["kind"] = K::kind(&()).into();
    let name = object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    let applied = api
        .patch(&name, &PatchParams::apply(MANAGER).force(), &Patch::Apply(&object))
        .await;
    applied
        .map(drop)
        .with_context(|| format!("writing {} {name}", K::kind(&())))
}

/// Applies the annotations of Clusters to the members. Never returns.
pub(super) async fn follow_annotations(hub: ApiServer, members: BTreeMap<String, MemberCluster>) {
    let Some(kind) = hub.kind_id("cluster.karmada.io/v1alpha1", "Cluster") else {
        return;
    };
    let store = hub.store();
    let mut changes = store.subscribe(&[kind]);
    let mut known: BTreeMap<&str, (String, String)> = BTreeMap::new();
    loop {
        for (name, member) in &members {
            let cluster = store.get(&ObjectKey::new(kind, "", name));
            let annotation = |key: &str| {
                let annotations = cluster
                    .as_ref()
                    .map(|cluster| &cluster.content()["metadata"]["annotations"]);
                annotations
                    .and_then(|found| found[key].as_str())
                    .unwrap_or_default()
                    .to_owned()
            };
            let wanted = (annotation(STATE), annotation(WORKLOADS));
            let before = known.insert(name, wanted.clone()).unwrap_or_default();
            if before.0 != wanted.0 {
                set_state(member, &wanted.0);
            }
            if before.1 != wanted.1 {
                set_workloads(member, &wanted.1);
            }
        }
        changes.changed().await;
        // The loop reads the current objects, so the changes themselves are not needed, and an overflow loses
        // nothing.
        let _ = changes.drain();
    }
}

/// Parses the value of an annotation. Returns `None` if it is empty or invalid; an invalid value is logged.
fn word<T: DeserializeOwned>(member: &MemberCluster, annotation: &str, text: &str) -> Option<T> {
    if text.is_empty() {
        return None;
    }
    let read = serde_json::from_value(Value::from(text));
    read.map_err(|error| warn!("cluster {}: annotation {annotation}: {error}", member.name()))
        .ok()
}

fn set_state(member: &MemberCluster, text: &str) {
    let state = word(member, STATE, text).unwrap_or(ClusterState::Recover);
    let message = match state {
        ClusterState::Unreachable => "cannot be reached",
        ClusterState::ReadyzFailing => "answers /readyz with 500",
        ClusterState::ReadyzDegraded => "answers /readyz with 202",
        ClusterState::Recover => "is healthy again",
    };
    member.link().set(state.link());
    member.server().set_ready(state.ready());
    info!("simulated: {} {message}", member.name());
}

fn set_workloads(member: &MemberCluster, text: &str) {
    let failure = word::<WorkloadFailure>(member, WORKLOADS, text).map(Into::into);
    member.set_failure(failure);
    let message = if failure.is_some() {
        "workloads fail"
    } else {
        "workloads are healthy again"
    };
    info!("simulated: {}: {message}", member.name());
}

#[cfg(test)]
mod tests {
    use bulkhead_apiserver::{Operation, ResourceKind};
    use k8s_openapi::jiff;

    use super::*;

    /// Returns the denial of a Cluster with an annotation.
    fn denial(old: Option<&Value>, key: &str, text: &str) -> Option<Denied> {
        struct Everything;
        impl Admission for Everything {
            fn admit(&self, _request: AdmissionRequest<'_>) -> Result<(), Denied> {
                Ok(())
            }
        }
        let kinds = kinds::kubernetes();
        let kind = ResourceKind {
            kind: "Cluster".into(),
            ..kinds[0].clone()
        };
        let mut object = json!({"metadata": {"name": "member1", "annotations": {key: text}}});
        let request = AdmissionRequest {
            operation: if old.is_some() {
                Operation::Update
            } else {
                Operation::Create
            },
            kind: &kind,
            namespace: None,
            old,
            object: &mut object,
            others: &Vec::<Value>::new,
            ids: &mut String::new,
            now: jiff::Timestamp::UNIX_EPOCH,
        };
        CheckedAnnotations(Everything).admit(request).err()
    }

    #[tokio::test]
    async fn a_namespace_of_a_member_has_the_authority_of_its_api_server() {
        let clock = Clock::new(jiff::Timestamp::UNIX_EPOCH);
        let member = build("member1", 1, &clock, "the certificate", None).unwrap();
        let kind = member.server().kind_id("v1", "ConfigMap").unwrap();
        let key = ObjectKey::new(kind, "default", "kube-root-ca.crt");
        let found = member.server().store().get(&key).unwrap();
        assert_eq!(found.content()["data"]["ca.crt"], "the certificate");
    }

    #[test]
    fn a_misspelt_annotation_is_refused_where_it_is_written() {
        let denied = denial(None, STATE, "unreachabel").unwrap();
        assert_eq!(denied.field, "metadata.annotations[simulation.bulkhead.dev/state]");
        for part in ["unreachabel", "unreachable", "readyz-failing", "readyz-degraded"] {
            assert!(denied.message.contains(part), "{part}: {}", denied.message);
        }
        assert!(denial(None, WORKLOADS, "crash").unwrap().message.contains("crash-loop"));
        for (key, text) in [
            (STATE, "unreachable"),
            (WORKLOADS, "crash-loop"),
            (STATE, ""),
            ("other", "unreachabel"),
        ] {
            assert_eq!(denial(None, key, text), None, "{key}={text}");
        }
        let stored = json!({"metadata": {"annotations": {STATE: "unreachabel"}}});
        assert_eq!(denial(Some(&stored), STATE, "unreachabel"), None);
    }
}
