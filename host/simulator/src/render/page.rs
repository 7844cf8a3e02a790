//! Frame of the HTML pages: landmarks, headings, tables and the origin of the content.
//!
//! A page is one file without network, fonts or scripts of others. It can be read without colours, with a keyboard
//! and with a screen reader; `checks` tests that. The web console has a frame of its own and the same components.

use maud::{Markup, PreEscaped, html};

use crate::origin::Origin;

#[cfg(test)]
#[path = "../../../../tests/pages/checks.rs"]
pub(super) mod checks;

/// Style sheet of the components, for light and dark screens and for printers.
pub const CSS: &str = include_str!("page.css");
/// Maximum number of rows of a table; the number of further rows is printed below it.
const ROWS_MAX: usize = 2_000;

/// Part of a page with a heading and a link to it.
struct Section {
    id: &'static str,
    title: &'static str,
    body: Markup,
}

/// Page under construction.
pub(super) struct Page {
    title: String,
    description: String,
    sections: Vec<Section>,
}

impl Page {
    /// Returns a page without sections.
    pub(super) fn new(title: &str, description: &str) -> Self {
        Self {
            title: title.to_owned(),
            description: description.to_owned(),
            sections: Vec::new(),
        }
    }

    /// Adds a section. The id is unique in the page.
    pub(super) fn section(&mut self, id: &'static str, title: &'static str, body: Markup) {
        self.sections.push(Section { id, title, body });
    }

    /// Adds the section about program, inputs and settings. `run` has further facts, as pairs of name and value.
    pub(super) fn origin(&mut self, origin: &Origin, run: &[(&str, String)]) {
        let mut facts = vec![vec!["program".to_owned(), format!("bulkhead {}", origin.version)]];
        facts.extend(run.iter().map(|(name, value)| vec![(*name).to_owned(), value.clone()]));
        facts.extend(
            origin
                .inputs
                .iter()
                .map(|input| vec![input.name.clone(), format!("sha256:{}", input.sha256)]),
        );
        let settings: Vec<_> = origin
            .settings
            .iter()
            .map(|(name, value)| vec![name.clone(), value.clone()])
            .collect();
        let body = html! {
            (table("Program and inputs", &["Name", "Value"], &facts))
            (table("Settings that differ from the defaults", &["Setting", "Value"], &settings))
        };
        self.section("origin", "Origin", body);
    }

    /// Returns the page with a script at its end.
    pub(super) fn render(&self, script: &str) -> String {
        let Self {
            title,
            description,
            sections,
        } = self;
        let page = html! {
            (PreEscaped("<!doctype html>"))
            html lang="en" {
                head {
                    meta charset="utf-8";
                    title { (title) }
                    meta name="viewport" content="width=device-width";
                    style { (PreEscaped(CSS)) }
                }
                body {
                    a class="skip" href="#main" { "Skip to the content" }
                    header { h1 { (title) } p { (description) } }
                    nav aria-label="Sections" {
                        ul { @for Section { id, title, .. } in sections { li { a href={ "#" (id) } { (title) } } } }
                    }
                    main id="main" tabindex="-1" {
                        @for Section { id, title, body } in sections {
                            section aria-labelledby=(id) { h2 id=(id) tabindex="-1" { (title) } (body) }
                        }
                    }
                    footer { p { "Made by bulkhead " (crate::origin::VERSION) "." } }
                    @if !script.is_empty() { script { (PreEscaped(script)) } }
                }
            }
        };
        page.into_string() + "\n"
    }
}

/// Returns a table whose first column names its rows; a sentence instead of a table without rows.
pub(super) fn table(caption: &str, columns: &[&str], rows: &[Vec<String>]) -> Markup {
    if rows.is_empty() {
        return html! { p { (caption) ": none." } };
    }
    let shown = html! {
        table {
            caption { (caption) }
            (heads(columns))
            tbody {
                @for row in rows.iter().take(ROWS_MAX) {
                    tr {
                        @for (index, cell) in row.iter().enumerate() {
                            @if index == 0 { th scope="row" { (cell) } } @else { td { (cell) } }
                        }
                    }
                }
            }
        }
    };
    html! {
        (scroll(caption, &shown))
        @if rows.len() > ROWS_MAX {
            p { (rows.len() - ROWS_MAX) " more rows are not shown; " code { "-o json" } " has all." }
        }
    }
}

/// Returns a block that scrolls to the side if the screen is too narrow for its content, with keyboard or mouse.
pub fn scroll(label: &str, body: &Markup) -> Markup {
    html! { div class="scroll" role="group" aria-label=(label) tabindex="0" { (body) } }
}

/// Returns the head of a table.
pub fn heads(columns: &[&str]) -> Markup {
    html! { thead { tr { @for column in columns { th scope="col" { (column) } } } } }
}

/// Returns key figures: name, value, and class of the value.
pub fn tiles(tiles: &[(&str, String, &str)]) -> Markup {
    html! {
        dl class="tiles" {
            @for (name, value, class) in tiles { div class={ "tile " (class) } { dt { (name) } dd { (value) } } }
        }
    }
}

/// Returns a block that opens on demand, with keyboard or mouse.
pub fn details(summary: &str, body: &Markup) -> Markup {
    html! { details { summary { (summary) } (body) } }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_names_the_rows_that_it_does_not_show() {
        let rows: Vec<_> = (0..ROWS_MAX + 3)
            .map(|row| vec![row.to_string(), "<b>".to_owned()])
            .collect();
        let html = table("Rows", &["Row", "Text"], &rows).into_string();
        assert!(
            html.contains("<p>3 more rows are not shown;") && !html.contains("<b>"),
            "{}",
            &html[..200]
        );
        assert_eq!(html.matches("<tr>").count(), ROWS_MAX + 1);
        assert_eq!(table("Rows", &["Row"], &[]).into_string(), "<p>Rows: none.</p>");
    }
}
