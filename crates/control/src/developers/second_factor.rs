//! A developer's second factor: the secret of an authenticator app, and recovery codes for when the app is lost.
//!
//! The secret is in the developer's document, sealed as the store is. Recovery codes are kept as hashes. **What it is not**: it
//! counts no guesses; [`crate::access::Attempts`] does.

use super::store::{Developer, DeveloperStore, failed, key};
use crate::access::TokenHash;
use crate::access::totp::TotpSecret;
use crate::api::Problem;
use crate::operational::OperationalError;
use aws_lc_rs::rand;
use axum::http::StatusCode;
use data_encoding::BASE32_NOPAD;
use serde::{Deserialize, Serialize};
use std::time::{Duration, SystemTime};

/// Recovery codes that are made at once.
const RECOVERY_CODES: usize = 10;
/// Random bytes of a recovery code: 80 bits, so that its hash betrays nothing.
const RECOVERY_BYTES: usize = 10;
/// How long a secret waits for its first code.
const SETTING_UP: Duration = Duration::from_secs(600);

/// The second factor of a developer, in addition to the password.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SecondFactor {
    /// The secret that the app shares.
    secret: TotpSecret,
    /// The step of the last code: neither it nor one before it counts again.
    last_step: u64,
    /// The hashes of the recovery codes that are left.
    recovery: Vec<TokenHash>,
}

impl SecondFactor {
    /// How many recovery codes are left.
    pub fn recovery_codes_left(&self) -> usize {
        self.recovery.len()
    }

    /// Uses a code of the app, or a recovery code. `false`: the code is wrong or was used.
    fn take(&mut self, code: &str, now: SystemTime) -> bool {
        let code: String = code.chars().filter(|it| !it.is_whitespace()).collect();
        if let Some(step) = self.secret.step_of_code(&code, self.last_step, now) {
            self.last_step = step;
            return true;
        }
        let hash = recovery_hash(&code);
        let before = self.recovery.len();
        self.recovery.retain(|it| *it != hash);
        self.recovery.len() < before
    }
}

/// The hash of a recovery code, however it was typed.
fn recovery_hash(code: &str) -> TokenHash {
    let plain = code.chars().filter(char::is_ascii_alphanumeric);
    TokenHash::of(&plain.collect::<String>().to_ascii_uppercase())
}

/// New recovery codes, and their hashes.
fn recovery_codes() -> Result<(Vec<String>, Vec<TokenHash>), Problem> {
    let mut codes = Vec::new();
    for _ in 0..RECOVERY_CODES {
        let mut bits = [0; RECOVERY_BYTES];
        rand::fill(&mut bits).map_err(|_| Problem::unreadable("the system yields no random bits"))?;
        let text = BASE32_NOPAD.encode(&bits).to_ascii_lowercase();
        let parts: Vec<&str> = (0..text.len()).step_by(4).map(|it| &text[it..it + 4]).collect();
        codes.push(parts.join("-"));
    }
    let hashes = codes.iter().map(|it| recovery_hash(it)).collect();
    Ok((codes, hashes))
}

/// A code does not count: it is wrong, too old, or was used before.
pub fn wrong_code(field: &str) -> Problem {
    let message = "this code is wrong or was already used: wait for the next one";
    Problem::step("check", vec![(field.to_owned(), message.to_owned())])
}

fn conflict(detail: &str) -> Problem {
    Problem::new(StatusCode::CONFLICT, detail)
}

/// Why a code was not used.
enum CodeRejection {
    /// The code is wrong or was used.
    Wrong,
    /// The store does not do its part.
    Failed(OperationalError),
}

impl From<OperationalError> for CodeRejection {
    fn from(error: OperationalError) -> Self {
        Self::Failed(error)
    }
}

impl DeveloperStore {
    /// Makes a secret that waits for its first code.
    pub async fn begin_second_factor(
        &self,
        portal: &str,
        developer: &Developer,
        now: SystemTime,
    ) -> Result<TotpSecret, Problem> {
        if developer.second_factor.is_some() {
            return Err(conflict("there is a second factor already: turn it off first"));
        }
        let secret = TotpSecret::random();
        let secret = secret.ok_or_else(|| Problem::unreadable("the system yields no random bits"))?;
        let key = key(portal, &format!("new-factors/{}", developer.id))?;
        let ends = Some(now + SETTING_UP);
        self.store.put(&key, &secret, (ends, now)).await.map_err(failed)?;
        Ok(secret)
    }

