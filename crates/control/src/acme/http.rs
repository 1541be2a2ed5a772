//! How the protocol's calls are made: by the HTTP client of all management, with its own trust.

use crate::http::ClientRequest;
use axum::body::Bytes;
use http_body_util::{BodyExt, Limited};
use hyper::header::{CONTENT_TYPE, USER_AGENT};
use hyper::{Request, Response};
use instant_acme::{BodyWrapper, BytesResponse, Error, HttpClient};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

/// The largest answer that is read, in bytes. A chain of certificates has some thousand.
const MAX_BODY: usize = 1 << 20;

/// Calls to one authority.
pub struct Client {
    /// Whom they trust; `None`: the system's authorities.
    trust: Option<Arc<ClientConfig>>,
}

impl Client {
    /// Calls to a server whose certificate one of these authorities (in PEM) has signed.
    ///
    /// # Errors
    /// They are no certificates.
    pub fn new(authorities: Option<&str>) -> Result<Self, String> {
        let Some(pem) = authorities else {
            return Ok(Self { trust: None });
        };
        let mut roots = RootCertStore::empty();
        for certificate in CertificateDer::pem_slice_iter(pem.as_bytes()) {
            let certificate = certificate.map_err(|_| "expected certificates in PEM".to_owned())?;
            roots.add(certificate).map_err(|error| error.to_string())?;
        }
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| error.to_string())?
            .with_root_certificates(roots)
            .with_no_client_auth();
        Ok(Self {
            trust: Some(Arc::new(config)),
        })
    }
}

impl HttpClient for Client {
    fn request(
        &self,
        request: Request<BodyWrapper<Bytes>>,
    ) -> Pin<Box<dyn Future<Output = Result<BytesResponse, Error>> + Send>> {
        let trust = self.trust.clone();
        Box::pin(async move { send(request, trust).await })
    }
}

async fn send(
    request: Request<BodyWrapper<Bytes>>,
    trust: Option<Arc<ClientConfig>>,
) -> Result<BytesResponse, Error> {
    let (head, body) = request.into_parts();
    let body = match body.collect().await {
        Ok(body) => body.to_bytes().to_vec(),
        Err(never) => match never {},
    };
    let mut call = ClientRequest {
        method: head.method,
        body,
        trust,
        ..ClientRequest::get(head.uri.to_string())
    };
    for (name, known) in [(CONTENT_TYPE, "content-type"), (USER_AGENT, "user-agent")] {
        if let Some(value) = head.headers.get(name).and_then(|value| value.to_str().ok()) {
            call = call.header(known, value);
        }
    }
    let timeout = call.timeout;
    let answer = call.open().await.map_err(|error| Error::Other(Box::new(error)))?;
    let (head, body) = answer.into_parts();
    let read = tokio::time::timeout(timeout, Limited::new(body, MAX_BODY).collect()).await;
    let body = match read {
        Ok(body) => body.map_err(Error::Other)?.to_bytes(),
        Err(_) => return Err(Error::Str("no whole answer in time")),
    };
    Ok(BytesResponse::from(Response::from_parts(
        head,
        http_body_util::Full::new(body),
    )))
}
