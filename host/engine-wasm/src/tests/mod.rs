//! Hand-written components that no toolchain would emit. The tests of Rust guests are in `tests/engine`.

mod arguments;
mod guest;
mod hostile;
mod load;
mod log;
mod places;
mod reuse;
mod snapshot;
