//! Limits on the resources of an instance.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use wasmtime::{ResourceLimiter, Result};

/// Maximum number of table elements of one plugin, over all its tables; far more than the number of functions of any
/// plugin.
pub(crate) const TABLE_ELEMENTS_MAX: usize = 100_000;
/// Maximum number of core instances of one plugin. A component from wit-bindgen has four: the plugin, and adapters
/// for its imports. One in Python has 14, and a snapshot adds two.
pub(crate) const INSTANCES_MAX: usize = 20;
/// Maximum number of memories of one plugin: its own, and those of runtimes and adapters that toolchains compose with
/// it. QuickJS with stubs in place of WASI has three. Their bytes count together.
pub(crate) const MEMORIES_MAX: usize = 4;
/// Maximum number of tables of one plugin.
pub(crate) const TABLES_MAX: usize = 16;
/// Maximum number of handles of a guest. The objects behind them use memory of the host, which no other limit counts.
pub(crate) const HANDLES_MAX: usize = 1_024;

/// Limits of memory and tables, each over all of them. Records that a limit was hit: the guest itself sees only a
/// failed allocation.
#[derive(Debug)]
pub(crate) struct Limits {
    memory_bytes_max: usize,
    memory_bytes: usize,
    /// Bytes that the host holds for the guest. They count towards the same limit.
    held_bytes: Arc<AtomicUsize>,
    table_elements: usize,
    /// True if an allocation of the plugin was refused.
    pub(crate) hit: bool,
    /// False while the host itself uses memories of the instance: their growth is neither limited nor counted.
    pub(crate) is_counting: bool,
}

impl Limits {
    pub(crate) fn new(memory_bytes_max: usize, held_bytes: Arc<AtomicUsize>) -> Self {
        Self {
            memory_bytes_max,
            memory_bytes: 0,
            held_bytes,
            table_elements: 0,
            hit: false,
            is_counting: true,
        }
    }

    /// Returns the current size of all its memories in bytes. Memories do not shrink.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.memory_bytes
    }
}

/// Returns the sum after the growth of one part; `None` if the sum would exceed the limit.
fn grown(sum: usize, (current, desired): (usize, usize), max: usize) -> Option<usize> {
    sum.checked_add(desired.saturating_sub(current))
        .filter(|grown| *grown <= max)
}

impl ResourceLimiter for Limits {
    fn memory_growing(&mut self, current: usize, desired: usize, _maximum: Option<usize>) -> Result<bool> {
        if !self.is_counting {
            return Ok(true);
        }
        let bytes_max = self
            .memory_bytes_max
            .saturating_sub(self.held_bytes.load(Ordering::Relaxed));
        let sum = grown(self.memory_bytes, (current, desired), bytes_max);
        self.memory_bytes = sum.unwrap_or(self.memory_bytes);
        self.hit |= sum.is_none();
        Ok(sum.is_some())
    }

    fn table_growing(&mut self, current: usize, desired: usize, _maximum: Option<usize>) -> Result<bool> {
        let sum = grown(self.table_elements, (current, desired), TABLE_ELEMENTS_MAX);
        self.table_elements = sum.unwrap_or(self.table_elements);
        self.hit |= sum.is_none();
        Ok(sum.is_some())
    }

    fn instances(&self) -> usize {
        INSTANCES_MAX
    }

    fn memories(&self) -> usize {
        MEMORIES_MAX
    }

    fn tables(&self) -> usize {
        TABLES_MAX
    }
}
