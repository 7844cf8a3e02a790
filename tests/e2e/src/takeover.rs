//! Rehearsal of a take-over, and the take-over.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use anyhow::{Context as _, ensure};
use bulkhead_api::work::Manifest;
use bulkhead_api::{PropagationPolicy, ResourceBinding, Work};
use bulkhead_core::names::keys;
use k8s_openapi::api::admissionregistration::v1::MutatingWebhookConfiguration;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams};
use kube::{Api, ResourceExt};
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::federation::{ACCOUNT, Federation, Plan, QUICK};
use crate::losses::{BINDING, DIVIDED};
use crate::site::Site;
use crate::wait;

/// Policy of the example.
const POLICY: &str = "nginx-propagation";
/// Image that another program wrote into one Work.
const IMAGE: &str = "registry.example/nginx:1";

/// `doctor --for all` names the Work that differs from its template, and writes nothing; the take-over then rewrites
/// this Work and no other.
pub(crate) async fn rehearsed(site: &Site) -> anyhow::Result<()> {
    let mut federation = Box::pin(Federation::start(site, "takeover", Plan::default())).await?;
    federation.apply_example("nginx-divided", DIVIDED)?;
    federation
        .wait_placed(BINDING, &[("member1", 1), ("member2", 2)])
        .await?;
    federation.signal(0, Signal::TERM)?;
    federation.wait_ended(0).await?;
    // Its webhooks are gone, and nothing else would admit a change.
    let registrations: Api<MutatingWebhookConfiguration> = Api::all(federation.client.clone());
    registrations
        .delete_collection(&DeleteParams::default(), &ListParams::default())
        .await?;
    let works: Api<Work> = Api::all(federation.client.clone());
    let changed = change_image(&federation, &works).await?;
    federation.apply_role("all")?;
    let kubeconfig = federation.account_kubeconfig().await?.display().to_string();

    let before = versions(&works).await?;
    let all = ["doctor", "--for=all", "--kubeconfig", &kubeconfig, "-o", "json"];
    let (code, said) = federation.bulkhead_with_code(&[&all, QUICK].concat())?;
    ensure!(
        versions(&works).await? == before,
        "Works changed while the take-over was rehearsed"
    );
    let requests = federation.hub.audited(ACCOUNT)?;
    let is_review = |resource: &str| resource.ends_with("accessreviews");
    let writes: Vec<_> = requests
        .iter()
        .filter(|request| request.is_write() && !is_review(&request.resource))
        .collect();
    ensure!(!requests.is_empty(), "the audit log has no request of the rehearsal");
    ensure!(writes.is_empty(), "the rehearsal wrote: {writes:?}");
    let said: Value = serde_json::from_str(&said).with_context(|| format!("doctor says {said}"))?;
    ensure!(code == Some(1), "a Work that would be rewritten is an error: {code:?}");
    let foreseen = rewritten(&said)?;
    ensure!(
        foreseen == BTreeSet::from([changed.clone()]),
        "the rehearsal foresees {foreseen:?}, and {changed} differs: {said:#}"
    );

    federation
        .start_bulkhead_in("all", &["--webhook-bind-address=127.0.0.1:0"])
        .await?;
    let generation = |versions: &Versions, name: &str| {
        versions
            .get(name)
            .map(|(uid, generation, _)| (uid.clone(), *generation))
    };
    wait::until("the Work is rewritten", Duration::from_mins(1), async || {
        let now = versions(&works).await.map_err(|error| error.to_string())?;
        if generation(&now, &changed) == generation(&before, &changed) {
            Err(format!("{:?}", now.get(&changed)))
        } else {
            Ok(())
        }
    })
    .await?;
    // Later changes would be changes that the rehearsal missed.
    tokio::time::sleep(Duration::from_secs(5)).await;
    let after = versions(&works).await?;
    let names: BTreeSet<_> = before.keys().chain(after.keys()).cloned().collect();
    let differs = |name: &String| generation(&before, name) != generation(&after, name);
    let actual: BTreeSet<_> = names.into_iter().filter(differs).collect();
    ensure!(
        actual == foreseen,
        "the take-over changed {actual:?}, and the rehearsal foresaw {foreseen:?}"
    );
    deleted_policy_goes(&federation, &works).await
}

