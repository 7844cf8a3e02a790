//! Secrets in text: messages, addresses, arguments.
//!
//! Each rule inspects only a few words. Concatenating clean texts gives a clean text, so a replayed decision has the
//! same messages as the recorded one.

use serde_json::{Deserializer, Value};

use super::{REDACTED, is_secret};

/// Returns a text without some secrets, and their number; an empty text if there are none.
type Rule = fn(&str) -> (String, usize);

/// Removes secrets from a text and returns their number. A rule is asked only about texts with one of its signs.
pub(super) fn clean(text: &mut String) -> usize {
    let rules: [(&[u8], Rule); 5] = [
        (b":", urls),
        (b"=:", pairs),
        (b"-", flags),
        (b" ", redact_bearer_tokens),
        (b"@", user_infos),
    ];
    let mut count = 0;
    for (signs, rule) in rules {
        if !signs.iter().any(|sign| text.as_bytes().contains(sign)) {
            continue;
        }
        let (cleaned, found) = rule(text);
        if found > 0 {
            *text = cleaned;
            count += found;
        }
    }
    count
}

/// Removes secrets from a message, which a guest may have made from the object of the call, and returns their number.
pub(super) fn message(text: &mut String) -> usize {
    let (cleaned, found) = documents(text);
    if found > 0 {
        *text = cleaned;
    }
    found + clean(text)
}

/// Removes JSON objects with texts: parts of the objects of which the journal keeps only an allow-list.
fn documents(text: &str) -> (String, usize) {
    let mut cleaning = Cleaning::new(text);
    for (at, _) in text.match_indices('{') {
        if at < cleaning.copied {
            continue;
        }
        let mut documents = Deserializer::from_str(&text[at..]).into_iter::<Value>();
        if let Some(Ok(document)) = documents.next()
            && holds_text(&document)
        {
            cleaning.replace(at, at + documents.byte_offset(), REDACTED);
        }
    }
    cleaning.finish()
}

fn holds_text(value: &Value) -> bool {
    match value {
        Value::Object(members) => members.values().any(holds_text),
        Value::Array(items) => items.iter().any(holds_text),
        Value::String(text) => !text.is_empty(),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

/// Replacement of parts of a text, from start to end.
struct Cleaning<'a> {
    text: &'a str,
    copied: usize,
    out: String,
    count: usize,
}

impl<'a> Cleaning<'a> {
    fn new(text: &'a str) -> Self {
        Self {
            text,
            copied: 0,
            out: String::new(),
            count: 0,
        }
    }

    fn replace(&mut self, from: usize, to: usize, with: &str) {
        if from < self.copied || self.text[from..to] == *with {
            return;
        }
        self.out.push_str(&self.text[self.copied..from]);
        self.out.push_str(with);
        self.copied = to;
        self.count += 1;
    }

    /// Returns the text with its replacements and their number; an empty text if there are none.
    fn finish(mut self) -> (String, usize) {
        if self.count == 0 {
            return (String::new(), 0);
        }
        self.out.push_str(&self.text[self.copied..]);
        (self.out, self.count)
    }
}

/// Returns the position of the first byte at or after `from` that ends a word, or the end of the text.
fn word_end(text: &str, from: usize, ends: impl FnMut(char) -> bool) -> usize {
    text[from..].find(ends).map_or(text.len(), |length| from + length)
}

fn is_quote(c: char) -> bool {
    matches!(c, '"' | '\'' | '`' | '<' | '>')
}

/// Removes the user info, the query and key-like path segments of every URL.
fn urls(text: &str) -> (String, usize) {
    let mut cleaning = Cleaning::new(text);
    let mut from = 0;
    while let Some(found) = text[from..].find("://") {
        let start = from + found + 3;
        let mut end = word_end(text, start, |c| c.is_whitespace() || is_quote(c));
        // In a list of URLs, the scheme of the next URL ends the current one.
        if let Some(next) = text[start..end].find("://") {
            let is_scheme = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.');
            end = start + text[start..start + next].trim_end_matches(is_scheme).len();
        }
        url(&mut cleaning, start, end);
        from = end.max(start);
    }
    cleaning.finish()
}

fn url(cleaning: &mut Cleaning<'_>, mut start: usize, end: usize) {
    let text = cleaning.text;
    // A password may contain any character, so everything before the last `@` may be part of it.
    if let Some(at) = last_at(&text[start..end]) {
        cleaning.replace(start, start + at + 1, "");
        start += at + 1;
    }
    let path_end = word_end(&text[..end], start, |c| matches!(c, '?' | '#'));
    let mut at = start;
    for (index, part) in text[start..path_end].split('/').enumerate() {
        if index > 0 && looks_like_key(part) {
            cleaning.replace(at, at + part.len(), REDACTED);
        }
        at += part.len() + 1;
    }
    if path_end + 1 < end {
        cleaning.replace(path_end + 1, end, REDACTED);
    }
}

/// Returns the last `@` that does not start the digest of an image.
fn last_at(text: &str) -> Option<usize> {
    text.rmatch_indices('@')
        .map(|(at, _)| at)
        .find(|at| !text[at + 1..].starts_with("sha256:"))
}

/// Returns true for key-like path segments, such as those in webhook URLs of chat services. Object names do not
/// match.
fn looks_like_key(part: &str) -> bool {
    let bytes = part.as_bytes();
    let has = |is: fn(&u8) -> bool| bytes.iter().any(is);
    let is_uuid = bytes.len() == 36 && bytes.iter().all(|byte| byte.is_ascii_hexdigit() || *byte == b'-');
    let is_dense = bytes.len() >= 20 && has(u8::is_ascii_digit) && !has(|byte| matches!(byte, b'-' | b'.'));
    let is_digest = part.contains("sha256:");
    !is_digest && (is_uuid || is_dense || (bytes.len() >= 16 && has(u8::is_ascii_uppercase)))
}

fn is_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.')
}

