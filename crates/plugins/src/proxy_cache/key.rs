//! Keys: what tells responses apart.

use super::zone::Key;
use super::{Config, QueryKey};
use aws_lc_rs::digest;
use weir_plugin::uri::{decode_form, query_pairs};
use weir_plugin::{Exchange, Template};

/// A digest over parts whose ends count.
pub(super) struct Digest(digest::Context);

impl Digest {
    pub(super) fn new() -> Self {
        Self(digest::Context::new(&digest::SHA256))
    }

    pub(super) fn part(&mut self, part: &[u8]) {
        self.0.update(&(part.len() as u64).to_le_bytes());
        self.0.update(part);
    }

    pub(super) fn finish(self) -> Key {
        let mut key = Key::default();
        key.copy_from_slice(self.0.finish().as_ref());
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
}

impl KeyMaker {
    pub(super) fn new(config: &Config) -> Self {
        Self {
            templates: config.key.iter().map(|text| Template::parse(text)).collect(),
            query: config.query.clone(),
            headers: config
                .headers
                .iter()
                .map(|name| name.to_ascii_lowercase())
                .collect(),
            ignore_case: config.ignore_case,
            per_consumer: config.per_consumer,
            with_body: config.graphql,
        }
    }

    pub(super) fn needs_body(&self) -> bool {
        self.templates.iter().any(Template::needs_body)
    }

    /// The key of a call.
    pub(super) fn of(&self, exchange: &Exchange) -> Key {
        let mut digest = Digest::new();
        let consumer = exchange.identity.as_ref().filter(|_| self.per_consumer);
        digest.part(consumer.map_or(&b""[..], |identity| identity.consumer.id.as_bytes()));
        let mut text = Vec::with_capacity(128);
        for template in &self.templates {
            text.clear();
            template.render(exchange, &mut text);
            if self.ignore_case {
                text.make_ascii_lowercase();
            }
            digest.part(&text);
        }
        let request = &exchange.request;
        let query = request.query.as_deref().unwrap_or_default();
        match &self.query {
            QueryKey::None => {}
            QueryKey::All => {
                let mut pairs: Vec<_> = query_pairs(query).collect();
                pairs.sort();
                for (name, value) in pairs {
                    digest.part(&decode_form(name));
                    digest.part(value.unwrap_or(b"\0"));
                }
            }
            QueryKey::Only(names) => {
                for name in names {
                    for (_, value) in
                        query_pairs(query).filter(|(key, _)| decode_form(key) == name.as_bytes())
                    {
                        digest.part(value.unwrap_or(b"\0"));
                    }
                    digest.part(b"");
                }
            }
        }
        for name in &self.headers {
            for value in request.headers.get_all(name.as_bytes()) {
                digest.part(value);
            }
            digest.part(b"");
        }
        if self.with_body {
            digest.part(request.body.as_deref().unwrap_or_default());
        }
        digest.finish()
    }
}

/// A key as hexadecimal digits.
pub(super) fn hex(key: &Key) -> String {
    let nibbles = key.iter().flat_map(|byte| [byte >> 4, byte & 15]);
    nibbles
        .filter_map(|nibble| char::from_digit(u32::from(nibble), 16))
        .collect()
}
