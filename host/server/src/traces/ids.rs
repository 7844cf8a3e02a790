//! Ids of traces and spans that every process derives alike from the objects of the control plane.
//!
//! They are digests, so the samplers that read the last bytes of a trace id see uniform numbers.

use opentelemetry::trace::{SpanContext, SpanId, TraceFlags, TraceId, TraceState};
use sha2::{Digest as _, Sha256};

/// Task of a binding for a cluster: one eviction.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct EvictionId {
    /// Uid of the binding.
    pub(super) uid: String,
    /// Cluster that the workload leaves.
    pub(super) cluster: String,
    /// Creation time of the task, in milliseconds since 1970.
    pub(super) created_ms: i64,
}

impl EvictionId {
    /// Returns the context of the first span of the trace of this eviction.
    pub(super) fn context(&self) -> SpanContext {
        let created = self.created_ms.to_string();
        let digest = digest(&["eviction", &self.uid, &self.cluster, &created]);
        context(trace_id(&digest), span_id(&digest))
    }
}

/// Returns the id of the span of a decision.
pub(super) fn of_decision(id: &str) -> SpanId {
    span_id(&digest(&["decision", id]))
}

/// Returns the context of the last decision of a reconcile that belongs to no eviction.
pub(super) fn of_lone_decision(id: &str) -> SpanContext {
    let digest = digest(&["decision", id]);
    context(trace_id(&digest), span_id(&digest))
}

/// Returns the context of a sampled span.
pub(super) fn context(trace: TraceId, span: SpanId) -> SpanContext {
    SpanContext::new(trace, span, TraceFlags::SAMPLED, false, TraceState::default())
}

/// Returns the digest of several texts. Their lengths are part of it, so that no two lists have the same digest.
fn digest(parts: &[&str]) -> [u8; 32] {
    let mut hasher = Sha256::new();
    for part in parts {
        hasher.update(part.len().to_be_bytes());
        hasher.update(part.as_bytes());
    }
    hasher.finalize().into()
}

fn trace_id(digest: &[u8; 32]) -> TraceId {
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&digest[..16]);
    TraceId::from_bytes(bytes)
}

fn span_id(digest: &[u8; 32]) -> SpanId {
    let mut bytes = [0; 8];
    bytes.copy_from_slice(&digest[16..24]);
    SpanId::from_bytes(bytes)
}
