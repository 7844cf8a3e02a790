//! Execution of Lua plugins with Luau, including unmodified interpreter scripts of Karmada.
//!
//! A script is compiled once, when it is loaded. Every call gets new globals that contain only the libraries that
//! Karmada opens, runs the script's top level in them, and has a step budget, a deadline and a memory limit. The Lua
//! state is reused for later calls, which cannot detect it: everything that a script can change is new for each call.
//! Scripts have no access to files, processes, clocks, random sources, or variables of the host or of other scripts.
//!
//! Start reading at [`LuaEngine`] (loading), then `policy` (mapping of calls to functions and arguments), `machine`
//! (one state and one call in it), `pool` (reuse of states), `meter` (limits), `lazy` (objects as tables),
//! `library.luau` (globals of a script), `reply` (parsing of results).
//!
//! # Arguments and results
//!
//! Karmada's functions get the same arguments as in Karmada. The others get the same data as a component does, as
//! tables with the JSON names of the fields, and `now` in whole seconds since the Unix epoch. `reason` and `message`
//! are optional everywhere.
//!
//! | function | may return |
//! | --- | --- |
//! | `InterpretHealth(observedObj)` | a boolean, or `{health = "Healthy", "Unhealthy", "Unknown" or a boolean, reason, message}` |
//! | `ClusterTaint(cluster, now)` | a list of `{add = {key, effect, value}, reason, message}` and `{remove = {key, effect}, reason, message}` |
//! | `Filter(binding, clusters, now)` | a list as long as `clusters` of `true`, `false`, `"abstain"` or `{fit = boolean, reason, message}` |
//! | `Score(binding, clusters, now)` | a list as long as `clusters` of numbers from 0 to 100, truncated to integers |
//! | `EvictionCheck(binding, task, observed, now)` | `"release"`, `"hold"` or `"abstain"`, or `{verdict = …, reason, message, recheckAfterSeconds}` |
//! | `GetReplicas(obj)` | a number and, optionally, the requirements |
//! | `GetComponents(obj)` | a list of `{name, replicas, replicaRequirements}` or nil |
//! | `ReviseReplica(obj, desiredReplica)` | the object |
//! | `Retain(desiredObj, observedObj)` | the object |
//! | `ReflectStatus(observedObj)` | a table |
//! | `AggregateStatus(desiredObj, statusItems)` | the object |
//! | `GetDependencies(desiredObj)` | a list of `{apiVersion, kind, namespace, name, labelSelector}` or nil |
//!
//! A plugin's configuration, if it has any, is the global `config`.
//!
//! Syntax that Karmada accepts and Luau does not is rewritten before a script is compiled, see `dialect`. Syntax that
//! only Luau accepts is found by [`foreign()`].

mod culprit;
mod decode;
mod dialect;
mod edit;
mod encode;
mod engine;
mod fault;
mod foreign;
mod interpretation;
mod jumps;
mod kube;
mod lazy;
mod library;
mod machine;
mod mentioned;
mod meter;
mod names;
mod options;
mod policy;
mod pool;
mod position;
mod probe;
mod reply;
mod script;
mod syntax;
#[cfg(test)]
mod tests;
mod tokens;

pub use edit::Difference;
pub use encode::Conversions;
pub use engine::LuaEngine;
pub use foreign::{check_portable, foreign};
pub use names::always_nil;
pub use options::{EmptyItems, Options};
pub use probe::Probe;
pub use syntax::{SyntaxError, check_syntax};
