//! List of the bindings.

use bulkhead_core::journal::Subject;
use maud::{Markup, html};

use crate::federation::{BindingNow, Federation};
use crate::frame::{
    Page, View, choice, cluster, decision_link, field, filter, moment, object, pager, scale, section, table, text,
};
use crate::query::{Paged, Parameters};

/// Path of the page.
pub const PATH: &str = "/bindings";
/// Number of bindings on a page.
const BINDINGS_MAX: usize = 100;
/// States of the filter: value and text.
const STATES: [(&str, &str); 3] = [
    ("", "all"),
    ("leaving", "with evictions under way"),
    ("nowhere", "without a recorded placement"),
];

/// Returns the page.
///
/// # Errors
///
/// A parameter has no valid value.
pub fn page(view: &View<'_>, parameters: &Parameters) -> Result<Page, String> {
    let at = parameters.moment(view.history.extent())?;
    let number = parameters.number("page")?.unwrap_or(1);
    let state = parameters.option("state", &STATES)?;
    let federation = Federation::at(view.history, at, at.unwrap_or(view.now));
    let words = parameters.text("text").to_lowercase();
    let (namespace, on) = (parameters.text("namespace"), parameters.text("cluster"));
    let is_wanted = |(subject, binding): &(&&Subject, &BindingNow<'_>)| {
        let has_state = match state {
            "leaving" => !binding.leaving.is_empty(),
            "nowhere" => binding.placement.is_empty(),
            _ => true,
        };
        has_state
            && (namespace.is_empty() || subject.namespace == namespace)
            && (on.is_empty() || binding.is_on(on) || binding.leaving.contains_key(on))
            && (words.is_empty() || subject.key().to_lowercase().contains(&words))
    };
    let wanted: Vec<_> = federation.bindings.iter().filter(is_wanted).collect();
    let page = Paged::of(wanted.into_iter(), number, BINDINGS_MAX);
    let rows: Vec<_> = page
        .items
        .iter()
        .map(|(subject, binding)| row(subject, binding))
        .collect();
    let columns = ["Binding", "Kind", "Placement", "Leaving", "Last decision"];
    let fields = html! {
        (field("text", "Name", parameters))
        (field("namespace", "Namespace", parameters))
        (field("cluster", "Cluster", parameters))
        (choice("state", "State", &STATES, parameters))
    };
    let list = html! {
        (filter(PATH, parameters, &["text", "namespace", "cluster", "state"], &fields))
        (pager(PATH, parameters, &page, "bindings"))
        (table("Bindings, by name", &columns, &rows))
    };
    let body = html! {
        (section("time", "Time", &scale(PATH, parameters, view.history, at)))
        (section("bindings", "Bindings", &list))
    };
    Ok(Page {
        title: "Bindings".to_owned(),
        description: "Bindings that the recorded decisions are about.".to_owned(),
        path: PATH,
        follows: at.is_none(),
        body,
    })
}

fn row(subject: &Subject, binding: &BindingNow<'_>) -> Vec<Markup> {
    let placement = if binding.placement.is_empty() {
        "unknown"
    } else {
        binding.placement
    };
    vec![
        object(subject),
        text(&subject.kind),
        text(placement),
        html! { @for name in binding.leaving.keys() { (cluster(name)) " " } },
        html! {
            @if let Some(row) = binding.last {
                a href=(decision_link(row)) { (format!("{:?}", row.decision)) } " at " (moment(row.at))
            }
        },
    ]
}
