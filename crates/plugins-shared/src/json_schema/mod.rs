//! JSON Schema (drafts 4 to 7, as far as Apache APISIX supports it): schemas compiled for many values.
//!
//! A check fills in defaults and stops at the first violation, which it reports with the message of APISIX's own
//! checker. Only references within the schema are followed (`#/definitions/a`).
//!
//! Every checked value costs a step of the call's budget: with recursive references, a small body could cause any
//! amount of work.

mod buffered_value;
mod check;
mod compile;
mod equality;
mod formats;
mod members;
mod scalars;
mod set;
mod stream;

pub use scalars::weight;
pub use set::{SchemaId, SchemaSet, SchemaSetBuilder};
pub use stream::JsonTextError;

use regex::Regex;
use serde_json::Value;
use std::collections::HashMap;
use weir_plugin::{Exhausted, WorkBudget};

/// How deep values and references may be nested. What is deeper does not match.
const MAX_DEPTH: usize = 128;

/// A schema made ready.
#[derive(Debug)]
pub struct Schema {
    /// The whole, and everything that a reference leads to.
    nodes: Vec<Node>,
}

/// A schema or a part of one.
#[derive(Debug)]
enum Node {
    /// Anything, or nothing.
    Always(bool),
    /// What another node says.
    Reference(usize),
    Rules(Box<Rules>),
}

/// What a value must look like. What is not set holds for every value.
#[derive(Debug, Default)]
struct Rules {
    kinds: scalars::Kinds,
    fields: Option<Fields>,
    items: Option<Items>,
    text: Option<Text>,
    number: Option<Numbers>,
    options: Option<Vec<Value>>,
    constant: Option<Value>,
    all_of: Vec<Node>,
    any_of: Vec<Node>,
    /// What the words say that no alternative has.
    any_of_required: String,
    one_of: Vec<Node>,
    not: Option<Node>,
    /// `if`, `then` and `else`.
    condition: Option<(Node, Option<Node>, Option<Node>)>,
    default: Option<Value>,
    /// Each part of a value needs to be seen once only.
    is_plain: bool,
}

/// A type of JSON value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Object,
    Array,
    Text,
    Integer,
    Number,
    Boolean,
    Null,
    /// What no JSON is: a type of the language in which the original's checker is written.
    Function,
}

/// What a map must look like.
#[derive(Debug, Default)]
struct Fields {
    properties: Vec<Property>,
    /// The index in `properties` by name.
    places: HashMap<String, usize>,
    /// The indices of those properties that apply to maps without them, or share a name.
    always: Vec<usize>,
    /// Required fields that are not in `properties`.
    required: Vec<Name>,
    dependencies: Vec<(Name, Dependency)>,
    patterns: Vec<(Regex, Node)>,
    others: Option<Node>,
    names: Option<Node>,
    least: Option<usize>,
    most: Option<usize>,
    /// Two properties are looked up by one name.
    has_doubles: bool,
}

/// A field's name.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Name {
    /// As the schema has it.
    text: String,
    /// As maps have it.
    looked_up: String,
}

#[derive(Debug)]
struct Property {
    name: Name,
    is_required: bool,
    node: Node,
}

#[derive(Debug)]
enum Dependency {
    Fields(Vec<Name>),
    Schema(Node),
}

/// What a list must look like.
#[derive(Debug, Default)]
struct Items {
    each: Option<Node>,
    first: Vec<Node>,
    others: Option<Node>,
    contains: Option<Node>,
    least: Option<usize>,
    most: Option<usize>,
    unique: bool,
}

#[derive(Debug, Default)]
struct Text {
    least: Option<usize>,
    most: Option<usize>,
    pattern: Option<(String, Regex)>,
    format: Option<formats::Format>,
}

#[derive(Debug, Default)]
struct Numbers {
    minimum: Option<f64>,
    above: Option<f64>,
    maximum: Option<f64>,
    below: Option<f64>,
    multiple_of: Option<f64>,
}

impl Schema {
    /// Reads a schema. `fold_names`: the names of fields at the top are those of headers, in lower case in values and
    /// in any case in the schema.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn read(schema: &Value, fold_names: bool) -> Result<Self, String> {
        compile::read(schema, fold_names)
    }

    /// Checks a JSON text, without filling anything in. A member of which the schema says something must not stand twice.
    ///
    /// # Errors
    /// The first violation; or that the work goes beyond the budget, whatever the text is.
    pub fn check_text(&self, text: &[u8], work: &WorkBudget) -> Result<(), JsonTextError> {
        check_text(&self.nodes, &self.nodes[0], text, work)
    }

    /// Checks a value and fills in what it leaves out.
    ///
    /// # Errors
    /// The first violation; or that the work goes beyond the budget, whatever the value is.
    pub fn check(&self, value: &mut Value, work: &WorkBudget) -> Result<(), String> {
        let check = check::Check::new(&self.nodes, work);
        let checked = check.verify(&self.nodes[0], value, 0);
        match work.is_exhausted() {
            true => Err(Exhausted.to_string()),
            false => checked,
        }
    }
}

fn check_text(nodes: &[Node], node: &Node, text: &[u8], work: &WorkBudget) -> Result<(), JsonTextError> {
    let checked = stream::check(check::Check::new(nodes, work), node, text);
    match work.is_exhausted() {
        true => Err(JsonTextError::Mismatch(Exhausted.to_string())),
        false => checked,
    }
}

#[cfg(test)]
mod tests;
