//! Personal tokens of developers: for programs that call a portal's API in their name. Of a token only a hash is kept, under
//! `portal/PORTAL/tokens/DEVELOPER/HASH`.
//!
//! **What it is not**: no key of an API. The gateway knows none of them.

use super::store::{Developer, DeveloperState, DeveloperStore, failed, hash, key, random_id};
use crate::access::Token;
use crate::api::Problem;
use crate::operational::{DocumentLimit, OperationalEntry, OverflowPolicy};
use serde::{Deserialize, Serialize};
use std::time::{Duration, SystemTime};
use weir_model::unix_time::seconds;
use weir_store::Key;

/// Personal tokens of a developer, at most.
const MAX_TOKENS: usize = 20;
/// The longest life of a personal token, in days.
pub const MAX_TOKEN_DAYS: u16 = 366;
/// The use of a token is written down at most so often.
const TOUCH: u64 = 3600;
/// The prefix of every token, so that one that leaks is recognised.
const MARK: &str = "weir_";

/// A personal token.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeveloperToken {
    /// By what it is revoked. It is no secret.
    pub id: String,
    /// Its purpose.
    pub name: String,
    /// Seconds since 1970.
    pub created: u64,
    /// When it was last used, to the hour; `None`: never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_used: Option<u64>,
}

/// The key of a token, with its owner; `None`: the token has another form.
fn token_key(portal: &str, token: &str) -> Option<(String, Key)> {
    let (developer, secret) = token.strip_prefix(MARK)?.split_once('_')?;
    let is_hex = |text: &str, length| text.len() == length && text.bytes().all(|it| it.is_ascii_hexdigit());
    if !is_hex(developer, 16) || !is_hex(secret, 64) {
        return None;
    }
    let key = key(portal, &format!("tokens/{developer}/{}", hash(token))).ok()?;
    Some((developer.to_owned(), key))
}

impl DeveloperStore {
    /// Makes a token for so many days. Returns its text, which is kept nowhere.
    pub async fn make_token(
        &self,
        portal: &str,
        developer: &str,
        (name, days): (&str, u16),
        now: SystemTime,
    ) -> Result<(String, DeveloperToken, SystemTime), Problem> {
        let random =
            Token::random().ok_or_else(|| Problem::unreadable("the system yields no random bits"))?;
        let secret = random.as_str().trim_start_matches(MARK);
        let text = format!("{MARK}{developer}_{secret}");
        let token = DeveloperToken {
            id: random_id()?,
            name: name.to_owned(),
            created: seconds(now),
            last_used: None,
        };
        let key = key(portal, &format!("tokens/{developer}/{}", hash(&text)))?;
        let prefix = format!("portal/{portal}/tokens/{developer}/");
        let bound = DocumentLimit {
            prefix: &prefix,
            max: MAX_TOKENS,
            when_full: OverflowPolicy::Refuse,
        };
        let ends = now + Duration::from_secs(86_400 * u64::from(days));
        let made = self.store.create(&key, &token, (Some(ends), now), bound).await;
        made.map_err(failed)?;
        Ok((text, token, ends))
    }

    /// The active developer of a token, and what the token is called. That it is used is written down.
    pub async fn find_by_token(
        &self,
        portal: &str,
        token: &str,
        now: SystemTime,
    ) -> Result<Option<(Developer, String)>, Problem> {
        let Some((developer, key)) = token_key(portal, token) else {
            return Ok(None);
        };
        let Some(known) = self
            .store
            .read::<DeveloperToken>(&key, now)
            .await
            .map_err(failed)?
        else {
            return Ok(None);
        };
        let developer = self.developer(portal, &developer, now).await?;
        let Some(developer) = developer.filter(|it| it.state == DeveloperState::Active) else {
            return Ok(None);
        };
        let last = known.value.last_used.unwrap_or_default();
        if seconds(now).saturating_sub(last) >= TOUCH {
            // One that is revoked meanwhile does not come back.
            let used = |it: Option<&OperationalEntry<DeveloperToken>>| {
                let known = it?;
                let last_used = Some(seconds(now));
                let used = DeveloperToken {
                    last_used,
                    ..known.value.clone()
                };
                Some((used, known.ends))
            };
            if let Err(error) = self.store.update(&key, now, used).await {
                tracing::warn!(%error, "the last use of a personal token cannot be stored");
            }
        }
        Ok(Some((developer, known.value.name)))
    }

    /// The tokens of a developer with their ends, the latest first.
    pub async fn tokens(
        &self,
        portal: &str,
        developer: &str,
        now: SystemTime,
    ) -> Result<Vec<OperationalEntry<DeveloperToken>>, Problem> {
        let prefix = format!("portal/{portal}/tokens/{developer}/");
        let found = self.store.list::<DeveloperToken>(&prefix, now).await;
        let mut all = found.map_err(failed)?;
        all.sort_by_key(|it| std::cmp::Reverse(it.created));
        Ok(all)
    }

