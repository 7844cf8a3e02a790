//! Images that are refused, and registries that fail, in the middle of a storm: each has its condition and its event
//! with a remedy, the version before stays in force, and no decision fails.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context as _, ensure};

use super::place::Place;
use super::plugin::{self, check_decisions, in_force, loaded, object, refused};
use crate::federation::{Federation, Plan, QUICK};
use crate::plugins::{SOON, apply};
use crate::proxy::{Fault, Proxy};
use crate::site::Site;
use crate::{storm, wait};

/// Name of the plugin.
const CHECK: &str = "check";
/// Number of Deployments to evict. Together with [`RATE`], the storm lasts for most of the failures.
const DEPLOYMENTS: usize = 40;
const RATE: &str = "--resource-eviction-rate=0.3";
/// Delay that is longer than the time without data that a pull accepts.
const LONG: Duration = Duration::from_secs(40);
/// Runs `bulkhead run` with a cache of images of 8 MiB, which is mounted for the process alone.
const SMALL_CACHE: &str = "#!/bin/sh
if [ \"$1\" = run ]; then
    exec unshare --map-root-user --mount \\
        sh -c 'mount -t tmpfs -o size=8m,mode=700 tmpfs \"$0\" && exec \"$@\"' 'CACHE' 'PROGRAM' \"$@\"
fi
exec 'PROGRAM' \"$@\"
";

/// A federation with a plugin in force.
struct Trial<'s> {
    place: Place<'s>,
    /// Proxy in front of the registry.
    proxy: Proxy,
    federation: Federation<'s>,
    /// Image in force, by its digest.
    first: String,
    /// Digest of its code.
    digest: String,
}

/// A storm goes on while the plugin names one image after the other that is refused or cannot be pulled.
pub(super) async fn named(site: &Site) -> anyhow::Result<()> {
    let mut place = Place::start(site, "refusals")?;
    let proxy = Proxy::start(place.upstream()?).await?;
    place.add_host(&proxy.address())?;
    place.trust(&["team"])?;
    place.write("first.lua", plugin::script("first"))?;
    let first = place.bulkhead(&["push", &place.image("plugins/check:first"), "first.lua"])?;
    place.bulkhead(&["sign", &first, "--key", "team.key"])?;
    let small = site
        .of_version(&with_small_cache(&place)?, &site.root)
        .context("running bulkhead with a small cache, which needs unshare and user namespaces")?;
    let mut federation = Box::pin(start(&small, &place, &proxy)).await?;
    apply(&federation, &object(CHECK, &first, ""))?;
    loaded(&federation, CHECK).await?;
    let digest = in_force(&federation, CHECK).await?;

    storm::prepare(&federation, DEPLOYMENTS).await?;
    let recorder = storm::Recorder::start(&federation.client, "member1");
    federation.member("member1")?.kill_api_server();
    let before = called(&federation).await?;
    let mut trial = Trial {
        place,
        proxy,
        federation,
        first,
        digest,
    };
    trial.signatures().await?;
    trial.contents().await?;
    trial.answers().await?;
    trial.connections().await?;
    trial.full_disk().await?;
    let Trial { federation, .. } = trial;
    let after = check_decisions(&federation, 0, CHECK).await?;
    ensure!(after > before, "the plugin was not called during the failures");
    storm::everything_on(&federation.client, DEPLOYMENTS, "member2").await?;
    recorder.check(DEPLOYMENTS, DEPLOYMENTS).await?;
    check_decisions(&federation, 0, CHECK).await.map(drop)
}

/// Waits until the plugin is called, and returns the number of its calls.
async fn called(federation: &Federation<'_>) -> anyhow::Result<f64> {
    let mut calls = 0.0;
    wait::until("the plugin is called", SOON, async || {
        let found = check_decisions(federation, 0, CHECK).await;
        calls = found.map_err(|error| error.to_string())?;
        Ok(())
    })
    .await?;
    Ok(calls)
}

