//! Conversion of errors of wasmtime and of guests to faults, by type and never by text.

use bulkhead_core::manifest::Budget;
use bulkhead_core::policy::{Fault, FaultKind};
use bulkhead_plugin::plain;
use wasmtime::component::ResourceTableError;
use wasmtime::{Error, PoolConcurrencyLimitError, Trap};

use crate::host::allowance::Exceeded;
use crate::host::bindings::bulkhead::policy::types::PolicyError;
use crate::host::wasi::Refusal;
use crate::limits::{HANDLES_MAX, Limits};

/// Maximum length of a guest's own error text, in characters.
const GUEST_ERROR_CHARS_MAX: usize = 1024;

/// Message of wasmtime, which has no type, about a call that returned before the guest dropped its borrowed inputs.
const BORROWED: &str = "borrow handles still remain at the end of the call";

/// Converts an error of wasmtime to a fault. `otherwise` is the kind for errors other than traps and limits. It
/// depends on the operation: denied during instantiation, a bad reply while a reply is read.
pub(crate) fn of_wasmtime(error: &Error, limits: &Limits, budget: &Budget, otherwise: FaultKind) -> Fault {
    let kind = match error.downcast_ref::<Trap>() {
        Some(Trap::OutOfFuel) => FaultKind::OutOfFuel,
        Some(Trap::Interrupt) => FaultKind::Deadline,
        Some(Trap::AllocationTooLarge) => FaultKind::Memory,
        None if let Some(exceeded) = error.downcast_ref::<Exceeded>() => of_exceeded(*exceeded),
        // A guest that is refused memory traps or gives up; the refusal is the cause.
        _ if limits.hit => FaultKind::Memory,
        Some(_) => FaultKind::Trap,
        None if let Some(refusal) = error.downcast_ref::<Refusal>() => match refusal {
            Refusal::Exit(_) => FaultKind::Trap,
            Refusal::Denied(_) => FaultKind::Denied,
        },
        None if error.is::<PoolConcurrencyLimitError>() => FaultKind::HostBusy,
        None if is_full(error) => FaultKind::Denied,
        // wasmtime validates every handle of a guest, so a handle missing from the table is a bug of the host.
        None if error.downcast_ref::<ResourceTableError>().is_some() => FaultKind::HostBug,
        None => otherwise,
    };
    let message = match kind {
        FaultKind::OutOfFuel => return out_of_fuel(budget),
        FaultKind::Deadline => return deadline(budget),
        FaultKind::Memory => format!("asked for more than {} bytes of memory", budget.memory_bytes),
        FaultKind::Denied if is_full(error) => {
            format!("held {HANDLES_MAX} handles of the host and asked for another; drop handles after use")
        }
        _ => advised(&error.root_cause().to_string()),
    };
    Fault::new(kind, message)
}

/// Returns the message of an error, with advice where its words do not help an author. The kind of the fault does not
/// depend on it.
fn advised(message: &str) -> String {
    if message == BORROWED {
        return "returned without dropping its borrowed inputs; the bindings or the plugin must drop every borrowed \
                handle (in C a function that ends with drop_borrow) before it returns"
            .to_owned();
    }
    plain(message, GUEST_ERROR_CHARS_MAX)
}

/// Returns true if the guest asked for a handle while the table was full.
fn is_full(error: &Error) -> bool {
    matches!(error.downcast_ref(), Some(ResourceTableError::Full))
}

fn of_exceeded(exceeded: Exceeded) -> FaultKind {
    match exceeded {
        Exceeded::Steps => FaultKind::OutOfFuel,
        Exceeded::Memory => FaultKind::Memory,
        Exceeded::Deadline => FaultKind::Deadline,
        Exceeded::Pointers(_) | Exceeded::PointerBytes(_) => FaultKind::Denied,
    }
}

/// Returns the fault of a call that used up its steps.
pub(crate) fn out_of_fuel(budget: &Budget) -> Fault {
    Fault::new(FaultKind::OutOfFuel, format!("used up its {} steps", budget.steps))
}

/// Returns the fault of a call that exceeded its deadline.
pub(crate) fn deadline(budget: &Budget) -> Fault {
    Fault::new(
        FaultKind::Deadline,
        format!("did not answer within {} ms", budget.wall_clock_ms),
    )
}

/// Converts a guest's own error to a fault.
pub(crate) fn of_guest(error: PolicyError) -> Fault {
    let (kind, message) = match error {
        PolicyError::Unsupported => (FaultKind::Unsupported, "the plugin does not handle this".to_owned()),
        PolicyError::InvalidConfig(message) => (FaultKind::GuestError, format!("invalid configuration: {message}")),
        PolicyError::Internal(message) => (FaultKind::GuestError, message),
    };
    Fault::new(kind, plain(&message, GUEST_ERROR_CHARS_MAX))
}
