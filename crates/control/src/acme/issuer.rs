//! Gets certificates as they are due, for as long as the process lives.

use super::documents::{
    IssuedCertificate, PREFIX, StoredDocument, attempt_key, certificate_key, challenge_key,
};
use super::lease::Lease;
use super::status::AcmeStatus;
use super::{AcmeError, account, order, plan};
use crate::api::{Gateways, REPORTS};
use crate::follow::{OpenStore, StateHandle};
use data_encoding::HEXLOWER;
use std::time::{Duration, SystemTime};
use tokio::sync::watch;
use tokio::time::{Instant, sleep};
use weir_model::Acme;
use weir_model::unix_time;
use weir_store::{BadKey, Change, Document, Revision, Store};

/// How long one certificate may take; a lease lasts longer.
const TIMEOUT: Duration = Duration::from_secs(240);
/// How often it is looked what is due, at least: others write into the store too.
const LONGEST_REST: Duration = Duration::from_secs(600);
/// After a fault of the store, or while another process gets certificates.
const SHORT_REST: Duration = Duration::from_secs(5);
/// How long gateways may take until they answer challenges.
const REACH: Duration = Duration::from_secs(20);
/// How often it is looked whether they do.
const LOOK: Duration = Duration::from_millis(100);
/// How long after its end a certificate goes that nothing asks for any more, in seconds.
const FORGOTTEN: i64 = 30 * 86_400;

/// The certificates that the configuration asks for, as it changes.
pub type AcmeConfigs = watch::Sender<Vec<Acme>>;

/// Gets certificates.
pub struct Issuer {
    /// The store of accounts and certificates.
    pub store: OpenStore,
    /// The certificates that the configuration asks for.
    pub wanted: watch::Receiver<Vec<Acme>>,
    /// The state that this process serves.
    pub followed: StateHandle,
    /// The state that other gateways serve.
    pub gateways: Gateways,
    /// Receives the state of each certificate.
    pub status: AcmeStatus,
}

impl Issuer {
    /// Goes on until the process ends.
    pub async fn run(mut self) {
        let holder = holder();
        loop {
            if self.wanted.borrow_and_update().is_empty() {
                self.status.note(&[], &StoredDocument::default());
                if self.wanted.changed().await.is_err() {
                    return;
                }
                continue;
            }
            let store = self.store.opened().await;
            let rest = match self.round(&*store, &holder).await {
                Ok(rest) => rest,
                Err(error) => {
                    tracing::warn!(%error, "certificate renewal failed; retrying");
                    SHORT_REST
                }
            };
            tokio::select! {
                () = sleep(rest) => {}
                changed = self.wanted.changed() => if changed.is_err() {
                    return;
                },
            }
        }
    }

    /// Gets the certificates that are due. Returns how long there will be nothing to do.
    async fn round(&self, store: &dyn Store, holder: &str) -> Result<Duration, AcmeError> {
        let wanted = self.wanted.borrow().clone();
        let kept = self.look(store, &wanted).await?;
        if due(&wanted, &kept, now()).next().is_none() {
            return Ok(rest(&wanted, &kept, now()));
        }
        let Some(lease) = Lease::take(store, holder).await? else {
            return Ok(SHORT_REST);
        };
        // The previous holder of the lease may have got them.
        let kept = self.look(store, &wanted).await?;
        let worked = self.work(store, &lease, &wanted, &kept).await;
        lease.release().await;
        worked?;
        let kept = self.look(store, &wanted).await?;
        Ok(rest(&wanted, &kept, now()))
    }

    async fn look(&self, store: &dyn Store, wanted: &[Acme]) -> Result<StoredDocument, AcmeError> {
        let (documents, _) = store.read(PREFIX).await?;
        let kept = StoredDocument::of(&documents);
        self.status.note(wanted, &kept);
        Ok(kept)
    }

    async fn work(
        &self,
        store: &dyn Store,
        lease: &Lease<'_>,
        wanted: &[Acme],
        kept: &StoredDocument,
    ) -> Result<(), AcmeError> {
        for entry in due(wanted, kept, now()) {
            if self.wanted.has_changed().unwrap_or(true) {
                // What was asked for may be gone.
                return Ok(());
            }
            let mut given = 0;
            let reach = GatewayCheck(self);
            let issuing = order::issue(entry, store, lease, &reach, &mut given);
            let issued = match tokio::time::timeout(TIMEOUT, issuing).await {
                Ok(issued) => issued,
                Err(_) => Err(AcmeError::Late),
            };
            let mut changes =
                record_attempt(entry, kept, &issued).map_err(|error| AcmeError::Store(error.to_string()))?;
            for number in 0..given {
                changes.extend(
                    challenge_key(&entry.name, number)
                        .ok()
                        .map(|key| Change::Delete { key }),
                );
            }
            let note = match &issued {
                Ok(_) => "certificate",
                Err(_) => "attempt",
            };
            lease.commit(note, &changes).await?;
            match issued {
                Ok(issued) => {
                    tracing::info!(entry = %entry.name, hosts = ?entry.hosts, expires = issued.until, "a certificate was issued");
                }
                Err(AcmeError::Lost) => return Err(AcmeError::Lost),
                Err(error) => {
                    tracing::error!(entry = %entry.name, hosts = ?entry.hosts, %error, "no certificate was issued; retrying");
                    account::forget_unknown(entry, &error, lease).await;
                }
            }
        }
        self.clean(store, lease, wanted).await
    }

