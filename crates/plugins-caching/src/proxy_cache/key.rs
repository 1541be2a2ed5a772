//! Keys: digests over the parts of a call that distinguish responses. Whether a response may be kept is decided
//! elsewhere.

use super::entry::Key;
use super::{Config, QueryKey};
use aws_lc_rs::digest;
use weir_plugin::uri::{decode_form, query_pairs};
use weir_plugin::{Exchange, Template};

/// Bytes of a key's text that are expected at most.
const USUAL_BYTES: usize = 512;

/// A digest over parts whose ends count.
pub(super) struct Digest(Vec<u8>);

impl Digest {
    pub(super) fn new() -> Self {
        Self(Vec::with_capacity(USUAL_BYTES))
    }

    pub(super) fn part(&mut self, part: &[u8]) {
        self.0.extend_from_slice(&(part.len() as u64).to_le_bytes());
        self.0.extend_from_slice(part);
    }

    /// Values of one name. Their number stands first, so that none of them can be taken for another name's.
    pub(super) fn values<'v>(&mut self, values: impl Iterator<Item = &'v [u8]>) {
        let start = self.0.len();
        self.0.extend_from_slice(&[0; 8]);
        let mut count = 0_u64;
        for value in values {
            count += 1;
            self.part(value);
        }
        self.0[start..start + 8].copy_from_slice(&count.to_le_bytes());
    }

    /// A part that is written by `write`.
    fn written(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        let start = self.0.len();
        self.0.extend_from_slice(&[0; 8]);
        write(&mut self.0);
        let length = (self.0.len() - start - 8) as u64;
        self.0[start..start + 8].copy_from_slice(&length.to_le_bytes());
    }

    pub(super) fn finish(self) -> Key {
        let mut key = Key::default();
        key.copy_from_slice(digest::digest(&digest::SHA256, &self.0).as_ref());
        key
    }
}

/// What keys are made of.
pub(super) struct KeyMaker {
    templates: Vec<Template>,
    query: QueryKey,
    headers: Vec<String>,
    ignore_case: bool,
    per_consumer: bool,
    with_body: bool,
    /// Callers that only the service knows are distinguished by what they send to it.
    by_authorization: bool,
    reads_body: bool,
    /// More than GET and HEAD, which have the same answers.
    tells_methods: bool,
}

impl KeyMaker {
    pub(super) fn new(config: &Config) -> Self {
        let templates: Vec<_> = config.key.iter().map(|text| Template::parse(text)).collect();
        Self {
            reads_body: templates.iter().any(Template::needs_body),
            templates,
            query: config.query.clone(),
            headers: config
                .headers
                .iter()
                .map(|name| name.to_ascii_lowercase())
                .collect(),
            ignore_case: config.ignore_case,
            per_consumer: config.per_consumer,
            with_body: config.graphql,
            // With `cache_control`, their responses are kept only if they are for everyone.
            tells_methods: (config.methods.iter()).any(|method| !matches!(method.as_str(), "GET" | "HEAD")),
            by_authorization: config.per_authorization && !config.cache_control,
        }
    }

    pub(super) fn needs_body(&self) -> bool {
        self.reads_body
    }

    /// Whether the call's body cannot be judged, so that it would have the key of others.
    pub(super) fn is_indeterminate(&self, exchange: &Exchange) -> bool {
        let mut templates = self.templates.iter();
        self.reads_body && templates.any(|template| template.indeterminate(exchange).is_some())
    }

    /// The key of a call.
    pub(super) fn of(&self, exchange: &Exchange) -> Key {
        let mut digest = Digest::new();
        let consumer = exchange.identity.as_ref().filter(|_| self.per_consumer);
        digest.part(consumer.map_or(&b""[..], |identity| identity.consumer.id.as_bytes()));
        let marks = if self.per_consumer {
            exchange.identity_fingerprint.as_slice()
        } else {
            b""
        };
        digest.part(marks);
        // An anonymous consumer is every caller without a credential that the gateway knows.
        let is_known = consumer.is_some_and(|identity| identity.credential_id.is_some());
        let shown = (exchange.request.headers)
            .get_all(b"authorization")
            .filter(|_| self.by_authorization && !is_known);
        digest.values(shown);
        if self.tells_methods {
            digest.part(match exchange.request.method.as_slice() {
                b"HEAD" => b"GET",
                method => method,
            });
        }
        for template in &self.templates {
            digest.written(|text| {
                let start = text.len();
                template.render(exchange, text);
                if self.ignore_case {
                    text[start..].make_ascii_lowercase();
                }
            });
        }
        let request = &exchange.request;
        let query = request.query.as_deref().unwrap_or_default();
        match &self.query {
            QueryKey::None => {}
            QueryKey::All => {
                let mut pairs: Vec<_> = query_pairs(query).collect();
                pairs.sort();
                digest.part(&(pairs.len() as u64).to_le_bytes());
                for (name, value) in pairs {
                    digest.part(&decode_form(name));
                    digest.part(value.unwrap_or(b"\0"));
                }
            }
            QueryKey::Only(names) => {
                for name in names {
                    let own = query_pairs(query).filter(|(key, _)| decode_form(key) == name.as_bytes());
                    digest.values(own.map(|(_, value)| value.unwrap_or(b"\0")));
                }
            }
        }
        for name in &self.headers {
            digest.values(request.headers.get_all(name.as_bytes()));
        }
        if self.with_body {
            digest.part(request.body.as_deref().unwrap_or_default());
        }
        digest.finish()
    }
}
