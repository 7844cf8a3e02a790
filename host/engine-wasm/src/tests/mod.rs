//! Hand-written components: what no toolchain would emit, and what must be said about it. What a Rust guest can do is
//! in `tests/engine.rs`.

mod arguments;
mod guest;
mod hostile;
mod load;
mod log;
mod places;
mod reuse;
