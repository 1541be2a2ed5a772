//! One pass over an XML document that counts and measures. It keeps the open elements and the declared entities, both
//! within limits, and expands nothing.

use std::collections::HashMap;

/// What a document may have. Lengths are bytes.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    pub dtd: bool,
    pub namespaces_known: bool,
    pub depth: usize,
    pub children: usize,
    pub attributes: usize,
    pub namespaces: usize,
    pub token: usize,
    pub comment: usize,
    pub local_name: usize,
    pub prefix: usize,
    pub namespace_uri: usize,
    pub attribute: usize,
    pub text: usize,
    pub instruction_target: usize,
    pub instruction_data: usize,
    pub entity_name: usize,
    pub entity: usize,
    pub entity_property: usize,
    pub amplification: f64,
    pub amplification_from: usize,
}

/// What is wrong with a document.
pub type XmlError = &'static str;

const BAD: XmlError = "the body is not valid XML";
const OTHER_CODING: XmlError = "the body is not in UTF-8";
/// Entities that are kept at most.
const MAX_ENTITIES: usize = 1000;

/// An open element.
struct OpenElement<'d> {
    name: &'d [u8],
    children: usize,
}

/// Checks a document.
///
/// # Errors
/// What is wrong with it.
pub fn scan(document: &[u8], limits: &Limits) -> Result<(), XmlError> {
    let document = document.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(document);
    if std::str::from_utf8(document).is_err() {
        return Err(OTHER_CODING);
    }
    let mut scanner = Scanner {
        document,
        at: 0,
        limits,
        open: Vec::with_capacity(16),
        entities: HashMap::new(),
        text: 0,
        expanded: 0,
        has_root: false,
        has_dtd: false,
    };
    scanner.declaration()?;
    while scanner.at < document.len() {
        scanner.step()?;
    }
    match scanner.open.is_empty() && scanner.has_root {
        true => Ok(()),
        false => Err(BAD),
    }
}

/// Whether the name of a coding is that of UTF-8 or of a part of it.
pub fn is_utf8(name: &[u8]) -> bool {
    name.eq_ignore_ascii_case(b"utf-8") || name.eq_ignore_ascii_case(b"us-ascii")
}

struct Scanner<'d, 'l> {
    document: &'d [u8],
    at: usize,
    limits: &'l Limits,
    open: Vec<OpenElement<'d>>,
    /// Entities by name, with the length of what they stand for; `None`: it may be more than text.
    entities: HashMap<&'d [u8], Option<usize>>,
    /// The length of the text so far, since the last tag.
    text: usize,
    /// The length of all that entities have stood for.
    expanded: usize,
    has_root: bool,
    has_dtd: bool,
}

fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\r' | b'\n')
}

/// Letters of names; those beyond ASCII are not looked at in detail.
fn is_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b':' | b'-' | b'.') || byte >= 0x80
}

fn at_most(length: usize, most: usize, fault: XmlError) -> Result<(), XmlError> {
    if length > most { Err(fault) } else { Ok(()) }
}

fn are_distinct(names: &mut [&[u8]]) -> bool {
    names.sort_unstable();
    names.windows(2).all(|pair| pair[0] != pair[1])
}

