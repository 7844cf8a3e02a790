//! Pods of a member cluster, in about a hundred bytes each.

use std::borrow::Borrow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, LazyLock};

use bulkhead_core::decide::summary::{POD_FIELDS, PodRequests, Totals};
use bulkhead_runtime::excerpt::{Excerpt, Fields, FromFields};
use k8s_openapi::api::core::v1;
use kube::api::ApiResource;
use serde_json::Value;

use super::cache::Contents;

/// Pods that are not finished.
#[derive(Default)]
pub(super) struct Pods {
    /// By namespace and name: the sums depend on the order of the pods.
    by_namespace: BTreeMap<Box<str>, BTreeMap<Box<str>, Pod>>,
    /// Names of nodes that pods run on.
    nodes: Shared<str>,
    /// Requests that pods have.
    requests: Shared<PodRequests>,
}

struct Pod {
    /// Name of the node; empty for a pod without one.
    node: Arc<str>,
    requests: Arc<PodRequests>,
}

impl Pods {
    pub(super) fn add_to(&self, totals: &mut Totals) {
        for pod in self.by_namespace.values().flat_map(BTreeMap::values) {
            totals.add_pod(&pod.node, &pod.requests);
        }
    }

    /// Returns the numbers of nodes and requests in memory.
    #[cfg(test)]
    pub(super) fn shared(&self) -> (usize, usize) {
        (self.nodes.0.len(), self.requests.0.len())
    }

    fn take(&mut self, namespace: &str, name: &str) {
        let Some(pods) = self.by_namespace.get_mut(namespace) else {
            return;
        };
        let pod = pods.remove(name);
        if pods.is_empty() {
            self.by_namespace.remove(namespace);
        }
        if let Some(Pod { node, requests }) = pod {
            self.nodes.release(node);
            self.requests.release(requests);
        }
    }
}

/// Name of the node and requests of one pod; `None` if it is finished.
#[derive(Clone, Debug)]
pub(super) struct PodExcerpt(Option<(String, PodRequests)>);

impl FromFields for PodExcerpt {
    fn fields() -> &'static Fields {
        static FIELDS: LazyLock<Fields> = LazyLock::new(|| Fields::of(POD_FIELDS));
        &FIELDS
    }

    fn read(pod: &Value) -> Self {
        Self(PodRequests::of(pod).map(|(node, requests)| (node.to_owned(), requests)))
    }
}

impl Contents for Pods {
    type Value = PodExcerpt;

    fn resource() -> ApiResource {
        ApiResource::erase::<v1::Pod>(&())
    }

    fn insert(&mut self, pod: Excerpt<PodExcerpt>) {
        let namespace = pod.metadata.namespace.unwrap_or_default();
        let name = pod.metadata.name.unwrap_or_default();
        self.take(&namespace, &name);
        if let PodExcerpt(Some((node, requests))) = pod.value {
            let pod = Pod {
                node: self.nodes.share(node.as_str()),
                requests: self.requests.share(requests),
            };
            let pods = self.by_namespace.entry(namespace.into()).or_default();
            pods.insert(name.into(), pod);
        }
    }

    fn remove(&mut self, pod: &Excerpt<PodExcerpt>) {
        let namespace = pod.metadata.namespace.as_deref().unwrap_or_default();
        self.take(namespace, pod.metadata.name.as_deref().unwrap_or_default());
    }
}

/// Values of which each is in memory once.
struct Shared<T: ?Sized>(BTreeSet<Arc<T>>);

impl<T: Ord + ?Sized> Default for Shared<T> {
    fn default() -> Self {
        Self(BTreeSet::new())
    }
}

impl<T: Ord + ?Sized> Shared<T> {
    fn share(&mut self, value: impl Borrow<T> + Into<Arc<T>>) -> Arc<T> {
        if let Some(known) = self.0.get(value.borrow()) {
            return Arc::clone(known);
        }
        let shared = value.into();
        self.0.insert(Arc::clone(&shared));
        shared
    }

    /// Forgets a value if this is its last use.
    fn release(&mut self, value: Arc<T>) {
        if Arc::strong_count(&value) == 2 {
            self.0.remove(&value);
        }
    }
}
