//! Runs policy plugins that are WebAssembly components, with wasmtime.
//!
//! A component is compiled once and gets a fresh instance for every call, so nothing survives a call. It may import
//! the interfaces of `bulkhead:policy` and nothing else: no clock, no randomness, no files, no sockets. Fuel is the
//! budget; the epoch is a backstop for what fuel does not count; memory, stack and replies have limits.
//!
//! Compiled code is not kept on disk yet, and there is no WASI for guests whose toolchain insists on it.
//!
//! Start reading at [`WasmEngine`], then `policy` (one call), then `answers` (from WIT values to replies).

mod answers;
mod bindings;
mod engine;
mod host;
mod policy;
mod ticker;

pub use engine::{LogSink, Options, StartError, WasmEngine};
