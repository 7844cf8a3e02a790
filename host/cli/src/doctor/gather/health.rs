//! Works whose health is unknown for long.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use bulkhead_api::Work;
use bulkhead_core::model::Health;
use bulkhead_core::time::Time;
use bulkhead_runtime::pages::pages;
use kube::core::GroupVersionKind;
use kube::{Api, Client, ResourceExt};

use crate::doctor::checks;
use crate::doctor::facts::{Facts, Name, UnknownHealth};

/// Maximum number of pages: a gap of an interpreter shows in any of them.
const PAGES_MAX: usize = 20;
/// Age from which an unknown health counts. A new object has one for a moment.
const LONG_MS: i64 = 5 * 60 * 1000;

pub(super) async fn gather(client: &Client, facts: &mut Facts) {
    let (api, mut found) = (Api::<Work>::all(client.clone()), BTreeMap::new());
    let (now, mut read) = (facts.now, 0);
    let take = |works: Vec<Work>| {
        for work in &works {
            note(work, now, &mut found);
        }
        read += 1;
        if read < PAGES_MAX {
            ControlFlow::Continue(())
        } else {
            ControlFlow::Break(())
        }
    };
    if let Err(error) = pages(async |page| api.list(page).await, take).await {
        facts.unread(checks::INTERPRETERS, "works", &error);
    }
    facts.unknown_health = found.into_values().collect();
}

/// Adds a Work to its kinds, if the health of one of its objects has been unknown for long.
fn note(work: &Work, now: Time, found: &mut BTreeMap<(String, String), UnknownHealth>) {
    let unknown = |status: &&bulkhead_api::work::ManifestStatus| status.health == Some(Health::Unknown);
    let Some(status) = work.status.manifest_statuses.iter().find(unknown) else {
        return;
    };
    let since = written(work).unwrap_or(now);
    if work.metadata.deletion_timestamp.is_some() || now.millis_since(since) < LONG_MS {
        return;
    }
    let of = &status.identifier;
    let api_version = GroupVersionKind::gvk(&of.group, &of.version, &of.kind).api_version();
    let example = Name {
        namespace: work.namespace().unwrap_or_default(),
        name: work.name_any(),
    };
    let entry = found
        .entry((api_version.clone(), of.kind.clone()))
        .or_insert_with(|| UnknownHealth {
            api_version,
            kind: of.kind.clone(),
            works: 0,
            example: example.clone(),
            since,
        });
    entry.works += 1;
    if since < entry.since {
        (entry.since, entry.example) = (since, example);
    }
}

/// Returns the time of the last write of the status: the health is at least that old. A status without a writer is as
/// old as its Work.
fn written(work: &Work) -> Option<Time> {
    let entries = work.metadata.managed_fields.iter().flatten();
    let of_status = entries.filter(|entry| entry.subresource.as_deref() == Some("status"));
    let last = of_status
        .filter_map(|entry| entry.time.as_ref())
        .map(|time| Time::new(time.0))
        .max();
    last.or_else(|| work.metadata.creation_timestamp.as_ref().map(|time| Time::new(time.0)))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn work(name: &str, health: &str, written: &str) -> Work {
        serde_json::from_value(json!({
            "apiVersion": "work.karmada.io/v1alpha1", "kind": "Work",
            "metadata": {
                "name": name, "namespace": "karmada-es-m1", "creationTimestamp": "2026-08-01T00:00:00Z",
                "managedFields": [
                    {"manager": "m", "operation": "Update", "time": "2026-08-01T11:59:00Z"},
                    {"manager": "m", "operation": "Update", "subresource": "status", "time": written},
                ],
            },
            "spec": {"workload": {"manifests": []}},
            "status": {"manifestStatuses": [
                {"identifier": {"ordinal": 0, "group": "apps", "version": "v1", "kind": "Deployment", "name": name},
                 "health": health},
            ]},
        }))
        .unwrap()
    }

    #[test]
    fn a_health_is_unknown_for_long_if_the_status_was_not_written_since() {
        let now = Time::new("2026-08-01T12:00:00Z".parse().unwrap());
        let mut found = BTreeMap::new();
        for work in [
            work("healthy", "Healthy", "2026-08-01T10:00:00Z"),
            work("new", "Unknown", "2026-08-01T11:56:00Z"),
            work("second", "Unknown", "2026-08-01T11:00:00Z"),
            work("first", "Unknown", "2026-08-01T10:00:00Z"),
        ] {
            note(&work, now, &mut found);
        }
        let found: Vec<_> = found
            .into_values()
            .map(|kind| (kind.api_version, kind.works, kind.example.name, kind.since.to_string()))
            .collect();
        let expected = (
            "apps/v1".to_owned(),
            2,
            "first".to_owned(),
            "2026-08-01T10:00:00Z".to_owned(),
        );
        assert_eq!(found, [expected]);
    }
}
