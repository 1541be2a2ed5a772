//! Writes a report as a mail: text, HTML with pictures, and a CSV file for each panel.
//!
//! The HTML is what mail programs show: tables, styles in place, pictures of the mail itself. Names of groups come from
//! callers and are escaped.

use super::chart::{self, COLOURS, Form, MAX_SERIES};
use super::{Period, ScheduledReport};
use crate::boards::{Panel, PanelKind};
use crate::csv;
use crate::query::{Frame, QueryResponse};
use std::fmt::Write;

/// Groups that a table of a mail shows.
const MAX_ROWS: usize = 20;
/// All CSV files together have at most so many bytes; further ones are left out, which the mail says.
const MAX_FILES: usize = 512 << 10;
const CELL: &str = "padding:4px 8px;border-bottom:1px solid #e5e7eb;text-align:left";
const NUMBER: &str = "padding:4px 8px;border-bottom:1px solid #e5e7eb;text-align:right";
const SMALL: &str = "font-size:12px;color:#6b7280";

/// A panel with its answer, or the reason why it has none.
pub struct Section<'s> {
    /// The panel.
    pub panel: &'s Panel,
    /// The answer to its query.
    pub answer: Result<QueryResponse, String>,
}

/// A report, ready to be sent.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rendered {
    /// The subject of the mail.
    pub subject: String,
    /// The mail as text.
    pub text: String,
    /// The mail as HTML. It shows pictures as `cid:NAME`.
    pub html: String,
    /// The pictures, PNG, with their names.
    pub pictures: Vec<(String, Vec<u8>)>,
    /// The CSV files with their names.
    pub files: Vec<(String, String)>,
}

/// Writes a report. `link` is the console's address of the same.
pub fn render(
    report: &ScheduledReport,
    period: Period,
    sections: &[Section<'_>],
    link: Option<&str>,
) -> Rendered {
    let last = period.to.saturating_sub(1);
    let days = format!(
        "{} to {}",
        report.schedule.written(period.from, false),
        report.schedule.written(last, false)
    );
    let mut rendered = Rendered {
        subject: format!("{}: {days}", report.title),
        text: format!("{}\n{days} ({})\n", report.title, report.schedule.time_zone),
        ..Rendered::default()
    };
    let mut html = String::from(
        "<!DOCTYPE html><html><body style=\"font-family:sans-serif;color:#111827;max-width:600px\">",
    );
    add(
        &mut html,
        format_args!(
            "<h1 style=\"font-size:20px\">{}</h1><p style=\"{SMALL}\">{days} ({}); next to each number is that of the time before</p>",
            escaped(&report.title),
            escaped(&report.schedule.time_zone)
        ),
    );
    let mut room = MAX_FILES;
    for (place, section) in sections.iter().enumerate() {
        add(
            &mut html,
            format_args!(
                "<h2 style=\"font-size:16px\">{}</h2>",
                escaped(&section.panel.title)
            ),
        );
        add(&mut rendered.text, format_args!("\n{}\n", section.panel.title));
        let answer = match &section.answer {
            Ok(answer) => answer,
            Err(reason) => {
                add(&mut html, format_args!("<p>No data: {}</p>", escaped(reason)));
                add(&mut rendered.text, format_args!("  no data: {reason}\n"));
                continue;
            }
        };
        if let Some(png) = picture(report, section.panel.kind, answer, &mut html, place) {
            rendered.pictures.push((format!("chart-{place}.png"), png));
        }
        table(answer, &mut html, &mut rendered.text);
        for note in notes(answer) {
            add(
                &mut html,
                format_args!("<p style=\"{SMALL}\">{}</p>", escaped(&note)),
            );
            add(&mut rendered.text, format_args!("  {note}\n"));
        }
        if report.csv {
            let file = csv::write(answer);
            match room.checked_sub(file.len()) {
                Some(left) => {
                    room = left;
                    rendered
                        .files
                        .push((file_name(place, &section.panel.title), file));
                }
                None => add(
                    &mut rendered.text,
                    format_args!(
                        "  the CSV of this panel is too large for a mail; export it from the console\n"
                    ),
                ),
            }
        }
    }
    if let Some(link) = link {
        add(
            &mut html,
            format_args!("<p><a href=\"{0}\">{0}</a></p>", escaped(link)),
        );
        add(&mut rendered.text, format_args!("\n{link}\n"));
    }
    html.push_str("</body></html>");
    rendered.html = html;
    rendered
}

fn add(out: &mut String, text: std::fmt::Arguments<'_>) {
    let written = out.write_fmt(text);
    debug_assert!(written.is_ok(), "a String takes everything");
}

fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            other => out.push(other),
        }
    }
    out
}