/// Removes values in `name=value` and `name: value` whose name indicates a secret.
fn pairs(text: &str) -> (String, usize) {
    let mut cleaning = Cleaning::new(text);
    for (at, sign) in text.match_indices(['=', ':']) {
        let before = text[..at].trim_end_matches(' ').trim_end_matches(['"', '\'', '\\']);
        let name = &before[before.trim_end_matches(is_name).len()..];
        if !is_secret(name) || (sign == ":" && is_prose(name)) {
            continue;
        }
        let start = at + 1 + (text[at + 1..].len() - text[at + 1..].trim_start_matches(' ').len());
        let (start, end) = value(text, start, name);
        if start < end {
            cleaning.replace(start, end, REDACTED);
        }
    }
    cleaning.finish()
}

/// Returns true for words that commonly precede a colon in sentences: "no token: connection refused".
fn is_prose(name: &str) -> bool {
    matches!(
        name.to_ascii_lowercase().as_str(),
        "token" | "tokens" | "secret" | "secrets" | "credential" | "credentials" | "pass"
    )
}

/// Returns the range of the value at `start`: a quoted string or a word.
fn value(text: &str, start: usize, name: &str) -> (usize, usize) {
    const ESCAPED_QUOTE: &str = "\\\"";
    let rest = &text[start..];
    if let Some(quoted) = rest.strip_prefix(ESCAPED_QUOTE) {
        let start = start + ESCAPED_QUOTE.len();
        return (
            start,
            quoted.find(ESCAPED_QUOTE).map_or(text.len(), |length| start + length),
        );
    }
    if let Some(quote) = rest.chars().next().filter(|c| matches!(c, '"' | '\'')) {
        let mut escaped = false;
        let is_end = |c: char| {
            let ends = c == quote && !escaped;
            escaped = c == '\\' && !escaped;
            ends
        };
        return (start + 1, word_end(text, start + 1, is_end));
    }
    let ends = |c: char| c.is_whitespace() || is_quote(c) || matches!(c, ',' | ';' | '&' | ')' | ']' | '}');
    // The redaction marker contains a bracket, which must not end the value.
    let from = if rest.starts_with(REDACTED) {
        start + REDACTED.len()
    } else {
        start
    };
    let end = word_end(text, from, ends);
    // A header has an authentication scheme before the secret.
    let is_scheme = from == start && text[start..end].bytes().all(|byte| byte.is_ascii_alphabetic());
    if is_scheme && name.to_ascii_lowercase().contains("authorization") && text[end..].starts_with(' ') {
        return (start, word_end(text, end + 1, ends));
    }
    (start, end)
}

/// Removes values in `--name value` whose name indicates a secret.
fn flags(text: &str) -> (String, usize) {
    let mut cleaning = Cleaning::new(text);
    for (at, _) in text.match_indices("--") {
        let name_end = word_end(text, at + 2, |c| !is_name(c));
        let is_flag = text[..at].chars().next_back().is_none_or(|c| !is_name(c));
        if is_flag && text[name_end..].starts_with(' ') && is_secret(&text[at + 2..name_end]) {
            let (start, end) = value(text, name_end + 1, "");
            if start < end && !text[start..].starts_with('-') {
                cleaning.replace(start, end, REDACTED);
            }
        }
    }
    cleaning.finish()
}

