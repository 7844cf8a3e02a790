//! Page of a decision, by the id that the annotation `bulkhead.dev/decision` and log lines have.

use bulkhead_core::journal::DecisionId;
use bulkhead_journal::Stored;
use maud::{Markup, html};

use super::binding::Find;
use super::{explanation, problem, timeline};
use crate::frame::{Page, View, cluster, decision_link, moment, object, section};
use crate::history::Row;
use crate::query::Parameters;

/// Path of the page.
pub const PATH: &str = "/decision";

/// Returns the page, or the page of an unknown decision.
///
/// # Errors
///
/// A parameter has no valid value.
pub fn page(view: &View<'_>, parameters: &Parameters, find: Find<'_>) -> Result<Result<Page, Page>, String> {
    let id = parameters.text("id").parse::<DecisionId>();
    let id = id.map_err(|error| format!("id: {error}"))?;
    let is_it = |row: &&Row| row.number == id.number && (id.process.is_empty() || *row.origin.process == *id.process);
    let mut rows: Vec<_> = view.history.rows().iter().filter(is_it).collect();
    // A number without a process is the whole id of a decision of an earlier version.
    if rows.iter().any(|row| row.is(&id)) {
        rows.retain(|row| row.is(&id));
    }
    if rows.is_empty() {
        return Ok(Err(unknown(view, &id)));
    }
    let found = find(&rows);
    let body = html! {
        @for (position, row) in rows.iter().enumerate() {
            @let title = format!("{:?} of {}", row.decision, row.subject);
            (section(&format!("decision-{position}"), &title, &one(row, found.as_deref())))
        }
        @if rows.len() > 1 {
            p { "Several processes have a decision of this number: "
                @for row in &rows { a href=(decision_link(row)) { (row.id()) } " " }
            }
        }
    };
    Ok(Ok(Page {
        title: format!("Decision {id}"),
        description: "A decision with its gates, its inputs, and the answers of policies.".to_owned(),
        path: timeline::PATH,
        follows: false,
        body,
    }))
}

/// Returns the page of an unknown decision, with the extent of the records.
fn unknown(view: &View<'_>, id: &DecisionId) -> Page {
    let rows = view.history.rows();
    let body = html! {
        @if let (Some(first), Some(last)) = (rows.first(), rows.last()) {
            p {
                "The records begin with decision " (first.id()) " at " (moment(first.at)) " and end with decision " (last.id())
                " at " (moment(last.at)) ". Another process may have made the decision."
            }
        }
        form action=(PATH) { label { "Decision " input name="id"; } " " button { "Show" } }
    };
    problem::page("There is no such decision", format!("No record has the id {id}."), body)
}

fn one(row: &Row, found: Result<&[Stored], &anyhow::Error>) -> Markup {
    let is_it = |stored: &&Stored| row.is(&stored.record.decision_id()) && stored.record.entry.subject == *row.subject;
    html! {
        dl class="facts" {
            dt { "Object" } dd { (row.subject.kind) " " (object(&row.subject)) }
            @if let Some(name) = &row.cluster { dt { "Cluster" } dd { (cluster(name)) } }
            dt { "Map" } dd { a href=(map_link(row)) { "Federation at " (moment(row.at)) } }
        }
        @if !row.is_taken() { p { "Abandoned: it could not be put into effect and was decided again." } }
        @match found.map(|all| all.iter().find(is_it)) {
            Ok(Some(stored)) => (explanation::whole(stored)),
            Ok(None) => p { "The record is gone." },
            Err(error) => p class="problem" { "The inputs cannot be read: " (format!("{error:#}")) },
        }
    }
}

fn map_link(row: &Row) -> String {
    Parameters::default().with("at", row.order_ms.to_string()).link("/")
}
