//! Path patterns, compiled: the key under which the index holds them, and what is left to do for the winner.

use super::regex_key::regex_key;
use super::trie::{PARAMETER, Tail, segment_end};
use super::{MAX_PARAMETERS, MAX_PATTERN};
use crate::weak_map::WeakMap;
use regex::bytes::{Regex, RegexBuilder};
use std::borrow::Cow;
use std::collections::HashSet;
use std::sync::Arc;
use weir_model::{PathPattern, TemplatePart};

/// Bytes that a compiled expression may take.
const REGEX_SIZE: usize = 1 << 20;

/// What the index holds of a path pattern.
pub(super) struct PathKey<'m> {
    pub key: Cow<'m, [u8]>,
    pub tail: Tail,
    pub pattern: Option<Arc<RoutePattern>>,
}

/// Regular expressions that are in use, by their texts.
pub(crate) type PatternCache = WeakMap<String, RoutePattern>;

/// The part of a path pattern that is more than its key.
pub(crate) enum RoutePattern {
    /// Names of what parameters take.
    Template(Box<[TemplateSegment]>),
    /// An expression that decides, and names its groups.
    Regex(RegexPattern),
}

/// A part of a template whose text the index has compared already.
pub(crate) enum TemplateSegment {
    /// So many bytes.
    Literal(usize),
    /// One segment.
    Parameter(Arc<str>),
    /// All that follows.
    Rest(Arc<str>),
}

/// A regular expression for paths, anchored at the start.
pub(crate) struct RegexPattern {
    regex: Regex,
    key: Box<[u8]>,
    tail: Tail,
    /// Without the whole match.
    groups: Box<[Group]>,
}

struct Group {
    /// Its number; of a template, the name of the parameter.
    number: Arc<str>,
    name: Option<Arc<str>>,
}

impl RoutePattern {
    /// How many bytes from the start the expression takes; `None`: it does not match. Templates have been
    /// decided by the index.
    #[inline]
    pub(super) fn matched_len(&self, path: &[u8]) -> Option<usize> {
        match self {
            Self::Template(_) => Some(path.len()),
            Self::Regex(pattern) => pattern.regex.find(path).map(|found| found.end()),
        }
    }

    /// Writes what parameters or groups have taken of `path`, which matches. Of an expression, each group is
    /// there under its number, and under its name if it has one; groups that took no part are left out.
    pub(super) fn capture(&self, path: &[u8], captures: &mut Vec<(Arc<str>, Vec<u8>)>) {
        match self {
            Self::Template(parts) => {
                let mut position = 0;
                for part in parts {
                    let (name, end) = match part {
                        TemplateSegment::Literal(length) => {
                            position += length;
                            continue;
                        }
                        TemplateSegment::Parameter(name) => (name, segment_end(path, position)),
                        TemplateSegment::Rest(name) => (name, path.len()),
                    };
                    captures.push((Arc::clone(name), path[position..end].to_vec()));
                    position = end;
                }
            }
            Self::Regex(pattern) if pattern.groups.is_empty() => {}
            Self::Regex(pattern) => {
                let Some(found) = pattern.regex.captures(path) else {
                    return;
                };
                for (group, taken) in pattern.groups.iter().zip(found.iter().skip(1)) {
                    let Some(taken) = taken else {
                        continue;
                    };
                    captures.push((Arc::clone(&group.number), taken.as_bytes().to_vec()));
                    if let Some(name) = &group.name {
                        captures.push((Arc::clone(name), taken.as_bytes().to_vec()));
                    }
                }
            }
        }
    }

    pub(super) fn is_regex(&self) -> bool {
        matches!(self, Self::Regex(_))
    }
}

/// Compiles path patterns; equal names are shared.
#[derive(Default)]
pub(super) struct PatternCompiler {
    names: HashSet<Arc<str>>,
}

