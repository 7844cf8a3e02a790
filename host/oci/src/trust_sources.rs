//! Sources of trust of one process: the trust file, and the `PluginTrust` objects of its control plane.
//!
//! Until the objects are listed, an image that no rule of the file covers is held: neither trusted nor withdrawn. An
//! image that the file covers is used, and a start waits for the objects all the same: they may revoke it.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use bulkhead_core::manifest::trust::object::read_objects;
use bulkhead_plugin::TrustObjects;

use crate::Reference;
use crate::trust::{ObjectTrust, Requirements, Trust, TrustError, requirements};
use crate::trust_file::{Mark, TrustFile};

/// Sources of trust.
#[derive(Debug)]
pub(crate) struct TrustSources {
    file: Option<TrustFile>,
    /// Objects; none if the process has no control plane.
    objects: Option<Arc<TrustObjects>>,
    /// Rules of the objects, with the revision that they were read at.
    read: Mutex<Option<(u64, Arc<ObjectTrust>)>>,
}

/// State of all sources at some time; useful only for comparison.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct TrustMarks {
    file: Vec<Mark>,
    objects: u64,
}

/// Rules in force.
struct InForce {
    file: Option<Arc<Trust>>,
    /// Reason why a newer version of the file is not used.
    problem: Option<TrustError>,
    /// Rules of the objects; none before they are listed.
    objects: Option<Arc<ObjectTrust>>,
}

impl TrustSources {
    pub(crate) fn new(file: Option<PathBuf>, objects: Option<Arc<TrustObjects>>) -> Self {
        Self {
            file: file.map(TrustFile::new),
            objects,
            read: Mutex::default(),
        }
    }

    /// Returns the state of the sources. It changes whenever one of them does.
    pub(crate) fn marks(&self) -> TrustMarks {
        TrustMarks {
            file: self.file.as_ref().map(TrustFile::marks).unwrap_or_default(),
            objects: self.objects.as_ref().map_or(0, |objects| objects.revision()),
        }
    }

    /// Returns true if there may be objects later, although there is no rule now.
    pub(crate) fn may_gain_rules(&self) -> bool {
        self.objects.is_some()
    }

    /// Returns the requirements for an image, and the reason why a newer version of the trust file is not used. Without
    /// any trust there are no requirements.
    ///
    /// # Errors
    ///
    /// No rule trusts the image, or the sources are not read yet.
    pub(crate) fn requirements(
        &self,
        image: &Reference,
    ) -> Result<(Option<Requirements>, Option<TrustError>), TrustError> {
        let InForce { file, problem, objects } = self.in_force()?;
        let objects = if let Some(objects) = objects {
            objects
        } else {
            if let Some(objects) = &self.objects {
                objects.expect();
            }
            if !file.as_ref().is_some_and(|file| file.covers(image)) {
                return Err(not_listed(image));
            }
            Arc::default()
        };
        Ok((requirements(file.as_deref(), &objects, image)?, problem))
    }

    /// Returns the requirements for an image in force. While the sources cannot be read, there are none, so nothing is
    /// withdrawn.
    ///
    /// # Errors
    ///
    /// No rule trusts the image any more.
    pub(crate) fn requirements_in_force(&self, image: &Reference) -> Result<Option<Requirements>, TrustError> {
        let Ok(InForce { file, objects, .. }) = self.in_force() else {
            return Ok(None);
        };
        match objects {
            Some(objects) => requirements(file.as_deref(), &objects, image),
            None => file
                .filter(|file| file.covers(image))
                .map(|file| file.requirements(image))
                .transpose(),
        }
    }

    fn in_force(&self) -> Result<InForce, TrustError> {
        let (file, problem) = match &self.file {
            None => (None, None),
            Some(file) => {
                let (trust, problem) = file.current()?;
                (Some(trust), problem)
            }
        };
        let objects = match &self.objects {
            None => Some(Arc::default()),
            Some(objects) => self.rules_of(objects),
        };
        Ok(InForce { file, problem, objects })
    }

