//! Persistent record of decisions, in segments that are only appended to.
//!
//! A journal is a directory of segments. A segment is a header and frames. A frame carries its length twice, and a
//! checksum that covers everything before it in the journal, so that damaged, missing and duplicate frames are found.
//! The checksums have no key: they detect accidents, not a user who recomputes them. A journal has four kinds of
//! frames: a version of a cluster, a list of those, a record, and the note that the effects of a record could not be
//! applied. Every segment holds all that its records need, so the oldest can be removed without the others.
//!
//! When [`Writer::keep`](bulkhead_core::journal::Sink::keep) returns, the record has left the process: a process that
//! is killed loses nothing. [`Writer::sync`] makes records survive a crash of the machine. [`Background`] keeps
//! records on a thread of its own, and reports when each is kept.
//!
//! `bulkhead run --embedded` stores its objects in the same format of segments and frames, with two kinds of its own.
//!
//! There is no embedded database: records are written once, in order, by one process, and read from first to last.
//! Nothing here reads a clock; the age of a record comes from the record.
//!
//! Start reading at [`frame`] (the format on disk), then [`writer`], then [`reader`]. Modes of files are in
//! [`private`].

pub mod background;
pub mod cluster_outline;
pub mod decode;
mod end;
pub mod error;
pub mod follower;
pub mod frame;
pub mod news;
mod open;
pub mod outline;
pub mod private;
pub mod reader;
pub mod segment;
pub mod selection;
pub mod storage;
pub mod stored;
pub mod wire;
pub mod writer;

pub use background::Background;
pub use cluster_outline::{ClusterForm, ClusterOutline};
pub use decode::DecisionForm;
pub use error::{JournalError, Problem};
pub use follower::Follower;
pub use news::News;
pub use outline::DecisionOutline;
pub use reader::{Contents, read, visit, visit_segments};
pub use selection::Selection;
pub use storage::{Disk, Storage};
pub use stored::{Stored, StoredDecision};
pub use writer::{Bounds, Opened, Writer};
