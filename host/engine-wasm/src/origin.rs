//! State of an instance that it gets back after each call.
//!
//! The functions of [`access`](crate::access) copy the globals back, and the pages of the memories that were written
//! since they were mapped. The memories of an instance are private mappings of the snapshot, so the system knows these
//! pages. It is asked only if the thread had page faults during the call: the first write to a page is one. What else an
//! instance could keep does not exist: snapshots are not made of components that change tables or hold references.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt as _;

use wasmtime::component::{Component, ComponentExportIndex, Instance, TypedFunc, WasmList};
use wasmtime::{AsContextMut as _, Store};

use crate::access::{ADDED, MEMORY, RESTORE, SAVE};
use crate::checksum::Checksum;
use crate::host::Host;

/// Maximum size of the pages that are copied back, in bytes. With more of them, a new instance costs less.
const WRITTEN_BYTES_MAX: usize = 4 << 20;
/// Size of a page of the system, in bytes. Linear memories have a multiple of it.
const PAGE_BYTES: usize = 4 << 10;
/// Bits of an entry of `/proc/self/pagemap`.
const PRESENT: u64 = 1 << 63;
const SWAPPED: u64 = 1 << 62;
const OF_FILE: u64 = 1 << 61;
/// Size of an entry, in bytes.
const ENTRY_BYTES: usize = size_of::<u64>();

/// Indexes of the functions in a compiled component.
pub(crate) struct Access {
    save: ComponentExportIndex,
    restore: ComponentExportIndex,
    /// Function that returns a memory, and function that copies a part of it back.
    memories: Vec<[ComponentExportIndex; 2]>,
    pages: File,
    /// True if the first write to a page is always a page fault.
    first_writes_fault: bool,
}

impl Access {
    /// Finds the functions. `None` in a component without them, and on a system that does not tell which pages were
    /// written.
    pub(crate) fn of(component: &Component) -> Option<Self> {
        let added = component.get_export_index(None, ADDED)?;
        let function = |name: &str| component.get_export_index(Some(&added), name);
        let of_memory = |memory: u32| {
            let read = function(&format!("{MEMORY}{memory}"))?;
            Some([read, function(&format!("{RESTORE}{memory}"))?])
        };
        Some(Self {
            save: function(SAVE)?,
            restore: function(RESTORE)?,
            memories: (0..).map_while(of_memory).collect(),
            pages: File::open("/proc/self/pagemap").ok()?,
            first_writes_fault: first_writes_fault(),
        })
    }
}

/// True if the first write to a page is always a page fault of the writing thread: unless the system merges pages to
/// huge ones by itself, pages that were never mapped among them.
fn first_writes_fault() -> bool {
    let huge = std::fs::read_to_string("/sys/kernel/mm/transparent_hugepage/enabled");
    huge.is_ok_and(|modes| !modes.contains("[always]"))
}

/// State of an instance to return to.
pub(crate) struct Origin {
    restore: TypedFunc<(), ()>,
    memories: Vec<Memory>,
    /// Page faults of the thread when its present call began. `None` if they are unknown.
    faults: Option<i64>,
}

/// Functions of a memory.
struct Memory {
    /// Returns the memory as a list at its start, without a copy.
    read: TypedFunc<(), (WasmList<u8>,)>,
    /// Copies a part back.
    restore: TypedFunc<(u32, u32), ()>,
    /// Parts that were written up to the end of the last call.
    written: Vec<Range<usize>>,
}

impl Origin {
    /// Saves the state of a new instance. The store has no limits.
    pub(crate) fn of(access: &Access, store: &mut Store<Host>, instance: &Instance) -> Option<Self> {
        let save: TypedFunc<(), ()> = instance.get_typed_func(&mut *store, access.save).ok()?;
        save.call(&mut *store, ()).ok()?;
        let restore = instance.get_typed_func(&mut *store, access.restore).ok()?;
        let mut memories = Vec::new();
        for [read, restore] in &access.memories {
            memories.push(Memory {
                read: instance.get_typed_func(&mut *store, *read).ok()?,
                restore: instance.get_typed_func(&mut *store, *restore).ok()?,
                written: Vec::new(),
            });
        }
        Some(Self {
            restore,
            memories,
            faults: None,
        })
    }

    /// Notes that a call begins on this thread, in an instance that got its state back.
    pub(crate) fn begin(&mut self) {
        self.faults = page_faults();
    }

    /// Gives the instance its state back. `None` if that failed: the instance must not answer another call. Its memories
    /// must not have grown, and the store has no limits.
    pub(crate) fn restore(&mut self, access: &Access, store: &mut Store<Host>) -> Option<()> {
        let may_have_new = !access.first_writes_fault || self.faults.is_none() || self.faults != page_faults();
        for memory in &mut self.memories {
            if may_have_new {
                let (list,) = memory.read.call(&mut *store, ()).ok()?;
                memory.written = written(&access.pages, list.as_le_slice(store.as_context_mut())).ok()?;
            }
            let bytes: usize = memory.written.iter().map(Range::len).sum();
            if bytes > WRITTEN_BYTES_MAX {
                return None;
            }
            for part in &memory.written {
                let (offset, length) = (u32::try_from(part.start).ok()?, u32::try_from(part.len()).ok()?);
                memory.restore.call(&mut *store, (offset, length)).ok()?;
            }
        }
        self.restore.call(&mut *store, ()).ok()
    }

    /// Returns the checksums of the memories.
    pub(crate) fn memories(&self, store: &mut Store<Host>) -> Option<Vec<Checksum>> {
        let mut checksums = Vec::new();
        for memory in &self.memories {
            let (list,) = memory.read.call(&mut *store, ()).ok()?;
            checksums.push(Checksum::of(list.as_le_slice(store.as_context_mut())));
        }
        Some(checksums)
    }
}

/// Returns the number of page faults of this thread.
#[cfg(target_os = "linux")]
fn page_faults() -> Option<i64> {
    use nix::sys::resource::{UsageWho, getrusage};

    let usage = getrusage(UsageWho::RUSAGE_THREAD).ok()?;
    usage.minor_page_faults().checked_add(usage.major_page_faults())
}

#[cfg(not(target_os = "linux"))]
fn page_faults() -> Option<i64> {
    None
}

/// Returns the parts of a memory that were written since it was mapped, in bytes from its start. A page that was swapped
/// out counts as written.
fn written(pages: &File, memory: &[u8]) -> io::Result<Vec<Range<usize>>> {
    let mut entries = vec![0; memory.len() / PAGE_BYTES * ENTRY_BYTES];
    let first = memory.as_ptr().addr() / PAGE_BYTES * ENTRY_BYTES;
    pages.read_exact_at(&mut entries, first as u64)?;
    let mut found: Vec<Range<usize>> = Vec::new();
    let (entries, _) = entries.as_chunks::<ENTRY_BYTES>();
    for (start, entry) in (0..).step_by(PAGE_BYTES).zip(entries) {
        let entry = u64::from_ne_bytes(*entry);
        let is_written = entry & SWAPPED != 0 || entry & (PRESENT | OF_FILE) == PRESENT;
        if !is_written {
            continue;
        }
        match found.last_mut().filter(|last| last.end == start) {
            Some(last) => last.end += PAGE_BYTES,
            None => found.push(start..start + PAGE_BYTES),
        }
    }
    Ok(found)
}
