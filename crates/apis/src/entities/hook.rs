//! Hooks: servers that get events by a POST with JSON, chosen by kind and by API. Those of operators hear of everything;
//! those of an application are its developers' own and hear of what concerns the application.

use super::is_default;
use crate::events::Event;
use serde::{Deserialize, Serialize};

/// A server that gets events by a POST with JSON.
#[derive(Clone, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Hook {
    /// Its name.
    pub name: String,
    /// Its description.
    #[serde(skip_serializing_if = "is_default")]
    pub description: String,
    /// Its URL.
    pub url: String,
    /// The secret that signs calls. Made by the gateway's API and shown once.
    #[serde(skip_serializing_if = "is_default")]
    pub secret: String,
    /// The kinds of events, such as `publication.published` or `subscription.*`; empty: all.
    #[serde(skip_serializing_if = "is_default")]
    pub events: Vec<String>,
    /// Only events about these APIs; empty: all.
    #[serde(skip_serializing_if = "is_default")]
    pub apis: Vec<String>,
    /// It gets nothing for the time being.
    #[serde(skip_serializing_if = "is_default")]
    pub disabled: bool,
    /// The application that it belongs to; empty: it is the operators'.
    #[serde(skip_serializing_if = "is_default")]
    pub application: String,
}

/// URLs and secrets are not shown.
impl std::fmt::Debug for Hook {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Hook")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

impl Hook {
    /// Whether it gets an event.
    pub fn wants(&self, event: &Event) -> bool {
        let is_kind = |wanted: &String| match wanted.strip_suffix('*') {
            Some(beginning) => event.kind.starts_with(beginning),
            None => *wanted == event.kind,
        };
        !self.disabled
            && (self.events.is_empty() || self.events.iter().any(is_kind))
            && (self.apis.is_empty() || self.apis.iter().any(|it| it == event.get("api")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hooks_want_what_they_name() {
        let event = Event {
            kind: "subscription.accepted".into(),
            about: [("api", "pets".to_owned())].into(),
            ..Event::default()
        };
        for (events, apis, disabled, expected) in [
            (&[][..], &[][..], false, true),
            (&["subscription.*"], &[], false, true),
            (&["subscription.accepted"], &["pets"], false, true),
            (&["subscription.accepted"], &["cats"], false, false),
            (&["publication.*"], &[], false, false),
            (&["subscription"], &[], false, false),
            (&[], &[], true, false),
        ] {
            let hook = Hook {
                events: events.iter().map(|it| (*it).to_owned()).collect(),
                apis: apis.iter().map(|it| (*it).to_owned()).collect(),
                disabled,
                ..Hook::default()
            };
            assert_eq!(hook.wants(&event), expected, "{events:?} {apis:?}");
        }
    }
}
