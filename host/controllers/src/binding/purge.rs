//! Old copies that must be gone before a replacement starts (purge mode `Directly`).

use std::collections::BTreeSet;
use std::time::Duration;

use bulkhead_core::combine::Attribution;
use bulkhead_core::decide::dispatch::{self, Purge};
use bulkhead_core::journal::Decision;
use bulkhead_runtime::key::Key;

use super::{BindingController, DIRECT_PURGE_RECHECK, NAME};
use crate::binding_kind::Binding;
use crate::decision_log::Record;
use crate::subjects::{input, subject};

impl BindingController {
    /// Checks the clusters whose old copies must be purged first and are not gone. A cluster that is not ready holds
    /// back the replacement for a limited time, which is recorded once.
    pub(super) fn purged<B: Binding>(&self, key: &Key, binding: &B, unpurged: BTreeSet<String>) -> Purged {
        let (deps, now) = (&self.deps, self.deps.clock.now());
        let timeout_s = deps.flags.graceful_eviction_timeout.as_secs();
        let (mut blocked, mut given_up, mut after) = (BTreeSet::new(), Vec::new(), None);
        for name in unpurged {
            let is_ready = deps.stores.cluster(&name).is_some_and(|cluster| cluster.is_ready());
            match dispatch::purge(binding.spec(), &name, is_ready, timeout_s, now) {
                Purge::UnderWay => after = Some(DIRECT_PURGE_RECHECK),
                Purge::Blocked { limit_s, .. } => {
                    after = Some(DIRECT_PURGE_RECHECK);
                    if !self.blocked().get(key).is_some_and(|known| known.contains(&name)) {
                        self.record_blocked(binding, &name, limit_s);
                    }
                    blocked.insert(name);
                }
                Purge::GivenUp { limit_s } => {
                    given_up.push(format!("{name} is not ready and was not purged within {limit_s} s"));
                }
            }
        }
        if blocked.is_empty() {
            self.blocked().remove(key);
        } else {
            self.blocked().insert(key.clone(), blocked);
        }
        match after {
            Some(after) => Purged::NotYet { after },
            None => Purged::Yes {
                given_up: (!given_up.is_empty()).then(|| given_up.join(", ")),
            },
        }
    }

    fn record_blocked<B: Binding>(&self, binding: &B, cluster: &str, limit_s: i64) {
        let message = format!(
            "purge mode Directly removes the old copy first, and {cluster} is not ready; the replacement waits until the \
             copy is gone, for {limit_s} s after the eviction at most"
        );
        self.deps.log.record(Record {
            controller: NAME,
            subject: subject(binding),
            cluster: Some(cluster.to_owned()),
            decision: Decision::RemovalWaits,
            attribution: Attribution::rule("ReplacementWaitsForPurge", message),
            effect: "the replacement is not started yet".to_owned(),
            inputs: vec![input(binding)],
        });
    }
}

/// State of the old copies that must be gone before the replacement starts.
pub(super) enum Purged {
    /// No old copy that the replacement waits for is left.
    Yes {
        /// Reason why a remaining copy is not waited for.
        given_up: Option<String>,
    },
    /// At least one old copy is left.
    NotYet {
        /// Time until the next check.
        after: Duration,
    },
}
