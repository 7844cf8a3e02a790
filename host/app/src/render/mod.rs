//! temporary
use crate::report::Report;
use std::fmt::Write;
pub struct TextOptions { pub width: usize, pub verbose: bool }
pub fn duration(ms: i64) -> String { format!("{}.{:03}s", ms/1000, ms%1000) }
pub fn text(report: &Report, out: &mut impl Write, o: TextOptions) -> std::fmt::Result {
    for e in &report.timeline { writeln!(out, "{:>10} {:?} {:12} {:?} {} {} | {} {} {:?} x{}", duration(e.at_ms), e.tone, e.cluster.clone().unwrap_or_default(), e.object, e.what, e.effect, e.reason, e.why, e.plugin, e.count)?; }
    for p in &report.placements.iter().take(10).collect::<Vec<_>>() { writeln!(out, "{p:?}")?; }
    for e in &report.expectations { writeln!(out, "{} {} {} {}", e.held, e.when, e.expected, e.seen)?; }
    if o.verbose { for p in &report.plugins { writeln!(out, "{p:?}")?; } for r in &report.retries { writeln!(out, "{r:?}")?; } writeln!(out, "{:?}", report.totals)?; }
    Ok(())
}
pub fn json(report: &Report) -> String { serde_json::to_string_pretty(report).unwrap_or_default() + "\n" }
pub fn html(_: &Report) -> String { String::new() }
