//! Entry of a listing and its state.

use std::time::{Duration, Instant};

use bulkhead_core::manifest::{Digest, PluginManifest};
use bulkhead_core::policy::{Capability, SignedImage};

use crate::catalog::Catalog;
use crate::loader::Attempt;
use crate::registry::Installed;
use crate::status::{PluginStatus, Refused};
use crate::{Description, FoundPlugin, Grant, LoadLimits, LoadStage, Registry};

pub(super) struct Entry {
    pub(super) name: String,
    pub(super) generation: Option<i64>,
    /// Manifest, if it could be read.
    pub(super) manifest: Option<Box<PluginManifest>>,
    /// Image that the list or the object names.
    pub(super) image: Option<String>,
    /// Limits that the trust in its image sets.
    pub(super) grant: Grant,
    /// Newest version, if it could be read.
    pub(super) found: Option<FoundPlugin>,
    /// Active version.
    pub(super) active: Option<Active>,
    /// Reason why the newest version is not active.
    pub(super) refused: Option<Refused>,
    /// Reason why the catalog does not offer a newer version.
    pub(super) newer: Option<Refused>,
    /// Reason why the last active version was taken out of force; none if it was not.
    pub(super) withdrawn: Option<Withdrawn>,
    /// Policy that answers while no version is active.
    pub(super) placeholder: Option<Installed>,
    pub(super) load: Load,
    /// Number of loads of the newest version that ran out of time.
    pub(super) failures: u32,
}

/// An active version.
pub(super) struct Active {
    pub(super) found: FoundPlugin,
    pub(super) description: Description,
    pub(super) installed: Installed,
    /// Image and code of the version that answers for `fallback: previous`; none for one of a file or an object.
    pub(super) previous: Option<(SignedImage, Digest)>,
}

/// A version that was taken out of force because the trust in its image was withdrawn.
pub(super) struct Withdrawn {
    refused: Refused,
    /// Calls that it answered and may answer. They are faults until a version is active.
    capabilities: Vec<Capability>,
    /// Limits of its placeholder. Without a rule they are those that it had, so that it holds no more than before.
    grant: Grant,
}

/// State of the load of the newest version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Load {
    /// No load is pending.
    Ended,
    /// The load is waiting or running, with this attempt number.
    Attempted(u64),
    /// The load ran out of time and is retried at this time.
    Pausing(Instant),
}

impl Entry {
    pub(super) fn new(name: String) -> Self {
        Self {
            name,
            generation: None,
            manifest: None,
            image: None,
            grant: Grant::default(),
            found: None,
            active: None,
            refused: None,
            newer: None,
            withdrawn: None,
            placeholder: None,
            load: Load::Ended,
            failures: 0,
        }
    }

    /// Returns the entry of a plugin whose name is already taken. It is not active.
    pub(super) fn second(name: String, generation: Option<i64>, refused: Refused) -> Self {
        Self {
            generation,
            refused: Some(refused),
            ..Self::new(name)
        }
    }

    pub(super) fn is_loading(&self) -> bool {
        matches!(self.load, Load::Attempted(_))
    }

    pub(super) fn is_in_force(&self, found: &FoundPlugin) -> bool {
        self.active.as_ref().is_some_and(|active| active.found == *found)
    }

    /// Returns the active version or its placeholder.
    pub(super) fn installed(&self) -> Option<&Installed> {
        self.active
            .as_ref()
            .map(|active| &active.installed)
            .or(self.placeholder.as_ref())
    }

    /// Starts an attempt to load the newest version.
    pub(super) fn attempt(&mut self, id: u64) -> Option<Attempt> {
        let found = self.found.clone()?;
        self.load = Load::Attempted(id);
        Some(Attempt { id, found })
    }

    /// Marks the newest version as active.
    pub(super) fn settle(&mut self) {
        self.found = self.active.as_ref().map(|active| active.found.clone());
        (self.refused, self.placeholder, self.load, self.failures) = (None, None, Load::Ended, 0);
        self.withdrawn = None;
    }

    /// Records the rejection of the newest version.
    pub(super) fn refuse(&mut self, registry: &Registry, refused: Refused, capabilities: Option<Vec<Capability>>) {
        self.install_placeholder(registry, &refused.to_string(), capabilities);
        self.refused = Some(refused);
    }

