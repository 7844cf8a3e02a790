//! Conversion of a parsed case file into calls and expectations.

use std::collections::BTreeSet;

use bulkhead_plugin::{Position, Positions, limits_of_files};
use serde_saphyr::Spanned;

use super::Case;
use super::format::{CaseFile, CaseSpec};
use crate::owned_call::OwnedCall;

/// Returns the cases of a file, or everything that is wrong with it.
pub(crate) fn cases(origin: &str, text: &str, file: CaseFile) -> Result<Vec<Case>, Vec<String>> {
    let (mut cases, mut problems, mut names) = (Vec::new(), Vec::new(), BTreeSet::new());
    if file.cases.is_empty() {
        let at = Positions::read(text, &limits_of_files()).value(0, "cases");
        let at = at.map_or_else(String::new, |at| format!(":{at}"));
        problems.push(format!("{origin}{at}: cases: there are none"));
    }
    for (index, spec) in file.cases.into_iter().enumerate() {
        let (position, spec) = (position_of(&spec), spec.value);
        let mut at = At {
            origin,
            case: format!("cases[{index}]"),
            position,
            problems: &mut problems,
        };
        if !names.insert(spec.name.value.clone()) {
            at.problem(
                position_of(&spec.name),
                "name",
                &format!("there are two cases {:?}", spec.name.value),
            );
        }
        cases.extend(at.case(spec));
    }
    if problems.is_empty() { Ok(cases) } else { Err(problems) }
}

/// The case being read, and the problems found so far.
pub(crate) struct At<'a> {
    origin: &'a str,
    case: String,
    /// Position where the case begins.
    pub(super) position: Position,
    problems: &'a mut Vec<String>,
}

impl At<'_> {
    pub(super) fn problem(&mut self, at: Position, field: &str, message: &str) {
        self.problems
            .push(format!("{}:{at}: {}.{field}: {message}", self.origin, self.case));
    }

    fn case(&mut self, spec: CaseSpec) -> Option<Case> {
        let CaseSpec {
            name,
            kind,
            operation,
            config,
            input,
            expect,
            budget,
        } = spec;
        let before = self.problems.len();
        let request = self.request(kind, operation.as_ref(), &input);
        let now = self.now(&input.value);
        let expected = self.expectation(kind, &expect);
        let (request, now, expected) = (request?, now?, expected?);
        let call = OwnedCall { request, now };
        self.names(&call, &expect);
        (self.problems.len() == before).then(|| Case {
            name: name.value,
            origin: format!("{}:{}", self.origin, self.position.line),
            config,
            call,
            expected,
            steps_max: budget.steps,
            has_empty_list: false,
        })
    }
}

/// Returns the position of a value.
pub(super) fn position_of<T>(spanned: &Spanned<T>) -> Position {
    spanned.referenced.into()
}
