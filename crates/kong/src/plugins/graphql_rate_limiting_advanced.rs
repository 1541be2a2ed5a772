//! `graphql-rate-limiting-advanced` of the paid edition: limits what GraphQL queries cost, by the costs that entities of their
//! service define.

use super::advanced_limits::{self, Limits};
use super::enterprise_fields::flag;
use super::redis::{ADVANCED_REDIS, SHORTHANDS};
use super::{Consumers, Definition, UnsupportedOption, typed, untyped};
use crate::document::GraphqlCost;
use crate::schema::{Check, Default, EntityCheck, Field, Kind, Record};
use crate::translate::graphql::GraphqlService;
use serde::Deserialize;
use serde_json::Value;
use weir_plugins::graphql_cost::{Introspection, QueryCost, ServiceWeights, Strategy, Weight};
use weir_plugins::rate_limit::{Config, RateLimitKey};

/// The definition of `graphql-rate-limiting-advanced`.
pub const DEFINITION: Definition = Definition {
    name: "graphql-rate-limiting-advanced",
    priority: 902,
    config: Record::of(FIELDS),
    checks: &[EntityCheck::Fields(advanced_limits::check_windows)],
    shorthands: SHORTHANDS,
    on_consumers: true,
    catalogue_name: "rate-limit",
    translate,
};

const FIELDS: &[Field] = &[
    Field::new("cost_strategy", Kind::String)
        .or(Default::Text("default"))
        .check(&[Check::OneOf(&["default", "node_quantifier"])]),
    Field::new("max_cost", Kind::Number).or(Default::Integer(0)),
    Field::new("score_factor", Kind::Number)
        .or(Default::Integer(1))
        .check(&[Check::Above(0)]),
    Field::new("identifier", Kind::String)
        .required()
        .or(Default::Text("consumer"))
        .check(&[Check::OneOf(&["ip", "credential", "consumer"])]),
    advanced_limits::WINDOW_SIZE,
    advanced_limits::WINDOW_TYPE,
    advanced_limits::LIMIT,
    advanced_limits::SYNC_RATE.required(),
    advanced_limits::NAMESPACE,
    Field::new("strategy", Kind::String)
        .required()
        .or(Default::Text("cluster"))
        .check(&[Check::OneOf(&["cluster", "redis"])]),
    Field::new("dictionary_name", Kind::String)
        .required()
        .or(Default::Text("kong_rate_limiting_counters")),
    advanced_limits::HIDDEN,
    flag("pass_all_downstream_headers", false),
    Field::new("redis", Kind::Record(&ADVANCED_REDIS)).required(),
];

#[derive(Deserialize)]
struct Options {
    cost_strategy: String,
    max_cost: f64,
    score_factor: f64,
    identifier: String,
    hide_client_headers: bool,
    pass_all_downstream_headers: bool,
}

fn translate(config: &Value, known: &Consumers<'_>) -> Result<Value, UnsupportedOption> {
    let limits: Limits = typed(config)?;
    let options: Options = typed(config)?;
    if options.pass_all_downstream_headers {
        return Err(UnsupportedOption {
            field: "pass_all_downstream_headers",
            what: "asking for the schema with the headers of a call (all callers share the result)"
                .to_owned(),
        });
    }
    let services = (known.graphql)().into_iter().filter(|it| !it.costs.is_empty());
    let cost = QueryCost {
        strategy: match options.cost_strategy.as_str() {
            "node_quantifier" => Strategy::NodeQuantifier,
            _ => Strategy::Complexity,
        },
        factor: options.score_factor,
        max: (options.max_cost > 0.0).then_some(options.max_cost as u64),
        header: (!options.hide_client_headers).then(|| "X-Gql-Query-Cost".to_owned()),
        services: services.map(weights).collect(),
    };
    Ok(untyped(Config {
        by: match options.identifier.as_str() {
            "ip" => RateLimitKey::Ip,
            "credential" => RateLimitKey::Credential,
            _ => RateLimitKey::Consumer,
        },
        graphql: Some(cost),
        ..advanced_limits::config(limits)?
    }))
}

fn weights(of: GraphqlService) -> ServiceWeights {
    ServiceWeights {
        service: Some(of.id.to_string()),
        introspection: Some(Introspection {
            // Nothing listens there: an upstream without targets serves no query either.
            url: of.url.unwrap_or_else(|| "http://127.0.0.1:1/".to_owned()),
            host: of.host,
            verify_tls: of.verify_tls,
            ..Introspection::default()
        }),
        weights: of.costs.into_iter().take(MOST).map(weight).collect(),
    }
}

/// Costs of a service that are looked at.
const MOST: usize = 10_000;

fn weight(cost: GraphqlCost) -> Weight {
    Weight {
        path: cost.type_path,
        add: cost.add_constant.unwrap_or(1.0),
        add_arguments: cost.add_arguments.unwrap_or_default(),
        multiply: cost.mul_constant.unwrap_or(1.0),
        multiply_arguments: cost.mul_arguments.unwrap_or_default(),
    }
}
