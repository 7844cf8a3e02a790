//! Preparation of large components: they are configured when they are loaded, and warmed up if they allow it.
//!
//! A plugin that declares itself reusable has calls that do not depend on earlier ones. So a few calls are made before
//! the snapshot, in which an interpreter compiles what it runs, and one instance answers many calls: it gets its initial
//! state back after each of them.

use bulkhead_core::call::{CallKind, Reply};
use bulkhead_core::manifest::Instances;
use bulkhead_core::policy::{Fault, FaultKind};
use bulkhead_plugin::PluginSource;
use wasmtime::component::Component;

use super::{At, WasmEngine, about, described};
use crate::access;
use crate::bound;
use crate::host::About;
use crate::host::bindings::bulkhead::policy::types::ObjectKind;
use crate::metadata;
use crate::policy::answer;
use crate::samples::Samples;
use crate::session::{Code, Exports, Session};
use crate::snapshot;

/// Version of the preparation, for the cache: it changes with the samples, with what a guest sees of the host, and with
/// the functions that are added.
const PREPARATION: &[u8] = b"preparation 1";
/// Number of pairs of rounds, of which one has to be equal: other plugins may take the instance in between.
const PAIRS: usize = 3;
/// Number of calls of each kind that warm up a guest. Interpreters compile what they run for the second or third time.
const ROUNDS: usize = 3;

impl WasmEngine {
    /// Returns a component whose instances start configured. `None` for a component that is small, reused, or cannot
    /// start that way.
    pub(super) fn prepared(&self, source: &PluginSource, bytes: &[u8]) -> Option<Component> {
        if bytes.len() < self.options.snapshot_bytes_min || source.instances == Instances::Reused {
            return None;
        }
        let compile = || {
            let snapshot = self.prepare(source, bytes)?;
            bound::compile(&self.engine, &snapshot).ok()
        };
        let Some(cache) = &self.cache else { return compile() };
        let (config, budget) = (source.config.to_string(), format!("{:?}", source.budget));
        let inputs = [
            PREPARATION,
            bytes,
            config.as_bytes(),
            source.name.as_bytes(),
            budget.as_bytes(),
            &self.options.stack_bytes_max.to_le_bytes(),
        ];
        cache.component(&self.engine, &inputs, || compile().ok_or(())).ok()
    }

    /// Configures an instance of a component, and returns the component that starts in that state. Any failure is
    /// `None`: the component as it is has the same one, and loading it reports the error.
    fn prepare(&self, source: &PluginSource, bytes: &[u8]) -> Option<Vec<u8>> {
        let (context, instrumented) = snapshot::instrumented(bytes)?;
        let starter = self.starter().ok()?;
        let component = bound::compile(&starter.engine, &instrumented).ok()?;
        let at = At::of(source);
        let (code, outline) = starter.bind(&at, source, &component, false).ok()?;
        let (kinds, description) = described(&at, source, &code, outline).ok()?;
        let taken = |samples: Option<&Samples>| {
            let mut session = Session::new(&code, about(source)).ok()?;
            let instance = session.configured().ok()?;
            let id = metadata::id(source, &description);
            let host = session.store.data_mut();
            host.flush(self.options.log.as_ref(), &id);
            if host.depends_on_call() {
                return None;
            }
            if let Some(samples) = samples
                && !warm_up(&mut session, samples)?
            {
                return Some(None);
            }
            session.unbounded()?;
            snapshot::taken(&context, &mut session.store, instance).map(Some)
        };
        if !description.reusable {
            return taken(None)?;
        }
        let samples = Samples::about(kinds.first())?;
        // The state after a fault is no state to start from.
        let warm = taken(Some(&samples))?;
        let snapshot = warm.or_else(|| taken(None).flatten())?;
        let (_, instrumented) = snapshot::instrumented(&snapshot)?;
        access::added(&instrumented).or(Some(snapshot))
    }
}

/// Makes calls of each kind. Returns false after a fault, or if the guest keeps handles, and `None` after a fault that is
/// due to the load of this machine.
fn warm_up(session: &mut Session<'_>, samples: &Samples) -> Option<bool> {
    for call in samples.calls(kinds(&session.code.exports)) {
        for _ in 0..ROUNDS {
            match answer(session, &call) {
                Err(fault) if matches!(fault.kind, FaultKind::Deadline | FaultKind::HostBusy) => return None,
                answer if !is_answer(&answer) => return Some(false),
                _ => {}
            }
            if !session.renew().ok()? {
                return Some(false);
            }
        }
    }
    Some(true)
}

/// Forgets the functions that give an instance its state back, unless they work here: two equal rounds of calls in one
/// instance must find equal memories, and get equal answers at equal cost.
pub(super) fn keep_access_if_it_works(code: &mut Code, about: &About, kind: Option<&ObjectKind>) {
    if code.access.is_none() {
        return;
    }
    let works = Samples::about(kind).is_some_and(|samples| {
        let pair = || {
            let first = round(code, about.clone(), &samples)?;
            let second = round(code, about.clone(), &samples)?;
            let is_same = second.calls == first.calls + 1;
            Some(is_same && first.memories == second.memories && first.answers == second.answers)
        };
        (0..PAIRS).any(|_| pair() == Some(true))
    });
    if !works {
        code.access = None;
        code.slots.forget(code.plugin);
    }
}

/// Observations of a round of calls.
struct Round {
    /// Number of rounds that the instance has answered before.
    calls: u32,
    /// Memories at its start.
    memories: Vec<Vec<u8>>,
    /// Answers, and their cost in steps.
    answers: Vec<(Result<Reply, Fault>, u64)>,
}

fn round(code: &Code, about: About, samples: &Samples) -> Option<Round> {
    let mut session = Session::new(code, about).ok()?;
    session.configured().ok()?;
    let (calls, memories) = (session.calls(), session.memories()?);
    let mut answers = Vec::new();
    for call in samples.calls(kinds(&code.exports)) {
        let answer = answer(&mut session, &call);
        if !is_answer(&answer) {
            return None;
        }
        answers.push((answer, session.steps()));
        session.renew().ok()?.then_some(())?;
    }
    session.end_well();
    Some(Round {
        calls,
        memories,
        answers,
    })
}

/// True for an answer, and for a plugin's own statement that it has none.
fn is_answer(answer: &Result<Reply, Fault>) -> bool {
    answer
        .as_ref()
        .err()
        .is_none_or(|fault| fault.kind == FaultKind::Unsupported)
}

/// Returns the kinds of calls that a component answers.
fn kinds(exports: &Exports) -> impl Iterator<Item = CallKind> + use<> {
    let exported = [
        (exports.health.is_some(), CallKind::Health),
        (exports.taints.is_some(), CallKind::ClusterTaint),
        (exports.filter.is_some(), CallKind::Filter),
        (exports.score.is_some(), CallKind::Score),
        (exports.eviction.is_some(), CallKind::EvictionCheck),
        (exports.interpreter.is_some(), CallKind::Interpret),
    ];
    exported
        .into_iter()
        .filter(|(exported, _)| *exported)
        .map(|(_, kind)| kind)
}
