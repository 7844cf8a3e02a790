//! Operations that the interpreter webhook offers to Karmada.

use bulkhead_api::webhook::Rule;
use bulkhead_api::webhook::serve::OPERATIONS;

use crate::usage_error::UsageError;

/// Name of the argument.
const ARGUMENT: &str = "interpreter-operations";

/// Operations that are offered. Karmada's own interpreters answer the others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct OfferedOperations(Vec<&'static str>);

impl OfferedOperations {
    /// Reads a list in the syntax of `--controllers`: names, `*` for all, `-name` to exclude one. The first entry that
    /// names an operation takes precedence.
    ///
    /// # Errors
    ///
    /// An entry names no operation.
    pub(crate) fn parse(list: &[String]) -> Result<Self, UsageError> {
        for entry in list {
            let name = entry.strip_prefix('-').unwrap_or(entry);
            if name != "*" && !OPERATIONS.contains(&name) {
                let why = format!("there is no operation {name}; there are {}", OPERATIONS.join(", "));
                return Err(UsageError::new(ARGUMENT, why));
            }
        }
        let is_offered = |name: &str| {
            let exact = list.iter().find_map(|entry| match entry.strip_prefix('-') {
                Some(off) => (off == name).then_some(false),
                None => (entry == name).then_some(true),
            });
            exact.unwrap_or_else(|| list.iter().any(|entry| entry == "*"))
        };
        Ok(Self(OPERATIONS.into_iter().filter(|name| is_offered(name)).collect()))
    }

    /// Removes all other operations from the rules of a hook, and rules without operations.
    pub(super) fn of(&self, mut rules: Vec<Rule>) -> Vec<Rule> {
        for rule in &mut rules {
            rule.operations.retain(|operation| self.0.contains(&operation.as_str()));
        }
        rules.retain(|rule| !rule.operations.is_empty());
        rules
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(list: &[&str]) -> Result<OfferedOperations, UsageError> {
        OfferedOperations::parse(&list.iter().map(|&entry| entry.to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn operations_are_chosen_like_controllers() {
        assert_eq!(parse(&["*"]).unwrap().0, OPERATIONS);
        let most = parse(&["*", "-InterpretComponent"]).unwrap();
        assert!(
            most.0.len() + 1 == OPERATIONS.len() && !most.0.contains(&"InterpretComponent"),
            "{most:?}"
        );
        assert_eq!(parse(&["InterpretHealth"]).unwrap().0, ["InterpretHealth"]);
        let error = parse(&["*", "-InterpretComponents"]).unwrap_err().to_string();
        assert!(
            error.starts_with("interpreter-operations: there is no operation InterpretComponents;"),
            "{error}"
        );
    }

    #[test]
    fn a_rule_has_the_offered_operations_only() {
        let rule = |operations: &[&str]| Rule {
            operations: operations.iter().map(|&operation| operation.to_owned()).collect(),
            kinds: vec!["Game".to_owned()],
            ..Rule::default()
        };
        let rules = vec![
            rule(&["InterpretComponent", "ReviseReplica"]),
            rule(&["InterpretComponent"]),
        ];
        let offered = parse(&["*", "-InterpretComponent"]).unwrap();
        assert_eq!(offered.of(rules), [rule(&["ReviseReplica"])]);
    }
}
