//! Pages about a request that cannot be answered.

use bulkhead_core::journal::Subject;
use maud::{Markup, html};

use super::bindings;
use crate::frame::{Page, View, object};
use crate::query::Parameters;

/// Maximum number of suggestions.
const SUGGESTIONS_MAX: usize = 5;

/// Returns a page with a sentence and advice.
pub fn page(title: &str, description: String, body: Markup) -> Page {
    Page {
        title: title.to_owned(),
        description,
        path: "",
        follows: false,
        body,
    }
}

/// Returns the page of a path that does not exist.
pub fn unknown_path(path: &str) -> Page {
    let body = html! { p { a href="/" { "Map of the federation" } } };
    page(
        "There is no such page",
        format!("The console has no page {path}."),
        body,
    )
}

/// Returns the page of a request with a wrong parameter.
pub fn wrong_parameter(message: String) -> Page {
    let body = html! { p { "Correct the address, or go to the " a href="/" { "map of the federation" } "." } };
    page("The address has a wrong parameter", message, body)
}

/// Returns the page of an object without decisions, with objects of a similar name.
pub fn unknown_object(view: &View<'_>, subject: &Subject) -> Page {
    let name = subject.name.as_str();
    let is_similar = |known: &&Subject| {
        known.is_binding() && !name.is_empty() && (known.name.contains(name) || name.contains(known.name.as_str()))
    };
    let mut similar: Vec<_> = view
        .history
        .rows()
        .iter()
        .map(|row| &*row.subject)
        .filter(is_similar)
        .collect();
    similar.sort_unstable();
    similar.dedup();
    let search = Parameters::default().with("text", name).link(bindings::PATH);
    let body = html! {
        p { "Bindings are named after their resource: the binding of the Deployment nginx is nginx-deployment." }
        @if !similar.is_empty() {
            h2 { "Similar names" }
            ul { @for known in similar.iter().take(SUGGESTIONS_MAX) { li { (object(known)) } } }
        }
        p { a href=(search) { "Search the bindings" } }
    };
    page(
        "There is no such object",
        format!("No recorded decision is about {subject}."),
        body,
    )
}
