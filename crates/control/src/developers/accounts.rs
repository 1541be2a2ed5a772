//! Accounts at identity providers, and whose they are.
//!
//! **What it is not**: a verified account is no verified developer. No login is possible with one that is not verified, whatever
//! the state of the developer is.

use super::store::{Developer, DeveloperStore, failed, hash, key};
use crate::api::Problem;
use serde::{Deserialize, Serialize};
use std::time::SystemTime;

/// Whose account it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Account {
    /// The developer.
    pub developer: String,
    /// Whether the one who has the account has the developer's mail address, too: the provider or a link in a mail says so.
    pub is_verified: bool,
}

/// The mark of an account in the store and in links: its hash.
pub fn mark_of(account: &str) -> String {
    hash(account)
}

impl DeveloperStore {
    /// The developer of an account.
    pub async fn by_account(
        &self,
        portal: &str,
        mark: &str,
        now: SystemTime,
    ) -> Result<Option<(Developer, Account)>, Problem> {
        let key = key(portal, &format!("accounts/{mark}"))?;
        let found = self.store.read::<Account>(&key, now).await.map_err(failed)?;
        let Some(account) = found.map(|it| it.value) else {
            return Ok(None);
        };
        let developer = self.developer(portal, &account.developer, now).await?;
        Ok(developer.map(|it| (it, account)))
    }

    /// Notes whose account it is.
    pub async fn put_account(
        &self,
        portal: &str,
        mark: &str,
        account: &Account,
        now: SystemTime,
    ) -> Result<(), Problem> {
        let key = key(portal, &format!("accounts/{mark}"))?;
        self.store.put(&key, account, (None, now)).await.map_err(failed)
    }

    /// Removes accounts of a developer.
    pub async fn remove_accounts(
        &self,
        portal: &str,
        developer: &str,
        is_meant: impl Fn(&Account) -> bool,
        now: SystemTime,
    ) -> Result<(), Problem> {
        let prefix = format!("portal/{portal}/accounts/");
        let all = self.store.list::<Account>(&prefix, now).await.map_err(failed)?;
        let own = all.into_iter().filter(|it| it.value.developer == developer);
        let keys = own.filter(|it| is_meant(&it.value)).map(|it| it.key);
        self.store.remove(keys, now).await.map_err(failed)
    }
}
