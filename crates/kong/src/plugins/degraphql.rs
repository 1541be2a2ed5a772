//! `degraphql` of the paid edition: calls that are GraphQL queries, as entities of their service define them.

use super::{Consumers, Definition, UnsupportedOption, typed, untyped};
use crate::document::DegraphqlRoute;
use crate::schema::{Check, Default, Field, Kind, Record, text};
use serde::Deserialize;
use serde_json::Value;
use weir_plugins::degraphql::{Config, QueryRoute};

/// The definition of `degraphql`.
pub const DEFINITION: Definition = Definition {
    name: "degraphql",
    priority: 1500,
    config: Record::of(&[Field::new("graphql_server_path", Kind::String)
        .required()
        .or(Default::Text("/graphql"))
        .check(&[Check::Text(text::path)])]),
    checks: &[],
    shorthands: &[],
    on_consumers: false,
    catalogue_name: "degraphql",
    translate,
};

#[derive(Deserialize)]
struct Options {
    graphql_server_path: String,
}

fn translate(config: &Value, known: &Consumers<'_>) -> Result<Value, UnsupportedOption> {
    let options: Options = typed(config)?;
    let services = (known.graphql)().into_iter();
    let routes = services.flat_map(|service| service.routes.into_iter().map(route));
    Ok(untyped(Config {
        routes: routes.collect(),
        only_routes: true,
        path: options.graphql_server_path,
        ..Config::default()
    }))
}

fn route(of: DegraphqlRoute) -> QueryRoute {
    QueryRoute {
        service: Some(of.service.to_string()),
        methods: of.methods.unwrap_or_else(|| vec!["GET".to_owned()]),
        path: of.uri,
        query: of.query,
    }
}
