//! What a call may be allowed to do. Each call of Weir's own API names one action; roles are lists of them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

macro_rules! actions {
    ($($name:ident $text:literal $meaning:literal,)*) => {
        /// The effect of a call, as far as rights are concerned.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
        pub enum Action {
            $(#[doc = $meaning] #[serde(rename = $text)] $name,)*
        }

        impl Action {
            /// All actions.
            pub const ALL: &[Self] = &[$(Self::$name,)*];

            /// The action's name in the API.
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$name => $text,)* }
            }

            /// Whether calls that ask for it change what the store of the configuration holds.
            pub fn changes_the_store(self) -> bool {
                // Alert rules and boards are kept with the analytics; gateways report what they do; a call that is sent
                // goes to an API.
                let elsewhere = matches!(
                    self,
                    Self::AlertsWrite
                        | Self::BoardsWrite
                        | Self::CallsSend
                        | Self::ConfigurationFollow
                        | Self::Own
                );
                let reads = self.as_str().ends_with(":read") || self.as_str().ends_with(":export");
                !elsewhere && !reads
            }

            /// Its meaning, in words.
            pub fn meaning(self) -> &'static str {
                match self { $(Self::$name => $meaning,)* }
            }
        }
    };
}

actions! {
    Own "own:use" "see their own rights and sessions",
    ConfigurationRead "configuration:read" "read the configuration, without secrets",
    ConfigurationWrite "configuration:write" "change the configuration and see secrets in it",
    ConfigurationRollback "configuration:rollback" "roll the configuration back",
    CallsSend "calls:send" "send calls through the gateway, to see what comes back",
    ConfigurationFollow "configuration:follow" "follow the configuration as a gateway does",
    HistoryRead "history:read" "see the history of changes, and compare them",
    HistorySecrets "history:secrets" "see secrets in differences",
    GatewaysRead "gateways:read" "see the gateways and the health of targets",
    UsersManage "users:manage" "manage users, their rights and their sessions",
    AuditRead "audit:read" "read the audit log",
    DeliveriesRead "deliveries:read" "see deliveries of mails and webhooks",
    EnvironmentsRead "environments:read" "see environments",
    EnvironmentsWrite "environments:write" "change environments and the runtime of publications",
    ApisRead "apis:read" "read API definitions, publications and plans",
    ApisWrite "apis:write" "define APIs, change drafts, plans and pages",
    ApisPublish "apis:publish" "publish to environments that are not protected",
    ApisPublishProtected "apis:publish-protected" "publish to protected environments",
    SubscriptionsRead "subscriptions:read" "see applications and subscriptions",
    SubscriptionsWrite "subscriptions:write" "change applications, subscriptions and credentials",
    ApprovalsRead "approvals:read" "see pending approvals",
    ApprovalsDecide "approvals:decide" "grant or refuse approvals, but not their own",
    PortalsRead "portals:read" "see portals, their pages and themes",
    PortalsWrite "portals:write" "change portals, pages, themes and logos",
    DevelopersRead "developers:read" "see developers of portals, with their mail addresses and teams",
    DevelopersWrite "developers:write" "approve, refuse, suspend, make, change and remove developers of portals",
    AnalyticsRead "analytics:read" "query analytics",
    AnalyticsExport "analytics:export" "export analytics and the request log",
    AlertsWrite "alerts:write" "change alert rules and reports",
    BoardsWrite "boards:write" "save boards",
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_are_those_of_the_api() {
        for (index, action) in Action::ALL.iter().enumerate() {
            assert_eq!(serde_json::json!(action), action.as_str());
            assert!(
                !Action::ALL[..index]
                    .iter()
                    .any(|it| it.as_str() == action.as_str()),
                "{action:?}"
            );
        }
    }
}
