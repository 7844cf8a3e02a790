//! Tables of what waits.

use bulkhead_core::time::Time;
use bulkhead_simulator::recorded::waiting::Waiting;
use bulkhead_simulator::render::duration;
use maud::{Markup, html};

use crate::frame::{cluster, decision_path, moment, object, table, text};

/// Returns the table of waits, the oldest first, and the number of those that it leaves out.
pub(super) fn table_of(caption: &str, waits: &[&Waiting], shown_max: usize, now: Time) -> Markup {
    let columns = ["Object", "Cluster", "Step", "Gate", "Since", "Opens with", "Next check"];
    let rows: Vec<_> = waits.iter().take(shown_max).map(|wait| row(wait, now)).collect();
    html! {
        (table(caption, &columns, &rows))
        @if waits.len() > shown_max { p { (waits.len() - shown_max) " more are not shown." } }
    }
}

fn row(wait: &Waiting, now: Time) -> Vec<Markup> {
    let age = duration(now.millis_since(wait.since).max(0));
    let policy = wait
        .policy
        .as_ref()
        .map(|policy| format!(" by {policy}"))
        .unwrap_or_default();
    vec![
        object(&wait.subject),
        wait.cluster.as_deref().map(cluster).unwrap_or_default(),
        text(wait.step.describe()),
        html! {
            span class="waiting" { (wait.gate) } (policy) ": " (wait.message)
            @if let Some(id) = &wait.decision { " (" a href=(decision_path(id)) { "decision " (id) } ")" }
            @if wait.may_have_ended { " The wait may have ended: a taint of the cluster was removed since." }
        },
        html! { (moment(wait.since)) " (" (age) ")" },
        text(&wait.opens),
        text(wait.next_check()),
    ]
}
