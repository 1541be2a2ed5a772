//! The guard in front of every Admin API: who calls, whether they may, and the record of it.
//!
//! As long as there are no users, whoever calls from this machine may do everything, as in the originals; whoever
//! calls from elsewhere may do nothing. A browser that another site sent here may do nothing either.

use super::action::Action;
use super::audit::{Audit, Entry};
use super::cross_site::is_cross_site;
use super::role::Role;
use super::scope::{EVERYWHERE, Scope as Part};
use super::users::{User, Users, action_of, allow};
use axum::Router;
use axum::extract::{ConnectInfo, Request, State};
use axum::http::{HeaderName, HeaderValue, Method, Response, StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::IntoResponse;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};
use weir_dialect::{AdminAccess, Dialect, KeyRole, Refused, Rights, Scope};
use weir_store::{Author, Confined};

/// What a guard knows.
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

/// Who calls.
#[derive(Debug, Clone)]
pub enum Caller {
    /// Somebody on this machine, while there are no users.
    LocalAnonymous,
    /// A caller with one of the dialect's own keys.
    Key(Role),
    /// A user.
    User(Arc<User>),
}

impl Caller {
    /// Whether the caller may do there what the role may.
    pub fn may(&self, role: Role, workspace: &str) -> bool {
        match self {
            Self::LocalAnonymous => true,
            Self::Key(given) => action_of(role).is_some_and(|action| given.allows(action)),
            Self::User(user) => user.may(role, workspace),
        }
    }

    /// Whether the caller may do this there.
    pub fn can(&self, action: Action, scope: &Part) -> bool {
        match self {
            Self::LocalAnonymous => true,
            Self::Key(given) => given.allows(action),
            Self::User(user) => action == Action::Own || allow(&user.rights, action, scope),
        }
    }

    /// The parts in which the caller may do this; everything is a part that contains all others.
    pub fn scopes(&self, action: Action) -> Vec<Part> {
        match self {
            Self::LocalAnonymous => vec![Part::Everything],
            Self::Key(given) => given
                .allows(action)
                .then_some(Part::Everything)
                .into_iter()
                .collect(),
            Self::User(user) => {
                let rights = user.rights.iter().filter(|right| right.role.allows(action));
                rights.map(|right| right.scope.clone()).collect()
            }
        }
    }

    /// The rights that were given to the caller; `None`: it has all, since there are no users.
    pub fn rights(&self) -> Option<Vec<super::scope::Right>> {
        match self {
            Self::LocalAnonymous => None,
            Self::Key(role) => Some(vec![super::scope::Right::in_workspace(EVERYWHERE, *role)]),
            Self::User(user) => Some(user.rights.clone()),
        }
    }

    /// The same caller as the users are by now; `None`: it would not be let in any more.
    pub fn by_now(&self, users: &Users) -> Option<Self> {
        match self {
            Self::LocalAnonymous => users.is_empty().then_some(Self::LocalAnonymous),
            Self::Key(role) => Some(Self::Key(*role)),
            Self::User(user) => users.of_hash(&user.token_hash).map(Self::User),
        }
    }

    /// What Admin APIs are told of it.
    fn rights_in_workspaces(&self) -> Rights {
        if self.may(Role::Write, EVERYWHERE) {
            return Rights::default();
        }
        let caller = self.clone();
        Rights::new(move |workspace| caller.may(Role::Write, workspace))
    }

    /// The name for the record.
    pub fn name(&self) -> String {
        match self {
            Self::LocalAnonymous => Author::anonymous().0.to_string(),
            Self::Key(Role::Read) => "viewer".to_owned(),
            Self::Key(_) => "admin".to_owned(),
            Self::User(user) => user.name.clone(),
        }
    }
}

/// In the extensions of an answer: the call has changed nothing of which a record is kept.
#[derive(Debug, Clone, Copy)]
pub struct NoAudit;

/// In the extensions of an answer: the caller may not do this.
#[derive(Debug, Clone, Copy)]
pub struct NotAllowed;

/// Puts a guard in front of an Admin API. The server has to know its clients' addresses.
pub fn protect(router: Router, guard: Guard) -> Router {
    router.layer(middleware::from_fn_with_state(Arc::new(guard), check))
}

type Answer = Response<axum::body::Body>;

