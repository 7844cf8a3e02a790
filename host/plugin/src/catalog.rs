//! Sources of the list of plugins and of their code.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, Metadata};
use std::path::PathBuf;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::SystemTime;
use std::{fmt, io};

use bulkhead_core::composition::Composition;
use bulkhead_core::manifest::{Digest, PluginManifest};
use bulkhead_core::policy::{EngineKind, SignedImage};
use serde_saphyr::Spanned;

use crate::manifest::{API_VERSION, KIND, stage_of};
use crate::yaml::Position;
use crate::{FoundPlugin, Grant, ImageProblem, Images, LoadError, LoadStage, PluginList, PluginSource, yaml};

/// Name of the list in a directory or in the data of a ConfigMap.
pub const LIST: &str = "plugins.yaml";

/// Message about a path without a directory.
const NO_DIRECTORY: &str = "there is no such directory; a directory of plugins has a plugins.yaml, or components \
                            (.wasm) and scripts (.lua)";

/// Source of plugins.
pub trait Catalog: Send + Sync {
    /// Returns a value that changes whenever the result of [`Catalog::read`] may have changed. Cheap.
    fn fingerprint(&self) -> Fingerprint;

    /// Reads the list and the code. A problem with one plugin is reported in its entry; an error concerns the whole
    /// list.
    fn read(&self) -> Result<Listing, CatalogError>;

    /// Returns true while code is on its way, so that a start waits for it.
    fn is_pending(&self) -> bool {
        false
    }

    /// Verifies an image that is in force against the current trust, as [`Images::verify_again`] does. A catalog
    /// without images withdraws none.
    ///
    /// # Errors
    ///
    /// The trust in the image was withdrawn.
    fn verify_again(&self, _image: &str, _code: &Digest) -> Result<Grant, ImageProblem> {
        Ok(Grant::default())
    }
}

/// State of a catalog at some time; useful only for comparison.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fingerprint {
    files: Vec<FileMark>,
    revisions: Vec<u64>,
}

impl Fingerprint {
    /// Returns the fingerprint of a catalog with a revision number.
    pub(crate) fn of_revision(revision: u64) -> Self {
        Self {
            files: Vec::new(),
            revisions: vec![revision],
        }
    }

    /// Combines the fingerprints of two catalogs.
    pub(crate) fn and(mut self, other: Self) -> Self {
        self.files.extend(other.files);
        self.revisions.extend(other.revisions);
        self
    }
}

/// Metadata of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
struct FileMark {
    path: PathBuf,
    /// Path with symbolic links resolved.
    real: Option<PathBuf>,
    length: u64,
    modified: Option<SystemTime>,
}

impl FileMark {
    fn of(path: PathBuf) -> Self {
        let metadata = fs::metadata(&path);
        let length = metadata.as_ref().map_or(0, Metadata::len);
        let modified = metadata.and_then(|metadata| metadata.modified()).ok();
        let real = fs::canonicalize(&path).ok();
        Self {
            path,
            real,
            length,
            modified,
        }
    }
}

/// Contents of a catalog.
#[derive(Clone, Debug)]
pub struct Listing {
    /// Rules for combining the answers of several policies.
    pub composition: Composition,
    /// Plugins in order.
    pub plugins: Vec<CatalogEntry>,
    /// Error for the part that could not be read and keeps its previous contents; none if everything was read.
    pub stale: Option<CatalogError>,
}

/// Plugin of a catalog.
#[derive(Clone, Debug)]
pub struct CatalogEntry {
    /// Name, unique in the listing.
    pub name: String,
    /// Generation of the object that it comes from; none for a file.
    pub generation: Option<i64>,
    /// Manifest, if it could be read.
    pub manifest: Option<Box<PluginManifest>>,
    /// Image that the list or the object names; none for a file or an object with its code.
    pub image: Option<String>,
    /// Limits that the trust in its image sets, also for one that is not available.
    pub grant: Grant,
    /// Manifest and code, or the reason why they are not available.
    pub found: Result<FoundPlugin, LoadError>,
    /// Reason why there is a newer version that is not used; none if there is no such version.
    pub newer: Option<LoadError>,
}

/// Error that concerns the whole list.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{origin}: {message}")]
pub struct CatalogError {
    /// File or object, with line and column if known.
    pub origin: String,
    /// Cause and remedy, with the field if known.
    pub message: String,
}

/// Directory of plugins. A `plugins.yaml` names its plugins; without one, every component and script in the directory
/// is a plugin with the file's name. Symbolic links are followed, so a directory may be swapped as Kubernetes swaps
/// mounted ConfigMaps.
pub struct Directory {
    path: PathBuf,
    /// Source of the images that the list names.
    images: Option<Arc<dyn Images>>,
}

