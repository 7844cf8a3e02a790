//! Reader of Prometheus' text format, strict enough to notice a label that ends its line.

use std::collections::BTreeMap;

/// Sample of a family.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Sample {
    /// Name of the series.
    pub(super) name: String,
    /// Labels, with their values unescaped.
    pub(super) labels: BTreeMap<String, String>,
    pub(super) value: f64,
}

/// Metrics of one name.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Family {
    pub(super) help: String,
    pub(super) type_: String,
    pub(super) samples: Vec<Sample>,
}

/// Families of a scrape, by name.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Scrape(pub(super) BTreeMap<String, Family>);

impl Scrape {
    /// Parses a scrape. Each sample has to follow the description of its family.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let mut families = BTreeMap::<String, Family>::new();
        let mut current = String::new();
        for line in text.lines() {
            let error = |why: &str| Err(format!("{why}: {line}"));
            if let Some((name, help)) = line.strip_prefix("# HELP ").and_then(|rest| rest.split_once(' ')) {
                if families.contains_key(name) {
                    return error("described twice");
                }
                name.clone_into(&mut current);
                help.clone_into(&mut families.entry(current.clone()).or_default().help);
            } else if let Some((name, type_)) = line.strip_prefix("# TYPE ").and_then(|rest| rest.split_once(' ')) {
                if name != current {
                    return error("type without help");
                }
                type_.clone_into(&mut families.entry(current.clone()).or_default().type_);
            } else {
                let Some(sample) = sample(line) else {
                    return error("no sample");
                };
                let family = families.get_mut(&current).ok_or("a sample without a family")?;
                let suffixes: &[&str] = if family.type_ == "histogram" {
                    &["_bucket", "_sum", "_count"]
                } else {
                    &[""]
                };
                if !suffixes
                    .iter()
                    .any(|suffix| sample.name == format!("{current}{suffix}"))
                {
                    return error("not a series of its family");
                }
                family.samples.push(sample);
            }
        }
        Ok(Self(families))
    }
}

fn sample(line: &str) -> Option<Sample> {
    let end = line.find(['{', ' '])?;
    let (name, mut rest) = line.split_at(end);
    let mut labels = BTreeMap::new();
    if let Some(after) = rest.strip_prefix('{') {
        rest = after;
        while !rest.starts_with('}') {
            let (label, after) = rest.split_once("=\"")?;
            let (value, after) = unescaped(after)?;
            labels.insert(label.to_owned(), value).is_none().then_some(())?;
            rest = after.strip_prefix(',').unwrap_or(after);
        }
        rest = rest.strip_prefix('}')?;
    }
    let value = rest.strip_prefix(' ')?;
    Some(Sample {
        name: name.to_owned(),
        labels,
        value: value.parse().ok()?,
    })
}

/// Returns a label value up to its closing quote, and the rest of the line.
fn unescaped(text: &str) -> Option<(String, &str)> {
    let (mut value, mut chars) = (String::new(), text.char_indices());
    while let Some((at, c)) = chars.next() {
        match c {
            '"' => return Some((value, &text[at + 1..])),
            '\\' => value.push(match chars.next()?.1 {
                'n' => '\n',
                c @ ('\\' | '"') => c,
                _ => return None,
            }),
            c => value.push(c),
        }
    }
    None
}

#[test]
fn escaped_labels_are_read_and_broken_lines_are_not() {
    let text = "# HELP a A.\n# TYPE a gauge\na{x=\"1\\\"}\\n\\\\\",y=\"\"} 0.5\na 1e-5\n";
    let scrape = Scrape::parse(text).unwrap();
    let samples = &scrape.0["a"].samples;
    assert_eq!(samples[0].labels["x"], "1\"}\n\\");
    assert_eq!((samples[0].value, samples[1].value), (0.5, 0.000_01));
    for broken in [
        "a{x=\"1\"\"} 1",
        "a{x=\"1} 1",
        "a{x=\"1\",x=\"2\"} 1",
        "a",
        "a one",
        "b 1",
        "a_total 1",
    ] {
        let text = format!("# HELP a A.\n# TYPE a gauge\n{broken}\n");
        assert!(Scrape::parse(&text).is_err(), "{broken}");
    }
}
