//! API management without a gateway: what an API is, whether its description is good, what a new version of it
//! changes for callers, and which documents a gateway needs to serve it.
//!
//! | module | |
//! |---|---|
//! | [`openapi`] | reads OpenAPI 2.0, 3.0, 3.1 and 3.2, and normalises it to 3.1 with one small value for each operation |
//! | [`lint`] | rules over a description, with the rule names and the severity files of Spectral |
//! | [`diff`] | what changed between two descriptions, and which changes break callers |
//! | [`entities`] | environments, APIs, versions, revisions, publications, plans, applications, subscriptions, … |
//! | [`call_tests`] | whether a test of an API holds, and a report of many |
//! | [`diagnosis`] | which plan takes a caller, and why the others do not |
//! | [`due`] | what is to be done by time alone |
//! | [`events`] | what a change of an entity means to people and their programs |
//! | [`states`] | which state may follow which, and why another one may not |
//! | [`import`] | an OpenAPI document again: what people have added to its operations stays |
//! | [`path_pattern`] | paths of OpenAPI as routes match them |
//! | [`plans`] | whether a plan is good, and whether a subscriber has said what it asks |
//! | [`portal`] | whether a developer portal and its pages are good |
//! | [`quota`] | which gateways count the limits of a subscription together, and what its developers are notified of |
//! | [`render`](mod@render) | from a publication to the native documents that a gateway serves |
//! | [`export`](mod@export), [`postman`] | a version as OpenAPI with the gateway's servers; a Postman collection as OpenAPI |
//!
//! **What it is not**: it knows no HTTP, no store and no clock. The time, ids and keys are arguments.

pub mod adopt;
pub mod call_tests;
pub mod diagnosis;
pub mod diff;
pub mod due;
pub mod entities;
pub mod events;
pub mod export;
pub mod hash;
pub mod import;
pub mod lint;
pub mod logo;
pub mod naming;
pub mod path_pattern;
pub mod plans;
pub mod portal;
pub mod postman;
pub mod quota;
pub mod renames;
pub mod render;
pub mod states;

pub use weir_openapi as openapi;
pub use weir_openapi::{Finding, Level, Position, finding};
