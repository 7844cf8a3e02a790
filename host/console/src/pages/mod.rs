//! Pages of the console.

pub mod binding;
pub mod bindings;
pub mod decision;
mod explanation;
pub mod map;
pub mod plugins;
pub mod problem;
mod rows;
pub mod timeline;
mod waits;
pub mod what_if;
