//! Ids for calls, each made in one allocation.

use super::{Generator, Process};
use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use uuid::Builder;
use weir_plugin::Exchange;

/// A generator made ready.
pub(super) struct Ids {
    kind: Kind,
    process: Arc<Process>,
}

enum Kind {
    Uuid,
    UuidV7,
    UuidCounter,
    Tracker,
    Random { characters: Vec<u8>, length: u16 },
    Ksuid,
}

/// The 64 characters of nanoids, each 6 bits.
const NANOID: &str = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz-";
const BASE62: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/// Seconds from the Unix epoch to that of ksuids, 2014-05-13.
const KSUID_EPOCH: u64 = 1_400_000_000;

impl Ids {
    /// # Errors
    /// Says what was expected.
    pub(super) fn new(generator: Generator, process: Arc<Process>) -> Result<Self, &'static str> {
        let kind = match generator {
            Generator::Uuid => Kind::Uuid,
            Generator::UuidV7 => Kind::UuidV7,
            Generator::UuidCounter => Kind::UuidCounter,
            Generator::Tracker => Kind::Tracker,
            Generator::Ksuid => Kind::Ksuid,
            Generator::Nanoid => Kind::Random {
                characters: NANOID.into(),
                length: 21,
            },
            Generator::Random { characters, length } => {
                let is_good = characters.bytes().all(|byte| byte.is_ascii_graphic());
                if !is_good || !(1..=256).contains(&characters.len()) {
                    return Err("expected 1 to 256 characters of visible ASCII");
                }
                if !(1..=256).contains(&length) {
                    return Err("expected a length from 1 to 256");
                }
                Kind::Random {
                    characters: characters.into_bytes(),
                    length,
                }
            }
        };
        Ok(Self { kind, process })
    }

    /// An id for this call.
    pub(super) fn next(&self, exchange: &mut Exchange) -> String {
        match &self.kind {
            Kind::Uuid => hyphenated(Builder::from_random_bytes(random_bytes(exchange))),
            Kind::UuidV7 => {
                let [tail @ .., _, _, _, _, _, _] = random_bytes(exchange);
                hyphenated(Builder::from_unix_timestamp_millis(exchange.unix_ms(), &tail))
            }
            Kind::UuidCounter => format!("{}#{}", self.process.uuid, self.count()),
            Kind::Tracker => self.tracker(exchange),
            Kind::Random { characters, length } => random_text(exchange, characters, *length),
            Kind::Ksuid => ksuid(exchange),
        }
    }

    fn count(&self) -> u64 {
        self.process.counter.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// The port that the client calls from stands for the connection.
    fn tracker(&self, exchange: &mut Exchange) -> String {
        let unix_ms = exchange.unix_ms();
        let (local, peer) = (exchange.request.local, exchange.request.peer);
        let mut id = String::with_capacity(64);
        let written = write!(
            id,
            "{}-{}-{}-{}-{}-{}.{:03}",
            local.ip(),
            local.port(),
            self.process.id,
            peer.port(),
            self.count(),
            unix_ms / 1_000,
            unix_ms % 1_000
        );
        debug_assert!(written.is_ok());
        id
    }
}

fn hyphenated(uuid: Builder) -> String {
    uuid.into_uuid().hyphenated().to_string()
}

fn random_bytes(exchange: &mut Exchange) -> [u8; 16] {
    let (high, low) = (exchange.random_u64(), exchange.random_u64());
    (u128::from(high) << 64 | u128::from(low)).to_be_bytes()
}

fn random_text(exchange: &mut Exchange, characters: &[u8], length: u16) -> String {
    let pick = |_| {
        // The upper half of the product is even over all characters, but for one part in 2^56.
        let at = (u128::from(exchange.random_u64()) * characters.len() as u128) >> 64;
        char::from(characters[at as usize])
    };
    (0..length).map(pick).collect()
}

/// 4 bytes of time and 16 of chance, as 27 digits in base 62.
fn ksuid(exchange: &mut Exchange) -> String {
    let seconds = (exchange.unix_ms() / 1_000).saturating_sub(KSUID_EPOCH) as u32;
    let mut number = [0_u32; 5];
    number[0] = seconds;
    let chance = random_bytes(exchange);
    for (word, bytes) in number[1..].iter_mut().zip(chance.as_chunks::<4>().0) {
        *word = u32::from_be_bytes(*bytes);
    }
    let mut digits = [0_u8; 27];
    for digit in digits.iter_mut().rev() {
        let mut rest = 0;
        for word in &mut number {
            let value = rest << 32 | u64::from(*word);
            *word = (value / 62) as u32;
            rest = value % 62;
        }
        *digit = BASE62[rest as usize];
    }
    digits.iter().copied().map(char::from).collect()
}
