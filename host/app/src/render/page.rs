//! Frame of the HTML pages: landmarks, headings, tables and the origin of the content.
//!
//! A page is one file without network, fonts or scripts of others. It can be read without colours, with a keyboard
//! and with a screen reader; `checks` tests that.

use std::fmt::Write;

use crate::origin::Origin;

#[cfg(test)]
pub(super) mod checks;

const CSS: &str = include_str!("page.css");
/// Maximum number of rows of a table; the number of further rows is printed below it.
const ROWS_MAX: usize = 2_000;

/// Escapes a text for use between tags and in attributes.
pub(super) fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c => out.push(c),
        }
    }
    out
}

/// Part of a page with a heading and a link to it.
struct Section {
    id: &'static str,
    title: &'static str,
    body: String,
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
        Self { title: escape(title), description: escape(description), sections: Vec::new() }
    }

    /// Adds a section. The id is unique in the page; the body is HTML.
    pub(super) fn section(&mut self, id: &'static str, title: &'static str, body: String) {
        self.sections.push(Section { id, title, body });
    }

    /// Adds the section about program, inputs and settings. `run` has further facts, as pairs of name and value.
    pub(super) fn origin(&mut self, origin: &Origin, run: &[(&str, String)]) {
        let mut facts = vec![vec!["program".to_owned(), format!("bulkhead {}", origin.version)]];
        facts.extend(run.iter().map(|(name, value)| vec![(*name).to_owned(), value.clone()]));
        facts.extend(origin.inputs.iter().map(|input| vec![input.name.clone(), format!("sha256:{}", input.sha256)]));
        let settings: Vec<_> = origin.settings.iter().map(|(name, value)| vec![name.clone(), value.clone()]).collect();
        let mut body = table("Program and inputs", &["Name", "Value"], &facts);
        body.push_str(&table("Settings that differ from the defaults", &["Setting", "Value"], &settings));
        self.section("origin", "Origin", body);
    }

    /// Returns the page with a script at its end.
    pub(super) fn render(&self, script: &str) -> String {
        let Self { title, description, sections } = self;
        let mut out = format!(
            "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\"><title>{title}</title>\
             <meta name=\"viewport\" content=\"width=device-width\"><style>{CSS}</style></head><body>\
             <a class=\"skip\" href=\"#main\">Skip to the content</a><header><h1>{title}</h1><p>{description}</p></header>\
             <nav aria-label=\"Sections\"><ul>"
        );
        for Section { id, title, .. } in sections {
            let _ = write!(out, "<li><a href=\"#{id}\">{title}</a></li>");
        }
        out.push_str("</ul></nav><main id=\"main\" tabindex=\"-1\">");
        for Section { id, title, body } in sections {
            let _ = write!(
                out,
                "<section aria-labelledby=\"{id}\"><h2 id=\"{id}\" tabindex=\"-1\">{title}</h2>{body}</section>"
            );
        }
        let _ = write!(out, "</main><footer><p>Made by bulkhead {}.</p></footer>", crate::origin::VERSION);
        if !script.is_empty() {
            let _ = write!(out, "<script>{script}</script>");
        }
        out.push_str("</body></html>\n");
        out
    }
}

/// Returns a table whose first column names its rows; a sentence instead of a table without rows. Caption and columns
/// are HTML, the cells are not.
pub(super) fn table(caption: &str, columns: &[&str], rows: &[Vec<String>]) -> String {
    if rows.is_empty() {
        return format!("<p>{caption}: none.</p>");
    }
    let mut out = format!("<table><caption>{caption}</caption>{}<tbody>", heads(columns));
    for row in rows.iter().take(ROWS_MAX) {
        out.push_str("<tr>");
        for (index, cell) in row.iter().enumerate() {
            let cell = escape(cell);
            let _ =
                if index == 0 { write!(out, "<th scope=\"row\">{cell}</th>") } else { write!(out, "<td>{cell}</td>") };
        }
        out.push_str("</tr>");
    }
    out.push_str("</tbody></table>");
    let mut out = scroll(caption, &out);
    if rows.len() > ROWS_MAX {
        let _ = write!(out, "<p>{} more rows are not shown; <code>-o json</code> has all.</p>", rows.len() - ROWS_MAX);
    }
    out
}

/// Returns a block that scrolls to the side if the screen is too narrow for its content, with keyboard or mouse. Its
/// label is HTML.
pub(super) fn scroll(label: &str, body: &str) -> String {
    format!("<div class=\"scroll\" role=\"group\" aria-label=\"{label}\" tabindex=\"0\">{body}</div>")
}

/// Returns the head of a table.
pub(super) fn heads(columns: &[&str]) -> String {
    let heads: Vec<_> = columns.iter().map(|column| format!("<th scope=\"col\">{column}</th>")).collect();
    format!("<thead><tr>{}</tr></thead>", heads.concat())
}

/// Returns key figures: name, value, and class of the value.
pub(super) fn tiles(tiles: &[(&str, String, &str)]) -> String {
    let tile = |(name, value, class): &(&str, String, &str)| {
        format!("<div class=\"tile {class}\"><dt>{name}</dt><dd>{}</dd></div>", escape(value))
    };
    let tiles: Vec<_> = tiles.iter().map(tile).collect();
    format!("<dl class=\"tiles\">{}</dl>", tiles.concat())
}

/// Returns a block that opens on demand, with keyboard or mouse.
pub(super) fn details(summary: &str, body: &str) -> String {
    format!("<details><summary>{}</summary>{body}</details>", escape(summary))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_names_the_rows_that_it_does_not_show() {
        let rows: Vec<_> = (0..ROWS_MAX + 3).map(|row| vec![row.to_string(), "<b>".to_owned()]).collect();
        let html = table("Rows", &["Row", "Text"], &rows);
        assert!(html.contains("<p>3 more rows are not shown;") && !html.contains("<b>"), "{}", &html[..200]);
        assert_eq!(html.matches("<tr>").count(), ROWS_MAX + 1);
        assert_eq!(table("Rows", &["Row"], &[]), "<p>Rows: none.</p>");
    }
}
