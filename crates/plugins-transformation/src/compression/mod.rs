//! `compression`: compresses responses while they are sent, for clients that accept it.
//!
//! ```yaml
//! coding: gzip
//! types: [text/html, application/json]
//! min_length: 256
//! vary: true
//! ```
//!
//! Responses that already have a `Content-Encoding` are not changed, and neither are statuses other than 200, 403 and
//! 404.
//!
//! Security: if a response contains both a secret and text from the caller, its compressed length reveals something
//! about the secret (BREACH).

mod coder;

pub(crate) use coder::unpacked;

use coder::{Brotli, Gzip, GzipPool};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::sync::Arc;
use weir_model::{Diagnostic, DocPath};
use weir_plugin::{BuildContext, Exchange, Filter, Headers, Phases, Plugin, Request, parse_config};

/// Configuration of `compression`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// How it is compressed.
    pub coding: Coding,
    /// Media types that are compressed, without parameters; `*` is for all.
    pub types: Vec<String>,
    /// The shortest response that is compressed, in bytes, if its length is known.
    pub min_length: u64,
    /// How much work is done: 1 to 9 for gzip, 0 to 11 for brotli.
    #[schemars(range(min = 0, max = 11))]
    pub level: u8,
    /// Binary logarithm of brotli's window, 10 to 24.
    #[schemars(range(min = 10, max = 24))]
    pub window_bits: u8,
    /// Whether clients that speak HTTP/1.0 get compressed responses.
    pub http_1_0: bool,
    /// Whether `Vary` announces to caches that the response depends on `Accept-Encoding`.
    pub vary: bool,
}

/// A content coding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Coding {
    /// RFC 1952.
    Gzip,
    /// RFC 7932.
    Brotli,
}

impl Coding {
    /// The coding of this name, if there is one.
    pub(crate) fn of(name: &[u8]) -> Option<Self> {
        let name = name.trim_ascii();
        [Self::Gzip, Self::Brotli]
            .into_iter()
            .find(|coding| coding.token().eq_ignore_ascii_case(name))
    }

    /// Its name in headers.
    fn token(self) -> &'static [u8] {
        match self {
            Self::Gzip => b"gzip",
            Self::Brotli => b"br",
        }
    }
}

impl Default for Config {
    fn default() -> Self {
        Self {
            coding: Coding::Gzip,
            types: vec!["text/html".to_owned()],
            min_length: 20,
            level: 1,
            window_bits: 19,
            http_1_0: false,
            vary: false,
        }
    }
}

/// The plugin `compression`.
pub struct Compression;

impl Plugin for Compression {
    fn name(&self) -> &'static str {
        "compression"
    }

    fn config_schema(&self) -> schemars::Schema {
        schemars::schema_for!(Config)
    }

    fn build(&self, config: &Value, _: &BuildContext<'_>) -> Result<Arc<dyn Filter>, Vec<Diagnostic>> {
        let config: Config = parse_config(config)?;
        let mut faults = Vec::new();
        let mut fault = |field: &str, message: &str| {
            faults.push(Diagnostic::error(DocPath::root().field(field), message));
        };
        match (config.coding, config.level) {
            (Coding::Gzip, 1..=9) | (Coding::Brotli, 0..=11) => {}
            (Coding::Gzip, _) => fault("level", "expected from 1 to 9"),
            (Coding::Brotli, _) => fault("level", "expected from 0 to 11"),
        }
        if !(10..=24).contains(&config.window_bits) {
            fault("window_bits", "expected from 10 to 24");
        }
        match faults.is_empty() {
            true => Ok(Arc::new(CompressionFilter {
                any_type: config.types.iter().any(|known| known == "*"),
                pool: Arc::new(GzipPool::new(config.level)),
                config,
            })),
            false => Err(faults),
        }
    }
}

/// An instance of `compression`.
struct CompressionFilter {
    config: Config,
    any_type: bool,
    pool: Arc<GzipPool>,
}

