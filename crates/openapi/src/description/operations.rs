//! The operations of a document, each as a value of its own.

use super::budget::Budget;
use super::references::{reference_of, resolve};
use super::{Format, Operation, schemas};
use crate::slug::{UniqueNames, slug};
use serde_json::{Map, Value};
use std::collections::HashMap;
use weir_model::DocPath;

/// Fields of a path that are operations.
const METHODS: [&str; 9] = [
    "get", "put", "post", "delete", "options", "head", "patch", "trace", "query",
];

/// The methods of a path's item: the fixed ones, and those of `additionalOperations` (3.2).
fn operations_of(item: &Value) -> impl Iterator<Item = (Option<&'static str>, &str, &Value)> {
    let fixed = METHODS
        .iter()
        .filter_map(move |method| Some((None, *method, item.get(*method)?)));
    let more = item.get("additionalOperations").and_then(Value::as_object);
    let more = more
        .into_iter()
        .flatten()
        .map(|(method, operation)| (Some("additionalOperations"), method.as_str(), operation));
    fixed
        .chain(more)
        .filter(|(_, _, operation)| operation.is_object())
}

/// How many operations a document has, before anything is made of them.
pub fn count(document: &Value) -> usize {
    let paths = document.get("paths").and_then(Value::as_object);
    let items = paths.into_iter().flatten().map(|(_, item)| item);
    items
        .map(|item| resolve(document, item).map_or(0, |(item, _)| operations_of(item).count()))
        .sum()
}

/// All operations, in the order of the document.
///
/// # Errors
/// The fault and its place.
pub fn all(document: &Value, format: Format, budget: &Budget) -> Result<Vec<Operation>, (DocPath, String)> {
    let place = DocPath::root().field("paths");
    let paths = match document.get("paths") {
        Some(Value::Object(paths)) => paths,
        // A document of webhooks or components alone.
        None if format >= Format::V3_1 => return Ok(Vec::new()),
        _ => return Err((place, "expected a map of paths in 'paths'".to_owned())),
    };
    let mut reader = Reader {
        document,
        format,
        budget,
        names: UniqueNames::default(),
        operations: Vec::new(),
    };
    for (path, item) in paths {
        if path.starts_with("x-") {
            continue;
        }
        let place = place.field(path.as_str());
        if !path.starts_with('/') {
            return Err((
                place,
                format!("expected a path that begins with '/', found '{path}'"),
            ));
        }
        if !item.is_object() {
            return Err((place, "expected a map of operations".to_owned()));
        }
        reader.path(path, item, &place);
    }
    Ok(reader.operations)
}

struct Reader<'d> {
    document: &'d Value,
    format: Format,
    budget: &'d Budget,
    names: UniqueNames,
    operations: Vec<Operation>,
}

impl<'d> Reader<'d> {
    fn path(&mut self, path: &str, item: &'d Value, place: &DocPath) {
        let Ok((item, _)) = resolve(self.document, item) else {
            return;
        };
        for (list, method, operation) in operations_of(item) {
            let place = match list {
                None => place.field(method),
                Some(list) => place.field(list).field(method),
            };
            let value = self.value(item, operation);
            let own_id = operation.get("operationId").and_then(Value::as_str);
            let id = self.id(own_id, method, path);
            let text = |field: &str| value.get(field).and_then(Value::as_str).map(str::to_owned);
            let tags = value.get("tags").and_then(Value::as_array);
            self.operations.push(Operation {
                id,
                has_own_id: own_id.is_some_and(|it| !it.is_empty()),
                method: method.to_uppercase(),
                path: path.to_owned(),
                summary: text("summary"),
                deprecated: value.get("deprecated").is_some_and(|it| *it == true),
                tags: tags
                    .into_iter()
                    .flatten()
                    .filter_map(|tag| tag.as_str().map(str::to_owned))
                    .collect(),
                value: Value::Object(value),
                place,
            });
        }
    }

