//! What a session remembers of a user: the name, the session at the provider, and attributes that the configuration names.

use super::config::{Config, UserValue};
use serde::{Deserialize, Serialize};
use weir_saml::{Login, NameId};

/// A user. Of the attributes only those are kept that the configuration names, so that the cookie stays short.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct User {
    pub(super) name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    format: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    qualifier: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    service_qualifier: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) session_index: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) ends_s: Option<i64>,
    pub(super) began_ms: u64,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    attributes: Vec<(String, Vec<String>)>,
}

impl User {
    pub(super) fn of(login: Login, config: &Config, now_ms: u64) -> Self {
        let headers = config.upstream_headers.iter();
        let of_headers = headers.filter_map(|header| match &header.value {
            UserValue::Attribute(name) => Some(name),
            UserValue::NameId => None,
        });
        let of_consumer = config
            .consumer
            .as_ref()
            .and_then(|rules| rules.attribute.as_ref());
        let mut wanted: Vec<&String> = of_headers.chain(of_consumer).collect();
        wanted.sort_unstable();
        wanted.dedup();
        let kept = wanted.into_iter().filter_map(|name| {
            let mut all = login.attributes.iter();
            // A name counts before a name for people: the provider decides who may set which.
            let found = all.find(|it| it.name == *name);
            let mut all = login.attributes.iter();
            let found = found.or_else(|| all.find(|it| it.friendly_name.as_ref() == Some(name)));
            Some((name.clone(), found?.values.clone()))
        });
        Self {
            attributes: kept.collect(),
            name: login.name_id.value,
            format: login.name_id.format,
            qualifier: login.name_id.qualifier,
            service_qualifier: login.name_id.service_qualifier,
            session_index: login.session_index,
            ends_s: login.session_ends_s,
            began_ms: now_ms,
        }
    }

    /// The name, as the provider has given it.
    pub(super) fn name_id(&self) -> NameId {
        NameId {
            value: self.name.clone(),
            format: self.format.clone(),
            qualifier: self.qualifier.clone(),
            service_qualifier: self.service_qualifier.clone(),
        }
    }

    /// The values of an attribute.
    pub(super) fn values(&self, name: &str) -> Option<&[String]> {
        let found = self.attributes.iter().find(|(known, _)| known == name);
        found.map(|(_, values)| values.as_slice())
    }
}
