//! The portals of a process: what they share, which one answers a host, and what a call is about.

use crate::catalogue::{Catalogue, Descriptions, GatewayLookup};
use crate::documents::Documents;
use crate::people::{Developer, DeveloperStore, Notices};
use crate::shell::Shell;
use crate::version_status::StatusCache;
use crate::viewer::Viewer;
use axum::http::StatusCode;
use std::future::Future;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;
use weir_apis::entities::Portal;
use weir_console::Archive;
use weir_control::access::Audit;
use weir_control::access::openid::Providers;
use weir_control::access::openid::client::Client;
use weir_control::access::password::Passwords;
use weir_control::analytics::Analytics;
use weir_control::api::{Delegate, Problem};
use weir_control::attempt_counter::AttemptCounter;
use weir_control::operational::{OperationalError, OperationalStore};
use weir_control::outbox::Outbox;
use weir_control::quotas::{LocalUsage, Meter};
use weir_store::{Store, StoreError};

/// The settings and services of portals.
pub struct Options {
    /// The configuration's store.
    pub store: Arc<dyn Store>,
    /// Makes calls of Weir's own API.
    pub delegate: Delegate,
    /// The analytics that are kept here; `None`: they are off.
    pub analytics: Option<Analytics>,
    /// The built pages.
    pub assets: Archive,
    /// The URL of the gateway of this process that serves an environment, for publications that name no other.
    pub gateway: GatewayLookup,
    /// The counts of limits.
    pub counted: LocalUsage,
    /// Whether browsers come over TLS.
    pub is_tls: bool,
    /// The store of what is not configuration: developers, teams, sessions.
    pub operational: OperationalStore,
    /// Sends mails; `None`: none can be sent, and what needs one is refused.
    pub post: Option<Post>,
    /// The outbox of messages about developers.
    pub outbox: Outbox,
    /// The record of what developers do.
    pub audit: Audit,
    /// The identity providers that portals may name.
    pub providers: Providers,
}

/// A mail.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mail {
    /// The portal in whose name it goes.
    pub portal: String,
    /// To whom.
    pub to: String,
    /// Its subject.
    pub subject: String,
    /// The text.
    pub text: String,
}

impl Mail {
    /// A mail.
    pub fn new((portal, to): (&str, &str), subject: &str, text: String) -> Self {
        Self {
            portal: portal.to_owned(),
            to: to.to_owned(),
            subject: subject.to_owned(),
            text,
        }
    }
}

/// Sends mails: it returns once a mail is sure to be sent.
pub type Post =
    Arc<dyn Fn(Mail) -> Pin<Box<dyn Future<Output = Result<(), OperationalError>> + Send>> + Send + Sync>;

/// The portals.
pub struct Portals {
    /// The documents of the configuration's store.
    pub(crate) documents: Documents,
    pub(crate) delegate: Delegate,
    pub(crate) analytics: Option<Analytics>,
    pub(crate) gateway: GatewayLookup,
    /// Finds out the state of limits.
    pub(crate) meter: Meter,
    pub(crate) shell: Shell,
    pub(crate) tries: AttemptCounter,
    pub(crate) people: DeveloperStore,
    pub(crate) audit: Audit,
    pub(crate) providers: Providers,
    /// Asks identity providers.
    pub(crate) openid: Client,
    pub(crate) statuses: StatusCache,
    outbox: Outbox,
    post: Option<Post>,
    is_tls: bool,
    catalogue_cache: Mutex<CatalogueCache>,
}

/// The catalogue as it was made last.
#[derive(Default)]
struct CatalogueCache {
    revision: Option<u64>,
    catalogue: Arc<Catalogue>,
    descriptions: Descriptions,
}

/// The context of a call: the portal that was asked, and the caller.
#[derive(Clone)]
pub(crate) struct PortalContext {
    pub portal: Arc<Portal>,
    pub viewer: Viewer,
    /// The name of the call's personal token; `None`: it has none.
    pub token: Option<String>,
    /// The portal's URL as the browser has it, without a path.
    pub url: String,
    /// The URL for links in mails; `None`: it is not known.
    pub links: Option<String>,
    /// From where.
    pub address: IpAddr,
}

/// The address of the listener that has taken a call, as an extension of the request.
#[derive(Debug, Clone, Copy)]
pub struct Listening(pub SocketAddr);

impl PortalContext {
    /// The URL for links in mails.
    ///
    /// # Errors
    /// It is not known: 409, with what to do.
    pub(crate) fn link_url(&self) -> Result<&str, Problem> {
        let detail = || {
            let name = &self.portal.name;
            format!("this needs a mail with a link: set 'url' of the portal '{name}' first, as administrator")
        };
        let url = self.links.as_deref();
        url.ok_or_else(|| Problem::new(StatusCode::CONFLICT, detail()))
    }

