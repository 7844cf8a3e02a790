//! Signatures of `bulkhead` that `cosign` verifies, and the other way round.

use anyhow::{Context as _, ensure};

use super::place::Place;
use crate::site::Site;

/// Options of `cosign` without services of Sigstore.
const OFFLINE: [&str; 3] = ["--yes", "--use-signing-config=false", "--tlog-upload=false"];
/// Type of the attestation with a conformance report.
const CONFORMANCE: &str = "https://bulkhead.dev/conformance/v1";

/// `cosign` accepts the signatures of `bulkhead plugin sign` with a plain key and with one that `cosign` has encrypted,
/// and the attestation with a conformance report. It accepts none by another key.
pub(super) fn verified_by_cosign(site: &Site) -> anyhow::Result<()> {
    let place = Place::start(site, "signatures-ours")?;
    place.bulkhead(&["new", "mine", "--kind", "eviction-check", "--lang", "lua"])?;
    place.make_cosign_key()?;
    let image = place.image("plugins/mine:1");
    let pushed = place.bulkhead(&["push", &image, "mine"])?;
    let verify = |key: &str| {
        let key = format!("{key}.pub");
        place.cosign(&["verify", "--insecure-ignore-tlog", "--key", &key, &pushed])
    };
    for key in ["team", "cosign"] {
        ensure!(
            verify(key).is_err(),
            "cosign accepts an image that {key} has not signed"
        );
        let signed = place.bulkhead(&["sign", &image, "--key", &format!("{key}.key")])?;
        ensure!(signed == pushed, "signed {signed}, not {pushed}");
        verify(key)?;
    }
    ensure!(verify("other").is_err(), "cosign accepts another key");
    let report = place.bulkhead(&["test", "mine", "-o", "json"])?;
    place.write("report.json", report)?;
    place.bulkhead(&["sign", &image, "--key", "team.key", "--report", "report.json"])?;
    let attestation = ["verify-attestation", "--insecure-ignore-tlog", "--type", CONFORMANCE];
    let of_key = |key: &str| place.cosign(&[&attestation[..], &["--key", key, &pushed]].concat());
    of_key("team.pub")?;
    ensure!(of_key("other.pub").is_err(), "cosign accepts a report by another key");
    Ok(())
}

/// `bulkhead` accepts the signatures of `cosign sign --key` in both formats with a trust file, and none by another key.
pub(super) fn made_by_cosign(site: &Site) -> anyhow::Result<()> {
    let place = Place::start(site, "signatures-theirs")?;
    place.make_cosign_key()?;
    let formats = [("bundle", &[][..]), ("tag", &["--new-bundle-format=false"][..])];
    for (format, options) in formats {
        // A signature counts for a digest, in whichever repository it was found: each format has its own plugin.
        place.bulkhead(&["new", format, "--kind", "eviction-check", "--lang", "lua"])?;
        let repository = format!("plugins/{format}");
        let image = place.image(&format!("{repository}:1"));
        let pushed = place.bulkhead(&["push", &image, format])?;
        let pull = ["pull", &image, "--plugin-trust", "trust.yaml"];
        place.trust(&["cosign"])?;
        place.fails(&pull, 2, "is not trusted: it has no signature")?;
        let sign = ["sign", "--key", "cosign.key", &pushed];
        place.cosign(&[&sign[..], &OFFLINE, options].concat())?;
        // The format is the one that the option asks for.
        let (_, digest) = pushed.split_once("@sha256:").context("the image has a digest")?;
        let tags = place.oras(&["repo", "tags", &place.image(&repository)])?;
        let tag = format!("sha256-{digest}.sig");
        let has_tag = tags.lines().any(|line| line == tag);
        ensure!(has_tag == (format == "tag"), "signed with {options:?}, tags are {tags}");
        let verified = place.bulkhead(&["verify", &image, "--plugin-trust", "trust.yaml"])?;
        ensure!(verified == format!("{pushed} is signed by cosign"), "{verified}");
        ensure!(place.bulkhead(&pull)? == pushed, "{image} is not pulled");
        place.trust(&["team"])?;
        place.fails(&pull, 2, "none of its 1 signatures is by team")?;
    }
    Ok(())
}
