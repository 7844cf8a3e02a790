//! Rules for metrics, those of `promtool check metrics` among them.

use std::collections::BTreeSet;

use super::scrape::{Family, Sample, Scrape};

/// Gauges whose names end as that of a counter. Karmada and the proposal "Optimize cluster failover" call them so.
pub(super) const KARMADAS_NAMES: [&str; 3] = ["evict_kind_total", "evict_total", "eviction_kind_total"];
/// Suffixes that only the series of a type may have.
const RESERVED: [&str; 4] = ["_bucket", "_count", "_sum", "_created"];
/// Parts of names that stand for a type.
const TYPES: [&str; 5] = ["counter", "gauge", "histogram", "info", "summary"];
/// Parts of names that are no base units.
const UNITS: [&str; 22] = [
    "ms",
    "millis",
    "milliseconds",
    "us",
    "microseconds",
    "ns",
    "nanoseconds",
    "minutes",
    "hours",
    "days",
    "weeks",
    "kb",
    "mb",
    "gb",
    "kib",
    "mib",
    "gib",
    "kilobytes",
    "megabytes",
    "gigabytes",
    "percent",
    "secs",
];

/// Returns the problems of a scrape.
pub(super) fn problems(scrape: &Scrape) -> Vec<String> {
    let families = scrape.0.iter();
    families
        .flat_map(|(name, family)| {
            let problems = of_name(name, family).into_iter().chain(of_samples(family));
            problems.map(move |problem| format!("{name}: {problem}"))
        })
        .collect()
}

fn is_snake_case(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_lowercase())
        && name
            .chars()
            .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
        && !name.contains("__")
}

fn of_name(name: &str, family: &Family) -> Vec<String> {
    let mut problems = Vec::new();
    let mut check = |is_good: bool, problem: &str| {
        if !is_good {
            problems.push(problem.to_owned());
        }
    };
    check(is_snake_case(name), "the name is not in snake case");
    check(!family.help.is_empty(), "there is no help text");
    let is_total = name.ends_with("_total");
    match family.type_.as_str() {
        "counter" => check(is_total, "a counter ends in _total"),
        "gauge" | "histogram" => check(
            !is_total || KARMADAS_NAMES.contains(&name),
            "only a counter ends in _total",
        ),
        other => check(false, &format!("the type is {other:?}")),
    }
    check(
        !RESERVED.iter().any(|suffix| name.ends_with(suffix)),
        "the suffix is reserved",
    );
    let parts: Vec<_> = name.split('_').collect();
    let is_info = name.ends_with("_info") && family.type_ == "gauge";
    check(
        is_info || !TYPES.iter().any(|type_| parts.contains(type_)),
        "the name has a type",
    );
    check(
        !UNITS.iter().any(|unit| parts.contains(unit)),
        "the unit is no base unit",
    );
    let measured = name.strip_suffix("_total").unwrap_or(name);
    for unit in ["seconds", "bytes"] {
        check(
            !parts.contains(&unit) || measured.ends_with(unit),
            "the unit is not at the end",
        );
    }
    problems
}

fn of_samples(family: &Family) -> Vec<String> {
    let mut problems = Vec::new();
    let mut series = BTreeSet::new();
    for sample in &family.samples {
        if !series.insert((&sample.name, &sample.labels)) {
            problems.push(format!("{:?} is there twice", sample.labels));
        }
        let is_bucket = family.type_ == "histogram" && sample.name.ends_with("_bucket");
        let is_reserved = |label: &String| ["quantile", "le", "job", "instance"].contains(&label.as_str());
        let bad = sample
            .labels
            .keys()
            .filter(|label| !is_snake_case(label) || is_reserved(label));
        problems.extend(
            bad.filter(|label| !is_bucket || *label != "le")
                .map(|label| format!("the label {label} is reserved or not in snake case")),
        );
        if family.type_ == "counter" && sample.value < 0.0 {
            problems.push(format!("{:?} is negative", sample.labels));
        }
    }
    if family.type_ == "histogram" {
        problems.extend(of_histogram(family));
    }
    problems
}

/// Checks that the buckets grow up to the count.
fn of_histogram(family: &Family) -> Vec<String> {
    let with = |suffix: &'static str| {
        family
            .samples
            .iter()
            .filter(move |sample| sample.name.ends_with(suffix))
    };
    let of = |count: &Sample| {
        let mut buckets: Vec<_> = with("_bucket")
            .filter_map(|bucket| {
                let mut labels = bucket.labels.clone();
                let bound: f64 = labels.remove("le")?.parse().ok()?;
                (labels == count.labels).then_some((bound, bucket.value))
            })
            .collect();
        buckets.sort_by(|a, b| a.0.total_cmp(&b.0));
        let grows = buckets.windows(2).all(|pair| pair[0].1 <= pair[1].1);
        let ends = buckets.last() == Some(&(f64::INFINITY, count.value));
        (!grows || !ends).then(|| format!("the buckets of {:?} do not grow up to {}", count.labels, count.value))
    };
    with("_count").filter_map(of).collect()
}

#[test]
fn each_rule_finds_what_breaks_it() {
    let check = |text: &str, expected: &[&str]| {
        let found = problems(&Scrape::parse(text).unwrap());
        let expected: Vec<_> = expected.iter().map(|problem| format!("a_{problem}")).collect();
        assert_eq!(found, expected, "{text}");
    };
    let described = |name: &str, type_: &str| format!("# HELP {name} A.\n# TYPE {name} {type_}\n");
    check(&described("a_b", "gauge"), &[]);
    check(&described("a_b", "counter"), &["b: a counter ends in _total"]);
    check(
        &described("a_total", "gauge"),
        &["total: only a counter ends in _total"],
    );
    check(&described("a_count", "gauge"), &["count: the suffix is reserved"]);
    check(&described("a_B", "gauge"), &["B: the name is not in snake case"]);
    check(&described("a_ms", "gauge"), &["ms: the unit is no base unit"]);
    check(
        &described("a_seconds_old", "gauge"),
        &["seconds_old: the unit is not at the end"],
    );
    check(&described("a_gauge", "gauge"), &["gauge: the name has a type"]);
    check(&described("a_build_info", "gauge"), &[]);
    check("# HELP a_b \n# TYPE a_b gauge\n", &["b: there is no help text"]);
    let twice = described("a_b", "gauge") + "a_b 1\na_b 2\n";
    check(&twice, &["b: {} is there twice"]);
    let reserved = described("a_b", "gauge") + "a_b{le=\"1\"} 1\n";
    check(&reserved, &["b: the label le is reserved or not in snake case"]);
    let histogram = |last: u32| {
        described("a_b", "histogram")
            + &format!("a_b_sum 1\na_b_count 3\na_b_bucket{{le=\"1\"}} 2\na_b_bucket{{le=\"+Inf\"}} {last}\n")
    };
    check(&histogram(3), &[]);
    check(&histogram(1), &["b: the buckets of {} do not grow up to 3"]);
}
