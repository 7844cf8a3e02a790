//! Override policies of Karmada, which change the objects that members get. No controller here implements them, so
//! the Works of workloads that one selects are left alone (`ignore-unimplemented`).

use std::sync::Arc;
use std::time::Duration;

use bulkhead_api::policy::ResourceSelector;
use bulkhead_runtime::controller::{Error, is_not_found};
use bulkhead_runtime::dynamic::{self, DynamicStores, KeptObject, ObjectSubscription};
use bulkhead_runtime::key::Key;
use bulkhead_runtime::kinds::ObjectKind;
use bulkhead_runtime::store::Store;
use serde::Deserialize;

use crate::selection::{Template, specificity};
use crate::templates::{HUB, Templates};

const API_VERSION: &str = "policy.karmada.io/v1alpha1";
const KINDS: [&str; 2] = ["OverridePolicy", "ClusterOverridePolicy"];
/// Retry interval of the lookup of a kind.
const RETRY: Duration = Duration::from_secs(5);

/// Caches of the override policies.
pub(crate) struct Overrides {
    cache: DynamicStores,
    /// Kinds that the control plane serves.
    kinds: Vec<(ObjectKind, Arc<Store<KeptObject>>)>,
}

/// The part of an override policy that selects workloads.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Spec {
    /// Selected templates; empty selects all of the policy's scope.
    #[serde(default)]
    resource_selectors: Vec<ResourceSelector>,
}

impl Overrides {
    /// Watches the override policies and waits until all of them are known. Kinds that the control plane does not serve
    /// have no objects.
    pub(crate) async fn watch(templates: &Templates) -> Self {
        let (cache, mut kinds) = (DynamicStores::new(None), Vec::new());
        for kind in KINDS.map(|kind| ObjectKind::new(API_VERSION, kind)) {
            while let Err(error) = cache
                .ensure(HUB, &kind, &templates.kinds, || Ok(templates.hub.clone()))
                .await
            {
                if is_not_served(&error) {
                    break;
                }
                tokio::time::sleep(RETRY).await;
            }
            if let Some(store) = cache.store(HUB, &kind) {
                store.wait_for_cache_sync().await;
                kinds.push((kind, store));
            }
        }
        Self { cache, kinds }
    }

    /// Calls `handler` for every known policy and then on every change.
    pub(crate) fn subscribe(&self, handler: impl Fn() + Send + Sync + 'static) -> ObjectSubscription {
        self.cache.subscribe(move |_, _| handler())
    }

    /// Returns kind and name of an override policy that selects a template, in any member cluster; `None` if there is
    /// none. A policy that cannot be read selects every template of its scope.
    pub(crate) fn selecting(&self, kind: &ObjectKind, template: &KeptObject) -> Option<String> {
        let selected = Template::new(kind, template);
        for (policy_kind, store) in &self.kinds {
            for policy in store.list() {
                let namespace = &policy.metadata.namespace;
                let is_in_scope = namespace.is_none() || *namespace == template.metadata.namespace;
                if is_in_scope && selects(policy_kind, &policy, &selected) {
                    return Some(format!("{} {}", policy_kind.kind, Key::of(&*policy)));
                }
            }
        }
        None
    }
}

fn selects(kind: &ObjectKind, policy: &KeptObject, template: &Template<'_>) -> bool {
    let mut policy = dynamic::to_value(kind, policy);
    let Ok(spec) = serde_json::from_value::<Spec>(policy["spec"].take()) else {
        return true;
    };
    let selectors = &spec.resource_selectors;
    selectors.is_empty()
        || selectors
            .iter()
            .any(|selector| specificity(selector, template).is_some())
}

/// Returns true if the control plane answered that it does not serve a kind.
fn is_not_served(error: &Error) -> bool {
    let Error::Api { source, .. } = error else { return false };
    is_not_found(source) || matches!(&**source, kube::Error::Discovery(_))
}

