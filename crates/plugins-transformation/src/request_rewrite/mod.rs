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
//! Security: plugins before this one see the path that the client requested, the upstream sees the new one. Values of
//! variables in the target are escaped, so that no caller can add lines or end the path with them. But a caller's `..`
//! in a variable is not resolved.

mod body;
mod target;

pub(crate) use body::set_body;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::sync::Arc;
use target::{NewTarget, Rewritten};
use weir_model::{Diagnostic, DocPath};
use weir_plugin::headers::{is_token, is_value};
use weir_plugin::uri::escape_path;
use weir_plugin::{
    BuildContext, Exchange, Filter, Outcome, Phases, Plugin, RefusalKind, Request, client_header_bit,
    parse_config,
};
use weir_plugins_shared::expression::{EvaluationError, Interpolated};
use weir_plugins_shared::field_edits::{FieldEdit, FieldEdits, Pairs};
use weir_plugins_shared::header_edits::{HeaderEdit, HeaderEdits, HeaderTarget};
use weir_plugins_shared::path_captures::RegexMatch;
use weir_plugins_shared::text_template::{TemplateSyntax, TextTemplate};

/// Configuration of `request-rewrite`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// The new path, with variables (`/v2$uri`). The text after a `?` becomes the query, followed by the caller's own.
    /// It takes precedence over `path_patterns`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// Replacements of the path; the first whose pattern finds something is used.
    pub path_patterns: Vec<PathReplacement>,
    /// Forwards the request target exactly as the client wrote it, before any normalization. The upstream then may
    /// understand another path than the one that the gateway's rules were checked against. With `path` or
    /// `path_patterns`, they make the new path of it, and nothing in it is escaped.
    pub unsafe_original_target: bool,
    /// The new method.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub method: Option<String>,
    /// The `Host` for the upstream, with its port if it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// Whether `host` is ignored if the route sets its own `Host` instead of the client's.
    pub host_yields: bool,
    /// Changes of the headers. Values may hold variables, and `$1` to `$9` for what the groups of the pattern that
    /// was used have found (without one, they are empty).
    pub headers: Vec<HeaderEdit>,
    /// Whether changes of `X-Forwarded-Proto`, `-Host`, `-Port` and `X-Real-IP` always apply; otherwise the gateway's
    /// own values apply if the client has sent any of these headers.
    pub about_client: bool,
    /// Changes of the query. Its arguments are then encoded again, in the order of their names.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub query: Vec<FieldEdit>,
    /// Changes of the fields of a body: a form, urlencoded or in parts, or an object in JSON.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub body: Vec<FieldEdit>,
    /// The fields of an urlencoded body are put into the query too.
    pub form_to_query: bool,
    /// The largest body whose fields are changed, in bytes; larger ones are refused.
    pub max_body_bytes: usize,
    /// Whether `$` in header values marks a variable; otherwise it is literal.
    pub variables: bool,
    /// Whether `$(…)` in texts marks an expression over `headers`, `query_params` and `uri_captures`; any other `$` is
    /// then literal. A call for which an expression cannot be evaluated is refused.
    pub expressions: bool,
    /// Whether the paths of this chain's calls are decoded before they are matched, so that the whole result is
    /// escaped; otherwise only characters that are not allowed in a path are.
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
            host_yields: false,
            headers: Vec::new(),
            about_client: true,
            query: Vec::new(),
            body: Vec::new(),
            form_to_query: false,
            max_body_bytes: 8 << 20,
            variables: true,
            expressions: false,
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
    /// The replacement for the match, with `$1` for its groups. The text after a `?` becomes the query.
    pub replacement: String,
}

/// What is wrong with a text whose `$(…)` stand for expressions; `None`: nothing.
pub fn expression_fault(text: &str) -> Option<String> {
    Interpolated::parse(text).err()
}

/// The plugin `request-rewrite`.
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
        if config.max_body_bytes > MAX_BODY {
            let message = format!("expected at most {MAX_BODY} bytes");
            faults.push(Diagnostic::error(root.field("max_body_bytes"), message));
        }
        let dialect = match config.expressions {
            true => TemplateSyntax::Expressions,
            false => TemplateSyntax::from(config.variables),
        };
        // Paths have had variables always, hosts never.
        let target = NewTarget::compile(&config, dialect);
        let target = target.map_err(|more| faults.extend(more));
        let headers = HeaderEdits::compile(&config.headers, dialect, &root.field("headers"));
        let headers = headers.map_err(|more| faults.extend(more));
        let decided = match config.about_client {
            true => config
                .headers
                .iter()
                .fold(0, |bits, step| bits | about_client(step)),
            false => 0,
        };
        let query = FieldEdits::compile(&config.query, dialect, &root.field("query"));
        let query = query.map_err(|more| faults.extend(more));
        let body = FieldEdits::compile(&config.body, dialect, &root.field("body"));
        let body = body.map_err(|more| faults.extend(more));
        let host_dialect = if config.expressions {
            dialect
        } else {
            TemplateSyntax::Plain
        };
        let host = config
            .host
            .as_deref()
            .map(|host| TextTemplate::parse(host, host_dialect))
            .transpose();
        let host = host.map_err(|message| faults.push(Diagnostic::error(root.field("host"), message)));
        match (target, headers, query, body, host, faults.is_empty()) {
            (Ok(target), Ok(headers), Ok(query), Ok(body), Ok(host), true) => Ok(Arc::new(RewriteFilter {
                target,
                method: config.method,
                host,
                host_yields: config.host_yields,
                headers,
                decided,
                query,
                body,
                form_to_query: config.form_to_query,
                max_body_bytes: config.max_body_bytes,
                decoded_paths: config.decoded_paths,
            })),
            _ => Err(faults),
        }
    }
}

