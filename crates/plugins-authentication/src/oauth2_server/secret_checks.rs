//! Checks client secrets whose hashes are slow to compute, and bounds what that costs: a right secret is computed once, and
//! wrong ones only as often as there is room for them. Otherwise a flood of wrong secrets would keep the workers busy.
//!
//! **What it is not**: it does not bound calls of the token endpoint; `rate-limit` does.

use super::shared::network;
use aws_lc_rs::digest::{Context, SHA256};
use aws_lc_rs::pbkdf2;
use std::collections::HashMap;
use std::net::IpAddr;
use std::num::NonZeroU32;
use std::sync::{Arc, Mutex, PoisonError};
use weir_flow::expiring::{ExpiringMap, Lifetime};

/// Once so many rounds were computed in a second, no more are begun: about an eighth of a core.
const ROUNDS_PER_SECOND: u64 = 200_000;
/// The same for callers of one network, so that they leave room for others.
const ROUNDS_OF_NETWORK: u64 = 50_000;
/// Right secrets that are remembered, in bytes.
const RIGHT_BYTES: usize = 8 << 20;
/// What a right secret takes in memory.
const RIGHT_ENTRY_BYTES: usize = 96;
/// How long a right secret is remembered.
const RIGHT_MS: u64 = 7 * 86_400_000;

/// A hash that is slow to compute: PBKDF2 with HMAC-SHA-512 (RFC 8018).
pub(super) struct SlowHash {
    pub(super) rounds: NonZeroU32,
    pub(super) salt: Vec<u8>,
    pub(super) hash: Vec<u8>,
}

/// What is known of a secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SecretCheck {
    Right,
    Wrong,
    /// It was not looked at: too many others were computed in this second.
    TooMany,
}

/// Who shows a secret, and when.
#[derive(Clone, Copy)]
pub(super) struct SecretAttempt<'a> {
    pub(super) secret: &'a str,
    pub(super) from: IpAddr,
    pub(super) now_ms: u64,
}

/// The checks of all instances. They outlive changes of the configuration.
pub(super) struct SecretChecks {
    right: Arc<ExpiringMap<()>>,
    spent: Mutex<SpentRounds>,
}

/// The rounds that were computed in a second.
#[derive(Default)]
struct SpentRounds {
    second: u64,
    all: u64,
    by_network: HashMap<IpAddr, u64>,
}

impl Default for SecretChecks {
    fn default() -> Self {
        Self {
            right: ExpiringMap::new(RIGHT_BYTES),
            spent: Mutex::default(),
        }
    }
}

impl SecretChecks {
    pub(super) fn check(&self, known: &SlowHash, attempt: SecretAttempt<'_>) -> SecretCheck {
        let key = key(known, attempt.secret);
        if self.right.get(&key, attempt.now_ms).is_some() {
            return SecretCheck::Right;
        }
        let mut spent = self.spent.lock().unwrap_or_else(PoisonError::into_inner);
        let is_admitted = spent.admit(known.rounds, attempt);
        drop(spent);
        if !is_admitted {
            return SecretCheck::TooMany;
        }
        let secret = attempt.secret.as_bytes();
        let algorithm = pbkdf2::PBKDF2_HMAC_SHA512;
        if pbkdf2::verify(algorithm, known.rounds, &known.salt, secret, &known.hash).is_err() {
            return SecretCheck::Wrong;
        }
        let lifetime = Lifetime::fresh(RIGHT_MS);
        self.right
            .insert(&key, (), RIGHT_ENTRY_BYTES, lifetime, attempt.now_ms);
        SecretCheck::Right
    }
}

