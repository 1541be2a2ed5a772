//! Finished calls on their way to analytics: a ring for each worker, which one other thread empties.
//!
//! A record is 64 bytes of numbers: nothing is formatted, hashed or allocated where calls are served. What is too much
//! is dropped and counted. Of sampled calls, a second ring has the texts as well. Names stand beside, by the numbers of
//! the snapshot that served the call.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// Words of a record.
const WORDS: usize = 8;
/// Words of a record with texts.
const SAMPLED_WORDS: usize = 64;
/// Bytes of its texts.
const TEXT: usize = (SAMPLED_WORDS - WORDS - 1) * 8;
/// Records that a ring holds. At 300,000 calls a second on one core, it is full after 50 milliseconds.
const RECORDS: usize = 16_384;
/// Records with texts that a ring holds.
const SAMPLED_RECORDS: usize = 512;
/// The longest path, request id, host and user agent that are kept, in bytes. Headers get what they leave.
const LENGTHS: [usize; 4] = [200, 72, 72, 96];

/// Where the counts of calls are that are sampled always.
const ALWAYS: usize = 31;

/// Methods by the numbers of records; all others are the last one.
pub const METHODS: [&str; 10] = [
    "GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH", "CONNECT", "TRACE", "other",
];
/// Protocols by the numbers of records; what cannot be read is the last one.
pub const PROTOCOLS: [&str; 5] = ["http/1.0", "http/1.1", "http/2", "http/3", "other"];

/// A finished call.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CallRecord {
    /// When it ended, in microseconds since the rings were made.
    pub ended_us: u64,
    /// The snapshot that served it.
    pub generation: u32,
    /// The route's place in the snapshot.
    pub route: Option<u32>,
    /// The consumer's place.
    pub consumer: Option<u32>,
    /// The places of the upstream and of its target that was asked last.
    pub target: Option<(u32, u16)>,
    /// The status.
    pub status: u16,
    /// Why the gateway refused it: a place in [`crate::metrics::Refusal::ALL`].
    pub refusal: Option<u8>,
    /// The plugin that refused it, by its place among all plugins' names.
    pub plugin: Option<u16>,
    /// A place in [`METHODS`].
    pub method: u8,
    /// A place in [`PROTOCOLS`].
    pub protocol: u8,
    /// Whether the client left before the end.
    pub is_aborted: bool,
    /// Upstream calls beyond the first.
    pub retries: u8,
    /// The whole time, in microseconds.
    pub total_us: u32,
    /// The upstream's part; 0: none was asked.
    pub upstream_us: u32,
    /// Bytes received; beyond a terabyte, that.
    pub bytes_in: u64,
    /// Bytes sent.
    pub bytes_out: u64,
    /// The client's address: that of IPv4, or the network of IPv6.
    pub address: u64,
}

const NONE: u32 = u32::MAX;

impl CallRecord {
    #[inline]
    fn pack(&self) -> [u64; WORDS] {
        let (upstream, target) = self.target.unwrap_or((NONE, 0));
        let pair = |high: u32, low: u32| u64::from(high) << 32 | u64::from(low);
        let small = |high: u16, low: u16| u32::from(high) << 16 | u32::from(low);
        let refusal = self.refusal.map_or(0, |it| it + 1);
        let bytes_in = self.bytes_in.min((1 << 40) - 1);
        let kinds = u64::from(self.method) << 56 | u64::from(self.protocol) << 48;
        [
            self.ended_us,
            pair(self.route.unwrap_or(NONE), self.generation),
            pair(
                self.consumer.unwrap_or(NONE),
                small(self.status, self.plugin.map_or(0, |it| it + 1)),
            ),
            pair(self.total_us, self.upstream_us),
            kinds | u64::from(self.is_aborted) << 40 | bytes_in,
            self.bytes_out,
            pair(
                upstream,
                small(target, u16::from(self.retries) << 8 | u16::from(refusal)),
            ),
            self.address,
        ]
    }

