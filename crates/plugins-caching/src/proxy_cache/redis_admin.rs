//! Responses in a Redis as Admin APIs manage them: finding one, and forgetting one or all.
//!
//! **What it is not**: the way of calls to them, which workers go ([`RedisStore`]).

use super::disk_codec;
use super::entry::{CacheEntry, Freshness, Key, Slot};
use super::redis::{RedisStore, put_new_mark};
use std::sync::{Arc, LazyLock};
use weir_plugin::{RedisCall, RedisScript};
use weir_plugins_shared::redis::script;

/// Forgets some of the keys that match the pattern, and leaves a new mark for each response. Answers with the place to
/// go on from; `0`: that was all. Marks stay: without its mark, what is being fetched would be kept.
static FORGET_SOME: LazyLock<RedisScript> = LazyLock::new(|| {
    script(
        "local found = redis.call('SCAN', ARGV[1], 'MATCH', ARGV[2], 'COUNT', 500)
for _, key in ipairs(found[2]) do
  if string.sub(key, -10) ~= ':forgotten' then
    redis.call('DEL', key)
    if string.sub(key, -1) == '}' then
      redis.call('SET', key .. ':forgotten', ARGV[3], 'PX', ARGV[4])
    end
  end
end
return {found[1]}",
    )
});

/// Runs scripts outside of calls. Waits for the answer: not to be used where calls are served.
pub trait RedisScripts: Send + Sync {
    /// The numbers and the texts that a script answers with; `None`: there is no answer.
    fn run(&self, call: RedisCall) -> Option<(Vec<i64>, Vec<Vec<u8>>)>;
}

/// A Redis has not answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RedisUnavailable;

impl RedisStore {
    /// The usable response under a key; if responses vary, the latest.
    pub(super) fn find(
        &self,
        scripts: &dyn RedisScripts,
        key: &Key,
        now_ms: u64,
    ) -> Result<Option<Arc<CacheEntry>>, RedisUnavailable> {
        let slot = |variant: Option<&Key>| {
            let (_, texts) = scripts.run(self.get_call(key, variant)).ok_or(RedisUnavailable)?;
            Ok(texts.get(1).and_then(|text| disk_codec::read(text)))
        };
        let found = match slot(None)? {
            Some(Slot::Vary {
                latest: Some(latest), ..
            }) => slot(Some(&latest))?,
            found => found,
        };
        Ok(match found {
            Some(Slot::Response { entry, .. }) if entry.times.freshness(now_ms) != Freshness::Over => {
                Some(entry)
            }
            _ => None,
        })
    }

    /// Forgets what stands under a key, and all variants of it. Says whether there was something.
    pub(super) fn forget_one(&self, scripts: &dyn RedisScripts, key: &Key) -> Result<bool, RedisUnavailable> {
        let answer = scripts.run(self.forget_call(key));
        let (numbers, _) = answer.ok_or(RedisUnavailable)?;
        Ok(numbers.first().is_some_and(|count| *count > 0))
    }

    /// Forgets all.
    pub(super) fn forget_all(&self, scripts: &dyn RedisScripts) -> Result<(), RedisUnavailable> {
        let pattern = [&literal(self.prefix()), &b"*"[..]].concat();
        let mut cursor = b"0".to_vec();
        loop {
            let mut call = self.call(&FORGET_SOME);
            call.gives_texts = true;
            call.is_repeatable = true;
            call.argument(&[&cursor]);
            call.argument(&[&pattern]);
            put_new_mark(&mut call);
            let answer = scripts.run(call);
            let (_, texts) = answer.ok_or(RedisUnavailable)?;
            cursor = texts.into_iter().next().ok_or(RedisUnavailable)?;
            if cursor == b"0" {
                return Ok(());
            }
        }
    }
}

/// The pattern that only this text matches.
fn literal(text: &[u8]) -> Vec<u8> {
    let mut pattern = Vec::with_capacity(text.len());
    for byte in text {
        if b"*?[]\\".contains(byte) {
            pattern.push(b'\\');
        }
        pattern.push(*byte);
    }
    pattern
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_only_what_they_name() {
        assert_eq!(
            literal(b"weir:cache:kong/a*[b]\\:"),
            b"weir:cache:kong/a\\*\\[b\\]\\\\:"
        );
    }
}
