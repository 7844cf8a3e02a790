//! Rendering of a report for a terminal.

use std::collections::BTreeSet;
use std::fmt::{self, Write};

use anstyle::{AnsiColor, Style};

use super::{duration, hidden_interpreters};
use crate::report::{EntrySource, PlacementRow, PluginRow, Report, TimelineEntry, Tone};
use crate::table::Table;

/// Spaces between the columns of a table.
const GAP: usize = 3;
/// Maximum number of rows in the placement table; the number of further rows is printed below it.
const PLACEMENTS_MAX: usize = 25;
/// Maximum number of clusters that get a column of their own.
const CLUSTER_COLUMNS_MAX: usize = 8;

/// Options of the text output.
#[derive(Clone, Copy, Debug)]
pub struct TextOptions {
    /// Maximum line length, in characters.
    pub width: usize,
    /// True to include built-in policies, retries and totals.
    pub verbose: bool,
}

const PLAIN: Style = Style::new();
const TITLE: Style = Style::new().bold();
const DIM: Style = Style::new().dimmed();
const GOOD: Style = AnsiColor::Green.on_default();
const WAITING: Style = AnsiColor::Yellow.on_default();
const BAD: Style = AnsiColor::Red.on_default();

/// Renders the report with ANSI styles. The caller's writer strips them if the output is not a terminal.
pub fn text(report: &Report, out: &mut impl Write, options: TextOptions) -> fmt::Result {
    header(report, out, options.width)?;
    timeline(report, out, options.width)?;
    placements(report, out)?;
    plugins(report, out, options.verbose)?;
    if options.verbose {
        totals(report, out)?;
    }
    promises(report, out)?;
    expectations(report, out)
}

fn styled(style: Style, text: &str) -> String {
    format!("{style}{text}{style:#}")
}

fn title(out: &mut impl Write, text: &str) -> fmt::Result {
    writeln!(out, "\n{}", styled(TITLE, text))
}

fn header(report: &Report, out: &mut impl Write, width: usize) -> fmt::Result {
    writeln!(out, "{}", styled(TITLE, &report.scenario))?;
    for line in wrap(&report.description, width) {
        writeln!(out, "{line}")?;
    }
    let clusters = report.clusters.len();
    let summary = format!(
        "seed {} · {} of virtual time · {clusters} clusters",
        report.seed,
        duration(report.duration_ms)
    );
    writeln!(out, "{}", styled(DIM, &summary))
}

fn timeline(report: &Report, out: &mut impl Write, width: usize) -> fmt::Result {
    title(out, "TIMELINE")?;
    let cluster_width = report
        .timeline
        .iter()
        .filter_map(|entry| entry.cluster.as_ref())
        .map(|c| c.chars().count());
    let cluster_width = cluster_width.max().unwrap_or(0);
    let mut last_at = None;
    for entry in &report.timeline {
        let at = duration(entry.at_ms);
        let shown = if last_at == Some(entry.at_ms / 100) { "" } else { &at };
        last_at = Some(entry.at_ms / 100);
        let (style, glyph) = (tone_style(entry.tone), glyph(entry.source));
        let cluster = entry.cluster.as_deref().unwrap_or("");
        let mark = styled(style, glyph);
        writeln!(
            out,
            "{shown:>8} {mark} {cluster:<cluster_width$}  {}",
            styled(style, &sentence(entry))
        )?;
        let indent = " ".repeat(8 + 3 + cluster_width + 4);
        for line in wrap(&why(entry), width.saturating_sub(indent.len())) {
            writeln!(out, "{indent}{}", styled(DIM, &line))?;
        }
    }
    Ok(())
}

fn glyph(source: EntrySource) -> &'static str {
    match source {
        EntrySource::Injected => "!",
        EntrySource::Decided => "●",
        EntrySource::Observed => "·",
    }
}

fn tone_style(tone: Tone) -> Style {
    match tone {
        Tone::Neutral => PLAIN,
        Tone::Good => GOOD,
        Tone::Waiting => WAITING,
        Tone::Bad => BAD,
    }
}

/// Formats the event of a timeline entry in one line.
pub(super) fn sentence(entry: &TimelineEntry) -> String {
    let mut line = String::new();
    if let Some(object) = &entry.object {
        // The surrounding text implies the kind; the key identifies the object.
        let key = object.split_once(' ').map_or(object.as_str(), |(_, key)| key);
        line.push_str(key);
        line.push(' ');
    }
    line.push_str(&entry.what);
    if !entry.effect.is_empty() {
        let joint = if matches!(entry.what.as_str(), "Ready is" | "health is" | "plugins are now") {
            " "
        } else {
            ": "
        };
        line.push_str(joint);
        line.push_str(&entry.effect);
    }
    if entry.count > 1 {
        let _ = write!(line, "  ×{}", entry.count);
    }
    line
}

