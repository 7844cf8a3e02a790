//! Client of Karmada's accurate scheduler estimators: one gRPC connection per member cluster
//! (Karmada: `pkg/estimator/client`).
//!
//! This crate only transports requests and responses. `bulkhead_core::decide::schedule::capacity` selects the
//! clusters to query, and interprets answers and failures.
//!
//! Start reading at [`EstimatorPool`], then `request` (conversion of a binding to a message), then [`endpoint`]
//! (addresses of estimators).

pub mod endpoint;
pub mod messages;
mod pool;
mod request;
mod security;

pub use pool::{ConnectError, EstimatorPool, EstimatorQuery};
pub use security::{Identity, Security, SecurityError};
