//! Allocation of instance memory.

use wasmtime::{Config, Enabled, Engine, InstanceAllocationStrategy, PoolingAllocationConfig};

use crate::limits::{INSTANCES_MAX, MEMORIES_MAX, TABLE_ELEMENTS_MAX, TABLES_MAX};

/// Bytes of an instance's memory that stay resident in its slot: they are written anew instead of being returned to
/// the system and requested again. This is the memory cost of an idle engine's slots. It covers the whole memory of a
/// guest with the stack of the SDK's template (128 KiB), so that a fresh instance needs no page faults.
const MEMORY_RESIDENT_BYTES: usize = 256 << 10;
/// Bytes of an instance's tables that stay resident in its slot.
const TABLE_RESIDENT_BYTES: usize = 4 << 10;
/// Maximum size of wasmtime's own records about one instance, without memories and tables: a limit, not a
/// reservation.
const RECORD_BYTES_MAX: usize = 8 << 20;

/// Allocation of instance memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Allocation {
    /// From slots that are reserved when the engine starts: an instance costs microseconds. Requires address space,
    /// about 8 GiB for each concurrent instance, but almost no memory.
    Pooled,
    /// From the system, for each instance.
    OnDemand,
}

/// A started wasmtime and its effective allocation.
pub(crate) struct Started {
    pub(crate) engine: Engine,
    /// Effective allocation.
    pub(crate) allocation: Allocation,
    /// Reason why it differs from the requested one, if it does.
    pub(crate) problem: Option<String>,
}

/// Starts wasmtime. Falls back to allocation on demand if the slots cannot be reserved because the address space of
/// the process is limited.
pub(crate) fn start(config: &Config, wanted: Allocation, instances_max: u32) -> wasmtime::Result<Started> {
    let on_demand = |problem| {
        let engine = Engine::new(config)?;
        Ok(Started {
            engine,
            allocation: Allocation::OnDemand,
            problem,
        })
    };
    if wanted == Allocation::OnDemand {
        return on_demand(None);
    }
    let mut pooled = config.clone();
    pooled.allocation_strategy(InstanceAllocationStrategy::Pooling(slots(instances_max)));
    match Engine::new(&pooled) {
        Ok(engine) => Ok(Started {
            engine,
            allocation: Allocation::Pooled,
            problem: None,
        }),
        Err(error) => on_demand(Some(format!("no slots for {instances_max} instances: {error:#}"))),
    }
}

/// Returns a configuration with slots for `instances_max` components of maximum size. The limits of one component are
/// enforced elsewhere, with and without slots, so the limits here are never reached, and there is always a slot.
fn slots(instances_max: u32) -> PoolingAllocationConfig {
    let of_all = |each: usize| instances_max.saturating_mul(u32::try_from(each).unwrap_or(u32::MAX));
    let mut pool = PoolingAllocationConfig::new();
    pool.total_component_instances(instances_max)
        .total_core_instances(of_all(INSTANCES_MAX))
        .total_memories(of_all(MEMORIES_MAX))
        .total_tables(of_all(TABLES_MAX))
        .max_memories_per_module(MEMORIES_MAX as u32)
        .max_tables_per_module(TABLES_MAX as u32)
        .table_elements(TABLE_ELEMENTS_MAX)
        .max_component_instance_size(RECORD_BYTES_MAX)
        .max_core_instance_size(RECORD_BYTES_MAX)
        .max_unused_warm_slots(instances_max)
        .linear_memory_keep_resident(MEMORY_RESIDENT_BYTES)
        .table_keep_resident(TABLE_RESIDENT_BYTES)
        // The scan misses pages that were written and then swapped out: the next instance in the slot, perhaps of
        // another plugin, could read them (wasmtime pull request 14357). Without the scan, the resident bytes are
        // written anew and the rest is returned to the system, on every kernel.
        .pagemap_scan(Enabled::No);
    pool
}
