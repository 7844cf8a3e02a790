//! Port for plugins whose code is in a registry.

use std::collections::BTreeSet;

use bulkhead_core::manifest::{Digest, MovedTag};
use bulkhead_core::policy::EngineKind;

use crate::{Grant, LoadStage};

/// Images of registries. It pulls in the background, and its methods do not wait.
pub trait Images: Send + Sync {
    /// Returns a number that changes whenever the result of [`Images::find`] may have changed. Cheap.
    fn revision(&self) -> u64;

    /// Returns true while an image has been neither found nor refused.
    fn is_pending(&self) -> bool;

    /// Sets the images that a list names. The state of images that no list names is dropped.
    fn listed(&self, list: &str, images: BTreeSet<String>);

    /// Returns the code of an image, whose digest and signature were verified.
    ///
    /// # Errors
    ///
    /// The reference is invalid, or the image is not trusted, or not pulled yet.
    fn find(&self, image: &str, moved: MovedTag) -> Result<FoundImage, ImageProblem>;

    /// Returns the limits of the plugin in an image, which may be missing or refused. An image that no rule trusts has
    /// none.
    fn grant(&self, image: &str) -> Grant;

    /// Verifies an image that is in force against the current trust. `image` has a digest, `code` is the digest of its
    /// code. Returns the limits of its plugin.
    ///
    /// # Errors
    ///
    /// The trust in the image was withdrawn, so that it must not stay in force.
    fn verify_again(&self, image: &str, code: &Digest) -> Result<Grant, ImageProblem>;
}

/// Code of an image.
#[derive(Clone, Debug, PartialEq)]
pub struct FoundImage {
    /// Engine that runs it.
    pub engine: EngineKind,
    /// Image with its digest.
    pub origin: String,
    /// Code.
    pub code: Vec<u8>,
    /// Limits that the trust in it sets.
    pub grant: Grant,
    /// Name of the key that has signed it, or the identity in the certificate of its signer; none if no signature is
    /// required.
    pub signer: Option<String>,
    /// Reason why a newer image of the same tag is not used, or why there is no way to know of one.
    pub newer: Option<ImageProblem>,
}

/// Reason why an image is not used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImageProblem {
    /// Stage of loading that failed.
    pub stage: LoadStage,
    /// Cause and remedy.
    pub message: String,
}
