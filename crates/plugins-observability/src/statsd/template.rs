//! Texts with facts of a call in braces, free of bytes that mean something to the server.

use std::borrow::Cow;
use weir_plugin::{CallRecord, Exchange};

/// A text, ready for use.
#[derive(Debug, Clone, Default)]
pub struct Text(Vec<Segment>);

#[derive(Debug, Clone)]
enum Segment {
    Fixed(Vec<u8>),
    Fact(CallProperty),
}

#[derive(Debug, Clone, Copy)]
enum CallProperty {
    Service,
    ServicePath,
    Scope,
    Route,
    Consumer,
    CustomId,
    Username,
    Status,
    Method,
    Path,
    Scheme,
    Upstream,
    Node,
    NodePath,
}

/// Bytes that may stand in a name, a tag or a value, besides letters, digits and all that is not ASCII.
const PLAIN: &[u8] = b"-_./";

impl Text {
    /// One that is a metric's name.
    pub fn name(text: &str) -> Result<Self, String> {
        match text
            .bytes()
            .all(|byte| byte == b'{' || byte == b'}' || is_plain(byte))
        {
            true => Self::value(text),
            false => Err("expected names of letters, digits and '-_./', and facts in braces".to_owned()),
        }
    }

    /// One that is a whole tag: `name:value`.
    pub fn tag(text: &str) -> Result<Self, String> {
        let is_good = !text.is_empty() && !text.contains([',', '|', '\n', '\r']);
        match is_good {
            true => Self::read(text, |fixed| fixed.as_bytes().to_vec()),
            false => Err("expected a tag without ',' and '|'".to_owned()),
        }
    }

    /// One that is a value.
    pub fn value(text: &str) -> Result<Self, String> {
        Self::read(text, |fixed| cleaned(fixed).into_bytes())
    }

    fn read(text: &str, fixed: fn(&str) -> Vec<u8>) -> Result<Self, String> {
        let mut pieces = Vec::new();
        let mut rest = text;
        while let Some((before, behind)) = rest.split_once('{') {
            let (name, behind) = behind.split_once('}').ok_or("expected '}' after a fact's name")?;
            if !before.is_empty() {
                pieces.push(Segment::Fixed(fixed(before)));
            }
            pieces.push(Segment::Fact(CallProperty::of(name)?));
            rest = behind;
        }
        if !rest.is_empty() {
            pieces.push(Segment::Fixed(fixed(rest)));
        }
        Ok(Self(pieces))
    }

    /// Appends it; `None`: the call lacks one of its facts, and `out` holds a part of it.
    pub fn write(&self, exchange: &Exchange, record: &CallRecord<'_>, out: &mut Vec<u8>) -> Option<()> {
        for piece in &self.0 {
            match piece {
                Segment::Fixed(text) => out.extend_from_slice(text),
                Segment::Fact(fact) => fact.write(exchange, record, out)?,
            }
        }
        Some(())
    }
}

/// A text without bytes that mean something to the server.
pub fn cleaned(text: &str) -> String {
    let clean = |character: char| match character.is_ascii() && !is_plain(character as u8) {
        true => '_',
        false => character,
    };
    text.chars().map(clean).collect()
}

fn is_plain(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || !byte.is_ascii() || PLAIN.contains(&byte)
}

impl CallProperty {
    fn of(name: &str) -> Result<Self, String> {
        Ok(match name {
            "service" => Self::Service,
            "service_path" => Self::ServicePath,
            "scope" => Self::Scope,
            "route" => Self::Route,
            "consumer" => Self::Consumer,
            "custom_id" => Self::CustomId,
            "username" => Self::Username,
            "status" => Self::Status,
            "method" => Self::Method,
            "path" => Self::Path,
            "scheme" => Self::Scheme,
            "upstream" => Self::Upstream,
            "node" => Self::Node,
            "node_path" => Self::NodePath,
            _ => return Err(format!("expected a fact of a call, not '{name}'")),
        })
    }

    fn write(self, exchange: &Exchange, record: &CallRecord<'_>, out: &mut Vec<u8>) -> Option<()> {
        let service = || {
            let facts = exchange.route.as_ref()?;
            Some(facts.service.as_str()).filter(|name| !name.is_empty())
        };
        let consumer = || exchange.identity.as_ref().map(|identity| &identity.consumer);
        let value: Cow<'_, [u8]> = match self {
            Self::Scope => {
                let Some(name) = service() else {
                    out.extend_from_slice(b"global.unmatched");
                    return Some(());
                };
                out.extend_from_slice(b"service.");
                name.replace('.', "_").into_bytes().into()
            }
            Self::Service => service()?.as_bytes().into(),
            Self::ServicePath => service()?.replace('.', "_").into_bytes().into(),
            Self::Route => {
                let name = exchange.route.as_ref()?.name.as_bytes();
                Some(name).filter(|name| !name.is_empty())?.into()
            }
            Self::Consumer => consumer()?.id.as_bytes().into(),
            Self::CustomId => consumer()?.custom_id.as_ref()?.as_bytes().into(),
            Self::Username => consumer()?.username.as_ref()?.as_bytes().into(),
            Self::Status => record.status.to_string().into_bytes().into(),
            Self::Method => exchange.request.method.as_slice().into(),
            Self::Path => exchange.request.path.as_slice().into(),
            Self::Scheme => exchange.request.scheme().as_bytes().into(),
            Self::Upstream => record.upstream?.ip().to_string().into_bytes().into(),
            Self::Node => record.hostname.as_bytes().into(),
            Self::NodePath => record.hostname.replace('.', "_").into_bytes().into(),
        };
        // An IPv6 address is one, whatever its colons mean elsewhere; servers read tags up to a comma.
        let keeps_colons = matches!(self, Self::Upstream);
        out.extend(value.iter().map(|byte| match is_plain(*byte) || keeps_colons {
            true => *byte,
            false => b'_',
        }));
        Some(())
    }
}
