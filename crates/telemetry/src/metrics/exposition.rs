//! The Prometheus text exposition format, version 0.0.4: lines and their escaping. It knows no metric.
//!
//! <https://prometheus.io/docs/instrumenting/exposition_formats/#text-based-format>

use std::fmt::{self, Display, Write};

use super::histogram::{Bounds, HistogramTotals};
use super::names::{Metric, label};

/// Labels as they stand between the braces, escaped once and reused on many lines.
#[derive(Clone, Debug, Default)]
pub(super) struct Labels(String);

impl Labels {
    pub(super) fn new(labels: &[(&str, &str)]) -> Self {
        let mut text = String::new();
        for (name, value) in labels {
            if !text.is_empty() {
                text.push(',');
            }
            text.push_str(name);
            text.push_str("=\"");
            for char in value.chars() {
                match char {
                    '\\' => text.push_str("\\\\"),
                    '"' => text.push_str("\\\""),
                    '\n' => text.push_str("\\n"),
                    other => text.push(other),
                }
            }
            text.push('"');
        }
        Self(text)
    }
}

/// Writes families of samples.
pub(super) struct Exposition<'a, W> {
    out: &'a mut W,
}

impl<'a, W: Write> Exposition<'a, W> {
    pub(super) fn new(out: &'a mut W) -> Self {
        Self { out }
    }

    /// Opens a family. All its samples must follow before the next is opened.
    pub(super) fn family(&mut self, metric: Metric) -> fmt::Result {
        let name = metric.name();
        writeln!(self.out, "# HELP {name} {}", metric.help())?;
        writeln!(self.out, "# TYPE {name} {}", metric.kind().as_str())
    }

    /// A family of a single sample without labels.
    pub(super) fn single(&mut self, metric: Metric, value: u64) -> fmt::Result {
        self.family(metric)?;
        self.sample(metric, &Labels::default(), value)
    }

    /// One sample.
    pub(super) fn sample(&mut self, metric: Metric, labels: &Labels, value: impl Display) -> fmt::Result {
        self.line(metric.name(), "", labels, "", value)
    }

    /// The samples of one histogram.
    pub(super) fn histogram(
        &mut self,
        metric: Metric,
        labels: &Labels,
        bounds: &Bounds,
        totals: &HistogramTotals,
    ) -> fmt::Result {
        let mut cumulative = 0;
        for (le, n) in bounds.labels.iter().copied().chain(["+Inf"]).zip(totals.buckets) {
            cumulative += n;
            self.line(metric.name(), "_bucket", labels, le, cumulative)?;
        }
        let (seconds, micros) = (totals.sum_micros / 1_000_000, totals.sum_micros % 1_000_000);
        self.line(
            metric.name(),
            "_sum",
            labels,
            "",
            format_args!("{seconds}.{micros:06}"),
        )?;
        self.line(metric.name(), "_count", labels, "", totals.count())
    }

    fn line(
        &mut self,
        name: &str,
        suffix: &str,
        labels: &Labels,
        le: &str,
        value: impl Display,
    ) -> fmt::Result {
        let labels = labels.0.as_str();
        match (labels.is_empty(), le.is_empty()) {
            (true, true) => writeln!(self.out, "{name}{suffix} {value}"),
            (false, true) => writeln!(self.out, "{name}{suffix}{{{labels}}} {value}"),
            (true, false) => writeln!(self.out, "{name}{suffix}{{{}=\"{le}\"}} {value}", label::LE),
            (false, false) => writeln!(
                self.out,
                "{name}{suffix}{{{labels},{}=\"{le}\"}} {value}",
                label::LE
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::histogram::{Histogram, REQUEST_BOUNDS};
    use super::*;

    #[test]
    fn label_values_are_escaped() {
        let cases = [
            ("plain", r#"k="plain""#),
            ("", r#"k="""#),
            ("a\"b", r#"k="a\"b""#),
            ("a\\b", r#"k="a\\b""#),
            ("a\nb", r#"k="a\nb""#),
            ("\\n", r#"k="\\n""#),
            ("a{b},c=\"", r#"k="a{b},c=\"""#),
            ("grüße ✓", r#"k="grüße ✓""#),
        ];
        for (value, expected) in cases {
            assert_eq!(Labels::new(&[("k", value)]).0, expected);
        }
    }

    #[test]
    fn help_needs_no_escaping() {
        assert!(Metric::ALL.iter().all(|m| !m.help().contains(['\\', '\n'])));
    }

    #[test]
    fn a_histogram_is_cumulative() {
        let histogram = Histogram::default();
        for micros in [100, 700, 700, 40_000_000] {
            histogram.observe(&REQUEST_BOUNDS, micros);
        }
        let mut totals = HistogramTotals::default();
        totals.add(&histogram);
        let mut text = String::new();
        Exposition::new(&mut text)
            .histogram(
                Metric::RequestDuration,
                &Labels::default(),
                &REQUEST_BOUNDS,
                &totals,
            )
            .unwrap();
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(lines[0], r#"weir_request_duration_seconds_bucket{le="0.0005"} 1"#);
        assert_eq!(lines[1], r#"weir_request_duration_seconds_bucket{le="0.001"} 3"#);
        assert_eq!(lines[11], r#"weir_request_duration_seconds_bucket{le="30"} 3"#);
        assert_eq!(lines[12], r#"weir_request_duration_seconds_bucket{le="+Inf"} 4"#);
        assert_eq!(lines[13], "weir_request_duration_seconds_sum 40.001500");
        assert_eq!(lines[14], "weir_request_duration_seconds_count 4");
    }
}
