//! Images of lists of plugins: pulled in the background, served from the cache.
//!
//! [`Images::find`] never waits. An image is served as soon as the cache has it and its signature counts, so a process
//! starts while the registry is down. Each failed attempt has a pause, which doubles. The digest that a tag had when it
//! was seen first stays in force until its reference permits that it moves.
//!
//! The sources of trust are compared each time that the catalog asks for the revision, so that a withdrawal needs no
//! restart.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use bulkhead_core::manifest::{self, MovedTag};
use bulkhead_plugin::{FoundImage, Grant, ImageProblem, Images, LoadStage, TrustObjects};
use tokio::sync::Notify;
use tokio::task::JoinSet;

use crate::signature::Signature;
use crate::trust::Requirements;
use crate::trust_sources::{TrustMarks, TrustSources};
use crate::{Digest, Reference, Store, StoreError, StoredImage};

/// Maximum number of images that are pulled concurrently.
const PULLS_MAX: usize = 4;
/// Pause without a due image.
const PAUSE_MAX: Duration = Duration::from_hours(1);

/// Options of images.
#[derive(Clone, Debug)]
pub struct SourceOptions {
    /// Trust file. Without one and without objects every image is accepted.
    pub trust: Option<PathBuf>,
    /// `PluginTrust` objects of the control plane; none without a control plane. Images that no rule of the trust file
    /// covers are held until they are listed.
    pub trust_objects: Option<Arc<TrustObjects>>,
    /// Interval at which tags are resolved again.
    pub tag_interval: Duration,
    /// Pause after the first failed attempt.
    pub retry_base: Duration,
    /// Maximum pause after a failed attempt.
    pub retry_max: Duration,
}

impl Default for SourceOptions {
    fn default() -> Self {
        Self {
            trust: None,
            trust_objects: None,
            tag_interval: Duration::from_mins(5),
            retry_base: Duration::from_secs(2),
            retry_max: Duration::from_mins(5),
        }
    }
}

/// Images of registries. Dropping it ends all pulls.
#[derive(Debug)]
pub struct RegistryImages {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct Shared {
    store: Store,
    options: SourceOptions,
    trust: TrustSources,
    state: Mutex<State>,
    /// Wakes the thread for a new image.
    wake: Notify,
    /// Ends the thread.
    stop: Notify,
}

#[derive(Debug, Default)]
struct State {
    revision: u64,
    images: BTreeMap<(Reference, MovedTag), Image>,
    /// Images that each list names.
    lists: BTreeMap<String, BTreeSet<String>>,
    /// State of the sources of trust when they were last compared.
    trust_marks: TrustMarks,
    /// Signatures of the images that were served: a cache that is emptied takes none out of force.
    signatures: BTreeMap<Digest, Vec<Signature>>,
}

/// State of one image.
#[derive(Debug)]
struct Image {
    /// True while an attempt is running.
    is_running: bool,
    /// True if the catalog waits for the next attempt, even if it ends as the last one did.
    is_awaited: bool,
    /// True once the image was served.
    is_found: bool,
    /// Number of attempts that have ended.
    attempts: u64,
    /// Number of failed attempts in a row.
    failures: u32,
    /// Time of the next attempt; none if there is nothing to do.
    due: Option<Instant>,
    /// Result of the last attempt.
    problem: Option<ImageProblem>,
}

/// Need for another attempt after one that succeeded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Again {
    /// None: the image has a digest, and every signer of its rule has signed it.
    Never,
    /// The tag may move, or another signer may sign.
    Later,
}

/// Failed attempt.
struct Failure {
    problem: ImageProblem,
    /// Pause that the registry asks for.
    retry_after: Option<Duration>,
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        let retry_after = match &error {
            StoreError::Registry(error) => error.cause.retry_after(),
            StoreError::Cache(_) => None,
        };
        Self {
            problem: fetch(&error),
            retry_after,
        }
    }
}

fn fetch(error: &StoreError) -> ImageProblem {
    ImageProblem {
        stage: LoadStage::Fetched,
        message: format!("{} ({})", error, error.reason()),
    }
}

