//! An instance of `prometheus`: counts the calls that are over.

use super::LabelValue;
use super::family_set::FamilySet;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use weir_plugin::{CallRecord, Exchange, Filter, LogEntry, Phases, Template};

/// An instance.
pub struct CountFilter {
    set: Arc<FamilySet>,
    needs_body: bool,
}

impl CountFilter {
    /// Counts in this set.
    pub fn new(set: Arc<FamilySet>) -> Self {
        let labels = set.definition.config.families.iter().flat_map(|it| &it.labels);
        let needs_body = labels
            .filter_map(|label| match &label.value {
                LabelValue::Text(text) => Some(Template::parse(text)),
                LabelValue::Source { .. } => None,
            })
            .any(|template| template.needs_body());
        set.instances.fetch_add(1, Relaxed);
        Self { set, needs_body }
    }
}

impl Drop for CountFilter {
    fn drop(&mut self) {
        self.set.instances.fetch_sub(1, Relaxed);
    }
}

impl Filter for CountFilter {
    fn phases(&self) -> Phases {
        Phases {
            log: !self.set.definition.config.families.is_empty(),
            ..Phases::default()
        }
    }

    fn needs_body(&self) -> bool {
        self.needs_body
    }

    fn on_log(&self, exchange: &mut Exchange, record: &CallRecord<'_>, _: &mut Vec<LogEntry>) {
        self.set.count(exchange, record);
    }
}
