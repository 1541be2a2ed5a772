//! Passwords: hashed with Argon2id, a few at a time.
//!
//! A hash takes tens of milliseconds and 19 MiB on purpose. So few are made at once, and few may wait: a flood of logins
//! is refused and does not take the cores from anything else.

use super::TokenHash;
use argon2::{Algorithm, Argon2, Params, Version};
use aws_lc_rs::constant_time::verify_slices_are_equal;
use aws_lc_rs::rand;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::sync::{Arc, OnceLock};
use tokio::sync::Semaphore;

/// The shortest password, in characters (NIST SP 800-63B-4 asks for at least 8).
pub const MIN_LENGTH: usize = 10;
/// The longest, in bytes.
pub const MAX_LENGTH: usize = 1024;
/// Hashes that are made at once.
const AT_ONCE: usize = 2;
/// Hashes that are made or wait, at most.
const MAX_WAITING: usize = 32;
/// The length of salt and hash, in bytes.
const SALT: usize = 16;
const HASH: usize = 32;
/// Bounds on what a stored hash may ask for: memory in KiB, and passes.
const MAX_MEMORY: u32 = 256 * 1024;
const MAX_PASSES: u32 = 16;

/// The cost of a hash.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cost {
    /// Memory, in KiB.
    pub memory: u32,
    /// Passes over it.
    pub passes: u32,
}

impl Default for Cost {
    /// As the OWASP Password Storage Cheat Sheet recommends for Argon2id with one lane.
    fn default() -> Self {
        Self {
            memory: 19 * 1024,
            passes: 2,
        }
    }
}

/// The hash of a password, in the PHC string format.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct PasswordHash(String);

/// Hashes are not for logs.
impl fmt::Debug for PasswordHash {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("PasswordHash")
    }
}

/// Why a password was not hashed or compared.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum PasswordError {
    /// Too many wait already.
    #[error("too many logins at once; try again in a few seconds")]
    Busy,
    /// The system fails.
    #[error("the password cannot be hashed: {0}")]
    Failed(&'static str),
}

fn argon2(cost: Cost) -> Option<Argon2<'static>> {
    let params = Params::new(cost.memory, cost.passes, 1, Some(HASH)).ok()?;
    Some(Argon2::new(Algorithm::Argon2id, Version::V0x13, params))
}

impl PasswordHash {
    fn new(password: &str, salt: [u8; SALT], cost: Cost) -> Option<Self> {
        let mut hash = [0; HASH];
        argon2(cost)?
            .hash_password_into(password.as_bytes(), &salt, &mut hash)
            .ok()?;
        Some(Self(format!(
            "$argon2id$v=19$m={},t={},p=1${}${}",
            cost.memory,
            cost.passes,
            STANDARD_NO_PAD.encode(salt),
            STANDARD_NO_PAD.encode(hash)
        )))
    }

    /// Cost, salt and hash; `None`: it has another form.
    fn parts(&self) -> Option<(Cost, Vec<u8>, Vec<u8>)> {
        let rest = self.0.strip_prefix("$argon2id$v=19$m=")?;
        let mut parts = rest.split('$');
        let (cost, salt, hash) = (parts.next()?, parts.next()?, parts.next()?);
        let (memory, passes) = cost.strip_suffix(",p=1")?.split_once(",t=")?;
        let cost = Cost {
            memory: memory.parse().ok().filter(|it| *it <= MAX_MEMORY)?,
            passes: passes.parse().ok().filter(|it| *it <= MAX_PASSES)?,
        };
        let bytes = |text: &str| STANDARD_NO_PAD.decode(text).ok();
        parts
            .next()
            .is_none()
            .then_some((cost, bytes(salt)?, bytes(hash)?))
    }

    /// A mark in its place, for output that must not have the hash.
    pub fn mark(&self) -> String {
        TokenHash::of(&self.0).to_string()
    }

    fn matches(&self, password: &str) -> bool {
        let Some((cost, salt, expected)) = self.parts() else {
            return false;
        };
        let mut hash = [0; HASH];
        let hashed = argon2(cost).is_some_and(|it| {
            it.hash_password_into(password.as_bytes(), &salt, &mut hash)
                .is_ok()
        });
        hashed && verify_slices_are_equal(&hash, &expected).is_ok()
    }
}

/// Hashes passwords. Cheap to share.
#[derive(Debug, Clone)]
pub struct Passwords(Arc<Hashing>);

#[derive(Debug)]
struct Hashing {
    cost: Cost,
    /// Places to wait in, and turns.
    places: Arc<Semaphore>,
    turns: Semaphore,
    /// A hash to compare with if there is no user: it takes as long.
    placeholder: OnceLock<PasswordHash>,
}

impl Default for Passwords {
    fn default() -> Self {
        Self::new(Cost::default())
    }
}

impl Passwords {
    /// With a cost of its own.
    pub fn new(cost: Cost) -> Self {
        Self(Arc::new(Hashing {
            cost,
            places: Arc::new(Semaphore::new(MAX_WAITING)),
            turns: Semaphore::new(AT_ONCE),
            placeholder: OnceLock::new(),
        }))
    }