impl CompressionFilter {
    /// Whether the response is one to be compressed, for clients that take it.
    fn is_eligible(&self, exchange: &Exchange) -> bool {
        let (request, response) = (&exchange.request, &exchange.response);
        let length = match &response.replaced_body {
            Some(body) => Some(body.len() as u64),
            None => response.content_length,
        };
        matches!(response.status, 200 | 403 | 404)
            && length.is_none_or(|length| length >= self.config.min_length)
            && !response.headers.contains(b"content-encoding")
            && self.is_type(&response.headers)
            && request.method != b"HEAD"
    }

    fn is_wanted(&self, request: &Request) -> bool {
        let is_new_enough = request.version >= (1, 1) || self.config.http_1_0;
        is_new_enough && accepts(&request.headers, self.config.coding.token())
    }

    fn is_type(&self, headers: &Headers) -> bool {
        let Some(content_type) = headers.get(b"content-type") else {
            return false;
        };
        let media_type = content_type
            .split(|byte| *byte == b';')
            .next()
            .unwrap_or_default();
        let media_type = media_type.trim_ascii();
        let is_it = |known: &String| known.as_bytes().eq_ignore_ascii_case(media_type);
        self.any_type || self.config.types.iter().any(is_it)
    }
}

/// Whether a client takes a coding (RFC 9110, 12.5.3).
fn accepts(headers: &Headers, coding: &[u8]) -> bool {
    let mut any = false;
    for value in headers.get_all(b"accept-encoding") {
        for part in value.split(|byte| *byte == b',') {
            let mut pieces = part.split(|byte| *byte == b';').map(<[u8]>::trim_ascii);
            let name = pieces.next().unwrap_or_default();
            let is_refused = pieces.any(|piece| {
                let weight = piece.strip_prefix(b"q=").or_else(|| piece.strip_prefix(b"Q="));
                weight.is_some_and(|weight| weight.iter().all(|digit| matches!(digit, b'0' | b'.')))
            });
            if name.eq_ignore_ascii_case(coding) {
                return !is_refused;
            }
            any |= name == b"*" && !is_refused;
        }
    }
    any
}

impl Filter for CompressionFilter {
    fn phases(&self) -> Phases {
        Phases::RESPONSE
    }

    fn on_response(&self, exchange: &mut Exchange) {
        if !self.is_eligible(exchange) {
            return;
        }
        let response = &mut exchange.response;
        if self.config.vary {
            add_vary(&mut response.headers);
        }
        if !self.is_wanted(&exchange.request) {
            return;
        }
        response.headers.remove(b"accept-ranges");
        response.headers.remove(b"content-length");
        weaken_tag(&mut response.headers);
        response
            .headers
            .append_trusted(b"Content-Encoding", self.config.coding.token());
        match self.config.coding {
            Coding::Gzip => response.body_filters.push_coding(Gzip::new(&self.pool)),
            Coding::Brotli => {
                let coder = Brotli::new(self.config.level, self.config.window_bits);
                response.body_filters.push_coding(coder);
            }
        }
    }
}

/// The bytes are others now, what they say is not: a strong entity tag (RFC 9110, 8.8.3) becomes a weak one. What is
/// no entity tag is taken out.
fn weaken_tag(headers: &mut Headers) {
    let Some(tag) = headers.get(b"etag") else { return };
    let quoted = tag.strip_prefix(b"W/").unwrap_or(tag);
    let inner = quoted
        .strip_prefix(b"\"")
        .and_then(|rest| rest.strip_suffix(b"\""));
    if inner.is_none_or(|inner| inner.contains(&b'"')) {
        headers.remove(b"etag");
    } else if quoted.len() == tag.len() {
        let weak = [b"W/", tag].concat();
        headers.set(b"ETag", &weak);
    }
}

fn add_vary(headers: &mut Headers) {
    let names = |value: &[u8]| {
        let mut names = value.split(|byte| *byte == b',').map(<[u8]>::trim_ascii);
        names.any(|name| name == b"*" || name.eq_ignore_ascii_case(b"accept-encoding"))
    };
    if !headers.get_all(b"vary").any(names) {
        headers.append_trusted(b"Vary", b"Accept-Encoding");
    }
}

#[cfg(test)]
mod tests;