/// The bits of the headers about the client that a step changes.
fn about_client(step: &HeaderEdit) -> u8 {
    let names: Vec<&String> = match step {
        HeaderEdit::Remove(names) => names.iter().collect(),
        HeaderEdit::Rename(names) => names.iter().flat_map(|(old, new)| [old, new]).collect(),
        HeaderEdit::Set(lines)
        | HeaderEdit::Replace(lines)
        | HeaderEdit::Add(lines)
        | HeaderEdit::Append(lines) => lines.keys().collect(),
    };
    names.iter().fold(0, |bits, name| bits | client_header_bit(name))
}

/// The most that `max_body_bytes` may be.
const MAX_BODY: usize = 64 << 20;

/// An instance of `request-rewrite`.
struct RewriteFilter {
    target: NewTarget,
    method: Option<String>,
    host: Option<TextTemplate>,
    headers: HeaderEdits,
    /// The host gives way to the upstream's own.
    host_yields: bool,
    /// The bits of the headers about the client that it changes.
    decided: u8,
    query: FieldEdits,
    body: FieldEdits,
    form_to_query: bool,
    max_body_bytes: usize,
    decoded_paths: bool,
}

impl RewriteFilter {
    /// Whether the fields of this call's body are wanted, and not at hand.
    fn awaits_body(&self, exchange: &Exchange) -> bool {
        let request = &exchange.request;
        (self.form_to_query || !self.body.is_empty())
            && request.has_body
            && request.body.is_none()
            && body::has_fields(request)
    }

    fn rewrite(&self, exchange: &mut Exchange) -> Result<(), EvaluationError> {
        let (rewritten, found) = self.target.of(exchange, self.decoded_paths)?;
        let mut memory = Vec::new();
        let host = self
            .host
            .as_ref()
            .map(|host| host.value(exchange, &RegexMatch::default(), &mut memory));
        if let Some(host) = host.transpose()?.map(<[u8]>::to_vec) {
            exchange.upstream_host = Some(host);
            exchange.upstream_host_yields = self.host_yields;
        }
        if !self.headers.is_empty() {
            self.headers.try_apply(exchange, HeaderTarget::Request, &found)?;
            exchange.request.overridden_headers |= self.decided;
        }
        if let Some(Rewritten { path, query }) = rewritten {
            exchange.upstream_path = Some(path);
            if let Some(mut query) = query {
                if let Some(own) = own_query(exchange).filter(|own| !own.is_empty()) {
                    query.push(b'&');
                    query.extend_from_slice(own);
                }
                exchange.upstream_query = Some(query);
            }
        } else if self.decoded_paths && exchange.upstream_path.is_none() {
            exchange.upstream_path = normal_path(&exchange.request);
        }
        if self.form_to_query
            && let Some(pairs) = body::form_pairs(&exchange.request).filter(|pairs| !pairs.is_empty())
        {
            let mut all = Pairs::read(own_query(exchange).unwrap_or_default());
            all.extend(pairs);
            exchange.upstream_query = Some(all.write());
        }
        if !self.body.is_empty() {
            body::change(&self.body, exchange)?;
        }
        if !self.query.is_empty() {
            let mut pairs = Pairs::read(own_query(exchange).unwrap_or_default());
            self.query.apply(&mut pairs, exchange)?;
            exchange.upstream_query = Some(pairs.write());
        }
        if let Some(method) = &self.method {
            let request = &mut exchange.request;
            request.method.clear();
            request.method.extend_from_slice(method.as_bytes());
        }
        Ok(())
    }
}

/// The normal form of a decoded path, escaped again. `None` if the target came in that form.
fn normal_path(request: &Request) -> Option<Vec<u8>> {
    let path = request.forwarded_path();
    // Nothing is left of a root without its slash.
    if path.is_empty() || path == request.raw_path && request.query.as_deref() != Some(b"") {
        return None;
    }
    let mut out = Vec::with_capacity(path.len());
    escape_path(path, &mut out);
    Some(out)
}

/// The query that the upstream would get.
fn own_query(exchange: &Exchange) -> Option<&[u8]> {
    let changed = exchange.upstream_query.as_deref();
    changed.or(exchange.request.query.as_deref())
}

impl Filter for RewriteFilter {
    fn phases(&self) -> Phases {
        Phases::REQUEST
    }

    fn needs_body(&self) -> bool {
        self.headers.need_body()
            || self.target.needs_body()
            || self.query.need_body()
            || self.body.need_body()
            || self.host.as_ref().is_some_and(TextTemplate::needs_body)
    }

    fn on_request(&self, exchange: &mut Exchange) -> Outcome {
        // One that is too large is refused, and not passed on unchanged.
        if self.awaits_body(exchange) {
            return Outcome::NeedBody {
                max_bytes: self.max_body_bytes,
            };
        }
        match self.rewrite(exchange) {
            Ok(()) => Outcome::Continue,
            Err(EvaluationError(reason)) => Outcome::refuse(RefusalKind::PluginFailed {
                plugin: "request-rewrite",
                reason,
            }),
        }
    }
}

#[cfg(test)]
mod tests;
