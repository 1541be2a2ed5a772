//! Who may do what: users with tokens, passwords and sessions, their roles in scopes, the guard in front of every Admin
//! API, and the record of what they did.

mod action;
mod attempts;
mod audit;
mod audit_log;
mod caller;
pub mod cookie;
mod cross_site;
mod dialect_rights;
mod entry;
mod guard;
pub mod openid;
pub mod password;
mod recorded;
mod role;
mod scope;
pub mod session;
mod token;
pub mod totp;
mod users;

pub use action::Action;
pub use attempts::Attempts;
pub use audit::{Audit, read as read_audit};
pub use caller::Caller;
pub use dialect_rights::check_rights;
pub use entry::{AuditRecord, Change as AuditedChange};
pub use guard::AuditIdentity;
pub(crate) use guard::{Audited, NoAudit, NotAllowed, is_secure};
pub use guard::{Guard, protect};
pub use recorded::{commits_of, recording};
pub use role::Role;
pub(crate) use scope::RoleAssignment;
pub use scope::{EVERYWHERE, Right, Scope};
pub use token::{Token, TokenHash};
pub(crate) use users::PREFIX as USERS;
pub use users::{User, Users, key_of};
