//! Client of the OCI distribution API, for the requests that plugins need.
//!
//! It never retries: its callers know when a retry makes sense. Every body has a bound, every request a time limit,
//! and content is verified before it is returned. Credentials are sent to the registry and to the token server that it
//! names, and never over plain HTTP unless the registry is named as one without TLS.

mod auth;
mod body;
pub(crate) mod mirrors;
mod push;
mod referrers;
mod tls;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT, AUTHORIZATION, WWW_AUTHENTICATE};
use http::{HeaderValue, StatusCode};
use reqwest::redirect::Policy;
use reqwest::{RequestBuilder, Response};
use tokio::sync::Mutex;

use crate::client::mirrors::{Failures, Mirrors};
use crate::error::{Cause, RegistryError};
use crate::manifest::{DOCKER_MANIFEST, Descriptor, IMAGE_INDEX, IMAGE_MANIFEST, Manifest};
use crate::{Credentials, Digest, Reference};

/// Maximum number of redirects. Registries redirect downloads to a store of blobs.
const REDIRECTS_MAX: usize = 5;
/// User agent of all requests.
const USER_AGENT: &str = concat!("bulkhead/", env!("CARGO_PKG_VERSION"));

/// Access to registries.
#[derive(Clone, Debug, Default)]
pub struct Access {
    /// Credentials by registry.
    pub credentials: Credentials,
    /// PEM file with certificates of authorities that are trusted in addition to those of the system.
    pub ca_file: Option<PathBuf>,
    /// PEM files with the certificate of the client and its key.
    pub client_certificate: Option<(PathBuf, PathBuf)>,
    /// Registries that are reached without TLS, with their ports.
    pub plain_http: BTreeSet<String>,
    /// Mirrors, which are asked first.
    pub mirrors: Mirrors,
    /// Limits of time and size.
    pub limits: Limits,
}

/// Limits of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Time limit of a connection.
    pub connect: Duration,
    /// Maximum time without data.
    pub idle: Duration,
    /// Time limit of a whole request, its body included.
    pub total: Duration,
    /// Maximum size of a manifest in bytes.
    pub manifest_bytes_max: u64,
    /// Maximum size of the code of a plugin in bytes.
    pub layer_bytes_max: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(10),
            idle: Duration::from_secs(30),
            total: Duration::from_mins(10),
            manifest_bytes_max: 4 << 20,
            layer_bytes_max: 128 << 20,
        }
    }
}

/// Client of registries.
#[derive(Debug)]
pub struct Client {
    http: reqwest::Client,
    credentials: Credentials,
    plain_http: BTreeSet<String>,
    mirrors: Mirrors,
    limits: Limits,
    /// Value of the header `Authorization` by repository and scope.
    authorizations: Mutex<BTreeMap<(String, Scope), HeaderValue>>,
}

/// Scope of an access token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Scope {
    Pull,
    Push,
}

/// A manifest and its text.
#[derive(Clone, Debug)]
pub struct PulledManifest {
    /// Digest of the text.
    pub digest: Digest,
    /// Text as the registry has it.
    pub text: Bytes,
    /// Parsed text.
    pub manifest: Manifest,
}

impl PulledManifest {
    /// Returns the digest of the code, which is that of the only layer.
    pub fn code_digest(&self) -> &Digest {
        self.manifest.layers.first().map_or(&self.digest, |layer| &layer.digest)
    }
}

