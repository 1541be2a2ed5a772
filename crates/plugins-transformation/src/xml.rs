//! XML as JSON, and JSON as XML: elements by their names, several of one name as a list, attributes and texts as a form says.
//!
//! **What it is not**: a validator. Document types are passed over, and only the five entities that every document has
//! are known, besides characters by number.

use serde_json::{Map, Value};
use std::borrow::Cow;

/// How XML is written in JSON.
#[derive(Debug, Clone)]
pub(crate) struct XmlForm {
    pub(crate) attributes: AttributeLocation,
    /// The member with the text of an element that has other members.
    pub(crate) text_member: Cow<'static, str>,
    /// Names stand without their prefixes.
    pub(crate) drops_prefixes: bool,
    /// Texts that are numbers, truth values or `null` are these.
    pub(crate) recognizes_types: bool,
    /// A text is a member, also where it is all of an element.
    pub(crate) text_is_member: bool,
    /// An element without anything is an empty object, and not an empty text.
    pub(crate) empty_is_object: bool,
}

/// Where attributes of an element are.
#[derive(Debug, Clone)]
pub(crate) enum AttributeLocation {
    /// In a member of this name.
    Member(Cow<'static, str>),
    /// In members whose names begin so.
    Prefix(String),
}

/// As tables of Lua have it.
pub(crate) const TABLES: XmlForm = XmlForm {
    attributes: AttributeLocation::Member(Cow::Borrowed("_attr")),
    text_member: Cow::Borrowed("1"),
    drops_prefixes: true,
    recognizes_types: false,
    text_is_member: false,
    empty_is_object: false,
};

/// Elements nest at most this deep.
const MAX_DEPTH: usize = 128;

/// Bytes of the name of an entity at most, or of the number of a character.
const MAX_ENTITY: usize = 8;
/// Why a document cannot be written that goes beyond its bound.
const TOO_LARGE: &str = "a document that is too large";

/// An element that is open.
struct OpenElement {
    name: String,
    members: Map<String, Value>,
    text: String,
}

/// Reads a document.
///
/// # Errors
/// Says what is wrong with it.
pub(crate) fn parse(document: &[u8], form: &XmlForm) -> Result<Value, &'static str> {
    let document = std::str::from_utf8(document).map_err(|_| "not UTF-8")?;
    let mut rest = document.trim_start_matches('\u{feff}');
    let mut open: Vec<OpenElement> = Vec::new();
    let mut root = Map::new();
    while !rest.is_empty() {
        let Some(behind) = rest.strip_prefix('<') else {
            let end = rest.find('<').unwrap_or(rest.len());
            match open.last_mut() {
                Some(element) => unescape(&rest[..end], &mut element.text),
                None if rest[..end].trim().is_empty() => {}
                None => return Err("text outside of elements"),
            }
            rest = &rest[end..];
            continue;
        };
        rest = if let Some(comment) = behind.strip_prefix("!--") {
            after(comment, "-->")?
        } else if let Some(data) = behind.strip_prefix("![CDATA[") {
            let end = data.find("]]>").ok_or("an open CDATA section")?;
            open.last_mut()
                .ok_or("text outside of elements")?
                .text
                .push_str(&data[..end]);
            &data[end + 3..]
        } else if behind.starts_with('?') {
            after(behind, "?>")?
        } else if behind.starts_with('!') {
            document_type(behind)?
        } else if let Some(name) = behind.strip_prefix('/') {
            let end = name.find('>').ok_or("an open tag")?;
            let element = open.pop().ok_or("an end without a start")?;
            if element.name != name[..end].trim() {
                return Err("an end that is of another element");
            }
            close(form, element, &mut open, &mut root);
            &name[end + 1..]
        } else {
            let (element, is_empty, rest) = start(form, behind)?;
            match is_empty {
                true => close(form, element, &mut open, &mut root),
                false => open.push(element),
            }
            if open.len() > MAX_DEPTH {
                return Err("too many levels");
            }
            rest
        };
    }
    match (open.is_empty(), root.is_empty()) {
        (true, false) => Ok(Value::Object(root)),
        (true, true) => Err("no element"),
        (false, _) => Err("an open element"),
    }
}

