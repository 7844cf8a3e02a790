//! Compiled components on disk, so that a restart does not compile again.
//!
//! A file is named after what it was made from (the component, wasmtime's settings and version, our own format) and
//! after its own SHA-256, and it appears under that name by an atomic rename. A torn, damaged or foreign file therefore
//! is one whose content does not match its name: it is removed and the component compiled again. Whatever goes wrong
//! here costs time and never a plugin; [`CacheReport`] says what went wrong.
//!
//! Checksums are no defence against somebody who can write into the folder and would compute them too. The defence
//! against those is [`folder`], which uses a folder only if nobody but its owner can write there.

mod artefact;
mod folder;
#[cfg(test)]
mod tests;

use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use wasmtime::component::Component;
use wasmtime::{Engine, Result};

use self::artefact::{Key, Name};
use self::folder::Folder;

/// Where compiled components are kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CacheOptions {
    /// The folder; made if it is not there. On Unix it must belong to this user or to root, and nobody else may write
    /// there, because what is in it is executed.
    pub folder: PathBuf,
    /// Most bytes of compiled code that are kept; what was not used for longest goes first.
    pub bytes_max: u64,
}

impl CacheOptions {
    /// At most 256 MiB in a folder. A plugin in Rust takes about half a MiB.
    pub fn in_folder(folder: impl Into<PathBuf>) -> Self {
        Self { folder: folder.into(), bytes_max: 256 << 20 }
    }
}

/// What the cache did so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CacheReport {
    /// Components that were loaded from the folder.
    pub hits: u64,
    /// Components that had to be compiled.
    pub misses: u64,
    /// Files that were not what their name says, or not ours, and were removed.
    pub discarded: u64,
    /// Files that were removed to stay within the size.
    pub evicted: u64,
    /// The first reason why components could not be read or kept, and what would be right; absent while all is well.
    pub problem: Option<String>,
}

/// The cache of one engine. Other processes may use the same folder at the same time.
pub(crate) struct Cache {
    folder: Option<Folder>,
    bytes_max: u64,
    report: Mutex<CacheReport>,
}

impl Cache {
    /// Opens the folder. Without a usable one everything is compiled, and the report says why.
    pub(crate) fn open(options: CacheOptions) -> Self {
        let opened = Folder::open(options.folder);
        let (folder, problem) = match opened {
            Ok(folder) => (Some(folder), None),
            Err(problem) => (None, Some(problem)),
        };
        let report = Mutex::new(CacheReport { problem, ..CacheReport::default() });
        Self { folder, bytes_max: options.bytes_max, report }
    }

    /// What was done so far.
    pub(crate) fn report(&self) -> CacheReport {
        self.report.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The compiled component: from the folder if it is there, otherwise compiled and kept. The error is that of
    /// compiling.
    pub(crate) fn component(&self, engine: &Engine, code: &[u8]) -> Result<Component> {
        let Some(folder) = &self.folder else {
            self.note(|report| report.misses += 1);
            return Component::from_binary(engine, code);
        };
        let key = Key::of(engine, code);
        if let Some(found) = self.find(folder, engine, &key) {
            self.note(|report| report.hits += 1);
            return Ok(found);
        }
        self.note(|report| report.misses += 1);
        let component = Component::from_binary(engine, code)?;
        self.keep(folder, &key, &component);
        Ok(component)
    }

    fn find(&self, folder: &Folder, engine: &Engine, key: &Key) -> Option<Component> {
        // More than one only if two processes compiled to different bytes.
        let names = folder.names().into_iter().filter(|name| name.key() == key);
        names.into_iter().find_map(|name| match artefact::load(folder, &name, engine) {
            Ok(component) => {
                folder.touch(&name);
                Some(component)
            }
            Err(unusable) => {
                folder.remove(&name);
                self.note(|report| report.discarded += u64::from(unusable.is_bad()));
                None
            }
        })
    }

    /// Keeps a component if there is room for it, and makes room by removing others.
    fn keep(&self, folder: &Folder, key: &Key, component: &Component) {
        let kept = component.serialize().map_err(|error| format!("{error:#}")).and_then(|artefact| {
            if u64::try_from(artefact.len()).is_ok_and(|bytes| bytes <= self.bytes_max) {
                folder.write(&Name::of(key.clone(), &artefact), &artefact)?;
            }
            Ok(())
        });
        let evicted = folder.shrink(self.bytes_max);
        self.note(|report| {
            report.evicted += evicted;
            if let Err(problem) = kept {
                report.problem.get_or_insert(problem);
            }
        });
    }

    fn note(&self, what: impl FnOnce(&mut CacheReport)) {
        what(&mut self.report.lock().unwrap_or_else(PoisonError::into_inner));
    }
}
