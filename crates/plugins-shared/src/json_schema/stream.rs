//! Checks a JSON text against a schema without building a value: most keywords of most schemas need to see each value
//! once. Keywords that need a value (alternatives, `const`, unique items, …) get one.
//!
//! Unlike [`Schema::check`](super::Schema::check), it fills in nothing. A name that appears twice in one object is
//! refused if the schema says anything about it: two parsers could use different ones.

use super::buffered_value::BufferedValue;
use super::check::Check;
use super::equality::is_same;
use super::members::{Key, MemberKind, MemberSet};
use super::scalars::{KindSet, check_number, check_text};
use super::{Fields, Items, Kind, MAX_DEPTH, Node, Rules};
use crate::json_text::{Reader, Unreadable};
use serde::de::{DeserializeSeed, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};
use std::cell::RefCell;
use std::fmt;

/// Why a text does not match.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum JsonTextError {
    /// It is not valid JSON; what is wrong with it.
    NotJson(String),
    /// It does not match the schema; what is wrong with it.
    Mismatch(String),
}

impl JsonTextError {
    /// What is wrong.
    pub fn message(&self) -> &str {
        match self {
            Self::NotJson(message) | Self::Mismatch(message) => message,
        }
    }
}

/// Checks a text.
pub(super) fn check(check: Check<'_>, node: &Node, text: &[u8]) -> Result<(), JsonTextError> {
    let fault = RefCell::new(None);
    let streamed = Streamed {
        check: &check,
        node,
        depth: 0,
        fault: &fault,
    };
    if let Ok(text) = std::str::from_utf8(text) {
        let mut reader = Reader::new(text);
        let read = streamed.deserialize(&mut reader).and_then(|()| reader.end());
        match (fault.take(), read) {
            (Some(fault), _) => return Err(JsonTextError::Mismatch(fault)),
            (None, Ok(())) => return Ok(()),
            // The fast reader cannot say what is wrong.
            (None, Err(Unreadable)) => {}
        }
    }
    let mut reader = serde_json::Deserializer::from_slice(text);
    let read = streamed.deserialize(&mut reader).and_then(|()| reader.end());
    match (fault.into_inner(), read) {
        (Some(fault), _) => Err(JsonTextError::Mismatch(fault)),
        (None, Err(error)) => Err(JsonTextError::NotJson(error.to_string())),
        (None, Ok(())) => Ok(()),
    }
}

/// One value of the text, and what it must look like.
#[derive(Clone, Copy)]
pub(super) struct Streamed<'s, 'c> {
    check: &'s Check<'c>,
    node: &'s Node,
    depth: usize,
    /// The fault, in the schema's words; the parser's own errors contain the place in the text.
    fault: &'s RefCell<Option<String>>,
}

impl<'s> Streamed<'s, '_> {
    pub(super) fn fail<E: Error>(&self, message: String) -> E {
        *self.fault.borrow_mut() = Some(message);
        E::custom("it does not match")
    }

    /// Puts words around the fault that a part has reported.
    fn around<E>(&self, error: E, words: impl FnOnce(&str) -> String) -> E {
        let mut fault = self.fault.borrow_mut();
        if let Some(message) = fault.as_mut() {
            *message = words(message);
        }
        error
    }

    fn below(&self, node: &'s Node) -> Self {
        Self {
            node,
            depth: self.depth + 1,
            ..*self
        }
    }

    fn kind<E: Error>(&self, rules: &Rules, found: KindSet) -> Result<(), E> {
        rules.kinds.check(found).map_err(|message| self.fail(message))
    }

    fn options<E: Error>(&self, rules: &Rules, is_found: impl Fn(&Value) -> bool) -> Result<(), E> {
        match &rules.options {
            Some(options) if !options.iter().any(is_found) => {
                Err(self.fail("matches none of the enum values".to_owned()))
            }
            _ => Ok(()),
        }
    }

    /// Checks a value that is not a text or number, or of which only that it is a list or object is to be checked.
    fn scalar<E: Error>(&self, rules: &Rules, value: &Value) -> Result<(), E> {
        self.kind(rules, KindSet::of(value))?;
        self.options(rules, |option| is_same(option, value))
    }

    fn number<E: Error>(&self, rules: &Rules, number: Number) -> Result<(), E> {
        self.kind(rules, KindSet::of_number(&number))?;
        if let Some(rules) = &rules.number {
            check_number(rules, &number).map_err(|message| self.fail(message))?;
        }
        self.options(rules, |option| is_same(option, &Value::Number(number.clone())))
    }

    fn text<E: Error>(&self, rules: &Rules, text: &str) -> Result<(), E> {
        self.kind(rules, KindSet::one(Kind::Text))?;
        if let Some(rules) = &rules.text {
            self.spend(text.len() / 16)?;
            check_text(rules, text).map_err(|words| self.fail(words()))?;
        }
        self.options(rules, |option| option.as_str() == Some(text))
    }

    #[inline]
    pub(super) fn spend<E: Error>(&self, steps: usize) -> Result<(), E> {
        self.check.spend(steps).map_err(|message| self.fail(message))
    }
}

