//! `statsd`: sends metrics of every call to a StatsD server or a Datadog agent.
//!
//! ```yaml
//! target: {udp: {host: 127.0.0.1, port: 8125}}
//! style: dogstatsd
//! tags: {route: "{route}", status: "{status}"}
//! metrics:
//!   - {stat: request.count, kind: counter}
//!   - {stat: request.latency, kind: timer, value: total-ms}
//! ```
//!
//! A line is made for each metric when a call is over. Lines are sent like the entries of `logger`: in batches, by a
//! thread of the gateway's own, and dropped if the server does not take them.
//!
//! Texts can name facts of the call in braces: `{service}`, `{route}`, `{consumer}` (its id), `{custom_id}`,
//! `{username}`, `{status}`, `{method}`, `{path}`, `{scheme}`, `{upstream}` (the address that was asked), `{node}` (this
//! machine's name), `{service_path}` and `{node_path}` (with `_` for dots), `{scope}` (`service.` and the former, or
//! `global.unmatched`). A metric whose name lacks a fact is not reported, a tag that lacks one is left out.
//!
//! Security: facts come from callers, in part. Bytes that mean something to the server (`:`, `|`, `@`, `,`, …) are
//! written as `_`.

mod config;
mod template;
#[cfg(test)]
mod tests;

use crate::logger::target::Target;
use crate::logger::{LogFolder, WaitingName};
use config::is_all;
pub use config::{Config, Kind, Measure, Metric, Range, Style};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;
use template::Text;
use weir_model::{Diagnostic, DocPath};
use weir_plugin::{
    BuildContext, CallRecord, Exchange, Filter, LogEntry, LogFraming, LogSink, LogTarget, Phases, Plugin,
    parse_config,
};
use weir_plugins_shared::config_checks::ConfigErrors;

/// The plugin `statsd`.
pub struct Statsd;

impl Plugin for Statsd {
    fn name(&self) -> &'static str {
        "statsd"
    }

    fn config_schema(&self) -> schemars::Schema {
        schemars::schema_for!(Config)
    }

    fn build(&self, config: &Value, _: &BuildContext<'_>) -> Result<Arc<dyn Filter>, Vec<Diagnostic>> {
        let config: Config = parse_config(config)?;
        let mut faults = ConfigErrors::default();
        if config.metrics.is_empty() {
            faults.add("metrics", "expected at least one");
        }
        let lines = compile(&config, &mut faults);
        for (place, metric) in config.metrics.iter().enumerate() {
            if !(0.0..=1.0).contains(&metric.sample_rate) {
                let path = DocPath::root().field("metrics").index(place).field("sample_rate");
                faults.extend(vec![Diagnostic::error(path, "expected a number from 0 to 1")]);
            }
        }
        let sink = match &config.target {
            Target::Udp(_) | Target::Tcp(_) => config.target.sink(&LogFolder::default(), false),
            _ => Err(("", "expected 'udp' or 'tcp'")),
        };
        let sink = sink.map_err(|(field, message)| {
            let path = DocPath::root().field("target").field(config.target.kind());
            let path = if field.is_empty() { path } else { path.field(field) };
            vec![Diagnostic::error(path, message)]
        })?;
        faults.done()?;
        let is_stream = matches!(sink, LogSink::Tcp { .. });
        Ok(Arc::new(StatsdFilter {
            lines,
            style: config.style,
            statuses: config.statuses,
            decimals: config.decimals,
            waiting_name: config.batch.waiting_name(),
            target: Arc::new(LogTarget {
                sink,
                joint: LogFraming {
                    between: "\n",
                    after: if is_stream { "\n" } else { "" },
                    ..LogFraming::default()
                },
                batching: config.batch.batching(),
            }),
        }))
    }
}

/// Builds the lines for a call, and reports faults of their texts to `faults`.
fn compile(config: &Config, faults: &mut ConfigErrors) -> Vec<Line> {
    let mut read = |field: &str, text: &str, of: fn(&str) -> Result<Text, String>| {
        of(text).unwrap_or_else(|message| {
            faults.add(field, message);
            Text::default()
        })
    };
    let prefix = match config.prefix.as_str() {
        "" => String::new(),
        prefix => format!("{prefix}."),
    };
    let mut tags = |field: &str, plain: &[String], named: &BTreeMap<String, String>, is_first: bool| {
        let mut found: Vec<Tag> = named
            .iter()
            .map(|(name, value)| Tag {
                name: Some(template::cleaned(name)),
                value: read(field, value, Text::value),
            })
            .collect();
        let plain = plain.iter().map(|tag| Tag {
            name: None,
            value: read("plain_tags", tag, Text::tag),
        });
        match is_first {
            true => found.splice(..0, plain.collect::<Vec<_>>()).for_each(drop),
            false => found.extend(plain),
        }
        found
    };
    let of_all = tags("tags", &config.plain_tags, &config.tags, true);
    let own: Vec<_> = config
        .metrics
        .iter()
        .map(|metric| tags("metrics", &metric.plain_tags, &metric.tags, false))
        .collect();
    config
        .metrics
        .iter()
        .zip(own)
        .map(|(metric, own)| Line {
            stat: read("metrics", &format!("{prefix}{}", metric.stat), Text::name),
            measure: match &metric.value {
                Measure::Text(text) => MetricValue::Text(read("metrics", text, Text::value)),
                measure => MetricValue::Number(measure.clone()),
            },
            end: metric.end(),
            rate: metric.sample_rate,
            tags: of_all.iter().cloned().chain(own).collect(),
        })
        .collect()
}