fn after<'d>(text: &'d str, mark: &str) -> Result<&'d str, &'static str> {
    text.find(mark)
        .map(|end| &text[end + mark.len()..])
        .ok_or("an open markup")
}

/// Passes over a document type, whose declarations may stand in brackets.
fn document_type(text: &str) -> Result<&str, &'static str> {
    let end = text.find('>').ok_or("an open markup")?;
    match text[..end].contains('[') {
        true => after(after(text, "]")?, ">"),
        false => Ok(&text[end + 1..]),
    }
}

/// The element whose start tag follows, whether it is empty, and what comes behind it.
fn start<'t>(form: &XmlForm, text: &'t str) -> Result<(OpenElement, bool, &'t str), &'static str> {
    let is_end = |character: char| character.is_whitespace() || matches!(character, '/' | '>');
    let end = text.find(is_end).ok_or("an open tag")?;
    if end == 0 {
        return Err("a tag without a name");
    }
    let mut attributes = Map::new();
    let mut rest = text[end..].trim_start();
    let is_empty = loop {
        if let Some(behind) = rest.strip_prefix("/>") {
            rest = behind;
            break true;
        }
        if let Some(behind) = rest.strip_prefix('>') {
            rest = behind;
            break false;
        }
        let equals = rest.find('=').ok_or("an attribute without a value")?;
        let name = rest[..equals].trim();
        let value = rest[equals + 1..].trim_start();
        let quote = value
            .chars()
            .next()
            .filter(|it| matches!(it, '"' | '\''))
            .ok_or("a value without quotes")?;
        let close = value[1..].find(quote).ok_or("an open value")?;
        let mut content = String::new();
        unescape(&value[1..=close], &mut content);
        attributes.insert(form.name(name).to_owned(), Value::String(content));
        rest = value[close + 2..].trim_start();
    };
    let mut members = Map::new();
    if !attributes.is_empty() {
        match &form.attributes {
            AttributeLocation::Member(name) => {
                drop(members.insert(name.to_string(), Value::Object(attributes)))
            }
            AttributeLocation::Prefix(prefix) => {
                members
                    .extend((attributes.into_iter()).map(|(name, value)| (format!("{prefix}{name}"), value)));
            }
        }
    }
    let element = OpenElement {
        name: text[..end].to_owned(),
        members,
        text: String::new(),
    };
    Ok((element, is_empty, rest))
}

/// Puts an element into the one around it.
fn close(form: &XmlForm, element: OpenElement, open: &mut [OpenElement], root: &mut Map<String, Value>) {
    let OpenElement {
        name,
        mut members,
        text,
    } = element;
    let text = text.trim();
    let value = match (members.is_empty(), text.is_empty()) {
        (true, true) if form.empty_is_object => Value::Object(members),
        (true, _) if !form.text_is_member => form.scalar(text),
        (_, true) => Value::Object(members),
        (_, false) => {
            members.insert(form.text_member.to_string(), form.scalar(text));
            Value::Object(members)
        }
    };
    let around = open.last_mut().map_or(root, |around| &mut around.members);
    let name = form.name(&name);
    match around.get_mut(name) {
        None => drop(around.insert(name.to_owned(), value)),
        Some(Value::Array(values)) => values.push(value),
        Some(first) => *first = Value::Array(vec![first.take(), value]),
    }
}

impl XmlForm {
    /// A name, without its prefix if those are dropped.
    fn name<'t>(&self, name: &'t str) -> &'t str {
        match self.drops_prefixes {
            true => name.rsplit(':').next().unwrap_or(name),
            false => name,
        }
    }

    /// The value that a text is.
    fn scalar(&self, text: &str) -> Value {
        let is_one = |value: &Value| value.is_number() || value.is_boolean() || value.is_null();
        let value = serde_json::from_str(text).ok().filter(is_one);
        value
            .filter(|_| self.recognizes_types)
            .unwrap_or_else(|| Value::String(text.to_owned()))
    }

    /// The name and value of an attribute that a member holds, if it is one.
    fn attributes_of<'v>(&self, name: &'v str, value: &'v Value) -> Option<Vec<(&'v str, &'v Value)>> {
        match (&self.attributes, value) {
            (AttributeLocation::Member(member), Value::Object(map)) if member == name => {
                Some(map.iter().map(|(name, value)| (name.as_str(), value)).collect())
            }
            (AttributeLocation::Prefix(prefix), value) => {
                let name = name
                    .strip_prefix(prefix.as_str())
                    .filter(|name| !name.is_empty())?;
                Some(vec![(name, value)])
            }
            _ => None,
        }
    }
}