#[cfg(test)]
impl Overrides {
    /// Creates caches with one policy that selects every template.
    pub(crate) fn of_everything() -> Self {
        let policy = serde_json::json!({"metadata": {"name": "all"}, "spec": {}});
        let store: Arc<Store<KeptObject>> = Store::new();
        store.replace_all([crate::testing::object(policy)]);
        Self {
            cache: DynamicStores::new(None),
            kinds: vec![(ObjectKind::new(API_VERSION, KINDS[1]), store)],
        }
    }
}

#[cfg(test)]
mod tests {
    use bulkhead_apiserver::{ResourceKind, kinds};
    use kube::Api;
    use kube::api::{ApiResource, DynamicObject, GroupVersionKind, PostParams};
    use serde_json::{Value, json};

    use super::*;
    use crate::testing::{components, member, object, server};

    /// Watches a control plane with these override policies; one without a namespace is a ClusterOverridePolicy.
    async fn watched(policies: &[(&str, &str, Value)]) -> Overrides {
        let group = ("policy.karmada.io", "v1alpha1");
        let namespaced = ResourceKind::namespaced(group.0, group.1, KINDS[0], "overridepolicies");
        let cluster_wide = ResourceKind::cluster_scoped(group.0, group.1, KINDS[1], "clusteroverridepolicies");
        let all = kinds::kubernetes()
            .into_iter()
            .chain([namespaced, cluster_wide])
            .collect();
        let client = server("hub", 1, all).client();
        for (namespace, name, selectors) in policies {
            let kind = KINDS[usize::from(namespace.is_empty())];
            let plural = format!("{}ies", kind.to_lowercase().trim_end_matches('y'));
            let resource = ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk(group.0, group.1, kind), &plural);
            let policy: DynamicObject = object(json!({
                "apiVersion": API_VERSION, "kind": kind, "metadata": {"name": name},
                "spec": {"resourceSelectors": selectors},
            }));
            let api: Api<DynamicObject> = if namespace.is_empty() {
                Api::all_with(client.clone(), &resource)
            } else {
                Api::namespaced_with(client.clone(), namespace, &resource)
            };
            api.create(&PostParams::default(), &policy).await.unwrap();
        }
        let (components, _events) = components(client, member().client());
        Overrides::watch(&components.binding().templates).await
    }

    fn selecting(overrides: &Overrides, namespace: &str, name: &str) -> Option<String> {
        let kind = ObjectKind::new("apps/v1", "Deployment");
        let metadata = json!({"name": name, "namespace": namespace, "labels": {"app": name}});
        overrides.selecting(&kind, &object(json!({"metadata": metadata, "spec": {}})))
    }

    #[tokio::test(start_paused = true)]
    async fn an_override_policy_selects_templates_of_its_scope() {
        let web = json!([{"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}]);
        let labelled = json!([{"apiVersion": "apps/v1", "kind": "Deployment",
            "labelSelector": {"matchLabels": {"app": "api"}}}]);
        let overrides = watched(&[("shop", "image", web), ("", "registry", labelled)]).await;
        assert_eq!(
            selecting(&overrides, "shop", "web").as_deref(),
            Some("OverridePolicy shop/image")
        );
        assert_eq!(selecting(&overrides, "other", "web"), None);
        assert_eq!(
            selecting(&overrides, "other", "api").as_deref(),
            Some("ClusterOverridePolicy registry")
        );
        let all = watched(&[("shop", "all", json!([]))]).await;
        assert!(selecting(&all, "shop", "db").is_some() && selecting(&all, "other", "db").is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn a_policy_that_cannot_be_read_selects_its_whole_scope() {
        let unreadable = watched(&[("shop", "odd", json!("all"))]).await;
        assert!(selecting(&unreadable, "shop", "web").is_some() && selecting(&unreadable, "other", "web").is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn kinds_that_are_not_served_have_no_objects() {
        let (components, _events) = components(server("hub", 1, kinds::kubernetes()).client(), member().client());
        let overrides = Overrides::watch(&components.binding().templates).await;
        assert_eq!(selecting(&overrides, "shop", "web"), None);
    }
}
