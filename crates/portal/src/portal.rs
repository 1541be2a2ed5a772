//! The portals of a process: which one a browser asks for, what they share, and their paths.

use crate::catalogue::{Catalogue, Descriptions};
use crate::documents::Documents;
use crate::turns::Turns;
use crate::viewer::Viewer;
use crate::{api, pages};
use axum::Router;
use axum::extract::{ConnectInfo, Request, State};
use axum::http::{HeaderMap, Method, StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
use weir_apis::entities::Portal;
use weir_console::Archive;
use weir_control::analytics::Analytics;
use weir_control::api::{Delegate, Problem};
use weir_store::{Store, StoreError};

/// Where the gateway of this process takes the calls of an environment; `None`: it takes none.
pub type GatewayOf = Arc<dyn Fn(&str) -> Option<String> + Send + Sync>;

/// What portals work with.
pub struct Options {
    /// The configuration's store.
    pub store: Arc<dyn Store>,
    /// What makes calls of Weir's own API.
    pub delegate: Delegate,
    /// The analytics that are kept here; `None`: they are off.
    pub analytics: Option<Analytics>,
    /// The built pages.
    pub assets: Archive,
    /// The URL of the gateway of this process that serves an environment, for publications that name no other.
    pub gateway: GatewayOf,
    /// Whether browsers come over TLS.
    pub is_tls: bool,
}

/// The portals.
pub struct Portals {
    /// What the configuration's store holds.
    pub(crate) documents: Documents,
    #[allow(dead_code)]
    pub(crate) delegate: Delegate,
    #[allow(dead_code)]
    pub(crate) analytics: Option<Analytics>,
    pub(crate) gateway: GatewayOf,
    pub(crate) shell: pages::Shell,
    pub(crate) tries: Turns,
    is_tls: bool,
    made: Mutex<Made>,
}

/// The catalogue as it was made last.
#[derive(Default)]
struct Made {
    revision: Option<u64>,
    catalogue: Arc<Catalogue>,
    descriptions: Descriptions,
}

/// What a call is about: the portal that was asked, and who asks.
#[derive(Clone)]
pub(crate) struct Visit {
    pub portal: Arc<Portal>,
    pub viewer: Viewer,
    /// The portal's URL as the browser has it, without a path.
    pub url: String,
    /// From where.
    pub address: IpAddr,
}

impl Portals {
    /// Reads what the store holds and follows it from then on. To be called inside of a tokio runtime.
    ///
    /// # Errors
    /// A store cannot be reached or read.
    pub async fn open(options: Options) -> Result<Arc<Self>, StoreError> {
        Ok(Arc::new(Self {
            documents: Documents::open(options.store).await?,
            delegate: options.delegate,
            analytics: options.analytics,
            gateway: options.gateway,
            shell: pages::Shell::new(options.assets),
            tries: Turns::default(),
            is_tls: options.is_tls,
            made: Mutex::default(),
        }))
    }

    /// The paths of all portals.
    pub fn router(self: &Arc<Self>) -> Router {
        let router = api::router(self).merge(pages::router(self));
        router.layer(middleware::from_fn_with_state(Arc::clone(self), enter))
    }

    /// The catalogue as the store has it.
    pub(crate) async fn catalogue(self: &Arc<Self>) -> Arc<Catalogue> {
        let revision = self.documents.catalogue_revision();
        {
            let made = self.made();
            if made.revision == Some(revision) {
                return Arc::clone(&made.catalogue);
            }
        }
        let this = Arc::clone(self);
        let made = tokio::task::spawn_blocking(move || {
            // Others wait here for the one that is made.
            let mut made = this.made();
            let revision = this.documents.catalogue_revision();
            if made.revision != Some(revision) {
                let catalogue = Catalogue::build(&this.documents, &mut made.descriptions);
                made.catalogue = Arc::new(catalogue);
                made.revision = Some(revision);
            }
            Arc::clone(&made.catalogue)
        });
        made.await.unwrap_or_else(|error| {
            tracing::error!(%error, "the portal's catalogue cannot be made; the former one stays");
            Arc::clone(&self.made().catalogue)
        })
    }

    fn made(&self) -> std::sync::MutexGuard<'_, Made> {
        // What is made is put in place as a whole.
        self.made.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The portal that answers a host.
    fn portal_of(&self, host: &str) -> Option<Portal> {
        let mut all: Vec<Portal> = self.documents.list("apis/portals/");
        if all.is_empty() {
            // On the first day there is a portal that shows everything.
            return Some(Portal {
                name: "default".to_owned(),
                ..Portal::default()
            });
        }
        let without_port = match host.rsplit_once(':') {
            Some((name, port)) if port.bytes().all(|it| it.is_ascii_digit()) => name,
            _ => host,
        };
        let of_host = all
            .iter()
            .position(|it| it.hosts.iter().any(|it| it == host || it == without_port));
        let found = of_host.or_else(|| all.iter().position(|it| it.hosts.is_empty()));
        found.map(|index| all.swap_remove(index))
    }

    fn url_of(&self, portal: &Portal, host: &str) -> String {
        match (portal.url.as_str(), self.is_tls) {
            ("", true) => format!("https://{host}"),
            ("", false) => format!("http://{host}"),
            (url, _) => url.trim_end_matches('/').to_owned(),
        }
    }
}

/// The host that a browser asks for.
fn host_of(headers: &HeaderMap) -> Option<String> {
    let mut hosts = headers.get_all(header::HOST).iter();
    let (host, second) = (hosts.next(), hosts.next());
    match (host, second) {
        (Some(host), None) => Some(host.to_str().ok()?.to_ascii_lowercase()),
        _ => None,
    }
}

/// Finds the portal and who asks, and refuses what another site makes a browser send.
async fn enter(
    State(portals): State<Arc<Portals>>,
    ConnectInfo(peer): ConnectInfo<SocketAddr>,
    mut request: Request,
    next: Next,
) -> Response {
    let Some(host) = host_of(request.headers()) else {
        return Problem::bad("expected one Host header").into_response();
    };
    let Some(portal) = portals.portal_of(&host) else {
        let detail = format!("no portal answers {host}");
        return Problem::new(StatusCode::NOT_FOUND, detail).into_response();
    };
    let is_read = matches!(*request.method(), Method::GET | Method::HEAD | Method::OPTIONS);
    if !is_read && !is_from_here(request.headers(), &host, &portal) {
        let detail = "the call came from another site: its Origin is not this portal's";
        return Problem::forbidden(detail).into_response();
    }
    let url = portals.url_of(&portal, &host);
    let visit = Visit {
        portal: Arc::new(portal),
        viewer: Viewer::default(),
        url,
        address: peer.ip(),
    };
    request.extensions_mut().insert(visit);
    next.run(request).await
}

/// Whether a browser sends a write because a page of this portal wants it. Clients that are no browsers say where they
/// come from, too.
fn is_from_here(headers: &HeaderMap, host: &str, portal: &Portal) -> bool {
    let mut origins = headers.get_all(header::ORIGIN).iter();
    let (Some(origin), None) = (origins.next(), origins.next()) else {
        return false;
    };
    let origin = origin.to_str().unwrap_or_default();
    let authority = origin.split_once("://").map(|(_, authority)| authority);
    authority == Some(host) || (!portal.url.is_empty() && origin == portal.url.trim_end_matches('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_of_other_sites_are_refused() {
        let portal = Portal {
            url: "https://dev.test/".to_owned(),
            ..Portal::default()
        };
        for (origins, expected) in [
            (&["http://127.0.0.1:1"][..], true),
            (&["https://dev.test"], true),
            (&["https://evil.test"], false),
            (&["null"], false),
            (&[], false),
            (&["http://127.0.0.1:1", "https://evil.test"], false),
        ] {
            let mut headers = HeaderMap::new();
            for origin in origins {
                headers.append(header::ORIGIN, origin.parse().expect("a value"));
            }
            assert_eq!(
                is_from_here(&headers, "127.0.0.1:1", &portal),
                expected,
                "{origins:?}"
            );
        }
    }
}
