//! Budget of the host functions of one call.
//!
//! wasmtime meters the guest and the bytes copied from it. Bytes copied to the guest are metered here before the
//! copy: one step of the call's fuel for each byte, and a share of the memory limit for as long as the host holds
//! them. The deadline is checked with each charge, since epochs do not interrupt host code.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::ticker::Ticker;

/// Bytes charged for a value in addition to its text: the size of the largest value passed to a guest.
pub(crate) const VALUE_BYTES: usize = 32;
/// Maximum number of pointers, keys and names in the arguments of one host function.
pub(crate) const POINTERS_MAX: usize = 4_096;
/// Maximum total size of pointers, keys and names in the arguments of one host function, in bytes.
pub(crate) const POINTER_BYTES_MAX: usize = 64 << 10;

/// Limit exceeded by a host function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Exceeded {
    /// Steps of the call.
    #[error("used up its steps in functions of the host")]
    Steps,
    /// Memory of the call.
    #[error("asked the host for more than its memory")]
    Memory,
    /// Deadline of the call.
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
    /// Returns a deadline `ticks` ticks from now.
    pub(crate) fn after(ticker: &Arc<Ticker>, ticks: u64) -> Self {
        Self {
            ticker: Arc::clone(ticker),
            tick: ticker.ticks().saturating_add(ticks),
        }
    }

    /// Returns true if the deadline is over.
    pub(crate) fn is_over(&self) -> bool {
        self.ticker.ticks() >= self.tick
    }
}

/// Bytes that the host holds for the guest until this value is dropped.
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

/// Remaining steps, memory and time of host functions.
#[derive(Default)]
pub(crate) struct Allowance {
    steps_left: u64,
    /// Steps spent but not yet deducted from the fuel.
    steps_spent: u64,
    memory_bytes_max: usize,
    /// Memory of the guest at the start of the current host function.
    guest_bytes: usize,
    held_bytes: Arc<AtomicUsize>,
    /// Bytes copied by the current host function.
    copied_bytes: usize,
    /// Maximum sum of guest, held and copied bytes so far.
    bytes_max: usize,
    deadline: Option<Deadline>,
}

impl Allowance {
    /// Grants the budget of one call. Held bytes stay counted.
    pub(crate) fn grant(&mut self, steps: u64, memory_bytes_max: usize, deadline: Deadline) {
        let (held_bytes, deadline) = (Arc::clone(&self.held_bytes), Some(deadline));
        *self = Self {
            steps_left: steps,
            memory_bytes_max,
            held_bytes,
            deadline,
            ..Self::default()
        };
    }

    /// Returns the counter of the bytes that the host holds for the guest.
    pub(crate) fn held_counter(&self) -> Arc<AtomicUsize> {
        Arc::clone(&self.held_bytes)
    }

    /// Starts a host function. `guest_bytes` is the current memory of the guest.
    pub(crate) fn start(&mut self, guest_bytes: usize) {
        self.guest_bytes = guest_bytes;
        self.copied_bytes = 0;
    }

    /// Returns the bytes that the host holds for the guest.
    pub(crate) fn held_bytes(&self) -> usize {
        self.held_bytes.load(Ordering::Relaxed)
    }

    /// Returns the maximum memory of guest and host together seen by a host function, in bytes.
    pub(crate) fn bytes_max(&self) -> usize {
        self.bytes_max
    }

    /// Spends steps. Returns an error if there are too few or the deadline is over.
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
        Ok(Held {
            bytes,
            total: Arc::clone(&self.held_bytes),
        })
    }

    /// Adds two parts. Returns an error if the sum, another part and the guest's memory exceed the limit.
    fn fitting(&mut self, part: usize, more: usize, other: usize) -> Result<usize, Exceeded> {
        let sum = part.checked_add(more).ok_or(Exceeded::Memory)?;
        let all = sum.saturating_add(other).saturating_add(self.guest_bytes);
        if all > self.memory_bytes_max {
            return Err(Exceeded::Memory);
        }
        self.bytes_max = self.bytes_max.max(all);
        Ok(sum)
    }

    /// Checks and charges the pointers, keys and names in a host function's arguments.
    pub(crate) fn asked(&mut self, pointers: &[&str]) -> Result<(), Exceeded> {
        if pointers.len() > POINTERS_MAX {
            return Err(Exceeded::Pointers(pointers.len()));
        }
        let bytes = pointers.iter().map(|pointer| pointer.len()).sum();
        self.spend(bytes)?;
        if bytes > POINTER_BYTES_MAX {
            Err(Exceeded::PointerBytes(bytes))
        } else {
            Ok(())
        }
    }

    /// Returns an error if the deadline is over.
    pub(crate) fn in_time(&self) -> Result<(), Exceeded> {
        if self.deadline.as_ref().is_some_and(Deadline::is_over) {
            Err(Exceeded::Deadline)
        } else {
            Ok(())
        }
    }

    /// Deducts the steps spent by host functions since the last time from the remaining fuel; `None` if they exceed
    /// it.
    pub(crate) fn settle(&mut self, fuel: u64) -> Option<u64> {
        let remaining = fuel.checked_sub(std::mem::take(&mut self.steps_spent));
        self.steps_left = remaining.unwrap_or(0);
        remaining
    }
}

/// A borrowed value of which a guest gets a copy.
pub(crate) trait Copied {
    /// Type of the copy.
    type Copy;

    /// Returns the size of the copy in bytes.
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

    /// Copies values, each charged before its copy.
    pub(crate) fn copy_each<T: Copied>(&mut self, values: impl Iterator<Item = T>) -> Result<Vec<T::Copy>, Exceeded> {
        values.map(|value| self.copy(value)).collect()
    }

    /// Charges all values, then copies them.
    pub(crate) fn copy_column<T: Plain>(
        &mut self,
        values: impl ExactSizeIterator<Item = T>,
    ) -> Result<Vec<T>, Exceeded> {
        self.charge(values.len().saturating_mul(VALUE_BYTES))?;
        Ok(values.collect())
    }

    /// Copies values, each charged before its copy together with its lookup.
    pub(crate) fn look_up_each<T: Copied>(
        &mut self,
        lookup_steps: usize,
        values: impl Iterator<Item = T>,
    ) -> Result<Vec<T::Copy>, Exceeded> {
        values
            .map(|value| self.spend(lookup_steps).and_then(|()| self.copy(value)))
            .collect()
    }
}

/// A value of a fixed size, [`VALUE_BYTES`].
pub(crate) trait Plain: Copied<Copy = Self> + Sized {}

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

/// Implements `Copied` for types of a fixed size.
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
        }

        impl Plain for $plain {})*
    };
}
plain!(bool, u32, i64, f64);
