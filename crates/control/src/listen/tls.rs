//! TLS of management listeners: the certificate they present, and the authorities that clients' certificates must come
//! from. Both are files, which are read again when they change, so that a certificate can be renewed at run time.
//!
//! **What it is not**: authentication. A client's certificate admits a connection; tokens say who calls
//! ([`crate::access`]).

use rustls::crypto::aws_lc_rs;
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use rustls::{RootCertStore, ServerConfig};
use std::fs::Metadata;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};
use tokio_rustls::TlsAcceptor;
use weir_model::KeyPair;
use weir_snapshot::{UnusableKeyPair, certified_key, client_verifier};

/// How often the files are looked at, at most.
const INTERVAL: Duration = Duration::from_secs(1);

/// The files.
#[derive(Debug, Clone)]
pub struct TlsFiles {
    /// The certificate and its intermediates, as PEM.
    pub certificate: PathBuf,
    /// Its private key, as PEM.
    pub key: PathBuf,
    /// Authorities, as PEM; clients must present a certificate that one of them has signed. `None`: they need none.
    pub client_authorities: Option<PathBuf>,
}

/// Why TLS cannot be served.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file cannot be read, or does not contain what it should.
    #[error("{path}: {reason}", path = path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why it cannot be used.
        reason: String,
    },
    /// The parts do not fit together.
    #[error("{0}")]
    Unfit(String),
}

/// A file's modification time and length: if they differ, the file has changed.
type FileFingerprint = Option<(SystemTime, u64)>;

/// TLS as a listener speaks it.
pub struct Tls {
    /// `None`: the certificate was made for this process.
    files: Option<TlsFiles>,
    current: Mutex<Current>,
}

struct Current {
    config: Arc<ServerConfig>,
    fingerprints: Vec<FileFingerprint>,
    looked: Instant,
}

impl Tls {
    /// TLS with the certificate in these files.
    ///
    /// # Errors
    /// A file cannot be used.
    pub fn from_files(files: TlsFiles) -> Result<Self, TlsError> {
        let fingerprints = files.fingerprints();
        let config = files.read()?;
        Ok(Self::new(Some(files), config, fingerprints))
    }

    /// TLS that presents one certificate, and asks clients for none.
    ///
    /// # Errors
    /// They do not fit together.
    pub fn showing(
        certificate: CertificateDer<'static>,
        key: PrivateKeyDer<'static>,
    ) -> Result<Self, TlsError> {
        let identity = CertifiedKey::from_der(vec![certificate], key, &aws_lc_rs::default_provider())
            .map_err(|error| TlsError::Unfit(error.to_string()))?;
        let config = config(identity, None)?;
        Ok(Self::new(None, config, Vec::new()))
    }

    fn new(files: Option<TlsFiles>, config: Arc<ServerConfig>, fingerprints: Vec<FileFingerprint>) -> Self {
        Self {
            files,
            current: Mutex::new(Current {
                config,
                fingerprints,
                looked: Instant::now(),
            }),
        }
    }

    /// Whether a client must present a certificate. A client without one gets an HTTP error after the handshake, because it
    /// could not read why a handshake failed. A client with an untrusted certificate fails the handshake.
    pub(super) fn requires_client_certificate(&self) -> bool {
        self.files
            .as_ref()
            .is_some_and(|files| files.client_authorities.is_some())
    }

    /// The acceptor for the next client. Files that have changed are read again; if they cannot be used, the previous
    /// certificate stays.
    pub(super) fn acceptor(&self) -> TlsAcceptor {
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(files) = &self.files
            && current.looked.elapsed() >= INTERVAL
        {
            current.looked = Instant::now();
            let fingerprints = files.fingerprints();
            if fingerprints != current.fingerprints {
                current.fingerprints = fingerprints;
                match files.read() {
                    Ok(config) => current.config = config,
                    Err(error) => {
                        tracing::error!(%error, "cannot reload the certificate of the Admin APIs; the previous one stays in use");
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
    fn fingerprints(&self) -> Vec<FileFingerprint> {
        let fingerprint = |found: Metadata| Some((found.modified().ok()?, found.len()));
        [
            Some(&self.certificate),
            Some(&self.key),
            self.client_authorities.as_ref(),
        ]
        .into_iter()
        .flatten()
        .map(|path| std::fs::metadata(path).ok().and_then(fingerprint))
        .collect()
    }

    fn read(&self) -> Result<Arc<ServerConfig>, TlsError> {
        let pair = KeyPair {
            certificate: text(&self.certificate)?,
            key: text(&self.key)?,
        };
        let identity = certified_key(&pair).map_err(|unusable| {
            let (path, reason) = match unusable {
                UnusableKeyPair::Certificate(reason) => (&self.certificate, reason),
                UnusableKeyPair::Key(reason) => (&self.key, reason),
            };
            let path = path.clone();
            TlsError::File { path, reason }
        })?;
        let roots = self.client_authorities.as_deref().map(authorities).transpose()?;
        config(identity, roots)
    }
}

/// A file's text.
fn text(path: &Path) -> Result<String, TlsError> {
    std::fs::read_to_string(path).map_err(|error| TlsError::File {
        path: path.to_owned(),
        reason: format!("cannot be read: {error}"),
    })
}

fn unreadable(path: &Path, error: &pem::Error) -> TlsError {
    let reason = match error {
        pem::Error::NoItemsFound => "expected certificates in PEM".to_owned(),
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

fn config(identity: CertifiedKey, clients: Option<RootCertStore>) -> Result<Arc<ServerConfig>, TlsError> {
    let unfit = |error: &dyn std::fmt::Display| TlsError::Unfit(error.to_string());
    let provider = Arc::new(aws_lc_rs::default_provider());
    let builder = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| unfit(&error))?;
    let builder = match clients {
        None => builder.with_no_client_auth(),
        Some(roots) => {
            let verifier = client_verifier(Arc::new(roots), true).map_err(TlsError::Unfit)?;
            builder.with_client_cert_verifier(verifier)
        }
    };
    let mut config = builder.with_cert_resolver(Arc::new(SingleCertAndKey::from(identity)));
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}