    /// Verifies the active version against the current trust, and takes it out of force if its image is not trusted or
    /// if it answers calls that it may not answer any more. Its calls are faults then, and the rule of each kind holds.
    /// A narrower tenant counts at once. Returns true if something else is in force than before.
    pub(super) fn verify_again(&mut self, registry: &Registry, catalog: &dyn Catalog) -> bool {
        let Some(active) = &mut self.active else { return false };
        let is_trusted = |(image, code): &(SignedImage, Digest)| catalog.verify_again(&image.reference, code).is_ok();
        if active.previous.take_if(|previous| !is_trusted(previous)).is_some() {
            active.installed.drop_fallback();
        }
        let source = &active.found.source;
        let Some(image) = &source.image else { return false };
        let all = active.installed.capabilities();
        let (message, capabilities, grant) = match catalog.verify_again(&image.reference, &source.digest()) {
            Err(problem) => (problem.message, all.to_vec(), active.found.grant.clone()),
            // A lower maximum budget makes a version no less trusted: it stays, and the next load is refused.
            Ok(grant) => {
                let Some((message, permitted)) = grant.refused_calls(all) else {
                    active.found.grant.tenancy.clone_from(&grant.tenancy);
                    return active.installed.limit_to(grant.tenancy.as_ref());
                };
                (message, permitted, grant)
            }
        };
        let refused = Refused {
            stage: LoadStage::Trusted,
            origin: image.reference.clone(),
            message: format!("{message}; the version in force was taken out of force (TrustWithdrawn)"),
        };
        let why = refused.to_string();
        self.withdrawn = Some(Withdrawn {
            refused,
            capabilities: capabilities.clone(),
            grant,
        });
        self.active = None;
        self.install_placeholder(registry, &why, Some(capabilities));
        true
    }

    /// Installs a placeholder if no version is active. Returns true if there is one afterwards.
    pub(super) fn install_placeholder(
        &mut self,
        registry: &Registry,
        why: &str,
        capabilities: Option<Vec<Capability>>,
    ) -> bool {
        self.placeholder = None;
        if self.active.is_none() {
            let (manifest, source) = (self.manifest.as_deref(), self.found.as_ref().map(|found| &found.source));
            let known = || self.withdrawn.as_ref().map(|withdrawn| withdrawn.capabilities.clone());
            let capabilities = capabilities.or_else(known);
            let capabilities = capabilities.unwrap_or_else(|| crate::not_loaded::assumed(manifest, source));
            let grant = self
                .withdrawn
                .as_ref()
                .map_or(&self.grant, |withdrawn| &withdrawn.grant);
            let placeholder = registry.placeholder(&self.name, manifest, grant.permitted(capabilities), why);
            self.placeholder = placeholder.map(|mut placeholder| {
                placeholder.limit_to(grant.tenancy.as_ref());
                placeholder
            });
        }
        self.placeholder.is_some()
    }

    /// Returns the pause before the next attempt.
    pub(super) fn pause(&mut self, limits: &LoadLimits, now: Instant) -> Load {
        let doubled = 1_u32.checked_shl(self.failures).unwrap_or(u32::MAX);
        self.failures = self.failures.saturating_add(1).min(31);
        let pause = limits
            .retry_base
            .checked_mul(doubled)
            .unwrap_or(Duration::MAX)
            .min(limits.retry_max);
        now.checked_add(pause).map_or(Load::Ended, Load::Pausing)
    }

    pub(super) fn status(&self) -> PluginStatus {
        let Self {
            name,
            generation,
            refused,
            ..
        } = self;
        let (active, placeholder) = (self.active.as_ref(), self.placeholder.as_ref());
        // A withdrawal is the reason until a newer version fails at a later stage than verification.
        let later = refused.as_ref().filter(|refused| refused.stage > LoadStage::Verified);
        let withdrawn = self.withdrawn.as_ref().map(|withdrawn| &withdrawn.refused);
        let refused = later.or(withdrawn).or(refused.as_ref()).or(self.newer.as_ref());
        let mut held: Vec<_> = placeholder.map(Installed::kinds).unwrap_or_default();
        held.sort_unstable();
        held.dedup();
        PluginStatus {
            name: name.clone(),
            generation: *generation,
            stage: refused.map_or(LoadStage::Active, |refused| refused.stage),
            refused: refused.cloned(),
            is_loading: self.is_loading(),
            held,
            active: active.map(|active| active.installed.id().clone()),
            digest: active.map(|active| active.description.digest),
            listed_image: self.image.clone(),
            image: active.and_then(|active| active.found.source.image.clone()),
            answers: active.map(|active| active.installed.kinds()).unwrap_or_default(),
            permitted: active.and_then(|active| active.found.grant.kinds.clone()),
            mode: active.map(|active| active.installed.mode()),
            breaker: active.map(|active| active.installed.breaker()).unwrap_or_default(),
            counts: active.map(|active| active.installed.counts()).unwrap_or_default(),
            remarks: active
                .map(|active| active.description.remarks.clone())
                .unwrap_or_default(),
        }
    }
}
