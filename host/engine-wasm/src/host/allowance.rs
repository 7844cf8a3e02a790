//! Budget of the host functions of one call.
//!
//! wasmtime meters the guest and the bytes that cross from it. Bytes that cross to it are metered here, before they are
//! copied: one step of the call's fuel for each byte, and a share of the memory limit for as long as the host holds
//! them. The deadline is checked with each charge, since epochs do not interrupt host code.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::bindings::bulkhead::policy::types::HealthState;
use crate::ticker::Ticker;

/// Bytes charged for a value besides its text: the size of the largest one that crosses.
pub(crate) const VALUE_BYTES: usize = 32;
/// Most pointers, keys and names in the arguments of one host function.
pub(crate) const POINTERS_MAX: usize = 4_096;
/// Most bytes of pointers, keys and names in the arguments of one host function.
pub(crate) const POINTER_BYTES_MAX: usize = 64 << 10;

/// A limit that a host function exceeded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Exceeded {
    /// The steps of the call.
    #[error("used up its steps in functions of the host")]
    Steps,
    /// The memory of the call.
    #[error("asked the host for more than its memory")]
    Memory,
    /// The deadline of the call.
    #[error("a function of the host ran past the deadline")]
    Deadline,
    /// [`POINTERS_MAX`].
    #[error("asked for {0} pointers in one call of the host, at most {POINTERS_MAX} are allowed")]
    Pointers(usize),
    /// [`POINTER_BYTES_MAX`].
    #[error("asked with {0} bytes of pointers in one call of the host, at most {POINTER_BYTES_MAX} are allowed")]
    PointerBytes(usize),
}

/// End of a call, in ticks of the engine's clock.
#[derive(Clone)]
pub(crate) struct Deadline {
    ticker: Arc<Ticker>,
    tick: u64,
}

impl Deadline {
    /// A deadline that many ticks from now.
    pub(crate) fn after(ticker: &Arc<Ticker>, ticks: u64) -> Self {
        Self { ticker: Arc::clone(ticker), tick: ticker.ticks().saturating_add(ticks) }
    }

    /// True once the deadline is over.
    pub(crate) fn is_over(&self) -> bool {
        self.ticker.ticks() >= self.tick
    }
}

/// Bytes that the host holds for the guest until this is dropped.
#[derive(Debug)]
pub(crate) struct Held {
    bytes: usize,
    total: Arc<AtomicUsize>,
}

