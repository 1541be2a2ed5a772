//! Many schemas that refer to the parts of one document, each part made ready once.

use super::check::Check;
use super::compile::Reader;
use super::stream::JsonTextError;
use super::{Node, check_text};
use serde_json::Value;
use weir_plugin::{Exhausted, WorkBudget};

/// The most parts of one set.
const MAX_PARTS: usize = 100_000;

/// A schema of a set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SchemaId(usize);

/// Schemas of draft 2020-12, made ready.
#[derive(Debug, Default)]
pub struct SchemaSet {
    nodes: Vec<Node>,
}

/// A set that is being made.
pub struct SchemaSetBuilder<'d>(Reader<'d>);

impl<'d> SchemaSetBuilder<'d> {
    /// References lead into this document.
    pub fn new(document: &'d Value) -> Self {
        Self(Reader::new(document, MAX_PARTS, true))
    }

    /// Adds a schema.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn add(&mut self, schema: &Value) -> Result<SchemaId, String> {
        let node = self.0.node(schema, false)?;
        if self.0.nodes.len() >= MAX_PARTS {
            return Err(format!("more than {MAX_PARTS} schemas"));
        }
        self.0.nodes.push(node);
        Ok(SchemaId(self.0.nodes.len() - 1))
    }

    /// The set.
    pub fn finish(self) -> SchemaSet {
        SchemaSet { nodes: self.0.nodes }
    }
}

impl SchemaSet {
    /// Checks a value and fills in what it leaves out.
    ///
    /// # Errors
    /// The first violation; or that the work goes beyond the budget, whatever the value is.
    pub fn check(&self, schema: SchemaId, value: &mut Value, work: &WorkBudget) -> Result<(), String> {
        let check = Check::new(&self.nodes, work);
        let checked = check.verify(&self.nodes[schema.0], value, 0);
        match work.is_exhausted() {
            true => Err(Exhausted.to_string()),
            false => checked,
        }
    }

    /// Checks a JSON text, without filling anything in.
    ///
    /// # Errors
    /// The first violation; or that the work goes beyond the budget, whatever the text is.
    pub fn check_text(&self, schema: SchemaId, text: &[u8], work: &WorkBudget) -> Result<(), JsonTextError> {
        check_text(&self.nodes, &self.nodes[schema.0], text, work)
    }
}
