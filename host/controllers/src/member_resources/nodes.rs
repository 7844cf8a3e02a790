//! Nodes of a member cluster.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use bulkhead_core::decide::summary::{NODE_FIELDS, NodeResources, Totals};
use bulkhead_runtime::excerpt::{Excerpt, Fields, FromFields};
use k8s_openapi::api::core::v1::Node;
use kube::api::ApiResource;
use serde_json::Value;

use super::cache::Contents;

/// Resources of each node by its name.
#[derive(Default)]
pub(super) struct Nodes(BTreeMap<String, NodeResources>);

impl Nodes {
    pub(super) fn add_to(&self, totals: &mut Totals) {
        for (name, node) in &self.0 {
            totals.add_node(name, node);
        }
    }
}

/// Resources of one node.
#[derive(Clone, Debug)]
pub(super) struct NodeExcerpt(NodeResources);

impl FromFields for NodeExcerpt {
    fn fields() -> &'static Fields {
        static FIELDS: LazyLock<Fields> = LazyLock::new(|| Fields::of(NODE_FIELDS));
        &FIELDS
    }

    fn read(node: &Value) -> Self {
        Self(NodeResources::of(node))
    }
}

impl Contents for Nodes {
    type Value = NodeExcerpt;

    fn resource() -> ApiResource {
        ApiResource::erase::<Node>(&())
    }

    fn insert(&mut self, node: Excerpt<NodeExcerpt>) {
        self.0.insert(node.metadata.name.unwrap_or_default(), node.value.0);
    }

    fn remove(&mut self, node: &Excerpt<NodeExcerpt>) {
        self.0.remove(node.metadata.name.as_deref().unwrap_or_default());
    }
}
