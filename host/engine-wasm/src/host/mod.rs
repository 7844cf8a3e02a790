//! Host side of the interfaces that a guest may import, one file each.
//!
//! Inputs stay with the host and are lent as handles. A getter copies only the requested values. A whole document is
//! made only when a guest asks for it, once for all handles of it. Each copy is charged to the call before it is
//! made.

pub(crate) mod allowance;
mod binding;
pub(crate) mod bindings;
mod cluster;
mod clusters;
mod document;
mod lent;
mod observations;
pub(crate) mod pointer;
mod trees;
pub(crate) mod wasi;

use bulkhead_core::policy::PolicyId;
use bulkhead_plugin::{Level, Lines, LogSink};
use wasmtime::Result;
use wasmtime::component::ResourceTable;

#[expect(unreachable_pub, reason = "the generated bindings re-export them")]
pub use self::lent::{Candidates, Document, LentBinding, LentCluster, LentTask, Reports};

use self::allowance::{Allowance, Exceeded};
use self::bindings::bulkhead::policy::{context, log, types};
pub(crate) use self::document::QUANTITY_BYTES_MAX;
use self::trees::Trees;
use self::wasi::{Console, RandomNumbers};
use crate::limits::Limits;

/// Context of a call that a guest can read.
#[derive(Clone, Debug, Default)]
pub(crate) struct About {
    /// Time of the call, in milliseconds since the Unix epoch.
    pub(crate) now_ms: i64,
    /// Seed; the same for the same call.
    pub(crate) seed: u64,
    /// Name that the operator gave the plugin.
    pub(crate) plugin_name: String,
}

/// State of one call.
pub(crate) struct Host {
    pub(crate) table: ResourceTable,
    pub(crate) limits: Limits,
    /// Budget of the host functions.
    pub(crate) allowance: Allowance,
    /// Documents made during this call.
    trees: Trees,
    pub(crate) lines: Lines,
    pub(crate) about: About,
    /// Unfinished lines written by a guest of WASI.
    pub(crate) console: Console,
    /// Random numbers for guests of WASI.
    pub(crate) random: RandomNumbers,
    /// True if the guest has read the time or the seed of the call.
    has_read_call: bool,
    /// True if the guest has got a handle of WASI during this call.
    has_got_handle: bool,
}

impl Host {
    /// Creates the host state for one call.
    pub(crate) fn new(memory_bytes_max: usize, about: About) -> Self {
        let random = RandomNumbers::new(about.seed);
        let allowance = Allowance::default();
        let limits = Limits::new(memory_bytes_max, allowance.held_counter());
        let (table, trees) = (ResourceTable::new(), Trees::default());
        Self {
            table,
            limits,
            allowance,
            trees,
            lines: Lines::default(),
            about,
            console: Console::default(),
            random,
            has_read_call: false,
            has_got_handle: false,
        }
    }

    /// Returns the context of the call, for a guest that reads its time or its seed.
    pub(crate) fn of_call(&mut self) -> &About {
        self.has_read_call = true;
        &self.about
    }

    /// Notes that the guest gets a handle of WASI.
    pub(crate) fn note_handle(&mut self) {
        self.has_got_handle = true;
    }

    /// True if the guest keeps handles of other things than its inputs. Those of WASI do not count.
    pub(crate) fn keeps_handles(&mut self, inputs: usize) -> bool {
        self.table.iter_mut().count() != inputs
    }

    /// True if the guest may have handles that its memory does not show: a snapshot would not have them.
    pub(crate) fn has_handles(&mut self, inputs: usize) -> bool {
        self.has_got_handle || self.keeps_handles(inputs)
    }

    /// True if the state of the guest may depend on the call. Random numbers and the monotonic clock do not count:
    /// runtimes read them for hash tables and for their own statistics, and neither has a meaning outside of the guest.
    pub(crate) fn depends_on_call(&mut self) -> bool {
        self.has_read_call || self.has_handles(0)
    }

    /// Starts a host function with these pointers, keys and names as arguments.
    fn asked(&mut self, pointers: &[&str]) -> Result<(), Exceeded> {
        self.allowance.start(self.limits.memory_bytes());
        self.allowance.asked(pointers)
    }

    /// Starts a host function and charges its arguments or results.
    pub(crate) fn charge(&mut self, bytes: usize) -> Result<(), Exceeded> {
        self.allowance.start(self.limits.memory_bytes());
        self.allowance.charge(bytes)
    }

    /// Sends all log lines and console output to the sink.
    pub(crate) fn flush(&mut self, sink: Option<&LogSink>, id: &PolicyId) {
        self.console.finish(&mut self.lines);
        self.lines.flush(sink, id);
    }
}

impl Host {
    /// Drops the inputs of a call and the documents made from them.
    pub(crate) fn clear(&mut self) {
        self.table = ResourceTable::new();
        self.trees = Trees::default();
    }

    /// Resets the state of earlier calls. The memory of the instance stays counted.
    pub(crate) fn renew(&mut self, about: About) {
        self.clear();
        self.limits.hit = false;
        self.lines = Lines::default();
        self.console = Console::default();
        self.random = RandomNumbers::new(about.seed);
        self.about = about;
        self.has_read_call = false;
        self.has_got_handle = false;
    }
}

impl types::Host for Host {}

impl context::Host for Host {
    fn now_ms(&mut self) -> Result<i64> {
        Ok(self.of_call().now_ms)
    }

    fn seed(&mut self) -> Result<u64> {
        Ok(self.of_call().seed)
    }

    fn plugin_name(&mut self) -> Result<String> {
        self.asked(&[])?;
        Ok(self.allowance.copy(self.about.plugin_name.as_str())?)
    }
}

impl log::Host for Host {
    fn write(&mut self, level: log::Level, message: String) -> Result<()> {
        self.charge(message.len())?;
        let level = match level {
            log::Level::Debug => Level::Debug,
            log::Level::Info => Level::Info,
            log::Level::Warn => Level::Warn,
        };
        self.lines.push(level, message.as_bytes());
        Ok(())
    }
}