impl Client {
    /// Creates a client.
    ///
    /// # Errors
    ///
    /// A certificate or a key cannot be used.
    pub fn new(access: Access) -> Result<Self, Cause> {
        let tls = tls::config(access.ca_file.as_deref(), access.client_certificate.as_ref()).map_err(Cause::Access)?;
        let plain_http = access.plain_http.clone();
        let redirects = Policy::custom(move |attempt| {
            if attempt.previous().len() > REDIRECTS_MAX {
                attempt.error(format!("there are more than {REDIRECTS_MAX}"))
            } else if !is_permitted(&plain_http, attempt.url()) {
                let message = format!("{} is not reached over TLS; --plain-http permits it", attempt.url());
                attempt.error(message)
            } else {
                attempt.follow()
            }
        });
        let http = reqwest::Client::builder()
            .tls_backend_preconfigured(tls)
            .redirect(redirects)
            .connect_timeout(access.limits.connect)
            .read_timeout(access.limits.idle)
            .timeout(access.limits.total)
            .user_agent(USER_AGENT)
            .build()
            .map_err(|error| Cause::Access(error.to_string()))?;
        Ok(Self {
            http,
            credentials: access.credentials,
            plain_http: access.plain_http,
            mirrors: access.mirrors,
            limits: access.limits,
            authorizations: Mutex::default(),
        })
    }

    /// Returns the manifest of an image, from the first of its mirrors and its registry that has it. Its digest is
    /// verified if the reference has one.
    ///
    /// # Errors
    ///
    /// Neither a mirror nor the registry returns the manifest of one image.
    pub async fn manifest(&self, image: &Reference) -> Result<PulledManifest, RegistryError> {
        let mut failures = Failures::default();
        for mirror in self.mirrors.of(image) {
            match self.find_manifest(&mirror).await {
                Ok(found) => return Ok(found),
                Err(cause) => failures.add(image, &mirror, cause),
            }
        }
        let found = self.find_manifest(image).await;
        found.map_err(|cause| failures.of_pull(image, cause))
    }

    /// Returns the manifest of an image from exactly the registry of the reference, without mirrors. Its digest is
    /// verified if the reference has one.
    ///
    /// # Errors
    ///
    /// The registry does not return the manifest of one image.
    pub async fn manifest_at(&self, image: &Reference) -> Result<PulledManifest, RegistryError> {
        self.find_manifest(image)
            .await
            .map_err(|cause| of("pull", image, cause))
    }

    async fn find_manifest(&self, image: &Reference) -> Result<PulledManifest, Cause> {
        let url = self.url(image, &format!("manifests/{}", image.version()));
        let accept = [IMAGE_MANIFEST, DOCKER_MANIFEST, IMAGE_INDEX].join(", ");
        let request = || self.http.get(&url).header(ACCEPT, accept.as_str());
        let response = self.send(image, Scope::Pull, &url, request).await?;
        let response = body::check(response, image, &[StatusCode::OK]).await?;
        let text = body::read(response, self.limits.manifest_bytes_max, None).await?;
        let digest = Digest::of(&text);
        if let Some(expected) = image.digest().filter(|expected| **expected != digest) {
            return Err(Cause::WrongDigest {
                expected: expected.clone(),
                found: digest,
            });
        }
        let manifest = Manifest::parse(&text)?;
        Ok(PulledManifest { digest, text, manifest })
    }

    /// Returns a blob of an image, from the first of its mirrors and its registry that has it. Its size and digest are
    /// verified.
    ///
    /// # Errors
    ///
    /// Neither a mirror nor the registry returns the blob.
    pub async fn blob(&self, image: &Reference, blob: &Descriptor) -> Result<Bytes, RegistryError> {
        let mut failures = Failures::default();
        for mirror in self.mirrors.of(image) {
            match self.find_blob(&mirror, blob).await {
                Ok(found) => return Ok(found),
                Err(cause) => failures.add(image, &mirror, cause),
            }
        }
        let found = self.find_blob(image, blob).await;
        found.map_err(|cause| failures.of_pull(image, cause))
    }

    /// Returns a blob of an image from exactly the registry of the reference. Its size and digest are verified.
    ///
    /// # Errors
    ///
    /// The registry does not return the blob, or another one.
    pub(crate) async fn blob_at(&self, image: &Reference, blob: &Descriptor) -> Result<Bytes, RegistryError> {
        self.find_blob(image, blob)
            .await
            .map_err(|cause| of("pull", image, cause))
    }

