//! An answer as CSV (RFC 4180): the same numbers, a line for each group and step.

use crate::query::QueryResponse;
use std::fmt::Write;

/// The answer's lines. Without series, one for each group; else one for each group and step, with the step's beginning
/// in seconds since the Unix epoch.
pub fn write(answer: &QueryResponse) -> String {
    let mut out = String::new();
    let (dimensions, metrics) = (&answer.columns.dimensions, &answer.columns.metrics);
    let has_series = answer.step.is_some();
    let mut head: Vec<String> = Vec::new();
    if has_series {
        head.push("time".to_owned());
    }
    head.extend(dimensions.iter().map(|it| (*it).to_owned()));
    head.extend(metrics.iter().map(|it| (*it).to_owned()));
    if answer.columns.is_compared {
        head.extend(metrics.iter().map(|it| format!("{it}_before")));
    }
    line(&mut out, head.iter().map(String::as_str));
    for frame in &answer.frames {
        let points = if has_series { answer.times.len() } else { 1 };
        for point in 0..points {
            let mut fields: Vec<String> = Vec::new();
            if has_series {
                fields.push(answer.times[point].to_string());
            }
            let name = |it: &&str| frame.group.get(it).map_or(String::new(), |it| guarded(it));
            fields.extend(dimensions.iter().map(name));
            let value = |total: &std::collections::BTreeMap<&'static str, Option<f64>>,
                         values: &std::collections::BTreeMap<&'static str, Vec<Option<f64>>>,
                         metric: &str| {
                let value = match has_series {
                    true => values
                        .get(metric)
                        .and_then(|all| all.get(point).copied().flatten()),
                    false => total.get(metric).copied().flatten(),
                };
                value.map_or(String::new(), |value| value.to_string())
            };
            fields.extend(metrics.iter().map(|it| value(&frame.total, &frame.values, it)));
            if let Some(compare) = &frame.compare {
                fields.extend(
                    metrics
                        .iter()
                        .map(|it| value(&compare.total, &compare.values, it)),
                );
            }
            line(&mut out, fields.iter().map(String::as_str));
        }
    }
    out
}

/// A text that a spreadsheet would take for a formula begins with an apostrophe: callers choose some names.
fn guarded(text: &str) -> String {
    match text.starts_with(['=', '+', '-', '@', '\t', '\r', '\n']) {
        true => format!("'{text}"),
        false => text.to_owned(),
    }
}

/// A field with a semicolon or a tab is quoted, too: spreadsheets of some countries part fields there.
fn line<'f>(out: &mut String, fields: impl Iterator<Item = &'f str>) {
    for (place, field) in fields.enumerate() {
        let comma = if place > 0 { "," } else { "" };
        let written = match field.contains(['"', ',', ';', '\t', '\n', '\r']) {
            true => write!(out, "{comma}\"{}\"", field.replace('"', "\"\"")),
            false => write!(out, "{comma}{field}"),
        };
        debug_assert!(written.is_ok(), "a String takes everything");
    }
    out.push_str("\r\n");
}
