//! Preparation of large components: they are configured when they are loaded, and warmed up if they allow it.
//!
//! A plugin that declares itself reusable has calls that do not depend on earlier ones. So a few calls are made before
//! the snapshot, in which an interpreter compiles what it runs, and one instance answers many calls: it gets its initial
//! state back after each of them.

use bulkhead_core::call::{CallKind, Reply};
use bulkhead_core::manifest::Instances;
use bulkhead_core::policy::{Fault, FaultKind};
use bulkhead_plugin::{ModuleCode, PluginSource};
use wasmtime::component::Component;

use super::{At, WasmEngine, about, described};
use crate::access;
use crate::bound;
use crate::cache::Key;
use crate::checksum::Checksum;
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
/// Input of the mark, in the cache, of a component that cannot start configured.
const UNPREPARED: &[u8] = b"unprepared";
/// Component without content, which is the mark.
const EMPTY: &[u8] = b"\0asm\x0d\0\x01\0";
/// Number of pairs of rounds, of which one has to be equal: other plugins may take the instance in between.
const PAIRS: usize = 3;
/// Number of calls of each kind that warm up a guest. Interpreters compile what they run for the second or third time.
const ROUNDS: usize = 3;

impl WasmEngine {
    /// Returns a component whose instances start configured. `None` for a component that is small, reused, or cannot
    /// start that way.
    pub(super) fn prepared(&self, source: &PluginSource, bytes: &ModuleCode) -> Option<Component> {
        if bytes.len() < self.options.snapshot_bytes_min || source.instances == Instances::Reused {
            return None;
        }
        let compile = || {
            let snapshot = self.prepare(source, bytes)?;
            bound::compile(&self.engine, &snapshot).map_err(now)
        };
        let Some(cache) = &self.cache else {
            return compile().ok();
        };
        let (config, budget) = (source.config.to_string(), format!("{:?}", source.budget));
        let digest = bytes.digest();
        let inputs = [
            PREPARATION,
            digest.as_bytes(),
            config.as_bytes(),
            source.name.as_bytes(),
            budget.as_bytes(),
            &self.options.stack_bytes_max.to_le_bytes(),
        ];
        let key = Key::of(&self.engine, &inputs);
        if let Some(found) = cache.get(&self.engine, &key) {
            return Some(found);
        }
        let mark = Key::of(&self.engine, &[UNPREPARED, key.as_bytes()]);
        if cache.get(&self.engine, &mark).is_some() {
            return None;
        }
        let filled = cache.fill(&key, compile);
        if let Err(Unprepared::Always) = filled
            && let Ok(empty) = Component::from_binary(&self.engine, EMPTY)
        {
            cache.put(&mark, &empty);
        }
        filled.ok()
    }

    /// Configures an instance of a component, and returns the component that starts in that state.
    fn prepare(&self, source: &PluginSource, bytes: &[u8]) -> Result<Vec<u8>, Unprepared> {
        let (context, instrumented) = snapshot::instrumented(bytes).ok_or(Unprepared::Always)?;
        let starter = self.starter().map_err(now)?;
        let component = bound::compile(&starter.engine, &instrumented).map_err(now)?;
        let at = At::of(source);
        let (code, outline) = starter.bind(&at, source, &component, false).map_err(now)?;
        let (kinds, description) = described(&at, source, &code, outline).map_err(now)?;
        let taken = |samples: Option<&Samples>| {
            let mut session = Session::new(&code, about(source)).map_err(now)?;
            let instance = session.configured().map_err(now)?;
            let id = metadata::id(source, &description);
            let host = session.store.data_mut();
            host.flush(self.options.log.as_ref(), &id);
            if host.depends_on_call() {
                return Err(Unprepared::Always);
            }
            if let Some(samples) = samples
                && !warm_up(&mut session, samples)?
            {
                return Ok(None);
            }
            session.unbounded().ok_or(Unprepared::Now)?;
            let snapshot = snapshot::taken(&context, &mut session.store, instance);
            snapshot.map(Some).ok_or(Unprepared::Always)
        };
        if !description.reusable {
            return taken(None)?.ok_or(Unprepared::Always);
        }
        let samples = Samples::about(kinds.first()).ok_or(Unprepared::Always)?;
        // The state after a fault is no state to start from.
        let snapshot = match taken(Some(&samples))? {
            Some(warm) => warm,
            None => taken(None)?.ok_or(Unprepared::Always)?,
        };
        let (_, instrumented) = snapshot::instrumented(&snapshot).ok_or(Unprepared::Always)?;
        Ok(access::added(&instrumented).unwrap_or(snapshot))
    }
}

/// Reason why a component does not start configured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unprepared {
    /// Its state cannot be kept, or depends on the call.
    Always,
    /// It could not be configured. The component as it is has the same fault, and loading it reports the error.
    Now,
}

fn now<E>(_: E) -> Unprepared {
    Unprepared::Now
}

/// Makes calls of each kind. Returns false after a fault, or if the guest keeps handles. A fault that is due to the load
/// of this machine is an error.
fn warm_up(session: &mut Session<'_>, samples: &Samples) -> Result<bool, Unprepared> {
    for call in samples.calls(kinds(&session.code.exports)) {
        for _ in 0..ROUNDS {
            match answer(session, &call) {
                Err(fault) if matches!(fault.kind, FaultKind::Deadline | FaultKind::HostBusy) => {
                    return Err(Unprepared::Now);
                }
                answer if !is_answer(&answer) => return Ok(false),
                _ => {}
            }
            if !session.renew().map_err(now)? {
                return Ok(false);
            }
        }
    }
    Ok(true)
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
    /// Checksums of the memories at its start.
    memories: Vec<Checksum>,
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
