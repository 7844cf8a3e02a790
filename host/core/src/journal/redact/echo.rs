//! Secrets that a guest repeats: a message may quote a value that redaction removes from the object of the call.
//!
//! Such a value has no form that a rule could recognize, so it is looked for. Only the messages of guests are searched,
//! and the sentences that quote these messages: a text of the host that has the same word by chance stays, so that a
//! replayed decision has the messages of the recorded one.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use serde_json::Value;

use super::object::{holds_secret, is_reference};
use super::{REDACTED, is_data, is_secret};
use crate::journal::{DecisionInput, DecisionRecord, canonical};

/// Minimum length of a value, in characters; shorter ones occur in messages by chance.
const VALUE_CHARS_MIN: usize = 6;

/// Messages of guests that repeat secrets, each with its cleaned form. A longer message comes before a part of it.
#[derive(Clone, Debug, Default)]
pub struct Echoes(Vec<(String, String)>);

impl Echoes {
    /// Finds the messages in a decision record that is not redacted yet.
    pub fn of(decision_record: &DecisionRecord) -> Self {
        let secrets = secrets(&decision_record.input);
        let mut found = Vec::new();
        if !secrets.is_empty() {
            let mut calls = canonical(&decision_record.calls);
            for_each_message(&mut calls, &mut |message| {
                let clean = cleaned(message, &secrets);
                if clean != *message {
                    found.push((message.clone(), clean));
                }
            });
        }
        Self::new(found)
    }

    fn new(mut found: Vec<(String, String)>) -> Self {
        found.sort_by_key(|(echo, _)| Reverse(echo.len()));
        Self(found)
    }

    /// Cleans the messages in a record or a decision record and returns the number of those that changed.
    pub fn remove(&self, value: &mut Value) -> usize {
        let mut count = 0;
        if !self.0.is_empty() {
            for_each_message(value, &mut |message| {
                let clean = self
                    .0
                    .iter()
                    .fold(message.clone(), |text, (echo, clean)| text.replace(echo, clean));
                count += usize::from(clean != *message);
                *message = clean;
            });
        }
        count
    }
}

/// Returns the message of a guest without the secrets of the object that it was called about.
pub fn without_echoes(message: &str, object: &Value) -> String {
    let mut found = BTreeSet::new();
    collect(object, "", false, &mut found);
    cleaned(message, &longest_first(found))
}

fn cleaned(message: &str, secrets: &[String]) -> String {
    secrets
        .iter()
        .fold(message.to_owned(), |text, secret| text.replace(secret, REDACTED))
}

fn longest_first(secrets: BTreeSet<String>) -> Vec<String> {
    let mut secrets: Vec<_> = secrets.into_iter().collect();
    secrets.sort_by_key(|secret| Reverse(secret.len()));
    secrets
}

fn for_each_message(value: &mut Value, act: &mut impl FnMut(&mut String)) {
    match value {
        Value::Object(members) => {
            for (key, value) in members {
                match value {
                    Value::String(text) if key == "message" => act(text),
                    value => for_each_message(value, act),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| for_each_message(item, act)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Returns the secrets in the objects and statuses that guests may have read, longest first.
fn secrets(input: &DecisionInput) -> Vec<String> {
    let mut found = BTreeSet::new();
    match input {
        DecisionInput::Health { object, .. } => collect(object, "", false, &mut found),
        DecisionInput::Evict { binding, .. }
        | DecisionInput::Schedule { binding, .. }
        | DecisionInput::GracefulEviction { binding, .. }
        | DecisionInput::Failover { binding, .. }
        | DecisionInput::Failback { binding, .. } => {
            let statuses = binding
                .status
                .aggregated_status
                .iter()
                .filter_map(|item| item.status.as_ref());
            statuses.for_each(|status| collect(status, "", false, &mut found));
        }
        DecisionInput::Taint { .. } => {}
    }
    longest_first(found)
}

fn collect(value: &Value, name: &str, is_removed: bool, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(members) => {
            let holds_data = matches!(
                members.get("kind").and_then(Value::as_str),
                Some("Secret" | "ConfigMap")
            );
            for (key, value) in members {
                let is_removed = is_removed
                    || is_secret(key)
                    || holds_secret(key)
                    || (holds_data && is_data(key))
                    || (name == "env" && key == "value");
                collect(value, key, is_removed && !is_reference(key), found);
            }
        }
        // Items of a list have no name of their own, so they inherit the name of the list.
        Value::Array(items) => items.iter().for_each(|item| collect(item, name, is_removed, found)),
        Value::String(text) if is_removed => {
            let lines = text
                .lines()
                .map(str::trim)
                .filter(|line| line.chars().count() >= VALUE_CHARS_MIN);
            found.extend(lines.map(str::to_owned));
        }
        Value::Number(number) if is_removed && number.to_string().len() >= VALUE_CHARS_MIN => {
            found.insert(number.to_string());
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(object: Value, expected: &[&str]) {
        let mut found = BTreeSet::new();
        collect(&object, "", false, &mut found);
        assert_eq!(
            found.iter().map(String::as_str).collect::<Vec<_>>(),
            expected,
            "{object}"
        );
    }

    #[test]
    fn a_longer_secret_is_removed_before_a_part_of_it() {
        let object = json!({"password": "hunter01", "tokens": ["hunter01-and-more"]});
        let message = without_echoes("hunter01-and-more, hunter01 and hunter", &object);
        assert_eq!(message, "(redacted), (redacted) and hunter");
    }

    #[test]
    fn a_longer_message_is_cleaned_before_a_part_of_it() {
        let echo = |message: &str, clean: &str| (message.to_owned(), clean.to_owned());
        let echoes = Echoes::new(vec![
            echo("saw hunter01", "saw (redacted)"),
            echo("saw hunter01 and hunter02", "saw (redacted) and (redacted)"),
        ]);
        let mut record = json!({"message": "p: saw hunter01 and hunter02", "other": [{"message": "saw hunter01"}]});
        assert_eq!(echoes.remove(&mut record), 2);
        let other = json!([{"message": "saw (redacted)"}]);
        assert_eq!(
            record,
            json!({"message": "p: saw (redacted) and (redacted)", "other": other})
        );
    }

    #[test]
    fn values_that_redaction_removes_are_looked_for() {
        check(
            json!({"kind": "Secret", "data": {"a": "hunter01"}, "stringData": {"b": "hunter02\nx"}}),
            &["hunter01", "hunter02"],
        );
        check(
            json!({"containers": [{"env": [{"name": "ADDRESS", "value": "hunter03"}]}]}),
            &["hunter03"],
        );
        check(
            json!({"password": 73_914_682, "tokens": {"ci": ["hunter04"]}}),
            &["73914682", "hunter04"],
        );
        check(
            json!({"secret": {"secretName": "database"}, "imagePullSecrets": [{"name": "registry"}]}),
            &[],
        );
        check(
            json!({"refreshToken": "hunter05", "secretRef": {"name": "database"}}),
            &["hunter05"],
        );
        check(json!({"password": "short", "image": "registry.example.com/app"}), &[]);
    }
}
