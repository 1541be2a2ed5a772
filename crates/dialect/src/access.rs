//! How clients of an Admin API show who they are, what they may do, and how they are refused. Who is let in is decided
//! elsewhere, the same way for all dialects; here are the parts that depend on the dialect.

use crate::DEFAULT_WORKSPACE;
use std::fmt;
use std::sync::Arc;

/// What a call of an Admin API is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Scope {
    /// What is in one workspace, be it there or not.
    Workspace(String),
    /// What holds for all workspaces.
    Everywhere,
    /// Data that belongs to no workspace, such as schemas: a right in any workspace is enough.
    Anywhere,
}

/// What the holder of one of a dialect's own keys may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyRole {
    /// Everything.
    Admin,
    /// Read.
    Viewer,
}

/// Why a call is not let in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AccessError {
    /// It shows no token.
    NoToken,
    /// It shows a token that is not known.
    WrongToken,
    /// There are no users, and it comes from another machine.
    FromElsewhere,
    /// Another site made a browser send it.
    CrossSite,
    /// The caller lacks a right.
    Forbidden {
        /// Who calls.
        who: String,
        /// Whether the call would have written.
        is_write: bool,
    },
}

impl AccessError {
    /// What to do about it, for refusals that no original knows.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::FromElsewhere => Some(
                "there are no users yet, so only calls from this machine are accepted: create a user with `weir user add NAME --role admin`",
            ),
            Self::CrossSite => Some("requests sent from another site are refused"),
            Self::NoToken | Self::WrongToken | Self::Forbidden { .. } => None,
        }
    }
}

/// The answer to a call that is not let in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefusedReply {
    /// The status code.
    pub status: u16,
    /// The type of the body.
    pub content_type: &'static str,
    /// The body.
    pub body: String,
    /// More headers, with lower-case names.
    pub headers: Vec<(&'static str, &'static str)>,
}

/// The part of an Admin API's guard that depends on the dialect. Nothing of it does I/O.
pub trait AdminAccess: Send + Sync {
    /// What a path is for. Asked before the call is let in: it must mean the same to the Admin API.
    fn scope(&self, path: &str) -> Scope {
        let _unused = path;
        Scope::Workspace(DEFAULT_WORKSPACE.to_owned())
    }

    /// Whether the Admin API itself demands the rights that its calls need. The guard then only finds out who calls.
    fn decides_itself(&self) -> bool {
        false
    }

    /// A path as it may stand in a record, without secrets.
    fn recordable(&self, path: &str) -> String {
        path.to_owned()
    }

    /// The token that a call shows. `header` gives the values of headers by their lower-case names.
    fn token(&self, query: &str, header: &dyn Fn(&str) -> Option<String>) -> Option<String> {
        let _unused = query;
        bearer(header)
    }

    /// Whether the cookie of a session lets a call in, as one from a browser that shows no token.
    fn takes_sessions(&self) -> bool {
        false
    }

    /// Whether everybody may make this call.
    fn is_public(&self, method: &str, path: &str) -> bool {
        let _unused = (method, path);
        false
    }

    /// Whether this call only reads the gateway's status. As long as there are no users, it needs no key from this
    /// machine.
    fn is_status(&self, method: &str, path: &str) -> bool {
        let _unused = (method, path);
        false
    }

    /// Keys that the original's documentation has, and that its clients show. Everybody knows them, so they protect
    /// nothing. If there are some, calls from this machine show one.
    fn stock_keys(&self) -> &'static [(&'static str, KeyRole)] {
        &[]
    }

    /// The dialect's own keys, as its configuration has them.
    fn keys(&self) -> Vec<(String, KeyRole)> {
        Vec::new()
    }

    /// Whether calls from this machine need no key at all as long as there are no users.
    fn is_open(&self) -> bool {
        false
    }

    /// The answer to a call that is not let in.
    fn refuse(&self, refused: &AccessError) -> RefusedReply;
}

/// The token of `Authorization: Bearer TOKEN`.
pub fn bearer(header: &dyn Fn(&str) -> Option<String>) -> Option<String> {
    let value = header("authorization")?;
    let (scheme, token) = value.split_once(' ')?;
    scheme
        .eq_ignore_ascii_case("bearer")
        .then(|| token.trim().to_owned())
}

type WritePredicate = dyn Fn(&str) -> bool + Send + Sync;

/// In which workspaces a caller may write. In the extensions of a request; without it, the caller may write everywhere.
#[derive(Clone, Default)]
pub struct Rights(Option<Arc<WritePredicate>>);

impl fmt::Debug for Rights {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Rights").finish_non_exhaustive()
    }
}

impl Rights {
    /// To write everywhere.
    pub const ALL: &Self = &Self(None);

    /// To write in the workspaces for which this says so.
    pub fn new(may_write: impl Fn(&str) -> bool + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(may_write)))
    }

    /// Whether the caller may write in a workspace. A caller that may not is shown no secrets of it.
    pub fn may_write(&self, workspace: &str) -> bool {
        self.0.as_ref().is_none_or(|may_write| may_write(workspace))
    }

    /// Whether there is nothing to ask.
    pub fn are_all(&self) -> bool {
        self.0.is_none()
    }
}
