use std::borrow::Cow;

use bulkhead_core::call::{Call, CallKind, InterpretCall, Operation, Reply};
use bulkhead_core::manifest::EntryPoint;
use bulkhead_core::policy::{Build, Capability, Fault, FaultKind, Policy, PolicyId, Usage};
use bulkhead_core::time::Time;
use bulkhead_plugin::{Entry, PluginSource, UsageMeter, one_line};
use serde::Serialize;
use serde_json::Value;

use crate::culprit::explained;
use crate::encode::{Conversions, EmptyTables};
use crate::machine::{CallSettings, Global};
use crate::meter::Spent;
use crate::names::no_function;
use crate::options::{EmptyItems, Options};
use crate::pool::Pool;
use crate::position::LIBRARY_NAME;
use crate::script::Script;
use crate::{interpretation, reply};

/// Maximum length of a message about a reply, in characters.
const MESSAGE_CHARS_MAX: usize = 1_024;

/// Loaded plugin: scripts and the entry points that their functions implement.
pub(crate) struct LuaPolicy {
    id: PolicyId,
    capabilities: Vec<Capability>,
    /// Entries in order of declaration, each with the index of its script. The first one that matches answers.
    entries: Vec<(Entry, usize)>,
    pool: Pool,
    reply_bytes_max: usize,
    config: Value,
    options: Options,
    build: Build,
    usage: UsageMeter,
}

/// Call with the arguments of the function.
struct FunctionCall<'a> {
    point: EntryPoint,
    object: Option<&'a Value>,
    now: Option<Time>,
    /// Arguments; null is nil.
    arguments: Vec<Cow<'a, Value>>,
    empties: EmptyTables,
}

impl LuaPolicy {
    /// Creates the policy of a plugin. Each of the `entries` has the index of its script.
    pub(crate) fn new(
        source: &PluginSource,
        id: PolicyId,
        entries: Vec<(Entry, usize)>,
        pool: Pool,
        options: Options,
    ) -> Self {
        let mut capabilities: Vec<_> = entries.iter().map(|(entry, _)| entry.capability()).collect();
        capabilities.sort();
        capabilities.dedup();
        let reply_bytes_max = source.budget.reply_bytes;
        Self {
            id,
            capabilities,
            entries,
            pool,
            reply_bytes_max,
            config: source.config.clone(),
            options,
            build: source.build(),
            usage: UsageMeter::default(),
        }
    }

    /// Returns the index of the script that answers.
    fn script(&self, function_call: &FunctionCall<'_>) -> Option<usize> {
        let field = |name| function_call.object?.get(name)?.as_str();
        let asked = (
            field("apiVersion").unwrap_or_default(),
            field("kind").unwrap_or_default(),
        );
        let fits = |entry: &Entry| {
            let kind = entry
                .object_kind
                .as_ref()
                .map(|(api_version, kind)| (api_version.as_str(), kind.as_str()));
            entry.point == function_call.point && kind.is_none_or(|kind| kind == asked)
        };
        self.entries
            .iter()
            .find(|(entry, _)| fits(entry))
            .map(|(_, script)| *script)
    }

