//! Execution of WebAssembly components as policy plugins, with wasmtime.
//!
//! A component is compiled once and gets a new instance for every call, so no state survives a call; every instance
//! is therefore configured before its first call, and instances of a large component start from a snapshot of that
//! state. If a plugin declares it and its operator allows it, one instance answers several calls. A component may import only the interfaces of `bulkhead:policy`: no clock, no
//! randomness, no files, no sockets. Fuel is the budget; the epoch is a backstop for work that fuel does not count.
//! Memory, stack and replies have limits.
//!
//! Instances use slots whose memory is reserved in advance, and calls wait for a free slot. Compiled code is cached
//! on disk if the operator configures a directory. Guests whose toolchain requires WASI get a closed implementation
//! without access to the system.
//!
//! Start reading at [`WasmEngine`] (loading), then `session` (one call), then `kinds` (one adapter per kind).

mod access;
mod bound;
mod cache;
mod checksum;
mod contract;
mod edit;
mod engine;
mod fault;
mod host;
mod kinds;
mod limits;
mod metadata;
mod origin;
mod outline;
mod policy;
mod pool;
mod samples;
mod session;
mod slots;
mod snapshot;
#[cfg(test)]
mod tests;
mod ticker;

pub use cache::{CacheOptions, CacheReport};
pub use contract::package;
pub use engine::{Options, StartError, WasmEngine};
pub use pool::Allocation;
