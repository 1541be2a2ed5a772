//! `prometheus`: metrics by service and route.

use super::{Definition, passing};
use crate::schema::{Default, Field, Kind, Record};

/// The plugin.
pub const DEFINITION: Definition = passing("prometheus", 13, CONFIG);

const CONFIG: Record = Record::of(FIELDS);

const FIELDS: &[Field] = &[
    Field::new("per_consumer", Kind::Boolean).or(Default::Boolean(false)),
    Field::new("status_code_metrics", Kind::Boolean).or(Default::Boolean(false)),
    Field::new("ai_metrics", Kind::Boolean).or(Default::Boolean(false)),
    Field::new("latency_metrics", Kind::Boolean).or(Default::Boolean(false)),
    Field::new("bandwidth_metrics", Kind::Boolean).or(Default::Boolean(false)),
    Field::new("upstream_health_metrics", Kind::Boolean).or(Default::Boolean(false)),
];
