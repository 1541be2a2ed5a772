//! The scripts. Each works on keys of one hash tag, changes all or nothing, and answers with whole numbers.

use std::sync::LazyLock;
use weir_plugin::RedisScript;
use weir_plugins_shared::redis::script;

/// Checks windows, and counts a call in all of them if none is exhausted.
///
/// Two keys per window: its counter, and that of the window before (the same key again if that does not matter). Four
/// arguments per window: its limit; its kind (`c` ends at a time of the clock, `f` has a fixed length from the first
/// call, `s` slides); the time to forget it or the length, in milliseconds; the share of the window before. An optional
/// last argument says how many calls to count.
///
/// Returns the index of the first exhausted window (0: none), and for each window the calls counted, those of the
/// window before, and the milliseconds left (-1: the caller knows).
pub(crate) static TAKE: LazyLock<RedisScript> = LazyLock::new(|| {
    script(
        "local n, full, used, before = #KEYS / 2, 0, {}, {}
local cost = tonumber(ARGV[4 * n + 1] or 1)
for i = 1, n do
  local limit, kind = tonumber(ARGV[4 * i - 3]), ARGV[4 * i - 2]
  used[i] = tonumber(redis.call('GET', KEYS[2 * i - 1]) or 0) or 0
  before[i] = 0
  local more = 0
  if kind == 's' then
    before[i] = tonumber(redis.call('GET', KEYS[2 * i]) or 0) or 0
    more = math.min(before[i] * tonumber(ARGV[4 * i]), limit)
  end
  if full == 0 and used[i] + more + cost - 1 >= limit then full = i end
end
local out = {full}
for i = 1, n do
  local key, kind, time, left = KEYS[2 * i - 1], ARGV[4 * i - 2], ARGV[4 * i - 1], -1
  if kind == 'f' then left = redis.call('PTTL', key) end
  if full == 0 then
    if kind == 'f' and left < 0 then
      redis.call('SET', key, cost, 'PX', time)
      used[i], left = cost, tonumber(time)
    else
      used[i] = redis.call('INCRBY', key, cost)
      if kind ~= 'f' and used[i] == cost then redis.call('PEXPIREAT', key, time) end
    end
  elseif kind == 'f' and left < 0 then
    left = tonumber(time)
  end
  out[3 * i - 1], out[3 * i], out[3 * i + 1] = used[i], before[i], left
end
return out",
    )
});

/// Adds to windows, whatever limits there are; with 0 nothing is changed.
///
/// One key a window. The first argument is what is added, then come two a window: its kind (`c` or `f`), and the time to
/// forget it or the length, in milliseconds. Answers for each window with what is counted then, and the milliseconds left
/// (-1: for the caller to say).
pub(crate) static ADD: LazyLock<RedisScript> = LazyLock::new(|| {
    script(
        "local count, out = tonumber(ARGV[1]), {}
for i = 1, #KEYS do
  local key, kind, time, used, left = KEYS[i], ARGV[2 * i], ARGV[2 * i + 1], 0, -1
  if kind == 'f' then left = redis.call('PTTL', key) end
  if count == 0 then
    used = tonumber(redis.call('GET', key) or 0) or 0
    if kind == 'f' and left < 0 then left = tonumber(time) end
  elseif kind == 'f' and left < 0 then
    redis.call('SET', key, count, 'PX', time)
    used, left = count, tonumber(time)
  else
    used = redis.call('INCRBY', key, count)
    if kind ~= 'f' and used == count then redis.call('PEXPIREAT', key, time) end
  end
  out[2 * i - 1], out[2 * i] = used, left
end
return out",
    )
});

/// A leaky bucket: a hash of its level and of the time of the last call, by the server's clock.
///
/// One key. Arguments: calls a second, the burst, and the milliseconds after which an unused bucket is forgotten.
/// Answers with whether the call passes (1), and the bucket's level in millionths of a call.
pub(crate) static LEAK: LazyLock<RedisScript> = LazyLock::new(|| {
    script(
        "local rate, burst = tonumber(ARGV[1]), tonumber(ARGV[2])
local time = redis.call('TIME')
local now = time[1] * 1000 + time[2] / 1000
local state = redis.call('HMGET', KEYS[1], 'level', 'at')
local level = 0
if state[1] and state[2] then
  level = math.max(tonumber(state[1]) - rate * math.abs(now - tonumber(state[2])) / 1000 + 1, 0)
  if level > burst then return {0, math.floor(level * 1000000)} end
end
redis.call('HSET', KEYS[1], 'level', string.format('%.9f', level), 'at', string.format('%.3f', now))
redis.call('PEXPIRE', KEYS[1], ARGV[3])
return {1, math.floor(level * 1000000)}",
    )
});

/// Takes a place: a sorted set of calls by the time at which each is forgotten, by the server's clock.
///
/// One key. Arguments: how many may be taken, the milliseconds after which a place is free whatever became of its call,
/// and the call's name. Answers with whether the call has a place (1), and how many are taken.
pub(crate) static ENTER: LazyLock<RedisScript> = LazyLock::new(|| {
    script(
        "local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now)
local count = redis.call('ZCARD', KEYS[1])
if count >= tonumber(ARGV[1]) then return {0, count} end
redis.call('ZADD', KEYS[1], now + tonumber(ARGV[2]), ARGV[3])
redis.call('PEXPIRE', KEYS[1], ARGV[2])
return {1, count + 1}",
    )
});

/// Gives a place back. One key; the argument is the call's name.
pub(crate) static LEAVE: LazyLock<RedisScript> =
    LazyLock::new(|| script("return {redis.call('ZREM', KEYS[1], ARGV[1])}"));

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_are_known_by_their_sha1() {
        // From `printf %s 'return 1' | sha1sum`.
        assert_eq!(
            script("return 1").sha1,
            "e0e1f9fabfc9d4800c877a703b823ac0578ff8db"
        );
    }
}
