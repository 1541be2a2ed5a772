//! Families as Prometheus reads them: <https://prometheus.io/docs/instrumenting/exposition_formats/>.

use super::family_set::{FamilySet, ScrapedSeries};
use super::{Family, LabelValue};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::Arc;

/// A family of an exposition, whichever sets count it.
struct RenderedFamily<'f> {
    family: &'f Family,
    /// By labels as they are written.
    series: BTreeMap<String, Vec<u64>>,
}

/// Writes the families that these sets count, at this time.
pub fn families(sets: &[Arc<FamilySet>], now_ms: u64, out: &mut String) {
    let mut rendered: BTreeMap<&str, RenderedFamily<'_>> = BTreeMap::new();
    for set in sets {
        let found = set.scrape(now_ms);
        let definition = &set.definition;
        let families = definition.config.families.iter().zip(&definition.uses);
        for ((family, uses), first) in families.zip(set.firsts()) {
            let entry = rendered.entry(&family.name).or_insert_with(|| RenderedFamily {
                family,
                series: BTreeMap::new(),
            });
            if entry.family.buckets != family.buckets {
                // One name cannot have two kinds of buckets.
                continue;
            }
            let after = family.expire_ms().unwrap_or(u64::MAX);
            let current = found
                .iter()
                .filter(|it| now_ms.saturating_sub(it.last_ms) <= after);
            for ScrapedSeries { key, sums, .. } in current {
                let counts = &sums[first..first + cells(family)];
                if counts.iter().any(|count| *count > 0) {
                    let series = entry.series.entry(labels(family, uses, key));
                    let totals = series.or_insert_with(|| vec![0; counts.len()]);
                    for (total, count) in totals.iter_mut().zip(counts) {
                        *total = total.wrapping_add(*count);
                    }
                }
            }
        }
    }
    for (name, rendered) in rendered {
        if !rendered.series.is_empty() {
            write_family(name, &rendered, out);
        }
    }
}

fn cells(family: &Family) -> usize {
    match family.buckets.len() {
        0 => 1,
        count => count + 2,
    }
}

/// The labels as they are written, without braces.
fn labels(family: &Family, uses: &[Option<usize>], key: &[u8]) -> String {
    let mut text = String::new();
    for (label, column) in family.labels.iter().zip(uses) {
        if !text.is_empty() {
            text.push(',');
        }
        text.push_str(&label.name);
        text.push_str("=\"");
        match (column, &label.value) {
            (Some(column), _) => escape(&String::from_utf8_lossy(value(key, *column)), &mut text),
            (None, LabelValue::Text(fixed)) => escape(fixed, &mut text),
            (None, LabelValue::Source { .. }) => {}
        }
        text.push('"');
    }
    text
}

/// The value of a column: each stands behind its length.
fn value(mut key: &[u8], column: usize) -> &[u8] {
    for _ in 0..column {
        let length = key.first().map_or(0, |length| usize::from(*length));
        key = key.get(1 + length..).unwrap_or_default();
    }
    match key.split_first() {
        Some((length, rest)) => &rest[..usize::from(*length).min(rest.len())],
        None => key,
    }
}

/// Writes a family of gauges. `samples` have their labels as they are written, with their braces.
pub fn write_gauges(name: &str, help: &str, samples: &[(String, u64)], out: &mut String) {
    // A string takes all that is written.
    let _ = write!(out, "# HELP {name} {help}\n# TYPE {name} gauge\n");
    for (labels, value) in samples {
        let _ = writeln!(out, "{name}{labels} {value}");
    }
}

/// A label's value as it stands between its quotes.
pub fn escaped_label(value: &str) -> String {
    let mut escaped = String::with_capacity(value.len());
    escape(value, &mut escaped);
    escaped
}

fn escape(value: &str, out: &mut String) {
    for character in value.chars() {
        match character {
            '\\' => out.push_str("\\\\"),
            '"' => out.push_str("\\\""),
            '\n' => out.push_str("\\n"),
            character => out.push(character),
        }
    }
}

fn write_family(name: &str, rendered: &RenderedFamily<'_>, out: &mut String) {
    let family = rendered.family;
    let help = family.help.replace('\\', "\\\\").replace('\n', "\\n");
    let kind = if family.buckets.is_empty() {
        "counter"
    } else {
        "histogram"
    };
    // A string takes all that is written.
    let _ = write!(out, "# HELP {name} {help}\n# TYPE {name} {kind}\n");
    for (labels, counts) in &rendered.series {
        if family.buckets.is_empty() {
            let value = number(counts[0], family.value.is_time());
            let _ = match labels.is_empty() {
                true => writeln!(out, "{name} {value}"),
                false => writeln!(out, "{name}{{{labels}}} {value}"),
            };
            continue;
        }
        let comma = if labels.is_empty() { "" } else { "," };
        let mut so_far = 0;
        for (bound, count) in family.buckets.iter().zip(counts) {
            so_far += count;
            let _ = writeln!(out, "{name}_bucket{{{labels}{comma}le=\"{bound}\"}} {so_far}");
        }
        let buckets = family.buckets.len();
        let all = so_far + counts[buckets];
        let sum = number(counts[buckets + 1], family.value.is_time());
        let _ = writeln!(out, "{name}_bucket{{{labels}{comma}le=\"+Inf\"}} {all}");
        let braced = match labels.is_empty() {
            true => String::new(),
            false => format!("{{{labels}}}"),
        };
        let _ = writeln!(out, "{name}_count{braced} {all}\n{name}_sum{braced} {sum}");
    }
}

/// Microseconds are written as milliseconds.
fn number(count: u64, is_time: bool) -> String {
    match is_time {
        false => count.to_string(),
        true if count.is_multiple_of(1000) => (count / 1000).to_string(),
        true => {
            let text = format!("{}.{:03}", count / 1000, count % 1000);
            text.trim_end_matches('0').to_owned()
        }
    }
}
