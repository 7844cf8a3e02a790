//! Client of Karmada's accurate scheduler estimators: one gRPC connection per member cluster
//! (Karmada: `pkg/estimator/client`).
//!
//! It carries questions and answers and decides nothing: which clusters are asked, and what an answer or a failure
//! means, is in `bulkhead_core::decide::schedule::capacity`.
//!
//! Start reading at [`EstimatorPool`], then `request` (from a binding to a message), [`endpoint`] (where the estimator
//! of a cluster is).

pub mod endpoint;
pub mod messages;
mod pool;
mod request;
mod security;

pub use pool::{ConnectError, EstimatorPool, Question};
pub use security::{Identity, Security, SecurityError};