    fn unpack(words: &[u64]) -> Self {
        let high = |place: usize| (words[place] >> 32) as u32;
        let low = |place: usize| words[place] as u32;
        let some = |value: u32| (value != NONE).then_some(value);
        Self {
            ended_us: words[0],
            route: some(high(1)),
            generation: low(1),
            consumer: some(high(2)),
            status: (low(2) >> 16) as u16,
            plugin: (low(2) as u16).checked_sub(1),
            total_us: high(3),
            upstream_us: low(3),
            method: (words[4] >> 56) as u8,
            protocol: (words[4] >> 48) as u8,
            is_aborted: words[4] >> 40 & 1 == 1,
            bytes_in: words[4] & ((1 << 40) - 1),
            bytes_out: words[5],
            target: some(high(6)).map(|upstream| (upstream, (low(6) >> 16) as u16)),
            retries: (low(6) >> 8) as u8,
            refusal: (low(6) as u8).checked_sub(1),
            address: words[7],
        }
    }
}

/// What a sampled call tells besides.
#[derive(Debug, Clone, Copy, Default)]
pub struct CallTexts<'c> {
    /// The path, as the client wrote it.
    pub path: &'c [u8],
    /// The id.
    pub request_id: &'c [u8],
    /// The host.
    pub host: &'c [u8],
    /// The user agent.
    pub agent: &'c [u8],
    /// Headers that are kept, a line each. They are cut to the room that is left.
    pub headers: &'c [u8],
}

/// A sampled call.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SampledRecord {
    /// The call.
    pub record: CallRecord,
    /// How many calls it stands for.
    pub weight: u32,
    /// Its path, id, host and user agent, each perhaps cut.
    pub texts: [Vec<u8>; 4],
    /// Headers that are kept, a line each.
    pub headers: Vec<u8>,
}

/// A value on cache lines of its own, so that the two sides of a ring do not fight for one.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Apart(AtomicU64);

/// A ring with one writer and one reader.
#[derive(Debug)]
struct Ring<const LENGTH: usize> {
    records: Box<[[AtomicU64; LENGTH]]>,
    /// Records written. Only the writer changes it.
    written: Apart,
    /// Records read. Only the reader changes it.
    read: Apart,
    /// Records that found no room. Only the writer changes it.
    dropped: AtomicU64,
}

impl<const LENGTH: usize> Ring<LENGTH> {
    fn new(records: usize) -> Self {
        Self {
            records: (0..records)
                .map(|_| [const { AtomicU64::new(0) }; LENGTH])
                .collect(),
            written: Apart::default(),
            read: Apart::default(),
            dropped: AtomicU64::new(0),
        }
    }

    /// Writes a record. Says whether there was room.
    #[inline]
    fn push(&self, words: &[u64; LENGTH]) -> bool {
        let written = self.written.0.load(Ordering::Relaxed);
        // What the reader has read is no more read once it says so.
        let read = self.read.0.load(Ordering::Acquire);
        if written.wrapping_sub(read) >= self.records.len() as u64 {
            let dropped = self.dropped.load(Ordering::Relaxed);
            self.dropped.store(dropped + 1, Ordering::Relaxed);
            return false;
        }
        let slot = &self.records[written as usize % self.records.len()];
        for (place, word) in slot.iter().zip(words) {
            place.store(*word, Ordering::Relaxed);
        }
        self.written.0.store(written + 1, Ordering::Release);
        true
    }

    fn drain(&self, mut each: impl FnMut(&[u64; LENGTH])) {
        let written = self.written.0.load(Ordering::Acquire);
        let mut read = self.read.0.load(Ordering::Relaxed);
        while read != written {
            let slot = &self.records[read as usize % self.records.len()];
            let words = std::array::from_fn(|place| slot[place].load(Ordering::Relaxed));
            read += 1;
            self.read.0.store(read, Ordering::Release);
            each(&words);
        }
    }
}

/// The rings of one worker. Its thread alone may write, and one other thread alone may read.
#[derive(Debug)]
pub struct CallRings {
    calls: Ring<WORDS>,
    sampled: Ring<SAMPLED_WORDS>,
    sampling: Arc<Sampling>,
    /// By reason of refusal, 0 for none: calls since the last one that was sampled. The writer's alone.
    skipped: [AtomicU32; ALWAYS + 1],
}

