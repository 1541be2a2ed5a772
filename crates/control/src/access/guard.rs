//! The guard in front of every Admin API: who calls, whether they may, and the record of it.
//!
//! As long as there are no users, callers on this machine may do everything, as in the originals; callers from
//! elsewhere may do nothing. A browser that another site sent here may do nothing either.
//!
//! A call shows a token, or, at Weir's own API, the cookie of a session. A cookie comes with whatever makes a browser
//! call, so that a write with a cookie has to come from a page of this server.

use super::audit::Audit;
use super::caller::Caller;
use super::cookie;
use super::cross_site::is_cross_site;
use super::entry::AuditRecord;
use super::recorded::commits_of;
use super::role::Role;
use super::scope::{EVERYWHERE, Scope as Part};
use super::users::{Users, action_of};
use crate::listen::OverTls;
use axum::Router;
use axum::extract::{ConnectInfo, Request, State};
use axum::http::{Extensions, HeaderMap, HeaderName, HeaderValue, Method, Response, StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::IntoResponse;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::SystemTime;
use weir_dialect::{AccessError, AdminAccess, Dialect, KeyRole, Scope};
use weir_model::unix_time;
use weir_store::{Author, WorkspaceScoped};

/// The data of a guard.
#[derive(Clone)]
pub struct Guard {
    /// Whose Admin API it guards.
    pub dialect: Arc<dyn Dialect>,
    /// The users.
    pub users: Users,
    /// The record.
    pub audit: Audit,
    /// Keys of the dialect itself, with what each may do.
    pub keys: Vec<(String, Role)>,
    /// Whether callers of this machine need no key as long as there are no users.
    pub is_open: bool,
}

impl Guard {
    /// In front of the Admin API of a dialect, with the keys that it has itself.
    pub fn new(dialect: Arc<dyn Dialect>, users: Users, audit: Audit) -> Self {
        let access = dialect.admin_access();
        let keys = access.keys().into_iter();
        Self {
            keys: keys.map(|(key, role)| (key, role_of(role))).collect(),
            is_open: access.is_open(),
            dialect,
            users,
            audit,
        }
    }
}

fn role_of(role: KeyRole) -> Role {
    match role {
        KeyRole::Admin => Role::Admin,
        KeyRole::Viewer => Role::Read,
    }
}

/// Keys are secrets.
impl std::fmt::Debug for Guard {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Guard")
            .field("dialect", &self.dialect.name())
            .field("keys", &self.keys.len())
            .finish_non_exhaustive()
    }
}

/// In the extensions of an answer: the call has changed nothing of which a record is kept.
#[derive(Debug, Clone, Copy)]
pub struct NoAudit;

/// In the extensions of an answer: the caller may not do this.
#[derive(Debug, Clone, Copy)]
pub struct NotAllowed;

/// In the extensions of an answer: in whose name the call is recorded, if the guard could not know.
#[derive(Debug, Clone)]
pub struct AuditIdentity(pub String);

/// In the extensions of an answer: the call is recorded as a write is, such as a login that is a GET.
#[derive(Debug, Clone, Copy)]
pub struct Audited;

/// Whether only the caller and this server know what is sent: over TLS, or from a server on this machine that says that
/// it has taken the call over TLS.
pub fn is_secure(extensions: &Extensions, headers: &HeaderMap, peer: SocketAddr) -> bool {
    let is_over_tls = extensions.get::<OverTls>().is_some_and(|it| it.0);
    let is_forwarded = headers.get("x-forwarded-proto").is_some_and(|it| it == "https");
    is_over_tls || (is_forwarded && peer.ip().to_canonical().is_loopback())
}

/// Puts a guard in front of an Admin API. The server has to know its clients' addresses.
pub fn protect(router: Router, guard: Guard) -> Router {
    router.layer(middleware::from_fn_with_state(Arc::new(guard), check))
}

type HttpResponse = Response<axum::body::Body>;

