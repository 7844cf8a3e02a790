//! Replies of policies in a compact journal format, which is short if most clusters get the same verdict.

use serde::{Deserialize, Serialize};

use crate::call::{EvictionVerdict, FilterVerdict, HealthVerdict, Reason, Reply, TaintChange, TaintVerdict};
use crate::policy::{Fault, FaultKind};

/// Reply to one call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum RecordedReply {
    /// Reply to a health call.
    Health(HealthVerdict),
    /// Reply to a cluster-taint call: the changes in order.
    ClusterTaint(Vec<TaintChange>),
    /// Reply to a filter call.
    Filter(RecordedFilterReply),
    /// Reply to a score call: runs of equal scores, as (score, number of clusters), in the order of the call.
    Score(Vec<(i64, usize)>),
    /// Reply to an eviction-check call.
    EvictionCheck(EvictionVerdict),
    /// Fault instead of a reply.
    Fault {
        /// Kind of the fault.
        kind: FaultKind,
        /// Human-readable details.
        message: String,
    },
}

/// Verdicts of a filter; clusters that are not listed fit.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RecordedFilterReply {
    /// Number of clusters in the call.
    pub clusters: usize,
    /// Positions of rejected clusters in the call, from 0, with the reason.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unfit: Vec<(usize, Reason)>,
    /// Positions of clusters on which the filter abstained.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub abstained: Vec<usize>,
}

impl RecordedReply {
    /// Converts a reply to a call. `None` for interpretations of objects, which no decision in the journal requests.
    pub fn of(answer: &Result<Reply, Fault>) -> Option<Self> {
        Some(match answer {
            Ok(Reply::Health(verdict)) => Self::Health(verdict.clone()),
            Ok(Reply::ClusterTaint(verdict)) => Self::ClusterTaint(verdict.changes.clone()),
            Ok(Reply::Filter(verdicts)) => Self::Filter(filtered(verdicts)),
            Ok(Reply::Score(scores)) => Self::Score(runs(scores)),
            Ok(Reply::EvictionCheck(verdict)) => Self::EvictionCheck(verdict.clone()),
            Ok(Reply::Interpret(_)) => return None,
            Err(Fault { kind, message }) => Self::Fault {
                kind: *kind,
                message: message.clone(),
            },
        })
    }

    /// Returns the original reply of the policy.
    pub fn to_reply(&self) -> Result<Reply, Fault> {
        Ok(match self {
            Self::Health(verdict) => Reply::Health(verdict.clone()),
            Self::ClusterTaint(changes) => Reply::ClusterTaint(TaintVerdict {
                changes: changes.clone(),
            }),
            Self::Filter(filtered) => Reply::Filter(filtered.verdicts()),
            Self::Score(runs) => Reply::Score(
                runs.iter()
                    .flat_map(|(score, count)| std::iter::repeat_n(*score, *count))
                    .collect(),
            ),
            Self::EvictionCheck(verdict) => Reply::EvictionCheck(verdict.clone()),
            Self::Fault { kind, message } => return Err(Fault::new(*kind, message.clone())),
        })
    }
}

fn filtered(verdicts: &[FilterVerdict]) -> RecordedFilterReply {
    let mut filtered = RecordedFilterReply {
        clusters: verdicts.len(),
        ..RecordedFilterReply::default()
    };
    for (position, verdict) in verdicts.iter().enumerate() {
        match verdict {
            FilterVerdict::Fit => {}
            FilterVerdict::Unfit(reason) => filtered.unfit.push((position, reason.clone())),
            FilterVerdict::Abstain => filtered.abstained.push(position),
        }
    }
    filtered
}

impl RecordedFilterReply {
    /// Returns one verdict per cluster. Ignores out-of-range positions, which only records of other programs contain.
    fn verdicts(&self) -> Vec<FilterVerdict> {
        let mut verdicts = vec![FilterVerdict::Fit; self.clusters];
        for (position, reason) in &self.unfit {
            if let Some(verdict) = verdicts.get_mut(*position) {
                *verdict = FilterVerdict::Unfit(reason.clone());
            }
        }
        for position in &self.abstained {
            if let Some(verdict) = verdicts.get_mut(*position) {
                *verdict = FilterVerdict::Abstain;
            }
        }
        verdicts
    }
}

fn runs(scores: &[i64]) -> Vec<(i64, usize)> {
    let mut runs: Vec<(i64, usize)> = Vec::new();
    for score in scores {
        match runs.last_mut() {
            Some((last, count)) if last == score => *count += 1,
            _ => runs.push((*score, 1)),
        }
    }
    runs
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Health;

    #[test]
    fn every_answer_survives_the_way_to_the_journal_and_back() {
        let check = |answer: Result<Reply, Fault>| {
            let kept = RecordedReply::of(&answer).unwrap();
            let read: RecordedReply = serde_json::from_str(&serde_json::to_string(&kept).unwrap()).unwrap();
            assert_eq!(read.to_reply(), answer);
        };
        let reason = Reason::new("Why", "because");
        check(Ok(Reply::Health(HealthVerdict {
            health: Health::Unknown,
            reason: reason.clone(),
        })));
        check(Ok(Reply::ClusterTaint(TaintVerdict::default())));
        let (fit, unfit) = (FilterVerdict::Fit, FilterVerdict::Unfit(reason.clone()));
        check(Ok(Reply::Filter(vec![fit.clone(), unfit, FilterVerdict::Abstain, fit])));
        check(Ok(Reply::Score(vec![0, 0, 100, 100, 0])));
        check(Ok(Reply::Score(Vec::new())));
        check(Ok(Reply::EvictionCheck(EvictionVerdict::Release(reason.clone()))));
        check(Ok(Reply::EvictionCheck(EvictionVerdict::Hold {
            reason,
            recheck_after_s: Some(7),
        })));
        check(Ok(Reply::EvictionCheck(EvictionVerdict::Abstain)));
        check(Err(Fault::new(FaultKind::Trap, "line 3")));
    }

    #[test]
    fn clusters_that_are_treated_alike_take_no_room() {
        let fits = RecordedReply::of(&Ok(Reply::Filter(vec![FilterVerdict::Fit; 5_000])));
        assert_eq!(serde_json::to_string(&fits).unwrap(), r#"{"filter":{"clusters":5000}}"#);
        let scores = RecordedReply::of(&Ok(Reply::Score(vec![0; 5_000])));
        assert_eq!(serde_json::to_string(&scores).unwrap(), r#"{"score":[[0,5000]]}"#);
    }
}
