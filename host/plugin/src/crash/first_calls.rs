//! Policy of which the first call of each function is marked.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bulkhead_core::call::{Call, CallKind, Reply};
use bulkhead_core::policy::{Build, Capability, Fault, FaultKind, Policy, PolicyId, Usage};

use super::CrashMarks;
use bulkhead_core::manifest::{Digest, EntryPoint};

/// Policy whose first call of each function is marked.
pub(crate) struct FirstCalls {
    inner: Arc<dyn Policy>,
    digest: Digest,
    marks: Arc<CrashMarks>,
    /// True for each function that has returned from a call, in order of [`EntryPoint::ALL`].
    survived: [AtomicBool; EntryPoint::ALL.len()],
}

impl FirstCalls {
    pub(crate) fn new(inner: Arc<dyn Policy>, digest: Digest, marks: Arc<CrashMarks>) -> Self {
        Self {
            inner,
            digest,
            marks,
            survived: Default::default(),
        }
    }
}

impl Policy for FirstCalls {
    fn id(&self) -> &PolicyId {
        self.inner.id()
    }

    fn capabilities(&self) -> &[Capability] {
        self.inner.capabilities()
    }

    fn call(&self, call: &Call<'_>) -> Result<Reply, Fault> {
        let point = EntryPoint::of_call(call);
        let survived = EntryPoint::ALL
            .iter()
            .position(|known| *known == point)
            .and_then(|at| self.survived.get(at));
        let Some(survived) = survived.filter(|survived| !survived.load(Ordering::Relaxed)) else {
            return self.inner.call(call);
        };
        let Some(mark) = self.marks.begin_call(self.digest, point.function(), &self.id().name) else {
            let why = "another plugin that may have ended a process is called for the first time";
            return Err(Fault::new(FaultKind::HostBusy, why));
        };
        let answer = self.inner.call(call);
        if answer
            .as_ref()
            .err()
            .is_none_or(|fault| fault.kind != FaultKind::HostBusy)
        {
            survived.store(true, Ordering::Relaxed);
            mark.survived();
        }
        answer
    }

    fn usage_of(&self, kind: CallKind) -> Usage {
        self.inner.usage_of(kind)
    }

    fn build(&self) -> Option<&Build> {
        self.inner.build()
    }
}
