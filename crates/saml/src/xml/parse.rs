//! Reading XML: the grammar of XML 1.0 and of its namespaces, as far as SAML uses it.

use super::{Child, Document, Element, ElementId, Limits, XmlAttribute};
use crate::error::{SamlError, ensure};
use crate::names::XML;
use std::borrow::Cow;

/// `xmlns:`.
const XMLNS: &str = "http://www.w3.org/2000/xmlns/";

pub(super) struct Parser<'t> {
    rest: &'t str,
    limits: Limits,
    elements: Vec<Element>,
    /// Elements that are not closed yet.
    open: Vec<ElementId>,
}

/// What stands in a start tag behind the name.
#[derive(Default)]
struct Tag {
    bindings: Vec<(String, String)>,
    attributes: Vec<XmlAttribute>,
    is_empty: bool,
}

const NOT_WELL_FORMED: SamlError = SamlError("the XML is not well-formed");

impl<'t> Parser<'t> {
    pub(super) fn new(text: &'t str, limits: Limits) -> Result<Self, SamlError> {
        ensure(text.len() <= limits.bytes, "the XML is too long")?;
        ensure(
            text.chars().all(is_char),
            "the XML has characters that it may not have",
        )?;
        Ok(Self {
            rest: text.strip_prefix('\u{feff}').unwrap_or(text),
            limits,
            elements: Vec::new(),
            open: Vec::new(),
        })
    }

    pub(super) fn document(mut self) -> Result<Document, SamlError> {
        self.declaration()?;
        loop {
            let before = self.rest.find('<').unwrap_or(self.rest.len());
            let (text, rest) = self.rest.split_at(before);
            self.rest = rest;
            self.text(text)?;
            if self.rest.is_empty() {
                break;
            }
            self.markup()?;
        }
        ensure(
            self.open.is_empty() && !self.elements.is_empty(),
            "the XML ends too early",
        )?;
        Ok(Document {
            elements: self.elements,
        })
    }

    /// `<?xml … ?>`, which may only say that it is UTF-8.
    fn declaration(&mut self) -> Result<(), SamlError> {
        let Some(rest) = self.rest.strip_prefix("<?xml") else {
            return Ok(());
        };
        if !rest.starts_with(is_space) {
            return Ok(());
        }
        let (declaration, rest) = rest.split_once("?>").ok_or(NOT_WELL_FORMED)?;
        if let Some((_, encoding)) = declaration.split_once("encoding") {
            let encoding = encoding.trim_start_matches(is_space).strip_prefix('=');
            let encoding = encoding.ok_or(NOT_WELL_FORMED)?.trim_start_matches(is_space);
            let name: String = encoding.chars().skip(1).take(5).collect();
            ensure(name.eq_ignore_ascii_case("utf-8"), "the XML is not UTF-8")?;
        }
        ensure(
            declaration.contains("1.0"),
            "the XML has another version than 1.0",
        )?;
        self.rest = rest;
        Ok(())
    }

    fn markup(&mut self) -> Result<(), SamlError> {
        if let Some(rest) = self.rest.strip_prefix("<!--") {
            let (comment, rest) = rest.split_once("--").ok_or(NOT_WELL_FORMED)?;
            let _left_out = comment;
            self.rest = rest.strip_prefix('>').ok_or(NOT_WELL_FORMED)?;
            return Ok(());
        }
        if let Some(rest) = self.rest.strip_prefix("<![CDATA[") {
            let (text, rest) = rest.split_once("]]>").ok_or(NOT_WELL_FORMED)?;
            self.rest = rest;
            return self.append(&line_ends(text));
        }
        ensure(
            !self.rest.starts_with("<!"),
            "the XML has a document type or entities",
        )?;
        ensure(
            !self.rest.starts_with("<?"),
            "the XML has a processing instruction",
        )?;
        match self.rest.strip_prefix("</") {
            Some(rest) => self.close(rest),
            None => self.element(),
        }
    }

    fn close(&mut self, rest: &'t str) -> Result<(), SamlError> {
        let (name, rest) = rest.split_once('>').ok_or(NOT_WELL_FORMED)?;
        let id = self.open.pop().ok_or(NOT_WELL_FORMED)?;
        let element = &self.elements[id.0];
        let (prefix, local) = qualified(name.trim_end_matches(is_space))?;
        ensure(
            element.prefix == prefix && element.local == local,
            "the XML has an end tag that does not fit",
        )?;
        self.rest = rest;
        Ok(())
    }

