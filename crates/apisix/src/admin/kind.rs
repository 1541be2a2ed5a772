//! The kinds of resource that the Admin API has, and in what they differ.

use crate::document::{self, cost_decoration, proto, ssl, stream_route};
use crate::schema::Schema;

/// A kind of resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    Route,
    Service,
    Upstream,
    Consumer,
    /// Below a consumer.
    Credential,
    ConsumerGroup,
    PluginConfig,
    GlobalRule,
    PluginMetadata,
    Ssl,
    Proto,
    StreamRoute,
    Secret,
    /// Below a service.
    CostDecoration,
}

impl Kind {
    /// All kinds.
    pub const ALL: [Self; 14] = [
        Self::Route,
        Self::Service,
        Self::Upstream,
        Self::Consumer,
        Self::Credential,
        Self::ConsumerGroup,
        Self::PluginConfig,
        Self::GlobalRule,
        Self::PluginMetadata,
        Self::Ssl,
        Self::Proto,
        Self::StreamRoute,
        Self::Secret,
        Self::CostDecoration,
    ];

    /// The kind whose collection is called so.
    pub fn of(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// The name of its collection in paths and keys.
    pub fn name(self) -> &'static str {
        match self {
            Self::Route => "routes",
            Self::Service => "services",
            Self::Upstream => "upstreams",
            Self::Consumer => "consumers",
            Self::Credential => "credentials",
            Self::ConsumerGroup => "consumer_groups",
            Self::PluginConfig => "plugin_configs",
            Self::GlobalRule => "global_rules",
            Self::PluginMetadata => "plugin_metadata",
            Self::Ssl => "ssls",
            Self::Proto => "protos",
            Self::StreamRoute => "stream_routes",
            Self::Secret => "secrets",
            Self::CostDecoration => "graphql_cost_decorations",
        }
    }

    /// The word for one of it in messages.
    pub fn word(self) -> &'static str {
        match self {
            Self::Route => "route",
            Self::Service => "service",
            Self::Upstream => "upstream",
            Self::Consumer => "consumer",
            Self::Credential => "credential",
            Self::ConsumerGroup => "consumer group",
            Self::PluginConfig => "plugin config",
            Self::GlobalRule => "global rule",
            Self::PluginMetadata => "plugin_metadata",
            Self::Ssl => "ssl",
            Self::Proto => "proto",
            Self::StreamRoute => "stream route",
            Self::Secret => "secret",
            Self::CostDecoration => "graphql cost decoration",
        }
    }

    /// The name of its schema.
    pub fn schema_name(self) -> &'static str {
        match self {
            Self::ConsumerGroup => "consumer_group",
            Self::PluginConfig => "plugin_config",
            Self::GlobalRule => "global_rule",
            Self::StreamRoute => "stream_route",
            Self::CostDecoration => "graphql_cost_decoration",
            _ => self.word(),
        }
    }

    /// The shape of its documents, if it is the same for all of them.
    pub fn shape(self) -> Option<&'static Schema> {
        match self {
            Self::Route => Some(document::route_shape()),
            Self::Service => Some(document::service_shape()),
            Self::Upstream => Some(document::upstream_shape()),
            Self::Consumer => Some(document::consumer_shape()),
            Self::Credential => Some(document::credential_shape()),
            Self::ConsumerGroup => Some(document::consumer_group_shape()),
            Self::PluginConfig => Some(document::plugin_config_shape()),
            Self::GlobalRule => Some(document::global_rule_shape()),
            Self::Ssl => Some(ssl::shape()),
            Self::Proto => Some(proto::shape()),
            Self::StreamRoute => Some(stream_route::shape()),
            Self::CostDecoration => Some(cost_decoration::shape()),
            Self::PluginMetadata | Self::Secret => None,
        }
    }

    /// Whether new ones may be made without saying an id.
    pub fn takes_post(self) -> bool {
        matches!(
            self,
            Self::Route
                | Self::Service
                | Self::Upstream
                | Self::Ssl
                | Self::Proto
                | Self::StreamRoute
                | Self::CostDecoration
        )
    }

    /// Whether parts of one may be changed.
    pub fn takes_patch(self) -> bool {
        !matches!(
            self,
            Self::Consumer | Self::Credential | Self::PluginMetadata | Self::Proto | Self::StreamRoute
        )
    }

    /// The fields that `filter=` knows.
    pub fn filter_fields(self) -> &'static [&'static str] {
        match self {
            Self::Route | Self::StreamRoute => &["service_id", "upstream_id"],
            _ => &[],
        }
    }

    /// The kind of the document that has a key: `routes/1`, `consumers/jack/credentials/2`.
    pub fn of_key(key: &str) -> Option<Self> {
        let mut segments = key.split('/');
        let kind = Self::of(segments.next()?)?;
        let below = segments.nth(1);
        match (kind, below) {
            (Self::Consumer, Some(below)) => (below == Self::Credential.name()).then_some(Self::Credential),
            (Self::Service, Some(below)) => {
                (below == Self::CostDecoration.name()).then_some(Self::CostDecoration)
            }
            (Self::Credential | Self::CostDecoration, _) => None,
            (kind, _) => Some(kind),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_found_by_key() {
        for (key, kind) in [
            ("routes/1", Some(Kind::Route)),
            ("consumers/jack", Some(Kind::Consumer)),
            ("consumers/jack/credentials/1", Some(Kind::Credential)),
            (
                "services/1/graphql_cost_decorations/2",
                Some(Kind::CostDecoration),
            ),
            ("services/1/x/2", None),
            ("secrets/vault/1", Some(Kind::Secret)),
            ("standalone/configs", None),
        ] {
            assert_eq!(Kind::of_key(key), kind, "{key}");
        }
    }
}
