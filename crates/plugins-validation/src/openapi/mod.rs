//! An OpenAPI document made ready for calls: which operation a call is, what its parameters and its body must look like,
//! and what its responses look like.
//!
//! **What it is not**: a reader of documents ([`weir_openapi`]), or a plugin.

mod media;
mod paths;

pub use media::Body;
pub use paths::{Captures, Paths};

use crate::parameters::{Parameter, Source};
use serde_json::{Value, json};
use weir_openapi::{Description, Operation as Described};
use weir_plugin::WorkBudget;
use weir_plugins_shared::json_schema::{SchemaSet, SchemaSetBuilder};

/// The largest document, in bytes.
pub const MAX_DOCUMENT: usize = 16 << 20;

/// A document, ready for use.
#[derive(Debug)]
pub struct Api {
    /// The schemas of all operations.
    pub schemas: SchemaSet,
    paths: Paths,
    operations: Vec<Operation>,
    /// The targets of references, for callers that need examples; otherwise `null`.
    components: Value,
}

/// An operation, ready for use.
#[derive(Debug)]
pub struct Operation {
    /// Its parameters.
    pub parameters: Vec<Parameter>,
    /// The body of its requests.
    pub body: Option<Body>,
    /// The bodies of its responses, by status: `200`, `2XX` or `default`.
    pub responses: Vec<(String, Body)>,
    /// The normalised operation, for callers that need its examples; otherwise `null`.
    pub described: Value,
}

/// Which base paths stand before a document's paths.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Base {
    /// None.
    #[default]
    None,
    /// Those of the document's servers.
    Servers,
    /// This one.
    Own(String),
}

/// What a document has for a call.
pub enum OperationMatch<'a, 'p> {
    /// An operation by its number, and the parts of the path that its parameters stand for.
    Operation(usize, Captures<'a, 'p>),
    /// The path, without the method.
    NoMethod,
    /// Not the path.
    NoPath,
}

impl Api {
    /// Makes a document ready. `keeps_examples`: operations keep their descriptions.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn compile(text: &str, base: &Base, keeps_examples: bool) -> Result<Self, String> {
        if text.len() > MAX_DOCUMENT {
            return Err(format!("the document has more than {MAX_DOCUMENT} bytes"));
        }
        let read = weir_openapi::read(text);
        let description =
            read.map_err(|found| found.first().map_or_else(String::new, ToString::to_string))?;
        Self::of(&description, base, keeps_examples)
    }

    fn of(description: &Description, base: &Base, keeps_examples: bool) -> Result<Self, String> {
        let document = json!({"components": {"schemas": description.schemas}});
        let mut schemas = SchemaSetBuilder::new(&document);
        let mut paths = Paths::default();
        let mut operations = Vec::new();
        let of_document = bases(&description.servers, base);
        for described in &description.operations {
            let at = |message: String| format!("{} {}: {message}", described.method, described.path);
            let operation = operation(described, &document, &mut schemas, keeps_examples).map_err(at)?;
            operations.push(operation);
            let own = described.value.get("servers").and_then(Value::as_array);
            let own = own
                .filter(|_| *base == Base::Servers)
                .map(|servers| bases(servers, base));
            for base in own.as_ref().unwrap_or(&of_document) {
                let path = format!("{base}{}", described.path);
                paths.add(&described.method, &path, operations.len() - 1);
            }
        }
        Ok(Self {
            schemas: schemas.finish(),
            paths,
            operations,
            components: match keeps_examples {
                true => document.clone(),
                false => Value::Null,
            },
        })
    }

    /// How many operations it has.
    pub fn len(&self) -> usize {
        self.operations.len()
    }

    /// What references lead into, if examples are kept.
    pub fn components(&self) -> &Value {
        &self.components
    }

    /// Finds the operation of a call.
    ///
    /// # Errors
    /// Finding it takes more work than one call may cause.
    pub fn find<'a, 'p>(
        &'a self,
        method: &[u8],
        path: &'p [u8],
        work: &WorkBudget,
    ) -> Result<OperationMatch<'a, 'p>, String> {
        let found = self
            .paths
            .find(method, path, work)
            .map_err(|error| error.to_string())?;
        Ok(match found {
            Some((Some(place), captures)) => OperationMatch::Operation(place, captures),
            Some((None, _)) => OperationMatch::NoMethod,
            None => OperationMatch::NoPath,
        })
    }

    /// The operation of a number.
    pub fn operation(&self, number: usize) -> &Operation {
        &self.operations[number]
    }

    /// Checks those parameters that are `wanted`.
    ///
    /// # Errors
    /// The parameter that is wrong, and why.
    pub fn check_parameters<'o>(
        &self,
        operation: &'o Operation,
        source: &Source<'_, '_>,
        wanted: impl Fn(&Parameter) -> bool,
    ) -> Result<(), (&'o Parameter, String)> {
        for parameter in operation.parameters.iter().filter(|it| wanted(it)) {
            let checked = parameter.check(source, &self.schemas, &source.request.work);
            checked.map_err(|message| (parameter, message))?;
        }
        Ok(())
    }
}