    fn element(&mut self) -> Result<(), SamlError> {
        ensure(
            self.elements.len() < self.limits.elements,
            "the XML has too many elements",
        )?;
        ensure(self.open.len() < self.limits.depth, "the XML is too deep")?;
        ensure(
            !self.open.is_empty() || self.elements.is_empty(),
            "the XML has two elements at the top",
        )?;
        self.rest = &self.rest[1..];
        let name = self.name()?;
        let (prefix, local) = qualified(name)?;
        let Tag {
            bindings,
            mut attributes,
            is_empty,
        } = self.attributes()?;
        let id = ElementId(self.elements.len());
        let parent = self.open.last().copied();
        self.elements.push(Element {
            parent,
            prefix: prefix.to_owned(),
            local: local.to_owned(),
            namespace: String::new(),
            bindings,
            attributes: Vec::new(),
            children: Vec::new(),
        });
        let namespace = self.resolve(id, prefix)?;
        self.elements[id.0].namespace = namespace;
        for attribute in &mut attributes {
            if !attribute.prefix.is_empty() {
                attribute.namespace = self.resolve(id, &attribute.prefix)?;
            }
        }
        for (index, one) in attributes.iter().enumerate() {
            let is_same = |other: &XmlAttribute| other.local == one.local && other.namespace == one.namespace;
            ensure(
                !attributes[..index].iter().any(is_same),
                "an attribute is there twice",
            )?;
        }
        self.elements[id.0].attributes = attributes;
        if let Some(parent) = parent {
            self.elements[parent.0].children.push(Child::Element(id));
        }
        if !is_empty {
            self.open.push(id);
        }
        Ok(())
    }

    fn resolve(&self, id: ElementId, prefix: &str) -> Result<String, SamlError> {
        let mut at = Some(id);
        while let Some(id) = at {
            let element = &self.elements[id.0];
            if let Some((_, uri)) = element.bindings.iter().find(|(known, _)| known == prefix) {
                return Ok(uri.clone());
            }
            at = element.parent;
        }
        match prefix {
            "" => Ok(String::new()),
            "xml" => Ok(XML.to_owned()),
            _ => Err(SamlError("the XML uses a prefix that is not declared")),
        }
    }

    /// What stands between an element's name and its end: namespaces, attributes, and whether it is empty.
    fn attributes(&mut self) -> Result<Tag, SamlError> {
        let mut tag = Tag::default();
        loop {
            let trimmed = self.rest.trim_start_matches(is_space);
            let has_space = trimmed.len() < self.rest.len();
            self.rest = trimmed;
            if let Some(rest) = self.rest.strip_prefix('>') {
                self.rest = rest;
                return Ok(tag);
            }
            if let Some(rest) = self.rest.strip_prefix("/>") {
                self.rest = rest;
                tag.is_empty = true;
                return Ok(tag);
            }
            ensure(has_space, NOT_WELL_FORMED.0)?;
            ensure(
                tag.bindings.len() + tag.attributes.len() < self.limits.attributes,
                "an element has too many attributes",
            )?;
            let name = self.name()?;
            let value = self.value()?;
            let (prefix, local) = qualified(name)?;
            match (prefix, local) {
                ("", "xmlns") => bind(&mut tag.bindings, "", value)?,
                ("xmlns", prefix) => bind(&mut tag.bindings, prefix, value)?,
                _ => tag.attributes.push(XmlAttribute {
                    prefix: prefix.to_owned(),
                    local: local.to_owned(),
                    namespace: String::new(),
                    value,
                }),
            }
        }
    }