    /// Lets go of certificates that are long over, and that nothing here asks for.
    async fn clean(&self, store: &dyn Store, lease: &Lease<'_>, wanted: &[Acme]) -> Result<(), AcmeError> {
        let (documents, _) = store.read(PREFIX).await?;
        let kept = StoredDocument::of(&documents);
        let is_wanted = |name: &str| wanted.iter().any(|entry| entry.name == name);
        let over = (kept.issued.iter())
            .filter(|(name, issued)| !is_wanted(name) && issued.until.saturating_add(FORGOTTEN) < now())
            .filter_map(|(name, _)| certificate_key(name).ok())
            .map(|key| Change::Delete { key });
        let over: Vec<Change> = over.collect();
        if over.is_empty() {
            return Ok(());
        }
        lease.commit("certificates that are over", &over).await.map(drop)
    }
}

/// Writes an attempt down.
fn record_attempt(
    entry: &Acme,
    kept: &StoredDocument,
    issued: &Result<IssuedCertificate, AcmeError>,
) -> Result<Vec<Change>, BadKey> {
    let attempt = attempt_key(&entry.name)?;
    Ok(match issued {
        Ok(issued) => vec![
            Change::put(certificate_key(&entry.name)?, text(issued)),
            Change::Delete { key: attempt },
        ],
        Err(error) => {
            let before = kept.attempts.get(&entry.name);
            let failed = plan::failed(entry, before, error.to_string(), now());
            vec![Change::put(attempt, text(&failed))]
        }
    })
}

fn text(value: &impl serde::Serialize) -> Vec<u8> {
    serde_json::to_vec(value).expect("invariant: these documents have a text form")
}

/// The entries whose certificates are to be got now.
fn due<'w>(wanted: &'w [Acme], kept: &'w StoredDocument, now: i64) -> impl Iterator<Item = &'w Acme> {
    wanted.iter().filter(move |entry| next(entry, kept) <= now)
}

fn next(entry: &Acme, kept: &StoredDocument) -> i64 {
    plan::due(
        entry,
        kept.issued.get(&entry.name),
        kept.attempts.get(&entry.name),
    )
}

/// How long nothing is due.
fn rest(wanted: &[Acme], kept: &StoredDocument, now: i64) -> Duration {
    let first = wanted.iter().map(|entry| next(entry, kept)).min();
    let left = first.map_or(i64::MAX, |first| first.saturating_sub(now));
    Duration::from_secs(left.max(1) as u64).min(LONGEST_REST)
}

fn now() -> i64 {
    i64::try_from(unix_time::seconds(SystemTime::now())).unwrap_or(i64::MAX)
}

/// A name that no other process has.
fn holder() -> String {
    let mut bytes = [0; 16];
    // Without random numbers no key could be made either.
    let _is_random = aws_lc_rs::rand::fill(&mut bytes);
    HEXLOWER.encode(&bytes)
}

/// Whether gateways serve what was written.
pub struct GatewayCheck<'i>(&'i Issuer);

impl GatewayCheck<'_> {
    /// Waits until this process and every gateway that is known serve the revision. One that does not for a long time
    /// is not waited for: the authority may ask another.
    pub async fn everywhere(&self, store: &dyn Store, revision: Revision) {
        let begun = Instant::now();
        while begun.elapsed() < REACH {
            let is_here = self.0.followed.state().revision >= revision;
            if is_here
                && self.0.gateways.serve(revision, SystemTime::now())
                && are_there(store, revision).await
            {
                return;
            }
            sleep(LOOK).await;
        }
        tracing::warn!(
            "not all gateways answer the ACME challenge yet; asking the authority to validate it anyway"
        );
    }
}

/// Whether the gateways that leave their reports in the store are so far.
async fn are_there(store: &dyn Store, revision: Revision) -> bool {
    let Ok((documents, _)) = store.read(REPORTS).await else {
        return false;
    };
    let is_there = |document: &Document| Gateways::is_at(&document.value, revision, SystemTime::now());
    documents.iter().all(is_there)
}

#[cfg(test)]
mod tests {
    use super::super::documents::LEASE;
    use super::*;

    #[test]
    fn the_lease_is_none_of_the_documents_that_are_served() {
        assert!(LEASE.starts_with(PREFIX));
        assert!(super::super::FOLLOWED.iter().all(|it| !LEASE.starts_with(it)));
        assert_ne!(holder(), holder());
    }
}
