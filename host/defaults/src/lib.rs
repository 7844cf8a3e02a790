//! Parts of a control plane that are the same in a simulation and in a server: the default policies, and admission in
//! process.

pub mod admission;
pub mod registry;
