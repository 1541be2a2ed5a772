//! Responses in a Redis, which gateways share: how they are looked for, kept and forgotten there.
//!
//! In memory stand only marks of what is not kept, and responses for calls that wait for another call of this gateway. A
//! Redis that is away answers nothing: calls then go to the service, and nothing is kept.
//!
//! A call that fetches a response may do so while another gateway forgets it. So forgetting leaves a mark in the Redis,
//! and a response is kept only if the mark is still the one that was there before it was fetched.

use super::disk_codec;
use super::entry::{CacheEntry, Freshness, Key, Slot};
use super::zone::{Zone, ZoneLookup, variant_key};
use data_encoding::HEXLOWER;
use std::rc::Rc;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, LazyLock};
use weir_plugin::{
    Exchange, Headers, Outcome, RedisCall, RedisCommand, RedisPublisher, RedisScript, RedisServer,
};
use weir_plugins_shared::random::{self, system_random};
use weir_plugins_shared::redis::script;

/// Memory of an instance with a Redis. A body may have a thirty-second part of it.
pub(super) const MEMORY_BYTES: usize = 16 << 20;
/// Most bytes of a response with its headers. An answer of a Redis has at most a mebibyte.
const MAX_VALUE: usize = 1_000_000;
/// How long a response is kept at least that the service can be asked about.
const LEAST_MS: u64 = 60_000;
/// How long the mark of a forgotten response stays: longer than a fetch takes, and keeping waits for the Redis.
const MARK_MS: u64 = 300_000;

/// Gives the mark under the second key, and what stands under the first.
static GET: LazyLock<RedisScript> =
    LazyLock::new(|| script("return {redis.call('GET', KEYS[2]) or '', redis.call('GET', KEYS[1])}"));
/// Keeps a value under a key for so many milliseconds, if the mark under the second key is still this one.
static SET: LazyLock<RedisScript> = LazyLock::new(|| {
    script(
        "if (redis.call('GET', KEYS[2]) or '') ~= ARGV[3] then return {} end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return {}",
    )
});
/// Keeps the list of headers by which responses differ under the first key, and one of them under the second, if the
/// mark under the third is still this one. The list stays as long as the response that stays longest.
static SET_VARIANT: LazyLock<RedisScript> = LazyLock::new(|| {
    script(
        "if (redis.call('GET', KEYS[3]) or '') ~= ARGV[4] then return {} end
local left = redis.call('PTTL', KEYS[1])
redis.call('SET', KEYS[1], ARGV[1], 'PX', math.max(left, tonumber(ARGV[3])))
redis.call('SET', KEYS[2], ARGV[2], 'PX', ARGV[3])
return {}",
    )
});
/// Forgets a key, and leaves a new mark under the second. Answers with the number of those that there were. Forgetting
/// comes first: a Redis without memory left forgets, but takes nothing new.
static FORGET: LazyLock<RedisScript> = LazyLock::new(|| {
    script(
        "local count = redis.call('DEL', KEYS[1])
redis.call('SET', KEYS[2], ARGV[1], 'PX', ARGV[2])
return {count}",
    )
});

/// Responses in a Redis.
pub(super) struct RedisStore {
    server: Arc<RedisServer>,
    /// What all keys begin with.
    prefix: Vec<u8>,
}

/// The headers by which responses differ, and the salt of their keys.
type Variants = (Arc<[String]>, u64);

/// Where the response to a call stands.
pub(super) struct Location {
    outlet: Rc<dyn RedisPublisher>,
    base: Key,
    variants: Option<Variants>,
    /// The mark before the fetch.
    mark: Vec<u8>,
}

/// The result of looking for a response.
pub(super) enum RedisLookup {
    /// The call waits for the Redis.
    Wait(Outcome),
    /// The result, and where the response belongs.
    Known(ZoneLookup, Location),
    /// The Redis is unavailable.
    Unavailable,
}

/// Marks a call that waits for the Redis to return the value of a key.
struct PendingLookup {
    place: Key,
    variants: Option<Variants>,
    /// The mark that the first answer gave.
    mark: Option<Vec<u8>>,
}

/// That the Redis is to forget a key, or was asked to.
pub(super) enum PurgeState {
    Due(Key),
    Asked,
}

impl RedisStore {
    /// `zone`: the name of the zone among those of all dialects.
    pub(super) fn new(server: RedisServer, prefix: &str, zone: &str) -> Self {
        Self {
            server: Arc::new(server),
            prefix: format!("{prefix}:cache:{zone}:").into_bytes(),
        }
    }

