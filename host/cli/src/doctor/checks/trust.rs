//! Checks of `PluginTrust` objects: mistakes, and images that the trust file covers too.

use bulkhead_oci::is_below;

use crate::doctor::facts::Trust;
use crate::doctor::finding::Section;

/// Adds the findings about all objects.
pub(super) fn check(trust: &Trust, section: &mut Section) {
    for object in &trust.objects {
        let place = format!("PluginTrust {}", object.name);
        for mistake in &object.mistakes {
            let remedy = format!(
                "kubectl edit plugintrust {}; the part with the mistake trusts no image",
                object.name
            );
            section.error(&place, mistake, remedy);
        }
        for images in &object.images {
            of_rule(&place, images, trust, section);
        }
    }
}

/// Compares a rule of an object with those of the trust file, which come first.
fn of_rule(place: &str, images: &str, trust: &Trust, section: &mut Section) {
    let file = trust.file.as_deref().unwrap_or_default();
    if let Some(first) = trust.images.iter().find(|first| is_below(images, first)) {
        section.warning(
            place,
            format!("its rule for {images} does not count: the trust file {file} has a rule for {first}"),
            "remove one of the two rules",
        );
        return;
    }
    for first in trust.images.iter().filter(|first| is_below(first, images)) {
        section.note(
            place,
            format!("its rule for {images} does not count for {first}, which the trust file {file} has a rule for"),
            "",
        );
    }
}
