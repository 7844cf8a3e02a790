//! Text of plugins as people may see it.

/// Returns the text without characters that control a terminal or cannot be seen, cut to that many characters.
///
/// Besides the control characters these are what Unicode lets a renderer ignore, the marks that change the direction of
/// text, and the separators of lines and paragraphs: with them a message looks like another one, or like none.
pub fn plain(text: &str, chars_max: usize) -> String {
    text.chars().filter(|c| !is_hidden(*c)).take(chars_max).collect()
}

/// Returns the text as [`plain`] does, with spaces in place of its line breaks and tabs, so that words stay apart.
pub fn one_line(text: &str, chars_max: usize) -> String {
    let spaced = text.chars().map(|c| if matches!(c, '\n' | '\t') { ' ' } else { c });
    spaced.filter(|c| !is_hidden(*c)).take(chars_max).collect()
}

/// True for a text that [`plain`] would leave as it is.
pub(crate) fn is_plain(text: &str, chars_max: usize) -> bool {
    text.len() <= chars_max && !text.chars().any(is_hidden)
}

/// Control characters, and those that are `Default_Ignorable_Code_Point`, `Bidi_Control` or an interlinear annotation.
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
