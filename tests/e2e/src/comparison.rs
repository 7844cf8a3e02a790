//! Comparison of runs without and with telemetry.

use std::fmt::Write as _;

use crate::telemetry::{Choice, Telemetry};

/// Figures of a run, each with its name. All runs have the same names in the same order.
pub(crate) type Figures = Vec<(&'static str, f64)>;

/// Measures pairs of runs, one without and one with telemetry, in alternating order, and returns a table of medians.
pub(crate) async fn compared(
    choice: &Choice,
    pairs: usize,
    mut measure: impl AsyncFnMut(Telemetry<'_>) -> anyhow::Result<Figures>,
) -> anyhow::Result<String> {
    let (base, full) = (Telemetry::Journal(&[]), choice.compared());
    let (mut without, mut with) = (Vec::new(), Vec::new());
    for pair in 0..pairs {
        let order = if pair % 2 == 0 { [base, full] } else { [full, base] };
        for telemetry in order {
            println!("\npair {} of {pairs}, {telemetry:?}", pair + 1);
            let figures = measure(telemetry).await?;
            if telemetry == full {
                with.push(figures);
            } else {
                without.push(figures);
            }
        }
    }
    Ok(table(&without, &with))
}

/// Returns a table of the medians, and of their ratios.
fn table(without: &[Figures], with: &[Figures]) -> String {
    let mut out = String::from("| subject | without | with | ratio |\n| --- | --- | --- | --- |\n");
    for (row, (name, _)) in without.first().into_iter().flatten().enumerate() {
        let (without, with) = (median(without, row), median(with, row));
        let ratio = if without > 0.0 {
            format!("{:.2}", with / without)
        } else {
            "–".to_owned()
        };
        // Writing to a string cannot fail.
        let _ = writeln!(out, "| {name} | {without:.2} | {with:.2} | {ratio} |");
    }
    out
}

/// Returns the median of one figure.
fn median(runs: &[Figures], row: usize) -> f64 {
    let values = runs.iter().filter_map(|figures| figures.get(row));
    let mut values: Vec<_> = values.map(|(_, value)| *value).collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_has_medians_and_ratios() {
        let run = |seconds: f64| vec![("processor time, s", seconds), ("writes", 7.0), ("conflicts", 0.0)];
        let (without, with) = ([run(4.0), run(2.0), run(3.0)], [run(3.3), run(9.0), run(1.0)]);
        let expected = "| subject | without | with | ratio |\n| --- | --- | --- | --- |\n\
                        | processor time, s | 3.00 | 3.30 | 1.10 |\n| writes | 7.00 | 7.00 | 1.00 |\n\
                        | conflicts | 0.00 | 0.00 | – |\n";
        assert_eq!(table(&without, &with), expected);
    }
}
