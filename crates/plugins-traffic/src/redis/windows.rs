//! Windows whose counts stand in a Redis: what is asked there, and what the answers say.

use super::{Shared, scripts};
use weir_flow::rate_limit::{Verdict, Window, WindowLimit, WindowState, carried};
use weir_plugin::RedisCall;

/// How long the count of a window is kept after its end: clocks of gateways differ.
const GRACE_MS: u64 = 5_000;

/// Names the counter of a window behind the caller's name. `end_ms` is when it ends; for a window from the first call
/// that is for the Redis to say.
fn suffix(window: Window, end_ms: u64, out: &mut Vec<u8>) {
    use std::io::Write;
    let seconds = end_ms / 1_000;
    // Writing into memory does not fail.
    let _is_written = match window {
        Window::Second => write!(out, ":s{seconds}"),
        Window::Minute => write!(out, ":m{seconds}"),
        Window::Hour => write!(out, ":h{seconds}"),
        Window::Day => write!(out, ":d{seconds}"),
        Window::Week => write!(out, ":W{seconds}"),
        Window::Month => write!(out, ":M{seconds}"),
        Window::Year => write!(out, ":y{seconds}"),
        Window::Aligned { length_ms } => write!(out, ":a{length_ms}:{}", end_ms / length_ms.max(1)),
        Window::FromFirst { length_ms } => write!(out, ":f{length_ms}"),
        Window::Sliding { length_ms } => write!(out, ":w{length_ms}:{}", end_ms / length_ms.max(1)),
    };
}

/// The kind of a window as scripts know it, and its time.
fn kind(window: Window, end_ms: u64) -> (&'static [u8], u64) {
    match window {
        Window::FromFirst { length_ms } => (b"f", length_ms.max(1)),
        Window::Sliding { length_ms } => (b"s", end_ms.saturating_add(length_ms).saturating_add(GRACE_MS)),
        _ => (b"c", end_ms.saturating_add(GRACE_MS)),
    }
}

fn key(call: &mut RedisCall, shared: &Shared, name: &[u8], window: Window, end_ms: u64) {
    let mut end = Vec::with_capacity(24);
    suffix(window, end_ms, &mut end);
    call.key(&[&shared.prefix, b":", name, &end]);
}

/// Checks windows of the counters of this name, and counts a call in all of them, as so many, if none is exhausted.
pub(crate) fn take(
    shared: &Shared,
    name: &[u8],
    limits: &[WindowLimit],
    cost: u64,
    now_ms: u64,
) -> RedisCall {
    let mut call = shared.call(&scripts::TAKE);
    for limit in limits {
        let end_ms = limit.window.end_ms(now_ms);
        key(&mut call, shared, name, limit.window, end_ms);
        let before = match limit.window {
            Window::Sliding { length_ms } => end_ms.saturating_sub(length_ms.max(1)),
            _ => end_ms,
        };
        key(&mut call, shared, name, limit.window, before);
    }
    for limit in limits {
        let end_ms = limit.window.end_ms(now_ms);
        let (kind, time) = kind(limit.window, end_ms);
        let share = match limit.window {
            Window::Sliding { length_ms } => (end_ms - now_ms) as f64 / length_ms.max(1) as f64,
            _ => 0.0,
        };
        call.number(limit.limit);
        call.argument(&[kind]);
        call.number(time);
        call.number(share);
    }
    if cost != 1 {
        call.number(cost);
    }
    call
}

/// What [`take`] has come to. `None`: the answer is not one of the script's.
pub(crate) fn taken(
    limits: &[WindowLimit],
    now_ms: u64,
    numbers: &[i64],
    out: &mut [WindowState],
) -> Option<Verdict> {
    let (full, rest) = numbers.split_first()?;
    let (windows, []) = rest.as_chunks::<3>() else {
        return None;
    };
    if windows.len() != limits.len() {
        return None;
    }
    for ((limit, [used, before, left]), state) in limits.iter().zip(windows).zip(out) {
        let used = u64::try_from(*used).ok()?;
        let end_ms = match limit.window {
            Window::FromFirst { .. } => now_ms.saturating_add(u64::try_from(*left).unwrap_or(0)),
            window => window.end_ms(now_ms),
        };
        let carried = match limit.window {
            Window::Sliding { length_ms } => {
                let before = u64::try_from(*before).ok()?;
                carried(before, length_ms, end_ms, now_ms, limit.limit)
            }
            _ => 0.0,
        };
        *state = WindowState::of(*limit, used, carried, end_ms, now_ms, *full > 0);
    }
    match usize::try_from(*full).ok()? {
        0 => Some(Verdict::Allowed),
        place => Some(Verdict::Rejected {
            index_of_first_exhausted: place - 1,
        }),
    }
}

/// Adds to windows, or with 0 reads them. `of` are the windows, each with the name of its counters and, if it is not
/// the current one, its end.
pub(crate) fn add<'n>(
    shared: &Shared,
    of: impl Iterator<Item = (&'n [u8], Window, u64)> + Clone,
    count: u64,
) -> RedisCall {
    let mut call = shared.call(&scripts::ADD);
    for (name, window, end_ms) in of.clone() {
        key(&mut call, shared, name, window, end_ms);
    }
    call.number(count);
    for (_, window, end_ms) in of {
        let (kind, time) = kind(window, end_ms);
        call.argument(&[kind]);
        call.number(time);
    }
    call
}

/// Reads the result of [`add`]: the count in each window, and its end if the Redis decides it.
pub(crate) fn added(numbers: &[i64]) -> impl Iterator<Item = (u64, Option<u64>)> {
    let (windows, _) = numbers.as_chunks::<2>();
    windows
        .iter()
        .map(|[used, left]| (u64::try_from(*used).unwrap_or(0), u64::try_from(*left).ok()))
}