    fn name(&mut self) -> Result<&'t str, SamlError> {
        let is_name =
            |character: char| character.is_ascii_alphanumeric() || matches!(character, '_' | '-' | '.' | ':');
        let end = self
            .rest
            .find(|character| !is_name(character))
            .unwrap_or(self.rest.len());
        let (name, rest) = self.rest.split_at(end);
        self.rest = rest;
        Ok(name)
    }

    /// `="…"`.
    fn value(&mut self) -> Result<String, SamlError> {
        let rest = self.rest.trim_start_matches(is_space);
        let rest = rest.strip_prefix('=').ok_or(NOT_WELL_FORMED)?;
        let rest = rest.trim_start_matches(is_space);
        let quote = rest.chars().next().filter(|it| matches!(it, '"' | '\''));
        let quote = quote.ok_or(NOT_WELL_FORMED)?;
        let (raw, rest) = rest[1..].split_once(quote).ok_or(NOT_WELL_FORMED)?;
        ensure(!raw.contains('<'), NOT_WELL_FORMED.0)?;
        self.rest = rest;
        let blanks = line_ends(raw).replace(['\t', '\n'], " ");
        Ok(references(&blanks)?.into_owned())
    }

    /// Text between two tags.
    fn text(&mut self, raw: &str) -> Result<(), SamlError> {
        if raw.is_empty() {
            return Ok(());
        }
        ensure(!raw.contains("]]>"), NOT_WELL_FORMED.0)?;
        if self.open.is_empty() {
            return ensure(raw.chars().all(is_space), NOT_WELL_FORMED.0);
        }
        let ends = line_ends(raw);
        let text = references(&ends)?;
        self.append(&text)
    }

    fn append(&mut self, text: &str) -> Result<(), SamlError> {
        let id = self.open.last().ok_or(NOT_WELL_FORMED)?;
        let children = &mut self.elements[id.0].children;
        match children.last_mut() {
            Some(Child::Text(before)) => before.push_str(text),
            _ => children.push(Child::Text(text.to_owned())),
        }
        Ok(())
    }
}

fn bind(bindings: &mut Vec<(String, String)>, prefix: &str, uri: String) -> Result<(), SamlError> {
    let is_known = bindings.iter().any(|(known, _)| known == prefix);
    let is_absolute = uri.contains(':') && !uri.contains(|character: char| character.is_whitespace());
    let is_absolute = is_absolute || (uri.is_empty() && prefix.is_empty());
    let is_reserved = prefix == "xmlns" || uri == XMLNS || (prefix == "xml") != (uri == XML);
    ensure(
        !is_known && is_absolute && !is_reserved,
        "the XML declares a namespace that it may not declare",
    )?;
    if prefix != "xml" {
        bindings.push((prefix.to_owned(), uri));
    }
    Ok(())
}

/// Prefix and local name.
fn qualified(name: &str) -> Result<(&str, &str), SamlError> {
    let (prefix, local) = name.split_once(':').unwrap_or(("", name));
    let is_name = |part: &str| {
        part.starts_with(|character: char| character.is_ascii_alphabetic() || character == '_')
            && !part.contains(':')
    };
    let is_good = is_name(local) && (is_name(prefix) || (prefix.is_empty() && !name.starts_with(':')));
    ensure(is_good, NOT_WELL_FORMED.0)?;
    Ok((prefix, local))
}

/// Line ends as XML has them (2.11).
fn line_ends(text: &str) -> Cow<'_, str> {
    match text.contains('\r') {
        true => Cow::Owned(text.replace("\r\n", "\n").replace('\r', "\n")),
        false => Cow::Borrowed(text),
    }
}

/// Replaces references to characters; there are no other entities than XML's own five.
fn references(text: &str) -> Result<Cow<'_, str>, SamlError> {
    if !text.contains('&') {
        return Ok(Cow::Borrowed(text));
    }
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, behind)) = rest.split_once('&') {
        out.push_str(before);
        let (name, behind) = behind.split_once(';').ok_or(NOT_WELL_FORMED)?;
        out.push(match name {
            "lt" => '<',
            "gt" => '>',
            "amp" => '&',
            "quot" => '"',
            "apos" => '\'',
            _ => character(name)?,
        });
        rest = behind;
    }
    out.push_str(rest);
    Ok(Cow::Owned(out))
}

fn character(name: &str) -> Result<char, SamlError> {
    let number = name
        .strip_prefix('#')
        .ok_or(SamlError("the XML uses an entity"))?;
    let code = match number.strip_prefix('x') {
        Some(digits) if digits.bytes().all(|it| it.is_ascii_hexdigit()) => u32::from_str_radix(digits, 16),
        None if number.bytes().all(|it| it.is_ascii_digit()) => number.parse(),
        _ => return Err(NOT_WELL_FORMED),
    };
    let code = code.ok().and_then(char::from_u32).filter(|it| is_char(*it));
    code.ok_or(NOT_WELL_FORMED)
}

fn is_space(character: char) -> bool {
    matches!(character, ' ' | '\t' | '\r' | '\n')
}

/// XML 1.0, 2.2.
fn is_char(character: char) -> bool {
    matches!(character, '\t' | '\n' | '\r' | '\u{20}'..='\u{d7ff}' | '\u{e000}'..='\u{fffd}' | '\u{10000}'..)
}