    /// Turns the factor on whose first code is right. Returns the recovery codes.
    pub async fn confirm_second_factor(
        &self,
        portal: &str,
        id: &str,
        code: &str,
        now: SystemTime,
    ) -> Result<Vec<String>, Problem> {
        let waiting = key(portal, &format!("new-factors/{id}"))?;
        let secret = self
            .store
            .read::<TotpSecret>(&waiting, now)
            .await
            .map_err(failed)?;
        let Some(secret) = secret.map(|it| it.value) else {
            return Err(conflict("this took too long: begin again"));
        };
        let code: String = code.chars().filter(|it| !it.is_whitespace()).collect();
        let step = secret.step_of_code(&code, 0, now);
        let last_step = step.ok_or_else(|| wrong_code("code"))?;
        let (codes, recovery) = recovery_codes()?;
        let factor = SecondFactor {
            secret,
            last_step,
            recovery,
        };
        let turn_on = |it: &mut Developer| {
            if it.second_factor.is_some() {
                return Err(conflict("there is a second factor already: turn it off first"));
            }
            it.second_factor = Some(factor.clone());
            Ok(Vec::new())
        };
        self.change(portal, id, now, turn_on).await?;
        self.store.remove([waiting], now).await.map_err(failed)?;
        Ok(codes)
    }

    /// Uses a code of a developer's second factor: of several calls with the same one, one gets `true`.
    pub async fn take_code(
        &self,
        portal: &str,
        id: &str,
        code: &str,
        now: SystemTime,
    ) -> Result<bool, Problem> {
        let key = key(portal, &format!("developers/{id}"))?;
        // A wrong code writes nothing: guesses must not fill the store.
        let used = self.store.update_with(&key, now, |known: Option<Developer>| {
            let mut developer = known.ok_or(CodeRejection::Wrong)?;
            let factor = developer.second_factor.as_mut();
            match factor.is_some_and(|it| it.take(code, now)) {
                true => Ok((developer, Vec::new())),
                false => Err(CodeRejection::Wrong),
            }
        });
        match used.await {
            Ok(_) => Ok(true),
            Err(CodeRejection::Wrong) => Ok(false),
            Err(CodeRejection::Failed(error)) => Err(failed(error)),
        }
    }

    /// Makes new recovery codes in place of those that there are.
    pub async fn renew_recovery_codes(
        &self,
        portal: &str,
        id: &str,
        now: SystemTime,
    ) -> Result<Vec<String>, Problem> {
        let (codes, hashes) = recovery_codes()?;
        let renew = |it: &mut Developer| match &mut it.second_factor {
            Some(factor) => {
                factor.recovery.clone_from(&hashes);
                Ok(Vec::new())
            }
            None => Err(conflict("there is no second factor")),
        };
        self.change(portal, id, now, renew).await?;
        Ok(codes)
    }

    /// Turns the second factor off.
    pub async fn remove_second_factor(
        &self,
        portal: &str,
        id: &str,
        now: SystemTime,
    ) -> Result<Developer, Problem> {
        let turn_off = |it: &mut Developer| match it.second_factor.take() {
            Some(_) => Ok(Vec::new()),
            None => Err(conflict("there is no second factor")),
        };
        self.change(portal, id, now, turn_off).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::UNIX_EPOCH;

    #[test]
    fn each_code_counts_once() {
        let (codes, recovery) = recovery_codes().expect("codes");
        let secret = TotpSecret::random().expect("random");
        let mut factor = SecondFactor {
            secret: secret.clone(),
            last_step: 0,
            recovery,
        };
        let at = |step: u64| UNIX_EPOCH + Duration::from_secs(1_800_000_000 + 30 * step);
        let now = at(0);
        let spaced = |code: &str| format!(" {} {}", &code[..3], &code[3..]);
        for (code, expected) in [
            (spaced(&secret.code(now)), true),
            (secret.code(now), false),
            (secret.code(at(1)), true),
            (secret.code(now), false),
            (codes[0].clone(), true),
            (codes[0].clone(), false),
            (codes[1].to_uppercase().replace('-', " "), true),
            (String::new(), false),
            ("000-000".to_owned(), false),
        ] {
            assert_eq!(factor.take(&code, now), expected, "{code:?}");
        }
        assert_eq!(factor.recovery_codes_left(), RECOVERY_CODES - 2);
        let kept = serde_json::to_string(&factor).expect("JSON");
        assert!(
            codes
                .iter()
                .all(|it| it.len() == 19 && !kept.contains(it.as_str()))
        );
    }
}
