//! Values behind the handles of a guest. They know neither the generated bindings nor the functions of a guest.

use std::collections::BTreeMap;
use std::sync::Arc;

use bulkhead_core::model::{AggregatedStatusItem, Binding, Cluster, GracefulEvictionTask};
use bulkhead_core::snapshot::{self, Capacity, ResourceColumn};
use serde_json::{Map, Value};

use super::trees::{Tree, json, text_bytes};

/// Binding behind a guest's handle.
#[expect(unreachable_pub, reason = "the generated bindings re-export it")]
pub struct LentBinding {
    pub(super) binding: Arc<Binding>,
    /// Reports of the call, if they differ from the binding's own status.
    observed: Option<Arc<[AggregatedStatusItem]>>,
}

impl LentBinding {
    /// Returns a binding with the reports in its status.
    pub(crate) fn new(binding: Arc<Binding>) -> Self {
        Self {
            binding,
            observed: None,
        }
    }

    /// Returns a binding with the reports of the call.
    pub(crate) fn observed(binding: Arc<Binding>, observed: &[AggregatedStatusItem]) -> Self {
        let differs = binding.status.aggregated_status != observed;
        Self {
            binding,
            observed: differs.then(|| observed.into()),
        }
    }

    /// Returns the reports of the call, or those of the binding.
    pub(super) fn reports(&self) -> Reports {
        self.observed
            .clone()
            .map_or_else(|| Reports::of(Arc::clone(&self.binding)), Reports::new)
    }

    /// Returns the document of the binding, with the reports of the call.
    pub(super) fn document(&self) -> Value {
        let mut document = json(&*self.binding);
        if let Some(observed) = &self.observed {
            if !document["status"].is_object() {
                document["status"] = Value::Object(Map::new());
            }
            document["status"]["aggregatedStatus"] = json(&observed.as_ref());
        }
        document
    }

    /// Returns the maximum length of the document's text in bytes.
    pub(super) fn text_bytes(&self) -> usize {
        text_bytes(&*self.binding)
            + self
                .observed
                .as_ref()
                .map_or(0, |observed| text_bytes(&observed.as_ref()))
    }
}

/// Graceful eviction task behind a guest's handle.
#[expect(unreachable_pub, reason = "the generated bindings re-export it")]
pub struct LentTask(pub(crate) GracefulEvictionTask);

/// Member cluster behind a guest's handle.
#[expect(unreachable_pub, reason = "the generated bindings re-export it")]
pub struct LentCluster(pub(super) Arc<Cluster>);

impl From<Arc<Cluster>> for LentCluster {
    fn from(cluster: Arc<Cluster>) -> Self {
        Self(cluster)
    }
}

/// Candidate clusters behind a guest's handle.
#[expect(unreachable_pub, reason = "the generated bindings re-export it")]
pub struct Candidates {
    /// All clusters of the snapshot.
    all: Arc<[Arc<Cluster>]>,
    capacity: Arc<Capacity>,
    /// Indexes of the candidates in both, ascending.
    pub(super) rows: Vec<u32>,
    binding: Arc<Binding>,
}

impl Candidates {
    /// Returns the candidates of a call about a binding.
    pub(crate) fn new(binding: Arc<Binding>, clusters: snapshot::Candidates<'_>) -> Self {
        let snapshot = clusters.snapshot();
        let (all, capacity) = (snapshot.shared_clusters(), Arc::clone(snapshot.capacity()));
        Self {
            all,
            capacity,
            rows: clusters.rows().to_vec(),
            binding,
        }
    }

    pub(super) fn get(&self, index: usize) -> Option<&Arc<Cluster>> {
        self.all.get(*self.rows.get(index)? as usize)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Cluster> {
        self.rows
            .iter()
            .filter_map(|row| self.all.get(*row as usize))
            .map(|cluster| &**cluster)
    }

    /// Returns the replicas of the binding on each of its clusters.
    pub(super) fn replicas(&self) -> BTreeMap<&str, u32> {
        let targets = self.binding.spec.clusters.iter();
        targets
            .map(|target| (target.name.as_str(), u32::try_from(target.replicas).unwrap_or(0)))
            .collect()
    }

    /// Returns the amounts of a resource; NaN for a cluster that does not report it.
    pub(super) fn amounts(
        &self,
        name: &str,
        amounts: impl Fn(&ResourceColumn) -> &[f64],
    ) -> impl ExactSizeIterator<Item = f64> {
        let amounts = self.capacity.resource(name).map(amounts).unwrap_or_default();
        self.rows
            .iter()
            .map(|row| amounts.get(*row as usize).copied().unwrap_or(f64::NAN))
    }
}

/// JSON document behind a guest's handle.
#[expect(unreachable_pub, reason = "the generated bindings re-export it")]
pub struct Document(DocumentSource);

/// Owner of a document.
enum DocumentSource {
    /// Input of the call.
    Input(Arc<Value>),
    /// Document made from a value of the model during the call.
    Made(Arc<Tree>),
    /// Status of the report with this index, which has one.
    Report(Reports, usize),
}

impl Document {
    /// Returns the status of the report with this index, if there is one.
    pub(super) fn of_report(reports: &Reports, index: usize) -> Option<Self> {
        reports.items().get(index)?.status.as_ref()?;
        Some(Self(DocumentSource::Report(reports.clone(), index)))
    }

    pub(super) fn value(&self) -> &Value {
        match &self.0 {
            DocumentSource::Input(value) => value,
            DocumentSource::Made(tree) => &tree.value,
            DocumentSource::Report(reports, index) => reports
                .items()
                .get(*index)
                .and_then(|report| report.status.as_ref())
                .unwrap_or(&Value::Null),
        }
    }
}

impl From<Arc<Value>> for Document {
    fn from(value: Arc<Value>) -> Self {
        Self(DocumentSource::Input(value))
    }
}

impl From<Arc<Tree>> for Document {
    fn from(tree: Arc<Tree>) -> Self {
        Self(DocumentSource::Made(tree))
    }
}

/// Reports behind a guest's handle.
#[derive(Clone)]
#[expect(unreachable_pub, reason = "the generated bindings re-export it")]
pub struct Reports(ReportSource);

/// Owner of reports.
#[derive(Clone)]
enum ReportSource {
    Call(Arc<[AggregatedStatusItem]>),
    Binding(Arc<Binding>),
}

impl Reports {
    /// Returns the reports of one call.
    pub(crate) fn new(items: Arc<[AggregatedStatusItem]>) -> Self {
        Self(ReportSource::Call(items))
    }

    /// Returns the reports in the status of a binding.
    fn of(binding: Arc<Binding>) -> Self {
        Self(ReportSource::Binding(binding))
    }

    pub(super) fn items(&self) -> &[AggregatedStatusItem] {
        match &self.0 {
            ReportSource::Call(items) => items,
            ReportSource::Binding(binding) => &binding.status.aggregated_status,
        }
    }
}
