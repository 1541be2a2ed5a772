//! XML as SAML needs it, as a tree: names with their namespaces, attributes, text.
//!
//! Strict and bounded. A document type, entities of its own, processing instructions, names beyond ASCII and encodings other
//! than UTF-8 are refused. Comments are left out, and the text around them is one text: it is the same text that a signature
//! without comments signs, so nothing can be read of a name that was not signed.

mod parse;

use crate::error::SamlError;
use crate::names::XML;

/// How large a document may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// The most bytes.
    pub bytes: usize,
    /// The most elements.
    pub elements: usize,
    /// The most elements inside of each other.
    pub depth: usize,
    /// The most attributes and namespaces of an element.
    pub attributes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            bytes: 256 << 10,
            elements: 10_000,
            depth: 40,
            attributes: 32,
        }
    }
}

/// An element of a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ElementId(pub(crate) usize);

/// A document.
#[derive(Debug)]
pub struct Document {
    pub(crate) elements: Vec<Element>,
}

#[derive(Debug)]
pub(crate) struct Element {
    pub(crate) parent: Option<ElementId>,
    /// Empty: it has none.
    pub(crate) prefix: String,
    pub(crate) local: String,
    /// Empty: it is in none.
    pub(crate) namespace: String,
    /// Prefixes (empty: the default) that it binds, with their namespaces.
    pub(crate) bindings: Vec<(String, String)>,
    pub(crate) attributes: Vec<XmlAttribute>,
    pub(crate) children: Vec<Child>,
}

#[derive(Debug)]
pub(crate) struct XmlAttribute {
    pub(crate) prefix: String,
    pub(crate) local: String,
    pub(crate) namespace: String,
    pub(crate) value: String,
}

#[derive(Debug)]
pub(crate) enum Child {
    Element(ElementId),
    Text(String),
}

impl Document {
    /// Reads a document.
    ///
    /// # Errors
    /// It is not well-formed, too large, or has something that SAML does not need.
    pub fn parse(text: &str, limits: Limits) -> Result<Self, SamlError> {
        parse::Parser::new(text, limits)?.document()
    }

    /// The element at the top.
    pub fn root(&self) -> ElementId {
        ElementId(0)
    }

    /// All elements, each before what is inside of it.
    pub fn all(&self) -> impl Iterator<Item = ElementId> {
        (0..self.elements.len()).map(ElementId)
    }

    pub(crate) fn at(&self, id: ElementId) -> &Element {
        &self.elements[id.0]
    }

    /// Whether an element has this name.
    pub fn is(&self, id: ElementId, namespace: &str, local: &str) -> bool {
        let element = self.at(id);
        element.local == local && element.namespace == namespace
    }

    /// The element around one.
    pub fn parent(&self, id: ElementId) -> Option<ElementId> {
        self.at(id).parent
    }

    /// The elements directly inside of one.
    pub fn children(&self, id: ElementId) -> impl Iterator<Item = ElementId> + '_ {
        let children = self.at(id).children.iter();
        children.filter_map(|child| match child {
            Child::Element(id) => Some(*id),
            Child::Text(_) => None,
        })
    }

    /// The elements of this name directly inside of one.
    pub fn named<'d>(
        &'d self,
        id: ElementId,
        namespace: &'d str,
        local: &'d str,
    ) -> impl Iterator<Item = ElementId> + 'd {
        self.children(id).filter(move |it| self.is(*it, namespace, local))
    }

    /// The only child element of this name; `None` if there is none.
    ///
    /// # Errors
    /// There are several.
    pub fn only(&self, id: ElementId, namespace: &str, local: &str) -> Result<Option<ElementId>, SamlError> {
        let mut found = self.named(id, namespace, local);
        let first = found.next();
        match found.next() {
            Some(_) => Err(SamlError("an element that may be there once is there twice")),
            None => Ok(first),
        }
    }

    /// An attribute without a namespace.
    pub fn attribute(&self, id: ElementId, name: &str) -> Option<&str> {
        let mut attributes = self.at(id).attributes.iter();
        let found = attributes.find(|it| it.namespace.is_empty() && it.local == name);
        found.map(|it| it.value.as_str())
    }

    /// The text of an element that has nothing but text. `None`: it has elements.
    pub fn text(&self, id: ElementId) -> Option<String> {
        let children = self.at(id).children.iter();
        let parts: Option<Vec<&str>> = children
            .map(|child| match child {
                Child::Text(text) => Some(text.as_str()),
                Child::Element(_) => None,
            })
            .collect();
        Some(parts?.concat())
    }

    /// The text of an element that has nothing but text, without the white space of XML around it. Other blanks belong to a
    /// name: one that ends with them is another one's.
    pub(crate) fn name(&self, id: ElementId) -> Option<String> {
        let text = self.text(id)?;
        Some(text.trim_matches([' ', '\t', '\r', '\n']).to_owned())
    }

    /// The namespace that a prefix is bound to at an element; empty: none.
    pub(crate) fn bound(&self, mut id: ElementId, prefix: &str) -> &str {
        if prefix == "xml" {
            return XML;
        }
        loop {
            let element = self.at(id);
            if let Some((_, uri)) = element.bindings.iter().find(|(known, _)| known == prefix) {
                return uri;
            }
            match element.parent {
                Some(parent) => id = parent,
                None => return "",
            }
        }
    }

    /// Every id once: two elements with one id are refused, whatever the id's attribute is called.
    ///
    /// # Errors
    /// Two elements have the same.
    pub(crate) fn ids_are_unique(&self) -> Result<(), SamlError> {
        let mut ids: Vec<&str> = Vec::new();
        for attribute in self.elements.iter().flat_map(|it| &it.attributes) {
            let is_id = attribute.local.eq_ignore_ascii_case("id");
            if is_id && (attribute.namespace.is_empty() || attribute.namespace == XML) {
                ids.push(&attribute.value);
            }
        }
        ids.sort_unstable();
        match ids.windows(2).any(|pair| pair[0] == pair[1]) {
            true => Err(SamlError("two elements have the same ID")),
            false => Ok(()),
        }
    }
}