/// How many calls the request log takes. The reader adjusts it.
#[derive(Debug)]
pub struct Sampling {
    one_in: AtomicU32,
    slow_us: AtomicU32,
}

impl Default for Sampling {
    fn default() -> Self {
        Self {
            one_in: AtomicU32::new(1),
            slow_us: AtomicU32::new(u32::MAX),
        }
    }
}

impl Sampling {
    /// Of ordinary calls, one in so many is sampled; those that took longer are, all.
    pub fn set(&self, one_in: u32, slow_us: u32) {
        self.one_in.store(one_in.max(1), Ordering::Relaxed);
        self.slow_us.store(slow_us, Ordering::Relaxed);
    }
}

impl CallRings {
    /// Empty rings.
    pub fn new(sampling: Arc<Sampling>) -> Self {
        Self {
            calls: Ring::new(RECORDS),
            sampled: Ring::new(SAMPLED_RECORDS),
            sampling,
            skipped: Default::default(),
        }
    }

    /// Writes a call. Says how many calls it stands for in the request log; `None`: it is not in there.
    #[inline]
    pub fn push(&self, record: &CallRecord) -> Option<u32> {
        self.calls.push(&record.pack());
        let reason = self.reason(record);
        let count = self.skipped[reason].load(Ordering::Relaxed).saturating_add(1);
        let is_sampled = reason == ALWAYS || count >= self.sampling.one_in.load(Ordering::Relaxed);
        self.skipped[reason].store(if is_sampled { 0 } else { count }, Ordering::Relaxed);
        // As many as were skipped, and this one: right also when the share has just changed.
        is_sampled.then_some(count)
    }

    /// By what it is decided whether a call is sampled: [`ALWAYS`], or the reason why it was refused.
    #[inline]
    fn reason(&self, record: &CallRecord) -> usize {
        if record.status >= 500 || record.total_us > self.sampling.slow_us.load(Ordering::Relaxed) {
            return ALWAYS;
        }
        record.refusal.map_or(0, |it| usize::from(it) + 1).min(ALWAYS - 1)
    }

    /// Writes the texts of a sampled call.
    pub fn push_sampled(&self, record: &CallRecord, weight: u32, texts: CallTexts<'_>) {
        let mut words = [0; SAMPLED_WORDS];
        words[..WORDS].copy_from_slice(&record.pack());
        let mut bytes = [0; TEXT];
        let (mut used, mut lengths) = (0, 0_u64);
        let short = [texts.path, texts.request_id, texts.host, texts.agent];
        for (text, most) in short.into_iter().zip(LENGTHS) {
            let text = &text[..text.len().min(most)];
            bytes[used..used + text.len()].copy_from_slice(text);
            used += text.len();
            lengths = lengths << 8 | text.len() as u64;
        }
        if !texts.headers.is_empty() && used + 2 < TEXT {
            let headers = &texts.headers[..texts.headers.len().min(TEXT - used - 2)];
            bytes[used..used + 2].copy_from_slice(&(headers.len() as u16).to_le_bytes());
            bytes[used + 2..used + 2 + headers.len()].copy_from_slice(headers);
        }
        words[WORDS] = u64::from(weight) << 32 | lengths;
        for (word, bytes) in words[WORDS + 1..].iter_mut().zip(bytes.as_chunks().0) {
            *word = u64::from_le_bytes(*bytes);
        }
        if !self.sampled.push(&words) {
            // The next one stands for these calls as well.
            self.skipped[self.reason(record)].store(weight, Ordering::Relaxed);
        }
    }

    /// Reads and removes what was written.
    pub fn drain(&self, mut each: impl FnMut(&CallRecord)) {
        self.calls.drain(|words| each(&CallRecord::unpack(words)));
    }

