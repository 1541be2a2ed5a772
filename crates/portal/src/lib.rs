//! Weir's developer portal: which APIs there are for whom, their reference, developers with their teams, applications,
//! subscriptions and keys, usage, and calls to try.
//!
//! It is a web application of its own: a listener, a cookie and identities that no Admin API knows. Its pages are built
//! with the console's (`weir-console`) and know only what `/portal/v1` gives them. What a developer changes is a call of
//! Weir's own API, made for them from inside ([`weir_control::api::Delegate`]).
//!
//! | module | |
//! |---|---|
//! | [`documents`] | what the store holds of API management, followed |
//! | [`catalogue`] | APIs with their versions as a portal shows them; search |
//! | [`markdown`] | texts of people as inert trees |
//! | [`pages`] | the page that browsers load, with title, description and theme; the catalogue for machines |
//! | [`api`] | `/portal/v1` |
//!
//! Developers, their sessions and teams are those of [`weir_control::developers`], with which administrators manage
//! them.
//!
//! **What it is not**: it never has an operator's rights, and it is never on the request path.

pub mod api;
pub mod catalogue;
mod cookie;
pub mod documents;
mod entry;
pub mod markdown;
pub mod pages;
mod shell;
mod state;
mod version_status;
mod viewer;
pub mod yaml;

use weir_control::developers as people;

pub use catalogue::GatewayLookup;
pub use entry::router;
pub use state::{Listening, Mail, Options, Portals, Post};
pub use viewer::Viewer;