impl Directory {
    /// Returns the catalog of a directory, which need not exist yet.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self {
            path: path.into(),
            images: None,
        }
    }

    /// Returns the catalog with a source of the images that its list names.
    pub fn with_images(self, images: Arc<dyn Images>) -> Self {
        Self {
            images: Some(images),
            ..self
        }
    }

    fn files(&self) -> io::Result<Vec<PathBuf>> {
        let mut files = Vec::new();
        for entry in fs::read_dir(&self.path)? {
            files.push(entry?.path());
        }
        files.sort();
        Ok(files)
    }

    /// Lists every component and script with a default manifest.
    fn bare(&self) -> Result<Listing, CatalogError> {
        let files = self.files().map_err(|error| match error.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => self.error(NO_DIRECTORY),
            _ => self.error(&error.to_string()),
        })?;
        let manifests = files.iter().filter_map(|file| {
            let engine = match file.extension()?.to_str()? {
                "wasm" => EngineKind::Wasm,
                "lua" => EngineKind::Lua,
                _ => return None,
            };
            Some(PluginManifest::of_file(
                file.file_stem()?.to_str()?,
                engine,
                file.file_name()?.to_str()?,
            ))
        });
        Ok(listing(
            Composition::default(),
            manifests.map(|manifest| (None, manifest)),
            None,
            |file| self.fetch(file),
        ))
    }

    fn fetch(&self, file: &str) -> (String, io::Result<Vec<u8>>) {
        let path = self.path.join(file);
        (path.display().to_string(), fs::read(&path))
    }

    fn error(&self, message: &str) -> CatalogError {
        CatalogError {
            origin: self.path.display().to_string(),
            message: message.to_owned(),
        }
    }
}

impl Catalog for Directory {
    fn fingerprint(&self) -> Fingerprint {
        let files = self.files().unwrap_or_default();
        Fingerprint {
            files: files.into_iter().map(FileMark::of).collect(),
            revisions: self.images.iter().map(|images| images.revision()).collect(),
        }
    }

    fn is_pending(&self) -> bool {
        self.images.as_ref().is_some_and(|images| images.is_pending())
    }

    fn verify_again(&self, image: &str, code: &Digest) -> Result<Grant, ImageProblem> {
        self.images
            .as_ref()
            .map_or_else(|| Ok(Grant::default()), |images| images.verify_again(image, code))
    }

    fn read(&self) -> Result<Listing, CatalogError> {
        let path = self.path.join(LIST);
        match fs::read_to_string(&path) {
            Ok(text) => parse(&path.display().to_string(), &text, self.images.as_deref(), |file| {
                self.fetch(file)
            }),
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => self.bare(),
            Err(error) => Err(CatalogError {
                origin: path.display().to_string(),
                message: error.to_string(),
            }),
        }
    }
}

/// Files by name in memory, such as the data of a ConfigMap: a `plugins.yaml` and the files that it names.
#[derive(Debug)]
pub struct Data {
    origin: String,
    state: RwLock<DataState>,
}

#[derive(Debug)]
struct DataState {
    files: BTreeMap<String, Vec<u8>>,
    revision: u64,
}

impl Data {
    /// Returns the catalog of an object's data; `origin` names the object in messages, such as `ConfigMap
    /// bulkhead-system/plugins`.
    pub fn new(origin: impl Into<String>, files: BTreeMap<String, Vec<u8>>) -> Self {
        Self {
            origin: origin.into(),
            state: RwLock::new(DataState { files, revision: 0 }),
        }
    }

    /// Replaces the data.
    pub fn set(&self, files: BTreeMap<String, Vec<u8>>) {
        let mut state = self.state.write().unwrap_or_else(PoisonError::into_inner);
        *state = DataState {
            files,
            revision: state.revision + 1,
        };
    }
}

/// A catalog shared with its owner.
impl<C: Catalog + ?Sized> Catalog for Arc<C> {
    fn fingerprint(&self) -> Fingerprint {
        (**self).fingerprint()
    }

    fn read(&self) -> Result<Listing, CatalogError> {
        (**self).read()
    }

    fn is_pending(&self) -> bool {
        (**self).is_pending()
    }

    fn verify_again(&self, image: &str, code: &Digest) -> Result<Grant, ImageProblem> {
        (**self).verify_again(image, code)
    }
}

impl Catalog for Data {
    fn fingerprint(&self) -> Fingerprint {
        let revision = self.state.read().unwrap_or_else(PoisonError::into_inner).revision;
        Fingerprint::of_revision(revision)
    }

    fn read(&self) -> Result<Listing, CatalogError> {
        let origin = format!("{} {LIST}", self.origin);
        let error = |message: &str| CatalogError {
            origin: origin.clone(),
            message: message.to_owned(),
        };
        let files = &self.state.read().unwrap_or_else(PoisonError::into_inner).files;
        let list = files
            .get(LIST)
            .ok_or_else(|| error("is missing; it lists the plugins"))?;
        let text = std::str::from_utf8(list).map_err(|_| error("is not UTF-8 text"))?;
        parse(&origin, text, None, |file| {
            let missing = || io::Error::new(io::ErrorKind::NotFound, "the data has no such key");
            (
                format!("{} {file}", self.origin),
                files.get(file).cloned().ok_or_else(missing),
            )
        })
    }
}