fn verify(message: impl ToString) -> ImageProblem {
    ImageProblem {
        stage: LoadStage::Verified,
        message: message.to_string(),
    }
}

/// Checks the signatures of an image. Returns the name of the signer; none if no signature is required.
fn verified(
    image: &Reference,
    digest: &Digest,
    code: &Digest,
    requirements: Option<&Requirements>,
    signatures: &[Signature],
) -> Result<Option<String>, ImageProblem> {
    let Some(requirements) = requirements else {
        return Ok(None);
    };
    requirements.verify(image, digest, code, signatures).map_err(verify)
}

impl RegistryImages {
    /// Starts the thread that pulls images.
    ///
    /// # Errors
    ///
    /// The thread cannot be started.
    pub fn start(store: Store, options: SourceOptions) -> io::Result<Self> {
        let shared = Arc::new(Shared {
            store,
            trust: TrustSources::new(options.trust.clone(), options.trust_objects.clone()),
            options,
            state: Mutex::default(),
            wake: Notify::new(),
            stop: Notify::new(),
        });
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let of_thread = Arc::clone(&shared);
        let thread = std::thread::Builder::new().name("plugin-images".to_owned());
        let thread = thread.spawn(move || runtime.block_on(work(of_thread)))?;
        Ok(Self {
            shared,
            thread: Some(thread),
        })
    }
}

