//! Manifests that refer to an image: the referrers of the distribution API 1.1, and an index under the tag
//! `sha256-DIGEST` in registries without them.

use bytes::Bytes;
use http::StatusCode;
use http::header::{ACCEPT, CONTENT_TYPE};
use serde::{Deserialize, Serialize};

use super::{Client, Scope, body, of};
use crate::error::{Cause, RegistryError};
use crate::manifest::{Descriptor, IMAGE_INDEX, IMAGE_MANIFEST, Manifest};
use crate::{Digest, Reference};

/// Header of a registry that keeps the list of referrers itself.
const OCI_SUBJECT: &str = "oci-subject";

/// List of manifests.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Index {
    schema_version: u32,
    #[serde(default)]
    media_type: Option<String>,
    #[serde(default)]
    manifests: Vec<Descriptor>,
}

impl Client {
    /// Returns the manifests that refer to an image; none if there are none.
    ///
    /// # Errors
    ///
    /// The registry does not answer.
    pub(crate) async fn referrers(&self, image: &Reference, digest: &Digest) -> Result<Vec<Descriptor>, RegistryError> {
        let found = self.find_referrers(image, digest).await;
        found.map_err(|cause| of("pull the referrers of", image, cause))
    }

    async fn find_referrers(&self, image: &Reference, digest: &Digest) -> Result<Vec<Descriptor>, Cause> {
        if let Some(index) = self.index(image, &format!("referrers/{digest}")).await? {
            return Ok(index.manifests);
        }
        let index = self.index(image, &format!("manifests/{}", tag(digest))).await?;
        Ok(index.map(|index| index.manifests).unwrap_or_default())
    }

    /// Returns a list of manifests; `None` if the registry does not have it.
    async fn index(&self, image: &Reference, path: &str) -> Result<Option<Index>, Cause> {
        let url = self.url(image, path);
        let request = || self.http.get(&url).header(ACCEPT, IMAGE_INDEX);
        let response = self.send(image, Scope::Pull, &url, request).await?;
        // A registry without the request may not know the method either.
        if [StatusCode::NOT_FOUND, StatusCode::METHOD_NOT_ALLOWED].contains(&response.status()) {
            return Ok(None);
        }
        let response = body::check(response, image, &[StatusCode::OK]).await?;
        let text = body::read(response, self.limits.manifest_bytes_max, None).await?;
        let index = serde_json::from_slice(&text);
        index
            .map(Some)
            .map_err(|error| Cause::Invalid(format!("its list of referrers is not valid: {error}")))
    }

    /// Uploads a manifest that refers to an image in the same repository. Its blobs have to be there.
    ///
    /// # Errors
    ///
    /// The registry does not accept it.
    pub(crate) async fn push_referrer(&self, image: &Reference, manifest: &Manifest) -> Result<(), RegistryError> {
        let pushed = self.put_referrer(image, manifest).await;
        pushed.map_err(|cause| of("push a referrer of", image, cause))
    }

    async fn put_referrer(&self, image: &Reference, manifest: &Manifest) -> Result<(), Cause> {
        let text = Bytes::from(manifest.to_text());
        let own = image.with_digest(Digest::of(&text));
        let is_listed = self.put(image, own.version(), IMAGE_MANIFEST, text.clone()).await?;
        let Some(subject) = manifest.subject.as_ref().filter(|_| !is_listed) else {
            return Ok(());
        };
        let tag = tag(&subject.digest);
        let known = self.index(image, &format!("manifests/{tag}")).await?;
        let mut manifests = known.map(|index| index.manifests).unwrap_or_default();
        let listed = Descriptor {
            artifact_type: manifest.artifact_type.clone(),
            annotations: manifest.annotations.clone(),
            ..Descriptor::of(IMAGE_MANIFEST, &text)
        };
        if manifests.iter().any(|known| known.digest == listed.digest) {
            return Ok(());
        }
        manifests.push(listed);
        let index = Index {
            schema_version: 2,
            media_type: Some(IMAGE_INDEX.to_owned()),
            manifests,
        };
        let text = Bytes::from(serde_json::to_vec(&index).unwrap_or_default());
        self.put(image, &tag, IMAGE_INDEX, text).await.map(drop)
    }

    /// Uploads a manifest. Returns true if the registry lists it as a referrer itself.
    async fn put(&self, image: &Reference, version: &str, media_type: &str, text: Bytes) -> Result<bool, Cause> {
        let url = self.url(image, &format!("manifests/{version}"));
        let request = || self.http.put(&url).header(CONTENT_TYPE, media_type).body(text.clone());
        let stored = self.send(image, Scope::Push, &url, request).await?;
        let stored = body::check(stored, image, &[StatusCode::CREATED]).await?;
        Ok(stored.headers().contains_key(OCI_SUBJECT))
    }
}

/// Returns the tag of the list of referrers in registries without the API.
fn tag(digest: &Digest) -> String {
    format!("sha256-{}", digest.hex())
}