    /// The operation's own id, or one made of method and path; with a number if another operation has the same id.
    fn id(&mut self, own: Option<&str>, method: &str, path: &str) -> String {
        self.names.unique(match own {
            Some(own) if !own.is_empty() => own.to_owned(),
            _ => slug(&format!("{method} {path}")),
        })
    }

    fn value(&self, item: &'d Value, operation: &'d Value) -> Map<String, Value> {
        let mut value = Map::new();
        for (field, part) in operation.as_object().into_iter().flatten() {
            let part = match field.as_str() {
                "parameters" => continue,
                "requestBody" => self.body(part),
                "responses" => self.responses(part),
                _ => self.budget.copy(part),
            };
            value.insert(field.clone(), part);
        }
        let parameters = self.parameters(item, operation);
        if !parameters.is_empty() {
            value.insert("parameters".to_owned(), Value::Array(parameters));
        }
        for (field, above) in [("security", self.document), ("servers", item)] {
            if let (false, Some(part)) = (value.contains_key(field), above.get(field)) {
                value.insert(field.to_owned(), self.budget.copy(part));
            }
        }
        value
    }

    /// The value at the end of references, in which nothing is normalised yet.
    fn end(&self, value: &'d Value) -> &'d Value {
        resolve(self.document, value).map_or(value, |(end, _)| end)
    }

    /// Those of the path, with those of the operation in the place of the same ones.
    fn parameters(&self, item: &'d Value, operation: &'d Value) -> Vec<Value> {
        let mut all: Vec<Value> = Vec::new();
        let mut known: HashMap<(String, String), usize> = HashMap::new();
        let lists = [item, operation].map(|it| it.get("parameters").and_then(Value::as_array));
        for parameter in lists.into_iter().flatten().flatten() {
            let mut parameter = self.budget.copy(self.end(parameter));
            self.header(&mut parameter);
            let text = |field: &str| {
                parameter
                    .get(field)
                    .and_then(Value::as_str)
                    .unwrap_or_default()
                    .to_owned()
            };
            match known.get(&(text("in"), text("name"))) {
                Some(index) => all[*index] = parameter,
                None => {
                    known.insert((text("in"), text("name")), all.len());
                    all.push(parameter);
                }
            }
        }
        all
    }

    /// A parameter or a header: a schema, or content.
    fn header(&self, value: &mut Value) {
        if let Some(schema) = value.get_mut("schema") {
            schemas::modernise(schema, self.format);
        }
        self.content(value);
        self.examples(value);
    }

    fn body(&self, body: &'d Value) -> Value {
        let mut body = self.budget.copy(self.end(body));
        self.content(&mut body);
        body
    }

    fn responses(&self, responses: &'d Value) -> Value {
        let mut made = Map::new();
        for (code, response) in responses.as_object().into_iter().flatten() {
            let mut response = self.budget.copy(self.end(response));
            self.content(&mut response);
            if let Some(Value::Object(headers)) = response.get_mut("headers") {
                for header in headers.values_mut() {
                    *header = self.end_of_clone(header);
                    self.header(header);
                }
            }
            made.insert(code.clone(), response);
        }
        Value::Object(made)
    }

    fn content(&self, value: &mut Value) {
        let Some(Value::Object(content)) = value.get_mut("content") else {
            return;
        };
        for media in content.values_mut() {
            *media = self.end_of_clone(media);
            if let Some(schema) = media.get_mut("schema") {
                schemas::modernise(schema, self.format);
            }
            self.examples(media);
        }
    }

    fn examples(&self, value: &mut Value) {
        let Some(Value::Object(examples)) = value.get_mut("examples") else {
            return;
        };
        for example in examples.values_mut() {
            *example = self.end_of_clone(example);
        }
    }

    fn end_of_clone(&self, value: &Value) -> Value {
        match reference_of(value) {
            // The value is a copy; what it refers to stands in the document.
            Some(_) => {
                let end = resolve(self.document, value).map(|(end, _)| self.budget.copy(end));
                end.unwrap_or_else(|_| value.clone())
            }
            None => value.clone(),
        }
    }
}
