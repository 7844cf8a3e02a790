//! Timeline of the decisions, with filters and a drawing of their number over time.

use bulkhead_core::journal::Decision;
use bulkhead_core::time::Time;
use bulkhead_simulator::render::page::scroll;
use maud::{Markup, html};

use super::rows;
use crate::frame::{Page, View, choice, field, filter, moment, pager, scale, section};
use crate::history::Row;
use crate::query::{Paged, Parameters};

/// Path of the page.
pub const PATH: &str = "/timeline";
/// Number of decisions on a page.
const ROWS_MAX: usize = 100;
/// Number of columns of the drawing.
const COLUMNS: i64 = 60;
const COLUMN_WIDTH: i64 = 16;
const HEIGHT: i64 = 80;

/// Returns the page.
///
/// # Errors
///
/// A parameter has no valid value.
pub fn page(view: &View<'_>, parameters: &Parameters) -> Result<Page, String> {
    let at = parameters.moment(view.history.extent())?;
    let (from, until) = (parameters.time("from")?, parameters.time("until")?);
    let number = parameters.number("page")?.unwrap_or(1);
    let wanted = Wanted::read(parameters)?;
    let end = at.into_iter().chain(until).min();
    let found: Vec<_> = view
        .history
        .between(from, end)
        .iter()
        .filter(|row| wanted.selects(row))
        .collect();
    let drawing = drawing(&found, parameters);
    // The newest decision is the first one.
    let page = Paged::of(found.into_iter().rev(), number, ROWS_MAX);
    let body = html! {
        (section("time", "Time", &scale(PATH, parameters, view.history, at)))
        (section("filters", "Filters", &filters(parameters)))
        (section("drawing", "Number of decisions", &drawing))
        section aria-labelledby="decisions" {
            h2 id="decisions" tabindex="-1" { "Decisions" }
            (pager(PATH, parameters, &page, "decisions"))
            (rows::table_of("Decisions, newest first", page.items.iter().copied()))
            @if page.pages > 1 { (pager(PATH, parameters, &page, "decisions")) }
        }
    };
    Ok(Page {
        title: "Timeline".to_owned(),
        description: "Recorded decisions of all processes. The time of a decision leads to the map at that time."
            .to_owned(),
        path: PATH,
        follows: end.is_none() && number == 1,
        body,
    })
}

/// Filter of decisions.
struct Wanted<'a> {
    decision: Option<Decision>,
    cluster: &'a str,
    namespace: &'a str,
    words: String,
    about_place: bool,
}

impl<'a> Wanted<'a> {
    fn read(parameters: &'a Parameters) -> Result<Self, String> {
        let name = parameters.text("decision");
        let about_place = name == "place";
        let decision = (!name.is_empty() && !about_place).then(|| bulkhead_simulator::recorded::select::decision(name));
        Ok(Self {
            decision: decision.transpose().map_err(|error| format!("decision: {error}"))?,
            cluster: parameters.text("cluster"),
            namespace: parameters.text("namespace"),
            words: parameters.text("text").to_lowercase(),
            about_place,
        })
    }

    fn selects(&self, row: &Row) -> bool {
        self.decision.is_none_or(|decision| row.decision == decision)
            && (!self.about_place || row.decision.is_about_place())
            && (self.namespace.is_empty() || row.subject.namespace == self.namespace)
            && (self.cluster.is_empty() || row.concerns_cluster(self.cluster))
            && (self.words.is_empty() || row.has_words(&self.words))
    }
}

fn filters(parameters: &Parameters) -> Markup {
    let names: Vec<_> = Decision::ALL.iter().map(|decision| format!("{decision:?}")).collect();
    let mut kinds = vec![("", "all"), ("place", "all about the place of workloads")];
    kinds.extend(names.iter().map(|name| (name.as_str(), name.as_str())));
    let fields = html! {
        (choice("decision", "Kind", &kinds, parameters))
        (field("cluster", "Cluster", parameters))
        (field("namespace", "Namespace", parameters))
        (field("text", "Text", parameters))
        (field("from", "From", parameters))
        (field("until", "Until", parameters))
    };
    filter(
        PATH,
        parameters,
        &["decision", "cluster", "namespace", "text", "from", "until"],
        &fields,
    )
}

/// Column of the drawing.
#[derive(Clone, Copy, Default)]
struct Column {
    all: i64,
    evicted: i64,
}

/// Draws the number of decisions over time. Each column is a link to its decisions.
fn drawing(rows: &[&Row], parameters: &Parameters) -> Markup {
    let (Some(first), Some(last)) = (rows.first(), rows.last()) else {
        return html! { p { "There are no decisions to draw." } };
    };
    let step_ms = ((last.order_ms - first.order_ms) / COLUMNS + 1).max(1_000);
    let mut columns = [Column::default(); COLUMNS as usize];
    for row in rows {
        let position = usize::try_from((row.order_ms - first.order_ms) / step_ms).unwrap_or_default();
        if let Some(column) = columns.get_mut(position) {
            column.all += 1;
            column.evicted += i64::from(row.decision == Decision::Evicted);
        }
    }
    let most = columns.iter().map(|column| column.all).max().unwrap_or(1).max(1);
    let bars = (0..).zip(columns).filter(|(_, column)| column.all > 0);
    let bar = |(position, column): (i64, Column)| {
        let from_ms = first.order_ms + position * step_ms;
        bar(position, column, most, (from_ms, from_ms + step_ms - 1), parameters)
    };
    let drawing = html! {
        svg class="histogram" role="group" aria-label="Number of decisions over time"
            viewBox={ "0 0 " (COLUMNS * COLUMN_WIDTH) " " (HEIGHT) } {
            @for column in bars { (bar(column)) }
        }
    };
    html! {
        p { a class="skip" href="#decisions" { "Skip the drawing" } }
        p {
            "Height: decisions in " (bulkhead_simulator::render::duration(step_ms)) ", at most " (most)
            "; the lower part: evictions. A column leads to its decisions."
        }
        (scroll("Drawing of the number of decisions", &drawing))
    }
}

fn bar(position: i64, column: Column, most: i64, (from_ms, until_ms): (i64, i64), parameters: &Parameters) -> Markup {
    let height = |count: i64| if count == 0 { 0 } else { (count * HEIGHT / most).max(2) };
    let period = parameters
        .with("from", from_ms.to_string())
        .with("until", until_ms.to_string());
    let link = period.with("at", "").with("position", "").with("page", "").link(PATH);
    let start = moment(Time::from_millis(from_ms));
    let label = format!(
        "from {start}: {} decisions, {} of them evictions",
        column.all, column.evicted
    );
    let x = position * COLUMN_WIDTH;
    html! {
        a href=(link) aria-label=(label) {
            rect class="hit" x=(x) y="0" width=(COLUMN_WIDTH) height=(HEIGHT) {}
            rect x=(x + 1) y=(HEIGHT - height(column.all)) width=(COLUMN_WIDTH - 2) height=(height(column.all)) {}
            rect class="bad" x=(x + 1) y=(HEIGHT - height(column.evicted)) width=(COLUMN_WIDTH - 2)
                height=(height(column.evicted)) {}
            title { (label) }
        }
    }
}
