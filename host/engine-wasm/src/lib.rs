//! Runs policy plugins that are WebAssembly components, with wasmtime.
//!
//! A component is compiled once and gets a fresh instance for every call, so nothing survives a call; because of that
//! every instance is handed its configuration before it is asked. A plugin that declares it and whose operator allows it
//! answers several calls with one instance. It may import the interfaces of `bulkhead:policy` and
//! nothing else: no clock, no randomness, no files, no sockets. Fuel is the budget; the epoch is a backstop for what
//! fuel does not count; memory, stack and replies have limits.
//!
//! Instances have slots whose memory is reserved beforehand, and calls wait for one. Compiled code is kept on disk if
//! the operator names a folder. Guests whose toolchain insists on WASI get one that leads nowhere.
//!
//! Start reading at [`WasmEngine`] (loading), then `session` (one call), then `kinds` (one adapter per kind).

mod bindings;
mod bound;
mod cache;
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
mod pool;
mod session;
mod slots;
#[cfg(test)]
mod tests;
mod ticker;
mod wasi;

pub use cache::{CacheOptions, CacheReport};
pub use engine::{Options, StartError, WasmEngine};
pub use log::{Level, LogSink};
pub use pool::Allocation;
