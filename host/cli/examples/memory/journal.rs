//! Opening of a journal that is as large as its default limit.

use std::path::Path;

use anyhow::bail;
use bulkhead_core::journal::Sink as _;
use bulkhead_journal::{Bounds, JournalError, Opened, Writer, segment};

use crate::peak::{Peak, THIS};
use crate::{prepare, records};

/// Records between two looks at the size.
const BATCH: u64 = 1_000;

fn opened(directory: &Path, bounds: Bounds) -> Result<Opened, JournalError> {
    Writer::open(directory, bounds, |error| {
        eprintln!("the journal cannot be written: {error}");
    })
}

fn bytes(directory: &Path) -> anyhow::Result<u64> {
    let sizes = segment::list(directory)?
        .into_iter()
        .map(|(_, path)| std::fs::metadata(path).map(|data| data.len()));
    Ok(sizes.sum::<Result<u64, _>>()?)
}

/// Fills a journal up to the default limit. The limit of its writer is higher, so that nothing is removed.
pub(crate) fn fill(directory: &Path) -> anyhow::Result<()> {
    let bytes_max = Bounds::default().bytes_max;
    let writer = opened(
        directory,
        Bounds {
            bytes_max: 2 * bytes_max,
            ..Bounds::default()
        },
    )?
    .writer;
    let mut id = 0;
    while bytes(directory)? < bytes_max {
        for _ in 0..BATCH {
            id += 1;
            let decision = records::decision(&format!("member{id}"), if id % 2 == 0 { "True" } else { "False" });
            writer.keep(&records::record(id, i64::try_from(id)?), Some(&decision));
        }
    }
    Ok(())
}

/// Opens a full journal. Returns the description of the measurement, and the peak in KiB.
pub(crate) fn open() -> anyhow::Result<(String, u64)> {
    let directory = tempfile::tempdir()?;
    prepare("fill-journal", directory.path())?;
    let bytes = bytes(directory.path())?;
    let peak = Peak::start(THIS)?;
    let opened = opened(directory.path(), Bounds::default())?;
    let peak_kib = peak.kib()?;
    if opened.cut.is_some() || opened.records == 0 {
        bail!("the journal is incomplete, with {} records", opened.records);
    }
    Ok((
        format!("open a journal of {} MiB with {} records", bytes >> 20, opened.records),
        peak_kib,
    ))
}
