//! The GraphQL of services in entities: the costs of queries (for `graphql-rate-limiting-advanced`), and which calls
//! are queries (for `degraphql`).

use super::common::{CREATED_AT, ID, UPDATED_AT};
use crate::schema::{Check, Default, Field, Kind, Record};
use serde::Deserialize;
use serde_json::Value;
use uuid::Uuid;
use weir_plugin::graphql::Tree;

const TEXTS: Kind = Kind::Array(&Field::element(Kind::String));

/// The fields of a cost.
pub static COST: Record = Record::of(&[
    ID,
    CREATED_AT,
    Field::new("service", Kind::Foreign("services")),
    Field::new("type_path", Kind::String)
        .required()
        .check(&[Check::Text(type_path)]),
    Field::new("add_constant", Kind::Number)
        .or(Default::Integer(1))
        .check(&[Check::Between(0, MOST)]),
    Field::new("add_arguments", TEXTS).check(&[Check::Value(check_length)]),
    Field::new("mul_constant", Kind::Number)
        .or(Default::Integer(1))
        .check(&[Check::Between(0, MOST)]),
    Field::new("mul_arguments", TEXTS).check(&[Check::Value(check_length)]),
]);

/// The largest constant.
const MOST: i64 = 2_147_483_646;

/// A type of a schema, and fields that lead on from it.
fn type_path(path: &str) -> Result<(), String> {
    let is_name = |name: &str| {
        name.starts_with(|first: char| first == '_' || first.is_ascii_alphabetic())
            && name.chars().all(|it| it == '_' || it.is_ascii_alphanumeric())
    };
    let count = path.split('.').count();
    match count <= MAX_NAMES && path.split('.').all(is_name) {
        true => Ok(()),
        false => Err(format!(
            "expected a path such as 'Query.products', of at most {MAX_NAMES} names"
        )),
    }
}

const MAX_NAMES: usize = 16;

/// The fields of a call that is a query.
pub static DEGRAPHQL_ROUTE: Record = Record::of(&[
    ID,
    CREATED_AT,
    UPDATED_AT,
    Field::new("service", Kind::Foreign("services")).required(),
    Field::new(
        "methods",
        Kind::Set(&Field::element(Kind::String).check(&[Check::OneOf(METHODS)])),
    )
    .or(Default::Texts(&["GET"]))
    .check(&[Check::AtLeast(1)]),
    Field::new("uri", Kind::String)
        .required()
        .check(&[Check::Text(uri)]),
    Field::new("query", Kind::String)
        .required()
        .check(&[Check::Text(query)]),
]);

const METHODS: &[&str] = &["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"];

/// Segments of a path at most, as in the plugin: it refuses all of its routes for one that it cannot take.
const MAX_SEGMENTS: usize = 32;

fn uri(path: &str) -> Result<(), String> {
    match path.strip_prefix('/') {
        Some(rest) if rest.split('/').count() > MAX_SEGMENTS => {
            Err(format!("expected at most {MAX_SEGMENTS} segments"))
        }
        Some(_) => Ok(()),
        None => Err("should start with: /".to_owned()),
    }
}

fn query(text: &str) -> Result<(), String> {
    match Tree::read(text).map(|tree| tree.operations.len()) {
        Some(1) => Ok(()),
        Some(_) => Err("expected a GraphQL document with one operation".to_owned()),
        None => Err("failed to parse the GraphQL query".to_owned()),
    }
}

fn check_length(list: &Value) -> Result<(), String> {
    match list.as_array().is_some_and(|list| list.len() > MAX_NAMES) {
        true => Err(format!("expected at most {MAX_NAMES} arguments")),
        false => Ok(()),
    }
}

/// The cost of a part of a schema.
#[derive(Debug, Clone, Deserialize)]
#[allow(missing_docs, reason = "the fields are Kong's own")]
pub struct GraphqlCost {
    pub service: Option<Uuid>,
    pub type_path: String,
    pub add_constant: Option<f64>,
    pub add_arguments: Option<Vec<String>>,
    pub mul_constant: Option<f64>,
    pub mul_arguments: Option<Vec<String>>,
}

/// Calls that are a query.
#[derive(Debug, Clone, Deserialize)]
#[allow(missing_docs, reason = "the fields are Kong's own")]
pub struct DegraphqlRoute {
    pub service: Uuid,
    pub methods: Option<Vec<String>>,
    pub uri: String,
    pub query: String,
}
