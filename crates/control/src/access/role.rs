//! Roles, as data: each is a list of actions. What no role of a user allows is refused.

use super::action::Action;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A named list of actions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// Follows the configuration as a gateway does, and nothing else.
    Gateway,
    /// Reads.
    Read,
    /// Reads and writes.
    Write,
    /// Does everything.
    Admin,
    /// Reads everything in its scope, without secrets.
    Viewer,
    /// Defines, lints and publishes its APIs; not to protected environments.
    ApiOwner,
    /// Decides approvals in its scope, those of developers' accounts included.
    Approver,
    /// Runs environments, gateways, certificates and upstreams; publishes to protected environments.
    Operator,
    /// Runs portals, themes, developers and teams.
    PortalAdmin,
    /// Reads the audit log, the history and analytics.
    Auditor,
    /// Reads and exports analytics, and saves boards.
    Analyst,
}

use Action as A;

/// The rights of readers, whatever else a role adds.
const READING: &[Action] = &[
    A::ConfigurationRead,
    A::HistoryRead,
    A::GatewaysRead,
    A::EnvironmentsRead,
    A::ApisRead,
    A::SubscriptionsRead,
    A::ApprovalsRead,
    A::PortalsRead,
    A::AnalyticsRead,
];

/// Every role with what it allows. `own:use` is everybody's who is known.
const ROLES: [(Role, &str, &[&[Action]]); 11] = [
    (Role::Gateway, "gateway", &[&[A::ConfigurationFollow]]),
    (Role::Read, "read", &[READING]),
    (
        Role::Write,
        "write",
        &[
            READING,
            &[
                A::ConfigurationWrite,
                A::CallsSend,
                A::ApisWrite,
                A::ApisPublish,
                A::SubscriptionsWrite,
                A::PortalsWrite,
                A::DevelopersRead,
                A::DevelopersWrite,
                A::AnalyticsExport,
                A::AlertsWrite,
                A::BoardsWrite,
            ],
        ],
    ),
    (Role::Admin, "admin", &[Action::ALL]),
    (Role::Viewer, "viewer", &[READING]),
    (
        Role::ApiOwner,
        "api-owner",
        &[
            READING,
            &[
                A::ApisWrite,
                A::ApisPublish,
                A::SubscriptionsWrite,
                A::BoardsWrite,
            ],
        ],
    ),
    (
        Role::Approver,
        "approver",
        &[&[
            A::ApisRead,
            A::EnvironmentsRead,
            A::SubscriptionsRead,
            A::ApprovalsRead,
            A::ApprovalsDecide,
            A::DevelopersRead,
            A::DevelopersWrite,
        ]],
    ),
    (
        Role::Operator,
        "operator",
        &[
            READING,
            &[
                A::ConfigurationWrite,
                A::CallsSend,
                A::EnvironmentsWrite,
                A::ApisPublish,
                A::ApisPublishProtected,
                A::DeliveriesRead,
                A::AlertsWrite,
                A::BoardsWrite,
            ],
        ],
    ),
    (
        Role::PortalAdmin,
        "portal-admin",
        &[&[
            A::ApisRead,
            A::SubscriptionsRead,
            A::SubscriptionsWrite,
            A::PortalsRead,
            A::PortalsWrite,
            A::DevelopersRead,
            A::DevelopersWrite,
            A::DeliveriesRead,
        ]],
    ),
    (
        Role::Auditor,
        "auditor",
        &[&[A::AuditRead, A::HistoryRead, A::AnalyticsRead, A::AnalyticsExport]],
    ),
    (
        Role::Analyst,
        "analyst",
        &[&[A::AnalyticsRead, A::AnalyticsExport, A::BoardsWrite]],
    ),
];

impl Role {
    /// All roles.
    pub fn all() -> impl Iterator<Item = Self> {
        ROLES.iter().map(|(role, ..)| *role)
    }

