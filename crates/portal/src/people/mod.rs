//! Developers of a portal: who they are, their sessions, their teams, and the links that mails carry. All of it is in the
//! operational store, below `portal/PORTAL/`: a roll back of the configuration changes nothing of it.
//!
//! **What it is not**: developers are no users. They have no rights of Weir's own API.

mod links;
mod store;
mod teams;

pub use links::{Link, Purpose};
pub use store::{
    Developer, DeveloperState, People, SESSION, Session, failed, key, mail_of, random_id, seconds,
};
pub use teams::{Membership, Team, TeamRole};
