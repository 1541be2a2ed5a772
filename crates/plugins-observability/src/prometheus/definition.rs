//! What an instance counts, and the values that distinguish its series.

use super::{Config, LabelValue};
use weir_plugin::{CallRecord, Exchange, Template};

/// What an instance counts.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Definition {
    /// Families and exposition.
    pub config: Config,
    /// Values that differ between series, each once.
    pub columns: Vec<LabelValue>,
    /// By family, by label: the column, or `None` for a value that is always the same.
    pub uses: Vec<Vec<Option<usize>>>,
}

/// A value of labels, ready for use.
pub enum Column {
    /// The status, which only the record knows.
    Status,
    /// A text of variables.
    Text(Template),
    /// Who answered.
    Source {
        /// Where it was an upstream.
        upstream: String,
        /// Where it was the gateway.
        gateway: String,
    },
}

impl Definition {
    /// Of a configuration.
    pub fn new(config: Config) -> Self {
        let mut columns: Vec<LabelValue> = Vec::new();
        let mut place = |value: &LabelValue| {
            if let LabelValue::Text(text) = value
                && Template::parse(text).is_constant()
            {
                return None;
            }
            let known = columns.iter().position(|column| column == value);
            Some(known.unwrap_or_else(|| {
                columns.push(value.clone());
                columns.len() - 1
            }))
        };
        let families = config.families.iter();
        let uses = families
            .map(|family| family.labels.iter().map(|label| place(&label.value)).collect())
            .collect();
        Self {
            config,
            columns,
            uses,
        }
    }
}

impl Column {
    /// Of a label.
    pub fn of(value: &LabelValue) -> Self {
        match value {
            LabelValue::Text(text) if text == "$status" => Self::Status,
            LabelValue::Text(text) => Self::Text(Template::parse(text)),
            LabelValue::Source { upstream, gateway } => Self::Source {
                upstream: upstream.clone(),
                gateway: gateway.clone(),
            },
        }
    }

    /// Writes the value that it has for a call.
    pub fn write(&self, exchange: &Exchange, record: &CallRecord<'_>, out: &mut Vec<u8>) {
        match self {
            Self::Status => out.extend_from_slice(itoa::Buffer::new().format(record.status).as_bytes()),
            Self::Text(template) => {
                template.render(exchange, out);
            }
            Self::Source { upstream, gateway } => {
                let is_gateway = exchange.response.is_gateway;
                out.extend_from_slice(if is_gateway { gateway } else { upstream }.as_bytes());
            }
        }
    }
}
