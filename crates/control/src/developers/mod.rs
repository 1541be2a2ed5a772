//! Developers of a portal: who they are, their sessions, their teams, and the links that mails carry. All of it is in the
//! operational store, below `portal/PORTAL/`: a roll back of the configuration changes nothing of it.
//!
//! **What it is not**: developers are no users. They have no rights of Weir's own API.

mod accounts;
mod addresses;
mod decision;
mod inbox;
mod links;
mod names;
mod notices;
mod owners;
mod second_factor;
mod store;
mod teams;
mod tokens;

pub use accounts::{Account, mark_of};
pub use addresses::AddressBook;
pub use decision::Decision;
pub use inbox::{Inbox, Notice, has_read, read_until};
pub use links::{Link, Purpose, UnconfirmedCredential};
pub use names::{MAX_NAME, checked_name, greeting, turns_text};
pub use notices::{Notices, WAITS, title_of, waits_at};
pub use owners::Owners;
pub use second_factor::{SecondFactor, wrong_code};
pub use store::{
    AdminDecision, Developer, DeveloperState, DeveloperStore, SESSION, Session, failed, key, mail_of,
    random_id,
};
pub use teams::{Membership, Team, TeamRole};
pub use tokens::{DeveloperToken, MAX_TOKEN_DAYS};

/// The owner of the applications that belong to a developer alone, as applications name it.
pub fn owner_name(developer: &str) -> String {
    format!("developer/{developer}")
}

/// The owner of the applications of a team.
pub fn team_owner_name(team: &str) -> String {
    format!("team/{team}")
}
