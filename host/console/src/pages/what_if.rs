//! Form with the clusters that are lost, and the answer drawn before and after.

use bulkhead_simulator::render::what_if_sections;
use maud::{Markup, html};

use crate::frame::{Page, View, field, section};
use crate::query::Parameters;
use crate::rehearsal::{Loss, Rehearsed};

/// Path of the page.
pub const PATH: &str = "/what-if";
/// Maximum number of names of clusters that the form offers.
const NAMES_MAX: usize = 1_000;

/// Result of the form.
pub enum Played {
    /// The form names no cluster.
    Nothing,
    /// The program provides no rehearsal.
    Unavailable,
    /// The rehearsal of a loss.
    Done(Loss, Rehearsed),
    /// The rehearsal failed, with the error.
    Failed(Loss, String),
}

/// Returns the page.
pub fn page(view: &View<'_>, parameters: &Parameters, played: &Played) -> Page {
    let body = html! {
        @match played {
            Played::Unavailable => (unavailable()),
            _ => (section("loss", "Loss", &form(view, parameters))),
        }
        @match played {
            Played::Nothing | Played::Unavailable => {},
            Played::Failed(_, error) => (section("answer", "Answer", &html! { p class="problem" { (error) } })),
            Played::Done(_, rehearsed) => (answer(rehearsed)),
        }
    };
    let title = match played {
        Played::Done(loss, _) | Played::Failed(loss, _) => format!("What if {} were lost?", loss.down.join(", ")),
        Played::Nothing | Played::Unavailable => "What if clusters were lost?".to_owned(),
    };
    Page {
        title,
        description: "The controllers run on a copy of the objects, in virtual time. Nothing is written.".to_owned(),
        path: PATH,
        follows: false,
        body,
    }
}

fn unavailable() -> Markup {
    html! {
        p {
            "This console has no objects to rehearse with. Start " code { "bulkhead console" } " with "
            code { "--export" } " or " code { "--kubeconfig" } "."
        }
    }
}

fn form(view: &View<'_>, parameters: &Parameters) -> Markup {
    let names: Vec<_> = view
        .history
        .clusters()
        .at(None)
        .map(|(name, _)| name)
        .take(NAMES_MAX)
        .collect();
    html! {
        form action=(PATH) {
            label { "Lost clusters, separated by commas "
                input name="down" list="clusters" required="required" value=(parameters.text("down"));
            }
            " "
            datalist id="clusters" { @for name in &names { option value=(name) {} } }
            (field("for", "Duration, such as 30m; permanent if empty", parameters))
            (field("rate", "Evictions per second; as configured if empty", parameters))
            button { "Rehearse" }
        }
        p class="soft" { "A large federation takes a minute." }
    }
}

fn answer(rehearsed: &Rehearsed) -> Markup {
    html! {
        @for note in &rehearsed.notes { p class="problem" { b { "Note: " } (note) } }
        @for (id, title, body) in &what_if_sections(&rehearsed.answer) { (section(id, title, body)) }
        p class="soft" { "Objects: " (rehearsed.objects) }
    }
}
