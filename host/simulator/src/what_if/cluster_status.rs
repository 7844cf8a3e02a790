//! Status of the clusters of a rehearsal.

use anyhow::Context as _;
use bulkhead_api::Cluster;
use bulkhead_apiserver::{ApiServer, ObjectKey};
use kube::Resource;
use serde_json::json;

/// Changes the status of a cluster.
pub(super) fn change_status(hub: &ApiServer, name: &str, change: impl FnOnce(&mut Cluster)) -> anyhow::Result<()> {
    let kind = hub
        .kind_id(&Cluster::api_version(&()), &Cluster::kind(&()))
        .context("the kind Cluster is not served")?;
    let key = ObjectKey::new(kind, "", name);
    let store = hub.store();
    let Some(object) = store.get(&key) else {
        return Ok(());
    };
    let mut cluster: Cluster = serde_json::from_value(object.content().to_value())?;
    change(&mut cluster);
    store
        .set_status(&key, json!(cluster.status))
        .map_err(|error| anyhow::anyhow!("status of the cluster {name}: {error:?}"))?;
    Ok(())
}
