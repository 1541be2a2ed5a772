//! Who may do what: users with tokens, their roles in workspaces, the guard in front of every Admin API, and the
//! record of what they did.

mod action;
mod audit;
mod audit_log;
mod cross_site;
mod guard;
mod role;
mod scope;
mod token;
mod users;
mod within;

pub use action::Action;
pub use audit::{Audit, Entry, read as read_audit};
pub use guard::{Caller, Guard, protect};
pub(crate) use guard::{NoAudit, NotAllowed};
pub use role::Role;
pub(crate) use scope::WrittenRight;
pub use scope::{EVERYWHERE, Right, Scope};
pub use token::{Token, TokenHash};
pub(crate) use users::PREFIX as USERS;
pub use users::{User, Users, key_of};
pub use within::within;
