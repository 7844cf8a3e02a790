//! Access to images of plugins in registries, configured by the command line.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use anyhow::Context as _;
use bulkhead_core::manifest::{Digest, MovedTag};
use bulkhead_oci::trust::Trust;
use bulkhead_oci::{
    Access, Cache, Client, Credentials, Helpers, Mirror, Mirrors, RegistryImages, SourceOptions, Store,
};
use bulkhead_plugin::{Directory, FoundImage, Grant, ImageProblem, Images, LoadStage, Objects, TrustObjects};
use clap::Args;

use crate::help;
use crate::user_folder::{self, Kind};

/// Folder of the cache below that of the program.
const CACHE_FOLDER: &str = "images";

/// Arguments of registries.
#[derive(Args, Clone)]
pub struct ImageArguments {
    /// Cache of images: a folder that only its owner may write to. The default is bulkhead/images in $XDG_CACHE_HOME
    /// or in ~/.cache. A process starts with cached images while the registry is down.
    #[arg(long, value_name = "DIR", help_heading = help::REGISTRIES, env = "BULKHEAD_IMAGE_CACHE", hide_env_values = true)]
    image_cache: Option<PathBuf>,

    /// Credentials of registries: a Docker configuration, or a file with the value of a Secret of type
    /// kubernetes.io/dockerconfigjson. The default is config.json in $DOCKER_CONFIG or in ~/.docker.
    #[arg(long, value_name = "FILE", help_heading = help::REGISTRIES)]
    registry_config: Option<PathBuf>,

    /// Certificates in PEM of authorities that registries are trusted by, in addition to those of the system.
    #[arg(long, value_name = "FILE", help_heading = help::REGISTRIES)]
    registry_ca: Option<PathBuf>,

    /// Certificate in PEM that the client presents to registries.
    #[arg(long, value_name = "FILE", requires = "registry_client_key", help_heading = help::REGISTRIES)]
    registry_client_certificate: Option<PathBuf>,

    /// Key in PEM of the certificate of the client.
    #[arg(long, value_name = "FILE", requires = "registry_client_certificate", help_heading = help::REGISTRIES)]
    registry_client_key: Option<PathBuf>,

    /// Registries that are reached without TLS, as HOST or HOST:PORT.
    #[arg(long, value_name = "HOSTS", value_delimiter = ',', help_heading = help::REGISTRIES)]
    plain_http: Vec<String>,

    /// Mirrors, as PREFIX=MIRROR, such as registry.example.com/plugins=mirror.example.com/plugins. Images with the
    /// prefix are pulled from its mirrors, in this order, and then from their registry. The longest prefix counts.
    #[arg(long, value_name = "MIRRORS", value_delimiter = ',', help_heading = help::REGISTRIES)]
    registry_mirrors: Vec<Mirror>,

    /// Resolve tags at mirrors too. Otherwise mirrors are asked for digests only.
    #[arg(long, default_value_t = false, action = clap::ArgAction::Set, value_name = "true|false",
          help_heading = help::REGISTRIES)]
    registry_mirror_tags: bool,

    /// Trust file (kind PluginTrust): the keys that must have signed the images of a registry, and the calls that
    /// their plugins may answer. With it, an image without a rule is refused; without it and PluginTrust objects, every
    /// image is accepted.
    #[arg(long, value_name = "FILE", help_heading = help::REGISTRIES, env = "BULKHEAD_PLUGIN_TRUST", hide_env_values = true)]
    plugin_trust: Option<PathBuf>,
}

impl ImageArguments {
    /// Returns the path of the trust file.
    pub fn trust(&self) -> Option<&Path> {
        self.plugin_trust.as_deref()
    }

    /// Opens the cache and creates a client. A command of a user runs credential helpers, a server does not.
    ///
    /// # Errors
    ///
    /// The cache, the credentials or a certificate cannot be used.
    pub fn store(&self, helpers: Helpers) -> anyhow::Result<Store> {
        let default = || user_folder::default_folder(Kind::Cache).map(|folder| folder.join(CACHE_FOLDER));
        let folder = self.image_cache.clone().or_else(default);
        let folder = folder.context("there is no folder for images: set --image-cache, or $HOME")?;
        let cache = Cache::open(folder, Cache::BYTES_MAX)?;
        let config = self.registry_config.clone().or_else(Credentials::default_file);
        let credentials = match config {
            Some(path) => Credentials::read(&path, helpers)?,
            None => Credentials::default(),
        };
        let client = Client::new(Access {
            credentials,
            ca_file: self.registry_ca.clone(),
            client_certificate: self
                .registry_client_certificate
                .clone()
                .zip(self.registry_client_key.clone()),
            plain_http: self.plain_http.iter().cloned().collect::<BTreeSet<_>>(),
            mirrors: Mirrors {
                all: self.registry_mirrors.clone(),
                resolve_tags: self.registry_mirror_tags,
            },
            ..Access::default()
        });
        let client = client.map_err(|cause| anyhow::anyhow!("access to registries: {cause}"))?;
        Ok(Store::new(client, cache))
    }

