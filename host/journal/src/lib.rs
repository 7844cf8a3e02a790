//! Where decisions outlive the process that made them: segments that are only appended to.
//!
//! A journal is a directory of segments. A segment is a header and frames; a frame carries its length twice and a
//! checksum that covers everything before it in the journal, so that a frame that was damaged, left out or put twice is
//! found. The checksums have no key: they find accidents, not a user who computes them anew. There are four sorts of
//! frames: a version of a cluster, a list of those, a record, and the note that the effects of a record could not be
//! applied. Every segment holds all that its records need, so the oldest can go without the others.
//!
//! When [`Writer::keep`](bulkhead_core::journal::Sink::keep) returns, the record has left the process: a process that
//! is killed loses nothing. [`Writer::sync`] makes it outlive the machine. [`Background`] keeps records on a thread of
//! its own, and says when.
//!
//! The form of segments and frames is also that of what `bulkhead run --embedded` keeps, which has two sorts of its own.
//!
//! There is no embedded database below this: records are written once, in order, by one process, and read from the
//! first to the last. Nothing here reads a clock; the age of a record is told by the record.
//!
//! Start reading at [`frame`] (the form on disk), then [`writer`], then [`reader`]. Modes of files are in [`private`].

pub mod background;
mod end;
pub mod error;
pub mod frame;
pub mod private;
pub mod reader;
pub mod segment;
pub mod storage;
pub mod stored;
pub mod writer;

pub use background::Background;
pub use error::{JournalError, Problem};
pub use reader::{Contents, read, visit};
pub use storage::{Disk, Storage};
pub use stored::{Stored, StoredCase};
pub use writer::{Bounds, Opened, Writer};
