//! Laws about single answers.

use bulkhead_core::call::{Reply, TaintChange};
use bulkhead_core::policy::{Fault, FaultKind};
use bulkhead_plugin::REASON_CODE_CHARS_MAX;

use super::{Examination, each};
use crate::call_result::{CallResult, fault_name, reasons as reasons_of, shown};
use crate::inputs::Sample;
use crate::report::Outcome;

/// True if the fault counts as an answer: `unsupported`, or an error that the plugin itself returned.
fn is_answer(fault: &Fault) -> bool {
    matches!(fault.kind, FaultKind::Unsupported | FaultKind::GuestError)
}

/// True if the call was stopped because it exceeded its budget.
pub(super) fn is_over_budget(fault: &Fault) -> bool {
    matches!(
        fault.kind,
        FaultKind::OutOfFuel | FaultKind::Deadline | FaultKind::Memory
    )
}

/// Returns the text of an answer's fault, unless the plugin does not handle the question.
pub(super) fn fault(answer: &CallResult) -> Option<String> {
    answer
        .fault()
        .filter(|fault| fault.kind != FaultKind::Unsupported)
        .map(describe)
}

fn describe(fault: &Fault) -> String {
    format!("{} ({fault})", fault_name(fault.kind))
}

/// Plain calls that exceed the budget are ignored here: another law covers them.
pub(super) fn no_input_makes_it_fail(examined: &Examination<'_>) -> Outcome {
    let inputs = examined.inputs;
    let fails = |answer: &CallResult, spared: &dyn Fn(&Fault) -> bool| {
        answer
            .fault()
            .filter(|fault| !is_answer(fault) && !spared(fault))
            .map(describe)
    };
    let plain = each(inputs.plain.iter(), |sample| {
        fails(&examined.ask(sample), &is_over_budget)
    });
    if plain != Outcome::Passed {
        return plain;
    }
    let odd = inputs.empty.iter().chain(&inputs.junk).chain(&inputs.deep);
    let odd = each(odd, |sample| fails(&examined.ask(sample), &|_| false));
    if odd != Outcome::Passed {
        return odd;
    }
    let spared = |fault: &Fault| examined.subject.has_reduced_budget() && is_over_budget(fault);
    each(inputs.huge.iter(), |sample| fails(&examined.ask(sample), &spared))
}

pub(super) fn budget(examined: &Examination<'_>) -> Outcome {
    let most = examined.subject.budget().steps;
    each(examined.inputs.plain.iter(), |sample| {
        let answer = examined.ask(sample);
        let dear = (answer.steps > most).then(|| format!("took {} steps of {most}", answer.steps));
        answer
            .fault()
            .filter(|fault| is_over_budget(fault))
            .map(describe)
            .or(dear)
    })
}

fn is_camel_case_word(code: &str) -> bool {
    code.starts_with(|first: char| first.is_ascii_uppercase()) && code.chars().all(|c| c.is_ascii_alphanumeric())
}

pub(super) fn reasons(examined: &Examination<'_>) -> Outcome {
    each(examined.inputs.all_small(), |sample| {
        let reply = examined.ask(sample).reply.ok()?;
        let wrong = |code: &&String| !is_camel_case_word(code) || code.len() > REASON_CODE_CHARS_MAX;
        let codes = reasons_of(&reply).into_iter().map(|reason| &reason.code);
        let code = codes.into_iter().find(wrong).cloned()?;
        Some(format!(
            "the code {code:?} is not one CamelCase word of at most {REASON_CODE_CHARS_MAX} letters and digits"
        ))
    })
}

pub(super) fn one_verdict_each(examined: &Examination<'_>) -> Outcome {
    each(examined.inputs.all_small(), |sample| {
        let answer = examined.ask(sample);
        match &answer.reply {
            // A host that validates replies reports an out-of-bounds reply as this fault.
            Err(fault) if fault.kind == FaultKind::BadReply => Some(describe(fault)),
            Err(_) => None,
            Ok(reply) => miscounted(sample, reply),
        }
    })
}

fn miscounted(sample: &Sample, reply: &Reply) -> Option<String> {
    let clusters = sample.call.clusters()?.len();
    let verdicts = match reply {
        Reply::Filter(verdicts) => verdicts.len(),
        Reply::Score(scores) => {
            if let Some(score) = scores.iter().find(|score| !(0..=100).contains(*score)) {
                return Some(format!("the score {score} is outside 0..=100"));
            }
            scores.len()
        }
        other => return Some(format!("a {} reply to a {} call", other.kind(), sample.call.kind())),
    };
    (verdicts != clusters).then(|| format!("{verdicts} verdicts for {clusters} clusters"))
}

fn key_of(change: &TaintChange) -> &String {
    match change {
        TaintChange::Add { taint, .. } => &taint.key,
        TaintChange::Remove { key, .. } => key,
    }
}

pub(super) fn declared_taints(examined: &Examination<'_>) -> Outcome {
    let Some(declared) = examined.subject.taint_keys() else {
        return Outcome::skipped("the keys that the plugin declares are not known");
    };
    each(examined.inputs.all_small(), |sample| {
        let answer = examined.ask(sample);
        let Ok(Reply::ClusterTaint(verdict)) = &answer.reply else {
            return None;
        };
        let foreign = verdict.changes.iter().map(key_of).find(|key| !declared.contains(key))?;
        Some(format!(
            "{foreign:?} is not among the declared keys {declared:?}, in {}",
            shown(&answer.reply)
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::is_camel_case_word;

    #[test]
    fn a_code_is_one_camel_case_word() {
        for code in ["ChangeFreeze", "APIEnablement", "X", "Http2Down"] {
            assert!(is_camel_case_word(code), "{code}");
        }
        for code in ["", "changeFreeze", "Change freeze", "Change-Freeze", "Größe", "2Fast"] {
            assert!(!is_camel_case_word(code), "{code}");
        }
    }
}
