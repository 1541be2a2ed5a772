//! `lago`: sends an event for each call to Lago, which bills by them.

use super::{BatchOptions, common, first};
use crate::plugins::{PluginAdapter, PluginContext, Warnings, read};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use weir_plugins::logger::Config;
use weir_plugins::logger::form::Form;
use weir_plugins::logger::target::{HttpTarget, Target};

/// The plugin `lago`.
pub struct Lago;

#[derive(Deserialize)]
struct Options {
    endpoint_addrs: Vec<String>,
    endpoint_uri: String,
    token: String,
    event_transaction_id: String,
    event_subscription_id: String,
    event_code: String,
    event_properties: Option<Map<String, Value>>,
    ssl_verify: bool,
    timeout: u64,
}

impl PluginAdapter for Lago {
    common!("lago", 415, printed);

    fn translate(
        &self,
        config: &Value,
        _: &PluginContext<'_>,
        notes: &mut Warnings,
    ) -> Result<Value, serde_json::Error> {
        let options: Options = read(config)?;
        let address = first("endpoint_addrs", options.endpoint_addrs, notes);
        let mut fields = Map::from_iter([
            (
                "transaction_id".to_owned(),
                Value::from(options.event_transaction_id),
            ),
            (
                "external_subscription_id".to_owned(),
                options.event_subscription_id.into(),
            ),
            ("code".to_owned(), options.event_code.into()),
            ("timestamp".to_owned(), json!("$msec")),
        ]);
        if let Some(properties) = options.event_properties {
            fields.insert("properties".to_owned(), Value::Object(properties));
        }
        serde_json::to_value(Config {
            target: Target::Http(HttpTarget {
                url: format!("{}{}", address.trim_end_matches('/'), options.endpoint_uri),
                headers: BTreeMap::from([("Authorization".to_owned(), format!("Bearer {}", options.token))]),
                timeout_ms: options.timeout,
                verify_tls: options.ssl_verify,
                ..HttpTarget::default()
            }),
            form: Form::Events,
            own_name: "apisix".to_owned(),
            fields: Some(fields),
            batch: read::<BatchOptions>(config)?.batch(),
            ..Config::default()
        })
    }
}