impl PatternCompiler {
    /// Compiles a pattern.
    ///
    /// # Errors
    /// A sentence about what cannot be compiled.
    pub(super) fn compile<'m>(
        &mut self,
        pattern: &'m PathPattern,
        known: &PatternCache,
    ) -> Result<PathKey<'m>, String> {
        let (text, tail) = match pattern {
            PathPattern::Any => ("", Tail::Open),
            PathPattern::Exact(path) => (path.as_str(), Tail::End),
            PathPattern::Prefix(prefix) => (prefix.as_str(), Tail::Open),
            PathPattern::Segments(path) => (path.as_str(), Tail::Boundary),
            PathPattern::Template(parts) if fills_segments(parts) => return self.template(parts),
            PathPattern::Template(parts) => return self.mixed(parts, known),
            PathPattern::Regex(text) => return self.regex(text, known),
        };
        check_literal(text)?;
        Ok(PathKey {
            key: Cow::Borrowed(text.as_bytes()),
            tail,
            pattern: None,
        })
    }

    fn template<'m>(&mut self, parts: &'m [TemplatePart]) -> Result<PathKey<'m>, String> {
        let mut key = Vec::new();
        let mut tail = Tail::End;
        let mut compiled = Vec::with_capacity(parts.len());
        for (position, part) in parts.iter().enumerate() {
            compiled.push(match part {
                TemplatePart::Literal(text) => {
                    check_literal(text)?;
                    key.extend_from_slice(text.as_bytes());
                    TemplateSegment::Literal(text.len())
                }
                TemplatePart::Parameter(name) => {
                    key.push(PARAMETER);
                    TemplateSegment::Parameter(self.name(name))
                }
                TemplatePart::Rest(name) => {
                    if position + 1 != parts.len() {
                        return Err(format!("expected '{{{name}*}}' to end the path"));
                    }
                    tail = Tail::Open;
                    TemplateSegment::Rest(self.name(name))
                }
            });
        }
        if key.len() > MAX_PATTERN {
            return Err(too_long());
        }
        if key.iter().filter(|byte| **byte == PARAMETER).count() > MAX_PARAMETERS {
            return Err(format!("expected at most {MAX_PARAMETERS} parameters"));
        }
        Ok(PathKey {
            key: Cow::Owned(key),
            tail,
            pattern: Some(Arc::new(RoutePattern::Template(compiled.into()))),
        })
    }

    /// A template with text next to a parameter in its segment: an expression decides.
    fn mixed<'m>(&mut self, parts: &[TemplatePart], known: &PatternCache) -> Result<PathKey<'m>, String> {
        let mut text = String::new();
        let mut names = Vec::new();
        for part in parts {
            match part {
                TemplatePart::Literal(literal) => text.push_str(&regex::escape(literal)),
                TemplatePart::Parameter(name) => {
                    text.push_str("([^/]+)");
                    names.push(name);
                }
                TemplatePart::Rest(name) => {
                    return Err(format!("expected '{{{name}*}}' after whole segments"));
                }
            }
        }
        text.push_str(r"\z");
        if text.len() > MAX_PATTERN {
            return Err(too_long());
        }
        if names.len() > MAX_PARAMETERS {
            return Err(format!("expected at most {MAX_PARAMETERS} parameters"));
        }
        // Expressions have no NUL in front: what is known of both is told apart.
        let cached = format!("\0{}", PathPattern::Template(parts.to_vec()));
        let pattern = known.find_or_build(&cached, || {
            let mut compiled = self.compile_regex(&text)?;
            compiled.groups = names
                .iter()
                .map(|name| Group {
                    number: self.name(name),
                    name: None,
                })
                .collect();
            Ok::<_, String>(RoutePattern::Regex(compiled))
        })?;
        Ok(Self::keyed(pattern))
    }

    fn regex<'m>(&mut self, text: &str, known: &PatternCache) -> Result<PathKey<'m>, String> {
        if text.len() > MAX_PATTERN {
            return Err(too_long());
        }
        let pattern = known.find_or_build(text, || self.compile_regex(text).map(RoutePattern::Regex))?;
        Ok(Self::keyed(pattern))
    }

    fn keyed<'m>(pattern: Arc<RoutePattern>) -> PathKey<'m> {
        let (key, tail) = match pattern.as_ref() {
            RoutePattern::Regex(regex) => (regex.key.to_vec(), regex.tail),
            RoutePattern::Template(_) => (Vec::new(), Tail::Open),
        };
        PathKey {
            key: Cow::Owned(key),
            tail,
            pattern: Some(pattern),
        }
    }

    fn compile_regex(&mut self, text: &str) -> Result<RegexPattern, String> {
        // Paths are bytes; only an expression that names Unicode classes is compiled for them.
        let (regex, expression) = build_regex(text, false)
            .or_else(|_| build_regex(text, true))
            .map_err(|error| format!("not a regular expression: {error}"))?;
        let (key, ends) = regex_key(&expression);
        let groups = regex
            .capture_names()
            .enumerate()
            .skip(1)
            .map(|(number, name)| Group {
                number: self.name(&number.to_string()),
                name: name.map(|name| self.name(name)),
            })
            .collect();
        Ok(RegexPattern {
            regex,
            key: key.into(),
            tail: if ends { Tail::End } else { Tail::Open },
            groups,
        })
    }

    fn name(&mut self, name: &str) -> Arc<str> {
        if let Some(known) = self.names.get(name) {
            return Arc::clone(known);
        }
        let name: Arc<str> = name.into();
        self.names.insert(Arc::clone(&name));
        name
    }
}

/// Whether each parameter is a whole segment.
fn fills_segments(parts: &[TemplatePart]) -> bool {
    parts.windows(2).all(|pair| match pair {
        [TemplatePart::Literal(before), TemplatePart::Parameter(_)] => before.ends_with('/'),
        [TemplatePart::Parameter(_), TemplatePart::Literal(behind)] => behind.starts_with('/'),
        [TemplatePart::Parameter(_), _] => false,
        _ => true,
    })
}

fn build_regex(text: &str, unicode: bool) -> Result<(Regex, regex_syntax::hir::Hir), String> {
    let expression = regex_syntax::ParserBuilder::new()
        .utf8(false)
        .unicode(unicode)
        .build()
        .parse(text)
        .map_err(|error| error.to_string())?;
    let regex = RegexBuilder::new(&format!(r"\A(?:{text})"))
        .unicode(unicode)
        .size_limit(REGEX_SIZE)
        .build()
        .map_err(|error| error.to_string())?;
    Ok((regex, expression))
}

fn check_literal(text: &str) -> Result<(), String> {
    if text.len() > MAX_PATTERN {
        return Err(too_long());
    }
    if text.as_bytes().contains(&PARAMETER) {
        return Err("expected a path without a NUL".to_owned());
    }
    Ok(())
}

fn too_long() -> String {
    format!("expected at most {MAX_PATTERN} bytes")
}