    /// Looks for the response to a call. Called again after each wait.
    pub(super) fn look(
        &self,
        exchange: &mut Exchange,
        key: &Key,
        now_ms: u64,
        here: &LocalCopy<'_>,
    ) -> RedisLookup {
        let Some(asked) = exchange.filter_state.take::<_, PendingLookup>(self) else {
            let first = PendingLookup {
                place: *key,
                variants: None,
                mark: None,
            };
            return self.ask(exchange, key, first);
        };
        let Some(answer) = exchange.redis.take().flatten() else {
            return RedisLookup::Unavailable;
        };
        let mark = asked.mark.or_else(|| answer.texts.first().cloned());
        let found = answer.texts.get(1).and_then(|text| disk_codec::read(text));
        let look = match found {
            Some(Slot::Vary { names, salt, .. }) if asked.variants.is_none() => {
                let place = variant_key(key, &names, salt, &exchange.request.headers);
                let second = PendingLookup {
                    place,
                    variants: Some((names, salt)),
                    mark,
                };
                return self.ask(exchange, key, second);
            }
            Some(Slot::Response { entry, .. }) => {
                let freshness = entry.times.freshness(now_ms);
                ZoneLookup::Hit(entry, freshness, asked.place)
            }
            _ => here.look(&exchange.request.headers, key, asked.place, now_ms),
        };
        let location = Location {
            outlet: answer.outlet,
            base: *key,
            variants: asked.variants,
            mark: mark.unwrap_or_default(),
        };
        RedisLookup::Known(look, location)
    }

    fn ask(&self, exchange: &mut Exchange, base: &Key, asked: PendingLookup) -> RedisLookup {
        let mut call = self.call(&GET);
        self.put_key(&mut call, base, asked.variants.as_ref().map(|_| &asked.place));
        self.put_mark_key(&mut call, base);
        call.gives_texts = true;
        call.is_repeatable = true;
        exchange.filter_state.put(self, asked);
        RedisLookup::Wait(run(call))
    }

    /// Keeps a response that a call has fetched. `vary`: the request headers by which responses differ.
    pub(super) fn keep(
        &self,
        location: &Location,
        vary: &[String],
        request: &Headers,
        entry: &CacheEntry,
        zone: &Zone,
    ) {
        let response = response_slot(entry);
        let Some(value) = disk_codec::write(&response).filter(|value| value.len() <= MAX_VALUE) else {
            return;
        };
        let life = life_ms(entry);
        if vary.is_empty() {
            return self.set(location, None, &value, life);
        }
        let known = location.variants.clone().filter(|(names, _)| names[..] == *vary);
        let (names, salt) = known.unwrap_or_else(|| (vary.into(), zone.new_salt(entry.times.stored)));
        let place = variant_key(&location.base, &names, salt, request);
        let list = Slot::Vary {
            names,
            salt,
            latest: None,
        };
        let Some(list) = disk_codec::write(&list) else {
            return;
        };
        let mut call = self.call(&SET_VARIANT);
        self.put_key(&mut call, &location.base, None);
        self.put_key(&mut call, &location.base, Some(&place));
        self.put_mark_key(&mut call, &location.base);
        call.argument(&[&list]);
        call.argument(&[&value]);
        call.number(life);
        call.argument(&[&location.mark]);
        location.outlet.fire_and_forget(call);
    }

    /// Stores a response again in its place, with newer headers or times.
    pub(super) fn renew(&self, location: &Location, place: &Key, entry: &CacheEntry) {
        if let Some(value) = disk_codec::write(&response_slot(entry)).filter(|value| value.len() <= MAX_VALUE)
        {
            let variant = location.variants.as_ref().map(|_| place);
            self.set(location, variant, &value, life_ms(entry));
        }
    }

    fn set(&self, location: &Location, variant: Option<&Key>, value: &[u8], life_ms: u64) {
        let mut call = self.call(&SET);
        self.put_key(&mut call, &location.base, variant);
        self.put_mark_key(&mut call, &location.base);
        call.argument(&[value]);
        call.number(life_ms);
        call.argument(&[&location.mark]);
        location.outlet.fire_and_forget(call);
    }

    /// Forgets what stands under a key, and all variants of it.
    pub(super) fn forget(&self, key: &Key) -> Outcome {
        run(self.forget_call(key))
    }

    /// The same, without waiting for it.
    pub(super) fn forget_later(&self, location: &Location) {
        location.outlet.fire_and_forget(self.forget_call(&location.base));
    }

    fn forget_call(&self, key: &Key) -> RedisCall {
        let mut call = self.call(&FORGET);
        self.put_key(&mut call, key, None);
        self.put_mark_key(&mut call, key);
        call.argument(&[&random::bytes::<16>(system_random)]);
        call.number(MARK_MS);
        call.is_repeatable = true;
        call
    }

    fn call(&self, script: &'static RedisScript) -> RedisCall {
        RedisCall::new(&self.server, script)
    }

    /// Where the mark of a forgotten response stands.
    fn put_mark_key(&self, call: &mut RedisCall, base: &Key) {
        let base = HEXLOWER.encode(base);
        call.key(&[&self.prefix, b"{", base.as_bytes(), b"}:forgotten"]);
    }

    /// All keys of one response have one hash tag, so that they stand on one node of a cluster.
    fn put_key(&self, call: &mut RedisCall, base: &Key, variant: Option<&Key>) {
        let base = HEXLOWER.encode(base);
        match variant {
            None => call.key(&[&self.prefix, b"{", base.as_bytes(), b"}"]),
            Some(variant) => {
                let variant = HEXLOWER.encode(variant);
                let parts = [
                    &self.prefix,
                    &b"{"[..],
                    base.as_bytes(),
                    b"}:",
                    variant.as_bytes(),
                ];
                call.key(&parts);
            }
        }
    }
}

