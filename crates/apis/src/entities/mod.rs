//! The entities of API management: one type for each kind of document. Unknown fields are errors.
//!
//! Three layers: the contract (a version with its draft), the snapshot (a revision, which never changes), and the place
//! (a publication of a revision in an environment). Addresses of backends belong to the place.

mod access;
mod approval;
mod call_test;
mod common;
mod definition;
mod environment;
mod hook;
mod plan;
mod portal;
mod product;
mod publication;

pub use access::{
    Application, Credential, CredentialKind, KeyMode, Subscription, SubscriptionState, TokenKey, fingerprint,
};
pub use approval::{Approval, ApprovalKind, ApprovalState};
pub use call_test::{CallTest, Expected, TestRequest};
pub use common::{Labels, is_default, parse};
pub use definition::{
    Api, Component, Draft, DraftState, LineState, LintSummary, OperationSettings, Rename, Review, Revision,
    Source, Version, Visibility,
};
pub use environment::{Environment, EnvironmentKind};
pub use hook::Hook;
pub use plan::{
    CertificateSettings, Comment, HmacSettings, Limit, OauthSettings, Period, Plan, PlanSecurity, PlanState,
    PlannedClose, TokenCheck, Validation,
};
pub use portal::{
    Colours, Font, GroupTeam, Link, Page, Portal, RoleInTeam, SignInProvider, SignUp, SignUpMode, Theme,
};
pub use product::{PREFIX as PRODUCTS, Product, ProductState};
pub use publication::{
    Backend, Canary, CanaryKey, CanaryRollback, CanaryStep, Deprecation, Guard, HistoryItem, Publication,
    PublicationState, Runtime, Target,
};