impl SpentRounds {
    /// Whether so many rounds may be computed. They are counted then.
    fn admit(&mut self, rounds: NonZeroU32, attempt: SecretAttempt<'_>) -> bool {
        let second = attempt.now_ms / 1_000;
        if self.second != second {
            (self.second, self.all) = (second, 0);
            self.by_network.clear();
        }
        if self.all >= ROUNDS_PER_SECOND {
            return false;
        }
        let of_network = self.by_network.entry(network(attempt.from)).or_insert(0);
        if *of_network >= ROUNDS_OF_NETWORK {
            return false;
        }
        let rounds = u64::from(rounds.get());
        *of_network += rounds;
        self.all += rounds;
        true
    }
}

/// Another hash, or another secret, has another key.
fn key(known: &SlowHash, secret: &str) -> [u8; 32] {
    let mut context = Context::new(&SHA256);
    let rounds = known.rounds.get().to_le_bytes();
    for part in [&rounds[..], &known.salt, &known.hash, secret.as_bytes()] {
        context.update(&(part.len() as u64).to_le_bytes());
        context.update(part);
    }
    let mut key = [0; 32];
    key.copy_from_slice(context.finish().as_ref());
    key
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{Ipv4Addr, Ipv6Addr};

    const NOW: u64 = 1_795_188_660_000;

    fn slow(secret: &str, rounds: u32) -> SlowHash {
        let rounds = NonZeroU32::new(rounds).expect("not 0");
        let mut hash = vec![0; 32];
        let algorithm = pbkdf2::PBKDF2_HMAC_SHA512;
        pbkdf2::derive(algorithm, rounds, b"salt", secret.as_bytes(), &mut hash);
        SlowHash {
            rounds,
            salt: b"salt".to_vec(),
            hash,
        }
    }

    fn attempt(secret: &str, from: impl Into<IpAddr>, now_ms: u64) -> SecretAttempt<'_> {
        SecretAttempt {
            secret,
            from: from.into(),
            now_ms,
        }
    }

    /// The defect: each wrong secret kept a worker busy for as long as its client's hash takes, however many came.
    #[test]
    fn a_flood_of_wrong_secrets_costs_a_bounded_number_of_rounds() {
        let checks = SecretChecks::default();
        let known = slow("right", 10_000);
        let flood = |from: u8, now_ms| {
            let addresses = (0..100).map(|it| format!("wrong {it}"));
            let found = addresses.map(|it| checks.check(&known, attempt(&it, [10, 0, 0, from], now_ms)));
            found.filter(|it| *it == SecretCheck::Wrong).count()
        };
        // 50,000 rounds for one address, 200,000 for all.
        let computed: Vec<usize> = (1..=6).map(|from| flood(from, NOW)).collect();
        assert_eq!(computed, [5, 5, 5, 5, 0, 0]);
        let late = checks.check(&known, attempt("right", [10, 0, 0, 9], NOW));
        assert_eq!(late, SecretCheck::TooMany);
        assert_eq!(flood(1, NOW + 1_000), 5);
    }

    #[test]
    fn a_right_secret_stays_right_during_a_flood() {
        let checks = SecretChecks::default();
        let known = slow("right", 50_000);
        let address = Ipv4Addr::new(10, 0, 0, 1);
        let check = |known: &SlowHash, secret| checks.check(known, attempt(secret, address, NOW));
        assert_eq!(check(&known, "right"), SecretCheck::Right);
        assert_eq!(check(&known, "wrong"), SecretCheck::TooMany);
        assert_eq!(check(&known, "right"), SecretCheck::Right);
        // Another hash of the same secret is another one.
        assert_eq!(check(&slow("right", 40_000), "right"), SecretCheck::TooMany);
        let next = checks.check(&slow("other", 50_000), attempt("right", address, NOW + 1_000));
        assert_eq!(next, SecretCheck::Wrong);
    }

    #[test]
    fn a_network_of_ipv6_is_one_caller() {
        let checks = SecretChecks::default();
        let known = slow("right", 50_000);
        for (host, expected) in [(1, SecretCheck::Wrong), (2, SecretCheck::TooMany)] {
            let from = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, host);
            assert_eq!(
                checks.check(&known, attempt("wrong", from, NOW)),
                expected,
                "{host}"
            );
        }
    }
}