impl Operation {
    /// The body of a response with this status.
    pub fn response(&self, status: u16) -> Option<&Body> {
        let code = status.to_string();
        let range = format!("{}XX", status / 100);
        let named = |name: &str| {
            let found = self
                .responses
                .iter()
                .find(|(known, _)| known.eq_ignore_ascii_case(name));
            found.map(|(_, body)| body)
        };
        named(&code)
            .or_else(|| named(&range))
            .or_else(|| named("default"))
    }
}

fn operation(
    described: &Described,
    document: &Value,
    schemas: &mut SchemaSetBuilder<'_>,
    keeps_examples: bool,
) -> Result<Operation, String> {
    let parameters = described.value.get("parameters").and_then(Value::as_array);
    let parameters = parameters.into_iter().flatten();
    // Headers of these names are described elsewhere (OpenAPI 3.1, 4.8.12.1).
    let is_ignored = |parameter: &&Value| {
        let text = |field: &str| parameter.get(field).and_then(Value::as_str).unwrap_or_default();
        let names = ["accept", "content-type", "authorization"];
        text("in") == "header" && names.iter().any(|name| text("name").eq_ignore_ascii_case(name))
    };
    let parameters: Result<Vec<_>, _> = parameters
        .filter(|parameter| !is_ignored(parameter))
        .map(|parameter| Parameter::read(parameter, document, schemas))
        .collect();
    let body = described.value.get("requestBody");
    let responses = described.value.get("responses").and_then(Value::as_object);
    let responses: Result<Vec<_>, String> = responses
        .into_iter()
        .flatten()
        .filter(|(code, _)| !code.starts_with("x-"))
        .map(|(code, response)| Ok((code.clone(), Body::read(response, document, schemas)?)))
        .collect();
    Ok(Operation {
        parameters: parameters?,
        body: body.map(|body| Body::read(body, document, schemas)).transpose()?,
        responses: responses?,
        described: match keeps_examples {
            true => described.value.clone(),
            false => Value::Null,
        },
    })
}

/// The paths that stand before those of a document, without a slash at their ends.
fn bases(servers: &[Value], base: &Base) -> Vec<String> {
    let cut = |path: &str| path.trim_end_matches('/').to_owned();
    match base {
        Base::None => vec![String::new()],
        Base::Own(path) => vec![cut(path)],
        Base::Servers => {
            let mut all: Vec<String> = servers
                .iter()
                .filter_map(server_path)
                .map(|path| cut(&path))
                .collect();
            all.dedup();
            match all.is_empty() {
                true => vec![String::new()],
                false => all,
            }
        }
    }
}

/// The path of a server, its variables at their defaults.
fn server_path(server: &Value) -> Option<String> {
    let mut url = server.get("url")?.as_str()?.to_owned();
    for (name, variable) in server
        .get("variables")
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
    {
        let default = variable
            .get("default")
            .and_then(Value::as_str)
            .unwrap_or_default();
        url = url.replace(&format!("{{{name}}}"), default);
    }
    let path = match url.split_once("://") {
        Some((_, rest)) => rest.find('/').map_or("", |at| &rest[at..]),
        None => url.as_str(),
    };
    let path = path.split(['?', '#']).next().unwrap_or_default();
    Some(match path.starts_with('/') || path.is_empty() {
        true => path.to_owned(),
        false => format!("/{path}"),
    })
}

#[cfg(test)]
mod tests;
