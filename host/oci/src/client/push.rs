//! Uploads.

use bytes::Bytes;
use http::StatusCode;
use http::header::{CONTENT_TYPE, LOCATION};

use super::{Client, Scope, body, is_permitted, of};
use crate::error::{Cause, RegistryError};
use crate::manifest::IMAGE_MANIFEST;
use crate::{Digest, Reference};

/// Header with the digest of a manifest as the registry sees it.
const CONTENT_DIGEST: &str = "docker-content-digest";

impl Client {
    /// Uploads a blob unless the repository has it.
    ///
    /// # Errors
    ///
    /// The registry does not accept it.
    pub async fn push_blob(&self, image: &Reference, blob: Bytes) -> Result<Digest, RegistryError> {
        let digest = Digest::of(&blob);
        let uploaded = self.upload(image, blob, &digest).await;
        uploaded.map_err(|cause| of("push", image, cause))?;
        Ok(digest)
    }

    async fn upload(&self, image: &Reference, blob: Bytes, digest: &Digest) -> Result<(), Cause> {
        let url = self.url(image, &format!("blobs/{digest}"));
        let known = self.send(image, Scope::Push, &url, || self.http.head(&url)).await?;
        if known.status() == StatusCode::OK {
            return Ok(());
        }
        body::check(known, image, &[StatusCode::NOT_FOUND]).await?;
        let start = self.url(image, "blobs/uploads/");
        let started = self
            .send(image, Scope::Push, &start, || {
                self.http.post(&start).header("content-length", 0)
            })
            .await?;
        let started = body::check(started, image, &[StatusCode::ACCEPTED]).await?;
        let location = started
            .headers()
            .get(LOCATION)
            .and_then(|location| location.to_str().ok());
        let missing = || Cause::Unexpected("the answer to an upload names no location".to_owned());
        // A location may be relative to the request.
        let mut put = started
            .url()
            .join(location.ok_or_else(missing)?)
            .map_err(|error| Cause::Unexpected(format!("the location of an upload is not a URL: {error}")))?;
        if !is_permitted(&self.plain_http, &put) {
            return Err(Cause::Redirect(format!(
                "the upload location {put} is not reached over TLS"
            )));
        }
        put.query_pairs_mut().append_pair("digest", digest.as_str());
        let put = put.to_string();
        let stored = self
            .send(image, Scope::Push, &put, || {
                let request = self.http.put(&put);
                request
                    .header(CONTENT_TYPE, "application/octet-stream")
                    .body(blob.clone())
            })
            .await?;
        body::check(stored, image, &[StatusCode::CREATED]).await.map(drop)
    }

    /// Uploads a manifest under the tag or the digest of the reference. Its blobs have to be there.
    ///
    /// # Errors
    ///
    /// The registry does not accept it, or stores another one.
    pub async fn push_manifest(&self, image: &Reference, text: Bytes) -> Result<Digest, RegistryError> {
        let stored = self.put_manifest(image, text).await;
        stored.map_err(|cause| of("push", image, cause))
    }

    async fn put_manifest(&self, image: &Reference, text: Bytes) -> Result<Digest, Cause> {
        let digest = Digest::of(&text);
        let url = self.url(image, &format!("manifests/{}", image.version()));
        let stored = self
            .send(image, Scope::Push, &url, || {
                let request = self.http.put(&url);
                request.header(CONTENT_TYPE, IMAGE_MANIFEST).body(text.clone())
            })
            .await?;
        let stored = body::check(stored, image, &[StatusCode::CREATED]).await?;
        let header = stored
            .headers()
            .get(CONTENT_DIGEST)
            .and_then(|value| value.to_str().ok());
        match header.map(str::parse::<Digest>) {
            Some(Ok(found)) if found != digest => Err(Cause::WrongDigest {
                expected: digest,
                found,
            }),
            _ => Ok(digest),
        }
    }
}
