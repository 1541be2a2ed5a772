//! The listeners of the developer portal. Like those of the Admin APIs they answer as soon as the store is open; they
//! share nothing else with them.

use super::Control;
use super::admin::{LazyRouter, Shared, assets, pass_on};
use super::plan::Management;
use super::proxy::bind;
use super::trust;
use crate::status::Status;
use anyhow::Context;
use axum::{Extension, Router};
use rustls::pki_types::PrivatePkcs8KeyDer;
use std::net::TcpListener;
use std::sync::Arc;
use std::time::SystemTime;
use weir_control::access::{Right, Role, Scope, Users};
use weir_control::api::Delegate;
use weir_control::listen::{self, Tls, TlsFiles};
use weir_control::outbox;
use weir_portal::{GatewayLookup, Listening, Mail, Options, Portals, Post};
use weir_store::{Store, StoreError};

/// The listeners, bound.
pub struct Listeners(Vec<(TcpListener, Option<Arc<Tls>>)>);

impl Listeners {
    /// Binds those that are wanted.
    pub fn bind(management: &Management) -> anyhow::Result<Self> {
        let mut tls_config = None;
        let mut bound = Vec::new();
        for listen in &management.portal {
            if listen.is_tls && tls_config.is_none() {
                tls_config = Some(Arc::new(tls(management)?));
            }
            let tls = tls_config.clone().filter(|_| listen.is_tls);
            bound.push((bind("--portal", listen.address)?, tls));
        }
        Ok(Self(bound))
    }

    /// Whether none is wanted.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Its addresses, for the `ready` line.
    pub fn addresses(&self) -> std::io::Result<Vec<(String, String)>> {
        let one = |(listener, tls): &(TcpListener, Option<Arc<Tls>>)| {
            let scheme = if tls.is_some() { "https" } else { "http" };
            let address = format!("{scheme}://{}", listener.local_addr()?);
            Ok(("the developer portal".to_owned(), address))
        };
        self.0.iter().map(one).collect()
    }

    /// Serves them until `control` drains; `None`: none is wanted.
    pub fn serve(
        self,
        control: &mut Control,
        environments: Vec<String>,
    ) -> std::io::Result<Option<OpenPortal>> {
        if self.0.is_empty() {
            return Ok(None);
        }
        let [clear, encrypted] = [LazyRouter::default(), LazyRouter::default()];
        let mut routers: Vec<(LazyRouter, bool)> = Vec::new();
        for (listener, tls) in self.0 {
            let late = if tls.is_some() { &encrypted } else { &clear };
            if !routers.iter().any(|(_, is_tls)| *is_tls == tls.is_some()) {
                routers.push((Arc::clone(late), tls.is_some()));
            }
            let own = Extension(Listening(listener.local_addr()?));
            let router = Router::new()
                .fallback(pass_on)
                .layer(own)
                .with_state(Arc::clone(late));
            let listener = tokio::net::TcpListener::from_std(listener)?;
            control.listen(listen::Listener::new(listener, tls), router);
        }
        Ok(Some(OpenPortal {
            routers,
            environments,
            status: Arc::clone(&control.status),
        }))
    }
}

/// Browsers show no certificates of their own, whatever clients of Admin APIs must show.
fn tls(management: &Management) -> anyhow::Result<Tls> {
    match &management.admin_tls {
        Some(files) => {
            let files = TlsFiles {
                client_authorities: None,
                ..files.clone()
            };
            Tls::from_files(files).context("TLS of the developer portal")
        }
        None => {
            let (certificate, key) = trust::own_certificate()?;
            let key = PrivatePkcs8KeyDer::from(key.serialize_der());
            Ok(Tls::showing(certificate.der().clone(), key.into())?)
        }
    }
}

/// The portal, once it is opened.
pub struct OpenPortal {
    /// The routers over cleartext, and over TLS.
    routers: Vec<(LazyRouter, bool)>,
    /// The environments that the gateway of this process serves.
    environments: Vec<String>,
    status: Arc<Status>,
}

impl OpenPortal {
    /// Opens it over a store.
    ///
    /// # Errors
    /// A store cannot be read.
    pub async fn open(&self, store: Arc<dyn Store>, shared: &Shared) -> Result<(), StoreError> {
        let users = Users::open(Arc::clone(&store), &shared.operational).await?;
        let api = shared.api(&store, &users).await?;
        // What a developer may do is decided by the portal; this is what all of them may do together.
        let right = Right {
            role: Role::PortalAdmin,
            scope: Scope::Everything,
        };
        let delegate = Delegate::new(&api, vec![right]);
        for (late, is_tls) in &self.routers {
            let assets = assets().map_err(|error| StoreError::Failed(error.to_string()))?;
            let options = Options {
                store: Arc::clone(&store),
                delegate: delegate.clone(),
                analytics: shared.analytics.clone(),
                assets,
                gateway: self.gateway(),
                counted: Arc::clone(&shared.counted),
                is_tls: *is_tls,
                operational: shared.operational.clone(),
                post: post(shared),
                outbox: shared.outbox.clone(),
                audit: shared.audit_log(&store),
                providers: users.providers().clone(),
            };
            // Nothing else fills it in.
            let portals = Portals::open(options).await?;
            let _is_first = late.set(weir_portal::router(&portals));
        }
        Ok(())
    }

    /// The address at which this process takes calls of an environment.
    fn gateway(&self) -> GatewayLookup {
        let (status, environments) = (Arc::clone(&self.status), self.environments.clone());
        Arc::new(move |environment: &str| {
            let gateway = environments
                .iter()
                .any(|it| it == environment)
                .then(|| status.gateway())??;
            let bound = gateway.bound();
            let (scheme, address) = match (bound.plain.first(), bound.tls.first()) {
                (Some(address), _) => ("http", address),
                (None, Some(address)) => ("https", address),
                (None, None) => return None,
            };
            let port = address.port();
            match address.ip() {
                // A gateway that listens everywhere is here, too.
                ip if ip.is_unspecified() => Some(format!("{scheme}://localhost:{port}")),
                _ => Some(format!("{scheme}://{address}")),
            }
        })
    }
}

/// Mails go through the outbox: they are stored when this returns, and sent as soon as possible. `None`: there is no
/// mail server.
fn post(shared: &Shared) -> Option<Post> {
    let outbox = shared.outbox.clone();
    outbox.can_mail().then(|| -> Post {
        Arc::new(move |mail: Mail| {
            let outbox = outbox.clone();
            Box::pin(async move {
                let message = outbox::Message::Mail(outbox::Mail {
                    to: mail.to,
                    subject: mail.subject,
                    text: mail.text,
                    ..outbox::Mail::default()
                });
                let origin = outbox::Origin::Portal(mail.portal);
                outbox.send((origin, "portal", message), SystemTime::now()).await
            })
        })
    })
}