/// What this gateway's memory has for a call.
pub(super) struct LocalCopy<'c> {
    pub(super) zone: &'c Zone,
    /// The call has waited for another one, at most for so many milliseconds.
    pub(super) waited_ms: Option<u64>,
}

impl LocalCopy<'_> {
    /// What memory knows if the Redis has nothing: that the response is not kept, or for a call that has waited for
    /// another one, what that one has just fetched.
    fn look(&self, request: &Headers, key: &Key, place: Key, now_ms: u64) -> ZoneLookup {
        let is_awaited = |entry: &CacheEntry| {
            let longest = self
                .waited_ms
                .map(|wait_ms| entry.times.stored.saturating_add(wait_ms));
            longest.is_some_and(|until_ms| until_ms >= now_ms)
        };
        match self.zone.look(key, request, now_ms) {
            ZoneLookup::Pass(_) => ZoneLookup::Pass(place),
            ZoneLookup::Hit(entry, Freshness::Fresh, own) if is_awaited(&entry) => {
                ZoneLookup::Hit(entry, Freshness::Fresh, own)
            }
            _ => ZoneLookup::Nothing(place),
        }
    }
}

fn response_slot(entry: &CacheEntry) -> Slot {
    Slot::Response {
        entry: Arc::new(entry.clone()),
        used: AtomicBool::new(false),
    }
}

fn life_ms(entry: &CacheEntry) -> u64 {
    let times = &entry.times;
    let least = if entry.has_validator() { LEAST_MS } else { 1 };
    times.keep.saturating_sub(times.age).max(least)
}

fn run(call: RedisCall) -> Outcome {
    Outcome::Redis(Box::new(RedisCommand::Run(call)))
}

#[cfg(test)]
mod tests {
    use super::super::entry::Times;
    use super::*;
    use std::cell::RefCell;
    use weir_plugin::{RedisPublisher, RedisResponse};
    use weir_plugins_shared::config_checks::ConfigErrors;
    use weir_plugins_shared::redis::Redis;
    use weir_plugins_testkit::*;

    #[derive(Default)]
    struct RecordingPublisher(RefCell<Vec<RedisCall>>);

    impl RedisPublisher for RecordingPublisher {
        fn fire_and_forget(&self, call: RedisCall) {
            self.0.borrow_mut().push(call);
        }
    }

    fn store() -> RedisStore {
        let redis: Redis =
            serde_json::from_value(serde_json::json!({"host": "127.0.0.1"})).expect("a configuration");
        let server = redis
            .compile(&[], &mut ConfigErrors::default())
            .expect("a server");
        RedisStore::new(server, "weir", "native/default")
    }

    fn keys(call: &RedisCall) -> Vec<Vec<u8>> {
        call.parts().take(call.key_count()).map(<[u8]>::to_vec).collect()
    }

    /// The defect: what was fetched before another gateway forgot it was kept afterwards.
    #[test]
    fn what_is_kept_names_the_mark_before_its_fetch() {
        let (store, zone, outlet) = (
            store(),
            Zone::new(1 << 20, None),
            Rc::new(RecordingPublisher::default()),
        );
        let here = LocalCopy {
            zone: &zone,
            waited_ms: None,
        };
        let (key, mut exchange) = ([7; 32], exchange());
        let first = store.look(&mut exchange, &key, 1_000, &here);
        assert!(matches!(first, RedisLookup::Wait(_)));
        exchange.redis = Some(Some(RedisResponse {
            numbers: Vec::new(),
            texts: vec![b"mark".to_vec()],
            outlet: outlet.clone(),
        }));
        let RedisLookup::Known(_, location) = store.look(&mut exchange, &key, 1_000, &here) else {
            panic!("the Redis has answered");
        };
        let entry = CacheEntry {
            status: 200,
            headers: Arc::default(),
            body: b"body".as_slice().into(),
            times: Times {
                stored: 1_000,
                fresh: 2_000,
                keep: 2_000,
                ..Times::default()
            },
        };
        store.keep(&location, &[], &Headers::default(), &entry, &zone);
        store.keep(
            &location,
            &["accept".to_owned()],
            &Headers::default(),
            &entry,
            &zone,
        );
        store.renew(&location, &key, &entry);
        let marks: Vec<RedisCall> = (0..2).map(|_| store.forget_call(&key)).collect();
        let mark_key = format!("weir:cache:native/default:{{{}}}:forgotten", "07".repeat(32)).into_bytes();
        let posts = outlet.0.borrow();
        assert_eq!(posts.len(), 3);
        for call in posts.iter() {
            assert_eq!(call.parts().last(), Some(&b"mark"[..]));
            assert_eq!(keys(call).last(), Some(&mark_key));
        }
        let [one, other] = [&marks[0], &marks[1]].map(|call| call.parts().nth(2).map(<[u8]>::to_vec));
        assert!(one.is_some() && one != other, "each mark is new");
        assert!(marks.iter().all(|call| keys(call).last() == Some(&mark_key)));
    }
}
