//! Trials of the alerts, with a Prometheus server: `cargo xtask full alerts`.
//!
//! The server scrapes the processes of a federation and evaluates the rules of the chart. Each alert is raised by a
//! real fault. Then the advice of the section that it links to is followed, with the section's own commands, until the
//! alert is over. [`rules::shortened`] shortens the times of the rules; thresholds stay.
//!
//! Pods and charts do not exist on these control planes: `kubectl logs` is a log file, and a change of a chart's value
//! is a process with another argument.

mod certificate;
mod clusters;
mod conflicts;
mod evictions;
mod permissions;
mod plugins;
mod processes;
mod prometheus;
mod rules;
mod runbook;
mod trial;

use std::fs;
use std::path::Path;

use anyhow::{Context as _, ensure};

use crate::scenarios::Scenario;

/// Alerts that share a federation.
struct Group {
    name: &'static str,
    alerts: &'static [&'static str],
    run: Scenario,
}

const GROUPS: [Group; 4] = [
    Group {
        name: "alerts about processes",
        alerts: processes::ALERTS,
        run: |site| Box::pin(processes::run(site)),
    },
    Group {
        name: "alerts about permissions",
        alerts: permissions::ALERTS,
        run: |site| Box::pin(permissions::run(site)),
    },
    Group {
        name: "alerts about clusters",
        alerts: clusters::ALERTS,
        run: |site| Box::pin(clusters::run(site)),
    },
    Group {
        name: "alerts about evictions and plugins",
        alerts: evictions::ALERTS,
        run: |site| Box::pin(evictions::run(site)),
    },
];

/// Returns the trials of the alerts of a chart. The name of each has its alerts.
///
/// # Errors
///
/// The chart has another alert, or lacks one.
pub(crate) fn all(root: &Path) -> anyhow::Result<Vec<(String, Scenario)>> {
    let path = root.join(rules::PATH);
    let text = fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))?;
    check(&rules::names(&text))?;
    let scenario = |group: Group| (format!("{}: {}", group.name, group.alerts.join(", ")), group.run);
    Ok(GROUPS.into_iter().map(scenario).collect())
}

/// Checks that each alert of the chart is tried in one group, and no other one.
fn check(of_chart: &[&str]) -> anyhow::Result<()> {
    let tried: Vec<_> = GROUPS.iter().flat_map(|group| group.alerts.iter().copied()).collect();
    let missing: Vec<_> = of_chart.iter().filter(|name| !tried.contains(*name)).collect();
    ensure!(missing.is_empty(), "no group tries the alerts {missing:?}");
    let unknown: Vec<_> = tried.iter().filter(|name| !of_chart.contains(*name)).collect();
    ensure!(unknown.is_empty(), "the chart has no alerts {unknown:?}");
    ensure!(
        tried.len() == of_chart.len(),
        "an alert is tried twice, or has two rules: {tried:?}"
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules_of_chart() -> String {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        fs::read_to_string(root.join(rules::PATH)).unwrap()
    }

    #[test]
    fn every_alert_of_the_chart_is_tried_in_one_group() {
        let text = rules_of_chart();
        let names = rules::names(&text);
        assert!(names.len() > 15, "{names:?}");
        check(&names).unwrap();
        assert!(check(&names[1..]).unwrap_err().to_string().contains(names[0]));
        let more = [&names[..], &["BulkheadNew"]].concat();
        assert!(check(&more).unwrap_err().to_string().contains("BulkheadNew"));
    }

    #[test]
    fn every_range_of_the_chart_is_shortened() {
        let shortened = rules::shortened(&rules_of_chart());
        for unit in ["m]", "h]"] {
            assert!(!shortened.contains(unit), "a range is not shortened:\n{shortened}");
        }
    }
}
