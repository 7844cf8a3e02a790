//! Locks that serialize the writes of this process to an object, and the order of object versions.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Resource;
use tokio::sync::OwnedMutexGuard;

use crate::key::Key;

type Locks = Mutex<BTreeMap<Key, Arc<tokio::sync::Mutex<()>>>>;

/// Locks of the objects that are being written or waited for.
#[derive(Default)]
pub(crate) struct ObjectLocks(Arc<Locks>);

/// Lock of one object. While it exists, no other task of this process writes the object.
pub struct ObjectLock {
    locks: Arc<Locks>,
    key: Key,
    guard: Option<OwnedMutexGuard<()>>,
}

impl ObjectLocks {
    /// Waits for the lock of an object, in FIFO order.
    pub(crate) async fn lock(&self, key: &Key) -> ObjectLock {
        let lock = Arc::clone(unpoisoned(&self.0).entry(key.clone()).or_default());
        let guard = Some(lock.lock_owned().await);
        ObjectLock {
            locks: Arc::clone(&self.0),
            key: key.clone(),
            guard,
        }
    }

    /// Takes the lock of an object if it is free.
    pub(crate) fn try_lock(&self, key: &Key) -> Option<ObjectLock> {
        let lock = Arc::clone(unpoisoned(&self.0).entry(key.clone()).or_default());
        let guard = Some(lock.try_lock_owned().ok()?);
        Some(ObjectLock {
            locks: Arc::clone(&self.0),
            key: key.clone(),
            guard,
        })
    }
}

impl Drop for ObjectLock {
    fn drop(&mut self) {
        self.guard.take();
        let mut locks = unpoisoned(&self.locks);
        if locks.get(&self.key).is_some_and(|lock| Arc::strong_count(lock) == 1) {
            locks.remove(&self.key);
        }
    }
}

fn unpoisoned(locks: &Locks) -> MutexGuard<'_, BTreeMap<Key, Arc<tokio::sync::Mutex<()>>>> {
    locks.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Compares two versions. Returns `None` if one of them is not a number (Kubernetes guarantees numbers from 1.35 on).
fn order(left: &ObjectMeta, right: &ObjectMeta) -> Option<Ordering> {
    let version = |object: &ObjectMeta| object.resource_version.as_ref()?.parse::<u64>().ok();
    Some(version(left)?.cmp(&version(right)?))
}

/// True if `other` is a newer version of the same object.
pub fn is_newer<K: Resource>(known: &K, other: &K) -> bool {
    is_newer_version(known.meta(), other.meta())
}

/// Compares like [`is_newer`], by metadata.
pub fn is_newer_version(known: &ObjectMeta, other: &ObjectMeta) -> bool {
    known.uid == other.uid && order(known, other).is_some_and(Ordering::is_lt)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use k8s_openapi::api::core::v1::ConfigMap;
    use serde_json::json;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn one_object_is_written_by_one_at_a_time_and_nothing_is_remembered() {
        let (locks, a, b) = (ObjectLocks::default(), Key::new("ns", "a"), Key::new("ns", "b"));
        let wait = Duration::from_secs(1);
        let first = locks.lock(&a).await;
        assert!(tokio::time::timeout(wait, locks.lock(&a)).await.is_err());
        assert!(locks.try_lock(&a).is_none());
        drop(locks.try_lock(&b).unwrap());
        let other = tokio::time::timeout(wait, locks.lock(&b)).await.unwrap();
        drop(first);
        drop(tokio::time::timeout(wait, locks.lock(&a)).await.unwrap());
        drop(other);
        assert!(unpoisoned(&locks.0).is_empty());
    }

    #[test]
    fn versions_are_numbers_and_those_of_another_object_say_nothing() {
        let check = |known: (&str, &str), other: (&str, &str), expected: bool| {
            let object = |(uid, version)| -> ConfigMap {
                serde_json::from_value(json!({"metadata": {"uid": uid, "resourceVersion": version}})).unwrap()
            };
            assert_eq!(
                is_newer(&object(known), &object(other)),
                expected,
                "{known:?} {other:?}"
            );
        };
        check(("u", "9"), ("u", "10"), true);
        check(("u", "10"), ("u", "10"), false);
        check(("u", "10"), ("u", "9"), false);
        check(("u", "9"), ("v", "10"), false);
        check(("u", "x"), ("u", "10"), false);
    }
}