#[cfg(test)]
mod tests {
    use crate::xml::{Document, Limits};

    fn error_text(text: &str) -> String {
        match Document::parse(text, Limits::default()) {
            Ok(document) => format!("{} elements", document.elements.len()),
            Err(fault) => fault.to_string(),
        }
    }

    #[test]
    fn only_plain_xml_is_read() {
        let not = "the XML is not well-formed";
        let entities = "the XML has a document type or entities";
        for (text, expected) in [
            ("<a/>", "1 elements"),
            (
                "<?xml version=\"1.0\" encoding='utf-8'?>\n<a><b c = 'd'/>&#65;</a>\n<!-- x -->",
                "2 elements",
            ),
            (
                "<?xml version='1.0' encoding='UTF-16'?><a/>",
                "the XML is not UTF-8",
            ),
            (
                "<?xml version='1.1'?><a/>",
                "the XML has another version than 1.0",
            ),
            ("<!DOCTYPE a [<!ENTITY x 'y'>]><a>&x;</a>", entities),
            ("<!DOCTYPE a SYSTEM 'file:///etc/passwd'><a/>", entities),
            ("<a><!ELEMENT b></a>", entities),
            ("<a>&x;</a>", "the XML uses an entity"),
            ("<a>&#0;</a>", not),
            ("<a>&#xD800;</a>", not),
            ("<a>&#+65;</a>", not),
            ("<a>&lt</a>", not),
            ("<a>\u{1}</a>", "the XML has characters that it may not have"),
            ("<a><?php x?></a>", "the XML has a processing instruction"),
            ("<a><b></a></b>", "the XML has an end tag that does not fit"),
            ("<a>", "the XML ends too early"),
            ("", "the XML ends too early"),
            ("<a/><b/>", "the XML has two elements at the top"),
            ("<a/>x", not),
            ("x<a/>", not),
            ("<a b='1' b='2'/>", "an attribute is there twice"),
            (
                "<a xmlns:x='urn:x' xmlns:y='urn:x' x:b='1' y:b='2'/>",
                "an attribute is there twice",
            ),
            ("<a b='1'c='2'/>", not),
            ("<a b='<'/>", not),
            ("<a b=c/>", not),
            ("<x:a/>", "the XML uses a prefix that is not declared"),
            (
                "<a xmlns:x=''/>",
                "the XML declares a namespace that it may not declare",
            ),
            (
                "<a xmlns='relative'/>",
                "the XML declares a namespace that it may not declare",
            ),
            (
                "<a xmlns='urn: a'/>",
                "the XML declares a namespace that it may not declare",
            ),
            (
                "<a xmlns:xml='urn:x'/>",
                "the XML declares a namespace that it may not declare",
            ),
            ("<a:b:c xmlns:a='urn:a'/>", not),
            ("<1a/>", not),
            ("<:a/>", not),
            ("<\u{e4}/>", not),
            ("<a>]]></a>", not),
            ("<a><!-- a -- b --></a>", not),
            ("< a/>", not),
            ("</a>", not),
        ] {
            assert_eq!(error_text(text), expected, "{text:?}");
        }
    }

    #[test]
    fn documents_are_bounded() {
        let deep = format!("{}{}", "<a>".repeat(41), "</a>".repeat(41));
        assert_eq!(error_text(&deep), "the XML is too deep");
        let wide = format!("<a>{}</a>", "<b/>".repeat(10_000));
        assert_eq!(error_text(&wide), "the XML has too many elements");
        let attributes: String = (0..33).map(|it| format!(" a{it}=''")).collect();
        assert_eq!(
            error_text(&format!("<a{attributes}/>")),
            "an element has too many attributes"
        );
        assert_eq!(error_text(&"x".repeat((256 << 10) + 1)), "the XML is too long");
    }

    #[test]
    fn text_is_joined_over_comments_and_sections() {
        for (text, expected) in [
            ("<a>admin<!-- x -->@evil.test</a>", Some("admin@evil.test")),
            ("<a>a<![CDATA[<b>&amp;]]>c</a>", Some("a<b>&amp;c")),
            ("<a>a\r\nb\rc</a>", Some("a\nb\nc")),
            ("<a>a<b/>c</a>", None),
            ("<a/>", Some("")),
        ] {
            let document = Document::parse(text, Limits::default()).expect("well-formed");
            assert_eq!(document.text(document.root()).as_deref(), expected, "{text}");
        }
    }
}
