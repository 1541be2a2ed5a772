//! `fault-injection`: `fault-injection` of the catalogue.

use super::{Phases, PluginAdapter, PluginContext, Warnings, headers, meta, read};
use crate::schema::{Schema, any, array, integer, number, object, one_of, text};
use crate::translate::vars;
use serde::Deserialize;
use serde_json::{Map, Value};
use std::sync::LazyLock;
use weir_model::Predicate;
use weir_plugins::fault_injection::{Abort, Config, Delay};

/// The plugin `fault-injection`.
pub struct FaultInjection;

#[derive(Deserialize)]
struct Options {
    abort: Option<AbortOptions>,
    delay: Option<DelayOptions>,
}

#[derive(Deserialize)]
struct AbortOptions {
    http_status: u64,
    body: Option<String>,
    #[serde(default)]
    headers: Map<String, Value>,
    percentage: Option<u8>,
    vars: Option<Vec<Vec<Value>>>,
}

#[derive(Deserialize)]
struct DelayOptions {
    duration: f64,
    percentage: Option<u8>,
    vars: Option<Vec<Vec<Value>>>,
}

/// The longest delay, in seconds.
const LONGEST: f64 = 3600.0;

impl PluginAdapter for FaultInjection {
    fn name(&self) -> &'static str {
        "fault-injection"
    }

    fn priority(&self) -> i64 {
        11_000
    }

    fn phases(&self) -> Phases {
        Phases {
            rewrite: true,
            ..Phases::default()
        }
    }

    fn shape(&self) -> &'static Schema {
        static SHAPE: LazyLock<Schema> = LazyLock::new(|| {
            let percentage = || integer().at_least(0).at_most(100);
            let conditions = || array(array(any())).max_items(20);
            let values = object([]).each_field("^[^:]+$", one_of([text(), number()]));
            object([
                (
                    "abort",
                    object([
                        ("http_status", integer().at_least(200)),
                        ("body", text()),
                        ("headers", values.min_fields(1)),
                        ("percentage", percentage()),
                        ("vars", conditions()),
                    ])
                    .required(["http_status"]),
                ),
                (
                    "delay",
                    object([
                        ("duration", number().at_least(0)),
                        ("percentage", percentage()),
                        ("vars", conditions()),
                    ])
                    .required(["duration"]),
                ),
                ("_meta", meta::shape()),
            ])
            .min_fields(1)
        });
        &SHAPE
    }

    fn check(&self, config: &Map<String, Value>) -> Result<(), String> {
        for part in ["abort", "delay"] {
            let lists = config.get(part).and_then(|part| part.get("vars")?.as_array());
            for conditions in lists.into_iter().flatten().filter_map(Value::as_array) {
                vars::check(conditions)?;
            }
        }
        Ok(())
    }

    fn plugin(&self) -> &'static str {
        "fault-injection"
    }

    fn translate(
        &self,
        config: &Value,
        _: &PluginContext<'_>,
        notes: &mut Warnings,
    ) -> Result<Value, serde_json::Error> {
        let options: Options = read(config)?;
        serde_json::to_value(Config {
            delay: options.delay.map(|delay| {
                if delay.duration > LONGEST {
                    notes.warn("delay", format!("calls wait at most {LONGEST} seconds"));
                }
                Delay {
                    seconds: delay.duration.min(LONGEST),
                    percentage: delay.percentage,
                    when: any_of(delay.vars, "delay", notes),
                }
            }),
            abort: options.abort.map(|abort| Abort {
                status: super::uri_blocker::answerable(abort.http_status),
                content_type: abort.body.as_ref().map(|_| crate::errors::TEXT.to_owned()),
                body: abort.body,
                headers: headers::set_steps(&abort.headers),
                percentage: abort.percentage,
                when: any_of(abort.vars, "abort", notes),
            }),
        })
    }
}

/// That one of several conditions holds; of none, none does.
fn any_of(lists: Option<Vec<Vec<Value>>>, field: &'static str, notes: &mut Warnings) -> Option<Predicate> {
    let mut compiled = Vec::new();
    for list in lists? {
        match vars::compile(&list) {
            Ok(condition) => compiled.push(condition.unwrap_or(Predicate::All(Vec::new()))),
            Err(fault) => notes.error(field, fault.to_string()),
        }
    }
    Some(Predicate::Any(compiled))
}
