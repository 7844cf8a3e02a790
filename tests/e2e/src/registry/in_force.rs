//! An image in force on a real control plane: it outlives its registry and a restart, a moved tag replaces it only with
//! permission, and a revoked key takes it out of force.

use std::fs;

use anyhow::{Context as _, ensure};
use rustix::process::Signal;

use super::place::Place;
use super::plugin::{self, check_decisions, in_force, line_of, loaded, object, refused};
use crate::federation::{Federation, Plan, QUICK};
use crate::plugins::{apply, condition};
use crate::site::Site;
use crate::soundness::wait_for_line;
use crate::storm;

/// Name of the plugin.
const CHECK: &str = "check";
/// Number of Deployments that are evicted while the registry is down.
const DEPLOYMENTS: usize = 20;

/// A federation with a plugin in force.
struct Running<'s> {
    place: Place<'s>,
    federation: Federation<'s>,
    /// Image of the plugin, by a tag.
    image: String,
    /// Digest of its code.
    digest: String,
}

/// The version in force stays while its registry is down, and after a restart. It leaves only for a signed image of a
/// tag that may move, or when its key is revoked.
pub(super) async fn survives(site: &Site) -> anyhow::Result<()> {
    let mut running = Box::pin(start(site)).await?;
    load_large(&running).await?;
    Box::pin(restart_without_registry(&mut running)).await?;
    move_tag(&mut running).await?;
    revoke_key(&running).await
}

/// Starts a registry and a federation, and waits until a signed plugin is in force.
async fn start(site: &Site) -> anyhow::Result<Running<'_>> {
    let place = Place::start(site, "in-force")?;
    place.write("first.lua", plugin::script("first"))?;
    let image = place.image("plugins/check:1");
    place.bulkhead(&["push", &image, "first.lua"])?;
    place.bulkhead(&["sign", &image, "--key", "team.key"])?;
    place.trust(&["team"])?;
    let trust = format!("--plugin-trust={}", place.path("trust.yaml").display());
    let access = place.access();
    let access = access.iter().map(String::as_str).chain([trust.as_str()]);
    let settings: Vec<_> = QUICK.iter().copied().chain(access).collect();
    let plan = Plan {
        settings: &settings,
        ..Plan::default()
    };
    let federation = Box::pin(Federation::start(site, "registry-in-force-federation", plan)).await?;
    apply(&federation, &object(CHECK, &image, ""))?;
    loaded(&federation, CHECK).await?;
    let digest = in_force(&federation, CHECK).await?;
    Ok(Running {
        place,
        federation,
        image,
        digest,
    })
}

/// An image of 35 MB is in force, too: no object could contain it.
async fn load_large(running: &Running<'_>) -> anyhow::Result<()> {
    let Running { place, federation, .. } = running;
    place.large_guest("large.wasm")?;
    let pushed = place.bulkhead(&["push", &place.image("plugins/large:1"), "large.wasm"])?;
    place.bulkhead(&["sign", &pushed, "--key", "team.key"])?;
    apply(federation, &object("large", &pushed, ""))?;
    loaded(federation, "large").await?;
    federation.kubectl(&["delete", "plugin", "large"]).map(drop)
}

/// While the registry is down, the next process has the plugin in force before it leads. It names the failure, and no
/// decision of a storm fails.
async fn restart_without_registry(running: &mut Running<'_>) -> anyhow::Result<()> {
    let Running {
        place,
        federation,
        digest,
        ..
    } = running;
    storm::prepare(federation, DEPLOYMENTS).await?;
    let recorder = storm::Recorder::start(&federation.client, "member1");
    place.registry.stop();
    federation.signal(0, Signal::TERM)?;
    federation.wait_ended(0).await?;
    federation.start_bulkhead(&[])?;
    wait_for_line(federation, 1, " elected").await?;
    let process = federation.processes().get(1).context("there is no second process")?;
    let log = fs::read_to_string(process.log())?;
    let line = format!("is active, sha256 {digest}");
    ensure!(
        line_of(&log, &line)? < line_of(&log, " elected")?,
        "the process leads before the plugin is in force; see {}",
        process.log().display()
    );
    let texts = ["the registry is unreachable", "(RegistryUnreachable)"];
    refused(federation, CHECK, &texts).await?;

    federation.member("member1")?.kill_api_server();
    storm::everything_on(&federation.client, DEPLOYMENTS, "member2").await?;
    recorder.check(DEPLOYMENTS, DEPLOYMENTS).await?;
    check_decisions(federation, 1, CHECK).await?;
    check_unchanged(running).await
}

/// A tag that names another image is refused. With permission to follow it, the image still needs its signature.
async fn move_tag(running: &mut Running<'_>) -> anyhow::Result<()> {
    running.place.registry.start_again()?;
    let Running {
        place,
        federation,
        image,
        digest,
    } = &*running;
    place.write("second.lua", plugin::script("second"))?;
    place.bulkhead(&["push", image, "second.lua"])?;
    // A change of the trust file ends the pause after the failed attempts.
    place.trust(&["team"])?;
    refused(federation, CHECK, &["has moved from sha256:", "(TagMoved)"]).await?;
    check_unchanged(running).await?;
    apply(federation, &object(CHECK, image, ", movedTag: follow"))?;
    refused(federation, CHECK, &["it has no signature; `bulkhead plugin sign`"]).await?;
    check_unchanged(running).await?;
    place.bulkhead(&["sign", image, "--key", "team.key"])?;
    loaded(federation, CHECK).await?;
    let second = in_force(federation, CHECK).await?;
    ensure!(second != *digest, "the tag is not followed");
    running.digest = second;
    Ok(())
}

/// Without the key in the trust file, the plugin leaves at once: its calls are faults. It returns with the key.
async fn revoke_key(running: &Running<'_>) -> anyhow::Result<()> {
    let Running { place, federation, .. } = running;
    place.trust(&["other"])?;
    let texts = ["none of its 1 signatures is by other", "(TrustWithdrawn)"];
    refused(federation, CHECK, &texts).await?;
    let message = "no version is in force, so every eviction-check call is a fault";
    condition(federation, CHECK, "Answering", "False", message).await?;
    place.trust(&["team"])?;
    loaded(federation, CHECK).await?;
    check_unchanged(running).await
}

/// Checks that the version in force is the known one.
async fn check_unchanged(running: &Running<'_>) -> anyhow::Result<()> {
    let found = in_force(&running.federation, CHECK).await?;
    ensure!(found == running.digest, "{found} is in force, not {}", running.digest);
    Ok(())
}