fn parse(
    origin: &str,
    text: &str,
    images: Option<&dyn Images>,
    fetch: impl Fn(&str) -> (String, io::Result<Vec<u8>>),
) -> Result<Listing, CatalogError> {
    let error = |message: String| CatalogError {
        origin: origin.to_owned(),
        message,
    };
    let list: PluginList = serde_saphyr::from_str(text).map_err(|problem| CatalogError {
        origin: format!("{origin}{}", yaml::position(&problem)),
        message: yaml::message(text, &problem),
    })?;
    if list.api_version != API_VERSION || list.kind != KIND {
        let found = format!("{} {}", list.api_version, list.kind);
        return Err(error(format!(
            "is a {found:?}; a list of plugins is {API_VERSION} {KIND}"
        )));
    }
    let mut names = BTreeSet::new();
    for Spanned {
        value: manifest,
        referenced,
        ..
    } in &list.plugins
    {
        if !names.insert(manifest.name.as_str()) {
            return Err(CatalogError {
                origin: format!("{origin}:{}", Position::from(*referenced)),
                message: format!("a second plugin is named {:?}; names are unique", manifest.name),
            });
        }
    }
    let named = list.plugins.iter().filter_map(|spanned| spanned.value.image.clone());
    let named = named.collect();
    let manifests = list
        .plugins
        .into_iter()
        .map(|spanned| (Some(Position::from(spanned.referenced)), spanned.value));
    if let Some(images) = images {
        images.listed(LIST, named);
    }
    Ok(listing(list.composition, manifests, images, fetch))
}

fn listing(
    composition: Composition,
    manifests: impl Iterator<Item = (Option<Position>, PluginManifest)>,
    images: Option<&dyn Images>,
    fetch: impl Fn(&str) -> (String, io::Result<Vec<u8>>),
) -> Listing {
    let listed = |(position, manifest): (Option<Position>, PluginManifest)| {
        let name = manifest.name.clone();
        let at = position.map(|at| format!("{LIST}:{at}: ")).unwrap_or_default();
        if let Some(entry) = of_image(&at, &manifest, images) {
            return entry;
        }
        let kept = Some(Box::new(manifest.clone()));
        CatalogEntry {
            name,
            generation: None,
            manifest: kept,
            image: None,
            grant: Grant::default(),
            found: found(&at, LIST, manifest, &fetch),
            newer: None,
        }
    };
    Listing {
        composition,
        plugins: manifests.map(listed).collect(),
        stale: None,
    }
}

/// Returns the entry of a plugin whose code is in a registry; `None` for another one, for one with mistakes, and
/// without images. Messages begin with `at`.
pub(crate) fn of_image(at: &str, manifest: &PluginManifest, images: Option<&dyn Images>) -> Option<CatalogEntry> {
    let (images, image) = (images?, manifest.image.as_deref()?);
    if !manifest.mistakes().is_empty() {
        return None;
    }
    let name = manifest.name.clone();
    let refused = |problem: ImageProblem| LoadError {
        plugin: name.clone(),
        origin: image.to_owned(),
        stage: problem.stage,
        message: format!("{at}{}", problem.message),
    };
    let (manifest, grant, found, newer) = match images.find(image, manifest.moved_tag) {
        Err(problem) => (manifest.clone(), images.grant(image), Err(refused(problem)), None),
        Ok(image) => {
            let manifest = manifest.clone().with_code(image.engine, &image.origin);
            let read = |_: &str| (image.origin.clone(), Ok::<_, String>(image.code));
            let signed = SignedImage {
                reference: image.origin.clone(),
                signer: image.signer,
            };
            let found = found(at, &image.origin, manifest.clone(), read).map(|found| FoundPlugin {
                grant: image.grant.clone(),
                source: PluginSource {
                    image: Some(signed),
                    ..found.source
                },
                ..found
            });
            (manifest, image.grant, found, image.newer.map(refused))
        }
    };
    Some(CatalogEntry {
        name,
        generation: None,
        manifest: Some(Box::new(manifest)),
        image: Some(image.to_owned()),
        grant,
        found,
        newer,
    })
}

/// Returns a plugin with its code. Messages begin with `at`; `origin` is used for a manifest without code.
pub(crate) fn found<E: fmt::Display>(
    at: &str,
    origin: &str,
    manifest: PluginManifest,
    fetch: impl FnOnce(&str) -> (String, Result<Vec<u8>, E>),
) -> Result<FoundPlugin, LoadError> {
    let plugin = manifest.name.clone();
    let origin = manifest.code().map_or(origin, |(_, file)| file).to_owned();
    let mistakes = manifest.mistakes();
    let messages: Vec<_> = mistakes.iter().map(ToString::to_string).collect();
    if !messages.is_empty() {
        return Err(LoadError {
            plugin,
            origin,
            stage: LoadStage::Verified,
            message: format!("{at}{}", messages.join("; ")),
        });
    }
    FoundPlugin::find(manifest, fetch).map_err(|problem| {
        let message = format!("{at}{problem}");
        LoadError {
            plugin,
            origin,
            stage: stage_of(problem.kind),
            message,
        }
    })
}
