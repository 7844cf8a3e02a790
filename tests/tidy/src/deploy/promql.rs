//! Minimal PromQL lexer that finds the series and label names in an expression.

use std::collections::BTreeSet;

/// Names in an expression.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Names {
    /// Series names.
    pub(super) series: BTreeSet<String>,
    /// Labels that are matched, grouped by or joined on.
    pub(super) labels: BTreeSet<String>,
}

/// Keywords followed by a list of labels.
const GROUPING: &[&str] = &["by", "without", "on", "ignoring", "group_left", "group_right"];
const WORDS: &[&str] = &["and", "or", "unless", "bool", "offset", "atan2", "inf", "nan"];

/// Returns the names in an expression. Grafana's `label_values(series, label)` is supported as well.
pub(super) fn names(expression: &str) -> Names {
    let tokens = tokens(expression);
    let mut names = Names::default();
    let mut closing = Vec::new();
    let mut function = Vec::new();
    for (index, token) in tokens.iter().enumerate() {
        let before = index
            .checked_sub(1)
            .and_then(|before| tokens.get(before))
            .map_or("", String::as_str);
        let after = tokens.get(index + 1).map_or("", String::as_str);
        match token.as_str() {
            "(" if GROUPING.contains(&before) => closing.push(")labels"),
            "(" => {
                closing.push(")");
                function.push(before.to_owned());
            }
            "{" => closing.push("}labels"),
            // A bracket that closes a label list ends no function call.
            ")" | "}" if closing.pop() != Some(")") => {}
            ")" => drop(function.pop()),
            word if is_word(word) => {
                let is_last_of_label_values =
                    function.last().is_some_and(|name| name == "label_values") && before == "," && after == ")";
                if closing.last().is_some_and(|place| place.ends_with("labels")) || is_last_of_label_values {
                    names.labels.insert(word.to_owned());
                } else if after != "(" && !GROUPING.contains(&after) && !is_reserved(word) {
                    names.series.insert(word.to_owned());
                }
            }
            _ => {}
        }
    }
    names
}

fn is_reserved(word: &str) -> bool {
    let lower = word.to_lowercase();
    GROUPING.contains(&lower.as_str()) || WORDS.contains(&lower.as_str())
}

fn is_word(token: &str) -> bool {
    token.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
}

/// Returns words, brackets and commas. Strings, ranges, numbers and Grafana variables are omitted.
fn tokens(expression: &str) -> Vec<String> {
    let part_of_word = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == ':';
    let mut tokens = Vec::new();
    let mut rest = expression;
    while let Some(first) = rest.chars().next() {
        let length = match first {
            '"' | '\'' => rest[1..].find(first).map_or(rest.len(), |end| end + 2),
            '[' => rest.find(']').map_or(rest.len(), |end| end + 1),
            '$' => 1 + rest[1..].find(|c: char| !part_of_word(c)).unwrap_or(rest.len() - 1),
            c if part_of_word(c) => rest.find(|c: char| !part_of_word(c)).unwrap_or(rest.len()),
            c => c.len_utf8(),
        };
        let (token, after) = rest.split_at(length);
        if is_word(token) || ["(", ")", "{", "}", ","].contains(&token) {
            tokens.push(token.to_owned());
        }
        rest = after;
    }
    tokens
}

#[test]
fn names_are_distinguished_from_words_and_values() {
    let check = |expression: &str, series: &[&str], labels: &[&str]| {
        let set = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect();
        assert_eq!(
            names(expression),
            Names {
                series: set(series),
                labels: set(labels)
            },
            "{expression}"
        );
    };
    check("up", &["up"], &[]);
    check(r#"absent(up{job="a.b{c"} == 1)"#, &["up"], &["job"]);
    check("sum by (a, b) (rate(x_total[5m])) > 0.5e1", &["x_total"], &["a", "b"]);
    check(
        "sum(rate(x[$__rate_interval])) by (c) / on (d) group_left y offset 5m",
        &["x", "y"],
        &["c", "d"],
    );
    check(
        "histogram_quantile(0.9, sum by (le) (x_bucket)) and on () up unless z",
        &["up", "x_bucket", "z"],
        &["le"],
    );
    check(r#"label_values(x{job="$job"}, member)"#, &["x"], &["job", "member"]);
}