    fn entry(self) -> &'static (Self, &'static str, &'static [&'static [Action]]) {
        let found = ROLES.iter().find(|(role, ..)| *role == self);
        found.expect("invariant: every role is in the table; a test compares them")
    }

    /// The name in documents and on the command line.
    pub fn as_str(self) -> &'static str {
        self.entry().1
    }

    /// The actions that it allows.
    pub fn actions(self) -> impl Iterator<Item = Action> {
        self.entry().2.iter().copied().flatten().copied()
    }

    /// Whether it allows an action.
    pub fn allows(self, action: Action) -> bool {
        action == Action::Own || self.actions().any(|it| it == action)
    }

    /// The roles that allow an action.
    pub fn that_allow(action: Action) -> impl Iterator<Item = Self> {
        Self::all().filter(move |it| it.allows(action))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_has_every_role_once_under_its_name() {
        let schema = schemars::schema_for!(Role).to_value();
        let variants = schema["oneOf"].as_array().expect("variants");
        assert_eq!(variants.len(), ROLES.len());
        for role in Role::all() {
            assert_eq!(serde_json::json!(role), role.as_str());
            assert_eq!(role.entry().0, role);
        }
    }

    #[test]
    fn roles_allow_what_the_guide_says() {
        use Role::{
            Admin, Analyst, ApiOwner, Approver, Auditor, Gateway, Operator, PortalAdmin, Read, Viewer, Write,
        };
        const EVERY_READER: &[Role] = &[
            Read,
            Write,
            Admin,
            Viewer,
            ApiOwner,
            Approver,
            Operator,
            PortalAdmin,
        ];
        let expected: [(Action, &[Role]); 30] = [
            (
                A::Own,
                &[
                    Gateway,
                    Read,
                    Write,
                    Admin,
                    Viewer,
                    ApiOwner,
                    Approver,
                    Operator,
                    PortalAdmin,
                    Auditor,
                    Analyst,
                ],
            ),
            (
                A::ConfigurationRead,
                &[Read, Write, Admin, Viewer, ApiOwner, Operator],
            ),
            (A::ConfigurationWrite, &[Write, Admin, Operator]),
            (A::ConfigurationRollback, &[Admin]),
            (A::CallsSend, &[Write, Admin, Operator]),
            (A::ConfigurationFollow, &[Gateway, Admin]),
            (
                A::HistoryRead,
                &[Read, Write, Admin, Viewer, ApiOwner, Operator, Auditor],
            ),
            (A::HistorySecrets, &[Admin]),
            (A::GatewaysRead, &[Read, Write, Admin, Viewer, ApiOwner, Operator]),
            (A::UsersManage, &[Admin]),
            (A::AuditRead, &[Admin, Auditor]),
            (A::DeliveriesRead, &[Admin, Operator, PortalAdmin]),
            (
                A::EnvironmentsRead,
                &[Read, Write, Admin, Viewer, ApiOwner, Approver, Operator],
            ),
            (A::EnvironmentsWrite, &[Admin, Operator]),
            (A::ApisRead, EVERY_READER),
            (A::ApisWrite, &[Write, Admin, ApiOwner]),
            (A::ApisPublish, &[Write, Admin, ApiOwner, Operator]),
            (A::ApisPublishProtected, &[Admin, Operator]),
            (A::SubscriptionsRead, EVERY_READER),
            (A::SubscriptionsWrite, &[Write, Admin, ApiOwner, PortalAdmin]),
            (
                A::ApprovalsRead,
                &[Read, Write, Admin, Viewer, ApiOwner, Approver, Operator],
            ),
            (A::ApprovalsDecide, &[Admin, Approver]),
            (
                A::PortalsRead,
                &[Read, Write, Admin, Viewer, ApiOwner, Operator, PortalAdmin],
            ),
            (A::PortalsWrite, &[Write, Admin, PortalAdmin]),
            (A::DevelopersRead, &[Write, Admin, Approver, PortalAdmin]),
            (A::DevelopersWrite, &[Write, Admin, Approver, PortalAdmin]),
            (
                A::AnalyticsRead,
                &[Read, Write, Admin, Viewer, ApiOwner, Operator, Auditor, Analyst],
            ),
            (A::AnalyticsExport, &[Write, Admin, Auditor, Analyst]),
            (A::AlertsWrite, &[Write, Admin, Operator]),
            (A::BoardsWrite, &[Write, Admin, ApiOwner, Operator, Analyst]),
        ];
        assert_eq!(
            expected.map(|(action, _)| action),
            *Action::ALL,
            "every action has its line"
        );
        for (action, roles) in expected {
            assert_eq!(Role::that_allow(action).collect::<Vec<_>>(), roles, "{action:?}");
        }
    }
}
