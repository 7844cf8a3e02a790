//! From what wasmtime and the guest say to faults, by type and never by text.

use bulkhead_core::policy::{Fault, FaultKind};
use bulkhead_plugin::Budget;
use wasmtime::component::ResourceTableError;
use wasmtime::{Error, PoolConcurrencyLimitError, Trap};

use crate::bindings::bulkhead::policy::types::PolicyError;
use crate::limits::Limits;
use crate::log::plain;
use crate::wasi::Refusal;

/// Longest text of a guest's own error, in characters.
const GUEST_ERROR_CHARS_MAX: usize = 1024;

/// The fault that an error of wasmtime amounts to. `otherwise` is for what is neither a trap nor a limit, which depends
/// on what was being done: denied while instantiating, a bad reply while a reply crosses.
pub(crate) fn of_wasmtime(error: &Error, limits: &Limits, budget: &Budget, otherwise: FaultKind) -> Fault {
    let kind = match error.downcast_ref::<Trap>() {
        Some(Trap::OutOfFuel) => FaultKind::OutOfFuel,
        Some(Trap::Interrupt) => FaultKind::Deadline,
        Some(Trap::AllocationTooLarge) => FaultKind::Memory,
        // A guest that is refused memory traps or gives up; the refusal is the cause.
        _ if limits.hit => FaultKind::Memory,
        Some(_) => FaultKind::Trap,
        None if let Some(refusal) = error.downcast_ref::<Refusal>() => match refusal {
            Refusal::Exit(_) => FaultKind::Trap,
            Refusal::Denied(_) => FaultKind::Denied,
        },
        None if error.is::<PoolConcurrencyLimitError>() => FaultKind::HostBusy,
        None if matches!(error.downcast_ref(), Some(ResourceTableError::Full)) => FaultKind::Memory,
        // wasmtime checks every handle of a guest, so one that is not in the table is our own mistake.
        None if error.downcast_ref::<ResourceTableError>().is_some() => FaultKind::HostBug,
        None => otherwise,
    };
    let message = match kind {
        FaultKind::OutOfFuel => format!("used up its {} steps", budget.steps),
        FaultKind::Deadline => format!("did not answer within {} ms", budget.wall_clock_ms),
        FaultKind::Memory => format!("asked for more than {} bytes of memory", budget.memory_bytes),
        _ => plain(&error.root_cause().to_string(), GUEST_ERROR_CHARS_MAX),
    };
    Fault::new(kind, message)
}

/// The fault that a guest's own error amounts to.
pub(crate) fn of_guest(error: PolicyError) -> Fault {
    let (kind, message) = match error {
        PolicyError::Unsupported => (FaultKind::Unsupported, "the plugin does not handle this".to_owned()),
        PolicyError::InvalidConfig(message) => (FaultKind::GuestError, format!("invalid configuration: {message}")),
        PolicyError::Internal(message) => (FaultKind::GuestError, message),
    };
    Fault::new(kind, plain(&message, GUEST_ERROR_CHARS_MAX))
}
