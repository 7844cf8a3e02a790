//! Ids of decisions.

use std::fmt;
use std::str::FromStr;

/// Number of digits in the uid of a process.
const PROCESS_DIGITS: usize = 10;

/// Id of a decision, such as `3f9a1c2e55-41`: the process that made it and the record number in the journal of that
/// process. Two processes may use the same numbers; ids are unique.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DecisionId {
    /// Uid of the process, as ten hexadecimal digits. Empty for a simulation, for a record of an older version, and
    /// for a number given without a process.
    pub process: String,
    /// Position in the journal, from 1.
    pub number: u64,
}

impl fmt::Display for DecisionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.process.is_empty() {
            self.number.fmt(f)
        } else {
            write!(f, "{}-{}", self.process, self.number)
        }
    }
}

/// Error for text that is not a decision id.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a decision ID such as 41 or 3f9a1c2e55-41")]
pub struct NoDecisionId(String);

impl FromStr for DecisionId {
    type Err = NoDecisionId;

    /// Parses `41`, `#41`, `3f9a1c2e55-41` or `#3f9a1c2e55-41`.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let bare = text.strip_prefix('#').unwrap_or(text);
        let is_uid = |uid: &str| uid.len() == PROCESS_DIGITS && uid.bytes().all(|byte| byte.is_ascii_hexdigit());
        let (process, number) = match bare.rsplit_once('-') {
            Some((process, number)) if is_uid(process) => (process, number),
            _ => ("", bare),
        };
        let number = number.parse().map_err(|_| NoDecisionId(text.to_owned()))?;
        Ok(Self {
            process: process.to_owned(),
            number,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_read_as_it_is_written_and_no_name_is_taken_for_one() {
        let check = |text: &str, process: &str, number| {
            let id: DecisionId = text.parse().unwrap();
            assert_eq!((id.process.as_str(), id.number), (process, number));
            assert_eq!(id.to_string(), text.trim_start_matches('#'));
        };
        check("41", "", 41);
        check("#41", "", 41);
        check("3f9a1c2e55-41", "3f9a1c2e55", 41);
        check("#3f9a1c2e55-41", "3f9a1c2e55", 41);
        for name in [
            "",
            "#",
            "nginx",
            "member-1",
            "default/nginx-41",
            "3f9a1c2e55-",
            "3f9a1c2e55",
            "-41",
            "x3f9a1c2e5-41",
        ] {
            assert!(name.parse::<DecisionId>().is_err(), "{name}");
        }
    }
}
