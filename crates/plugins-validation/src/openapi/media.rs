//! Bodies: their media types, and whether a body matches the schema of its type.

use crate::parameters::Shape;
use serde_json::{Map, Value};
use weir_plugin::WorkBudget;
use weir_plugin::multipart;
use weir_plugin::uri::{decode_form, query_pairs};
use weir_plugins_shared::json_schema::{SchemaId, SchemaSet, SchemaSetBuilder};

/// The most fields of a form.
const MAX_FIELDS: usize = 10_000;

/// A body of a request or a response.
#[derive(Debug)]
pub struct Body {
    /// Whether it must be there.
    pub is_required: bool,
    media: Vec<Media>,
}

/// A body of one media type.
#[derive(Debug)]
pub struct Media {
    /// The type as the document has it: `application/json`, `text/*`, `*/*`; in lower case, without parameters.
    pub name: String,
    schema: Option<SchemaId>,
    shape: Shape,
}

/// What is wrong with a body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BodyViolation {
    /// It must be there.
    Missing,
    /// Its type is not one of the described types.
    Type(String),
    /// It does not match.
    Content(String),
}

impl BodyViolation {
    /// In words.
    pub fn message(&self) -> String {
        match self {
            Self::Missing => "request body is required".to_owned(),
            Self::Type(name) => format!("content-type '{name}' is not supported"),
            Self::Content(message) => message.clone(),
        }
    }
}

impl Body {
    /// Reads a body in the form of OpenAPI 3.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn read(body: &Value, document: &Value, schemas: &mut SchemaSetBuilder<'_>) -> Result<Self, String> {
        let content = body
            .get("content")
            .and_then(Value::as_object)
            .into_iter()
            .flatten();
        let media: Result<Vec<Media>, String> = content
            .map(|(name, media)| {
                let schema = media.get("schema");
                Ok(Media {
                    name: essence(name.as_bytes()),
                    schema: schema.map(|schema| schemas.add(schema)).transpose()?,
                    shape: schema.map_or(Shape::Any, |schema| Shape::of(schema, document)),
                })
            })
            .collect();
        Ok(Self {
            is_required: body.get("required") == Some(&Value::Bool(true)),
            media: media?,
        })
    }

    /// Whether a body has to be read to be checked.
    pub fn needs_content(&self, content_type: Option<&[u8]>) -> bool {
        match self.of_type(content_type) {
            Some(media) => media.schema.is_some() && media.kind() != Kind::Other,
            None => false,
        }
    }

    /// The description of bodies with this `Content-Type`.
    fn of_type(&self, content_type: Option<&[u8]>) -> Option<&Media> {
        // A body without a type is taken for the only one that is described.
        let Some(content_type) = content_type else {
            return self
                .media
                .iter()
                .find(|media| media.kind() == Kind::Json)
                .or(self.media.first());
        };
        let name = essence(content_type);
        let named = |wanted: &str| self.media.iter().find(|media| media.name == wanted);
        let range = || {
            name.split_once('/')
                .and_then(|(main, _)| named(&format!("{main}/*")))
        };
        named(&name).or_else(range).or_else(|| named("*/*"))
    }

    /// Checks a body.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn check(
        &self,
        content_type: Option<&[u8]>,
        body: &[u8],
        schemas: &SchemaSet,
        work: &WorkBudget,
    ) -> Result<(), BodyViolation> {
        if self.media.is_empty() {
            return Ok(());
        }
        if body.is_empty() {
            return match self.is_required {
                true => Err(BodyViolation::Missing),
                false => Ok(()),
            };
        }
        let Some(media) = self.of_type(content_type) else {
            return Err(BodyViolation::Type(essence(content_type.unwrap_or_default())));
        };
        let Some(schema) = media.schema else {
            return Ok(());
        };
        work.allow_pass(body.len());
        let checked = match media.kind_of(content_type) {
            Kind::Json => {
                let checked = schemas.check_text(schema, body, work);
                checked.map_err(|fault| fault.message().to_owned())
            }
            Kind::Form => media
                .form(body)
                .and_then(|mut form| schemas.check(schema, &mut form, work)),
            Kind::Multipart => media
                .multipart(body, content_type.unwrap_or_default())
                .and_then(|mut form| schemas.check(schema, &mut form, work)),
            Kind::Text => match std::str::from_utf8(body) {
                Ok(text) => schemas.check(schema, &mut Value::from(text), work),
                Err(_) => Err("the text is not UTF-8".to_owned()),
            },
            Kind::Other => Ok(()),
        };
        checked.map_err(BodyViolation::Content)
    }
}