/// Removes the value in `Bearer value`.
fn redact_bearer_tokens(text: &str) -> (String, usize) {
    const WORD: &str = "bearer ";
    let mut cleaning = Cleaning::new(text);
    if !text
        .as_bytes()
        .windows(WORD.len())
        .any(|window| window.eq_ignore_ascii_case(WORD.as_bytes()))
    {
        return cleaning.finish();
    }
    let lower = text.to_ascii_lowercase();
    for (at, _) in lower.match_indices(WORD) {
        let (start, end) = value(text, at + WORD.len(), "");
        let word = &text[start..end];
        if start < end && !matches!(word, "token" | "tokens" | "auth") {
            cleaning.replace(start, end, REDACTED);
        }
    }
    cleaning.finish()
}

/// Removes the password in `user:password@host` without a scheme.
fn user_infos(text: &str) -> (String, usize) {
    let mut cleaning = Cleaning::new(text);
    let mut start = 0;
    for word in text.split_inclusive(|c: char| c.is_whitespace() || is_quote(c)) {
        let colon = word.find(':').filter(|colon| *colon > 0);
        if let (Some(colon), Some(at)) = (colon, last_at(word))
            && colon + 1 < at
            && word[colon + 1..at] != *REDACTED
        {
            cleaning.replace(start + colon + 1, start + at, REDACTED);
        }
        start += word.len();
    }
    cleaning.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &str) {
        let mut cleaned = text.to_owned();
        let count = clean(&mut cleaned);
        assert_eq!(cleaned, expected);
        assert_eq!(count > 0, text != expected, "{text}");
        assert_eq!(clean(&mut cleaned), 0, "what is clean stays as it is: {cleaned}");
        // The same text within a sentence.
        let mut whole = format!("cannot start: {text} (3 times)");
        clean(&mut whole);
        assert_eq!(whole, format!("cannot start: {expected} (3 times)"));
    }

    #[test]
    fn secrets_are_taken_out_of_texts() {
        check("--password=hunter2", "--password=(redacted)");
        check("--password hunter2 --verbose", "--password (redacted) --verbose");
        check("Authorization: Bearer hunter2", "Authorization: (redacted)");
        check("sent Bearer hunter2 to it", "sent Bearer (redacted) to it");
        check("nats://u:p@a,nats://u:p@b", "nats://a,nats://b");
        check("postgres://u:p/w@h", "postgres://h");
        check(
            "user=app password=hunter2 host=db",
            "user=app password=(redacted) host=db",
        );
        check("app:hunter2@tcp(db:3306)/shop", "app:(redacted)@tcp(db:3306)/shop");
        check("https://h/hook?token=hunter2&x=y", "https://h/hook?(redacted)");
        let hook = "https://hooks.example.com/services/T0001/B0002/XXXXXXXXXXXXXXXXXXXXXXXX";
        check(hook, "https://hooks.example.com/services/T0001/B0002/(redacted)");
        check(
            "{\"password\": \"hunter2\", \"a\": 1}",
            "{\"password\": \"(redacted)\", \"a\": 1}",
        );
        check(
            r#"{"password": "hun\"ter2", "a": 1}"#,
            r#"{"password": "(redacted)", "a": 1}"#,
        );
        check(
            r#"got {\"password\": \"hunter2\"}"#,
            r#"got {\"password\": \"(redacted)\"}"#,
        );
        check("db_password: hunter2", "db_password: (redacted)");
    }

    #[test]
    fn objects_are_taken_out_of_messages() {
        let check = |text: &str, expected: &str| {
            let mut cleaned = text.to_owned();
            assert_eq!(message(&mut cleaned) > 0, text != expected, "{text}");
            assert_eq!(cleaned, expected);
            assert_eq!(message(&mut cleaned), 0, "what is clean stays as it is: {cleaned}");
        };
        check(
            r#"saw {"data": {"login": "hunter2"}} (twice)"#,
            "saw (redacted) (twice)",
        );
        check(
            r#"{"a": ["hunter2"]} and {"b": "hunter3"}: --password=x"#,
            "(redacted) and (redacted): --password=(redacted)",
        );
        check(
            r#"{"replicas": 3} of {name}, {} and ["member1"]"#,
            r#"{"replicas": 3} of {name}, {} and ["member1"]"#,
        );
    }

    #[test]
    fn texts_without_secrets_stay() {
        for text in [
            "",
            "cluster is not reachable",
            "3 of 4 replicas are ready: member1 2, member2 1",
            "cannot get a token: connection refused",
            "Get \"https://10.0.0.1:6443/apis/apps/v1/namespaces/default/deployments/nginx-7d4b9c6f5d-x2x1z\": EOF",
            "pulling registry.example.com/app@sha256:0123456789abcdef",
            "cluster.karmada.io/not-ready:NoSchedule",
            "key=value, when=2026-01-02T03:04:05Z",
        ] {
            check(text, text);
        }
    }
}
