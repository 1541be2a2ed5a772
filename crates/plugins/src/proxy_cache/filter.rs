//! The work on one call: an answer from the cache, or a fetch whose response is kept.

use super::Config;
use super::control::{Control, is_not_modified};
use super::flight::Lead;
use super::key::{KeyMaker, hex};
use super::record::{MediaType, Recorder, hides};
use super::zone::{Entry, Freshness, Key, Look, Zone};
use crate::graphql;
use std::sync::Arc;
use std::time::Duration;
use weir_plugin::{Exchange, Filter, Outcome, Phases, Refusal, RefusalKind, Reply, Template, Wait};

/// The longest body that is read for a key.
const MAX_BODY: usize = 1 << 20;

/// An instance of `proxy-cache`.
pub(super) struct CacheFilter {
    pub(super) config: Config,
    pub(super) zone: Arc<Zone>,
    keys: KeyMaker,
    bypass: Vec<Template>,
    pub(super) no_store: Vec<Template>,
    pub(super) content_types: Vec<MediaType>,
}

/// What is known of a call between its request and its response.
pub(super) struct Pending {
    /// The word for the status header.
    pub(super) word: Option<String>,
    /// The key, where the call has one.
    pub(super) key: Option<Key>,
    /// Where its response is to be kept, and under which key others wait for it.
    pub(super) fetch: Option<Fetch>,
}

/// A fetch for the cache.
pub(super) struct Fetch {
    pub(super) key: Key,
    /// Where the next caller looks; another key where responses vary.
    pub(super) place: Key,
    pub(super) lead: Option<Lead>,
}

/// That a call has waited for another one.
struct Waited;

impl CacheFilter {
    pub(super) fn new(config: Config, zone: Arc<Zone>) -> Self {
        let templates = |texts: &[String]| texts.iter().map(|text| Template::parse(text)).collect();
        Self {
            keys: KeyMaker::new(&config),
            bypass: templates(&config.bypass),
            no_store: templates(&config.no_store),
            content_types: config
                .content_types
                .iter()
                .map(|text| MediaType::parse(text.as_bytes()))
                .collect(),
            config,
            zone,
        }
    }

    fn pass_on(&self, exchange: &mut Exchange, word: &str) -> Outcome {
        let pending = Pending {
            word: Some(word.to_owned()),
            key: None,
            fetch: None,
        };
        exchange.kept.put(self, pending);
        Outcome::Continue
    }

    /// The call is one for the cache; else the word for it.
    fn refused_word(&self, exchange: &Exchange, control: &Control) -> Option<&str> {
        let method = &exchange.request.method;
        let words = &self.config.words;
        if !self
            .config
            .methods
            .iter()
            .any(|known| known.as_bytes() == method.as_slice())
        {
            return Some(&words.other_method);
        }
        let is_unwanted = self.config.cache_control && (control.no_store || control.no_cache);
        (is_unwanted || any_is_set(&self.bypass, exchange)).then_some(words.bypass.as_str())
    }

    /// Whether the caller takes a response of this age.
    fn is_acceptable(&self, entry: &Entry, freshness: Freshness, control: &Control, now_ms: u64) -> bool {
        if !self.config.cache_control {
            return freshness == Freshness::Fresh;
        }
        let age = now_ms.saturating_sub(entry.stored_ms) / 1000;
        let fresh = entry.fresh_ms / 1000;
        let is_young = control.max_age.is_none_or(|most| age <= most);
        let stays = control
            .min_fresh
            .is_none_or(|least| fresh.saturating_sub(age) >= least);
        let stale = age.saturating_sub(fresh);
        let may_be_stale = control.max_stale.is_some_and(|most| stale <= most);
        is_young && stays && (freshness == Freshness::Fresh || may_be_stale)
    }

    fn hit(&self, exchange: &Exchange, entry: &Entry, key: &Key, now_ms: u64) -> Outcome {
        let header = |name: &str| {
            let found = entry
                .headers
                .iter()
                .find(|(known, _)| known.eq_ignore_ascii_case(name));
            found.map(|(_, value)| value.as_slice())
        };
        let is_known = entry.status == 200
            && is_not_modified(&exchange.request.headers, header("etag"), header("last-modified"));
        let mut reply = match is_known {
            true => Reply::new(304, "", ""),
            false => Reply::new(entry.status, "", entry.body.as_slice()),
        };
        for (name, value) in &entry.headers {
            let is_about_the_body = is_known && name.eq_ignore_ascii_case("content-type");
            if !(is_about_the_body || self.config.hide_cache_headers && hides(name.as_bytes())) {
                reply = reply.with_header(name.as_str(), value.as_slice());
            }
        }
        if self.config.age {
            let age = now_ms.saturating_sub(entry.stored_ms) / 1000;
            reply = reply.with_header("Age", age.to_string());
        }
        if let Some(name) = &self.config.status_header {
            reply = reply.with_header(name.as_str(), self.config.words.hit.as_str());
        }
        if let Some(name) = &self.config.key_header {
            reply = reply.with_header(name.as_str(), hex(key));
        }
        Outcome::Reply(Box::new(reply))
    }

