//! In whose name a message goes: the provider's, a portal's, or an application's. Who forgets what is known of a developer
//! has to know it: another portal may have a developer with the same address.
//!
//! **What it is not**: it decides nothing about what is forgotten (`crate::api`).

use serde::{Deserialize, Serialize};

/// In whose name a message goes.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Origin {
    /// It is not known: an earlier version has written it, and not one portal alone knows the address.
    #[default]
    Unknown,
    /// The provider's: alerts, reports, and what its people read and decide.
    Provider,
    /// That of a portal: it is about its developers.
    Portal(String),
    /// That of an application: it is about this application.
    Application(String),
}

impl Origin {
    /// The portal, if it is one's.
    pub fn portal(&self) -> Option<&str> {
        match self {
            Self::Portal(portal) => Some(portal),
            _ => None,
        }
    }

    /// The application, if it is one's.
    pub fn application(&self) -> Option<&str> {
        match self {
            Self::Application(application) => Some(application),
            _ => None,
        }
    }
}
