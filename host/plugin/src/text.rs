//! Sanitizing of plugin text for display.

/// Returns the text without invisible characters and characters that control a terminal, truncated to `chars_max`
/// characters.
///
/// In addition to control characters, these are the characters that Unicode allows a renderer to ignore, marks that
/// change the direction of text, and separators of lines and paragraphs. They could make a message look like another
/// one, or empty.
pub fn plain(text: &str, chars_max: usize) -> String {
    text.chars().filter(|c| !is_hidden(*c)).take(chars_max).collect()
}

/// Returns the text like [`plain`], but with line breaks and tabs replaced by spaces, so that words stay separate.
pub fn one_line(text: &str, chars_max: usize) -> String {
    let spaced = text.chars().map(|c| if matches!(c, '\n' | '\t') { ' ' } else { c });
    spaced.filter(|c| !is_hidden(*c)).take(chars_max).collect()
}

/// Returns true for a text that [`plain`] would not change.
pub(crate) fn is_plain(text: &str, chars_max: usize) -> bool {
    let is_visible = |byte: &u8| matches!(byte, b' '..=b'~');
    text.len() <= chars_max && (text.as_bytes().iter().all(is_visible) || !text.chars().any(is_hidden))
}

/// Returns true for control characters, and for characters that are `Default_Ignorable_Code_Point`, `Bidi_Control` or
/// an interlinear annotation.
fn is_hidden(c: char) -> bool {
    c.is_control()
        || matches!(
            c,
            '\u{ad}'
                | '\u{34f}'
                | '\u{61c}'
                | '\u{115f}'..='\u{1160}'
                | '\u{17b4}'..='\u{17b5}'
                | '\u{180b}'..='\u{180f}'
                | '\u{200b}'..='\u{200f}'
                | '\u{2028}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}'
                | '\u{3164}'
                | '\u{fe00}'..='\u{fe0f}'
                | '\u{feff}'
                | '\u{ffa0}'
                | '\u{fff0}'..='\u{fffb}'
                | '\u{1bca0}'..='\u{1bca3}'
                | '\u{1d173}'..='\u{1d17a}'
                | '\u{e0000}'..='\u{e0fff}'
        )
}

#[cfg(test)]
mod tests {
    use super::{is_plain, one_line, plain};

    #[test]
    fn text_has_no_characters_that_cannot_be_seen() {
        let check = |text: &str, expected: &str| {
            assert_eq!(plain(text, 100), expected, "{text:?}");
            assert_eq!(is_plain(text, 100), text == expected, "{text:?}");
        };
        check("ready: größer als 3 日本 ✓", "ready: größer als 3 日本 ✓");
        check("\u{1b}[2J\u{7}\0\r\n\u{9b}", "[2J");
        check("safe\u{202e}dessap ton", "safedessap ton");
        check("\u{2066}a\u{2069}\u{200f}b\u{61c}", "ab");
        check("ad\u{200b}min\u{feff}\u{ad}\u{2060}", "admin");
        check("one\u{2028}two\u{2029}", "onetwo");
        check("hi\u{e0041}\u{e007f}\u{fe0f}\u{e0100}", "hi");
    }

    #[test]
    fn text_is_cut_to_size() {
        assert_eq!(plain("äöü", 2), "äö");
        assert_eq!(one_line("one\n\ttwo\u{7}", 6), "one  t");
        assert!(!is_plain("abc", 2));
    }
}