    /// Revokes tokens of a developer. Returns how many.
    pub async fn revoke_tokens(
        &self,
        portal: &str,
        developer: &str,
        is_meant: impl Fn(&DeveloperToken) -> bool,
        now: SystemTime,
    ) -> Result<usize, Problem> {
        let all = self.tokens(portal, developer, now).await?;
        let meant = all.into_iter().filter(|it| is_meant(&it.value));
        let keys: Vec<Key> = meant.map(|it| it.key).collect();
        let count = keys.len();
        self.store.remove(keys, now).await.map_err(failed)?;
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::password::Passwords;
    use crate::operational::OperationalStore;
    use std::time::UNIX_EPOCH;

    const ANN: &str = "0123456789abcdef";

    fn at(seconds: u64) -> SystemTime {
        UNIX_EPOCH + Duration::from_secs(1_800_000_000 + seconds)
    }

    async fn people() -> DeveloperStore {
        let people = DeveloperStore::new(OperationalStore::in_memory(), Passwords::default());
        let ann = serde_json::json!({ "id": ANN, "mail": "ann@example.com", "name": "Ann", "state": "active", "created": 1 });
        let ann: Developer = serde_json::from_value(ann).expect("a developer");
        people.put("main", &ann, at(0)).await.expect("written");
        people
    }

    #[tokio::test]
    async fn a_token_is_its_developers_until_it_ends_or_is_revoked() {
        let people = people().await;
        let (text, made, _) = people
            .make_token("main", ANN, ("ci", 1), at(0))
            .await
            .expect("made");
        let kept = people.tokens("main", ANN, at(0)).await.expect("read");
        assert!(!kept[0].key.as_str().contains(&text) && text.starts_with("weir_0123456789abcdef_"));
        for (portal, token, now, expected) in [
            ("main", text.clone(), 0, true),
            ("main", text.clone(), 86_399, true),
            ("main", text.clone(), 86_400, false),
            ("other", text.clone(), 0, false),
            ("main", text.replace(ANN, "0123456789abcdee"), 0, false),
            ("main", text[..text.len() - 1].to_owned(), 0, false),
            ("main", format!("weir_{ANN}_{}", "0".repeat(64)), 0, false),
            ("main", String::new(), 0, false),
        ] {
            let found = people.find_by_token(portal, &token, at(now)).await.expect("read");
            assert_eq!(found.is_some(), expected, "{portal} {token} {now}");
        }
        let revoked = people
            .revoke_tokens("main", ANN, |it| it.id == made.id, at(0))
            .await;
        assert_eq!(revoked.expect("revoked"), 1);
        assert!(
            people
                .find_by_token("main", &text, at(0))
                .await
                .expect("read")
                .is_none()
        );
    }

    #[tokio::test]
    async fn its_use_is_written_down_once_an_hour_and_keeps_its_end() {
        let people = people().await;
        let (text, _, ends) = people
            .make_token("main", ANN, ("ci", 9), at(0))
            .await
            .expect("made");
        for (now, expected) in [(10, 10), (3_609, 10), (3_610, 3_610)] {
            people
                .find_by_token("main", &text, at(now))
                .await
                .expect("read")
                .expect("there");
            let kept = people.tokens("main", ANN, at(now)).await.expect("read");
            assert_eq!(kept[0].value.last_used, Some(seconds(at(expected))), "{now}");
            assert_eq!(kept[0].ends, Some(ends), "{now}");
        }
    }

    #[tokio::test]
    async fn their_number_is_bounded_and_those_of_the_suspended_mean_nothing() {
        let people = people().await;
        let mut last = String::new();
        for _ in 0..MAX_TOKENS {
            let made = people.make_token("main", ANN, ("ci", 1), at(0)).await;
            last = made.expect("made").0;
        }
        people
            .make_token("main", ANN, ("ci", 1), at(0))
            .await
            .expect_err("one too many");
        assert!(
            people
                .find_by_token("main", &last, at(0))
                .await
                .expect("read")
                .is_some()
        );
        let suspend = |it: &mut Developer| {
            it.state = DeveloperState::Suspended;
            Ok(Vec::new())
        };
        people
            .change("main", ANN, at(0), suspend)
            .await
            .expect("suspended");
        assert!(
            people
                .find_by_token("main", &last, at(0))
                .await
                .expect("read")
                .is_none()
        );
        let later = people.make_token("main", ANN, ("ci", 1), at(86_400)).await;
        later.expect("the others have ended");
    }
}
