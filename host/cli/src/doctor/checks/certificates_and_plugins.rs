//! Checks for certificates that expire, and for plugins that do not load or are not trusted enough.

use super::trust;
use crate::doctor::facts::{Facts, PluginImage};
use crate::doctor::finding::{Section, count};

/// Remaining validity of a certificate below which a warning is reported, in days.
const ENDS_SOON_DAYS: i64 = 14;
const DAY_MS: i64 = 24 * 3600 * 1000;

pub(super) fn certificates(facts: &Facts, section: &mut Section) {
    let first = facts
        .certificates
        .iter()
        .filter_map(|certificate| Some((certificate.ends?, certificate)))
        .min_by_key(|(ends, _)| *ends);
    section.summary = match first {
        None => {
            section.skipped = facts.certificates.is_empty();
            count(facts.certificates.len(), "certificate")
        }
        Some((ends, one)) => format!(
            "{}; first to expire: {}, on {}",
            count(facts.certificates.len(), "certificate"),
            one.what,
            day(ends)
        ),
    };
    for certificate in &facts.certificates {
        let place = format!("{} in {}", certificate.what, certificate.place);
        if let Some(error) = &certificate.error {
            section.error(&place, format!("cannot be read: {error}"), &certificate.remedy);
        }
        let Some(ends) = certificate.ends else { continue };
        let left_days = ends.millis_since(facts.now).div_euclid(DAY_MS);
        if ends <= facts.now {
            section.error(place, format!("expired on {}", day(ends)), &certificate.remedy);
        } else if left_days < ENDS_SOON_DAYS {
            section.warning(
                place,
                format!(
                    "expires in {}, on {}",
                    count(left_days.unsigned_abs() as usize, "day"),
                    day(ends)
                ),
                &certificate.remedy,
            );
        }
    }
}

fn day(time: bulkhead_core::time::Time) -> String {
    time.timestamp().strftime("%Y-%m-%d").to_string()
}

pub(super) fn plugins(facts: &Facts, section: &mut Section) {
    let active = facts.plugins.iter().filter(|plugin| plugin.refused.is_none()).count();
    section.summary = format!("{active} of {} load", count(facts.plugins.len(), "plugin"));
    section.skipped = facts.plugins.is_empty() && facts.trust.objects.is_empty();
    if let Some(error) = &facts.plugin_error {
        section.error(
            "--plugin-directory",
            error,
            "`bulkhead run` does not start without the list",
        );
    }
    for plugin in &facts.plugins {
        if let Some(refused) = &plugin.refused {
            let remedy =
                "run bulkhead plugin test for details; without an older version in force its calls are not answered";
            section.error(format!("plugin {}", plugin.name), refused, remedy);
        }
        if let Some(image) = &plugin.image {
            of_image(&format!("plugin {}", plugin.name), image, section);
        }
    }
    trust::check(&facts.trust, section);
}

/// Checks the image of a plugin: signature, digest, registry, and permitted calls.
fn of_image(place: &str, image: &PluginImage, section: &mut Section) {
    let PluginImage {
        listed,
        loaded,
        signer,
        unreachable,
        answers,
        permitted,
    } = image;
    if signer.is_none() {
        section.warning(
            place,
            format!("no signature of its image {listed} is required, so everyone who can write to the registry can replace it"),
            "bulkhead plugin sign, then a rule with the key in the file of --plugin-trust",
        );
    }
    if !listed.contains('@') {
        section.warning(
            place,
            format!("its image {listed} has no digest, and a tag can move"),
            format!("image: {loaded}"),
        );
    }
    if let Some(why) = unreachable {
        section.warning(
            place,
            format!("the version of the cache is loaded: {why}"),
            "mend the access to the registry; a process without this cache cannot load the plugin",
        );
    }
    if permitted.is_none() {
        let answers = answers.join(", ");
        section.warning(
            place,
            format!("it may answer every kind of call, and a newer version may answer more than {answers}"),
            format!("kinds: [{answers}] in a rule of the file of --plugin-trust"),
        );
    }
}
