//! Images through the cache.

use bulkhead_core::policy::EngineKind;
use bytes::Bytes;

use crate::artifact::layer;
use crate::layout::SavedImage;
use crate::manifest::{Descriptor, Manifest};
use crate::signature::{SIGNATURES_MAX, Signature};
use crate::{Cache, CacheError, Cause, Client, Digest, PulledManifest, Reference, RegistryError};

/// Images of registries, kept in a cache.
#[derive(Debug)]
pub struct Store {
    client: Client,
    cache: Cache,
}

/// A plugin whose blobs are in the cache.
#[derive(Clone, Debug)]
pub struct StoredImage {
    /// Manifest.
    pub manifest: PulledManifest,
    /// Engine that runs it.
    pub engine: EngineKind,
    /// Code.
    pub code: Bytes,
}

/// Error of a registry or of the cache.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// Error of the registry.
    #[error(transparent)]
    Registry(#[from] RegistryError),
    /// Error of the cache.
    #[error(transparent)]
    Cache(#[from] CacheError),
}

impl StoreError {
    /// Returns the name of the cause, as conditions have it.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::Registry(error) => error.cause.reason(),
            Self::Cache(CacheError::Full { .. }) => "ImageCacheFull",
            Self::Cache(_) => "ImageCacheFailed",
        }
    }
}

impl Store {
    /// Creates a store.
    pub fn new(client: Client, cache: Cache) -> Self {
        Self { client, cache }
    }

    /// Returns the client.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// Returns the cache.
    pub fn cache(&self) -> &Cache {
        &self.cache
    }

    /// Returns an image if all its blobs are in the cache.
    ///
    /// # Errors
    ///
    /// The cache cannot be read, or the image is not a plugin.
    pub fn cached(&self, image: &Reference, digest: &Digest) -> Result<Option<StoredImage>, StoreError> {
        let Some(text) = self.cache.blob(digest)? else {
            return Ok(None);
        };
        let digest = digest.clone();
        let manifest = Manifest::parse(&text).map_err(|cause| crate::client::of("read", image, cause))?;
        let pulled = PulledManifest { digest, text, manifest };
        let (engine, code) = layer(&pulled.manifest).map_err(|cause| crate::client::of("read", image, cause))?;
        let Some(code) = self.cache.blob(&code.digest)? else {
            return Ok(None);
        };
        Ok(Some(StoredImage {
            manifest: pulled,
            engine,
            code,
        }))
    }

    /// Returns the digest that a reference has in the registry now; that of the reference if it has one.
    ///
    /// # Errors
    ///
    /// The registry does not return the manifest of an image.
    pub async fn resolve(&self, image: &Reference) -> Result<Digest, StoreError> {
        match image.digest() {
            Some(digest) => Ok(digest.clone()),
            None => Ok(self.client.manifest(image).await?.digest),
        }
    }

    /// Pulls the blobs of an image that the cache does not have.
    ///
    /// # Errors
    ///
    /// The registry does not return a plugin, or the cache cannot be written.
    pub async fn pull(&self, image: &Reference) -> Result<StoredImage, StoreError> {
        let known = match image.digest() {
            Some(digest) => self.cached(image, digest)?,
            None => None,
        };
        if let Some(known) = known {
            return Ok(known);
        }
        let manifest = self.client.manifest(image).await?;
        let (engine, code) = layer(&manifest.manifest).map_err(|cause| crate::client::of("pull", image, cause))?;
        // A mirror is asked for the content of a tag, once its digest is known.
        let pinned = image.with_digest(manifest.digest.clone());
        let code = self.blob(&pinned, code).await?;
        // The configuration is small, and needed only to carry the image on.
        self.blob(&pinned, &manifest.manifest.config).await?;
        self.cache.keep(&manifest.text)?;
        Ok(StoredImage { manifest, engine, code })
    }

    async fn blob(&self, image: &Reference, blob: &Descriptor) -> Result<Bytes, StoreError> {
        if let Some(bytes) = self.cache.blob(&blob.digest)? {
            return Ok(bytes);
        }
        let bytes = self.client.blob(image, blob).await?;
        self.cache.keep(&bytes)?;
        Ok(bytes)
    }

    /// Returns the signatures that an image has in the registry now, and those that it had before. A registry that
    /// loses or hides a signature makes none invalid.
    ///
    /// # Errors
    ///
    /// The registry does not answer, or the cache cannot be written.
    pub async fn signatures(&self, image: &Reference, digest: &Digest) -> Result<Vec<Signature>, StoreError> {
        let mut signatures = self.client.signatures(image, digest).await?;
        let before = self.cache.signatures(digest).unwrap_or_default();
        let before: Vec<_> = before.into_iter().filter(|one| !signatures.contains(one)).collect();
        signatures.extend(before);
        signatures.truncate(2 * SIGNATURES_MAX);
        self.cache.keep_signatures(digest, &signatures)?;
        Ok(signatures)
    }

    /// Returns an image of the cache with everything that a layout holds.
    ///
    /// # Errors
    ///
    /// The cache lacks a part of it.
    pub fn saved(&self, image: &Reference, stored: &StoredImage) -> Result<SavedImage, StoreError> {
        let PulledManifest { digest, manifest, .. } = &stored.manifest;
        let config = self.cache.blob(&manifest.config.digest)?;
        let config = config.ok_or_else(|| crate::client::of("save", image, Cause::NotFound))?;
        Ok(SavedImage {
            reference: Some(image.clone()),
            manifest: stored.manifest.clone(),
            blobs: vec![config, stored.code.clone()],
            signatures: self.cache.signatures(digest).unwrap_or_default(),
        })
    }

    /// Keeps an image of a layout.
    ///
    /// # Errors
    ///
    /// The cache cannot be written.
    pub fn keep(&self, image: &SavedImage) -> Result<(), StoreError> {
        for blob in &image.blobs {
            self.cache.keep(blob)?;
        }
        let digest = self.cache.keep(&image.manifest.text)?;
        if !image.signatures.is_empty() {
            self.cache.keep_signatures(&digest, &image.signatures)?;
        }
        if let Some(reference) = &image.reference {
            self.cache.remember(reference, &digest)?;
        }
        Ok(())
    }
}