    /// Calls the function and reads its first `N` results; missing ones are null.
    fn ask<const N: usize, T>(
        &self,
        function_call: &FunctionCall<'_>,
        read: impl FnOnce(&[Value; N]) -> Result<T, String>,
    ) -> Result<T, Fault> {
        let name = function_call.point.function();
        let missing = |message: String| Fault::new(FaultKind::MissingExport, message);
        let script = self
            .script(function_call)
            .ok_or_else(|| missing(format!("no script offers {name}")))?;
        let setting = CallSettings {
            script,
            config: &self.config,
            now: function_call.now,
        };
        let script = self.pool.scripts().get(script);
        let (origin, text) = script.map_or(("", ""), |script| (script.origin.as_str(), script.text.as_str()));
        let kind = function_call.point.call_kind();
        let meter = |spent: Spent| self.usage.record(kind, spent.steps, spent.memory_bytes);
        let answer = self.pool.metered(&setting, meter, |session| {
            session.run()?;
            let Global::Function(function) = session.global(name) else {
                return Err(missing(format!("{origin}: {}", no_function(name, text))));
            };
            let bad = |error: &str| bad_reply(function_call.point, &definition(origin, &function), error);
            let results = session.call(&function, function_call.arguments.iter().map(AsRef::as_ref));
            let results = results.map_err(|fault| within(fault, origin, &function))?;
            let mut encoded = [const { Value::Null }; N];
            for (slot, result) in encoded.iter_mut().zip(&results) {
                if self.options.conversions == Conversions::Karmada && is_no_json_number(result) {
                    *slot = Value::from(f64::MAX);
                    continue;
                }
                *slot = session
                    .encode(result, &function_call.empties, self.reply_bytes_max)
                    .map_err(|error| bad(&format!("a bad value: {error}")))?;
            }
            read(&encoded).map_err(|error| bad(&error))
        });
        answer.map_err(|fault| match script {
            Some(script) => explain(fault, script),
            None => fault,
        })
    }

    /// Calls the function and reads its single result.
    fn answer<T>(
        &self,
        function_call: &FunctionCall<'_>,
        read: impl FnOnce(&Value) -> Result<T, String>,
    ) -> Result<T, Fault> {
        self.ask(function_call, |[result]: &[Value; 1]| read(result))
    }

    fn interpret(&self, call: &InterpretCall<'_>) -> Result<Reply, Fault> {
        let point = EntryPoint::of(&call.operation);
        let object = call.operation.object();
        let mut function_call = FunctionCall {
            point,
            object: Some(object),
            now: Some(call.now),
            arguments: vec![Cow::Borrowed(&**object)],
            empties: EmptyTables::dropped(self.options.conversions),
        };
        if self.script(&function_call).is_none() {
            return Ok(Reply::Interpret(None));
        }
        let interpretation = match &call.operation {
            Operation::Replicas { .. } => {
                let conversions = self.options.conversions;
                self.ask(&function_call, |[replicas, requirements]: &[Value; 2]| {
                    interpretation::replicas(replicas, requirements, conversions)
                })?
            }
            Operation::Revise { replicas, .. } => {
                function_call.arguments.push(Cow::Owned(Value::from(*replicas)));
                function_call.empties = EmptyTables::as_in(&[object], self.options.conversions);
                self.answer(&function_call, interpretation::object)?
            }
            Operation::Retain { observed, .. } => {
                function_call.arguments.push(Cow::Borrowed(&***observed));
                function_call.empties = EmptyTables::as_in(&[object, observed], self.options.conversions);
                self.answer(&function_call, interpretation::object)?
            }
            Operation::ReflectStatus { .. } => self.answer(&function_call, interpretation::status)?,
            Operation::Components { .. } => self.answer(&function_call, interpretation::components)?,
            Operation::Dependencies { .. } => {
                let conversions = self.options.conversions;
                self.answer(&function_call, |result| {
                    interpretation::dependencies(result, conversions)
                })?
            }
            Operation::AggregateStatus { items, .. } => {
                // In Karmada the list is nil if no cluster reports a status, and scripts test for that.
                let nil = items.is_empty() && self.options.no_items == EmptyItems::Nil;
                let items = if nil { Value::Null } else { json(items)? };
                function_call.arguments.push(Cow::Owned(items));
                self.answer(&function_call, interpretation::object)?
            }
        };
        Ok(Reply::Interpret(Some(interpretation)))
    }
}

impl Policy for LuaPolicy {
    fn id(&self) -> &PolicyId {
        &self.id
    }

    fn capabilities(&self) -> &[Capability] {
        &self.capabilities
    }