/// Writes a value as a document of at most so many bytes, in an element of this name. Without a name, the value is an object
/// whose only member is the document's element.
///
/// # Errors
/// Says why it cannot be written.
pub(crate) fn write(
    value: &Value,
    root: Option<&str>,
    form: &XmlForm,
    max_bytes: usize,
) -> Result<String, &'static str> {
    let only = value
        .as_object()
        .filter(|map| map.len() == 1)
        .and_then(|map| map.iter().next());
    let (name, value) = match (only, root) {
        (Some((name, only)), root) if root.is_none_or(|root| root == name) && !only.is_array() => {
            (name.as_str(), only)
        }
        (_, Some(root)) => (root, value),
        _ => return Err("a document needs one element around all others: name it with `root`"),
    };
    let out = String::new();
    let mut writer = Writer { form, max_bytes, out };
    writer.element(name, value, 0)?;
    Ok(writer.out)
}

/// A document as far as it is written.
struct Writer<'f> {
    form: &'f XmlForm,
    max_bytes: usize,
    out: String,
}

impl Writer<'_> {
    /// Puts texts behind what is written. A name stands before each item of its list, so that a document may be far larger than
    /// its value.
    fn push(&mut self, texts: &[&str]) -> Result<(), &'static str> {
        let bytes: usize = texts.iter().map(|text| text.len()).sum();
        if self.out.len() + bytes > self.max_bytes {
            return Err(TOO_LARGE);
        }
        texts.iter().for_each(|text| self.out.push_str(text));
        Ok(())
    }

    /// Puts a text behind what is written, without letters that mean something else.
    fn escaped(&mut self, value: &Value) -> Result<(), &'static str> {
        escape(&text(value)?, &mut self.out);
        match self.out.len() > self.max_bytes {
            true => Err(TOO_LARGE),
            false => Ok(()),
        }
    }

    fn element(&mut self, name: &str, value: &Value, depth: usize) -> Result<(), &'static str> {
        if depth > MAX_DEPTH {
            return Err("too many levels");
        }
        if let Value::Array(items) = value
            && !items.is_empty()
        {
            return (items.iter()).try_for_each(|item| self.element(name, item, depth + 1));
        }
        if !is_name(name) {
            return Err("a name that no element can have");
        }
        self.push(&["<", name])?;
        let form = self.form;
        for (member, value) in value.as_object().into_iter().flatten() {
            for (name, value) in form.attributes_of(member, value).into_iter().flatten() {
                self.attribute(name, value)?;
            }
        }
        self.push(&[">"])?;
        let start = self.out.len();
        match value {
            Value::Object(members) => {
                for (member, value) in members {
                    if form.attributes_of(member, value).is_some() {
                        continue;
                    }
                    match *member == form.text_member {
                        true => self.escaped(value)?,
                        false => self.element(member, value, depth + 1)?,
                    }
                }
            }
            Value::Array(_) => {}
            value => self.escaped(value)?,
        }
        if self.out.len() > start {
            return self.push(&["</", name, ">"]);
        }
        self.out.pop();
        self.push(&["/>"])
    }

    fn attribute(&mut self, name: &str, value: &Value) -> Result<(), &'static str> {
        if !is_name(name) {
            return Err("a name that no attribute can have");
        }
        self.push(&[" ", name, "=\""])?;
        self.escaped(value)?;
        self.push(&["\""])
    }
}

