//! The documents in the store, below `acme/`.

use data_encoding::HEXLOWER;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use weir_model::{Acme, AcmeChallenge, AcmeKey};
use weir_store::{BadKey, Document, Key};

/// The prefix of all keys.
pub const PREFIX: &str = "acme/";
/// Accounts with authorities, by what distinguishes them.
const ACCOUNTS: &str = "acme/accounts/";
/// Certificates by the names of their entries.
pub const CERTIFICATES: &str = "acme/certificates/";
/// Answers to challenges, by entry and number.
pub const CHALLENGES: &str = "acme/challenges/";
/// Attempts that failed, by entry.
const ATTEMPTS: &str = "acme/attempts/";
/// The process that gets certificates now.
pub const LEASE: &str = "acme/lease";

/// The prefixes of documents that gateways serve. Accounts are not among them.
pub const FOLLOWED: [&str; 2] = [CERTIFICATES, CHALLENGES];

/// A certificate that an authority has signed. No `Debug`: it holds its key.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct IssuedCertificate {
    /// The directory of the authority.
    pub directory: String,
    /// The names that it is for.
    pub hosts: Vec<String>,
    /// The kind of its key.
    pub kind: AcmeKey,
    /// The certificate and those that lead to its authority, in PEM.
    pub certificate: String,
    /// Its key, in PEM.
    pub key: String,
    /// From when it is good, in seconds since the Unix epoch.
    pub from: i64,
    /// Its last second, likewise.
    pub until: i64,
}

impl IssuedCertificate {
    /// Whether it is what the entry asks for.
    pub fn fits(&self, entry: &Acme) -> bool {
        self.directory == entry.directory
            && self.kind == entry.key
            && sorted(&self.hosts) == sorted(&entry.hosts)
    }
}

/// Host names in an order that does not depend on how they were written.
pub fn sorted(hosts: &[String]) -> Vec<String> {
    let mut hosts: Vec<String> = hosts.iter().map(|host| host.to_ascii_lowercase()).collect();
    hosts.sort_unstable();
    hosts.dedup();
    hosts
}

/// The answer to a challenge. No `Debug`: it may hold a key.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type")]
pub enum ChallengeResponse {
    /// The body at `/.well-known/acme-challenge/TOKEN`.
    #[serde(rename = "http-01")]
    Http01 {
        /// The end of the path.
        token: String,
        /// The body.
        body: String,
    },
    /// The certificate that a client is shown which offers `acme-tls/1`.
    #[serde(rename = "tls-alpn-01")]
    TlsAlpn01 {
        /// For which name.
        host: String,
        /// The certificate, in PEM.
        certificate: String,
        /// Its key, in PEM.
        key: String,
    },
}

/// The attempts that failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attempt {
    /// For what; another wish is tried at once.
    #[serde(rename = "wish")]
    pub desired: String,
    /// How many have failed, one after the other.
    pub failures: u32,
    /// When the last one did, in seconds since the Unix epoch.
    pub at: i64,
    /// When the next one may begin.
    pub next: i64,
    /// Why it did.
    pub error: String,
}

/// What distinguishes wishes of which one may fail and another not.
pub fn desired(entry: &Acme) -> String {
    let challenge = match entry.challenge {
        AcmeChallenge::Http01 => "http-01",
        AcmeChallenge::TlsAlpn01 => "tls-alpn-01",
    };
    let account = entry.external_account.as_ref().map(|account| &account.id);
    let text = serde_json::json!([
        entry.directory,
        sorted(&entry.hosts),
        challenge,
        account,
        entry.terms_accepted,
        entry.contact,
        entry.authorities
    ]);
    digest(&text)
}

/// What distinguishes accounts.
pub fn account_name(entry: &Acme) -> String {
    let external = entry.external_account.as_ref().map(|account| &account.id);
    digest(&serde_json::json!([entry.directory, entry.contact, external]))
}

fn digest(value: &serde_json::Value) -> String {
    let digest = aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, value.to_string().as_bytes());
    HEXLOWER.encode(&digest.as_ref()[..16])
}

/// The key of an account's document.
pub fn account_key(entry: &Acme) -> Result<Key, BadKey> {
    Key::new(&format!("{ACCOUNTS}{}", account_name(entry)))
}

/// The key of a certificate's document.
pub fn certificate_key(entry: &str) -> Result<Key, BadKey> {
    Key::new(&format!("{CERTIFICATES}{entry}"))
}

/// The key of what one of an entry's challenges is answered with.
pub fn challenge_key(entry: &str, number: usize) -> Result<Key, BadKey> {
    Key::new(&format!("{CHALLENGES}{entry}/{number}"))
}

/// The key of what came of an entry's attempts.
pub fn attempt_key(entry: &str) -> Result<Key, BadKey> {
    Key::new(&format!("{ATTEMPTS}{entry}"))
}

/// The store's certificates and attempts, by entry.
#[derive(Default)]
pub struct StoredDocument {
    /// Certificates.
    pub issued: BTreeMap<String, IssuedCertificate>,
    /// The attempts that failed.
    pub attempts: BTreeMap<String, Attempt>,
}

impl StoredDocument {
    /// Reads documents. One that cannot be read is as good as none: what it was is got again.
    pub fn of(documents: &[Document]) -> Self {
        let mut kept = Self::default();
        for document in documents {
            let key = document.key.as_str();
            if let Some(entry) = key.strip_prefix(CERTIFICATES) {
                insert(&mut kept.issued, entry, &document.value);
            } else if let Some(entry) = key.strip_prefix(ATTEMPTS) {
                insert(&mut kept.attempts, entry, &document.value);
            }
        }
        kept
    }
}

fn insert<T: DeserializeOwned>(map: &mut BTreeMap<String, T>, entry: &str, value: &[u8]) {
    match serde_json::from_slice(value) {
        Ok(read) => {
            map.insert(entry.to_owned(), read);
        }
        Err(error) => tracing::warn!(entry, %error, "a stored ACME document cannot be parsed and is ignored"),
    }
}
