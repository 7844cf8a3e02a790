//! Plugins as signed artifacts in OCI registries.
//!
//! A plugin is an image with one layer, its code ([`artifact`]). A [`Client`] pushes and pulls it, a [`Cache`] keeps it
//! on disk, [`trust`] decides about signatures, and [`layout`] carries it to sites without a registry.
//!
//! The crate knows neither engines nor Kubernetes. It runs no code that it pulls, and it never returns bytes whose
//! digest it has not verified.

pub mod artifact;
mod cache;
mod client;
mod credentials;
mod digest;
mod error;
pub mod layout;
pub mod manifest;
mod reference;
pub mod signature;
mod source;
mod store;
pub mod trust;
mod trust_file;
mod trust_sources;

pub use cache::{Cache, CacheError, KnownReference};
pub use client::mirrors::{InvalidMirror, Mirror, Mirrors};
pub use client::{Access, Client, Limits, PulledManifest};
pub use credentials::{Credential, Credentials, CredentialsError, Helpers};
pub use digest::Digest;
pub use error::{Cause, MirrorFailure, RegistryError};
pub use reference::{InvalidReference, Reference, is_below};
pub use source::{RegistryImages, SourceOptions};
pub use store::{Store, StoreError, StoredImage};
