//! `request-rewrite`: changes the request on its way to the upstream.
//!
//! ```yaml
//! path_patterns: [{pattern: "^/v1/(.*)", replacement: /$1}]
//! host: internal.example
//! headers:
//!   - set: {X-Version: v1, X-Client: $remote_addr}
//!   - remove: [Cookie]
//! ```
//!
//! Security: plugins in front of this one have seen the path that the client asked for, the upstream sees the new one.
//! Whatever variables put into the target is escaped, so that no caller can add lines or end the path with it; a
//! caller's `..` in a variable is not resolved, though.

use crate::captures::{CaptureTemplate, Found};
use crate::header_steps::{HeaderStep, HeaderSteps, Side};
use regex::bytes::Regex;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::sync::Arc;
use weir_model::{Diagnostic, DocPath};
use weir_plugin::headers::{is_token, is_value};
use weir_plugin::uri::escape_path;
use weir_plugin::{BuildContext, Exchange, Filter, Outcome, Phases, Plugin, parse_config};

/// Configuration of `request-rewrite`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// The new path, with variables (`/v2$uri`). What stands behind a `?` becomes the query, the caller's own behind
    /// it. Goes before `path_patterns`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// Replacements of the path; the first whose pattern finds something is used.
    pub path_patterns: Vec<PathReplacement>,
    /// Forwards the request target exactly as the client wrote it, before any normalization. The upstream then may
    /// understand another path than the one that the gateway's rules were checked against. Goes before `path`.
    pub unsafe_original_target: bool,
    /// The new method.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub method: Option<String>,
    /// The `Host` that the upstream is told, with its port where it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// Changes of the headers. Values may hold variables, and `$1` to `$9` for what the groups of the pattern that
    /// was used have found (without one, they are empty).
    pub headers: Vec<HeaderStep>,
    /// Whether `$` in header values stands for variables rather than for itself.
    pub variables: bool,
    /// Whether the paths of this chain's calls are decoded before they are matched, so that the result is escaped
    /// whole; otherwise only what cannot stand in a path is.
    pub decoded_paths: bool,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            path: None,
            path_patterns: Vec::new(),
            unsafe_original_target: false,
            method: None,
            host: None,
            headers: Vec::new(),
            variables: true,
            decoded_paths: false,
        }
    }
}

/// A replacement of the path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PathReplacement {
    /// A regular expression that is looked for in the path, without its query.
    pub pattern: String,
    /// What stands in place of the part that it found, with `$1` for its groups. What stands behind a `?` becomes the
    /// query.
    pub replacement: String,
}

/// The plugin.
pub struct RequestRewrite;

impl Plugin for RequestRewrite {
    fn name(&self) -> &'static str {
        "request-rewrite"
    }

    fn config_schema(&self) -> schemars::Schema {
        schemars::schema_for!(Config)
    }

    fn build(&self, config: &Value, _: &BuildContext<'_>) -> Result<Arc<dyn Filter>, Vec<Diagnostic>> {
        let config: Config = parse_config(config)?;
        let root = DocPath::root();
        let mut faults = Vec::new();
        if config
            .method
            .as_ref()
            .is_some_and(|it| it.is_empty() || !it.bytes().all(is_token))
        {
            faults.push(Diagnostic::error(root.field("method"), "expected a method"));
        }
        if config
            .host
            .as_ref()
            .is_some_and(|it| it.is_empty() || it.contains(' ') || !is_value(it.as_bytes()))
        {
            faults.push(Diagnostic::error(root.field("host"), "expected a host"));
        }
        let mut replacements = Vec::with_capacity(config.path_patterns.len());
        for (index, replacement) in config.path_patterns.iter().enumerate() {
            let path = root.field("path_patterns").index(index).field("pattern");
            match crate::patterns::compile(&replacement.pattern, path) {
                Ok(regex) => replacements.push((regex, Target::parse(&replacement.replacement))),
                Err(fault) => faults.push(fault),
            }
        }
        let headers = HeaderSteps::compile(&config.headers, config.variables, &root.field("headers"));
        let headers = headers.map_err(|more| faults.extend(more));
        match (headers, faults.is_empty()) {
            (Ok(headers), true) => Ok(Arc::new(RewriteFilter {
                target: match (config.unsafe_original_target, config.path) {
                    (true, _) => NewTarget::Original,
                    (false, Some(path)) => NewTarget::Template(Target::parse(&path)),
                    (false, None) => NewTarget::Replacements(replacements),
                },
                method: config.method,
                host: config.host,
                headers,
                decoded_paths: config.decoded_paths,
            })),
            _ => Err(faults),
        }
    }
}

