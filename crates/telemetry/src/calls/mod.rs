//! Finished calls on their way to analytics: a ring for each worker, which one other thread empties.
//!
//! A record is 64 bytes of numbers: nothing is formatted, hashed or allocated while calls are served. If there are too
//! many, the excess is dropped and counted. For sampled calls, a second ring also has the texts. Names are stored
//! separately, by the numbers of the snapshot that served the call.

mod record;
mod ring;
#[cfg(test)]
mod tests;

pub use record::{CallRecord, CallTexts, METHODS, PROTOCOLS, SampledRecord, method_number, protocol_number};

use record::WORDS;
use ring::Ring;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::Thread;

/// Words of a record with texts.
const SAMPLED_WORDS: usize = 64;
/// Bytes of its texts.
const TEXT: usize = (SAMPLED_WORDS - WORDS - 1) * 8;
/// Records that a ring holds, and after how many of them the reader is woken. At 300,000 calls a second on one core it has
/// 40 milliseconds then.
const RECORDS: usize = 16_384;
const WOKEN_EVERY: u64 = 4_096;
/// The same of records with texts.
const SAMPLED_RECORDS: usize = 512;
const WOKEN_EVERY_SAMPLED: u64 = 128;
/// The longest path, request id, host and user agent that are kept, in bytes. Headers get what they leave.
const LENGTHS: [usize; 4] = [200, 72, 72, 96];

/// Where the counts of slow calls are, which are all sampled, and of failed ones.
const SLOW: usize = 31;
const FAILED: usize = 30;

/// The rings of one worker. Its thread alone may write, and one other thread alone may read.
#[derive(Debug)]
pub struct CallRings {
    calls: Ring<WORDS>,
    sampled: Ring<SAMPLED_WORDS>,
    sampling: Arc<Sampling>,
    reader: Arc<RingReader>,
    /// By reason of refusal, 0 for none: calls since the last one that was sampled. The writer's alone.
    skipped: [AtomicU32; SLOW + 1],
}

/// The thread that reads rings. It may sleep long: it is woken when there is much to read.
#[derive(Debug, Default)]
pub struct RingReader(OnceLock<Thread>);

impl RingReader {
    /// The present thread is the one, for good.
    pub fn is_here(&self) {
        let _is_first = self.0.set(std::thread::current());
    }

    #[cold]
    fn wake(&self) {
        if let Some(thread) = self.0.get() {
            thread.unpark();
        }
    }
}

/// How many calls the request log takes. The reader adjusts it.
#[derive(Debug)]
pub struct Sampling {
    one_in: AtomicU32,
    failed_one_in: AtomicU32,
    slow_us: AtomicU32,
}

impl Default for Sampling {
    fn default() -> Self {
        Self {
            one_in: AtomicU32::new(1),
            failed_one_in: AtomicU32::new(1),
            slow_us: AtomicU32::new(u32::MAX),
        }
    }
}

impl Sampling {
    /// Of ordinary calls, and of failed ones, one in so many is sampled; those that took longer are, all.
    pub fn set(&self, (one_in, failed_one_in): (u32, u32), slow_us: u32) {
        self.one_in.store(one_in.max(1), Ordering::Relaxed);
        self.failed_one_in.store(failed_one_in.max(1), Ordering::Relaxed);
        self.slow_us.store(slow_us, Ordering::Relaxed);
    }
}

impl CallRings {
    /// Empty rings.
    pub fn new(sampling: Arc<Sampling>, reader: Arc<RingReader>) -> Self {
        Self {
            calls: Ring::new(RECORDS),
            sampled: Ring::new(SAMPLED_RECORDS),
            sampling,
            reader,
            skipped: Default::default(),
        }
    }

    /// Writes a call. Says how many calls it stands for in the request log; `None`: it is not in there.
    #[inline]
    pub fn push(&self, record: &CallRecord) -> Option<u32> {
        let written = self.calls.push(&record.pack());
        if written.is_some_and(|count| count.is_multiple_of(WOKEN_EVERY)) {
            self.reader.wake();
        }
        let reason = self.reason(record);
        let count = self.skipped[reason].load(Ordering::Relaxed).saturating_add(1);
        let one_in = match reason {
            SLOW => 1,
            FAILED => self.sampling.failed_one_in.load(Ordering::Relaxed),
            _ => self.sampling.one_in.load(Ordering::Relaxed),
        };
        let is_sampled = count >= one_in;
        self.skipped[reason].store(if is_sampled { 0 } else { count }, Ordering::Relaxed);
        // As many as were skipped, and this one: right also when the share has just changed.
        is_sampled.then_some(count)
    }

    /// By what it is decided whether a call is sampled: [`FAILED`], [`SLOW`], or the reason why it was refused.
    #[inline]
    fn reason(&self, record: &CallRecord) -> usize {
        if record.status >= 500 {
            return FAILED;
        }
        if record.total_us > self.sampling.slow_us.load(Ordering::Relaxed) {
            return SLOW;
        }
        record.refusal.map_or(0, |it| usize::from(it) + 1).min(FAILED - 1)
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
        match self.sampled.push(&words) {
            Some(count) if count.is_multiple_of(WOKEN_EVERY_SAMPLED) => self.reader.wake(),
            Some(_) => {}
            // The next one stands for these calls as well.
            None => self.skipped[self.reason(record)].store(weight, Ordering::Relaxed),
        }
    }

    /// Reads and removes what was written.
    pub fn drain(&self, mut each: impl FnMut(&CallRecord)) {
        self.calls.drain(|words| each(&CallRecord::unpack(words)));
    }

    /// Reads and removes sampled calls.
    pub fn drain_sampled(&self, mut each: impl FnMut(SampledRecord<'_>)) {
        self.sampled.drain(|words| {
            let mut bytes = [0; TEXT];
            for (bytes, word) in bytes.as_chunks_mut().0.iter_mut().zip(&words[WORDS + 1..]) {
                *bytes = word.to_le_bytes();
            }
            let (mut texts, mut used) = (<[&[u8]; 4]>::default(), 0);
            for (place, text) in texts.iter_mut().enumerate() {
                let length = (words[WORDS] >> (8 * (3 - place))) as u8;
                let end = (used + usize::from(length)).min(bytes.len());
                *text = &bytes[used..end];
                used = end;
            }
            let headers = match bytes.get(used..used + 2) {
                Some(length) => {
                    let length = usize::from(u16::from_le_bytes([length[0], length[1]]));
                    bytes[used + 2..].get(..length).unwrap_or_default()
                }
                None => &[],
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
        (self.calls.dropped(), self.sampled.dropped())
    }
}

/// The results of calls and batches of analytics.
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
