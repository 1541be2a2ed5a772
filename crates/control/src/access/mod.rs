//! Who may do what: users with tokens, their roles in workspaces, the guard in front of every Admin API, and the
//! record of what they did.

mod audit;
mod audit_log;
mod cross_site;
mod guard;
mod messages;
mod token;
mod users;

pub use audit::{Audit, Entry, read as read_audit};
pub(crate) use guard::NoAudit;
pub use guard::{Caller, Guard, protect};
pub use token::{Token, TokenHash};
pub(crate) use users::PREFIX as USERS;
pub use users::{EVERYWHERE, Right, Role, User, Users, key_of};
