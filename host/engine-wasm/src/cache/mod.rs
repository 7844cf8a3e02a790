//! Cache of compiled components on disk, to avoid compilation after a restart.
//!
//! The name of a file contains the hash of its inputs (the component, wasmtime's settings and version, our own
//! format) and the checksum of its content. A file gets its name by an atomic rename. The content of a truncated,
//! corrupted or foreign file therefore does not match its name: the file is removed and the component compiled again.
//! An error of the cache costs time but never prevents a plugin from loading; [`CacheReport`] has the cause.
//!
//! Checksums do not protect against a user with write access to the directory, who could compute them too. [`folder`]
//! protects against that: it uses a directory only if no other user can write to it.

mod artefact;
mod folder;
mod name;
#[cfg(test)]
mod tests;

use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use wasmtime::Engine;
use wasmtime::component::Component;

use self::folder::Folder;
pub(crate) use self::name::Key;
use self::name::Name;

/// Location and size of the cache.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CacheOptions {
    /// Directory of the cache; created if it does not exist. On Unix it must belong to this user or to root, and no
    /// other user may have write access, because its contents are executed.
    pub folder: PathBuf,
    /// Maximum size of the compiled code in bytes; the least recently used components are removed first.
    pub bytes_max: u64,
}

impl CacheOptions {
    /// Returns options for at most 256 MiB in a directory. A plugin in Rust takes about half a MiB.
    pub fn in_folder(folder: impl Into<PathBuf>) -> Self {
        Self {
            folder: folder.into(),
            bytes_max: 256 << 20,
        }
    }
}

/// Counters and problems of the cache.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CacheReport {
    /// Components loaded from the directory.
    pub hits: u64,
    /// Components that had to be compiled.
    pub misses: u64,
    /// Files removed because their content did not match their name or they were not ours.
    pub discarded: u64,
    /// Files removed to stay within the size limit.
    pub evicted: u64,
    /// First problem with reading or writing components, and its remedy; absent if there was none.
    pub problem: Option<String>,
}

/// Cache of one engine. Other processes may use the same directory concurrently.
pub(crate) struct Cache {
    folder: Option<Folder>,
    bytes_max: u64,
    report: Mutex<CacheReport>,
}

impl Cache {
    /// Opens the directory. If it is not usable, all components are compiled, and the report has the cause.
    pub(crate) fn open(options: CacheOptions) -> Self {
        let opened = Folder::open(options.folder);
        let (folder, problem) = match opened {
            Ok(folder) => (Some(folder), None),
            Err(problem) => (None, Some(problem)),
        };
        let report = Mutex::new(CacheReport {
            problem,
            ..CacheReport::default()
        });
        Self {
            folder,
            bytes_max: options.bytes_max,
            report,
        }
    }

    /// Returns the current report.
    pub(crate) fn report(&self) -> CacheReport {
        self.report.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns the component that is compiled from these inputs, from the directory if possible. Otherwise it is
    /// compiled and stored. The error is that of the compilation.
    pub(crate) fn component<E>(
        &self,
        engine: &Engine,
        inputs: &[&[u8]],
        compile: impl FnOnce() -> Result<Component, E>,
    ) -> Result<Component, E> {
        let key = Key::of(engine, inputs);
        match self.get(engine, &key) {
            Some(found) => Ok(found),
            None => self.fill(&key, compile),
        }
    }

    /// Returns the component that is stored under a key.
    pub(crate) fn get(&self, engine: &Engine, key: &Key) -> Option<Component> {
        let found = self.find(self.folder.as_ref()?, engine, key)?;
        self.note(|report| report.hits += 1);
        Some(found)
    }

    /// Compiles a component that is not stored, and stores it. The error is that of the compilation.
    pub(crate) fn fill<E>(&self, key: &Key, compile: impl FnOnce() -> Result<Component, E>) -> Result<Component, E> {
        self.note(|report| report.misses += 1);
        let component = compile()?;
        self.put(key, &component);
        Ok(component)
    }

    /// Stores a component.
    pub(crate) fn put(&self, key: &Key, component: &Component) {
        if let Some(folder) = &self.folder {
            self.keep(folder, key, component);
        }
    }

    fn find(&self, folder: &Folder, engine: &Engine, key: &Key) -> Option<Component> {
        // There is more than one file only if two processes compiled to different bytes.
        let names = folder.names().into_iter().filter(|name| name.key() == key);
        names
            .into_iter()
            .find_map(|name| match artefact::load(folder, &name, engine) {
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

    /// Stores a component if it fits, and removes others to make room.
    fn keep(&self, folder: &Folder, key: &Key, component: &Component) {
        let kept = component
            .serialize()
            .map_err(|error| format!("{error:#}"))
            .and_then(|artefact| {
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