    /// Reads and removes sampled calls.
    pub fn drain_sampled(&self, mut each: impl FnMut(SampledRecord)) {
        self.sampled.drain(|words| {
            let bytes: Vec<u8> = words[WORDS + 1..]
                .iter()
                .flat_map(|word| word.to_le_bytes())
                .collect();
            let (mut texts, mut used) = (<[Vec<u8>; 4]>::default(), 0);
            for (place, text) in texts.iter_mut().enumerate() {
                let length = (words[WORDS] >> (8 * (3 - place))) as u8;
                let end = (used + usize::from(length)).min(bytes.len());
                *text = bytes[used..end].to_vec();
                used = end;
            }
            let headers = match bytes.get(used..used + 2) {
                Some(length) => {
                    let length = usize::from(u16::from_le_bytes([length[0], length[1]]));
                    bytes[used + 2..].get(..length).unwrap_or_default().to_vec()
                }
                None => Vec::new(),
            };
            each(SampledRecord {
                record: CallRecord::unpack(&words[..WORDS]),
                weight: (words[WORDS] >> 32) as u32,
                texts,
                headers,
            });
        });
    }

    /// Calls that found no room: all, and sampled ones.
    pub fn dropped(&self) -> (u64, u64) {
        let of = |dropped: &AtomicU64| dropped.load(Ordering::Relaxed);
        (of(&self.calls.dropped), of(&self.sampled.dropped))
    }
}

/// The number of a method.
#[inline]
pub fn method_number(method: &[u8]) -> u8 {
    match method {
        b"GET" => 0,
        b"HEAD" => 1,
        b"POST" => 2,
        b"PUT" => 3,
        b"DELETE" => 4,
        b"OPTIONS" => 5,
        b"PATCH" => 6,
        b"CONNECT" => 7,
        b"TRACE" => 8,
        _ => 9,
    }
}

/// The number of a version of HTTP.
#[inline]
pub fn protocol_number(version: (u8, u8)) -> u8 {
    match version {
        (1, 0) => 0,
        (1, 1) => 1,
        (2, _) => 2,
        (3, _) => 3,
        _ => 4,
    }
}

/// What became of calls and batches of analytics.
#[derive(Debug, Default)]
pub struct AnalyticsStats {
    /// Calls that were not counted.
    pub dropped: AtomicU64,
    /// Batches that were stored or delivered.
    pub delivered: AtomicU64,
    /// Batches that could not be, and are tried again.
    pub failed: AtomicU64,
    /// Batches that were thrown away.
    pub lost: AtomicU64,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(number: u64) -> CallRecord {
        CallRecord {
            ended_us: number,
            generation: 3,
            route: Some(number as u32),
            consumer: Some(9),
            target: Some((5, 6)),
            status: 404,
            refusal: Some(2),
            plugin: Some(300),
            method: 4,
            protocol: 3,
            is_aborted: true,
            retries: 2,
            total_us: 1_000,
            upstream_us: 900,
            bytes_in: 70_000,
            bytes_out: 1 << 41,
            address: u64::MAX,
        }
    }

    #[test]
    fn records_come_back() {
        let none = CallRecord {
            route: None,
            consumer: None,
            target: None,
            refusal: None,
            plugin: None,
            is_aborted: false,
            ..record(1)
        };
        for record in [record(7), none, CallRecord::default()] {
            assert_eq!(CallRecord::unpack(&record.pack()), record);
        }
        assert_eq!(size_of_val(&record(1).pack()), 64);
        let huge = CallRecord {
            bytes_in: u64::MAX,
            ..record(1)
        };
        assert_eq!(
            CallRecord::unpack(&huge.pack()),
            CallRecord {
                bytes_in: (1 << 40) - 1,
                ..huge
            }
        );
    }

    #[test]
    fn a_full_ring_drops_and_counts() {
        let rings = CallRings::new(Arc::default());
        for number in 0..RECORDS as u64 + 5 {
            rings.push(&record(number));
        }
        let mut seen = Vec::new();
        rings.drain(|record| seen.push(record.ended_us));
        assert_eq!(seen, (0..RECORDS as u64).collect::<Vec<_>>());
        assert_eq!(rings.dropped(), (5, 0));
        rings.push(&record(1));
        seen.clear();
        rings.drain(|record| seen.push(record.ended_us));
        assert_eq!(seen, [1]);
    }

