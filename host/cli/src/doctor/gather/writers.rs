//! Writers of the fields that the modes own, from managedFields.

use std::collections::BTreeMap;

use bulkhead_api::{Cluster, ClusterResourceBinding, ResourceBinding};
use bulkhead_controllers::FIELD_MANAGER;
use bulkhead_core::time::Time;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ManagedFieldsEntry;
use kube::api::{ListParams, PartialObjectMeta};
use kube::{Api, Client, Resource};

use crate::doctor::checks;
use crate::doctor::facts::{Facts, Installation, Name, Writer};

/// Maximum number of objects that are read per kind: a writer appears in any of them.
const OBJECTS_MAX: u32 = 500;
/// Prefixes of managers that are people or Bulkhead: `kubectl`, and Bulkhead's own, such as `bulkhead-join`.
const NOT_FOREIGN: &[&str] = &["kubectl", FIELD_MANAGER];

/// Writers by manager, kind and field.
type Found = BTreeMap<(String, String, &'static str), Writer>;

pub(super) async fn gather(client: &Client, facts: &mut Facts) {
    let (of_bindings, of_clusters) = owned(&facts.installation);
    let mut found = Found::new();
    look::<ResourceBinding>(client, &of_bindings, &mut found, facts).await;
    look::<ClusterResourceBinding>(client, &of_bindings, &mut found, facts).await;
    look::<Cluster>(client, &of_clusters, &mut found, facts).await;
    facts.writers = found.into_values().collect();
}

/// Returns the fields of bindings and of clusters that the modes write.
fn owned(installation: &Installation) -> (Vec<&'static str>, Vec<&'static str>) {
    let has_any = |modes: &[&str]| modes.iter().any(|mode| installation.has(mode));
    let (mut of_bindings, mut of_clusters) = (Vec::new(), Vec::new());
    if has_any(&["finish", "evict", "all"]) {
        of_bindings.push("spec.gracefulEvictionTasks");
    }
    if has_any(&["evict", "all"]) {
        of_clusters.push("spec.taints");
    }
    if installation.has("all") {
        of_bindings.push("spec.clusters");
        of_clusters.push("status.conditions");
    }
    (of_bindings, of_clusters)
}

async fn look<K>(client: &Client, fields: &[&'static str], found: &mut Found, facts: &mut Facts)
where
    K: Resource<DynamicType = ()> + Clone + serde::de::DeserializeOwned + std::fmt::Debug,
{
    if fields.is_empty() {
        return;
    }
    let parameters = ListParams::default().limit(OBJECTS_MAX);
    match Api::<K>::all(client.clone()).list_metadata(&parameters).await {
        Ok(list) => list
            .items
            .iter()
            .for_each(|object| note(object, &K::kind(&()), fields, found)),
        Err(error) => facts.unread(checks::OWNERS, &K::plural(&()), &error),
    }
}

fn note<K>(object: &PartialObjectMeta<K>, kind: &str, fields: &[&'static str], found: &mut Found) {
    let name = Name {
        namespace: object.metadata.namespace.clone().unwrap_or_default(),
        name: object.metadata.name.clone().unwrap_or_default(),
    };
    for entry in object.metadata.managed_fields.iter().flatten() {
        let manager = entry.manager.clone().unwrap_or_default();
        if NOT_FOREIGN.iter().any(|known| manager.starts_with(known)) {
            continue;
        }
        let last = entry.time.as_ref().map(|time| Time::new(time.0));
        for field in fields.iter().filter(|field| has(entry, field)) {
            let writer = found
                .entry((manager.clone(), kind.to_owned(), *field))
                .or_insert_with(|| Writer {
                    manager: manager.clone(),
                    kind: kind.to_owned(),
                    field: (*field).to_owned(),
                    objects: 0,
                    example: name.clone(),
                    last: None,
                });
            writer.objects += 1;
            if last > writer.last {
                (writer.last, writer.example) = (last, name.clone());
            }
        }
    }
}

/// Returns true if an entry owns a field or anything below it.
fn has(entry: &ManagedFieldsEntry, field: &str) -> bool {
    let mut at = entry.fields_v1.as_ref().map(|fields| &fields.0);
    for part in field.split('.') {
        at = at.and_then(|fields| fields.get(format!("f:{part}")));
    }
    at.is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mode_looks_at_the_fields_that_it_writes() {
        let check = |modes: &[&str], of_bindings: &[&str], of_clusters: &[&str]| {
            let modes = modes.iter().map(|&mode| mode.to_owned()).collect();
            let installation = Installation {
                modes,
                ..Installation::default()
            };
            assert_eq!(
                owned(&installation),
                (of_bindings.to_vec(), of_clusters.to_vec()),
                "{installation:?}"
            );
        };
        check(&["report"], &[], &[]);
        check(&["interpret", "finish"], &["spec.gracefulEvictionTasks"], &[]);
        check(&["evict"], &["spec.gracefulEvictionTasks"], &["spec.taints"]);
        check(
            &["all"],
            &["spec.gracefulEvictionTasks", "spec.clusters"],
            &["spec.taints", "status.conditions"],
        );
    }
}