/// A name of letters, digits and dashes, with the panel's number before it.
fn file_name(place: usize, title: &str) -> String {
    let mut name = format!("{}-", place + 1);
    for character in title.chars().take(40) {
        match character.to_ascii_lowercase() {
            ch @ ('a'..='z' | '0'..='9') => name.push(ch),
            _ if name.ends_with('-') => {}
            _ => name.push('-'),
        }
    }
    format!("{}.csv", name.trim_end_matches('-'))
}

/// The name of a group: its values, or `all`.
fn name_of(frame: &Frame) -> String {
    let values: Vec<&str> = frame
        .group
        .values()
        .map(|value| if value.is_empty() { "(none)" } else { value })
        .collect();
    match values.is_empty() {
        true => "all".to_owned(),
        // A name that a caller chose does not begin another line of the text.
        false => values.join(" · ").replace(char::is_control, " "),
    }
}

/// The series that are drawn of an answer, each with its name: by group the first metric, or without groups each
/// metric.
fn series(kind: PanelKind, answer: &QueryResponse) -> Vec<(String, Vec<Option<f64>>)> {
    let Some(first) = answer.frames.first() else {
        return Vec::new();
    };
    let metric = first.total.keys().next().copied().unwrap_or_default();
    if kind == PanelKind::Bar {
        let totals = answer.frames.iter().take(MAX_ROWS);
        let totals = totals.map(|frame| frame.total.get(metric).copied().flatten());
        return vec![(metric.to_owned(), totals.collect())];
    }
    let one = |name: String, frame: &Frame, metric: &str| {
        (name, frame.values.get(metric).cloned().unwrap_or_default())
    };
    match answer.frames.len() {
        1 => first
            .values
            .keys()
            .map(|metric| one((*metric).to_owned(), first, metric))
            .collect(),
        _ => answer
            .frames
            .iter()
            .map(|frame| one(name_of(frame), frame, metric))
            .collect(),
    }
}

/// Draws the chart of a panel, if it is one, and puts it with its axes and legend into the HTML.
fn picture(
    report: &ScheduledReport,
    kind: PanelKind,
    answer: &QueryResponse,
    html: &mut String,
    place: usize,
) -> Option<Vec<u8>> {
    let form = match kind {
        PanelKind::Line => Form::Lines,
        PanelKind::Area => Form::Areas,
        PanelKind::Bar => Form::Bars,
        PanelKind::Table | PanelKind::Stat => return None,
    };
    let mut named = series(kind, answer);
    named.truncate(MAX_SERIES);
    if named.iter().all(|(_, values)| values.is_empty()) {
        return None;
    }
    let (names, values): (Vec<String>, Vec<_>) = named.into_iter().unzip();
    let drawn = chart::draw(form, &values);
    let unit = answer.frames.first()?.total.keys().next();
    let unit = unit
        .and_then(|metric| answer.units.get(metric))
        .copied()
        .unwrap_or_default();
    let clock = period_has_clock(answer);
    add(
        html,
        format_args!(
            "<table cellspacing=\"0\" cellpadding=\"0\"><tr><td style=\"{SMALL}\">{}</td></tr><tr><td>\
         <img src=\"cid:chart-{place}.png\" width=\"{}\" height=\"{}\" alt=\"{}\"></td></tr>",
            escaped(&number(drawn.top, unit)),
            chart::WIDTH / 2,
            chart::HEIGHT / 2,
            escaped(&names.join(", "))
        ),
    );
    if kind != PanelKind::Bar {
        add(
            html,
            format_args!(
                "<tr><td><table width=\"100%\" style=\"{SMALL}\"><tr><td>{}</td><td align=\"right\">{}</td></tr></table></td></tr>",
                report.schedule.written(answer.from, clock),
                report.schedule.written(answer.to, clock)
            ),
        );
    }
    html.push_str("</table>");
    if names.len() > 1 {
        add(html, format_args!("<p style=\"{SMALL}\">"));
        for (name, [red, green, blue]) in names.iter().zip(COLOURS) {
            add(
                html,
                format_args!(
                    "<span style=\"color:#{red:02x}{green:02x}{blue:02x}\">&#9632;</span> {} &nbsp;",
                    escaped(name)
                ),
            );
        }
        html.push_str("</p>");
    }
    Some(drawn.png)
}

