//! Compiles schemas once, and refuses keywords that are not understood. The check of values is elsewhere.

use super::formats::Format;
use super::scalars::Kinds;
use super::{Dependency, Fields, Items, Kind, Name, Node, Numbers, Property, Rules, Schema, Text};
use regex::Regex;
use serde_json::{Map, Value};
use std::collections::HashMap;

/// The most parts of a schema that references lead to.
const MAX_NODES: usize = 1_000;

/// Reads a whole schema.
pub(super) fn read(schema: &Value, fold_names: bool) -> Result<Schema, String> {
    let mut reader = Reader::new(schema, MAX_NODES, false);
    reader.nodes.push(Node::Always(true));
    reader.places.insert(String::new(), 0);
    reader.nodes[0] = reader.node(schema, fold_names)?;
    Ok(Schema { nodes: reader.nodes })
}

pub(super) struct Reader<'s> {
    root: &'s Value,
    pub(super) nodes: Vec<Node>,
    /// Of parts that references lead to, by the path in the reference.
    places: HashMap<String, usize>,
    most: usize,
    /// Whether schemas are of draft 2020-12: what stands beside a reference counts too.
    is_modern: bool,
    /// Of draft 2020-12, the parts that anchors name, by `#name`.
    anchors: HashMap<String, &'s Value>,
    /// How deep the schema that is being read is in others.
    depth: usize,
}

/// Words beside a reference that say nothing of values.
const ANNOTATIONS: [&str; 12] = [
    "$ref",
    "$dynamicRef",
    "$comment",
    "$id",
    "$defs",
    "$anchor",
    "$dynamicAnchor",
    "title",
    "description",
    "summary",
    "example",
    "examples",
];
/// How deep schemas may stand in each other.
const MAX_SCHEMA_DEPTH: usize = 200;

impl<'s> Reader<'s> {
    pub(super) fn new(root: &'s Value, most: usize, is_modern: bool) -> Self {
        let mut anchors = HashMap::new();
        if is_modern {
            find_anchors(root, &mut anchors);
        }
        Self {
            root,
            nodes: Vec::new(),
            places: HashMap::new(),
            most,
            is_modern,
            anchors,
            depth: 0,
        }
    }

    pub(super) fn node(&mut self, schema: &Value, fold: bool) -> Result<Node, String> {
        if self.depth > MAX_SCHEMA_DEPTH {
            return Err("the schema is nested too deep".to_owned());
        }
        self.depth += 1;
        let node = self.node_here(schema, fold);
        self.depth -= 1;
        node
    }

    fn node_here(&mut self, schema: &Value, fold: bool) -> Result<Node, String> {
        let schema = match schema {
            Value::Bool(always) => return Ok(Node::Always(*always)),
            Value::Object(schema) => schema,
            _ => return Err("expected a schema: a map, true or false".to_owned()),
        };
        let dynamic = schema.get("$dynamicRef").filter(|_| self.is_modern);
        let mut beside = None;
        if let Some(Value::String(reference)) = schema.get("$ref").or(dynamic) {
            let target = self.reference(reference).map(Node::Reference)?;
            let is_alone = !self.is_modern || schema.keys().all(|word| ANNOTATIONS.contains(&word.as_str()));
            if is_alone {
                return Ok(target);
            }
            beside = Some(target);
        }
        let condition = match schema.get("if") {
            None => None,
            Some(condition) => Some((
                self.node(condition, fold)?,
                self.optional(schema, "then", fold)?,
                self.optional(schema, "else", fold)?,
            )),
        };
        let mut rules = Rules {
            kinds: Kinds::new(kinds(schema.get("type"))?),
            fields: self.fields(schema, fold)?,
            items: self.items(schema)?,
            text: text(schema)?,
            number: numbers(schema)?,
            options: list(schema, "enum")?.cloned(),
            constant: schema.get("const").cloned(),
            all_of: self.nodes(schema, "allOf", fold)?,
            any_of: self.nodes(schema, "anyOf", fold)?,
            any_of_required: requirements(schema.get("anyOf")),
            one_of: self.nodes(schema, "oneOf", fold)?,
            not: self.optional(schema, "not", fold)?,
            condition,
            default: schema.get("default").filter(|it| !it.is_null()).cloned(),
            is_plain: false,
        };
        rules.all_of.extend(beside);
        rules.is_plain = rules.is_plain();
        Ok(Node::Rules(Box::new(rules)))
    }