impl<'d> Scanner<'d, '_> {
    fn rest(&self) -> &'d [u8] {
        self.document.get(self.at..).unwrap_or_default()
    }

    fn peek(&self) -> Option<u8> {
        self.document.get(self.at).copied()
    }

    fn skip_spaces(&mut self) -> bool {
        let start = self.at;
        while self.peek().is_some_and(is_space) {
            self.at += 1;
        }
        self.at > start
    }

    fn take(&mut self, word: &[u8]) -> bool {
        let is_there = self.rest().starts_with(word);
        if is_there {
            self.at += word.len();
        }
        is_there
    }

    /// What stands before `end`, which is passed too. A token that is longer than the buffer is refused.
    fn until(&mut self, end: &[u8], most: usize, fault: XmlError) -> Result<&'d [u8], XmlError> {
        let rest = self.rest();
        let found = memchr::memmem::find(rest, end).ok_or(BAD)?;
        at_most(found, most, fault)?;
        self.at += found + end.len();
        Ok(&rest[..found])
    }

    fn name(&mut self) -> Result<&'d [u8], XmlError> {
        let rest = self.rest();
        let length = rest.iter().take_while(|byte| is_name(**byte)).count();
        let name = &rest[..length];
        match name.first() {
            Some(first) if !first.is_ascii_digit() && !matches!(first, b'-' | b'.') => {}
            _ => return Err(BAD),
        }
        self.at += length;
        Ok(name)
    }

    /// A name of an element or an attribute, within the limits of its parts.
    fn qualified_name(&mut self) -> Result<&'d [u8], XmlError> {
        let name = self.name()?;
        let (prefix, local) = match memchr::memchr(b':', name) {
            Some(colon) if self.limits.namespaces_known => {
                let (prefix, local) = (&name[..colon], &name[colon + 1..]);
                if prefix.is_empty() || local.is_empty() || local.contains(&b':') {
                    return Err(BAD);
                }
                (prefix, local)
            }
            _ => (&b""[..], name),
        };
        at_most(prefix.len(), self.limits.prefix, "a prefix is too long")?;
        at_most(local.len(), self.limits.local_name, "a name is too long")?;
        Ok(name)
    }

    /// A text in quotes, without them.
    fn quoted(&mut self, most: usize, fault: XmlError) -> Result<&'d [u8], XmlError> {
        let quote = match self.peek() {
            Some(quote @ (b'"' | b'\'')) => quote,
            _ => return Err(BAD),
        };
        self.at += 1;
        self.until(&[quote], most, fault)
    }

    /// `<?xml … ?>`. Other codings than UTF-8 would be read in another way by the upstream, and so might be what stands
    /// here in another order than it should.
    fn declaration(&mut self) -> Result<(), XmlError> {
        if !(self.rest().starts_with(b"<?xml") && self.rest().get(5).copied().is_some_and(is_space)) {
            return Ok(());
        }
        let start = self.at;
        self.at += 5;
        let mut parts = [&b"version"[..], b"encoding", b"standalone"].into_iter();
        while self.skip_spaces() && self.peek() != Some(b'?') {
            let name = self.name()?;
            parts.find(|part| *part == name).ok_or(BAD)?;
            self.skip_spaces();
            if !self.take(b"=") {
                return Err(BAD);
            }
            self.skip_spaces();
            let value = self.quoted(self.limits.token, "a token is too long")?;
            if name == b"encoding" && !is_utf8(value) {
                return Err(OTHER_CODING);
            }
        }
        at_most(self.at - start, self.limits.token, "a token is too long")?;
        match self.take(b"?>") {
            true => Ok(()),
            false => Err(BAD),
        }
    }

    /// Passes one token.
    fn step(&mut self) -> Result<(), XmlError> {
        if self.peek() != Some(b'<') {
            return self.characters();
        }
        if self.take(b"<!--") {
            let text = self.until(b"-->", self.limits.comment, "a comment is too long")?;
            return match memchr::memmem::find(text, b"--").is_none() && !text.ends_with(b"-") {
                true => Ok(()),
                false => Err(BAD),
            };
        }
        if self.take(b"<?") {
            return self.instruction();
        }
        if self.rest().starts_with(b"<![CDATA[") {
            if self.open.is_empty() {
                return Err(BAD);
            }
            self.at += 9;
            let text = self.until(b"]]>", self.limits.text, "a text is too long")?;
            return self.add_text(text.len());
        }
        if self.take(b"<!DOCTYPE") {
            return self.document_type();
        }
        self.text = 0;
        if self.take(b"</") {
            return self.end_tag();
        }
        self.at += 1;
        self.start_tag()
    }

    fn add_text(&mut self, length: usize) -> Result<(), XmlError> {
        self.text += length;
        at_most(self.text, self.limits.text, "a text is too long")
    }

    fn characters(&mut self) -> Result<(), XmlError> {
        let rest = self.rest();
        let length = memchr::memchr(b'<', rest).unwrap_or(rest.len());
        let text = &rest[..length];
        self.at += length;
        if self.open.is_empty() {
            return match text.iter().all(|byte| is_space(*byte)) {
                true => Ok(()),
                false => Err(BAD),
            };
        }
        if memchr::memmem::find(text, b"]]>").is_some() {
            return Err(BAD);
        }
        let expanded = self.references(text)?;
        self.add_text(text.len() + expanded)
    }

    /// The length of what references in a text stand for.
    fn references(&mut self, text: &[u8]) -> Result<usize, XmlError> {
        let mut expanded = 0usize;
        let mut rest = text;
        while let Some(start) = memchr::memchr(b'&', rest) {
            let behind = &rest[start + 1..];
            let end = memchr::memchr(b';', behind).ok_or(BAD)?;
            expanded = expanded.saturating_add(self.reference(&behind[..end])?);
            rest = &behind[end + 1..];
        }
        self.expanded = self.expanded.saturating_add(expanded);
        let output = self.document.len().saturating_add(self.expanded);
        let is_amplified = output as f64 / self.document.len().max(1) as f64 > self.limits.amplification;
        match output > self.limits.amplification_from && is_amplified {
            true => Err("entities expand to too much"),
            false => Ok(expanded),
        }
    }

    /// The length of what one reference stands for.
    fn reference(&self, name: &[u8]) -> Result<usize, XmlError> {
        match name {
            b"lt" | b"gt" | b"amp" | b"apos" | b"quot" => Ok(1),
            [b'#', b'x', digits @ ..] if !digits.is_empty() && digits.len() <= 8 => {
                digits.iter().all(u8::is_ascii_hexdigit).then_some(4).ok_or(BAD)
            }
            [b'#', digits @ ..] if !digits.is_empty() && digits.len() <= 8 => {
                digits.iter().all(u8::is_ascii_digit).then_some(4).ok_or(BAD)
            }
            name => {
                at_most(
                    name.len(),
                    self.limits.entity_name,
                    "a name of an entity is too long",
                )?;
                let length = self.entities.get(name).ok_or("an entity is not declared")?;
                // What it stands for would be read as elements that were not counted.
                length.ok_or("an entity is more than text")
            }
        }
    }

    fn instruction(&mut self) -> Result<(), XmlError> {
        let target = self.name()?;
        at_most(
            target.len(),
            self.limits.instruction_target,
            "a target of an instruction is too long",
        )?;
        if target.eq_ignore_ascii_case(b"xml") {
            return Err(BAD);
        }
        let has_space = self.skip_spaces();
        let data = self.until(b"?>", self.limits.instruction_data, "an instruction is too long")?;
        match has_space || data.is_empty() {
            true => Ok(()),
            false => Err(BAD),
        }
    }

    fn end_tag(&mut self) -> Result<(), XmlError> {
        let name = self.name()?;
        self.skip_spaces();
        let open = self.open.pop().ok_or(BAD)?;
        match open.name == name && self.take(b">") {
            true => Ok(()),
            false => Err(BAD),
        }
    }

    fn start_tag(&mut self) -> Result<(), XmlError> {
        let start = self.at;
        let name = self.qualified_name()?;
        match self.open.last_mut() {
            Some(parent) => {
                parent.children += 1;
                at_most(
                    parent.children,
                    self.limits.children,
                    "an element has too many children",
                )?;
            }
            None if self.has_root => return Err(BAD),
            None => self.has_root = true,
        }
        at_most(self.open.len() + 1, self.limits.depth, "it is nested too deep")?;
        let is_empty = self.attributes()?;
        at_most(self.at - start, self.limits.token, "a token is too long")?;
        if !is_empty {
            self.open.push(OpenElement { name, children: 0 });
        }
        Ok(())
    }

    /// Passes the attributes and the end of a tag. Gives whether the element has no content.
    fn attributes(&mut self) -> Result<bool, XmlError> {
        let mut names: Vec<&[u8]> = Vec::new();
        let mut namespaces = 0;
        loop {
            let has_space = self.skip_spaces();
            match self.peek().ok_or(BAD)? {
                b'>' | b'/' => {
                    let is_empty = self.take(b"/>");
                    return match (is_empty || self.take(b">")) && are_distinct(&mut names) {
                        true => Ok(is_empty),
                        false => Err(BAD),
                    };
                }
                _ if !has_space => return Err(BAD),
                _ => {}
            }
            let name = self.qualified_name()?;
            self.skip_spaces();
            if !self.take(b"=") {
                return Err(BAD);
            }
            self.skip_spaces();
            let value = self.quoted(self.limits.attribute, "an attribute is too long")?;
            if value.contains(&b'<') {
                return Err(BAD);
            }
            let expanded = self.references(value)?;
            at_most(
                value.len() + expanded,
                self.limits.attribute,
                "an attribute is too long",
            )?;
            let is_namespace = name == b"xmlns" || name.starts_with(b"xmlns:");
            if is_namespace && self.limits.namespaces_known {
                namespaces += 1;
                at_most(
                    namespaces,
                    self.limits.namespaces,
                    "an element has too many namespaces",
                )?;
                at_most(value.len(), self.limits.namespace_uri, "a namespace is too long")?;
            } else {
                let count = names.len() + 1 - namespaces.min(names.len());
                at_most(
                    count,
                    self.limits.attributes,
                    "an element has too many attributes",
                )?;
            }
            names.push(name);
        }
    }

    fn document_type(&mut self) -> Result<(), XmlError> {
        if !self.limits.dtd {
            return Err("a document type is not allowed");
        }
        if self.has_root || self.has_dtd {
            return Err(BAD);
        }
        self.has_dtd = true;
        if !self.skip_spaces() {
            return Err(BAD);
        }
        self.qualified_name()?;
        self.skip_spaces();
        // Declarations elsewhere could give attributes values and entities texts that are not counted here.
        if self.external_id()? {
            return Err("a document type is in another document");
        }
        self.skip_spaces();
        if self.take(b"[") {
            self.subset()?;
        }
        self.skip_spaces();
        match self.take(b">") {
            true => Ok(()),
            false => Err(BAD),
        }
    }

    /// `SYSTEM "…"` or `PUBLIC "…" "…"`, if there is one.
    fn external_id(&mut self) -> Result<bool, XmlError> {
        const LONG: XmlError = "a property of an entity is too long";
        let texts = match (self.take(b"SYSTEM"), self.take(b"PUBLIC")) {
            (true, _) => 1,
            (_, true) => 2,
            _ => return Ok(false),
        };
        for _ in 0..texts {
            self.skip_spaces();
            self.quoted(self.limits.entity_property, LONG)?;
        }
        Ok(true)
    }

    /// The declarations of a document type.
    fn subset(&mut self) -> Result<(), XmlError> {
        loop {
            self.skip_spaces();
            if self.take(b"]") {
                return Ok(());
            }
            if self.take(b"<!--") {
                self.until(b"-->", self.limits.comment, "a comment is too long")?;
            } else if self.take(b"<?") {
                self.instruction()?;
            } else if self.take(b"<!ENTITY") {
                self.entity()?;
            } else if self.rest().starts_with(b"<!") {
                self.other_declaration()?;
            } else if self.rest().is_empty() {
                return Err(BAD);
            } else {
                // What a parameter entity stands for is not looked at, so its use is refused.
                return Err("a document type uses what is not allowed");
            }
        }
    }

    fn entity(&mut self) -> Result<(), XmlError> {
        if !self.skip_spaces() {
            return Err(BAD);
        }
        let is_parameter = self.take(b"%");
        self.skip_spaces();
        let name = self.name()?;
        at_most(
            name.len(),
            self.limits.entity_name,
            "a name of an entity is too long",
        )?;
        self.skip_spaces();
        // An entity of another document stands for something unknown: a reference to it is refused.
        if self.external_id()? {
            self.until(
                b">",
                self.limits.entity_property,
                "a property of an entity is too long",
            )?;
            return Ok(());
        }
        let value = self.quoted(self.limits.entity, "an entity is too long")?;
        // Only entities declared before can be referred to, so that none refers to itself. A number of a letter may
        // stand for `<`, which begins an element once the entity is used.
        let mut is_text = memchr::memchr2(b'<', b'%', value).is_none();
        let mut length = value.len();
        let mut rest = value;
        while let Some(start) = memchr::memchr(b'&', rest) {
            let behind = &rest[start + 1..];
            let end = memchr::memchr(b';', behind).ok_or(BAD)?;
            is_text = is_text && behind.first() != Some(&b'#');
            length = length.saturating_add(self.reference(&behind[..end])?);
            rest = &behind[end + 1..];
        }
        let length = is_text.then_some(length);
        if !is_parameter && self.entities.len() < MAX_ENTITIES {
            self.entities.entry(name).or_insert(length);
        } else if !is_parameter {
            return Err("there are too many entities");
        }
        self.skip_spaces();
        match self.take(b">") {
            true => Ok(()),
            false => Err(BAD),
        }
    }

    /// A declaration of an element, of attributes or of a notation.
    fn other_declaration(&mut self) -> Result<(), XmlError> {
        const NOT_ALLOWED: XmlError = "a document type uses what is not allowed";
        let start = self.at;
        let has_values = self.rest().starts_with(b"<!NOTATION");
        if !has_values && !self.rest().starts_with(b"<!ELEMENT") && !self.rest().starts_with(b"<!ATTLIST") {
            return Err(NOT_ALLOWED);
        }
        loop {
            match self.peek().ok_or(BAD)? {
                b'>' => break,
                b'"' | b'\'' if has_values => {
                    self.quoted(self.limits.token, "a token is too long")?;
                }
                // The value of an attribute that every element of the name would have, however many there are.
                b'"' | b'\'' | b'%' => return Err(NOT_ALLOWED),
                _ => self.at += 1,
            }
        }
        self.at += 1;
        at_most(self.at - start, self.limits.token, "a token is too long")
    }
}
