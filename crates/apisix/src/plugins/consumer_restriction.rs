//! `consumer-restriction`: `acl` of the catalogue.

use super::uri_blocker::answerable;
use super::{Phases, PluginAdapter, PluginContext, Warnings, meta, read};
use crate::schema::{Schema, array, having, integer, method, object, text};
use serde::Deserialize;
use serde_json::Value;
use std::sync::LazyLock;
use weir_plugins::acl::{AclSubject, Config, Methods, Rule};

/// The plugin `consumer-restriction`.
pub struct ConsumerRestriction;

#[derive(Deserialize)]
struct Options {
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    blacklist: Vec<String>,
    #[serde(default)]
    whitelist: Vec<String>,
    #[serde(default)]
    allowed_by_methods: Vec<ByMethod>,
    rejected_code: u64,
    rejected_msg: Option<String>,
}

#[derive(Deserialize)]
struct ByMethod {
    user: Option<String>,
    #[serde(default)]
    methods: Vec<String>,
}

impl PluginAdapter for ConsumerRestriction {
    fn name(&self) -> &'static str {
        "consumer-restriction"
    }

    fn priority(&self) -> i64 {
        2400
    }

    fn phases(&self) -> Phases {
        Phases {
            access: true,
            ..Phases::default()
        }
    }

    fn shape(&self) -> &'static Schema {
        static SHAPE: LazyLock<Schema> = LazyLock::new(|| {
            let by_method = object([("user", text()), ("methods", array(method()).min_items(1))]);
            object([
                (
                    "type",
                    text()
                        .options(["consumer_name", "service_id", "route_id", "consumer_group_id"])
                        .or("consumer_name"),
                ),
                ("blacklist", array(text()).min_items(1)),
                ("whitelist", array(text()).min_items(1)),
                ("allowed_by_methods", array(by_method)),
                ("rejected_code", integer().at_least(200).or(403)),
                ("rejected_msg", text()),
                ("_meta", meta::shape()),
            ])
            .any_of([
                having(["blacklist"]),
                having(["whitelist"]),
                having(["allowed_by_methods"]),
            ])
        });
        &SHAPE
    }

    fn plugin(&self) -> &'static str {
        "acl"
    }

    fn translate(
        &self,
        config: &Value,
        _: &PluginContext<'_>,
        _: &mut Warnings,
    ) -> Result<Value, serde_json::Error> {
        let options: Options = read(config)?;
        let fact = match options.kind.as_str() {
            "route_id" => AclSubject::Route,
            "service_id" => AclSubject::Service,
            "consumer_group_id" => AclSubject::ConsumerGroup,
            _ => AclSubject::Consumer,
        };
        let rule = |values: Vec<String>| {
            (!values.is_empty()).then(|| Rule {
                of: fact.clone(),
                values,
            })
        };
        let by_method = options.allowed_by_methods.into_iter().filter_map(|it| {
            Some(Methods {
                of: it.user?,
                methods: it.methods,
            })
        });
        let methods: Vec<Methods> = by_method.collect();
        let mut made = Config {
            require: fact.clone(),
            allow: rule(options.whitelist).into_iter().collect(),
            deny: rule(options.blacklist).into_iter().collect(),
            methods,
            status: answerable(options.rejected_code),
            message: Some(
                options
                    .rejected_msg
                    .unwrap_or_else(|| format!("The {} is forbidden.", options.kind)),
            ),
            missing_message: Some(format!(
                "The request is rejected, please check the {} for this request",
                options.kind
            )),
            ..Config::default()
        };
        if made.allow.is_empty() && made.deny.is_empty() && made.methods.is_empty() {
            // An empty list of methods restricts no consumer, but still requires authentication.
            made.deny.push(Rule {
                of: fact,
                values: Vec::new(),
            });
        }
        serde_json::to_value(made)
    }
}