/// A deleted policy with the finalizer of Karmada's webhook goes; binding and Works stay, without its marks.
async fn deleted_policy_goes(federation: &Federation<'_>, works: &Api<Work>) -> anyhow::Result<()> {
    let policies: Api<PropagationPolicy> = Api::namespaced(federation.client.clone(), "default");
    let bindings: Api<ResourceBinding> = Api::namespaced(federation.client.clone(), "default");
    let with_finalizer = json!({"metadata": {"finalizers": [keys::PROPAGATION_POLICY_FINALIZER]}});
    let parameters = PatchParams::default();
    policies
        .patch(POLICY, &parameters, &Patch::Merge(with_finalizer))
        .await?;
    let uid = |work: Work| work.uid();
    let uids = async || anyhow::Ok(works.list(&Default::default()).await?.items.into_iter().map(uid));
    let before: BTreeSet<_> = uids().await?.collect();
    policies.delete(POLICY, &DeleteParams::default()).await?;
    wait::until(
        "the deleted policy goes",
        Duration::from_secs(30),
        async || match policies.get_opt(POLICY).await {
            Ok(None) => Ok(()),
            Ok(Some(policy)) => Err(format!("it has the finalizers {:?}", policy.finalizers())),
            Err(error) => Err(error.to_string()),
        },
    )
    .await?;
    let binding = bindings.get(BINDING).await?;
    ensure!(
        !binding.labels().contains_key(keys::PROPAGATION_POLICY_ID) && !binding.spec.clusters.is_empty(),
        "the binding of a deleted policy: {:?}, {:?}",
        binding.labels(),
        binding.spec.clusters
    );
    let after: BTreeSet<_> = uids().await?.collect();
    ensure!(after == before, "Works changed with the deleted policy: {after:?}");
    Ok(())
}

/// Uid, generation and resourceVersion of each Work.
type Versions = BTreeMap<String, (String, i64, String)>;

async fn versions(works: &Api<Work>) -> anyhow::Result<Versions> {
    let list = works.list(&Default::default()).await?;
    let one = |work: Work| {
        let name = key(&work);
        let version = (
            work.uid().unwrap_or_default(),
            work.metadata.generation.unwrap_or_default(),
            work.resource_version().unwrap_or_default(),
        );
        (name, version)
    };
    Ok(list.items.into_iter().map(one).collect())
}

fn key(work: &Work) -> String {
    format!("{}/{}", work.namespace().unwrap_or_default(), work.name_any())
}

/// Writes another image into the Work of nginx on member2, as a program does that Bulkhead does not replace. Returns
/// the key of the Work.
async fn change_image(federation: &Federation<'_>, works: &Api<Work>) -> anyhow::Result<String> {
    let found = works.list(&Default::default()).await?.items;
    let of_nginx = |work: &&Work| {
        let manifest = work.spec.workload.manifests.first().map(Manifest::value);
        let is_deployment =
            manifest.is_some_and(|manifest| manifest.is_ok_and(|object| object["kind"] == "Deployment"));
        is_deployment && work.namespace().as_deref() == Some("karmada-es-member2")
    };
    let work = found.iter().find(of_nginx).context("member2 has no Work of nginx")?;
    let manifest = work.spec.workload.manifests.first().context("the Work is empty")?;
    let mut manifest = manifest.value()?;
    manifest["spec"]["template"]["spec"]["containers"][0]["image"] = json!(IMAGE);
    let patch = json!({"spec": {"workload": {"manifests": [manifest]}}});
    let api: Api<Work> = Api::namespaced(federation.client.clone(), "karmada-es-member2");
    api.patch(&work.name_any(), &PatchParams::default(), &Patch::Merge(patch))
        .await?;
    Ok(key(work))
}

/// Returns the Works that the rehearsal says would be rewritten. Each finding names one, because they have one example.
fn rewritten(said: &Value) -> anyhow::Result<BTreeSet<String>> {
    let checks = said["checks"].as_array().context("there are no checks")?;
    let rehearsal = checks.iter().find(|check| check["check"] == "rehearsal");
    let findings = rehearsal.and_then(|check| check["findings"].as_array());
    let findings = findings.with_context(|| format!("there is no rehearsal: {said:#}"))?;
    let errors = findings.iter().filter(|finding| finding["severity"] == "error");
    let mut works = BTreeSet::new();
    for error in errors {
        let place = error["where"].as_str().unwrap_or_default();
        let name = place.strip_prefix("Work ").with_context(|| format!("{error:#}"))?;
        ensure!(
            error["diff"].to_string().contains(IMAGE),
            "the diff does not show the image: {error:#}"
        );
        works.insert(name.to_owned());
    }
    Ok(works)
}
