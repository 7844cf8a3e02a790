//! Where the memory of instances comes from.

use wasmtime::{Config, Enabled, Engine, InstanceAllocationStrategy, PoolingAllocationConfig};

use crate::limits::{INSTANCES_MAX, MEMORIES_MAX, TABLE_ELEMENTS_MAX, TABLES_MAX};

/// Bytes of an instance's memory that stay with its slot when the instance is gone: they are set to zero instead of
/// being given back to the system and asked for again. This is what the slots of an idle engine cost.
const MEMORY_RESIDENT_BYTES: usize = 48 << 10;
/// The same for its tables.
const TABLE_RESIDENT_BYTES: usize = 4 << 10;
/// Most bytes of wasmtime's own records about one instance, without memories and tables: a limit, not a reservation.
const RECORD_BYTES_MAX: usize = 8 << 20;

/// Where the memory of instances comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Allocation {
    /// From slots that are reserved when the engine starts: an instance costs microseconds. Takes address space, about
    /// 8 GiB for each instance that may exist at a time, and next to no memory.
    Pooled,
    /// From the system, for each instance.
    OnDemand,
}

/// wasmtime, with what became of the wish for slots.
pub(crate) struct Started {
    pub(crate) engine: Engine,
    /// What is in force.
    pub(crate) allocation: Allocation,
    /// Why it is not what was asked for, if so.
    pub(crate) problem: Option<String>,
}

/// Starts wasmtime. Slots that cannot be reserved, because the address space of the process is limited, are done
/// without.
pub(crate) fn start(config: &Config, wanted: Allocation, instances_max: u32) -> wasmtime::Result<Started> {
    let on_demand = |problem| {
        let engine = Engine::new(config)?;
        Ok(Started { engine, allocation: Allocation::OnDemand, problem })
    };
    if wanted == Allocation::OnDemand {
        return on_demand(None);
    }
    let mut pooled = config.clone();
    pooled.allocation_strategy(InstanceAllocationStrategy::Pooling(slots(instances_max)));
    match Engine::new(&pooled) {
        Ok(engine) => Ok(Started { engine, allocation: Allocation::Pooled, problem: None }),
        Err(error) => on_demand(Some(format!("no slots for {instances_max} instances: {error:#}"))),
    }
}

/// Slots for that many components with as much as each may have. What one component may have is limited elsewhere, with
/// and without slots, so no limit here is ever the one that is met, and no slot is ever missing.
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
        // The scan overlooks pages that were written and then swapped out: the next instance in the slot, perhaps of
        // another plugin, would read them (wasmtime pull request 14357). Without it the bytes above are reset and the
        // rest is given back, on every kernel.
        .pagemap_scan(Enabled::No);
    pool
}