impl<'de> DeserializeSeed<'de> for Streamed<'_, '_> {
    type Value = ();

    fn deserialize<D: serde::Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        self.spend(1)?;
        if self.depth > MAX_DEPTH {
            return Err(self.fail("nested too deep".to_owned()));
        }
        match self.node {
            Node::Always(true) => serde::Deserialize::deserialize(deserializer).map(|_: IgnoredAny| ()),
            Node::Always(false) => Err(self.fail("expect false always".to_owned())),
            Node::Reference(place) => self.below(self.check.node(*place)).deserialize(deserializer),
            Node::Rules(rules) if rules.is_plain => {
                let visitor = Plain { part: self, rules };
                deserializer.deserialize_any(visitor)
            }
            Node::Rules(_) => {
                let mut value = BufferedValue { part: self }.deserialize(deserializer)?;
                let checked = self.check.verify(self.node, &mut value, self.depth);
                checked.map_err(|message| self.fail(message))
            }
        }
    }
}

/// A value of which each part is looked at once.
struct Plain<'s, 'c> {
    part: Streamed<'s, 'c>,
    rules: &'s Rules,
}

impl<'de> Visitor<'de> for Plain<'_, '_> {
    type Value = ();

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("JSON")
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<(), E> {
        self.part.scalar(self.rules, &Value::Bool(value))
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<(), E> {
        self.part.number(self.rules, value.into())
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<(), E> {
        self.part.number(self.rules, value.into())
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<(), E> {
        match Number::from_f64(value) {
            Some(number) => self.part.number(self.rules, number),
            None => self.part.scalar(self.rules, &Value::Null),
        }
    }

    fn visit_unit<E: Error>(self) -> Result<(), E> {
        self.part.scalar(self.rules, &Value::Null)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<(), E> {
        self.part.text(self.rules, text)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        self.part.scalar(self.rules, &Value::Array(Vec::new()))?;
        let Some(rules) = &self.rules.items else {
            while items.next_element::<IgnoredAny>()?.is_some() {
                self.part.spend(1)?;
            }
            return Ok(());
        };
        self.items(rules, items)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        self.part.scalar(self.rules, &Value::Object(Map::new()))?;
        let Some(fields) = &self.rules.fields else {
            while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {
                self.part.spend(1)?;
            }
            return Ok(());
        };
        self.fields(fields, map)
    }
}

impl Plain<'_, '_> {
    fn items<'de, A: SeqAccess<'de>>(&self, rules: &Items, mut items: A) -> Result<(), A::Error> {
        let anything = Node::Always(true);
        let part = &self.part;
        let mut count = 0;
        loop {
            let (node, is_beyond) = match rules.first.get(count) {
                Some(node) => (node, false),
                None if rules.first.is_empty() => (rules.each.as_ref().unwrap_or(&anything), false),
                None => (rules.others.as_ref().unwrap_or(&anything), true),
            };
            let item = part.below(node);
            let read = items.next_element_seed(item).map_err(|error| {
                part.around(error, |message| match node {
                    Node::Always(_) if is_beyond => "found unexpected extra items in array".to_owned(),
                    _ if is_beyond => format!("failed to validate additional item {}: {message}", count + 1),
                    _ => format!("failed to validate item {}: {message}", count + 1),
                })
            })?;
            if read.is_none() {
                break;
            }
            count += 1;
            if let Some(most) = rules.most.filter(|most| count > *most) {
                return Err(part.fail(format!("expect array to have at most {most} items")));
            }
        }
        match rules.least {
            Some(least) if count < least => {
                Err(part.fail(format!("expect array to have at least {least} items")))
            }
            _ => Ok(()),
        }
    }

    fn fields<'de, A: MapAccess<'de>>(&self, fields: &Fields, mut map: A) -> Result<(), A::Error> {
        let part = &self.part;
        let mut seen = MemberSet::of(fields.properties.len());
        let mut required_seen = MemberSet::of(fields.required.len());
        let (mut count, mut expected) = (0, 0);
        while let Some(key) = map.next_key_seed(Key { fields, expected })? {
            count += 1;
            part.spend(1)?;
            match key {
                MemberKind::Property(place) => {
                    let property = &fields.properties[place];
                    if seen.set(place) {
                        return Err(part.fail(format!("property {} appears twice", property.name.quoted())));
                    }
                    expected = place + 1;
                    let value = part.below(&property.node);
                    map.next_value_seed(value).map_err(|error| {
                        part.around(error, |message| {
                            format!("property {} validation failed: {message}", property.name.quoted())
                        })
                    })?;
                }
                MemberKind::Other(name) => {
                    if let Some(at) = fields.required.iter().position(|it| it.looked_up == name)
                        && required_seen.set(at)
                    {
                        return Err(part.fail(format!("property {name:?} appears twice")));
                    }
                    self.other(fields, &name, &mut map)?;
                }
                MemberKind::Free => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        for (place, property) in fields.properties.iter().enumerate() {
            if property.is_required && !seen.has(place) {
                return Err(part.fail(property.name.missing()));
            }
        }
        for (at, name) in fields.required.iter().enumerate() {
            if !required_seen.has(at) {
                return Err(part.fail(name.missing()));
            }
        }
        match (fields.least, fields.most) {
            (Some(least), _) if count < least => {
                Err(part.fail(format!("expect object to have at least {least} properties")))
            }
            (_, Some(most)) if count > most => {
                Err(part.fail(format!("expect object to have at most {most} properties")))
            }
            _ => Ok(()),
        }
    }

    /// A member that is not a property.
    fn other<'de, A: MapAccess<'de>>(
        &self,
        fields: &Fields,
        name: &str,
        map: &mut A,
    ) -> Result<(), A::Error> {
        let part = &self.part;
        part.spend(1 + fields.patterns.len() * (1 + name.len() / 16))?;
        let mut patterns = (fields.patterns.iter()).filter(|(pattern, _)| pattern.is_match(name));
        match (patterns.next(), patterns.next(), &fields.others) {
            // Several schemas for one value need it whole.
            (Some(first), Some(second), _) => {
                let mut value = map.next_value_seed(BufferedValue { part: *part })?;
                for (pattern, node) in [first, second].into_iter().chain(patterns) {
                    let checked = part.check.verify(node, &mut value, part.depth + 1);
                    checked.map_err(|error| {
                        let pattern = pattern.as_str();
                        part.fail(format!(
                            "failed to validate {name} (matching {pattern:?}): {error}"
                        ))
                    })?;
                }
                Ok(())
            }
            (Some((pattern, node)), None, _) => map.next_value_seed(part.below(node)).map_err(|error| {
                part.around(error, |message| {
                    let pattern = pattern.as_str();
                    format!("failed to validate {name} (matching {pattern:?}): {message}")
                })
            }),
            (None, _, Some(node)) => map.next_value_seed(part.below(node)).map_err(|error| {
                part.around(error, |message| match node {
                    Node::Always(_) => format!("additional properties forbidden, found {name}"),
                    _ => format!("failed to validate additional property {name}: {message}"),
                })
            }),
            (None, _, None) => map.next_value::<IgnoredAny>().map(drop),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Schema, SchemaSetBuilder};
    use super::*;
    use serde_json::json;
    use weir_plugin::WorkBudget;

    #[test]
    fn texts_are_judged_the_same_as_values() {
        let schema = json!({
            "type": "object",
            "required": ["name", "z"],
            "properties": {
                "name": {"type": "string", "minLength": 2},
                "age": {"type": "integer", "minimum": 1, "exclusiveMaximum": 100},
                "tags": {"type": "array", "items": {"type": "string"}, "minItems": 1, "maxItems": 2},
                "pair": {"items": [{"type": "string"}], "additionalItems": false},
                "kind": {"enum": ["a", 1, null]},
                "either": {"anyOf": [{"type": "string"}, {"type": "object", "required": ["a"]}]},
                "unique": {"type": "array", "uniqueItems": true},
                "never": false,
                "any": true,
            },
            "patternProperties": {"^s_": {"type": "string"}, "_x$": {"maxLength": 3}},
            "additionalProperties": {"type": "boolean"},
            "maxProperties": 5,
        });
        let schema = Schema::read(&schema, false).expect("a schema");
        for text in [
            r#"{"name": "ab", "z": true}"#,
            r#"{"z": true, "name": "ab", "tags": ["a"]}"#,
            r#"{"name": "a", "z": true}"#,
            r#"{"name": "ab"}"#,
            r#"{"z": true}"#,
            r#"[]"#,
            r#"1.5"#,
            r#"{"name": "ab", "z": true, "age": 0}"#,
            r#"{"name": "ab", "z": true, "age": 1.0}"#,
            r#"{"name": "ab", "z": true, "age": 1.5}"#,
            r#"{"name": "ab", "z": true, "age": 100}"#,
            r#"{"name": "ab", "z": true, "age": -1}"#,
            r#"{"name": "ab", "z": true, "tags": []}"#,
            r#"{"name": "ab", "z": true, "tags": ["a", 2]}"#,
            r#"{"name": "ab", "z": true, "tags": ["a", "b", "c"]}"#,
            r#"{"name": "ab", "z": true, "pair": ["a", "b"]}"#,
            r#"{"name": "ab", "z": true, "kind": "b"}"#,
            r#"{"name": "ab", "z": true, "kind": null}"#,
            r#"{"name": "ab", "z": true, "either": {"a": 1}}"#,
            r#"{"name": "ab", "z": true, "either": {"b": 1}}"#,
            r#"{"name": "ab", "z": true, "unique": [{"a": 1}, {"a": 1}]}"#,
            r#"{"name": "ab", "z": true, "never": 1}"#,
            r#"{"name": "ab", "z": true, "any": {"a": [1, {"b": null}]}}"#,
            r#"{"name": "ab", "z": true, "s_a": 1}"#,
            r#"{"name": "ab", "z": true, "s_x": "long"}"#,
            r#"{"name": "ab", "z": true, "s_x": "lo"}"#,
            r#"{"name": "ab", "z": true, "other": 1}"#,
            r#"{"name": "ab", "z": true, "a": true, "b": true, "c": true, "d": true}"#,
            r#"{"name": "\u0061\u0062", "\u007a": true}"#,
        ] {
            let mut value: Value = serde_json::from_str(text).expect("JSON");
            let of_value = schema.check(&mut value, &WorkBudget::default());
            let of_text = schema.check_text(text.as_bytes(), &WorkBudget::default());
            let of_text = of_text.map_err(|fault| fault.message().to_owned());
            assert_eq!(
                of_text.is_ok(),
                of_value.is_ok(),
                "{text}: {of_text:?} {of_value:?}"
            );
            // Which of several faults is met first may differ: texts are read from their beginning.
            if text.starts_with(r#"{"name": "ab", "z": true"#) {
                assert_eq!(of_text, of_value, "{text}");
            }
        }
    }

    #[test]
    fn what_is_ambiguous_or_no_json_is_refused() {
        let schema = json!({"properties": {"a": {"type": "integer"}, "b": {"const": 1}}, "required": ["c"]});
        let schema = Schema::read(&schema, false).expect("a schema");
        for (text, expected) in [
            (r#"{"c": 1, "a": 1, "a": 2}"#, "property \"a\" appears twice"),
            (r#"{"c": 1, "c": 2}"#, "property \"c\" appears twice"),
            (r#"{"c": 1, "x": {"d": 1, "d": 2}}"#, ""),
            (r#"{"c": 1} x"#, "trailing characters at line 1 column 10"),
            (r#"{"c": "#, "EOF while parsing a value at line 1 column 6"),
            ("", "EOF while parsing a value at line 1 column 0"),
        ] {
            let message = schema.check_text(text.as_bytes(), &WorkBudget::default());
            let message = message.map_or_else(|fault| fault.message().to_owned(), |()| String::new());
            assert_eq!(message, expected, "{text}");
        }
        let deep = "[".repeat(200) + &"]".repeat(200);
        let list = Schema::read(&json!({"items": {"$ref": "#"}}), false).expect("a schema");
        assert!(list.check_text(deep.as_bytes(), &WorkBudget::default()).is_err());
    }

    #[test]
    fn sets_share_the_parts_of_a_document() {
        let document = json!({"components": {"schemas": {
            "Pet": {"type": "object", "required": ["name"], "properties": {
                "name": {"type": "string"}, "friends": {"type": "array", "items": {"$ref": "#/components/schemas/Pet"}},
            }},
            "Tags": {"type": "array", "items": {"$dynamicRef": "#tag"}, "$defs": {"t": {"$dynamicAnchor": "tag", "type": "string"}}},
        }}});
        let mut builder = SchemaSetBuilder::new(&document);
        let pet = builder
            .add(&json!({"$ref": "#/components/schemas/Pet"}))
            .expect("a schema");
        let beside = json!({"$ref": "#/components/schemas/Pet", "maxProperties": 1});
        let small = builder.add(&beside).expect("a schema");
        let tags = builder
            .add(&json!({"$ref": "#/components/schemas/Tags"}))
            .expect("a schema");
        let tuple = json!({"prefixItems": [{"type": "string"}], "items": {"type": "boolean"}});
        let tuple = builder.add(&tuple).expect("a schema");
        let needs = builder
            .add(&json!({"dependentRequired": {"a": ["b"]}}))
            .expect("a schema");
        assert!(builder.add(&json!({"$ref": "#/components/schemas/No"})).is_err());
        let set = builder.finish();
        for (schema, text, holds) in [
            (pet, r#"{"name": "a", "friends": [{"name": "b"}]}"#, true),
            (pet, r#"{"name": "a", "friends": [{}]}"#, false),
            (small, r#"{"name": "a"}"#, true),
            (small, r#"{"name": "a", "x": 1}"#, false),
            (small, r#"{"x": 1}"#, false),
            (tags, r#"["a"]"#, true),
            (tags, "[1]", false),
            (tuple, r#"["a", true]"#, true),
            (tuple, r#"["a", 1]"#, false),
            (tuple, "[1]", false),
            (needs, r#"{"a": 1, "b": 2}"#, true),
            (needs, r#"{"a": 1}"#, false),
        ] {
            let work = WorkBudget::default();
            assert_eq!(
                set.check_text(schema, text.as_bytes(), &work).is_ok(),
                holds,
                "{text}"
            );
            let mut value: Value = serde_json::from_str(text).expect("JSON");
            assert_eq!(set.check(schema, &mut value, &work).is_ok(), holds, "{text}");
        }
    }
}