    async fn find_blob(&self, image: &Reference, blob: &Descriptor) -> Result<Bytes, Cause> {
        let bytes_max = self.limits.layer_bytes_max;
        if blob.size > bytes_max {
            return Err(Cause::TooLarge { bytes_max });
        }
        let url = self.url(image, &format!("blobs/{}", blob.digest));
        let response = self.send(image, Scope::Pull, &url, || self.http.get(&url)).await?;
        let response = body::check(response, image, &[StatusCode::OK]).await?;
        let bytes = body::read(response, blob.size, Some(blob.size)).await?;
        let found = Digest::of(&bytes);
        if found != blob.digest {
            return Err(Cause::WrongDigest {
                expected: blob.digest.clone(),
                found,
            });
        }
        Ok(bytes)
    }

    /// Returns a URL of the API for a repository.
    fn url(&self, image: &Reference, rest: &str) -> String {
        let (registry, repository) = (image.registry(), image.repository());
        let scheme = if self.plain_http.contains(registry) {
            "http"
        } else {
            "https"
        };
        format!("{scheme}://{registry}/v2/{repository}/{rest}")
    }

    /// Sends a request. After a 401 it authenticates and sends it again.
    async fn send(
        &self,
        image: &Reference,
        scope: Scope,
        url: &str,
        request: impl Fn() -> RequestBuilder,
    ) -> Result<Response, Cause> {
        // An upload may be at another host, which must not get the credentials.
        let is_registry = self.is_of_registry(image, url);
        let key = (image.name(), scope);
        let known = self
            .authorizations
            .lock()
            .await
            .get(&key)
            .cloned()
            .filter(|_| is_registry);
        let response = send_with(request(), known).await?;
        if response.status() != StatusCode::UNAUTHORIZED || !is_registry {
            return Ok(response);
        }
        let challenges: Vec<_> = response.headers().get_all(WWW_AUTHENTICATE).iter().cloned().collect();
        drop(response);
        let (authorization, had_credentials) = self.authorize(image, scope, &challenges).await?;
        self.authorizations.lock().await.insert(key, authorization.clone());
        let response = send_with(request(), Some(authorization)).await?;
        if response.status() == StatusCode::UNAUTHORIZED {
            return Err(unauthorized(image, had_credentials));
        }
        Ok(response)
    }

    /// Returns true for a URL with the scheme, host and port of the registry.
    fn is_of_registry(&self, image: &Reference, url: &str) -> bool {
        let origin = |url: &str| reqwest::Url::parse(url).ok().map(|url| url.origin());
        origin(url).is_some_and(|one| Some(one) == origin(&self.url(image, "")))
    }
}

fn unauthorized(image: &Reference, had_credentials: bool) -> Cause {
    Cause::Unauthorized {
        registry: image.registry().to_owned(),
        had_credentials,
    }
}

async fn send_with(request: RequestBuilder, authorization: Option<HeaderValue>) -> Result<Response, Cause> {
    let request = match authorization {
        Some(value) => request.header(AUTHORIZATION, value),
        None => request,
    };
    request.send().await.map_err(|error| Cause::of_request(&error))
}

/// Returns true for a URL with TLS, and for one of a host that is named as one without.
fn is_permitted(plain_http: &BTreeSet<String>, url: &reqwest::Url) -> bool {
    url.scheme() == "https" || plain_http.contains(&authority(url))
}

/// Returns host and port of a URL, as a reference has them.
fn authority(url: &reqwest::Url) -> String {
    let host = url.host_str().unwrap_or_default();
    url.port()
        .map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"))
}

/// Returns the error of an operation on an image.
pub(crate) fn of(operation: &'static str, image: &Reference, cause: Cause) -> RegistryError {
    RegistryError {
        operation,
        image: image.to_string(),
        cause,
        mirrors: Vec::new(),
    }
}
