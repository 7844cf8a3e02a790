//! Families of metrics whose values are read at each scrape.

use std::fmt;

use bulkhead_controllers::LabelValue;
use bulkhead_plugin::{DURATION_BOUNDS_S, Durations};
use prometheus_client::encoding::{DescriptorEncoder, EncodeCounterValue, EncodeGaugeValue, MetricEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;

/// Family of counters with a number of labels.
pub(super) struct Counters<const LABELS: usize> {
    name: &'static str,
    help: &'static str,
    labels: [&'static str; LABELS],
}

impl<const LABELS: usize> Counters<LABELS> {
    /// Describes a family. The encoder adds `_total` to the name.
    pub(super) const fn new(name: &'static str, help: &'static str, labels: [&'static str; LABELS]) -> Self {
        Self { name, help, labels }
    }

    /// Encodes the family with the values of its labels, in the order of their names, and its counts.
    pub(super) fn encode<V: EncodeCounterValue>(
        &self,
        encoder: &mut DescriptorEncoder<'_>,
        samples: impl IntoIterator<Item = ([String; LABELS], V)>,
    ) -> fmt::Result {
        let mut family = encoder.encode_descriptor(self.name, self.help, None, MetricType::Counter)?;
        for (values, count) in samples {
            sample(&mut family, self.labels, &values, |encoder| {
                encoder.encode_counter::<NoLabelSet, _, u64>(&count, None)
            })?;
        }
        Ok(())
    }
}

/// Family of histograms with a number of labels.
pub(super) struct Histograms<const LABELS: usize> {
    name: &'static str,
    help: &'static str,
    labels: [&'static str; LABELS],
}

impl<const LABELS: usize> Histograms<LABELS> {
    /// Describes a family.
    pub(super) const fn new(name: &'static str, help: &'static str, labels: [&'static str; LABELS]) -> Self {
        Self { name, help, labels }
    }

    /// Encodes the family with the values of its labels, in the order of their names, and its durations.
    pub(super) fn encode(
        &self,
        encoder: &mut DescriptorEncoder<'_>,
        samples: impl IntoIterator<Item = ([String; LABELS], Durations)>,
    ) -> fmt::Result {
        let mut family = encoder.encode_descriptor(self.name, self.help, None, MetricType::Histogram)?;
        let bounds = DURATION_BOUNDS_S.into_iter().chain([f64::MAX]);
        for (values, durations) in samples {
            let buckets: Vec<_> = bounds.clone().zip(durations.buckets).collect();
            sample(&mut family, self.labels, &values, |encoder| {
                let (sum, count) = (durations.sum.as_secs_f64(), durations.count());
                encoder.encode_histogram::<NoLabelSet>(sum, count, &buckets, None)
            })?;
        }
        Ok(())
    }
}

/// Family of gauges with a number of labels.
pub(super) struct Gauges<const LABELS: usize> {
    name: &'static str,
    help: &'static str,
    labels: [&'static str; LABELS],
}

impl<const LABELS: usize> Gauges<LABELS> {
    /// Describes a family.
    pub(super) const fn new(name: &'static str, help: &'static str, labels: [&'static str; LABELS]) -> Self {
        Self { name, help, labels }
    }

    /// Encodes the family with the values of its labels, in the order of their names, and its values.
    pub(super) fn encode<V: EncodeGaugeValue>(
        &self,
        encoder: &mut DescriptorEncoder<'_>,
        samples: impl IntoIterator<Item = ([String; LABELS], V)>,
    ) -> fmt::Result {
        let mut family = encoder.encode_descriptor(self.name, self.help, None, MetricType::Gauge)?;
        for (values, value) in samples {
            sample(&mut family, self.labels, &values, |encoder| {
                encoder.encode_gauge(&value)
            })?;
        }
        Ok(())
    }
}

/// Encodes one sample. A family without labels has no braces, so that its series has its plain name.
fn sample<const LABELS: usize>(
    family: &mut MetricEncoder<'_>,
    names: [&'static str; LABELS],
    values: &[String; LABELS],
    encode: impl FnOnce(&mut MetricEncoder<'_>) -> fmt::Result,
) -> fmt::Result {
    if LABELS == 0 {
        return encode(family);
    }
    let values = values.iter().cloned().map(LabelValue);
    let labels: Vec<_> = names.into_iter().zip(values).collect();
    let mut labelled = family.encode_family(&labels)?;
    encode(&mut labelled)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use prometheus_client::collector::Collector;
    use prometheus_client::encoding::text::encode;
    use prometheus_client::registry::Registry;

    use super::*;

    #[derive(Debug)]
    struct Refused;

    impl Collector for Refused {
        fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
            let names = ["a \"b\"", "c\\d\ne"].map(|name| ([name.to_owned(), "x".to_owned()], 2_u64));
            Counters::new("refused", "Refused.", ["name", "kind"]).encode(&mut encoder, names)?;
            Gauges::new("known", "Known.", []).encode(&mut encoder, [([], 0.5)])?;
            let mut took = Durations::default();
            (took.buckets[1], took.buckets[13], took.sum) = (2, 1, Duration::from_millis(20_500));
            Histograms::new("took_seconds", "Took.", ["kind"]).encode(&mut encoder, [(["a\"".to_owned()], took)])
        }
    }

    #[test]
    fn a_value_of_a_label_cannot_end_its_line() {
        let (mut registry, mut text) = (Registry::default(), String::new());
        registry.register_collector(Box::new(Refused));
        encode(&mut text, &registry).unwrap();
        let expected = r#"# HELP refused Refused.
# TYPE refused counter
refused_total{name="a \"b\"",kind="x"} 2
refused_total{name="c\\d\ne",kind="x"} 2
# HELP known Known.
# TYPE known gauge
known 0.5
# HELP took_seconds Took.
# TYPE took_seconds histogram
took_seconds_sum{kind="a\""} 20.5
took_seconds_count{kind="a\""} 3
took_seconds_bucket{le="0.00001",kind="a\""} 0
took_seconds_bucket{le="0.00005",kind="a\""} 2
"#;
        assert!(text.starts_with(expected), "{text}");
        let end = "took_seconds_bucket{le=\"10.0\",kind=\"a\\\"\"} 2\n\
                   took_seconds_bucket{le=\"+Inf\",kind=\"a\\\"\"} 3\n\
                   # EOF\n";
        assert!(text.ends_with(end), "{text}");
    }
}
