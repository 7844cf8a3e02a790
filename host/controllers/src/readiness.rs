//! The Ready condition of Clusters, which several controllers write.

use std::sync::Arc;

use bulkhead_api::Cluster;
use bulkhead_core::combine::Attribution;
use bulkhead_core::journal::Decision;
use bulkhead_core::model::{Condition, set_condition};
use bulkhead_runtime::controller::Error;
use kube::ResourceExt;

use crate::decision_log::{DecisionLog, Record};
use crate::metrics::Metrics;
use crate::subjects::{input, subject};
use crate::writers::Writers;

/// Writer of Ready conditions.
#[derive(Clone)]
pub(crate) struct Readiness {
    pub(crate) writers: Writers,
    pub(crate) log: DecisionLog,
    pub(crate) metrics: Arc<Metrics>,
}

impl Readiness {
    /// Writes the Ready condition, records the change, and lets `also` fill in the rest of the status.
    pub(crate) async fn write(
        &self,
        controller: &'static str,
        cluster: &Cluster,
        condition: Condition,
        also: impl Fn(&mut Cluster),
    ) -> Result<(), Error> {
        let before = Condition::find(&cluster.status.conditions, "Ready").map(|ready| ready.status);
        let mut records = Vec::new();
        if before != Some(condition.status) {
            records.push(self.log.record(Record {
                controller,
                subject: subject(cluster),
                cluster: Some(cluster.name_any()),
                decision: Decision::ReadyChanged,
                attribution: Attribution::rule(&condition.reason, &condition.message),
                effect: condition.status.as_str().to_owned(),
                inputs: vec![input(cluster)],
            }));
        }
        let writer = self.writers.clusters();
        let changed = |cluster: &mut Cluster| {
            let before = cluster.status.clone();
            set_condition(&mut cluster.status.conditions, condition.clone());
            also(cluster);
            cluster.status != before
        };
        let written = async { writer.update_status(cluster, changed).await.map(drop) };
        self.log.apply(&records, written).await?;
        if let Some(before) = before.filter(|before| *before != condition.status) {
            self.metrics
                .clusters
                .changed(&cluster.name_any(), before, condition.status);
        }
        Ok(())
    }
}
