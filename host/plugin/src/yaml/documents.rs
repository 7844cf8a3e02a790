//! Parser of documents that accepts what Go's parser accepts.

use std::borrow::Cow;

use serde::de::DeserializeOwned;
use serde_saphyr::{DuplicateKeyPolicy, Error, Options};

/// Maximum number of lines whose indentation is corrected. Each of them costs one more pass over the text.
const CORRECTIONS_MAX: usize = 100;
/// Part of the parser's message about a line of a quoted text.
const LOOSELY_INDENTED: &str = "invalid indentation in multiline quoted scalar";

/// Documents of a text.
#[derive(Clone, Debug, PartialEq)]
pub struct Documents<T> {
    /// Documents that are not empty, in order.
    pub documents: Vec<T>,
    /// Deviations from YAML that were accepted, each with its line.
    pub warnings: Vec<String>,
}

/// Reads the documents of a text. An error has the text with the corrections that were made before it.
pub(super) fn parse<'text, T: DeserializeOwned>(
    text: &'text str,
    options: &Options,
) -> Result<Documents<T>, (Cow<'text, str>, Box<Error>)> {
    let (mut text, mut options, mut warnings) = (Cow::Borrowed(text), options.clone(), Vec::new());
    let mut corrections = 0;
    loop {
        let error = match serde_saphyr::from_multiple_with_options(&text, options.clone()) {
            Ok(documents) => return Ok(Documents { documents, warnings }),
            Err(error) => error,
        };
        let line = error.location().map_or(0, |location| location.line());
        if let Error::DuplicateMappingKey { key, .. } = error.without_snippet() {
            // The parser reports the first repeated key only.
            let key = key.as_deref().unwrap_or_default();
            warnings.push(format!(
                "line {line}: the key {key:?} is repeated; the last value of each key counts"
            ));
            options.duplicate_keys = DuplicateKeyPolicy::LastWins;
            continue;
        }
        corrections += 1;
        let is_loose = corrections <= CORRECTIONS_MAX && error.to_string().contains(LOOSELY_INDENTED);
        let Some(corrected) = is_loose.then(|| indented(&text, line)).flatten() else {
            return Err((text, Box::new(error)));
        };
        let warning = format!("line {line}: a line of a quoted text must be indented further than its key");
        if warnings.last() != Some(&warning) {
            warnings.push(warning);
        }
        text = Cow::Owned(corrected);
    }
}

/// Indents a line further than itself and the line before. The value of a quoted text does not depend on the
/// indentation of its lines. Returns `None` for an empty line, which is never at fault: the text ends within quotes.
fn indented(text: &str, line: u64) -> Option<String> {
    let index = usize::try_from(line).ok()?.checked_sub(1)?;
    let mut lines: Vec<&str> = text.split('\n').collect();
    let spaces = |line: &str| line.len() - line.trim_start_matches(' ').len();
    let current = *lines.get(index).filter(|line| !line.trim().is_empty())?;
    let before = index
        .checked_sub(1)
        .and_then(|before| lines.get(before))
        .map_or(0, |line| spaces(line));
    let corrected = format!(
        "{}{}",
        " ".repeat(before.max(spaces(current)) + 1),
        current.trim_start_matches(' ')
    );
    *lines.get_mut(index)? = &corrected;
    Some(lines.join("\n"))
}