/// Formats the reason of a timeline entry and its source; may be empty.
pub(super) fn why(entry: &TimelineEntry) -> String {
    let mut line = entry.reason.clone();
    if !entry.why.is_empty() {
        line = if line.is_empty() {
            entry.why.clone()
        } else {
            format!("{line}: {}", entry.why)
        };
    }
    match (&entry.plugin, &entry.controller) {
        (Some(plugin), _) => format!("{line} — {plugin}"),
        (None, Some(controller)) => format!("{line} — {controller}"),
        (None, None) => line,
    }
}

fn placements(report: &Report, out: &mut impl Write) -> fmt::Result {
    title(out, "FINAL PLACEMENT")?;
    let used: BTreeSet<&String> = report.placements.iter().flat_map(|row| row.clusters.keys()).collect();
    let columns: Vec<&String> = if used.len() <= CLUSTER_COLUMNS_MAX {
        used.into_iter().collect()
    } else {
        Vec::new()
    };
    let mut heads = vec!["binding", "replicas"];
    heads.extend(columns.iter().map(|cluster| cluster.as_str()));
    if columns.is_empty() {
        heads.push("clusters");
    }
    heads.push("old copies");
    let mut table = Table::new(GAP, &[]);
    table.row(heads);
    for row in report.placements.iter().take(PLACEMENTS_MAX) {
        let mut cells = vec![row.binding.clone(), row.replicas.to_string()];
        cells.extend(columns.iter().map(|cluster| cell(row, cluster)));
        if columns.is_empty() {
            let placed = row
                .clusters
                .keys()
                .map(|cluster| format!("{cluster} {}", cell(row, cluster)));
            cells.push(placed.collect::<Vec<_>>().join("  "));
        }
        cells.push(old_copies(row));
        table.row(cells);
    }
    write_table(out, &table)?;
    let more = report.placements.len().saturating_sub(PLACEMENTS_MAX);
    if more > 0 {
        writeln!(out, "  … and {more} more")
    } else {
        Ok(())
    }
}

/// Formats replicas with their health: `2 ✓`, `2 ✗`, `2 ?`.
pub(super) fn cell(row: &PlacementRow, cluster: &str) -> String {
    let Some(replicas) = row.clusters.get(cluster) else {
        return "-".to_owned();
    };
    let health = match row.health.get(cluster).map(String::as_str) {
        Some("Healthy") => "✓",
        Some("Unhealthy") => "✗",
        _ => "?",
    };
    format!("{replicas} {health}")
}

/// Formats the clusters that still have old copies.
pub(super) fn old_copies(row: &PlacementRow) -> String {
    let held = row.evicting_from.iter().map(|cluster| format!("held on {cluster}"));
    let waiting = row.waiting_in.iter().map(|cluster| format!("waits for {cluster}"));
    let all: Vec<_> = held.chain(waiting).collect();
    if all.is_empty() { "-".to_owned() } else { all.join(", ") }
}

/// Writes a table, indented, with its heads dimmed.
fn write_table(out: &mut impl Write, table: &Table) -> fmt::Result {
    for (index, line) in table.lines().into_iter().enumerate() {
        let line = if index == 0 { styled(DIM, &line) } else { line };
        writeln!(out, "  {line}")?;
    }
    Ok(())
}

fn plugins(report: &Report, out: &mut impl Write, verbose: bool) -> fmt::Result {
    let matters = |plugin: &&PluginRow| plugin.engine != "builtin" || plugin.faults > 0;
    let (hidden, shown): (Vec<_>, Vec<_>) = report
        .plugins
        .iter()
        .filter(|plugin| verbose || matters(plugin))
        .partition(|plugin| !verbose && plugin.is_unused_library());
    if shown.is_empty() && hidden.is_empty() {
        return Ok(());
    }
    title(out, "PLUGINS")?;
    if !hidden.is_empty() {
        writeln!(
            out,
            "  {}",
            styled(DIM, &hidden_interpreters(hidden.len(), "-v shows them"))
        )?;
    }
    if shown.is_empty() {
        return Ok(());
    }
    let mut table = Table::new(GAP, &[]);
    table.row(["name", "engine", "version", "calls", "faults"]);
    for plugin in shown {
        let numbers = [plugin.calls.to_string(), plugin.faults.to_string()];
        let mut row = vec![plugin.name.clone(), plugin.engine.clone(), plugin.version.clone()];
        row.extend(numbers);
        table.row(row);
    }
    write_table(out, &table)
}

