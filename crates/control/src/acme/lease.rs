//! One process at a time gets certificates: it holds a lease, and commits only while it does.

use super::AcmeError;
use super::documents::LEASE;
use serde::{Deserialize, Serialize};
use std::time::{Duration, SystemTime};
use weir_store::{Change, CommitError, Key, Revision, Store, Transaction};

/// How long a lease lasts that is not renewed: longer than a certificate may take.
pub const LIFE: Duration = Duration::from_secs(300);
/// Attempts to commit while others write too.
const MAX_ATTEMPTS: usize = 50;
/// In whose name certificates are got.
const AUTHOR: &str = "acme";

#[derive(Serialize, Deserialize)]
struct Record {
    holder: String,
}

/// A lease that is held.
pub struct Lease<'s> {
    store: &'s dyn Store,
    key: Key,
    holder: String,
}

impl<'s> Lease<'s> {
    /// Takes the lease for this process; `None`: another one has it.
    ///
    /// # Errors
    /// The store does not do its part.
    pub async fn take(store: &'s dyn Store, holder: &str) -> Result<Option<Self>, AcmeError> {
        let lease = Self {
            store,
            key: Key::new(LEASE).map_err(|error| AcmeError::Store(error.to_string()))?,
            holder: holder.to_owned(),
        };
        match lease
            .commit_if(|held| held.is_none_or(|it| it == holder), "lease", &[])
            .await
        {
            Ok(_) => Ok(Some(lease)),
            Err(AcmeError::Lost) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Makes changes, and renews the lease with them.
    ///
    /// # Errors
    /// [`AcmeError::Lost`]: another process has the lease; nothing was changed.
    pub async fn commit(&self, note: &str, changes: &[Change]) -> Result<Revision, AcmeError> {
        self.commit_if(|held| held == Some(self.holder.as_str()), note, changes)
            .await
    }

    /// Gives the lease back. If that fails, it ends by itself.
    pub async fn release(self) {
        let gone = Change::Delete {
            key: self.key.clone(),
        };
        let released = self
            .write(|held| held == Some(self.holder.as_str()), "lease", vec![gone])
            .await;
        if let Err(error) = released {
            tracing::debug!(%error, "the lease for certificate renewal cannot be released");
        }
    }

    async fn commit_if(
        &self,
        may: impl Fn(Option<&str>) -> bool,
        note: &str,
        changes: &[Change],
    ) -> Result<Revision, AcmeError> {
        let record = Record {
            holder: self.holder.clone(),
        };
        let value = serde_json::to_vec(&record).map_err(|error| AcmeError::Store(error.to_string()))?;
        let mut all = vec![Change::Put {
            key: self.key.clone(),
            value: value.into(),
            time_to_live: Some(LIFE),
        }];
        all.extend(changes.iter().cloned());
        self.write(may, note, all).await
    }

    async fn write(
        &self,
        may: impl Fn(Option<&str>) -> bool,
        note: &str,
        changes: Vec<Change>,
    ) -> Result<Revision, AcmeError> {
        for _ in 0..MAX_ATTEMPTS {
            let (documents, revision) = self.store.read(LEASE).await?;
            let record: Option<Record> = documents
                .iter()
                .find(|document| document.key == self.key)
                .and_then(|document| serde_json::from_slice(&document.value).ok());
            if !may(record.as_ref().map(|record| record.holder.as_str())) {
                return Err(AcmeError::Lost);
            }
            let transaction = Transaction {
                author: AUTHOR.to_owned(),
                note: note.to_owned(),
                time: SystemTime::now(),
                changes: changes.clone(),
            };
            match self.store.commit(transaction, revision).await {
                Ok(revision) => return Ok(revision),
                Err(CommitError::Conflict { .. }) => {}
                Err(error) => return Err(AcmeError::Store(error.to_string())),
            }
        }
        Err(AcmeError::Store("conflicting concurrent writes".to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn one_process_at_a_time_has_it() {
        let store = weir_store::open("memory:").await.expect("a store");
        let put = |text: &str| Change::put(Key::new("acme/x").expect("a key"), text.as_bytes().to_vec());
        let first = Lease::take(&*store, "one").await.expect("a store").expect("free");
        assert!(Lease::take(&*store, "two").await.expect("a store").is_none());
        assert!(
            Lease::take(&*store, "one").await.expect("a store").is_some(),
            "it is its own"
        );
        first.commit("x", &[put("1")]).await.expect("held");
        first.release().await;
        let second = Lease::take(&*store, "two").await.expect("a store").expect("free");
        let late = Lease {
            store: &*store,
            key: second.key.clone(),
            holder: "one".to_owned(),
        };
        assert!(matches!(
            late.commit("x", &[put("2")]).await,
            Err(AcmeError::Lost)
        ));
        late.release().await;
        second.commit("x", &[put("3")]).await.expect("still held");
        let (documents, _) = store.read("acme/x").await.expect("a store");
        assert_eq!(&*documents[0].value, b"3");
    }
}
