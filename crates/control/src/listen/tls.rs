//! TLS of listeners of management: what they show, and what their clients must show. Both come from files, which are
//! read again when they change, so that a certificate can be renewed while the process runs.
//!
//! **What it is not**: a client's certificate lets a connection in and says nothing of who calls: tokens do
//! ([`crate::access`]).

use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};
use std::fs::Metadata;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};
use tokio_rustls::TlsAcceptor;

/// How often the files are looked at, at most.
const INTERVAL: Duration = Duration::from_secs(1);

/// The files.
#[derive(Debug, Clone)]
pub struct TlsFiles {
    /// The certificate, and what leads from it to an authority, as PEM.
    pub certificate: PathBuf,
    /// Its private key, as PEM.
    pub key: PathBuf,
    /// Authorities, as PEM; clients must show a certificate that one of them has signed. `None`: they need none.
    pub client_authorities: Option<PathBuf>,
}

/// What stands in the way of TLS.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file cannot be read, or is no PEM of what it should hold.
    #[error("{path}: {reason}", path = path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// Why.
        reason: String,
    },
    /// What the files hold does not fit together.
    #[error("{0}")]
    Unfit(String),
}

/// What tells that a file has changed: when it was, and how long it is.
type Stamp = Option<(SystemTime, u64)>;

/// TLS as a listener speaks it.
pub struct Tls {
    /// `None`: what is shown was made for this process.
    files: Option<TlsFiles>,
    current: Mutex<Current>,
}

struct Current {
    config: Arc<ServerConfig>,
    stamps: Vec<Stamp>,
    looked: Instant,
}

impl Tls {
    /// TLS with what the files hold.
    ///
    /// # Errors
    /// They cannot be used.
    pub fn from_files(files: TlsFiles) -> Result<Self, TlsError> {
        let stamps = files.stamps();
        let config = files.read()?;
        Ok(Self::new(Some(files), config, stamps))
    }

    /// TLS that shows one certificate, whose private key this is, and asks clients for none.
    ///
    /// # Errors
    /// They do not fit together.
    pub fn showing(
        certificate: CertificateDer<'static>,
        key: PrivateKeyDer<'static>,
    ) -> Result<Self, TlsError> {
        let config = config(vec![certificate], key, None)?;
        Ok(Self::new(None, config, Vec::new()))
    }

    fn new(files: Option<TlsFiles>, config: Arc<ServerConfig>, stamps: Vec<Stamp>) -> Self {
        Self {
            files,
            current: Mutex::new(Current {
                config,
                stamps,
                looked: Instant::now(),
            }),
        }
    }

    /// Whether a client must show a certificate. One that shows none is told so once hands are shaken, as it would not
    /// come to read why the handshake failed; one that shows a wrong one is cut off.
    pub(super) fn asks_clients(&self) -> bool {
        self.files
            .as_ref()
            .is_some_and(|files| files.client_authorities.is_some())
    }

    /// What shakes hands with the next client. Files that have changed are read again; where they cannot be used, what
    /// was good before stays.
    pub(super) fn acceptor(&self) -> TlsAcceptor {
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(files) = &self.files
            && current.looked.elapsed() >= INTERVAL
        {
            current.looked = Instant::now();
            let stamps = files.stamps();
            if stamps != current.stamps {
                current.stamps = stamps;
                match files.read() {
                    Ok(config) => current.config = config,
                    Err(error) => {
                        tracing::error!(%error, "the Admin APIs' certificate cannot be read again; the former one stays");
                    }
                }
            }
        }
        TlsAcceptor::from(Arc::clone(&current.config))
    }
}

/// Keys are secrets.
impl std::fmt::Debug for Tls {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Tls")
            .field("files", &self.files)
            .finish_non_exhaustive()
    }
}

impl TlsFiles {
    fn stamps(&self) -> Vec<Stamp> {
        let stamp = |found: Metadata| Some((found.modified().ok()?, found.len()));
        [
            Some(&self.certificate),
            Some(&self.key),
            self.client_authorities.as_ref(),
        ]
        .into_iter()
        .flatten()
        .map(|path| std::fs::metadata(path).ok().and_then(stamp))
        .collect()
    }

    fn read(&self) -> Result<Arc<ServerConfig>, TlsError> {
        let chain = certificates(&self.certificate)?;
        let key = PrivateKeyDer::from_pem_file(&self.key).map_err(|error| unreadable(&self.key, &error))?;
        let roots = self.client_authorities.as_deref().map(authorities).transpose()?;
        config(chain, key, roots)
    }
}

fn unreadable(path: &Path, error: &pem::Error) -> TlsError {
    let reason = match error {
        pem::Error::NoItemsFound => "there is nothing of the kind in it".to_owned(),
        other => other.to_string(),
    };
    TlsError::File {
        path: path.to_owned(),
        reason,
    }
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let found = CertificateDer::pem_file_iter(path).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    match found {
        Ok(chain) if chain.is_empty() => Err(unreadable(path, &pem::Error::NoItemsFound)),
        found => found.map_err(|error| unreadable(path, &error)),
    }
}

fn authorities(path: &Path) -> Result<RootCertStore, TlsError> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(path)? {
        roots.add(certificate).map_err(|error| TlsError::File {
            path: path.to_owned(),
            reason: error.to_string(),
        })?;
    }
    Ok(roots)
}

fn config(
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
    clients: Option<RootCertStore>,
) -> Result<Arc<ServerConfig>, TlsError> {
    let unfit = |error: &dyn std::fmt::Display| TlsError::Unfit(error.to_string());
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(|error| unfit(&error))?;
    let builder = match clients {
        None => builder.with_no_client_auth(),
        Some(roots) => {
            let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider)
                .allow_unauthenticated()
                .build();
            builder.with_client_cert_verifier(verifier.map_err(|error| unfit(&error))?)
        }
    };
    let mut config = builder
        .with_single_cert(chain, key)
        .map_err(|error| unfit(&error))?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}