fn totals(report: &Report, out: &mut impl Write) -> fmt::Result {
    title(out, "TOTALS")?;
    let totals = &report.totals;
    writeln!(out, "  {} decisions", totals.decisions)?;
    writeln!(out, "  {} requests to the control plane", totals.control_plane_requests)?;
    writeln!(out, "  {} requests to member clusters", totals.member_requests)?;
    if totals.scheduler_writes_delayed > 0 {
        let longest = super::duration(i64::try_from(totals.scheduler_write_wait_max_ms).unwrap_or(i64::MAX));
        let (all, delayed) = (totals.scheduler_writes, totals.scheduler_writes_delayed);
        writeln!(
            out,
            "  {all} writes of the scheduler, {delayed} held back by kube-api-qps, {longest} at most"
        )?;
    }
    for retry in &report.retries {
        writeln!(out, "  {:>6}× {}: {}", retry.count, retry.controller, retry.error)?;
    }
    Ok(())
}

fn expectations(report: &Report, out: &mut impl Write) -> fmt::Result {
    if report.expectations.is_empty() {
        return Ok(());
    }
    title(out, "EXPECTATIONS")?;
    let when_width = report
        .expectations
        .iter()
        .map(|row| row.when.chars().count())
        .max()
        .unwrap_or(0);
    for row in &report.expectations {
        let mark = if row.held {
            styled(GOOD, "✓")
        } else {
            styled(BAD, "✗")
        };
        writeln!(out, "  {mark} {:<when_width$}  {}", row.when, row.expected)?;
        if !row.held {
            let indent = " ".repeat(when_width + 6);
            writeln!(out, "{indent}{}", styled(BAD, &format!("seen: {}", row.seen)))?;
            writeln!(out, "{indent}{}", styled(DIM, &format!("scenario line {}", row.line)))?;
        }
    }
    let (failed, all) = (
        report.expectations.iter().filter(|row| !row.held).count(),
        report.expectations.len(),
    );
    let summary = if failed == 0 {
        styled(GOOD, &format!("all {all} expectations held"))
    } else {
        styled(BAD, &format!("{failed} of {all} expectations failed"))
    };
    writeln!(out, "\n{summary}")
}

fn promises(report: &Report, out: &mut impl Write) -> fmt::Result {
    if report.violations.is_empty() {
        return Ok(());
    }
    title(out, "Broken promises")?;
    for violation in &report.violations {
        let message = format!(
            "{} at {}: {}",
            violation.invariant,
            super::duration(violation.at_ms.max(0)),
            violation.seen
        );
        writeln!(out, "  {}", styled(BAD, &message))?;
    }
    Ok(())
}

/// Wraps a text at spaces. A word that is longer than a line gets a line of its own.
fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_wrapped_at_words() {
        assert_eq!(wrap("one two three", 7), ["one two", "three"]);
        assert_eq!(wrap("extraordinary", 4), ["extraordinary"]);
        assert!(wrap("", 10).is_empty());
    }

    #[test]
    fn interpreters_of_the_library_without_calls_are_counted_and_shown_with_v() {
        let plugin = |name: &str, library, calls| PluginRow {
            name: name.to_owned(),
            version: "0.1.0".to_owned(),
            engine: "lua".to_owned(),
            library,
            calls,
            faults: 0,
        };
        let mut report = crate::render::html::tests::report();
        report.plugins = vec![plugin("own", false, 0), plugin("ray", true, 0), plugin("flux", true, 2)];
        let shown = |verbose| {
            let mut out = String::new();
            plugins(&report, &mut out, verbose).unwrap();
            let names = ["own", "ray", "flux"].map(|name| out.contains(&format!("  {name} ")));
            (
                names,
                out.contains("1 interpreter without calls is not shown; -v shows them"),
            )
        };
        assert_eq!(shown(false), ([true, false, true], true));
        assert_eq!(shown(true), ([true, true, true], false));
    }

    #[test]
    fn the_heads_of_a_table_are_dimmed() {
        let mut table = Table::new(GAP, &[]);
        table.row(["a", "bb"]);
        table.row(["cccc", "d"]);
        let mut out = String::new();
        write_table(&mut out, &table).unwrap();
        assert_eq!(out, format!("  {}\n  cccc   d\n", styled(DIM, "a      bb")));
    }
}
