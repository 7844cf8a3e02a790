//! Suggestions for misspelt names, and for names that only a document has.

/// Maximum length of a name that is compared with others, in bytes. The time of a comparison grows with the product of
/// both lengths, and is not part of the budget of a call.
const COMPARED_BYTES_MAX: usize = 40;

/// Returns the known name that a misspelt one probably stands for, ignoring case. A name of one or two letters, or of
/// more than 40 bytes, has none; otherwise a quarter of its letters may differ, and at least one.
pub fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    if name.len() > COMPARED_BYTES_MAX {
        return None;
    }
    let distance = |other: &&str| strsim::damerau_levenshtein(&name.to_lowercase(), &other.to_lowercase());
    let is_compared = |other: &&str| *other != name && other.len() <= COMPARED_BYTES_MAX;
    let found = known.into_iter().filter(is_compared).min_by_key(distance)?;
    (name.len() > 2 && distance(&found) <= (name.len() / 4).max(1)).then_some(found)
}

/// Returns the setting that has the place of one that only a document of Karmada names, as advice in a sentence.
pub fn alternative(name: &str) -> Option<&'static str> {
    match name.trim_start_matches('-') {
        "evict-plugins" => Some(
            "eviction checks are plugins, and `composition: {eviction-check: …}` of the list of plugins says which of them \
             must release; the built-in check ResourceHealth is always one of them",
        ),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::{COMPARED_BYTES_MAX, nearest};

    #[test]
    fn a_name_is_suggested_only_if_it_is_near() {
        let known = [
            "kind",
            "feature-gates",
            "resource-eviction-rate",
            "unreachable",
            "InterpretHealth",
        ];
        let check = |name: &str, expected: Option<&str>| assert_eq!(nearest(name, known), expected, "{name}");
        check("knid", Some("kind"));
        check("Feature-Gate", Some("feature-gates"));
        check("resource-evicton-rat", Some("resource-eviction-rate"));
        check("unreachabel", Some("unreachable"));
        check("interprethealth", Some("InterpretHealth"));
        check("InterpretHealt", Some("InterpretHealth"));
        check("colour", None);
        check("Health", None);
        check("in", None);
        check("kind", None);
    }

    #[test]
    fn long_names_are_not_compared() {
        let of_length = |length: usize| "a".repeat(length);
        let (shorter, longest) = (of_length(COMPARED_BYTES_MAX - 1), of_length(COMPARED_BYTES_MAX));
        let too_long = of_length(COMPARED_BYTES_MAX + 1);
        assert_eq!(nearest(&shorter, [longest.as_str()]), Some(longest.as_str()));
        assert_eq!(nearest(&longest, [too_long.as_str()]), None);
        assert_eq!(nearest(&too_long, [longest.as_str()]), None);
    }
}
