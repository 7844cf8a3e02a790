//! Trust file that is read again when it changes, or when a file of its keys or of its trusted root does.
//!
//! While the file cannot be used, the rules that were read before stay in force: a mistake in the file must neither
//! trust more images nor take plugins out of force.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use crate::trust::{Trust, TrustError};

/// Trust file with the rules that were read last.
#[derive(Debug)]
pub(crate) struct TrustFile {
    path: PathBuf,
    known: Mutex<Known>,
}

/// Result of the last read.
#[derive(Clone, Debug, Default)]
struct Known {
    marks: Option<Vec<Mark>>,
    trust: Option<Arc<Trust>>,
    problem: Option<TrustError>,
}

/// State of a file at some time; useful only for comparison.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mark {
    /// Path with symbolic links resolved, so that a swapped link is a change.
    real: Option<PathBuf>,
    modified: Option<SystemTime>,
    bytes: Option<u64>,
}

impl Mark {
    fn of(path: &Path) -> Self {
        let metadata = fs::metadata(path).ok();
        Self {
            real: fs::canonicalize(path).ok(),
            modified: metadata.as_ref().and_then(|metadata| metadata.modified().ok()),
            bytes: metadata.map(|metadata| metadata.len()),
        }
    }
}

impl TrustFile {
    pub(crate) fn new(path: PathBuf) -> Self {
        Self {
            path,
            known: Mutex::default(),
        }
    }

    /// Returns the state of the file and of the files that it names. It changes whenever one of them does.
    pub(crate) fn marks(&self) -> Vec<Mark> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        self.marks_with(known.trust.as_deref())
    }

    fn marks_with(&self, trust: Option<&Trust>) -> Vec<Mark> {
        let files = trust.into_iter().flat_map(Trust::files);
        std::iter::once(&self.path)
            .chain(files)
            .map(|path| Mark::of(path))
            .collect()
    }

    /// Returns the rules, and the reason why a newer version of the file is not used.
    ///
    /// # Errors
    ///
    /// No version of the file could be used so far.
    pub(crate) fn current(&self) -> Result<(Arc<Trust>, Option<TrustError>), TrustError> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.marks.as_ref() != Some(&self.marks_with(known.trust.as_deref())) {
            // The first read names the other files, whose marks have to be older than the content that counts.
            let first = Trust::read(&self.path).ok().or(known.trust.as_deref().cloned());
            let marks = self.marks_with(first.as_ref());
            let (trust, problem) = match Trust::read(&self.path) {
                Ok(trust) => (Some(Arc::new(trust)), None),
                Err(error) => (known.trust.take(), Some(error)),
            };
            *known = Known {
                marks: Some(marks),
                trust,
                problem,
            };
        }
        match (&known.trust, &known.problem) {
            (Some(trust), problem) => Ok((Arc::clone(trust), problem.clone())),
            (None, Some(problem)) => Err(problem.clone()),
            (None, None) => unreachable!("a read has a result"),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use rcgen::{KeyPair, PKCS_ECDSA_P256_SHA256};

    use super::*;
    use crate::Reference;

    #[test]
    fn the_rules_before_stay_in_force_while_the_file_cannot_be_used() {
        let folder = tempfile::tempdir().unwrap();
        let (path, key) = (folder.path().join("trust.yaml"), folder.path().join("team.pub"));
        let image: Reference = "r.io/a:1".parse().unwrap();
        let mut writes = 0;
        let mut write = |path: &Path, text: &str| {
            fs::write(path, text).unwrap();
            // The clock of a file system may be too coarse to tell two writes apart.
            writes += 1;
            let time = SystemTime::UNIX_EPOCH + Duration::from_secs(writes);
            fs::File::options()
                .write(true)
                .open(path)
                .unwrap()
                .set_modified(time)
                .unwrap();
        };
        let rules = |rules: &str| format!("apiVersion: bulkhead.dev/v1alpha1\nkind: PluginTrust\nrules:\n{rules}");
        let file = TrustFile::new(path.clone());
        assert!(
            file.current()
                .unwrap_err()
                .to_string()
                .contains("cannot read the trust file")
        );
        let pem = || KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).unwrap().public_key_pem();
        write(&key, &pem());
        write(&path, &rules("- {images: r.io, keys: [{file: team.pub}]}"));
        let (first, problem) = file.current().unwrap();
        assert_eq!(problem, None);
        let before = file.marks();
        for broken in ["rules: 3", ""] {
            write(&path, broken);
            let (kept, problem) = file.current().unwrap();
            assert!(problem.is_some(), "{broken:?}");
            assert_eq!(kept.requirements(&image), first.requirements(&image));
        }
        fs::remove_file(&path).unwrap();
        assert!(
            file.current().unwrap().1.is_some(),
            "a missing file trusts nothing more"
        );
        write(&path, &rules("- {images: r.io, keys: [{file: team.pub}]}"));
        assert_eq!(file.current().unwrap().1, None);
        assert_ne!(file.marks(), before);
        // Another key under the same name is a change.
        let before = file.marks();
        write(&key, &pem());
        assert_ne!(file.marks(), before);
        assert_ne!(
            file.current().unwrap().0.requirements(&image),
            first.requirements(&image)
        );
    }
}