async fn check(
    State(guard): State<Arc<Guard>>,
    ConnectInfo(peer): ConnectInfo<SocketAddr>,
    mut request: Request,
    next: Next,
) -> HttpResponse {
    let is_write = !matches!(*request.method(), Method::GET | Method::HEAD | Method::OPTIONS);
    let mut entry = AuditRecord {
        time: unix_time::millis(SystemTime::now()),
        who: String::new(),
        from: peer.ip().to_string(),
        dialect: guard.dialect.name().to_string(),
        what: format!(
            "{} {}",
            request.method(),
            guard.dialect.admin_access().recordable(request.uri().path())
        ),
        status: 0,
        revisions: Vec::new(),
        changes: Vec::new(),
    };
    match guard.admit(&request, peer) {
        Ok(caller) => {
            let name = caller.name();
            request.extensions_mut().insert(Author(name.as_str().into()));
            if !caller.may(Role::Write, EVERYWHERE) {
                request.extensions_mut().insert(WorkspaceScoped);
            }
            request.extensions_mut().insert(caller.rights_in_workspaces());
            guard.note_use(&caller);
            request.extensions_mut().insert(caller);
            let (answer, revisions) = commits_of(next.run(request)).await;
            entry.revisions = revisions;
            let name = answer
                .extensions()
                .get::<AuditIdentity>()
                .map_or(name, |it| it.0.clone());
            // Only the answer shows that nothing was changed: not every call can be tried.
            let is_unrecorded = answer.extensions().get::<NoAudit>().is_some();
            if answer.extensions().get::<NotAllowed>().is_some() {
                entry.who = name;
                entry.status = answer.status().as_u16();
                guard.audit.note_refused(entry);
            } else if (is_write || answer.extensions().get::<Audited>().is_some())
                && !is_unrecorded
                && !crate::api::is_dry_run(answer.headers())
            {
                entry.who = name;
                entry.status = answer.status().as_u16();
                guard.audit.note(entry);
            }
            answer
        }
        Err(refused) => {
            let answer = guard.refuse(&refused);
            entry.who = match refused {
                AccessError::Forbidden { who, .. } => who,
                _ => "unknown".to_owned(),
            };
            entry.status = answer.status().as_u16();
            guard.audit.note_refused(entry);
            answer
        }
    }
}

/// The role that a call needs.
fn role_for(method: &Method) -> Role {
    match *method {
        Method::GET | Method::HEAD | Method::OPTIONS => Role::Read,
        _ => Role::Write,
    }
}

/// Whether a caller may make a call of an Admin API.
pub(super) fn is_allowed(access: &dyn AdminAccess, caller: &Caller, method: &Method, path: &str) -> bool {
    let role = role_for(method);
    match (&access.scope(path), caller) {
        // Each call of Weir's own API names the right that it asks for.
        _ if access.decides_itself() => true,
        (Scope::Anywhere, _) if caller.user().is_some() => {
            let is_of_workspaces = |part: &Part| matches!(part, Part::Everything | Part::Workspace(_));
            action_of(role).is_some_and(|action| caller.scopes(action).iter().any(is_of_workspaces))
        }
        (Scope::Anywhere | Scope::Everywhere, _) => caller.may(role, EVERYWHERE),
        (Scope::Workspace(workspace), _) => caller.may(role, workspace),
    }
}

impl Guard {
    fn admit(&self, request: &Request, peer: SocketAddr) -> Result<Caller, AccessError> {
        let caller = self.identify(request, peer)?;
        let access = self.dialect.admin_access();
        match is_allowed(access, &caller, request.method(), request.uri().path()) {
            true => Ok(caller),
            false => Err(AccessError::Forbidden {
                who: caller.name(),
                is_write: role_for(request.method()) != Role::Read,
            }),
        }
    }

