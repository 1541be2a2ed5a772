//! Certificates that an authority signs on demand (ACME, RFC 8555).
//!
//! Entries of the configuration ask for certificates. One process of those that share a store gets them ([`Issuer`]):
//! it holds a lease while it does, and leaves accounts, certificates and what challenges are answered with in the
//! store, under `acme/`. Every gateway that follows the store serves what is there: it is part of the
//! model before it is compiled, so a call pays nothing for it, and while no certificate is being signed there is
//! nothing to answer.
//!
//! **What it is not**: it answers no challenge itself, and asks no DNS.

mod account;
mod challenge_response;
mod documents;
mod http;
mod issuer;
mod lease;
mod order;
mod plan;
mod served_documents;
mod status;

pub use documents::FOLLOWED;
pub use issuer::{AcmeConfigs, Issuer};
pub use served_documents::ServedDocuments;
pub use status::{AcmeEntryStatus, AcmeStatus};

use std::collections::HashSet;
use weir_model::{Acme, ExternalAccount, Model};

/// The entries of a model, without those that cannot be had; of entries with one name the first. One whose account has
/// no key, as while its vault is away, orders nothing.
pub fn wanted(model: &Model) -> Vec<Acme> {
    let lacks_key = |account: &ExternalAccount| account.key.is_empty();
    let mut names = HashSet::new();
    let good = model.acme.iter().filter(|entry| entry.is_good());
    good.filter(|entry| names.insert(entry.name.as_str()))
        .filter(|entry| !entry.external_account.as_ref().is_some_and(lacks_key))
        .cloned()
        .collect()
}

/// The fault of a certificate, in a few words.
#[derive(Debug, thiserror::Error)]
pub enum AcmeError {
    /// The authority refused, cannot be reached, or does not speak ACME.
    #[error("{0}")]
    Authority(#[from] instant_acme::Error),
    /// The authority has found that a name is not the gateway's.
    #[error("{0}")]
    Refused(String),
    /// The authority took too long.
    #[error("the authority did not issue the certificate in time")]
    Late,
    /// A key or a request cannot be made, or what the authority signed cannot be used.
    #[error("{0}")]
    Unusable(String),
    /// The store does not do its part.
    #[error("the store: {0}")]
    Store(String),
    /// Another process gets certificates by now.
    #[error("another process now requests the certificates")]
    Lost,
}

impl From<weir_store::StoreError> for AcmeError {
    fn from(error: weir_store::StoreError) -> Self {
        Self::Store(error.to_string())
    }
}

impl From<rcgen::Error> for AcmeError {
    fn from(error: rcgen::Error) -> Self {
        Self::Unusable(error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_whose_account_has_no_key_orders_nothing() {
        let entry = |name: &str, key: Option<&str>| Acme {
            terms_accepted: true,
            external_account: key.map(|key| ExternalAccount {
                id: "i".to_owned(),
                key: key.to_owned(),
            }),
            ..Acme::new(name.to_owned(), vec!["a.test".to_owned()])
        };
        let model = Model {
            acme: vec![
                entry("none", None),
                entry("known", Some("k")),
                entry("missing", Some("")),
            ],
            ..Model::default()
        };
        let names: Vec<String> = wanted(&model).into_iter().map(|it| it.name).collect();
        assert_eq!(names, ["none", "known"]);
    }
}