impl Drop for RegistryImages {
    fn drop(&mut self) {
        self.shared.stop.notify_one();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Images for RegistryImages {
    fn revision(&self) -> u64 {
        let marks = self.shared.trust.marks();
        let mut state = self.shared.lock();
        if state.trust_marks != marks {
            state.trust_marks = marks;
            state.revision += 1;
            // Other keys may need signatures that the cache does not have.
            for image in state.images.values_mut().filter(|image| !image.is_running) {
                (image.due, image.is_awaited) = (Some(Instant::now()), true);
            }
            self.shared.wake.notify_one();
        }
        state.revision
    }

    fn is_pending(&self) -> bool {
        let state = self.shared.lock();
        state
            .images
            .values()
            .any(|image| image.attempts == 0 && !image.is_found)
    }

    fn listed(&self, list: &str, images: BTreeSet<String>) {
        let mut state = self.shared.lock();
        state.lists.insert(list.to_owned(), images);
        let State { images, lists, .. } = &mut *state;
        images.retain(|(image, _), _| lists.values().any(|list| list.contains(&image.to_string())));
    }

    fn find(&self, image: &str, moved: MovedTag) -> Result<FoundImage, ImageProblem> {
        let image: Reference = image.parse().map_err(verify)?;
        let (requirements, untrusted) = self.shared.requirements(&image)?;
        let problem = untrusted.or(self.shared.want(&image, moved));
        let digest = image
            .digest()
            .cloned()
            .or_else(|| self.shared.store.cache().known(&image));
        let stored = match &digest {
            Some(digest) => self
                .shared
                .store
                .cached(&image, digest)
                .map_err(|error| fetch(&error))?,
            None => None,
        };
        let Some(stored) = stored else {
            self.shared.retry(&image, moved);
            let pulling = || ImageProblem {
                stage: LoadStage::Fetched,
                message: format!("{image} is being pulled"),
            };
            return Err(problem.unwrap_or_else(pulling));
        };
        let digest = stored.manifest.digest.clone();
        let code = stored.manifest.code_digest().clone();
        let signatures = self.shared.signatures(&digest);
        let signer = match verified(&image, &digest, &code, requirements.as_ref(), &signatures) {
            Ok(signer) => signer,
            Err(refused) => {
                self.shared.retry(&image, moved);
                return Err(match problem.filter(|problem| problem.stage == LoadStage::Fetched) {
                    Some(problem) => verify(format!("{}; {}", refused.message, problem.message)),
                    None => refused,
                });
            }
        };
        self.shared.found(&image, moved, &digest, signatures);
        let StoredImage { engine, code, .. } = stored;
        Ok(FoundImage {
            engine,
            origin: image.with_digest(digest).to_string(),
            code: code.into(),
            grant: requirements.map(Requirements::into_grant).unwrap_or_default(),
            signer,
            newer: problem,
        })
    }

    fn grant(&self, image: &str) -> Grant {
        let Ok(image) = image.parse() else {
            return Grant::default();
        };
        match self.shared.requirements(&image) {
            Ok((Some(requirements), _)) => requirements.into_grant(),
            Ok((None, _)) | Err(_) => Grant::default(),
        }
    }

    fn verify_again(&self, image: &str, code: &manifest::Digest) -> Result<Grant, ImageProblem> {
        let image: Reference = image.parse().map_err(verify)?;
        let (Some(digest), Ok(code)) = (image.digest(), format!("sha256:{code}").parse::<Digest>()) else {
            return Err(verify(format!("{image} has no digest")));
        };
        let Some(requirements) = self.shared.trust.requirements_in_force(&image).map_err(verify)? else {
            return Ok(Grant::default());
        };
        let signatures = self.shared.signatures(digest);
        verified(&image, digest, &code, Some(&requirements), &signatures)?;
        Ok(requirements.into_grant())
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the requirements for an image, and the reason why a newer version of the trust file is not used. Without
    /// trust there are no requirements.
    fn requirements(&self, image: &Reference) -> Result<(Option<Requirements>, Option<ImageProblem>), ImageProblem> {
        let (requirements, problem) = self.trust.requirements(image).map_err(verify)?;
        let kept =
            |error| format!("{error}; the rules before stay in force until the file is mended (TrustUnreadable)");
        Ok((requirements, problem.map(|error| verify(kept(error)))))
    }

    /// Returns the known signatures of an image.
    fn signatures(&self, digest: &Digest) -> Vec<Signature> {
        let mut all = self.store.cache().signatures(digest).unwrap_or_default();
        let served = self.lock().signatures.get(digest).cloned().unwrap_or_default();
        all.extend(served.into_iter().filter(|one| !all.contains(one)).collect::<Vec<_>>());
        all
    }

    /// Registers an image. Returns the problem of its last attempt.
    fn want(&self, image: &Reference, moved: MovedTag) -> Option<ImageProblem> {
        let mut state = self.lock();
        let new = || Image {
            is_running: false,
            is_awaited: true,
            is_found: false,
            attempts: 0,
            failures: 0,
            due: Some(Instant::now()),
            problem: None,
        };
        let entry = state.images.entry((image.clone(), moved)).or_insert_with(new);
        let problem = entry.problem.clone();
        drop(state);
        self.wake.notify_one();
        problem
    }

    /// Records that an image is served, so that a start does not wait for its registry.
    fn found(&self, image: &Reference, moved: MovedTag, digest: &Digest, signatures: Vec<Signature>) {
        let mut state = self.lock();
        if let Some(entry) = state.images.get_mut(&(image.clone(), moved)) {
            entry.is_found = true;
        }
        state.signatures.insert(digest.clone(), signatures);
    }

    /// Makes an image due that has nothing to do, because the cache or the trust has changed.
    fn retry(&self, image: &Reference, moved: MovedTag) {
        let mut state = self.lock();
        let entry = state.images.get_mut(&(image.clone(), moved));
        if let Some(entry) = entry.filter(|entry| !entry.is_running && entry.failures == 0) {
            (entry.due, entry.is_awaited) = (Some(Instant::now()), true);
        }
        drop(state);
        self.wake.notify_one();
    }

    /// Takes an image that is due, and returns the time until the next one is.
    fn next_due(&self) -> Result<(Reference, MovedTag), Duration> {
        let now = Instant::now();
        let mut state = self.lock();
        let waiting = state.images.iter_mut().filter(|(_, image)| !image.is_running);
        let first = waiting
            .filter_map(|(key, image)| Some((image.due?, key, image)))
            .min_by_key(|(due, ..)| *due);
        match first {
            Some((due, key, image)) if due <= now => {
                image.is_running = true;
                Ok(key.clone())
            }
            Some((due, ..)) => Err(due.saturating_duration_since(now).min(PAUSE_MAX)),
            None => Err(PAUSE_MAX),
        }
    }

    /// Records the end of an attempt.
    fn ended(&self, key: &(Reference, MovedTag), result: Result<Again, Failure>) {
        let mut state = self.lock();
        let Some(image) = state.images.get_mut(key) else { return };
        let now = Instant::now();
        image.is_running = false;
        image.attempts += 1;
        let before = image.problem.take();
        match result {
            Ok(again) => {
                image.failures = 0;
                image.due = (again == Again::Later).then_some(now + self.options.tag_interval);
            }
            Err(Failure { problem, retry_after }) => {
                let doubled = self.options.retry_base.saturating_mul(1 << image.failures.min(16));
                let pause = retry_after.unwrap_or(doubled).min(self.options.retry_max);
                image.failures = image.failures.saturating_add(1);
                image.problem = Some(problem);
                image.due = Some(now + pause);
            }
        }
        let is_news = std::mem::take(&mut image.is_awaited) || before != image.problem;
        state.revision += u64::from(is_news);
    }

    /// Pulls an image and its signatures, and compares its tag.
    async fn attempt(&self, image: &Reference, moved: MovedTag) -> Result<Again, Failure> {
        let failed = |problem| Failure {
            problem,
            retry_after: None,
        };
        let (requirements, _) = self.requirements(image).map_err(failed)?;
        let requirements = requirements.as_ref();
        let cache = self.store.cache();
        let known = image.digest().cloned().or_else(|| cache.known(image));
        let current = match (&known, image.digest()) {
            (Some(known), Some(_)) => known.clone(),
            _ => self.store.resolve(image).await?,
        };
        let wanted = match &known {
            Some(known) if moved == MovedTag::Refuse => known.clone(),
            _ => current.clone(),
        };
        let pinned = image.with_digest(wanted.clone());
        let stored = self.store.pull(&pinned).await?;
        let code = stored.manifest.code_digest();
        let verified = || verified(image, &wanted, code, requirements, &self.signatures(&wanted));
        let lacks_signatures =
            || requirements.is_some_and(|rule| rule.lacks_signatures(&wanted, &self.signatures(&wanted)));
        if lacks_signatures() {
            let fetched = self.store.signatures(&pinned, &wanted).await;
            if verified().is_err() {
                fetched?;
            }
        } else if requirements.is_none() && self.trust.may_gain_rules() && self.signatures(&wanted).is_empty() {
            // With them, the first object that demands a signature takes no signed image out of force.
            let _ = self.store.signatures(&pinned, &wanted).await;
        }
        verified().map_err(failed)?;
        // A tag counts only once its image is complete and trusted.
        if image.digest().is_none() && known.as_ref() != Some(&wanted) {
            cache.remember(image, &wanted).map_err(StoreError::from)?;
            // The catalog has the earlier digest.
            self.lock().revision += 1;
        }
        if current == wanted {
            let is_settled = image.digest().is_some() && !lacks_signatures();
            return Ok(if is_settled { Again::Never } else { Again::Later });
        }
        Err(failed(verify(format!(
            "the tag {image} has moved from {wanted} to {current}, and the first stays in force; name \
             {}@{current} to accept it, or set movedTag: follow (TagMoved)",
            image.name()
        ))))
    }
}

/// Pulls images until it is stopped.
async fn work(shared: Arc<Shared>) {
    let mut attempts = JoinSet::new();
    loop {
        let mut pause = PAUSE_MAX;
        while attempts.len() < PULLS_MAX {
            match shared.next_due() {
                Ok(key) => {
                    let shared = Arc::clone(&shared);
                    attempts.spawn(async move {
                        let result = shared.attempt(&key.0, key.1).await;
                        shared.ended(&key, result);
                    });
                }
                Err(until) => {
                    pause = until;
                    break;
                }
            }
        }
        tokio::select! {
            biased;
            () = shared.stop.notified() => return,
            Some(_) = attempts.join_next() => {}
            () = shared.wake.notified() => {}
            () = tokio::time::sleep(pause) => {}
        }
    }
}
