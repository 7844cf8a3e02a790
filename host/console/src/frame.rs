//! Frame of the pages, and components that all of them have.

use bulkhead_controllers::QueuedEviction;
use bulkhead_core::journal::Subject;
use bulkhead_core::time::Time;
use bulkhead_plugin::PluginReport;
use bulkhead_simulator::origin::VERSION;
use bulkhead_simulator::render::page::{heads, scroll};
use maud::{Markup, PreEscaped, html};

use crate::history::{History, Row};
use crate::query::{POSITION_MAX, Paged, Parameters};

#[cfg(test)]
#[path = "../../../tests/pages/checks.rs"]
pub(crate) mod checks;

/// Pages with a link in the head: path and name.
const PAGES: [(&str, &str); 5] = [
    ("/", "Map"),
    ("/timeline", "Timeline"),
    ("/bindings", "Bindings"),
    ("/plugins", "Plugins"),
    ("/what-if", "What if"),
];

/// Content that pages are made of.
pub struct View<'a> {
    /// Index of the records.
    pub history: &'a History,
    /// Evictions that the leader has queued, if it was asked.
    pub queued: Option<&'a [QueuedEviction]>,
    /// Policies of the process with the cost of their calls, if it was asked.
    pub costs: Option<&'a [PluginReport]>,
    /// Name of the source.
    pub source: &'a str,
    /// Problems of the source.
    pub problems: &'a [String],
    /// Current time.
    pub now: Time,
}

/// Page: title, content, and its place in the console.
pub struct Page {
    /// Title.
    pub title: String,
    /// Sentence below the title.
    pub description: String,
    /// Path of the page in the head that it belongs to.
    pub path: &'static str,
    /// True if the page shows the end of the records, so that new ones change it.
    pub follows: bool,
    /// Content of `main`.
    pub body: Markup,
}

impl Page {
    /// Renders the page.
    pub fn render(&self, view: &View<'_>) -> String {
        let live = self.follows;
        let page = html! {
            (PreEscaped("<!doctype html>"))
            html lang="en" {
                head {
                    meta charset="utf-8";
                    title { (self.title) " – Bulkhead console" }
                    meta name="viewport" content="width=device-width";
                    link rel="icon" href="/icon.svg";
                    link rel="stylesheet" href="/style.css";
                }
                body {
                    a class="skip" href="#main" { "Skip to the content" }
                    header {
                        h1 { (self.title) }
                        p { (self.description) }
                        nav aria-label="Pages" { ul { @for (path, name) in PAGES { li { (self.head(path, name)) } } } }
                        @if live {
                            p id="live" class="soft" role="status" data-version=(view.history.version()) {
                                "This page follows new decisions while its script runs."
                            }
                        }
                    }
                    main id="main" tabindex="-1" {
                        (problems(view))
                        (self.body)
                    }
                    footer { p { "Bulkhead " (VERSION) ", read-only, " (view.source) } }
                    @if live { script src="/script.js" {} }
                }
            }
        };
        page.into_string() + "\n"
    }

    fn head(&self, path: &str, name: &str) -> Markup {
        let current = (path == self.path).then_some("page");
        html! { a href=(path) aria-current=[current] { (name) } }
    }
}

/// Returns the problems of the source, and the number of records that are not in the index.
fn problems(view: &View<'_>) -> Markup {
    let dropped = view.history.dropped();
    html! {
        @for problem in view.problems { p class="problem" { b { "Warning: " } (problem) } }
        @if dropped > 0 {
            p class="soft" { (dropped) " older records are not shown; bulkhead history lists them." }
        }
    }
}

/// Returns a section with a heading.
pub fn section(id: &str, title: &str, body: &Markup) -> Markup {
    html! { section aria-labelledby=(id) { h2 id=(id) { (title) } (body) } }
}

/// Returns a table whose first column names its rows; a sentence instead of a table without rows.
pub fn table(caption: &str, columns: &[&str], rows: &[Vec<Markup>]) -> Markup {
    if rows.is_empty() {
        return html! { p { (caption) ": none." } };
    }
    let table = html! {
        table {
            caption { (caption) }
            (heads(columns))
            tbody {
                @for row in rows {
                    tr {
                        @for (index, cell) in row.iter().enumerate() {
                            @if index == 0 { th scope="row" { (cell) } } @else { td { (cell) } }
                        }
                    }
                }
            }
        }
    };
    scroll(caption, &table)
}

/// Returns a cell of plain text.
pub fn text(text: impl AsRef<str>) -> Markup {
    html! { (text.as_ref()) }
}