/// Whether a time is so short that its ends need the time of the day.
fn period_has_clock(answer: &QueryResponse) -> bool {
    answer.to.saturating_sub(answer.from) < 2 * 86_400
}

/// The totals of all groups, each with its change against the time before.
fn table(answer: &QueryResponse, html: &mut String, text: &mut String) {
    let metrics = &answer.columns.metrics;
    html.push_str("<table cellspacing=\"0\" style=\"border-collapse:collapse;font-size:14px\"><tr>");
    add(html, format_args!("<th style=\"{CELL}\"></th>"));
    for metric in metrics {
        add(html, format_args!("<th style=\"{NUMBER}\">{metric}</th>"));
    }
    html.push_str("</tr>");
    for frame in answer.frames.iter().take(MAX_ROWS) {
        let name = name_of(frame);
        add(
            html,
            format_args!("<tr><td style=\"{CELL}\">{}</td>", escaped(&name)),
        );
        add(text, format_args!("  {name}:"));
        for metric in metrics {
            let unit = answer.units.get(metric).copied().unwrap_or_default();
            let value = frame.total.get(metric).copied().flatten();
            let before = frame.compare.as_ref();
            let before = before.and_then(|it| it.total.get(metric).copied().flatten());
            let shown = value.map_or_else(|| "–".to_owned(), |value| number(value, unit));
            let change = change(value, before);
            add(
                html,
                format_args!(
                    "<td style=\"{NUMBER}\">{} <span style=\"{SMALL}\">{change}</span></td>",
                    escaped(&shown)
                ),
            );
            add(
                text,
                format_args!(
                    " {metric} {shown}{}{change};",
                    if change.is_empty() { "" } else { " " }
                ),
            );
        }
        html.push_str("</tr>");
        text.push('\n');
    }
    html.push_str("</table>");
    if answer.frames.is_empty() {
        html.push_str("<p>There were no calls.</p>");
        text.push_str("  there were no calls\n");
    }
}

/// How much a value differs from the one before, in per cent; empty: nothing to compare with.
fn change(value: Option<f64>, before: Option<f64>) -> String {
    match (value, before) {
        (Some(value), Some(before)) if before != 0.0 => {
            format!("{:+.1} %", (value - before) / before.abs() * 100.0)
        }
        _ => String::new(),
    }
}

/// Notes to the numbers.
fn notes(answer: &QueryResponse) -> Vec<String> {
    let mut notes = Vec::new();
    if answer.partial {
        notes.push(
            "Something is missing in this time: a gateway did not hand over all of its counts.".to_owned(),
        );
    }
    if answer.sampled {
        notes.push("These numbers are estimates from sampled calls.".to_owned());
    }
    if answer.frames.len() > MAX_ROWS {
        notes.push(format!(
            "{} more rows are in the CSV.",
            answer.frames.len() - MAX_ROWS
        ));
    }
    notes
}

/// A value with its unit, for people.
pub fn number(value: f64, unit: &str) -> String {
    let scaled = |value: f64, base: f64, names: &[&str]| {
        let (mut value, mut place) = (value, 0);
        while value.abs() >= base && place + 1 < names.len() {
            (value, place) = (value / base, place + 1);
        }
        format!("{} {}", trimmed(value), names[place])
    };
    match unit {
        "microseconds" => scaled(value, 1_000.0, &["µs", "ms", "s"]),
        "bytes" => scaled(value, 1_024.0, &["B", "KiB", "MiB", "GiB", "TiB", "PiB"]),
        "share" => format!("{} %", trimmed(value * 100.0)),
        "calls/s" => format!("{}/s", trimmed(value)),
        _ => grouped(value),
    }
}

/// At most two digits after the point, and none that are 0.
fn trimmed(value: f64) -> String {
    let text = format!("{value:.2}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// A number with commas between groups of three digits.
fn grouped(value: f64) -> String {
    let text = trimmed(value);
    let (whole, rest) = text
        .split_once('.')
        .map_or((text.as_str(), None), |(whole, rest)| (whole, Some(rest)));
    let (sign, digits) = whole
        .strip_prefix('-')
        .map_or(("", whole), |digits| ("-", digits));
    let mut out = sign.to_owned();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    if let Some(rest) = rest {
        out.push('.');
        out.push_str(rest);
    }
    out
}
