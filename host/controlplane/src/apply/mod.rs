//! Server-side apply: who owns which field, and what that means for a write
//! (Kubernetes: `sigs.k8s.io/structured-merge-diff/v6`).
//!
//! Start reading at [`ownership`], which has the rules; [`set`] is what is owned, [`merge`] how objects are compared and
//! put together.

mod merge;
mod ownership;
mod set;

pub(crate) use ownership::{Applied, Author, apply, created, updated};
