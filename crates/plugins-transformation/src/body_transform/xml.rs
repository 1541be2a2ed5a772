//! XML as JSON: elements by their local names, several of one name as a list, attributes below `_attr`.
//!
//! **What it is not**: a validator. Document types are passed over, and only the five entities that every document has
//! are known, besides characters by number.

use serde_json::{Map, Value};

/// Elements nest at most this deep.
const MAX_DEPTH: usize = 128;

/// Bytes of the name of an entity at most, or of the number of a character.
const MAX_ENTITY: usize = 8;

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
pub(super) fn parse(document: &[u8]) -> Result<Value, &'static str> {
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
            close(element, &mut open, &mut root);
            &name[end + 1..]
        } else {
            let (element, is_empty, rest) = start(behind)?;
            match is_empty {
                true => close(element, &mut open, &mut root),
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
fn start(text: &str) -> Result<(OpenElement, bool, &str), &'static str> {
    let is_end = |letter: char| letter.is_whitespace() || matches!(letter, '/' | '>');
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
        attributes.insert(local(name).to_owned(), Value::String(content));
        rest = value[close + 2..].trim_start();
    };
    let mut members = Map::new();
    if !attributes.is_empty() {
        members.insert("_attr".to_owned(), Value::Object(attributes));
    }
    let element = OpenElement {
        name: text[..end].to_owned(),
        members,
        text: String::new(),
    };
    Ok((element, is_empty, rest))
}

/// Puts an element into the one around it.
fn close(element: OpenElement, open: &mut [OpenElement], root: &mut Map<String, Value>) {
    let OpenElement {
        name,
        mut members,
        text,
    } = element;
    let text = text.trim();
    let value = match (members.is_empty(), text.is_empty()) {
        (true, _) => Value::String(text.to_owned()),
        (false, true) => Value::Object(members),
        (false, false) => {
            // As in Lua's tables, the text is what stands at 1.
            members.insert("1".to_owned(), Value::String(text.to_owned()));
            Value::Object(members)
        }
    };
    let around = open.last_mut().map_or(root, |around| &mut around.members);
    let name = local(&name);
    match around.get_mut(name) {
        None => drop(around.insert(name.to_owned(), value)),
        Some(Value::Array(values)) => values.push(value),
        Some(first) => *first = Value::Array(vec![first.take(), value]),
    }
}

/// A name without its namespace.
fn local(name: &str) -> &str {
    name.rsplit(':').next().unwrap_or(name)
}

fn unescape(text: &str, out: &mut String) {
    let mut rest = text;
    while let Some(mark) = rest.find('&') {
        out.push_str(&rest[..mark]);
        let behind = &rest[mark + 1..];
        let mut letters = behind.bytes().take(MAX_ENTITY + 1);
        let entity = letters.position(|byte| byte == b';').map(|end| &behind[..end]);
        let letter = entity.and_then(|name| match name {
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
        match (letter, entity) {
            (Some(letter), Some(name)) => {
                out.push(letter);
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
            assert_eq!(parse(document.as_bytes()), expected, "{document}");
        }
        assert_eq!(parse("<a>".repeat(1000).as_bytes()), Err("too many levels"));
        // Each of them is looked at by itself, and not for what may stand at the end of all.
        let marks = "&".repeat(1 << 20);
        let document = format!("{}<a>{marks};</a>", "<!x>".repeat(1 << 18));
        assert_eq!(parse(document.as_bytes()), Ok(json!({"a": format!("{marks};")})));
    }
}