    fn purge(&self, exchange: &Exchange) -> Outcome {
        match self.zone.purge(&self.keys.of(exchange)) {
            true => Outcome::Reply(Box::new(Reply::new(200, "text/plain", ""))),
            false => answered(404),
        }
    }

    /// Fetches the response, or waits for who fetches it already.
    fn fetch(&self, exchange: &mut Exchange, key: Key, look: Look, word: &str) -> Outcome {
        let (place, may_wait) = match look {
            Look::Found(_, _, place) | Look::Nothing(place) => (place, true),
            Look::Pass(place) => (place, false),
        };
        let is_get = exchange.request.method != b"HEAD";
        let has_waited = exchange.kept.take::<_, Waited>(self).is_some();
        let lead = match (may_wait && is_get).then(|| self.zone.lead(place)) {
            None => None,
            Some(Ok(lead)) => Some(lead),
            Some(Err(_)) if has_waited => None,
            Some(Err(landing)) => {
                exchange.kept.put(self, Waited);
                return Outcome::Wait(Wait::event(landing, Duration::from_millis(self.config.wait_ms)));
            }
        };
        let pending = Pending {
            word: Some(word.to_owned()),
            key: Some(key),
            fetch: Some(Fetch { key, place, lead }),
        };
        exchange.kept.put(self, pending);
        Outcome::Continue
    }
}

/// Whether one of the texts is neither empty nor `0`.
pub(super) fn any_is_set(templates: &[Template], exchange: &Exchange) -> bool {
    templates.iter().any(|template| {
        let mut text = Vec::new();
        template.render(exchange, &mut text);
        !matches!(text.as_slice(), b"" | b"0")
    })
}

fn answered(status: u16) -> Outcome {
    let kind = RefusalKind::Answered {
        plugin: "proxy-cache",
    };
    Outcome::Refuse(Box::new(Refusal::with_status(kind, status)))
}

impl Filter for CacheFilter {
    fn phases(&self) -> Phases {
        Phases::BOTH
    }

    fn needs_body(&self) -> bool {
        self.keys.needs_body()
            || self.bypass.iter().any(Template::needs_body)
            || self.no_store.iter().any(Template::needs_body)
    }

    fn on_request(&self, exchange: &mut Exchange) -> Outcome {
        if self.config.purge && exchange.request.method == b"PURGE" {
            return self.purge(exchange);
        }
        if self.config.graphql {
            match graphql::query(&exchange.request) {
                Ok(None) => return Outcome::NeedBody { max_bytes: MAX_BODY },
                Ok(Some(query)) => match graphql::Query::read(&query) {
                    Ok(query) if query.has_mutation => {
                        return self.pass_on(exchange, &self.config.words.bypass);
                    }
                    Ok(_) => {}
                    Err(fault) => return graphql::Fault::from(fault).outcome("proxy-cache"),
                },
                Err(fault) => return fault.outcome("proxy-cache"),
            }
        }
        let control = Control::of(&exchange.request.headers);
        if let Some(word) = self.refused_word(exchange, &control) {
            return self.pass_on(exchange, word);
        }
        let now_ms = exchange.unix_ms();
        let key = self.keys.of(exchange);
        let look = self.zone.look(&key, &exchange.request.headers, now_ms);
        let words = &self.config.words;
        let word = match &look {
            Look::Found(_, Freshness::Over, _) => &words.expired,
            Look::Found(entry, freshness, _) => {
                if self.is_acceptable(entry, *freshness, &control, now_ms) {
                    exchange.kept.take::<_, Waited>(self);
                    return self.hit(exchange, entry, &key, now_ms);
                }
                &words.refresh
            }
            Look::Nothing(_) | Look::Pass(_) => &words.miss,
        };
        if self.config.cache_control && control.only_if_cached {
            let pending = Pending {
                word: words.only_if_cached.clone(),
                key: Some(key),
                fetch: None,
            };
            exchange.kept.put(self, pending);
            return answered(504);
        }
        let word = word.clone();
        self.fetch(exchange, key, look, &word)
    }

    fn on_response(&self, exchange: &mut Exchange) {
        // An answer from the cache has been made ready already.
        if let Some(pending) = exchange.kept.take::<_, Pending>(self) {
            self.finish(exchange, pending);
        }
    }
}

impl CacheFilter {
    fn finish(&self, exchange: &mut Exchange, pending: Pending) {
        let Pending { mut word, key, fetch } = pending;
        if let Some(fetch) = fetch {
            match Recorder::begin(self, exchange, fetch) {
                Some(recorder) => exchange.response.body_filters.push(recorder),
                None => word = self.config.words.not_kept.clone().or(word),
            }
        }
        let headers = &mut exchange.response.headers;
        if self.config.hide_cache_headers {
            headers.remove(b"expires");
            headers.remove(b"cache-control");
        }
        if let (Some(name), Some(word)) = (&self.config.status_header, word) {
            headers.set(name.as_bytes(), word.as_bytes());
        }
        if let (Some(name), Some(key)) = (&self.config.key_header, key) {
            headers.set(name.as_bytes(), hex(&key).as_bytes());
        }
    }
}
