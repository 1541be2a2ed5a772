//! Host and path patterns, and their text forms in `weir.yaml`.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use std::borrow::Cow;
use std::fmt;

/// A pattern that cannot be read. Holds the sentence for a diagnostic.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct InvalidPattern(pub String);

/// A pattern for the path of a call.
///
/// | text form | matches |
/// |---|---|
/// | `/api` | `/api` and everything below it (`/api/x`), not `/apis` |
/// | `/users/{id}/posts` | as many segments, `{id}` being any one; `{rest*}` at the end takes all that follows |
/// | `/files/{name}.json` | a segment with this text before or behind what `{name}` takes |
/// | `=/api` | `/api` alone |
/// | `/api*` | every path that begins with the bytes `/api` |
/// | `~/v\d+/x` | a regular expression, anchored at the start |
/// | `*` | every path |
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub enum PathPattern {
    /// Every path.
    #[default]
    Any,
    /// This path alone.
    Exact(String),
    /// Every path that begins with these bytes.
    Prefix(String),
    /// This path and everything below it.
    Segments(String),
    /// Segments with parameters.
    Template(Vec<TemplatePart>),
    /// A regular expression, anchored at the start.
    Regex(String),
}

/// A part of a [`PathPattern::Template`].
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum TemplatePart {
    /// These bytes.
    Literal(String),
    /// One segment (no `/`, not empty), captured under this name; next to text of the same segment, as much of the
    /// segment as leaves room for that.
    Parameter(String),
    /// All that follows, captured under this name.
    Rest(String),
}

impl PathPattern {
    /// Reads the text form.
    pub fn parse(text: &str) -> Result<Self, InvalidPattern> {
        if text == "*" {
            return Ok(Self::Any);
        }
        if let Some(exact) = text.strip_prefix('=') {
            return absolute(exact).map(|path| Self::Exact(path.to_owned()));
        }
        if let Some(regex) = text.strip_prefix('~') {
            return Ok(Self::Regex(regex.to_owned()));
        }
        let text = absolute(text)?;
        if let Some(prefix) = text.strip_suffix('*') {
            return Ok(Self::Prefix(prefix.to_owned()));
        }
        if text.contains('{') {
            parse_template(text).map(Self::Template)
        } else {
            Ok(Self::Segments(text.to_owned()))
        }
    }
}

fn absolute(text: &str) -> Result<&str, InvalidPattern> {
    if text.starts_with('/') {
        Ok(text)
    } else {
        Err(InvalidPattern(format!(
            "expected a path that begins with '/', '=/', '~' or is '*', found '{text}'"
        )))
    }
}

fn parse_template(text: &str) -> Result<Vec<TemplatePart>, InvalidPattern> {
    let mut parts = Vec::new();
    let mut rest = text;
    let mut is_mixed = false;
    while let Some(open) = rest.find('{') {
        let close = rest[open..]
            .find('}')
            .map(|offset| open + offset)
            .ok_or_else(|| InvalidPattern(format!("expected '}}' to close the parameter in '{text}'")))?;
        if open == 0 {
            return Err(InvalidPattern(format!(
                "expected text between two parameters in '{text}'"
            )));
        }
        is_mixed |= !rest[..open].ends_with('/');
        is_mixed |= !parts.is_empty() && !rest.starts_with('/');
        parts.push(TemplatePart::Literal(rest[..open].to_owned()));
        let name = &rest[open + 1..close];
        rest = &rest[close + 1..];
        match name.strip_suffix('*') {
            Some(name) if rest.is_empty() && !is_mixed => parts.push(TemplatePart::Rest(name.to_owned())),
            Some(_) => {
                return Err(InvalidPattern(format!(
                    "expected '{{name*}}' to be the last segment, behind whole ones, in '{text}'"
                )));
            }
            None if name.is_empty() => {
                return Err(InvalidPattern(format!(
                    "expected a name between '{{' and '}}' in '{text}'"
                )));
            }
            None => parts.push(TemplatePart::Parameter(name.to_owned())),
        }
    }
    if !rest.is_empty() {
        parts.push(TemplatePart::Literal(rest.to_owned()));
    }
    Ok(parts)
}

impl fmt::Display for PathPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Any => f.write_str("*"),
            Self::Exact(path) => write!(f, "={path}"),
            Self::Prefix(path) => write!(f, "{path}*"),
            Self::Segments(path) => f.write_str(path),
            Self::Regex(regex) => write!(f, "~{regex}"),
            Self::Template(parts) => parts.iter().try_for_each(|part| match part {
                TemplatePart::Literal(text) => f.write_str(text),
                TemplatePart::Parameter(name) => write!(f, "{{{name}}}"),
                TemplatePart::Rest(name) => write!(f, "{{{name}*}}"),
            }),
        }
    }
}