    #[test]
    fn a_writer_and_a_reader_work_at_the_same_time() {
        const COUNT: u64 = 300_000;
        let rings = CallRings::new(Arc::default());
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for number in 0..COUNT {
                    rings.push(&CallRecord {
                        address: !number,
                        ..record(number)
                    });
                }
            });
            let (mut next, mut seen) = (0, 0);
            while seen + rings.dropped().0 < COUNT {
                rings.drain(|record| {
                    assert!(
                        record.ended_us >= next && record.address == !record.ended_us,
                        "{record:?}"
                    );
                    (next, seen) = (record.ended_us + 1, seen + 1);
                });
            }
        });
    }

    #[test]
    fn sampled_calls_have_texts_and_weights_add_up() {
        let sampling = Arc::new(Sampling::default());
        let rings = CallRings::new(Arc::clone(&sampling));
        let long = [b'a'; 500];
        let texts = CallTexts {
            path: &long,
            request_id: b"id",
            host: b"",
            agent: b"curl/8",
            headers: b"x-tenant: acme",
        };
        rings.push_sampled(&record(3), 7, texts);
        rings.drain_sampled(|sampled| {
            assert_eq!((sampled.weight, sampled.record), (7, record(3)));
            let lengths: Vec<usize> = sampled.texts.iter().map(Vec::len).collect();
            assert_eq!(lengths, [200, 2, 0, 6]);
            assert_eq!(sampled.texts[3], b"curl/8");
            assert_eq!(sampled.headers, b"x-tenant: acme");
        });
        let full = CallTexts {
            path: &long,
            request_id: &long,
            host: &long,
            agent: &long,
            headers: &long,
        };
        rings.push_sampled(&record(3), 7, full);
        rings.push_sampled(
            &record(3),
            7,
            CallTexts {
                headers: &long,
                ..CallTexts::default()
            },
        );
        let mut lengths = Vec::new();
        rings.drain_sampled(|sampled| lengths.push((sampled.texts[3].len(), sampled.headers.len())));
        assert_eq!(lengths, [(96, 0), (0, TEXT - 2)]);
        let ordinary = CallRecord {
            refusal: None,
            status: 200,
            total_us: 10,
            ..record(1)
        };
        let mut weights = 0;
        for number in 0..10_050 {
            if number == 5_000 {
                sampling.set(100, 5_000);
            }
            weights += u64::from(rings.push(&ordinary).unwrap_or(0));
        }
        assert_eq!(weights, 10_000, "the last 50 are not sampled yet");
        assert_eq!(
            rings.push(&CallRecord {
                status: 502,
                ..ordinary
            }),
            Some(1)
        );
        assert_eq!(
            rings.push(&CallRecord {
                total_us: 5_001,
                ..ordinary
            }),
            Some(1)
        );
        assert_eq!(
            rings.push(&CallRecord {
                refusal: Some(4),
                ..ordinary
            }),
            None
        );
    }

    #[test]
    fn calls_that_find_no_room_count_with_the_next_one() {
        let rings = CallRings::new(Arc::default());
        let (fine, failed) = (
            CallRecord::default(),
            CallRecord {
                status: 502,
                ..CallRecord::default()
            },
        );
        let push = |record: &CallRecord| {
            if let Some(weight) = rings.push(record) {
                rings.push_sampled(record, weight, CallTexts::default());
            }
        };
        let mut weights = [0_u64; 2];
        for _ in 0..4 {
            (0..SAMPLED_RECORDS).for_each(|_| push(&fine));
            (0..300).for_each(|_| push(&failed));
            rings.drain_sampled(|sampled| {
                weights[usize::from(sampled.record.status == 502)] += u64::from(sampled.weight);
            });
        }
        push(&fine);
        push(&failed);
        rings.drain_sampled(|sampled| {
            weights[usize::from(sampled.record.status == 502)] += u64::from(sampled.weight);
        });
        assert_eq!(weights, [4 * SAMPLED_RECORDS as u64 + 1, 1_201]);
    }

    #[test]
    fn methods_and_protocols_are_those_of_their_tables() {
        for (number, method) in METHODS.iter().enumerate() {
            assert_eq!(usize::from(method_number(method.as_bytes())), number);
        }
        let versions = [(1, 0), (1, 1), (2, 0), (3, 0), (0, 9)];
        for (number, version) in versions.into_iter().enumerate() {
            assert_eq!(usize::from(protocol_number(version)), number);
        }
    }
}
