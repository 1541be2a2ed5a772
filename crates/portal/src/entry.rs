//! The way into a portal: which one is asked for, who asks, and whether a write comes from its own pages or a program.

use crate::people::Developer;
use crate::state::{Listening, PortalContext, Portals};
use crate::viewer::Viewer;
use crate::{api, cookie, pages};
use axum::Router;
use axum::extract::{ConnectInfo, Request, State};
use axum::http::{HeaderMap, Method, StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::SystemTime;
use weir_apis::entities::Portal;
use weir_control::access::{AuditIdentity, AuditRecord, commits_of};
use weir_control::api::Problem;
use weir_model::unix_time;

/// The paths of all portals.
pub fn router(portals: &Arc<Portals>) -> Router {
    let router = api::router(portals).merge(pages::router(portals));
    router.layer(middleware::from_fn_with_state(Arc::clone(portals), enter))
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
    // No other site makes a browser send a token.
    let token = bearer(request.headers());
    if !is_read && token.is_none() && !is_from_here(request.headers(), &host, &portal) {
        let detail = "the call came from another site: its Origin is not this portal's";
        return Problem::forbidden(detail).into_response();
    }
    let url = portals.url_of(&portal, &host);
    let links = portals.links_of(&portal, &host, request.extensions().get::<Listening>());
    let mut visit = PortalContext {
        portal: Arc::new(portal),
        viewer: Viewer::default(),
        token: None,
        url,
        links,
        address: peer.ip(),
    };
    if let Err(problem) = recognise(&portals, &mut visit, request.headers(), token).await {
        return problem.into_response();
    }
    let entry = is_recorded(is_read, request.uri().path()).then(|| entry(&request, &visit));
    request.extensions_mut().insert(visit);
    let (answer, revisions) = commits_of(next.run(request)).await;
    if let Some(mut entry) = entry {
        entry.revisions = revisions;
        note(&portals, entry, &answer);
    }
    answer
}

/// The personal token that a program shows. A call that shows one is made by its developer, whatever cookie comes with it.
fn bearer(headers: &HeaderMap) -> Option<String> {
    let authorization = headers.get(header::AUTHORIZATION)?.to_str().ok()?;
    let (scheme, token) = authorization.split_once(' ')?;
    scheme
        .eq_ignore_ascii_case("bearer")
        .then(|| token.trim().to_owned())
}

/// Finds out who asks. A token that is wrong or has ended is refused: its program is to hear of it.
async fn recognise(
    portals: &Portals,
    visit: &mut PortalContext,
    headers: &HeaderMap,
    token: Option<String>,
) -> Result<(), Problem> {
    let (now, portal) = (SystemTime::now(), &visit.portal.name);
    if let Some(token) = token {
        let known = portals.people.find_by_token(portal, &token, now).await?;
        let (developer, name) = known.ok_or_else(|| {
            let detail = "this personal token is wrong, expired or revoked";
            Problem::new(StatusCode::UNAUTHORIZED, detail).of_type("wrong-token")
        })?;
        (visit.viewer, visit.token) = (viewer(developer), Some(name));
    } else if let Some(value) = cookie::get(headers, visit.is_secure()) {
        let known = portals.people.of_cookie(portal, &value, now).await?;
        visit.viewer = known.map(viewer).unwrap_or_default();
    }
    Ok(())
}

/// Whether the audit log has a call. One that is tried is in the analytics, and changes nothing here; one that takes a
/// browser back from an identity provider begins a session.
fn is_recorded(is_read: bool, path: &str) -> bool {
    match is_read {
        true => path.starts_with("/portal/v1/session/openid/") && path.ends_with("/callback"),
        false => !path.starts_with("/portal/v1/try/"),
    }
}

/// A call's entry in the audit log. Secrets are in bodies and queries only, which it does not have.
fn entry(request: &Request, visit: &PortalContext) -> AuditRecord {
    let who = match visit.viewer.mail.as_str() {
        "" => "visitor".to_owned(),
        mail => format!("developer {mail}"),
    };
    AuditRecord {
        time: unix_time::millis(SystemTime::now()),
        who,
        from: match &visit.token {
            Some(token) => format!("{}, token {token}", visit.address.to_canonical()),
            None => visit.address.to_canonical().to_string(),
        },
        dialect: format!("portal {}", visit.portal.name),
        what: format!("{} {}", request.method(), request.uri().path()),
        status: 0,
        revisions: Vec::new(),
        changes: Vec::new(),
    }
}

fn note(portals: &Portals, mut entry: AuditRecord, answer: &Response) {
    entry.status = answer.status().as_u16();
    if let Some(AuditIdentity(who)) = answer.extensions().get() {
        entry.who.clone_from(who);
    }
    // What strangers try has a bounded place of its own.
    match answer.status().is_success() || entry.who != "visitor" {
        true => portals.audit.note(entry),
        false => portals.audit.note_refused(entry),
    }
}

fn viewer(developer: Developer) -> Viewer {
    Viewer {
        developer: Some(developer.id),
        mail: developer.mail,
        groups: developer.groups.into_iter().chain(developer.provided).collect(),
    }
}

/// Whether a browser sends a write because a page of this portal wants it. Clients that are no browsers send their
/// origin, come from, too.
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
    fn writes_and_logins_are_recorded() {
        for (is_read, path, expected) in [
            (false, "/portal/v1/session", true),
            (false, "/portal/v1/try/pets/1", false),
            (true, "/portal/v1/session/openid/corp/callback", true),
            (true, "/portal/v1/session/openid/corp", false),
            (true, "/portal/v1/apps", false),
        ] {
            assert_eq!(is_recorded(is_read, path), expected, "{path}");
        }
    }

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
