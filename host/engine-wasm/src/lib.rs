//! Runs policy plugins that are WebAssembly components, with wasmtime.
//!
//! A component is compiled once and gets a fresh instance for every call, so nothing survives a call; because of that
//! every instance is handed its configuration before it is asked. It may import the interfaces of `bulkhead:policy` and
//! nothing else: no clock, no randomness, no files, no sockets. Fuel is the budget; the epoch is a backstop for what
//! fuel does not count; memory, stack and replies have limits.
//!
//! Compiled code is not kept on disk, instances are not pooled, and there is no WASI for guests whose toolchain insists
//! on it.
//!
//! Start reading at [`WasmEngine`] (loading), then `session` (one call), then `kinds` (one adapter per kind).

mod bindings;
mod contract;
mod edit;
mod engine;
mod fault;
mod host;
mod kinds;
mod limits;
mod log;
mod metadata;
mod outline;
mod policy;
mod session;
#[cfg(test)]
mod tests;
mod ticker;

pub use engine::{Options, StartError, WasmEngine};
pub use log::{Level, LogSink};
