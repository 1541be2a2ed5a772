//! The parameters of OpenAPI: their location in a call, how their values are written there (the styles), and whether a
//! value matches the schema.
//!
//! A text becomes a value of the schema's type: `7` is a number if the schema requires one. If a parameter with a
//! single value occurs several times, each value is checked, because the upstream may use any of them.

mod shape;
mod style;

pub use shape::Shape;
pub use style::{ParameterLocation, Style};

use serde_json::Value;
use std::borrow::Cow;
use weir_plugin::uri::{decode_form, query_pairs};
use weir_plugin::{Request, WorkBudget};
use weir_plugins_shared::json_schema::{SchemaId, SchemaSet, SchemaSetBuilder};

/// What is said of a value that must be there.
pub const MISSING: &str = "required parameter value not found in request";
/// The most values of one name that are looked at.
const MAX_VALUES: usize = 1_000;

/// A parameter, ready for use.
#[derive(Debug)]
pub struct Parameter {
    /// Its name; that of a header in lower case.
    pub name: String,
    /// Where it stands.
    pub place: ParameterLocation,
    style: Style,
    explode: bool,
    is_required: bool,
    schema: Option<SchemaId>,
    shape: Shape,
    /// The text is JSON.
    is_json: bool,
}

/// The query of a call, read once for all parameters.
#[derive(Debug, Default)]
pub struct Query<'r>(Vec<QueryPair<'r>>);

#[derive(Debug)]
struct QueryPair<'r> {
    name: Cow<'r, [u8]>,
    /// As it is written.
    value: &'r [u8],
}

impl<'r> Query<'r> {
    /// Reads a query.
    pub fn read(query: Option<&'r [u8]>) -> Self {
        let pairs = query.into_iter().flat_map(query_pairs);
        Self(
            pairs
                .map(|(name, value)| QueryPair {
                    name: decode_form(name),
                    value: value.unwrap_or_default(),
                })
                .collect(),
        )
    }

    /// The names.
    pub fn names(&self) -> impl Iterator<Item = &[u8]> {
        self.0.iter().map(|pair| pair.name.as_ref())
    }

    fn values<'q>(&'q self, name: &'q [u8]) -> impl Iterator<Item = &'r [u8]> + 'q {
        let same = self.0.iter().filter(move |pair| pair.name.as_ref() == name);
        same.map(|pair| pair.value).take(MAX_VALUES)
    }
}

/// What a parameter is read from.
pub struct Source<'s, 'r> {
    /// The request.
    pub request: &'r Request,
    /// Its query.
    pub query: &'s Query<'r>,
    /// The parts of the path by name, as they are written.
    pub path: &'s [(&'s str, &'s [u8])],
}

