//! Server-side apply: ownership of fields and its consequences for writes (Kubernetes:
//! `sigs.k8s.io/structured-merge-diff/v6`).
//!
//! Start reading at [`ownership`], which has the rules. [`set`] holds sets of owned fields; [`merge`] compares and
//! merges objects.

mod merge;
mod ownership;
mod set;

pub(crate) use ownership::{Applied, Author, apply, created, updated};
