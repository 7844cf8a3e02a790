//! Conversion of a parsed case file into calls and expectations.

use std::collections::BTreeSet;

use serde_saphyr::Spanned;

use super::Case;
use super::format::{CaseFile, CaseSpec};
use crate::owned_call::OwnedCall;

/// Returns the cases of a file, or everything that is wrong with it.
pub(crate) fn cases(origin: &str, file: CaseFile) -> Result<Vec<Case>, Vec<String>> {
    let (mut cases, mut problems, mut names) = (Vec::new(), Vec::new(), BTreeSet::new());
    if file.cases.is_empty() {
        problems.push(format!("{origin}:1: cases: there are none"));
    }
    for (index, spec) in file.cases.into_iter().enumerate() {
        let (line, spec) = (spec.referenced.line(), spec.value);
        let mut at = At {
            origin,
            case: format!("cases[{index}]"),
            line,
            problems: &mut problems,
        };
        if !names.insert(spec.name.value.clone()) {
            at.problem(
                spec.name.referenced.line(),
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
    /// Line where the case begins.
    pub(super) line: u64,
    problems: &'a mut Vec<String>,
}

impl At<'_> {
    pub(super) fn problem(&mut self, line: u64, field: &str, message: &str) {
        self.problems
            .push(format!("{}:{line}: {}.{field}: {message}", self.origin, self.case));
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
            origin: format!("{}:{}", self.origin, self.line),
            config,
            call,
            expected,
            steps_max: budget.steps,
            has_empty_list: false,
        })
    }
}

/// Returns the line of a value.
pub(super) fn line_of<T>(spanned: &Spanned<T>) -> u64 {
    spanned.referenced.line()
}
