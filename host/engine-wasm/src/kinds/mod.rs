//! One adapter per kind: passes the call's input as handles and converts the guest's verdict to a reply.

pub(crate) mod cluster_taint;
pub(crate) mod eviction_check;
pub(crate) mod filter;
pub(crate) mod health;
pub(crate) mod interpreter;
pub(crate) mod score;

use bulkhead_core::call::Reason;

/// Maximum number of edits in one reply.
const EDITS_MAX: usize = 1_024;
/// Maximum length of a message about a reply, in characters.
const MESSAGE_CHARS_MAX: usize = 1_024;

use crate::host::bindings::bulkhead::policy::types;

fn reason(reason: types::Reason) -> Reason {
    Reason {
        code: reason.code,
        message: reason.message,
    }
}
