//! Conflicts with other clients, which the API server detects.

use bulkhead_runtime::controller::is_conflict;

/// Returns the end of a message about a failed write: advice after a conflict, `otherwise` after another error.
pub(crate) fn advice(error: &kube::Error, otherwise: &'static str) -> &'static str {
    if is_conflict(error) {
        "; another client wrote it meanwhile: run the same command again"
    } else {
        otherwise
    }
}
