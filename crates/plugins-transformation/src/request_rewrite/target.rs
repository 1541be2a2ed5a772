//! New targets: the path, and a query before the caller's.

use super::Config;
use regex::bytes::Regex;
use weir_model::{Diagnostic, DocPath};
use weir_plugin::Exchange;
use weir_plugin::uri::escape_path;
use weir_plugins_shared::expression::EvaluationError;
use weir_plugins_shared::path_captures::{CaptureTemplate, RegexMatch};
use weir_plugins_shared::text_template::{TemplateSyntax, TextTemplate};

/// Where a call's target comes from.
pub(super) enum NewTarget {
    /// It stays.
    Same,
    /// The request target as the client wrote it.
    Original,
    /// A template.
    Template(Target),
    /// A text with expressions, for the path alone.
    Text(TextTemplate),
    /// The first pattern that finds something.
    Replacements(Vec<(Regex, Target)>),
}

/// A template of a path, and of a query if it has one.
pub(super) struct Target {
    path: CaptureTemplate,
    query: Option<CaptureTemplate>,
    /// It works on the path as the client wrote it, and nothing is escaped.
    is_raw: bool,
}

/// A new path as it goes on the wire, and what stands before the caller's query.
pub(super) struct Rewritten {
    pub(super) path: Vec<u8>,
    pub(super) query: Option<Vec<u8>>,
}

impl Target {
    fn parse(text: &str, is_raw: bool) -> Self {
        let (path, query) = match text.split_once('?') {
            None => (text, None),
            Some((path, query)) => (path, Some(query)),
        };
        Self {
            path: CaptureTemplate::parse(path),
            query: query.map(CaptureTemplate::parse),
            is_raw,
        }
    }

    fn needs_body(&self) -> bool {
        self.path.needs_body() || self.query.as_ref().is_some_and(CaptureTemplate::needs_body)
    }

    fn render(&self, exchange: &Exchange, found: &RegexMatch, is_decoded: bool) -> Rewritten {
        let matched = found.groups.first().cloned().flatten();
        let (before, behind) = match matched {
            Some(range) => (&found.text[..range.start], &found.text[range.end..]),
            None => (&[][..], &[][..]),
        };
        let mut path = before.to_vec();
        self.path.render(exchange, found, &mut path);
        let query = self.query.as_ref().map(|template| {
            let mut query = Vec::new();
            template.render(exchange, found, &mut query);
            query.extend_from_slice(behind);
            if self.is_raw { query } else { escape_query(&query) }
        });
        if query.is_none() {
            path.extend_from_slice(behind);
        }
        Rewritten {
            path: if self.is_raw {
                rooted(path)
            } else {
                finished(path, is_decoded)
            },
            query,
        }
    }
}

impl NewTarget {
    /// What the configuration says about the target.
    ///
    /// # Errors
    /// Patterns and expressions that cannot be read.
    pub(super) fn compile(config: &Config, dialect: TemplateSyntax) -> Result<Self, Vec<Diagnostic>> {
        let root = DocPath::root();
        let is_raw = config.unsafe_original_target;
        if is_raw && config.path.is_none() && config.path_patterns.is_empty() {
            return Ok(Self::Original);
        }
        if let Some(path) = &config.path {
            return match dialect {
                TemplateSyntax::Expressions => TextTemplate::parse(path, dialect)
                    .map(Self::Text)
                    .map_err(|message| vec![Diagnostic::error(root.field("path"), message)]),
                _ => Ok(Self::Template(Target::parse(path, is_raw))),
            };
        }
        let mut faults = Vec::new();
        let mut replacements = Vec::with_capacity(config.path_patterns.len());
        for (index, replacement) in config.path_patterns.iter().enumerate() {
            let path = root.field("path_patterns").index(index).field("pattern");
            match weir_plugins_shared::regex_list::compile(&replacement.pattern, path) {
                Ok(regex) => replacements.push((regex, Target::parse(&replacement.replacement, is_raw))),
                Err(fault) => faults.push(fault),
            }
        }
        match (faults.is_empty(), replacements.is_empty()) {
            (true, true) => Ok(Self::Same),
            (true, false) => Ok(Self::Replacements(replacements)),
            (false, _) => Err(faults),
        }
    }

    /// Whether it has variables that are in the request's body.
    pub(super) fn needs_body(&self) -> bool {
        match self {
            Self::Same | Self::Original => false,
            Self::Template(target) => target.needs_body(),
            Self::Text(text) => text.needs_body(),
            Self::Replacements(list) => list.iter().any(|(_, target)| target.needs_body()),
        }
    }

    /// The new target, and what the pattern that was used has found.
    ///
    /// # Errors
    /// When an expression cannot be evaluated.
    pub(super) fn of(
        &self,
        exchange: &Exchange,
        is_decoded: bool,
    ) -> Result<(Option<Rewritten>, RegexMatch), EvaluationError> {
        let found = RegexMatch::default();
        Ok(match self {
            Self::Same => (None, found),
            Self::Original => {
                let path = exchange.request.raw_path.clone();
                (Some(Rewritten { path, query: None }), found)
            }
            Self::Template(target) => (Some(target.render(exchange, &found, is_decoded)), found),
            Self::Text(text) => {
                let mut memory = Vec::new();
                let path = text.value(exchange, &found, &mut memory)?.to_vec();
                let path = finished(path, is_decoded);
                (Some(Rewritten { path, query: None }), found)
            }
            Self::Replacements(replacements) => {
                let is_raw = replacements.first().is_some_and(|(_, target)| target.is_raw);
                let path = match is_raw {
                    true => &exchange.request.raw_path,
                    false => &exchange.request.path,
                };
                let first = replacements.iter().find_map(|(regex, target)| {
                    let captures = regex.captures(path)?;
                    let groups = captures.iter().map(|group| group.map(|group| group.range()));
                    Some((target, groups.collect()))
                });
                let Some((target, groups)) = first else {
                    let path = is_raw.then(|| path.clone());
                    return Ok((path.map(|path| Rewritten { path, query: None }), found));
                };
                let text = path.clone();
                let found = RegexMatch { text, groups };
                (Some(target.render(exchange, &found, is_decoded)), found)
            }
        })
    }
}

/// A path with the slash that each begins with.
fn rooted(mut path: Vec<u8>) -> Vec<u8> {
    if path.first() != Some(&b'/') {
        path.insert(0, b'/');
    }
    path
}

/// A path as it goes on the wire. `is_decoded`: it has no escapes yet.
fn finished(path: Vec<u8>, is_decoded: bool) -> Vec<u8> {
    let path = rooted(path);
    let mut out = Vec::with_capacity(path.len());
    if is_decoded {
        escape_path(&path, &mut out);
    } else {
        // Escapes are there already and stay as they are.
        let mut parts = path.split(|byte| *byte == b'%');
        escape_path(parts.next().unwrap_or_default(), &mut out);
        for part in parts {
            out.push(b'%');
            escape_path(part, &mut out);
        }
    }
    out
}

/// Escapes what cannot stand in a query.
fn escape_query(query: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(query.len());
    for part in query.split_inclusive(|byte| matches!(byte, b'%' | b'?')) {
        match part.split_last() {
            Some((last @ (b'%' | b'?'), text)) => {
                escape_path(text, &mut out);
                out.push(*last);
            }
            _ => escape_path(part, &mut out),
        }
    }
    out
}