/// An instance of `request-rewrite`.
struct RewriteFilter {
    target: NewTarget,
    method: Option<String>,
    host: Option<String>,
    headers: HeaderSteps,
    decoded_paths: bool,
}

enum NewTarget {
    Original,
    Template(Target),
    Replacements(Vec<(Regex, Target)>),
}

/// A template of a path, and of a query where it has one.
struct Target {
    path: CaptureTemplate,
    query: Option<CaptureTemplate>,
}

/// A new path as it goes on the wire, and what stands before the caller's query.
struct Rewritten {
    path: Vec<u8>,
    query: Option<Vec<u8>>,
}

impl Target {
    fn parse(text: &str) -> Self {
        match text.split_once('?') {
            None => Self {
                path: CaptureTemplate::parse(text),
                query: None,
            },
            Some((path, query)) => Self {
                path: CaptureTemplate::parse(path),
                query: Some(CaptureTemplate::parse(query)),
            },
        }
    }

    fn needs_body(&self) -> bool {
        self.path.needs_body() || self.query.as_ref().is_some_and(CaptureTemplate::needs_body)
    }
}

impl RewriteFilter {
    /// The new target, and what the pattern that was used has found.
    fn rewrite(&self, exchange: &Exchange) -> (Option<Rewritten>, Found) {
        match &self.target {
            NewTarget::Original => {
                let path = exchange.request.raw_path.clone();
                (Some(Rewritten { path, query: None }), Found::default())
            }
            NewTarget::Template(target) => {
                let found = Found::default();
                (Some(self.render(target, exchange, &found)), found)
            }
            NewTarget::Replacements(replacements) => {
                let path = &exchange.request.path;
                let first = replacements.iter().find_map(|(regex, target)| {
                    let captures = regex.captures(path)?;
                    let groups = captures.iter().map(|group| group.map(|group| group.range()));
                    Some((target, groups.collect()))
                });
                let Some((target, groups)) = first else {
                    return (None, Found::default());
                };
                let found = Found {
                    text: path.clone(),
                    groups,
                };
                (Some(self.render(target, exchange, &found)), found)
            }
        }
    }

    fn render(&self, target: &Target, exchange: &Exchange, found: &Found) -> Rewritten {
        let matched = found.groups.first().cloned().flatten();
        let (before, behind) = match matched {
            Some(range) => (&found.text[..range.start], &found.text[range.end..]),
            None => (&[][..], &[][..]),
        };
        let mut path = before.to_vec();
        target.path.render(exchange, found, &mut path);
        let query = target.query.as_ref().map(|template| {
            let mut query = Vec::new();
            template.render(exchange, found, &mut query);
            query.extend_from_slice(behind);
            escape_query(&query)
        });
        if query.is_none() {
            path.extend_from_slice(behind);
        }
        if path.first() != Some(&b'/') {
            path.insert(0, b'/');
        }
        Rewritten {
            path: self.escape(&path),
            query,
        }
    }

    fn escape(&self, path: &[u8]) -> Vec<u8> {
        let mut out = Vec::with_capacity(path.len());
        if self.decoded_paths {
            escape_path(path, &mut out);
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

impl Filter for RewriteFilter {
    fn phases(&self) -> Phases {
        Phases::REQUEST
    }

    fn needs_body(&self) -> bool {
        self.headers.need_body()
            || match &self.target {
                NewTarget::Original => false,
                NewTarget::Template(target) => target.needs_body(),
                NewTarget::Replacements(list) => list.iter().any(|(_, target)| target.needs_body()),
            }
    }

    fn on_request(&self, exchange: &mut Exchange) -> Outcome {
        let (rewritten, found) = self.rewrite(exchange);
        if !self.headers.is_empty() {
            self.headers.apply(exchange, Side::Request, &found);
        }
        let request = &mut exchange.request;
        if let Some(Rewritten { path, query }) = rewritten {
            request.path = path;
            if let Some(mut query) = query {
                if let Some(own) = request.query.as_deref().filter(|own| !own.is_empty()) {
                    query.push(b'&');
                    query.extend_from_slice(own);
                }
                request.query = Some(query);
            }
            exchange.path_rewritten = true;
        }
        if let Some(method) = &self.method {
            request.method.clear();
            request.method.extend_from_slice(method.as_bytes());
        }
        if let Some(host) = &self.host {
            exchange.upstream_host = Some(host.as_bytes().to_vec());
        }
        Outcome::Continue
    }
}

#[cfg(test)]
mod tests;