impl Parameter {
    /// Reads a parameter in the form of OpenAPI 3. `document` is what its references lead into.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn read(
        parameter: &Value,
        document: &Value,
        schemas: &mut SchemaSetBuilder<'_>,
    ) -> Result<Self, String> {
        let text = |field: &str| parameter.get(field).and_then(Value::as_str);
        let name = text("name").ok_or("expected a name")?.to_owned();
        let place = text("in")
            .and_then(ParameterLocation::named)
            .ok_or_else(|| format!("parameter {name}: expected path, query, header or cookie in \"in\""))?;
        let style = match text("style") {
            None => place.standard_style(),
            Some(style) => Style::named(style)
                .filter(|style| style.fits(place))
                .ok_or_else(|| format!("parameter {name}: the style {style} does not exist for it"))?,
        };
        let explode = parameter.get("explode").and_then(Value::as_bool);
        let content = parameter.get("content").and_then(Value::as_object);
        let content = content.and_then(|content| content.iter().next());
        let schema = match content {
            Some((_, media)) => media.get("schema"),
            None => parameter.get("schema"),
        };
        let fault = |message: String| format!("parameter {name}: {message}");
        Ok(Self {
            place,
            style,
            explode: explode.unwrap_or(style == Style::Form),
            is_required: parameter.get("required") == Some(&Value::Bool(true))
                || place == ParameterLocation::Path,
            shape: schema.map_or(Shape::Any, |schema| Shape::of(schema, document)),
            schema: schema
                .map(|schema| schemas.add(schema))
                .transpose()
                .map_err(fault)?,
            is_json: content.is_some_and(|(media, _)| media.contains("json")),
            name: match place {
                ParameterLocation::Header => name.to_ascii_lowercase(),
                _ => name,
            },
        })
    }

    /// Whether a name in its place of a call belongs to it.
    pub fn has_name(&self, name: &[u8]) -> bool {
        match (&self.shape, self.style, self.explode) {
            (Shape::Map(fields), Style::Form, true) => {
                std::str::from_utf8(name).is_ok_and(|name| fields.named(name).is_some())
            }
            (_, Style::DeepObject, _) => name
                .strip_prefix(self.name.as_bytes())
                .is_some_and(|rest| rest.starts_with(b"[")),
            _ => name == self.name.as_bytes(),
        }
    }

    /// Checks the parameter's value in a call.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn check(
        &self,
        source: &Source<'_, '_>,
        schemas: &SchemaSet,
        work: &WorkBudget,
    ) -> Result<(), String> {
        match self.place {
            ParameterLocation::Path => {
                let own = source.path.iter().find(|(name, _)| *name == self.name);
                self.check_texts(own.map(|(_, text)| *text), schemas, work)
            }
            ParameterLocation::Query => self.check_query(source.query, schemas, work),
            ParameterLocation::Header => {
                let mut values = source.request.headers.get_all(self.name.as_bytes());
                match (values.next(), values.next()) {
                    (first, None) => self.check_texts(first, schemas, work),
                    (first, second) => {
                        // One list over several lines (RFC 9110, 5.3).
                        let all: Vec<&[u8]> = first.into_iter().chain(second).chain(values).collect();
                        let joined = all.join(&b","[..]);
                        self.check_texts(Some(joined.as_slice()), schemas, work)
                    }
                }
            }
            ParameterLocation::Cookie => {
                let values = source.request.cookies(self.name.as_bytes());
                let values: Vec<&[u8]> = values.take(MAX_VALUES).collect();
                self.check_texts(values, schemas, work)
            }
        }
    }

    fn check_query(&self, query: &Query<'_>, schemas: &SchemaSet, work: &WorkBudget) -> Result<(), String> {
        let name = self.name.as_bytes();
        work.spend(query.0.len() / 4).map_err(|error| error.to_string())?;
        if self.is_json {
            return self.check_texts(query.values(name), schemas, work);
        }
        match (&self.shape, self.style, self.explode) {
            (Shape::List(item), Style::Form, true) => {
                let values = query.values(name);
                let items: Vec<Value> = values.map(|text| item.scalar(&decode_form(text))).collect();
                match items.is_empty() {
                    true => self.absent(),
                    false => self.check_value(Value::Array(items), schemas, work),
                }
            }
            (Shape::Map(fields), Style::Form, true) => {
                let members = query.0.iter().filter_map(|pair| {
                    let name = std::str::from_utf8(&pair.name).ok()?;
                    let field = fields.named(name)?;
                    Some((name.to_owned(), field.scalar(&decode_form(pair.value))))
                });
                self.check_members(members.take(MAX_VALUES), schemas, work)
            }
            (Shape::Map(fields), Style::DeepObject, _) => {
                let members = query.0.iter().filter_map(|pair| {
                    let key = pair
                        .name
                        .strip_prefix(name)?
                        .strip_prefix(b"[")?
                        .strip_suffix(b"]")?;
                    let key = String::from_utf8_lossy(key).into_owned();
                    let value = fields.any(&key).scalar(&decode_form(pair.value));
                    Some((key, value))
                });
                self.check_members(members.take(MAX_VALUES), schemas, work)
            }
            _ => self.check_texts(query.values(name), schemas, work),
        }
    }

    fn check_members(
        &self,
        members: impl Iterator<Item = (String, Value)>,
        schemas: &SchemaSet,
        work: &WorkBudget,
    ) -> Result<(), String> {
        let mut map = serde_json::Map::new();
        for (name, value) in members {
            if map.contains_key(&name) {
                return Err(format!("property {name:?} appears twice"));
            }
            map.insert(name, value);
        }
        match map.is_empty() {
            true => self.absent(),
            false => self.check_value(Value::Object(map), schemas, work),
        }
    }

    /// Checks each of the texts in which the value stands.
    fn check_texts<'t>(
        &self,
        texts: impl IntoIterator<Item = &'t [u8]>,
        schemas: &SchemaSet,
        work: &WorkBudget,
    ) -> Result<(), String> {
        let mut is_there = false;
        for text in texts {
            is_there = true;
            work.spend_bytes(text.len()).map_err(|error| error.to_string())?;
            if self.is_json {
                let text = decode_form(text);
                let value = serde_json::from_slice(&text).map_err(|error| format!("not JSON: {error}"))?;
                self.check_value(value, schemas, work)?;
                continue;
            }
            let value = style::value(
                self.style,
                self.explode,
                self.place,
                &self.name,
                &self.shape,
                text,
            )?;
            self.check_value(value, schemas, work)?;
        }
        match is_there {
            true => Ok(()),
            false => self.absent(),
        }
    }

    fn absent(&self) -> Result<(), String> {
        match self.is_required {
            true => Err(MISSING.to_owned()),
            false => Ok(()),
        }
    }

    fn check_value(&self, mut value: Value, schemas: &SchemaSet, work: &WorkBudget) -> Result<(), String> {
        let Some(schema) = self.schema else {
            return Ok(());
        };
        let checked = schemas.check(schema, &mut value, work);
        // A schema without a type may mean a number as well as a text.
        match (&checked, &self.shape, &value) {
            (Err(_), Shape::Any, Value::String(text)) => match serde_json::from_str::<Value>(text) {
                Ok(mut other) if !other.is_object() && !other.is_array() => {
                    schemas.check(schema, &mut other, work).or(checked)
                }
                _ => checked,
            },
            _ => checked,
        }
    }
}

#[cfg(test)]
mod tests;
