//! Page of a binding or another object: its life, and its decisions with their gates and inputs.

use std::collections::BTreeMap;

use bulkhead_core::journal::{Decision, Subject};
use bulkhead_journal::Stored;
use bulkhead_simulator::recorded::explain::explain;
use maud::{Markup, html};

use super::{explanation, problem, rows, waits};
use crate::federation::{self, BindingNow};
use crate::frame::{Page, View, cluster, decision_link, moment, pager, section};
use crate::history::Row;
use crate::query::{Paged, Parameters};

/// Path of the page.
pub const PATH: &str = "/binding";
/// Number of decisions on a page.
const DECISIONS_MAX: usize = 20;
/// Maximum number of rows of the waits.
const WAITS_MAX: usize = 50;

/// Reader of the records of rows.
pub type Find<'a> = &'a dyn Fn(&[&Row]) -> anyhow::Result<Vec<Stored>>;

/// Returns the page, or the page of an unknown object.
///
/// # Errors
///
/// A parameter has no valid value.
pub fn page(view: &View<'_>, parameters: &Parameters, find: Find<'_>) -> Result<Result<Page, Page>, String> {
    let subject = Subject::new(
        parameters.get("kind").unwrap_or("ResourceBinding"),
        parameters.text("namespace"),
        parameters.text("name"),
    );
    let number = parameters.number("page")?.unwrap_or(1);
    let all: Vec<_> = view
        .history
        .rows()
        .iter()
        .filter(|row| *row.subject == subject)
        .collect();
    if all.is_empty() {
        return Ok(Err(problem::unknown_object(view, &subject)));
    }
    let page = Paged::of(all.iter().rev().copied(), number, DECISIONS_MAX);
    let life = html! {
        (pager(PATH, parameters, &page, "decisions"))
        (rows::table_of("Decisions, newest first", page.items.iter().copied()))
    };
    let body = html! {
        (section("state", "State", &state(BindingNow::of(&all).as_ref(), &all)))
        (section("waits", "Waits", &waiting(view, &subject)))
        (section("life", "Life", &life))
        (section("explanations", "Gates and inputs", &explanations(&page.items, find)))
    };
    Ok(Ok(Page {
        title: subject.key(),
        description: format!(
            "{}: its life, and its decisions with their gates and inputs.",
            subject.kind
        ),
        path: super::bindings::PATH,
        follows: number == 1,
        body,
    }))
}

fn state(binding: Option<&BindingNow<'_>>, rows: &[&Row]) -> Markup {
    let (first, last) = (rows.first(), rows.last());
    html! {
        dl class="facts" {
            @if let Some(binding) = binding {
                dt { "Placement" }
                dd { @if binding.placement.is_empty() { "unknown" } @else { (binding.placement) } }
                @for (from, row) in &binding.leaving {
                    dt { "Leaves" }
                    dd { (cluster(from)) " since " a href=(decision_link(row)) { (moment(row.at)) } ": " (row.reason()) }
                }
            }
            @if let (Some(first), Some(last)) = (first, last) {
                dt { "Decisions" } dd { (rows.len()) " from " (moment(first.at)) " to " (moment(last.at)) }
            }
        }
    }
}

fn waiting(view: &View<'_>, subject: &Subject) -> Markup {
    // The end of a taint ends waits too.
    let concerns = |row: &&Row| *row.subject == *subject || row.decision == Decision::Untainted;
    let waits = federation::waits(view.history.rows().iter().filter(concerns), view.queued, view.now);
    let waits: Vec<_> = waits.iter().filter(|wait| wait.subject == *subject).collect();
    waits::table_of("Gates that are closed", &waits, WAITS_MAX, view.now)
}

fn explanations(rows: &[&Row], find: Find<'_>) -> Markup {
    let about_place = |row: &&&Row| row.decision.is_about_place() || row.decision == Decision::Tolerated;
    let wanted: Vec<_> = rows.iter().filter(about_place).copied().collect();
    if wanted.is_empty() {
        return html! { p { "No decision on this page is about the place of the workload." } };
    }
    let found = match find(&wanted) {
        Ok(found) => found,
        Err(error) => return html! { p class="problem" { "The inputs cannot be read: " (format!("{error:#}")) } },
    };
    let found: BTreeMap<_, _> = found
        .iter()
        .map(|stored| (stored.record.decision_id(), stored))
        .collect();
    html! {
        @for row in wanted {
            h3 {
                a href=(decision_link(row)) { "Decision " (row.id()) } ": " (format!("{:?}", row.decision))
                @if let Some(cluster) = &row.cluster { " on " (cluster) }
            }
            @if !row.is_taken() { p { "Abandoned: it could not be put into effect and was decided again." } }
            @match found.get(&row.id()) {
                Some(stored) => (explanation::gates(&explain(stored))),
                None => p { "The record is gone." },
            }
        }
    }
}