    /// The place of what a reference leads to.
    fn reference(&mut self, reference: &str) -> Result<usize, String> {
        let unknown = || format!("failed to resolve the reference \"{reference}\"");
        let path = reference.strip_prefix('#').ok_or_else(unknown)?;
        if let Some(known) = self.places.get(path) {
            return Ok(*known);
        }
        let anchor = || self.anchors.get(reference).copied();
        let target = self.root.pointer(path).or_else(anchor).ok_or_else(unknown)?;
        if self.nodes.len() >= self.most {
            return Err("the schema has too many references".to_owned());
        }
        let place = self.nodes.len();
        self.nodes.push(Node::Always(true));
        self.places.insert(path.to_owned(), place);
        self.nodes[place] = self.node(&target.clone(), false)?;
        Ok(place)
    }

    fn optional(
        &mut self,
        schema: &Map<String, Value>,
        name: &str,
        fold: bool,
    ) -> Result<Option<Node>, String> {
        schema.get(name).map(|inner| self.node(inner, fold)).transpose()
    }

    fn nodes(&mut self, schema: &Map<String, Value>, name: &str, fold: bool) -> Result<Vec<Node>, String> {
        let items = list(schema, name)?.into_iter().flatten();
        items.map(|item| self.node(item, fold)).collect()
    }

    fn fields(&mut self, schema: &Map<String, Value>, fold: bool) -> Result<Option<Fields>, String> {
        let required = match schema.get("required") {
            // Older schemas say of a property itself that it is required.
            None | Some(Value::Bool(_)) => Vec::new(),
            Some(_) => texts(schema, "required")?,
        };
        let name = |text: &str| Name {
            looked_up: if fold {
                text.to_ascii_lowercase()
            } else {
                text.to_owned()
            },
            text: text.to_owned(),
        };
        let mut fields = Fields {
            names: self.optional(schema, "propertyNames", false)?,
            least: count(schema, "minProperties")?,
            most: count(schema, "maxProperties")?,
            others: self.optional(schema, "additionalProperties", false)?,
            ..Fields::default()
        };
        for (property, inner) in map(schema, "properties")? {
            fields.properties.push(Property {
                name: name(property),
                is_required: required.contains(property),
                node: self.node(inner, false)?,
            });
        }
        fields.index();
        let is_property = |property: &String| fields.properties.iter().any(|it| it.name.text == *property);
        fields.required = required
            .iter()
            .filter(|it| !is_property(it))
            .map(|it| name(it))
            .collect();
        let dependencies: Vec<(&String, &Value)> = map(schema, "dependencies")?
            .chain(map(schema, "dependentRequired")?)
            .chain(map(schema, "dependentSchemas")?)
            .collect();
        for (property, inner) in dependencies {
            let dependency = match inner {
                Value::Array(items) => {
                    Dependency::Fields(items.iter().filter_map(Value::as_str).map(name).collect())
                }
                inner => Dependency::Schema(self.node(inner, fold)?),
            };
            fields.dependencies.push((name(property), dependency));
        }
        for (pattern, inner) in map(schema, "patternProperties")? {
            fields.patterns.push((regex(pattern)?, self.node(inner, false)?));
        }
        let words = [
            "required",
            "properties",
            "dependencies",
            "dependentRequired",
            "dependentSchemas",
            "patternProperties",
            "additionalProperties",
            "propertyNames",
            "minProperties",
            "maxProperties",
        ];
        Ok(words
            .iter()
            .any(|word| schema.contains_key(*word))
            .then_some(fields))
    }

