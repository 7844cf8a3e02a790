//! Table of decisions.

use maud::{Markup, html};

use crate::frame::{cluster, decision_link, moment, object, table, text, tone};
use crate::history::Row;
use crate::query::Parameters;

/// Returns the table of decisions.
pub(super) fn table_of<'a>(caption: &str, rows: impl Iterator<Item = &'a Row>) -> Markup {
    let columns = ["Decision", "Time", "Kind", "Object", "Cluster", "Effect", "Reason"];
    let rows: Vec<_> = rows.map(row).collect();
    table(caption, &columns, &rows)
}

fn row(row: &Row) -> Vec<Markup> {
    let at = Parameters::default().with("at", row.order_ms.to_string()).link("/");
    vec![
        html! { a href=(decision_link(row)) { (row.id()) } },
        html! { a href=(at) aria-label={ "Map at " (moment(row.at)) } { (moment(row.at)) } },
        html! {
            span class=(tone(row)) { (format!("{:?}", row.decision)) }
            @if !row.is_taken() { " (abandoned)" }
        },
        object(&row.subject),
        row.cluster.as_deref().map(cluster).unwrap_or_default(),
        text(&row.effect),
        reason(row),
    ]
}

fn reason(row: &Row) -> Markup {
    let policy = row
        .cause
        .policy
        .as_ref()
        .map(|policy| format!(" by {policy}"))
        .unwrap_or_default();
    html! { (row.reason()) (policy) }
}