async fn check(
    State(guard): State<Arc<Guard>>,
    ConnectInfo(peer): ConnectInfo<SocketAddr>,
    mut request: Request,
    next: Next,
) -> Answer {
    let is_write = !matches!(*request.method(), Method::GET | Method::HEAD | Method::OPTIONS);
    let mut entry = Entry {
        time: SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .map_or(0, |it| it.as_millis() as u64),
        who: String::new(),
        from: peer.ip().to_string(),
        dialect: guard.dialect.name().to_string(),
        what: format!(
            "{} {}",
            request.method(),
            guard.dialect.admin_access().recordable(request.uri().path())
        ),
        status: 0,
    };
    match guard.admit(&request, peer) {
        Ok(caller) => {
            let name = caller.name();
            request.extensions_mut().insert(Author(name.as_str().into()));
            if !caller.may(Role::Write, EVERYWHERE) {
                request.extensions_mut().insert(Confined);
            }
            request.extensions_mut().insert(caller.rights_in_workspaces());
            request.extensions_mut().insert(caller);
            let answer = next.run(request).await;
            // Only the answer tells that nothing was changed: not every call can be tried.
            let is_unrecorded = answer.extensions().get::<NoAudit>().is_some();
            if answer.extensions().get::<NotAllowed>().is_some() {
                entry.who = name;
                entry.status = answer.status().as_u16();
                guard.audit.note_refused(entry);
            } else if is_write && !is_unrecorded && !crate::api::is_dry_run(answer.headers()) {
                entry.who = name;
                entry.status = answer.status().as_u16();
                guard.audit.note(entry);
            }
            answer
        }
        Err(refused) => {
            let answer = guard.refuse(&refused);
            entry.who = match refused {
                Refused::Forbidden { who, .. } => who,
                _ => "unknown".to_owned(),
            };
            entry.status = answer.status().as_u16();
            guard.audit.note_refused(entry);
            answer
        }
    }
}

/// What a call asks for.
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
        (Scope::Anywhere, Caller::User(_)) => {
            let is_of_workspaces = |part: &Part| matches!(part, Part::Everything | Part::Workspace(_));
            action_of(role).is_some_and(|action| caller.scopes(action).iter().any(is_of_workspaces))
        }
        (Scope::Anywhere | Scope::Everywhere, _) => caller.may(role, EVERYWHERE),
        (Scope::Workspace(workspace), _) => caller.may(role, workspace),
    }
}

impl Guard {
    fn admit(&self, request: &Request, peer: SocketAddr) -> Result<Caller, Refused> {
        let caller = self.identify(request, peer)?;
        let access = self.dialect.admin_access();
        match is_allowed(access, &caller, request.method(), request.uri().path()) {
            true => Ok(caller),
            false => Err(Refused::Forbidden {
                who: caller.name(),
                is_write: role_for(request.method()) != Role::Read,
            }),
        }
    }

    fn identify(&self, request: &Request, peer: SocketAddr) -> Result<Caller, Refused> {
        let access = self.dialect.admin_access();
        let (method, path) = (request.method().as_str(), request.uri().path());
        if access.is_public(method, path) {
            return Ok(Caller::Key(Role::Read));
        }
        let token = self.token(request);
        // What tells how a gateway is doing wants no key in the original, which listens on loopback only. Whoever calls
        // from elsewhere shows one.
        let is_local = peer.ip().to_canonical().is_loopback();
        let is_status = access.is_status(method, path);
        let needs_no_key = self.keys.is_empty() || ((is_status || self.is_open) && is_local);
        if self.users.is_empty() && needs_no_key {
            if !is_local {
                return Err(Refused::FromElsewhere);
            }
            if is_cross_site(request.headers()) {
                return Err(Refused::CrossSite);
            }
            return match (
                !access.stock_keys().is_empty() && !is_status && !self.is_open,
                token,
            ) {
                // Who shows no key where there are some sees no secrets.
                (false, _) if !self.keys.is_empty() && !self.is_open => Ok(Caller::Key(Role::Read)),
                (false, _) => Ok(Caller::LocalAnonymous),
                (true, None) => Err(Refused::NoToken),
                (true, Some(token)) => self.with_stock_key(&token).ok_or(Refused::WrongToken),
            };
        }
        let token = token.ok_or(Refused::NoToken)?;
        if let Some(user) = self.users.of_token(&token) {
            return Ok(Caller::User(user));
        }
        let mut found = None;
        for (key, role) in &self.keys {
            // All are compared, each in a time that tells nothing.
            if aws_lc_rs::constant_time::verify_slices_are_equal(key.as_bytes(), token.as_bytes()).is_ok() {
                found = Some(Caller::Key(*role));
            }
        }
        // Everybody knows the keys that the documentation of an original has.
        if found.is_some() && !is_local && self.with_stock_key(&token).is_some() {
            return Err(Refused::FromElsewhere);
        }
        found.ok_or(Refused::WrongToken)
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

    fn refuse(&self, refused: &Refused) -> Answer {
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