impl Metric {
    /// What stands behind the value.
    fn end(&self) -> String {
        let kind = match self.kind {
            Kind::Counter => "c",
            Kind::Gauge => "g",
            Kind::Timer => "ms",
            Kind::Histogram => "h",
            Kind::Meter => "m",
            Kind::Set => "s",
            Kind::Distribution => "d",
        };
        match is_all(&self.sample_rate) {
            true => format!("|{kind}"),
            false => format!("|{kind}|@{}", self.sample_rate),
        }
    }
}

/// A metric, ready for use.
struct Line {
    stat: Text,
    measure: MetricValue,
    end: String,
    rate: f64,
    tags: Vec<Tag>,
}

/// The value of a metric.
enum MetricValue {
    Number(Measure),
    Text(Text),
}

#[derive(Clone)]
struct Tag {
    /// `None`: the text is a whole tag.
    name: Option<String>,
    value: Text,
}

/// An instance of `statsd`.
struct StatsdFilter {
    lines: Vec<Line>,
    waiting_name: WaitingName,
    style: Style,
    statuses: Vec<Range>,
    decimals: bool,
    target: Arc<LogTarget>,
}

impl Filter for StatsdFilter {
    fn phases(&self) -> Phases {
        Phases::LOG
    }

    fn on_log(&self, exchange: &mut Exchange, record: &CallRecord<'_>, out: &mut Vec<LogEntry>) {
        let is_counted = |range: &Range| (range.from..=range.to).contains(&record.status);
        if !self.statuses.is_empty() && !self.statuses.iter().any(is_counted) {
            return;
        }
        let mut bytes = Vec::with_capacity(64 * self.lines.len());
        for line in &self.lines {
            // 53 bits, as many as such a number has.
            let is_drawn =
                line.rate >= 1.0 || ((exchange.random_u64() >> 11) as f64) < line.rate * (1_u64 << 53) as f64;
            if !is_drawn {
                continue;
            }
            let start = bytes.len();
            if start > 0 {
                bytes.push(b'\n');
            }
            if self.write(line, exchange, record, &mut bytes).is_none() {
                bytes.truncate(start);
            }
        }
        if !bytes.is_empty() {
            let target = Arc::clone(&self.target);
            let origin = self.waiting_name.origin(exchange);
            out.push(LogEntry {
                target,
                bytes,
                origin,
                receipt: None,
            });
        }
    }
}

impl StatsdFilter {
    /// Appends a line; `None` if the call has no value for it.
    fn write(
        &self,
        line: &Line,
        exchange: &Exchange,
        record: &CallRecord<'_>,
        out: &mut Vec<u8>,
    ) -> Option<()> {
        line.stat.write(exchange, record, out)?;
        match self.style {
            Style::Plain | Style::Dogstatsd => {}
            Style::Influxdb => self.write_tags(line, b",", b"", exchange, record, out),
            Style::Librato => self.write_tags(line, b"#", b"", exchange, record, out),
            Style::Signalfx => self.write_tags(line, b"[", b"]", exchange, record, out),
        }
        out.push(b':');
        match &line.measure {
            MetricValue::Text(text) => text.write(exchange, record, out)?,
            MetricValue::Number(measure) => self.write_number(measure, record, out)?,
        }
        out.extend_from_slice(line.end.as_bytes());
        if self.style == Style::Dogstatsd {
            self.write_tags(line, b"|#", b"", exchange, record, out);
        }
        Some(())
    }

    fn write_number(&self, measure: &Measure, record: &CallRecord<'_>, out: &mut Vec<u8>) -> Option<()> {
        let (number, is_time) = match measure {
            Measure::TotalMs => (record.total_us, true),
            Measure::UpstreamMs => (record.upstream_us?, true),
            Measure::GatewayMs => {
                let upstream_us = record.upstream_us.unwrap_or(0);
                (record.total_us.saturating_sub(upstream_us), true)
            }
            Measure::RequestBytes => (record.bytes_in, false),
            Measure::ResponseBytes => (record.bytes_out, false),
            Measure::Count | Measure::Text(_) => (1, false),
        };
        match (is_time, self.decimals) {
            (true, true) => weir_telemetry::json::millis(out, number),
            (true, false) => write_whole(number / 1000, out),
            (false, _) => write_whole(number, out),
        }
        Some(())
    }

    /// Appends the tags that the call has, between what stands before and behind them.
    fn write_tags(
        &self,
        line: &Line,
        before: &[u8],
        behind: &[u8],
        exchange: &Exchange,
        record: &CallRecord<'_>,
        out: &mut Vec<u8>,
    ) {
        let sign = if self.style == Style::Dogstatsd {
            b':'
        } else {
            b'='
        };
        let mut has_any = false;
        for tag in &line.tags {
            let start = out.len();
            out.extend_from_slice(if has_any { b"," } else { before });
            if let Some(name) = &tag.name {
                out.extend_from_slice(name.as_bytes());
                out.push(sign);
            }
            match tag.value.write(exchange, record, out) {
                Some(()) => has_any = true,
                None => out.truncate(start),
            }
        }
        if has_any {
            out.extend_from_slice(behind);
        }
    }
}

fn write_whole(number: u64, out: &mut Vec<u8>) {
    out.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
}