    fn call(&self, call: &Call<'_>) -> Result<Reply, Fault> {
        match call {
            Call::Health(call) => {
                let function_call = FunctionCall {
                    point: EntryPoint::Health,
                    object: Some(call.object),
                    now: Some(call.now),
                    arguments: vec![Cow::Borrowed(&**call.object)],
                    empties: EmptyTables::Kept,
                };
                self.answer(&function_call, reply::health).map(Reply::Health)
            }
            Call::ClusterTaint(call) => {
                let function_call = function_call(EntryPoint::ClusterTaint, call.now, vec![json(call.cluster)?]);
                self.answer(&function_call, reply::cluster_taint)
                    .map(Reply::ClusterTaint)
            }
            Call::Filter(call) => {
                let arguments = vec![json(call.binding)?, json(&call.clusters)?];
                let function_call = function_call(EntryPoint::Filter, call.now, arguments);
                self.answer(&function_call, |result| reply::filter(result, call.clusters.len()))
                    .map(Reply::Filter)
            }
            Call::Score(call) => {
                let arguments = vec![json(call.binding)?, json(&call.clusters)?];
                let function_call = function_call(EntryPoint::Score, call.now, arguments);
                self.answer(&function_call, |result| reply::score(result, call.clusters.len()))
                    .map(Reply::Score)
            }
            Call::EvictionCheck(call) => {
                let arguments = vec![json(call.binding)?, json(call.task)?, json(call.observed)?];
                let function_call = function_call(EntryPoint::EvictionCheck, call.now, arguments);
                self.answer(&function_call, reply::eviction_check)
                    .map(Reply::EvictionCheck)
            }
            Call::Interpret(call) => self.interpret(call),
        }
    }

    fn usage_of(&self, kind: CallKind) -> Usage {
        self.usage.usage_of(kind)
    }

    fn build(&self) -> Option<&Build> {
        Some(&self.build)
    }
}

/// Adds the cause to a fault if the text of the script shows it, and the script to one without a place.
fn explain(mut fault: Fault, script: &Script) -> Fault {
    match fault.kind {
        FaultKind::Trap => {
            if let Some(message) = explained(&fault.message, &script.origin, &script.text) {
                fault.message = message;
            }
        }
        FaultKind::Memory if !fault.message.starts_with(&script.origin) => {
            fault.message = format!("{}: {}", script.origin, fault.message);
        }
        _ => {}
    }
    fault
}

/// Returns true for a number that JSON cannot represent. Karmada casts any number that a function returns.
fn is_no_json_number(value: &mlua::Value) -> bool {
    matches!(value, mlua::Value::Number(number) if !number.is_finite())
}

/// Creates a call that is not about an object; `now` is the last argument.
fn function_call(point: EntryPoint, now: Time, mut arguments: Vec<Value>) -> FunctionCall<'static> {
    arguments.push(Value::from(now.as_millis().div_euclid(1000)));
    let arguments = arguments.into_iter().map(Cow::Owned).collect();
    FunctionCall {
        point,
        object: None,
        now: Some(now),
        arguments,
        empties: EmptyTables::Kept,
    }
}

/// Returns `origin:line: ` of the definition of a function; without the line for a function that is not the script's.
fn definition(origin: &str, function: &mlua::Function) -> String {
    let info = function.info();
    let line = info
        .line_defined
        .filter(|_| info.what != "C" && info.short_src.as_deref() != Some(LIBRARY_NAME));
    line.map_or_else(|| format!("{origin}: "), |line| format!("{origin}:{line}: "))
}

/// Adds the definition of the called function to a fault of memory without a place.
fn within(mut fault: Fault, origin: &str, function: &mlua::Function) -> Fault {
    if fault.kind == FaultKind::Memory && !fault.message.starts_with(origin) {
        fault.message = format!("{}{}", definition(origin, function), fault.message);
    }
    fault
}

/// Returns a fault for an invalid result, at the place of the function. The message contains text of the script, so it
/// is truncated.
fn bad_reply(point: EntryPoint, place: &str, error: &str) -> Fault {
    let message = format!("{place}{} returned {error}", point.function());
    Fault::new(FaultKind::BadReply, one_line(&message, MESSAGE_CHARS_MAX))
}

fn json<T: Serialize + ?Sized>(value: &T) -> Result<Value, Fault> {
    serde_json::to_value(value).map_err(|error| Fault::new(FaultKind::HostBug, error.to_string()))
}