    fn items(&mut self, schema: &Map<String, Value>) -> Result<Option<Items>, String> {
        let mut items = Items {
            others: self.optional(schema, "additionalItems", false)?,
            contains: self.optional(schema, "contains", false)?,
            least: count(schema, "minItems")?,
            most: count(schema, "maxItems")?,
            unique: schema.get("uniqueItems") == Some(&Value::Bool(true)),
            ..Items::default()
        };
        let is_tuple = self.is_modern && schema.contains_key("prefixItems");
        match schema.get("items") {
            _ if is_tuple => {
                items.first = self.nodes(schema, "prefixItems", false)?;
                items.others = self.optional(schema, "items", false)?;
            }
            None => {}
            Some(Value::Array(_)) => items.first = self.nodes(schema, "items", false)?,
            Some(each) => items.each = Some(self.node(each, false)?),
        }
        let words = [
            "items",
            "prefixItems",
            "contains",
            "minItems",
            "maxItems",
            "uniqueItems",
        ];
        Ok(words
            .iter()
            .any(|word| schema.contains_key(*word))
            .then_some(items))
    }
}

impl Fields {
    /// Indexes the properties, so that a small map is not checked for each of many.
    fn index(&mut self) {
        for (place, property) in self.properties.iter().enumerate() {
            let has_default = matches!(&property.node, Node::Rules(rules) if rules.default.is_some());
            let name = property.name.looked_up.clone();
            let is_double = self.places.insert(name, place).is_some();
            self.has_doubles |= is_double;
            if property.is_required || has_default || is_double {
                self.always.push(place);
            }
        }
    }
}

impl Rules {
    /// Whether each part of a value needs to be seen once only.
    fn is_plain(&self) -> bool {
        let is_scalar = |option: &Value| !option.is_array() && !option.is_object();
        let are_fields_plain = self.fields.as_ref().is_none_or(|fields| {
            fields.dependencies.is_empty() && fields.names.is_none() && !fields.has_doubles
        });
        let are_items_plain =
            (self.items.as_ref()).is_none_or(|items| !items.unique && items.contains.is_none());
        let lists = [&self.all_of, &self.any_of, &self.one_of];
        self.options
            .as_ref()
            .is_none_or(|options| options.iter().all(is_scalar))
            && self.constant.is_none()
            && lists.iter().all(|list| list.is_empty())
            && self.not.is_none()
            && self.condition.is_none()
            && are_fields_plain
            && are_items_plain
    }
}

/// Finds the parts that have a name of their own. Values are as deep as a reader allows.
fn find_anchors<'s>(value: &'s Value, out: &mut HashMap<String, &'s Value>) {
    match value {
        Value::Object(map) => {
            for word in ["$anchor", "$dynamicAnchor"] {
                if let Some(name) = map.get(word).and_then(Value::as_str) {
                    out.entry(format!("#{name}")).or_insert(value);
                }
            }
            map.values().for_each(|below| find_anchors(below, out));
        }
        Value::Array(items) => items.iter().for_each(|below| find_anchors(below, out)),
        _ => {}
    }
}

fn kinds(kind: Option<&Value>) -> Result<Vec<Kind>, String> {
    let named = |name: &Value| match name.as_str() {
        Some("object" | "table") => Ok(Kind::Object),
        Some("array") => Ok(Kind::Array),
        Some("string") => Ok(Kind::Text),
        Some("integer") => Ok(Kind::Integer),
        Some("number") => Ok(Kind::Number),
        Some("boolean") => Ok(Kind::Boolean),
        Some("null") => Ok(Kind::Null),
        Some("function") => Ok(Kind::Function),
        Some(other) => Err(format!("invalid JSON type: {other}")),
        None => Err(format!("invalid JSON type: {name}")),
    };
    match kind {
        None => Ok(Vec::new()),
        Some(Value::Array(names)) => names.iter().map(named).collect(),
        Some(name @ Value::String(_)) => Ok(vec![named(name)?]),
        Some(_) => Err("invalid \"type\" type: expected a text or a list".to_owned()),
    }
}