    /// Returns the sources of plugins: a directory, and images once a list or an object names one.
    ///
    /// # Errors
    ///
    /// An argument was given, and the cache, the credentials, a certificate or the trust file cannot be used.
    pub fn sources(&self, directory: Option<&Path>) -> anyhow::Result<PluginSources> {
        let trust = Arc::<TrustObjects>::default();
        let images = LazyImages {
            arguments: self.clone(),
            trust: Arc::clone(&trust),
            started: OnceLock::new(),
        };
        if self.is_given() {
            if let Some(trust) = &self.plugin_trust {
                Trust::read(trust)?;
            }
            let started = images.started.get_or_init(|| images.start());
            started.as_ref().map_err(|error| anyhow::anyhow!("{error}"))?;
        }
        let images: Arc<dyn Images> = Arc::new(images);
        let directory = directory.map(|path| Directory::new(path).with_images(Arc::clone(&images)));
        Ok(PluginSources {
            directory,
            images: Some(images),
            trust,
        })
    }

    /// Returns true if there is any argument.
    fn is_given(&self) -> bool {
        let files = [
            &self.image_cache,
            &self.registry_config,
            &self.registry_ca,
            &self.registry_client_certificate,
            &self.plugin_trust,
        ];
        files.into_iter().any(Option::is_some)
    }

    fn start(&self, trust: &Arc<TrustObjects>) -> Result<RegistryImages, String> {
        let options = SourceOptions {
            trust: self.plugin_trust.clone(),
            trust_objects: Some(Arc::clone(trust)),
            ..SourceOptions::default()
        };
        let store = self.store(Helpers::Refused).map_err(|error| format!("{error:#}"))?;
        RegistryImages::start(store, options).map_err(|error| format!("cannot start a thread to pull images: {error}"))
    }
}

/// Sources of plugins besides the control plane.
#[derive(Default)]
pub struct PluginSources {
    /// Directory of plugins.
    pub(crate) directory: Option<Directory>,
    /// Images that lists and objects name.
    pub(crate) images: Option<Arc<dyn Images>>,
    /// `PluginTrust` objects, which the images that no rule of the trust file covers wait for.
    trust: Arc<TrustObjects>,
}

impl PluginSources {
    /// Returns a set of `Plugin` objects, empty at first, that may name images.
    pub fn objects(&self) -> Arc<Objects> {
        Arc::new(self.images.clone().map(Objects::with_images).unwrap_or_default())
    }

    /// Returns the set of `PluginTrust` objects, which are not listed at first.
    pub fn trust(&self) -> Arc<TrustObjects> {
        Arc::clone(&self.trust)
    }
}

/// Images that are pulled once one is listed, so that a process without images needs no cache.
struct LazyImages {
    arguments: ImageArguments,
    trust: Arc<TrustObjects>,
    started: OnceLock<Result<RegistryImages, String>>,
}

impl LazyImages {
    fn start(&self) -> Result<RegistryImages, String> {
        self.arguments.start(&self.trust)
    }

    fn running(&self) -> Option<&RegistryImages> {
        self.started.get()?.as_ref().ok()
    }
}

impl Images for LazyImages {
    fn revision(&self) -> u64 {
        self.running().map_or(0, Images::revision)
    }

    fn is_pending(&self) -> bool {
        self.running().is_some_and(Images::is_pending)
    }

    fn listed(&self, list: &str, images: BTreeSet<String>) {
        // The state of an image depends on the lists, so they are recorded from the first image on.
        if !images.is_empty() {
            self.started.get_or_init(|| self.start());
        }
        if let Some(running) = self.running() {
            running.listed(list, images);
        }
    }

    fn grant(&self, image: &str) -> Grant {
        self.running().map(|images| images.grant(image)).unwrap_or_default()
    }

    fn verify_again(&self, image: &str, code: &Digest) -> Result<Grant, ImageProblem> {
        self.running()
            .map_or_else(|| Ok(Grant::default()), |images| images.verify_again(image, code))
    }

    fn find(&self, image: &str, moved: MovedTag) -> Result<FoundImage, ImageProblem> {
        match self.started.get_or_init(|| self.start()) {
            Ok(images) => images.find(image, moved),
            Err(message) => Err(ImageProblem {
                stage: LoadStage::Fetched,
                message: message.clone(),
            }),
        }
    }
}