impl Drop for Held {
    fn drop(&mut self) {
        self.total.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

/// Steps, memory and time that host functions may still spend.
#[derive(Default)]
pub(crate) struct Allowance {
    steps_left: u64,
    /// Spent, and not yet deducted from the fuel.
    steps_spent: u64,
    memory_bytes_max: usize,
    /// Memory of the guest when the current host function started.
    guest_bytes: usize,
    held_bytes: Arc<AtomicUsize>,
    /// Copied by the current host function.
    copied_bytes: usize,
    /// The largest sum of the three so far.
    bytes_max: usize,
    deadline: Option<Deadline>,
}

impl Allowance {
    /// Grants what one call may spend. Bytes that are held stay counted.
    pub(crate) fn grant(&mut self, steps: u64, memory_bytes_max: usize, deadline: Deadline) {
        let (held_bytes, deadline) = (Arc::clone(&self.held_bytes), Some(deadline));
        *self = Self { steps_left: steps, memory_bytes_max, held_bytes, deadline, ..Self::default() };
    }

    /// Counter of the bytes that the host holds for the guest.
    pub(crate) fn held_counter(&self) -> Arc<AtomicUsize> {
        Arc::clone(&self.held_bytes)
    }

    /// Starts a host function, while the guest uses that much memory.
    pub(crate) fn start(&mut self, guest_bytes: usize) {
        self.guest_bytes = guest_bytes;
        self.copied_bytes = 0;
    }

    /// Bytes that the host holds for the guest.
    pub(crate) fn held_bytes(&self) -> usize {
        self.held_bytes.load(Ordering::Relaxed)
    }

    /// The most memory of guest and host together that a host function has seen, in bytes.
    pub(crate) fn bytes_max(&self) -> usize {
        self.bytes_max
    }

    /// Spends steps, if there are enough and there is time.
    pub(crate) fn spend(&mut self, steps: usize) -> Result<(), Exceeded> {
        self.in_time()?;
        let steps = u64::try_from(steps).unwrap_or(u64::MAX);
        self.steps_left = self.steps_left.checked_sub(steps).ok_or(Exceeded::Steps)?;
        self.steps_spent += steps;
        Ok(())
    }

    /// Spends a step for each byte that the current host function is about to copy.
    pub(crate) fn charge(&mut self, bytes: usize) -> Result<(), Exceeded> {
        self.spend(bytes)?;
        self.copied_bytes = self.fitting(self.copied_bytes, bytes, self.held_bytes())?;
        Ok(())
    }

    /// Counts bytes as held until the result is dropped.
    pub(crate) fn hold(&mut self, bytes: usize) -> Result<Held, Exceeded> {
        self.fitting(self.held_bytes(), bytes, self.copied_bytes)?;
        self.held_bytes.fetch_add(bytes, Ordering::Relaxed);
        Ok(Held { bytes, total: Arc::clone(&self.held_bytes) })
    }

    /// The sum of two parts, if it fits beside another one and the memory of the guest.
    fn fitting(&mut self, part: usize, more: usize, other: usize) -> Result<usize, Exceeded> {
        let sum = part.checked_add(more).ok_or(Exceeded::Memory)?;
        let all = sum.saturating_add(other).saturating_add(self.guest_bytes);
        if all > self.memory_bytes_max {
            return Err(Exceeded::Memory);
        }
        self.bytes_max = self.bytes_max.max(all);
        Ok(sum)
    }

    /// Checks and charges the pointers, keys and names that a host function is given.
    pub(crate) fn asked(&mut self, pointers: &[&str]) -> Result<(), Exceeded> {
        if pointers.len() > POINTERS_MAX {
            return Err(Exceeded::Pointers(pointers.len()));
        }
        let bytes = pointers.iter().map(|pointer| pointer.len()).sum();
        self.spend(bytes)?;
        if bytes > POINTER_BYTES_MAX { Err(Exceeded::PointerBytes(bytes)) } else { Ok(()) }
    }

    /// Fails once the deadline is over.
    pub(crate) fn in_time(&self) -> Result<(), Exceeded> {
        if self.deadline.as_ref().is_some_and(Deadline::is_over) { Err(Exceeded::Deadline) } else { Ok(()) }
    }

    /// Deducts from the fuel that is left what host functions spent since the last time; absent if that is more.
    pub(crate) fn settle(&mut self, fuel: u64) -> Option<u64> {
        let left = fuel.checked_sub(std::mem::take(&mut self.steps_spent));
        self.steps_left = left.unwrap_or(0);
        left
    }
}

/// A borrowed value that a guest gets a copy of.
pub(crate) trait Copied {
    /// The copy.
    type Copy;

    /// The size of the copy.
    fn bytes(&self) -> usize;

    /// Makes the copy.
    fn copy(self) -> Self::Copy;
}

impl Allowance {
    /// Charges a value, then copies it.
    pub(crate) fn copy<T: Copied>(&mut self, value: T) -> Result<T::Copy, Exceeded> {
        self.charge(value.bytes())?;
        Ok(value.copy())
    }

    /// Charges each value before it is copied.
    pub(crate) fn copy_each<T: Copied>(&mut self, values: impl Iterator<Item = T>) -> Result<Vec<T::Copy>, Exceeded> {
        values.map(|value| self.copy(value)).collect()
    }

    /// Charges each value before it is copied, and each lookup that leads to one.
    pub(crate) fn look_up_each<T: Copied>(
        &mut self,
        lookup_steps: usize,
        values: impl Iterator<Item = T>,
    ) -> Result<Vec<T::Copy>, Exceeded> {
        values.map(|value| self.spend(lookup_steps).and_then(|()| self.copy(value))).collect()
    }
}

impl Copied for &str {
    type Copy = String;

    fn bytes(&self) -> usize {
        VALUE_BYTES + self.len()
    }

    fn copy(self) -> String {
        self.to_owned()
    }
}

impl<T: Copied> Copied for Option<T> {
    type Copy = Option<T::Copy>;

    fn bytes(&self) -> usize {
        self.as_ref().map_or(VALUE_BYTES, Copied::bytes)
    }

    fn copy(self) -> Option<T::Copy> {
        self.map(Copied::copy)
    }
}

/// Values of a fixed size.
macro_rules! plain {
    ($($plain:ty),*) => {
        $(impl Copied for $plain {
            type Copy = Self;

            fn bytes(&self) -> usize {
                VALUE_BYTES
            }

            fn copy(self) -> Self {
                self
            }
        })*
    };
}
plain!(bool, u32, i64, f64, HealthState);