/// How a body is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Json,
    Form,
    Multipart,
    Text,
    /// It is not looked into.
    Other,
}

impl Kind {
    fn of(name: &str) -> Self {
        match name {
            "application/x-www-form-urlencoded" => Self::Form,
            "multipart/form-data" => Self::Multipart,
            "text/plain" => Self::Text,
            _ if name.ends_with("/json") || name.ends_with("+json") => Self::Json,
            _ => Self::Other,
        }
    }
}

impl Media {
    fn kind(&self) -> Kind {
        Kind::of(&self.name)
    }

    /// Of a range of types, the call says which one it is.
    fn kind_of(&self, content_type: Option<&[u8]>) -> Kind {
        match (self.name.contains('*'), content_type) {
            (true, Some(content_type)) => Kind::of(&essence(content_type)),
            _ => self.kind(),
        }
    }

    fn form(&self, body: &[u8]) -> Result<Value, String> {
        let mut form = Form::default();
        for (name, value) in query_pairs(body) {
            let name = String::from_utf8_lossy(&decode_form(name)).into_owned();
            form.add(name, &decode_form(value.unwrap_or_default()), &self.shape)?;
        }
        Ok(Value::Object(form.0))
    }

    fn multipart(&self, body: &[u8], content_type: &[u8]) -> Result<Value, String> {
        let boundary = multipart::boundary(content_type).ok_or("expected a boundary")?;
        let mut form = Form::default();
        for part in multipart::parts(body, boundary) {
            let name = part.name().ok_or("expected a name of each part")?;
            let name = String::from_utf8_lossy(name).into_owned();
            form.add(name, part.content, &self.shape)?;
        }
        Ok(Value::Object(form.0))
    }
}

/// The fields of a form, in the kinds that the schema wants.
#[derive(Default)]
struct Form(Map<String, Value>);

impl Form {
    fn add(&mut self, name: String, text: &[u8], shape: &Shape) -> Result<(), String> {
        if self.0.len() >= MAX_FIELDS {
            return Err(format!("more than {MAX_FIELDS} fields"));
        }
        let field = match shape {
            Shape::Map(fields) => fields.any(&name),
            _ => &Shape::Any,
        };
        let value = match field {
            Shape::List(item) => {
                let items = self.0.entry(name).or_insert_with(|| Value::Array(Vec::new()));
                if let Value::Array(items) = items {
                    items.push(item.scalar(text));
                }
                return Ok(());
            }
            // Objects in forms are JSON (OpenAPI 3.1, 4.8.15.1).
            Shape::Map(_) => {
                serde_json::from_slice(text).map_err(|error| format!("{name}: not JSON: {error}"))?
            }
            field => field.scalar(text),
        };
        match self.0.insert(name.clone(), value) {
            None => Ok(()),
            Some(_) => Err(format!("property {name:?} appears twice")),
        }
    }
}

/// A media type without its parameters, in lower case.
pub fn essence(content_type: &[u8]) -> String {
    let end = content_type.iter().position(|byte| *byte == b';');
    let name = content_type[..end.unwrap_or(content_type.len())].trim_ascii();
    String::from_utf8_lossy(name).to_ascii_lowercase()
}