    /// Whether browsers come over TLS, here or at something in front.
    pub(crate) fn is_secure(&self) -> bool {
        self.url.starts_with("https://")
    }
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
            meter: Meter::new(options.counted, options.analytics.clone()),
            analytics: options.analytics,
            gateway: options.gateway,
            shell: Shell::new(options.assets),
            tries: AttemptCounter::default(),
            people: DeveloperStore::new(options.operational, Passwords::default()),
            audit: options.audit,
            providers: options.providers,
            openid: Client::default(),
            statuses: StatusCache::default(),
            outbox: options.outbox,
            post: options.post,
            is_tls: options.is_tls,
            catalogue_cache: Mutex::default(),
        }))
    }

    /// The catalogue as the store has it.
    pub(crate) async fn catalogue(self: &Arc<Self>) -> Arc<Catalogue> {
        let revision = self.documents.catalogue_revision();
        {
            let cache = self.lock_catalogue();
            if cache.revision == Some(revision) {
                return Arc::clone(&cache.catalogue);
            }
        }
        let this = Arc::clone(self);
        let build = tokio::task::spawn_blocking(move || {
            // Others wait here for the one that is made.
            let mut cache = this.lock_catalogue();
            let revision = this.documents.catalogue_revision();
            if cache.revision != Some(revision) {
                let catalogue = Catalogue::build(&this.documents, &mut cache.descriptions);
                cache.catalogue = Arc::new(catalogue);
                cache.revision = Some(revision);
            }
            Arc::clone(&cache.catalogue)
        });
        build.await.unwrap_or_else(|error| {
            tracing::error!(%error, "the portal's catalogue cannot be built; the previous one is still shown");
            Arc::clone(&self.lock_catalogue().catalogue)
        })
    }

    /// Refuses what needs a mail, if none can be sent.
    pub(crate) fn need_mail(&self) -> Result<(), Problem> {
        match self.post {
            Some(_) => Ok(()),
            None => Err(Problem::new(
                StatusCode::SERVICE_UNAVAILABLE,
                "this portal cannot send mails: ask its administrators",
            )),
        }
    }

    /// Sends a mail.
    pub(crate) async fn send(&self, mail: Mail) -> Result<(), Problem> {
        self.need_mail()?;
        match &self.post {
            Some(post) => post(mail).await.map_err(crate::people::failed),
            None => Ok(()),
        }
    }

    /// Writes messages about developers of a portal.
    pub(crate) fn notices<'n>(&'n self, portal: &'n Portal) -> Notices<'n> {
        Notices {
            outbox: &self.outbox,
            hooks: self.documents.list("apis/hooks/"),
            portal,
        }
    }

    /// The outbox of messages.
    pub(crate) fn outbox(&self) -> &Outbox {
        &self.outbox
    }

    /// Messages were written.
    pub(crate) fn notify(&self) {
        self.outbox.notify();
    }

    /// Writes the webhooks of something that a developer has done.
    pub(crate) async fn queue_webhooks(
        &self,
        visit: &PortalContext,
        kind: &str,
        developer: &Developer,
        now: SystemTime,
    ) -> Result<(), Problem> {
        let by = format!("developer {}", developer.mail);
        let writes = self.notices(&visit.portal).event(kind, developer, &by, now)?;
        if !writes.is_empty() {
            self.people.store.write(writes, now).await?;
            self.notify();
        }
        Ok(())
    }

    fn lock_catalogue(&self) -> std::sync::MutexGuard<'_, CatalogueCache> {
        // What is made is put in place as a whole.
        self.catalogue_cache
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// The portal that answers a host.
    pub(crate) fn portal_of(&self, host: &str) -> Option<Portal> {
        let mut all: Vec<Portal> = self.documents.list("apis/portals/");
        if all.is_empty() {
            // On the first day there is a portal that shows everything.
            return Some(Portal {
                name: Portal::DEFAULT.to_owned(),
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

    /// The URL for links in mails of a portal.
    pub(crate) fn links_of(
        &self,
        portal: &Portal,
        host: &str,
        listening: Option<&Listening>,
    ) -> Option<String> {
        let scheme = if self.is_tls { "https" } else { "http" };
        links_of(portal, (scheme, host), listening.map(|it| it.0))
    }

    /// The URL as the browser has it. It is for answers to the same browser, never for mails.
    pub(crate) fn url_of(&self, portal: &Portal, host: &str) -> String {
        match (portal.url.as_str(), self.is_tls) {
            ("", true) => format!("https://{host}"),
            ("", false) => format!("http://{host}"),
            (url, _) => url.trim_end_matches('/').to_owned(),
        }
    }
}

/// `Host` is what the caller says: in a mail to another person it counts only if the portal names it. A portal that
/// only this machine reaches has the address of its listener.
fn links_of(portal: &Portal, (scheme, host): (&str, &str), listening: Option<SocketAddr>) -> Option<String> {
    if !portal.url.is_empty() {
        return Some(portal.url.trim_end_matches('/').to_owned());
    }
    if portal.hosts.is_empty() {
        let own = listening.filter(|it| it.ip().is_loopback())?;
        return Some(format!("{scheme}://{own}"));
    }
    let is_named = portal.hosts.iter().any(|it| it == host);
    is_named.then(|| format!("{scheme}://{host}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_in_mails_lead_to_no_host_that_only_the_caller_names() {
        let (local, open) = (Some("127.0.0.1:8003"), Some("0.0.0.0:8003"));
        for (url, hosts, host, listening, expected) in [
            (
                "https://dev.test/",
                &[][..],
                "evil.test",
                open,
                Some("https://dev.test"),
            ),
            ("", &[], "evil.test", open, None),
            ("", &[], "127.0.0.1:8003", open, None),
            ("", &[], "evil.test", None, None),
            ("", &[], "evil.test", local, Some("http://127.0.0.1:8003")),
            ("", &["dev.test"], "dev.test", open, Some("http://dev.test")),
            ("", &["dev.test"], "dev.test:9", local, None),
            ("", &["dev.test:9"], "dev.test:9", open, Some("http://dev.test:9")),
            ("", &["dev.test"], "evil.test", local, None),
        ] {
            let portal = Portal {
                url: url.to_owned(),
                hosts: hosts.iter().map(|it| (*it).to_owned()).collect(),
                ..Portal::default()
            };
            let listening = listening.map(|it| it.parse().expect("an address"));
            let found = links_of(&portal, ("http", host), listening);
            assert_eq!(found.as_deref(), expected, "{url} {hosts:?} {host} {listening:?}");
        }
    }
}
