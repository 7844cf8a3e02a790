//! Records of a journal that a query selects.

use std::collections::VecDeque;
use std::path::Path;

use bulkhead_core::journal::{Decision, Entry};
use bulkhead_journal::{JournalError, Selection, visit, wire};
use percent_encoding::{NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use serde_json::{Value, json};

/// Maximum number of records in an answer.
const RECORDS_MAX: usize = 10_000;
/// Maximum size of the records in an answer, in bytes.
const BYTES_MAX: usize = 32 << 20;

/// Records to read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Query {
    /// Id, object or member cluster.
    pub about: Option<String>,
    /// Namespace of the subject.
    pub namespace: Option<String>,
    /// Kinds of decisions; empty for all.
    pub decisions: Vec<Decision>,
    /// Only this many of the newest records.
    pub last: Option<usize>,
    /// Only records from this time on, in milliseconds since the Unix epoch.
    pub since_ms: Option<i64>,
}

impl Query {
    /// Parses the query of a URL.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let mut query = Self::default();
        for pair in text.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let value = percent_decode_str(value).decode_utf8();
            let value = value.map_err(|_| format!("{name}: not UTF-8"))?.into_owned();
            match name {
                "about" => query.about = Some(value),
                "namespace" => query.namespace = Some(value),
                "decision" => {
                    let decision = serde_json::from_value(Value::from(value.as_str()));
                    query
                        .decisions
                        .push(decision.map_err(|_| format!("decision: unknown decision {value:?}"))?);
                }
                "since" => {
                    query.since_ms = Some(value.parse().map_err(|_| format!("since: {value:?} is not a number"))?);
                }
                "last" => query.last = Some(value.parse().map_err(|_| format!("last: {value:?} is not a number"))?),
                _ => {
                    return Err(format!(
                        "unknown parameter {name:?}; there are about, namespace, decision, last and since"
                    ));
                }
            }
        }
        Ok(query)
    }

    /// Returns the query of a URL.
    pub(super) fn text(&self) -> String {
        let encode = |name: &str, value: &str| format!("{name}={}", utf8_percent_encode(value, NON_ALPHANUMERIC));
        let Self {
            about,
            namespace,
            decisions,
            last,
            since_ms,
        } = self;
        let about = about.iter().map(|about| encode("about", about));
        let namespace = namespace.iter().map(|namespace| encode("namespace", namespace));
        let decisions = decisions
            .iter()
            .map(|decision| encode("decision", &format!("{decision:?}")));
        let last = last.iter().map(|last| encode("last", &last.to_string()));
        let since = since_ms.iter().map(|since_ms| encode("since", &since_ms.to_string()));
        let pairs: Vec<_> = about
            .chain(namespace)
            .chain(decisions)
            .chain(last)
            .chain(since)
            .collect();
        pairs.join("&")
    }

    /// Returns true if the query selects the kind of a decision, the namespace of its subject, and its time.
    pub fn selects(&self, entry: &Entry) -> bool {
        let namespace = self.namespace.as_ref();
        let is_recent = self.since_ms.is_none_or(|since_ms| entry.at.as_millis() >= since_ms);
        is_recent
            && (self.decisions.is_empty() || self.decisions.contains(&entry.decision))
            && namespace.is_none_or(|namespace| entry.subject.namespace == *namespace)
    }
}

/// Reads the records as lines of JSON, oldest first. The last line has the problems of the journal, and if older records
/// were left out because the answer is full.
pub(super) fn read(journal: &Path, query: &Query) -> Result<String, JournalError> {
    let records_max = query.last.unwrap_or(RECORDS_MAX).min(RECORDS_MAX);
    let (mut lines, mut bytes, mut is_truncated) = (VecDeque::new(), 0, false);
    let selection = Selection::of(query.about.as_deref());
    let problems = visit(journal, |stored| {
        if !selection.selects(&stored.record) || !query.selects(&stored.record.entry) {
            return;
        }
        let line = wire::to_json(&stored).to_string();
        bytes += line.len();
        lines.push_back(line);
        while lines.len() > records_max || bytes > BYTES_MAX {
            let Some(dropped) = lines.pop_front() else { break };
            bytes -= dropped.len();
            is_truncated |= query.last.is_none_or(|last| lines.len() < last);
        }
    })?;
    let problems: Vec<_> = problems.iter().map(ToString::to_string).collect();
    let mut text = String::with_capacity(bytes + lines.len() + 64);
    for line in lines {
        text += &line;
        text.push('\n');
    }
    text += &json!({ "end": {"problems": problems, "truncated": is_truncated} }).to_string();
    text.push('\n');
    Ok(text)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::edit::{edits, with_edits};

    #[test]
    fn a_query_is_read_as_it_is_written() {
        let query = Query {
            about: Some("default/a b&c=d".to_owned()),
            namespace: Some("größe".to_owned()),
            decisions: vec![Decision::Evicted, Decision::Held],
            last: Some(7),
            since_ms: Some(1_700_000_000_000),
        };
        assert_eq!(Query::parse(&query.text()).unwrap(), query);
        assert_eq!(Query::parse("").unwrap(), Query::default());
        let check = |text: &str, expected: &str| {
            let error = Query::parse(text).unwrap_err();
            assert!(error.contains(expected), "{error}");
        };
        check("decision=Nothing", "unknown decision \"Nothing\"");
        check("last=many", "last: \"many\" is not a number");
        check("colour=red", "there are about, namespace, decision, last and since");
        check("about=%ff", "about: not UTF-8");
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(256) })]

        /// A query of any content is refused, or read as it would be written.
        #[test]
        fn any_query_is_read_or_refused(edits in edits()) {
            let text = b"about=default%2Fweb&namespace=default&decision=Evicted&last=7&since=-12";
            let text = String::from_utf8_lossy(&with_edits(text, &edits, 8 * 1024)).into_owned();
            match Query::parse(&text) {
                Ok(query) => prop_assert_eq!(Query::parse(&query.text()), Ok(query)),
                Err(message) => prop_assert!(!message.is_empty()),
            }
        }
    }
}