/// A pattern for the host of a call: `api.example.com`, `*.example.com` (any depth), `api.*`, each also with
/// `:port`. Without a port every port matches. Case does not matter.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum HostPattern {
    /// Every host.
    Any,
    /// This host alone.
    Exact {
        /// In lower case.
        host: String,
        /// The only port; absent: every port.
        port: Option<u16>,
    },
    /// Every host that ends in this.
    Suffix {
        /// In lower case, with its leading dot.
        suffix: String,
        /// The only port; absent: every port.
        port: Option<u16>,
    },
    /// Every host that begins with this.
    Prefix {
        /// In lower case, with its trailing dot.
        prefix: String,
        /// The only port; absent: every port.
        port: Option<u16>,
    },
}

impl HostPattern {
    /// Reads the text form.
    pub fn parse(text: &str) -> Result<Self, InvalidPattern> {
        if text == "*" {
            return Ok(Self::Any);
        }
        let (host, port) = split_port(text)?;
        let host = host.to_ascii_lowercase();
        if host.is_empty()
            || host
                .bytes()
                .any(|byte| byte.is_ascii_whitespace() || byte == b'/')
        {
            return Err(InvalidPattern(format!("expected a host name, found '{text}'")));
        }
        let pattern = match (host.strip_prefix('*'), host.strip_suffix('*')) {
            (Some(suffix), None) if suffix.starts_with('.') => Self::Suffix {
                suffix: suffix.to_owned(),
                port,
            },
            (None, Some(prefix)) if prefix.ends_with('.') => Self::Prefix {
                prefix: prefix.to_owned(),
                port,
            },
            (None, None) if !host.contains('*') => Self::Exact { host, port },
            _ => {
                return Err(InvalidPattern(format!(
                    "expected '*.host' or 'host.*', found '{text}'"
                )));
            }
        };
        let wildcards = text.bytes().filter(|byte| *byte == b'*').count();
        if wildcards > 1 {
            return Err(InvalidPattern(format!(
                "expected at most one wildcard, found '{text}'"
            )));
        }
        Ok(pattern)
    }
}

fn split_port(text: &str) -> Result<(&str, Option<u16>), InvalidPattern> {
    let (host, port) = match text.rsplit_once(':') {
        Some((host, port)) if !host.contains(':') || host.ends_with(']') => (host, port),
        _ => return Ok((text, None)),
    };
    match port.parse() {
        Ok(port) if port != 0 => Ok((host, Some(port))),
        _ => Err(InvalidPattern(format!(
            "expected a port from 1 to 65535 after the last ':' in '{text}'"
        ))),
    }
}

impl fmt::Display for HostPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let port = match self {
            Self::Any => return f.write_str("*"),
            Self::Exact { host, port } => write!(f, "{host}").map(|()| port)?,
            Self::Suffix { suffix, port } => write!(f, "*{suffix}").map(|()| port)?,
            Self::Prefix { prefix, port } => write!(f, "{prefix}*").map(|()| port)?,
        };
        port.map_or(Ok(()), |port| write!(f, ":{port}"))
    }
}

/// Patterns are texts in documents.
macro_rules! text_form {
    ($type:ty, $name:literal, $description:literal) => {
        impl Serialize for $type {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }
        impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = String::deserialize(deserializer)?;
                <$type>::parse(&text).map_err(de::Error::custom)
            }
        }
        impl JsonSchema for $type {
            fn schema_name() -> Cow<'static, str> {
                $name.into()
            }
            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!({ "type": "string", "description": $description })
            }
        }
    };
}

text_form!(
    PathPattern,
    "PathPattern",
    "`/api` (and below), `=/api` (alone), `/api*` (these bytes and any), `/users/{id}`, `~regex`, `*`"
);
text_form!(
    HostPattern,
    "HostPattern",
    "`api.example.com`, `*.example.com`, `api.*`, each also with `:port`, or `*`"
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_read_and_print() {
        for text in [
            "/api",
            "=/api",
            "/api*",
            "/",
            "/a/{id}/b",
            "/a/{rest*}",
            "/a/{name}.json",
            "/v/{name}:cancel/b-{x}-{y}",
            "~/v\\d+",
            "*",
            "/foo**",
            "=/a{b}",
        ] {
            let pattern = PathPattern::parse(text).expect("valid");
            assert_eq!(pattern.to_string(), text);
            assert_eq!(PathPattern::parse(&pattern.to_string()), Ok(pattern));
        }
        for text in [
            "a.com",
            "*.a.com",
            "a.*",
            "a.com:81",
            "*.a.com:81",
            "[::1]:80",
            "[::1]",
            "*",
        ] {
            assert_eq!(HostPattern::parse(text).expect("valid").to_string(), text);
        }
    }

    #[test]
    fn bad_patterns_say_what_was_expected() {
        for text in [
            "api",
            "",
            "/a/{b}{c}",
            "/a/{b",
            "/a/{}",
            "/a/{r*}/b",
            "/a/b{r*}",
            "/{a}.b/{r*}",
        ] {
            assert!(PathPattern::parse(text).is_err(), "{text}");
        }
        for text in ["", "a*b.com", "*a.com", "*.a.*", "a.com:0", "a.com:x", "a b"] {
            assert!(HostPattern::parse(text).is_err(), "{text}");
        }
    }
}
