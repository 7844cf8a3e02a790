//! Images that one tool pushes and another one pulls.

use anyhow::{Context as _, ensure};

use super::place::Place;
use super::plugin;
use crate::site::Site;

/// Media types of configuration and code.
const WASM: [&str; 2] = ["application/vnd.wasm.config.v0+json", "application/wasm"];
const LUA: [&str; 2] = [
    "application/vnd.bulkhead.lua.config.v1+json",
    "application/vnd.bulkhead.lua.v1",
];

/// `oras` reads manifest and code of a script and of a component, and pushes both with the media type of the layer
/// alone.
pub(super) fn oras(site: &Site) -> anyhow::Result<()> {
    let place = Place::start(site, "oras")?;
    place.write("check.lua", plugin::script("first"))?;
    place.guest("deployment-health", "health.wasm")?;
    for (file, types) in [("check.lua", LUA), ("health.wasm", WASM)] {
        let ours = place.image(&format!("ours/{file}:1"));
        let pushed = place.bulkhead(&["push", &ours, file])?;
        let manifest = place.manifest(&ours)?;
        let found = [&manifest["config"]["mediaType"], &manifest["layers"][0]["mediaType"]];
        ensure!(found == types, "{file} has the media types {found:?}");
        let digest = place.oras(&["resolve", &ours])?;
        ensure!(
            pushed.ends_with(&format!("@{digest}")),
            "{pushed} has the digest {digest}"
        );
        place.oras(&["pull", &ours, "--output", "pulled"])?;
        place.check_equal(file, &format!("pulled/{file}"))?;

        let [_, layer] = types;
        let theirs = place.image(&format!("theirs/{file}:1"));
        place.oras(&["push", &theirs, &format!("{file}:{layer}")])?;
        let digest = place.oras(&["resolve", &theirs])?;
        check_pull(&place, &theirs, &digest, file)?;
    }
    Ok(())
}

/// `wkg` reads a component, and pushes one.
pub(super) fn wkg(site: &Site) -> anyhow::Result<()> {
    let place = Place::start(site, "wkg")?;
    place.guest("deployment-health", "health.wasm")?;
    let ours = place.image("ours/health:1");
    place.bulkhead(&["push", &ours, "health.wasm"])?;
    place.wkg(&["pull", &ours, "--output", "pulled.wasm"])?;
    place.check_equal("health.wasm", "pulled.wasm")?;

    let theirs = place.image("theirs/health:1");
    place.wkg(&["push", &theirs, "health.wasm"])?;
    let digest = place.oras(&["resolve", &theirs])?;
    check_pull(&place, &theirs, &digest, "health.wasm")
}

/// A component of 35 MB is pushed, and pulled twice by its digest with one download.
pub(super) fn large(site: &Site) -> anyhow::Result<()> {
    let place = Place::start(site, "large")?;
    place.large_guest("large.wasm")?;
    let pushed = place.bulkhead(&["push", &place.image("plugins/large:1"), "large.wasm"])?;
    for pulled in ["first.wasm", "second.wasm"] {
        let printed = place.bulkhead(&["pull", &pushed, "--file", pulled])?;
        ensure!(printed == pushed, "pulled {printed}, not {pushed}");
        place.check_equal("large.wasm", pulled)?;
    }
    let manifest = place.manifest(&pushed)?;
    let digest = manifest["layers"][0]["digest"].as_str();
    let digest = digest.context("the layer has no digest")?;
    let downloads = place.downloads("plugins/large", digest)?;
    ensure!(downloads == 1, "two pulls made {downloads} downloads");
    Ok(())
}

/// Pulls an image of another tool. Its digest and its code have to be those that were pushed.
fn check_pull(place: &Place<'_>, image: &str, digest: &str, file: &str) -> anyhow::Result<()> {
    let pulled = place.bulkhead(&["pull", image, "--file", "pulled-code"])?;
    let (name, _) = image.rsplit_once(':').context("the image has a tag")?;
    ensure!(pulled == format!("{name}@{digest}"), "pulled {pulled}, not {digest}");
    place.check_equal(file, "pulled-code")
}