fn text(schema: &Map<String, Value>) -> Result<Option<Text>, String> {
    let pattern = match schema.get("pattern") {
        None => None,
        Some(Value::String(pattern)) => Some((pattern.clone(), regex(pattern)?)),
        Some(_) => return Err("expected a text in \"pattern\"".to_owned()),
    };
    let text = Text {
        least: count(schema, "minLength")?,
        most: count(schema, "maxLength")?,
        pattern,
        format: schema
            .get("format")
            .and_then(Value::as_str)
            .and_then(Format::named),
    };
    let is_set =
        text.least.is_some() || text.most.is_some() || text.pattern.is_some() || text.format.is_some();
    Ok(is_set.then_some(text))
}

fn numbers(schema: &Map<String, Value>) -> Result<Option<Numbers>, String> {
    let number = |name: &str| match schema.get(name) {
        None => Ok(None),
        Some(Value::Number(number)) => Ok(number.as_f64()),
        Some(_) => Err(format!("expected a number in \"{name}\"")),
    };
    // In draft 4 these are flags beside the bound.
    let flag = |name: &str| schema.get(name) == Some(&Value::Bool(true));
    let is_flag = |name: &str| matches!(schema.get(name), Some(Value::Bool(_)));
    let (mut minimum, mut maximum) = (number("minimum")?, number("maximum")?);
    let above = match is_flag("exclusiveMinimum") {
        true => minimum.take_if(|_| flag("exclusiveMinimum")),
        false => number("exclusiveMinimum")?,
    };
    let below = match is_flag("exclusiveMaximum") {
        true => maximum.take_if(|_| flag("exclusiveMaximum")),
        false => number("exclusiveMaximum")?,
    };
    let multiple_of = number("multipleOf")?.filter(|it| *it > 0.0);
    let all = [minimum, above, maximum, below, multiple_of];
    Ok(all.iter().any(Option::is_some).then_some(Numbers {
        minimum,
        above,
        maximum,
        below,
        multiple_of,
    }))
}

fn regex(pattern: &str) -> Result<Regex, String> {
    Regex::new(pattern).map_err(|error| format!("not a regular expression: {error}"))
}

fn count(schema: &Map<String, Value>, name: &str) -> Result<Option<usize>, String> {
    match schema.get(name) {
        None => Ok(None),
        Some(value) => match value.as_f64() {
            Some(number) if number >= 0.0 => Ok(Some(number as usize)),
            _ => Err(format!("expected a number of at least 0 in \"{name}\"")),
        },
    }
}

fn list<'s>(schema: &'s Map<String, Value>, name: &str) -> Result<Option<&'s Vec<Value>>, String> {
    match schema.get(name) {
        None => Ok(None),
        Some(Value::Array(items)) => Ok(Some(items)),
        Some(_) => Err(format!("expected a list in \"{name}\"")),
    }
}

fn texts(schema: &Map<String, Value>, name: &str) -> Result<Vec<String>, String> {
    let items = list(schema, name)?.into_iter().flatten();
    let text = |item: &Value| item.as_str().map(str::to_owned);
    let texts: Option<Vec<String>> = items.map(text).collect();
    texts.ok_or_else(|| format!("expected texts in \"{name}\""))
}

fn map<'s>(
    schema: &'s Map<String, Value>,
    name: &str,
) -> Result<impl Iterator<Item = (&'s String, &'s Value)>, String> {
    match schema.get(name) {
        None => Ok(None.into_iter().flatten()),
        Some(Value::Object(map)) => Ok(Some(map).into_iter().flatten()),
        Some(_) => Err(format!("expected a map in \"{name}\"")),
    }
}

/// `: ["a"] or ["b"]`, the fields that alternatives require.
fn requirements(alternatives: Option<&Value>) -> String {
    let alternatives = alternatives.and_then(Value::as_array).into_iter().flatten();
    let lists: Vec<String> = alternatives
        .filter_map(|alternative| Some(alternative.get("required")?.to_string()))
        .collect();
    match lists.is_empty() {
        true => String::new(),
        false => format!(": {}", lists.join(" or ")),
    }
}