/// Returns the sentence about the part of a list that a page shows, with links to the other parts.
pub fn pager<T>(path: &str, parameters: &Parameters, page: &Paged<T>, items: &str) -> Markup {
    let link = |number: usize| parameters.with("page", number.to_string()).link(path);
    let last = page.first + page.items.len();
    html! {
        p class="pager" {
            @if page.total == 0 { "No " (items) " match. " }
            @else { (page.first + 1) " to " (last) " of " (page.total) " " (items) ". " }
            @if page.number > 1 {
                a href=(link(1)) { "First page" } " " a href=(link(page.number - 1)) { "Previous page" } " "
            }
            @if page.number < page.pages {
                a href=(link(page.number + 1)) { "Next page" } " " a href=(link(page.pages)) { "Last page" }
            }
        }
    }
}

/// Field of a filter: name, label and value.
pub fn field(name: &str, label: &str, parameters: &Parameters) -> Markup {
    html! { label { (label) " " input name=(name) value=(parameters.text(name)); } " " }
}

/// Choice of a filter: name, label, and pairs of value and text. The first one is that without a filter.
pub fn choice(name: &str, label: &str, options: &[(&str, &str)], parameters: &Parameters) -> Markup {
    let chosen = parameters.text(name);
    html! {
        label {
            (label) " "
            select name=(name) {
                @for (value, text) in options {
                    option value=(value) selected=[(*value == chosen).then_some("selected")] { (text) }
                }
            }
        }
        " "
    }
}

/// Returns a form that filters a page. Parameters that are no fields of it are kept, except for the number of the page.
pub fn filter(path: &str, parameters: &Parameters, fields: &[&str], body: &Markup) -> Markup {
    let left_out = [fields, &["page"]].concat();
    html! {
        form action=(path) role="search" aria-label="Filter" {
            @for (name, value) in parameters.others(&left_out) { input type="hidden" name=(name) value=(value); }
            (body)
            button { "Filter" }
        }
    }
}

/// Returns the scale of time: a position, or a time. The page shows the state at that time.
pub fn scale(path: &str, parameters: &Parameters, history: &History, at: Option<Time>) -> Markup {
    let Some((first, last)) = history.extent() else {
        return html! {};
    };
    let span_ms = last.millis_since(first).max(1);
    let position = at.map_or(POSITION_MAX, |at| {
        let offset_ms = at.millis_since(first).clamp(0, span_ms);
        i64::try_from(i128::from(offset_ms) * i128::from(POSITION_MAX) / i128::from(span_ms)).unwrap_or(POSITION_MAX)
    });
    let kept: Vec<_> = parameters.others(&["at", "position", "page"]).collect();
    let hidden = html! {
        @for (name, value) in &kept { input type="hidden" name=(name) value=(value); }
    };
    let end = parameters
        .with("at", "")
        .with("position", "")
        .with("page", "")
        .link(path);
    html! {
        form action=(path) class="scale" {
            (hidden)
            label { "Position in the records "
                input type="range" name="position" min="0" max=(POSITION_MAX) value=(position);
            }
            button { "Go to position" }
        }
        form action=(path) class="scale" {
            (hidden)
            label { "Time " input name="at" value=(at.map(moment).unwrap_or_default()); }
            " " button { "Go to time" }
        }
        p {
            "Records from " (moment(first)) " to " (moment(last)) ". "
            @if at.is_some() { a href=(end) { "Go to the end" } } @else { "The page shows the end." }
        }
    }
}

/// Formats a time with its milliseconds.
pub fn moment(time: Time) -> String {
    time.timestamp().to_string()
}

/// Returns the address of a decision.
pub fn decision_link(row: &Row) -> String {
    decision_path(&row.id().to_string())
}

/// Returns the address of a decision by its id.
pub fn decision_path(id: &str) -> String {
    Parameters::default().with("id", id).link("/decision")
}

/// Returns the address of the page of an object.
pub fn object_link(subject: &Subject) -> String {
    let parameters = Parameters::default().with("kind", &subject.kind);
    let parameters = parameters
        .with("namespace", &subject.namespace)
        .with("name", &subject.name);
    parameters.link("/binding")
}

/// Returns a link to the page of an object.
pub fn object(subject: &Subject) -> Markup {
    html! { a href=(object_link(subject)) { (subject.key()) } }
}

/// Returns a link to the decisions about a member cluster.
pub fn cluster(name: &str) -> Markup {
    html! { a href=(Parameters::default().with("cluster", name).link("/timeline")) { (name) } }
}

/// Returns the class of the colour of a decision. The words repeat its meaning.
pub fn tone(row: &Row) -> &'static str {
    use bulkhead_core::journal::Decision::{
        Evicted, EvictionsResumed, EvictionsWait, Held, NotScheduled, PluginFault, Released, RemovalWaits, Scheduled,
        ShadowDiverged, Tainted, Tolerated, Untainted,
    };
    match row.decision {
        Evicted | NotScheduled | PluginFault | Tainted => "bad",
        EvictionsWait | Held | RemovalWaits | Tolerated | ShadowDiverged => "waiting",
        Released | Scheduled | Untainted | EvictionsResumed => "good",
        _ => "",
    }
}