    /// Returns the rules of the objects; none before they are listed.
    fn rules_of(&self, objects: &TrustObjects) -> Option<Arc<ObjectTrust>> {
        let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        // The revision is taken before reading: a change during the read is found the next time.
        let revision = objects.revision();
        if let Some((_, rules)) = read.as_ref().filter(|(known, _)| *known == revision) {
            return Some(Arc::clone(rules));
        }
        let rules = Arc::new(ObjectTrust::of(read_objects(&objects.listed()?)));
        *read = Some((revision, Arc::clone(&rules)));
        Some(rules)
    }
}

fn not_listed(image: &Reference) -> TrustError {
    TrustError {
        origin: "PluginTrust objects".to_owned(),
        message: format!(
            "{} is held until they are listed, because no rule of a trust file is for it (TrustNotListed)",
            image.name()
        ),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use bulkhead_core::manifest::trust::object::TrustObject;
    use serde_json::{Value, json};

    use super::*;

    fn object(name: &str, rules: Value) -> TrustObject {
        TrustObject {
            name: name.to_owned(),
            generation: 1,
            spec: serde_json::Map::from_iter([("rules".to_owned(), rules)]),
        }
    }

    #[test]
    fn an_image_without_a_file_rule_is_held_until_the_objects_are_listed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("trust.yaml");
        let rules = "rules: [{images: r.io/file, unsigned: true}]";
        fs::write(
            &path,
            format!("apiVersion: bulkhead.dev/v1alpha1\nkind: PluginTrust\n{rules}\n"),
        )
        .unwrap();
        let objects = Arc::<TrustObjects>::default();
        let sources = TrustSources::new(Some(path), Some(Arc::clone(&objects)));
        let [covered, other]: [Reference; 2] = ["r.io/file/a:1", "r.io/b:1"].map(|text| text.parse().unwrap());
        assert!(!objects.is_expected());
        assert!(sources.requirements(&covered).unwrap().0.is_some());
        assert!(objects.is_expected(), "they may revoke it");
        let held = sources.requirements(&other).unwrap_err().to_string();
        assert!(
            held.contains("r.io/b is held until they are listed") && held.contains("(TrustNotListed)"),
            "{held}"
        );
        assert_eq!(sources.requirements_in_force(&other), Ok(None), "nothing is withdrawn");
        let before = sources.marks();
        objects.set(Vec::new());
        assert_ne!(sources.marks(), before);
        let refused = sources.requirements(&other).unwrap_err().to_string();
        assert!(refused.contains("trust.yaml: no rule trusts r.io/b"), "{refused}");
        let before = sources.marks();
        objects.set(vec![object("a", json!([{"images": "r.io", "unsigned": true}]))]);
        assert_ne!(sources.marks(), before);
        assert!(sources.requirements(&other).unwrap().0.is_some());
        objects.set(vec![object("a", json!([]))]);
        assert!(sources.requirements_in_force(&other).is_err());
    }

    #[test]
    fn without_a_file_and_objects_every_image_is_accepted() {
        let image: Reference = "r.io/a:1".parse().unwrap();
        let without = TrustSources::new(None, None);
        assert!(!without.may_gain_rules());
        assert!(without.requirements(&image).unwrap().0.is_none());
        let objects = Arc::<TrustObjects>::default();
        let sources = TrustSources::new(None, Some(Arc::clone(&objects)));
        assert!(sources.requirements(&image).is_err(), "they are not listed");
        objects.set(Vec::new());
        assert!(sources.requirements(&image).unwrap().0.is_none());
    }

    #[test]
    fn the_last_object_ends_the_default_deny_when_it_is_deleted() {
        let image: Reference = "r.io/a:1".parse().unwrap();
        let objects = Arc::<TrustObjects>::default();
        let sources = TrustSources::new(None, Some(Arc::clone(&objects)));
        let (empty, other) = (object("a", json!([])), object("b", json!([])));
        objects.set(vec![empty.clone(), other]);
        assert!(sources.requirements_in_force(&image).is_err());
        objects.set(vec![empty]);
        assert!(sources.requirements_in_force(&image).is_err(), "one is left");
        objects.set(Vec::new());
        assert_eq!(sources.requirements_in_force(&image), Ok(None));
    }
}