/// The text of a value that is no list and no object.
fn text(value: &Value) -> Result<Cow<'_, str>, &'static str> {
    match value {
        Value::String(text) => Ok(Cow::Borrowed(text)),
        Value::Array(_) | Value::Object(_) => Err("a text or an attribute that is a list or an object"),
        value => Ok(Cow::Owned(value.to_string())),
    }
}

/// Whether elements and attributes can have this name.
fn is_name(name: &str) -> bool {
    let is_letter =
        |character: char| character.is_alphanumeric() || matches!(character, '_' | '-' | '.' | ':');
    name.starts_with(|first: char| first.is_alphabetic() || first == '_') && name.chars().all(is_letter)
}

/// Puts a text behind `out`. Characters that no document can have are left out.
pub(crate) fn escape(text: &str, out: &mut String) {
    for character in text.chars() {
        match character {
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            '"' => out.push_str("&quot;"),
            '\n' | '\t' => out.push(character),
            '\r' => out.push_str("&#13;"),
            character if character.is_control() || matches!(character, '\u{fffe}' | '\u{ffff}') => {}
            character => out.push(character),
        }
    }
}

fn unescape(text: &str, out: &mut String) {
    let mut rest = text;
    while let Some(mark) = rest.find('&') {
        out.push_str(&rest[..mark]);
        let behind = &rest[mark + 1..];
        let mut letters = behind.bytes().take(MAX_ENTITY + 1);
        let entity = letters.position(|byte| byte == b';').map(|end| &behind[..end]);
        let character = entity.and_then(|name| match name {
            "lt" => Some('<'),
            "gt" => Some('>'),
            "amp" => Some('&'),
            "quot" => Some('"'),
            "apos" => Some('\''),
            name => {
                let number = name.strip_prefix('#')?;
                let code = match number.strip_prefix('x') {
                    Some(digits) => u32::from_str_radix(digits, 16).ok()?,
                    None => number.parse().ok()?,
                };
                char::from_u32(code)
            }
        });
        match (character, entity) {
            (Some(character), Some(name)) => {
                out.push(character);
                rest = &rest[mark + name.len() + 2..];
            }
            _ => {
                out.push('&');
                rest = &rest[mark + 1..];
            }
        }
    }
    out.push_str(rest);
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn documents_are_read() {
        for (document, expected) in [
            ("<a><b>1</b></a>", Ok(json!({"a": {"b": "1"}}))),
            (
                "<?xml version='1.0'?><!DOCTYPE a [<!ENTITY x 'y'>]>\n<a/>",
                Ok(json!({"a": ""})),
            ),
            (
                "<n:a xmlns:n='u'><n:b>x</n:b><n:b>y</n:b></n:a>",
                Ok(json!({"a": {"_attr": {"n": "u"}, "b": ["x", "y"]}})),
            ),
            (
                "<a k=\"1 > 0\" >t &lt;&#65;&#x42;&no;</a>",
                Ok(json!({"a": {"_attr": {"k": "1 > 0"}, "1": "t <AB&no;"}})),
            ),
            ("<a><!-- <b> --><![CDATA[<x>]]></a>", Ok(json!({"a": "<x>"}))),
            ("", Err("no element")),
            ("x", Err("text outside of elements")),
            ("<a>", Err("an open element")),
            ("<a></b>", Err("an end that is of another element")),
            ("</a>", Err("an end without a start")),
            ("<a b></a>", Err("an attribute without a value")),
            ("<a b=1></a>", Err("a value without quotes")),
            ("<>", Err("a tag without a name")),
            ("<a", Err("an open tag")),
        ] {
            assert_eq!(parse(document.as_bytes(), &TABLES), expected, "{document}");
        }
        assert_eq!(
            parse("<a>".repeat(1000).as_bytes(), &TABLES),
            Err("too many levels")
        );
        // Each of them is looked at by itself, and not for what may stand at the end of all.
        let marks = "&".repeat(1 << 20);
        let document = format!("{}<a>{marks};</a>", "<!x>".repeat(1 << 18));
        assert_eq!(
            parse(document.as_bytes(), &TABLES),
            Ok(json!({"a": format!("{marks};")}))
        );
    }

    fn form(attributes: AttributeLocation) -> XmlForm {
        XmlForm {
            attributes,
            text_member: "#text".into(),
            drops_prefixes: false,
            recognizes_types: true,
            text_is_member: false,
            empty_is_object: true,
        }
    }

    #[test]
    fn documents_are_read_and_written_in_other_forms() {
        let prefix = form(AttributeLocation::Prefix("-".to_owned()));
        let member = form(AttributeLocation::Member("#attr".into()));
        let textual = XmlForm {
            text_is_member: true,
            recognizes_types: false,
            ..member.clone()
        };
        for (form, document, value) in [
            (
                &member,
                "<root><age>30</age><is_student>false</is_student><name>Alice</name><none>null</none></root>",
                json!({"root": {"age": 30, "is_student": false, "name": "Alice", "none": null}}),
            ),
            (
                &member,
                "<a><b>1</b><b>x</b><c/></a>",
                json!({"a": {"b": [1, "x"], "c": {}}}),
            ),
            (
                &member,
                "<n:a k=\"1\">x</n:a>",
                json!({"n:a": {"#attr": {"k": "1"}, "#text": "x"}}),
            ),
            (
                &prefix,
                "<a k=\"&lt;&quot;\">0123</a>",
                json!({"a": {"-k": "<\"", "#text": "0123"}}),
            ),
            (&textual, "<a><b>1</b></a>", json!({"a": {"b": {"#text": "1"}}})),
        ] {
            assert_eq!(parse(document.as_bytes(), form), Ok(value.clone()), "{document}");
            assert_eq!(
                write(&value, None, form, 1000).as_deref(),
                Ok(document),
                "{value}"
            );
        }
        let deep = (0..200).fold(json!(1), |value, _| json!({ "a": value }));
        for (value, root, expected) in [
            (
                json!({"a": 1, "b": [1, 2]}),
                Some("r"),
                Ok("<r><a>1</a><b>1</b><b>2</b></r>"),
            ),
            (json!({"r": 1}), Some("r"), Ok("<r>1</r>")),
            (json!({"a": 1}), Some("r"), Ok("<r><a>1</a></r>")),
            (json!({"a": ["", [], {}]}), Some("r"), Ok("<r><a/><a/><a/></r>")),
            (json!("a & b"), Some("r"), Ok("<r>a &amp; b</r>")),
            (
                json!({"a": 1, "b": 1}),
                None,
                Err("a document needs one element around all others: name it with `root`"),
            ),
            (
                json!({"a": [1, 2]}),
                None,
                Err("a document needs one element around all others: name it with `root`"),
            ),
            (json!({"a b": 1}), None, Err("a name that no element can have")),
            (
                json!({"a": {"#attr": {"<": 1}}}),
                None,
                Err("a name that no attribute can have"),
            ),
            (
                json!({"a": {"#text": {}}}),
                None,
                Err("a text or an attribute that is a list or an object"),
            ),
            (deep, None, Err("too many levels")),
        ] {
            assert_eq!(
                write(&value, root, &member, 1000).as_deref(),
                expected.as_deref(),
                "{value}"
            );
        }
    }
    /// An element's name stands in the document once for each item of its list.
    #[test]
    fn documents_are_no_larger_than_their_bound() {
        let (name, many) = ("n".repeat(1000), vec![0; 1000]);
        let value = json!({ "a": { name: many } });
        assert_eq!(write(&value, None, &TABLES, 10_000), Err(TOO_LARGE));
        let whole = write(&value, None, &TABLES, 3_000_000).expect("it fits");
        assert_eq!(whole.len(), 1000 * (2 * 1000 + 6) + 7);
        for (value, whole) in [
            (json!({"a": "&"}), "<a>&amp;</a>"),
            (json!({"a": {"_attr": {"b": "1"}}}), "<a b=\"1\"/>"),
            (json!({"a": {"b": {}}}), "<a><b/></a>"),
        ] {
            let found = |bytes| write(&value, None, &TABLES, bytes);
            assert_eq!(found(whole.len()).as_deref(), Ok(whole));
            assert_eq!(found(whole.len() - 1), Err(TOO_LARGE), "{value}");
        }
    }
}