    fn identify(&self, request: &Request, peer: SocketAddr) -> Result<Caller, AccessError> {
        let access = self.dialect.admin_access();
        let (method, path) = (request.method().as_str(), request.uri().path());
        if access.is_public(method, path) {
            return Ok(Caller::Key(Role::Read));
        }
        let token = self.token(request);
        // The status of a gateway needs no key in the original, which listens on loopback only. Callers
        // from elsewhere show one.
        let is_local = peer.ip().to_canonical().is_loopback();
        let is_status = access.is_status(method, path);
        let needs_no_key = self.keys.is_empty() || ((is_status || self.is_open) && is_local);
        if self.users.is_empty() && needs_no_key {
            if !is_local {
                return Err(AccessError::FromElsewhere);
            }
            if is_cross_site(request.headers()) {
                return Err(AccessError::CrossSite);
            }
            return match (
                !access.stock_keys().is_empty() && !is_status && !self.is_open,
                token,
            ) {
                // A caller without a key, while there are keys, sees no secrets.
                (false, _) if !self.keys.is_empty() && !self.is_open => Ok(Caller::Key(Role::Read)),
                (false, _) => Ok(Caller::LocalAnonymous),
                (true, None) => Err(AccessError::NoToken),
                (true, Some(token)) => self.with_stock_key(&token).ok_or(AccessError::WrongToken),
            };
        }
        if token.is_none() && access.takes_sessions() {
            return self.by_cookie(request, peer);
        }
        let token = token.ok_or(AccessError::NoToken)?;
        if let Some(caller) = self.users.caller_of_token(&token, SystemTime::now()) {
            return Ok(caller);
        }
        let mut found = None;
        for (key, role) in &self.keys {
            // All are compared, each in constant time.
            if aws_lc_rs::constant_time::verify_slices_are_equal(key.as_bytes(), token.as_bytes()).is_ok() {
                found = Some(Caller::Key(*role));
            }
        }
        // Everybody knows the keys that the documentation of an original has.
        if found.is_some() && !is_local && self.with_stock_key(&token).is_some() {
            return Err(AccessError::FromElsewhere);
        }
        found.ok_or(AccessError::WrongToken)
    }

    fn by_cookie(&self, request: &Request, peer: SocketAddr) -> Result<Caller, AccessError> {
        let (headers, extensions) = (request.headers(), request.extensions());
        let cookie_value = cookie::SESSION.value_in(headers, is_secure(extensions, headers, peer));
        let caller = cookie_value.and_then(|it| self.users.caller_of_cookie(it, SystemTime::now()));
        let caller = caller.ok_or(AccessError::NoToken)?;
        let is_read = matches!(*request.method(), Method::GET | Method::HEAD | Method::OPTIONS);
        match is_read || cookie::is_of_own_page(headers) {
            true => Ok(caller),
            false => Err(AccessError::CrossSite),
        }
    }

    /// Writes down that a session or a token is used, if it was not used a moment ago.
    fn note_use(&self, caller: &Caller) {
        let (users, now) = (self.users.clone(), SystemTime::now());
        match caller {
            Caller::Session(_, session) if session.value.is_due(now) => {
                let session = Arc::clone(session);
                tokio::spawn(async move { users.sessions().touch(&session, now).await });
            }
            Caller::PersonalToken(_, token) if token.value.is_due(now) => {
                let token = Arc::clone(token);
                tokio::spawn(async move { users.personal_tokens().touch(&token, now).await });
            }
            _ => {}
        }
    }

    /// A caller with one of the keys that the original's documentation has. They protect nothing, but its clients show
    /// them, and a viewer's key may only read.
    fn with_stock_key(&self, token: &str) -> Option<Caller> {
        let stock = self.dialect.admin_access().stock_keys();
        let (_, role) = stock.iter().find(|(known, _)| *known == token)?;
        Some(match role {
            KeyRole::Admin => Caller::LocalAnonymous,
            KeyRole::Viewer => Caller::Key(Role::Read),
        })
    }

    fn token(&self, request: &Request) -> Option<String> {
        let query = request.uri().query().unwrap_or_default();
        let headers = request.headers();
        let header = |name: &str| headers.get(name)?.to_str().ok().map(str::to_owned);
        self.dialect.admin_access().token(query, &header)
    }

    fn refuse(&self, refused: &AccessError) -> HttpResponse {
        let reply = self.dialect.admin_access().refuse(refused);
        let status = StatusCode::from_u16(reply.status).unwrap_or(StatusCode::FORBIDDEN);
        let mut answer = (status, [(header::CONTENT_TYPE, reply.content_type)], reply.body).into_response();
        for (name, value) in reply.headers {
            let name = HeaderName::from_static(name);
            answer.headers_mut().insert(name, HeaderValue::from_static(value));
        }
        answer
    }
}

#[cfg(test)]
mod tests;