    /// Hashes a password. To be called inside of a tokio runtime.
    ///
    /// # Errors
    /// There are too many at once, or the system fails.
    pub async fn hash(&self, password: String) -> Result<PasswordHash, PasswordError> {
        let cost = self.0.cost;
        let mut salt = [0; SALT];
        rand::fill(&mut salt).map_err(|_| PasswordError::Failed("no random bits"))?;
        let hashed = self
            .work(move |_| PasswordHash::new(&password, salt, cost))
            .await?;
        hashed.ok_or(PasswordError::Failed("Argon2 refuses"))
    }

    /// Whether a password is the one of a hash. Without a hash it takes as long and is not.
    ///
    /// # Errors
    /// There are too many at once, or the system fails.
    pub async fn matches(
        &self,
        password: String,
        known: Option<PasswordHash>,
    ) -> Result<bool, PasswordError> {
        self.work(move |hashing| match known {
            Some(known) => password.len() <= MAX_LENGTH && known.matches(&password),
            None => {
                let placeholder = hashing.placeholder.get_or_init(|| {
                    let hash = PasswordHash::new("", [0; SALT], hashing.cost);
                    hash.unwrap_or_else(|| PasswordHash(String::new()))
                });
                let _takes_as_long = placeholder.matches(&password);
                false
            }
        })
        .await
    }

    async fn work<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Hashing) -> T + Send + 'static,
    ) -> Result<T, PasswordError> {
        let place = Arc::clone(&self.0.places).try_acquire_owned();
        let place = place.map_err(|_| PasswordError::Busy)?;
        let turn = self.0.turns.acquire().await;
        let hashing = Arc::clone(&self.0);
        let done = tokio::task::spawn_blocking(move || work(&hashing)).await;
        drop((turn, place));
        done.map_err(|_| PasswordError::Failed("it has panicked"))
    }
}

/// The fault of a new password, if it has one.
pub fn fault_of(password: &str, name: &str) -> Option<String> {
    let distinct = password.chars().collect::<std::collections::HashSet<_>>().len();
    if password.chars().count() < MIN_LENGTH {
        Some(format!("a password has at least {MIN_LENGTH} characters"))
    } else if password.len() > MAX_LENGTH {
        Some(format!("a password has at most {MAX_LENGTH} bytes"))
    } else if distinct < 4 || password.eq_ignore_ascii_case(name) {
        Some("this password is found by the first guesses; choose another one".to_owned())
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CHEAP: Cost = Cost {
        memory: 64,
        passes: 1,
    };

    #[tokio::test]
    async fn only_the_right_password_matches() {
        let passwords = Passwords::new(CHEAP);
        let hash = passwords.hash("correct horse".to_owned()).await.expect("hashed");
        let text = serde_json::to_string(&hash).expect("JSON");
        assert!(text.starts_with("\"$argon2id$v=19$m=64,t=1,p=1$"), "{text}");
        assert_eq!(format!("{hash:?}"), "PasswordHash");
        let other = passwords.hash("correct horse".to_owned()).await.expect("hashed");
        assert_ne!(hash, other, "each has a salt of its own");
        let broken = |text: &str| PasswordHash(text.to_owned());
        for (password, known, expected) in [
            ("correct horse", Some(hash.clone()), true),
            ("Correct horse", Some(hash.clone()), false),
            ("", Some(hash), false),
            ("", None, false),
            ("x", Some(broken("")), false),
            (
                "x",
                Some(broken("$argon2id$v=19$m=9999999,t=1,p=1$YWFhYWFhYWE$YQ")),
                false,
            ),
            (
                "x",
                Some(broken("$argon2i$v=19$m=64,t=1,p=1$YWFhYWFhYWE$YQ")),
                false,
            ),
        ] {
            let done = passwords.matches(password.to_owned(), known).await;
            assert_eq!(done, Ok(expected), "{password}");
        }
    }

    /// RFC 9106 gives no vector without a secret, so this one is of the reference program:
    /// `echo -n password | argon2 somesalt -id -t 2 -k 65536 -p 1 -l 32`.
    #[test]
    fn hashes_are_those_of_the_reference() {
        let known = "$argon2id$v=19$m=65536,t=2,p=1$c29tZXNhbHQ$CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc";
        let known = PasswordHash(known.to_owned());
        assert!(known.matches("password"));
        assert!(!known.matches("passwords"));
    }

    #[tokio::test]
    async fn floods_are_refused_and_do_not_wait() {
        let passwords = Passwords::new(CHEAP);
        let all: Vec<_> = (0..MAX_WAITING)
            .map(|_| {
                Arc::clone(&passwords.0.places)
                    .try_acquire_owned()
                    .expect("a place")
            })
            .collect();
        assert_eq!(
            passwords.matches("x".to_owned(), None).await,
            Err(PasswordError::Busy)
        );
        drop(all);
        assert_eq!(passwords.matches("x".to_owned(), None).await, Ok(false));
    }

    #[test]
    fn weak_passwords_are_refused() {
        for (password, is_good) in [
            ("short", false),
            ("aaaaaaaaaaaa", false),
            ("alice.alice", false),
            ("tr0ub4dor&3", true),
            ("ÄÖÜäöüßéèê", true),
        ] {
            assert_eq!(fault_of(password, "Alice.Alice").is_none(), is_good, "{password}");
        }
        assert!(fault_of(&"ab1-".repeat(300), "x").is_some());
    }
}