/// Starts a federation whose processes reach the registry, also through the proxy.
async fn start<'s>(site: &'s Site, place: &Place<'_>, proxy: &Proxy) -> anyhow::Result<Federation<'s>> {
    let more = [
        format!("--plugin-trust={}", place.path("trust.yaml").display()),
        format!("--plain-http={}", proxy.address()),
        RATE.to_owned(),
    ];
    let access = place.access();
    let access = access.iter().chain(&more).map(String::as_str);
    // The last of these settings is the rate.
    let settings: Vec<_> = QUICK[..QUICK.len() - 1].iter().copied().chain(access).collect();
    let plan = Plan {
        settings: &settings,
        ..Plan::default()
    };
    Box::pin(Federation::start(site, "registry-refusals-federation", plan)).await
}

/// Writes the program with a small cache. Returns its path.
fn with_small_cache(place: &Place<'_>) -> anyhow::Result<PathBuf> {
    let path = place.path("bulkhead-with-small-cache");
    let text = SMALL_CACHE
        .replace("CACHE", &place.path("cache").display().to_string())
        .replace("PROGRAM", &place.program().display().to_string());
    fs::write(&path, text).with_context(|| format!("writing {}", path.display()))?;
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755))?;
    Ok(path)
}

impl Trial<'_> {
    /// Lets the plugin name another image, which has to be refused with these texts. The first one answers meanwhile.
    async fn refuses(&self, image: &str, texts: &[&str]) -> anyhow::Result<()> {
        let Self {
            federation,
            first,
            digest,
            ..
        } = self;
        apply(federation, &object(CHECK, image, ""))?;
        refused(federation, CHECK, texts).await?;
        let found = in_force(federation, CHECK).await?;
        ensure!(found == *digest, "{texts:?}: {found} is in force, not {digest}");
        apply(federation, &object(CHECK, first, ""))?;
        loaded(federation, CHECK).await
    }

    /// Pushes a next version under a tag. Returns its reference with the digest.
    fn push(&self, tag: &str) -> anyhow::Result<String> {
        self.place.write("next.lua", plugin::script(tag))?;
        let image = self.place.image(&format!("plugins/check:{tag}"));
        self.place.bulkhead(&["push", &image, "next.lua"])
    }

    /// Pushes and signs a next version under a tag. Returns its reference through the proxy.
    fn push_signed(&self, tag: &str) -> anyhow::Result<String> {
        let pushed = self.push(tag)?;
        self.place.bulkhead(&["sign", &pushed, "--key", "team.key"])?;
        Ok(self.through_proxy(tag))
    }

    fn through_proxy(&self, tag: &str) -> String {
        format!("{}/plugins/check:{tag}", self.proxy.address())
    }

    /// No signature, one by another key, and one of another image.
    async fn signatures(&self) -> anyhow::Result<()> {
        let unsigned = self.push("unsigned")?;
        self.refuses(&unsigned, &["it has no signature; `bulkhead plugin sign`"])
            .await?;
        let other = self.push("other")?;
        self.place.bulkhead(&["sign", &other, "--key", "other.key"])?;
        self.refuses(&other, &["none of its 1 signatures is by team; sign it with that key"])
            .await?;
        let copied = self.push("copied")?;
        let tag = |image: &str| {
            let (_, digest) = image.split_once("@sha256:").context("the image has a digest")?;
            anyhow::Ok(format!("sha256-{digest}.sig"))
        };
        let signature = self.place.image(&format!("plugins/check:{}", tag(&self.first)?));
        self.place.oras(&["tag", &signature, &tag(&copied)?])?;
        let texts = ["its signature by team is for another image, sha256:", "; sign this one"];
        self.refuses(&copied, &texts).await
    }

    /// A layer that is no plugin, and a component for a newer contract. `oras` pushes both: `bulkhead` would refuse.
    async fn contents(&self) -> anyhow::Result<()> {
        let Self { place, .. } = self;
        place.write("note.txt", "x")?;
        let text = place.image("plugins/check:text");
        place.oras(&["push", &text, "note.txt:text/plain"])?;
        self.refuses(
            &text,
            &["its layer has media type \"text/plain\"", "(MediaTypeUnknown)"],
        )
        .await?;
        let code = place.guest("deployment-health", "newer.wasm")?;
        place.write("newer.wasm", of_newer_contract(code)?)?;
        let newer = place.image("plugins/check:newer");
        place.oras(&["push", &newer, "newer.wasm:application/wasm"])?;
        place.bulkhead(&["sign", &newer, "--key", "team.key"])?;
        let texts = ["imports bulkhead:policy/log@1.0.0", "supports bulkhead:policy@"];
        self.refuses(&newer, &texts).await
    }

    /// Answers of the registry itself: 404, 401, and none while it is down.
    async fn answers(&mut self) -> anyhow::Result<()> {
        let missing = self.place.image("plugins/check:missing");
        self.refuses(&missing, &["check repository, tag and digest", "(ImageNotFound)"])
            .await?;
        let rejected = self.push("rejected")?;
        self.place.replace_password()?;
        let texts = ["the registry rejected the credentials", "(RegistryUnauthorized)"];
        self.refuses(&rejected, &texts).await?;
        self.place.restore_password()?;
        let down = self.push("down")?;
        self.place.registry.stop();
        self.refuses(&down, &["the registry is unreachable", "(RegistryUnreachable)"])
            .await?;
        self.place.registry.start_again()
    }

    /// A proxy that answers 429, cuts, truncates, changes and delays.
    async fn connections(&self) -> anyhow::Result<()> {
        let (manifests, blobs) = ("/plugins/check/manifests/", "/plugins/check/blobs/");
        let cases = [
            (
                "limited",
                manifests,
                Fault::Overloaded,
                [
                    "limits requests (429); try again after 1 s",
                    "(RegistryTooManyRequests)",
                ],
            ),
            (
                "cut",
                manifests,
                Fault::Closed,
                ["the registry is unreachable", "(RegistryUnreachable)"],
            ),
            (
                "truncated",
                blobs,
                Fault::Truncated(3),
                ["the download was cut off: 3 of", "(BlobTruncated)"],
            ),
            (
                "changed",
                blobs,
                Fault::Changed,
                ["the content has digest", "(DigestMismatch)"],
            ),
            (
                "delayed",
                blobs,
                Fault::Delayed(LONG),
                ["the registry did not answer in time", "(RegistryTimeout)"],
            ),
        ];
        for (tag, part, fault, texts) in cases {
            let image = self.push_signed(tag)?;
            self.proxy.fail(part, fault);
            self.refuses(&image, &texts).await?;
            self.proxy.recover();
        }
        Ok(())
    }

    /// An image that the disk of the cache has no space for.
    async fn full_disk(&self) -> anyhow::Result<()> {
        let Self { place, .. } = self;
        place.large_guest("large.wasm")?;
        let large = place.bulkhead(&["push", &place.image("plugins/check:large"), "large.wasm"])?;
        place.bulkhead(&["sign", &large, "--key", "team.key"])?;
        let texts = [
            "the disk is full; free space, or name another folder with --image-cache",
            "(ImageCacheFull)",
        ];
        self.refuses(&large, &texts).await
    }
}

/// Returns a component with imports of a newer contract than `bulkhead` has.
fn of_newer_contract(mut component: Vec<u8>) -> anyhow::Result<Vec<u8>> {
    const OWN: &[u8] = b"bulkhead:policy/log@0.1.0";
    const NEWER: &[u8] = b"bulkhead:policy/log@1.0.0";
    let places: Vec<_> = (0..component.len())
        .filter(|at| component[*at..].starts_with(OWN))
        .collect();
    ensure!(!places.is_empty(), "the component imports no log");
    for at in places {
        component[at..at + NEWER.len()].copy_from_slice(NEWER);
    }
    Ok(component)
}
