//! Plugins that check calls: against schemas and OpenAPI documents, and for attacks. They share the parameters and bodies
//! of OpenAPI.
//!
//! **What it is not**: it reads no store, opens no socket and knows no dialect.

// The modules of this folder; `UPDATE_GOLDEN=1 cargo test -p weir-tidy plugin_lists` adds new ones.
pub mod injection_protection;
pub mod json_threat_protection;
mod media_types;
mod openapi;
pub mod openapi_mock;
pub mod openapi_validation;
mod parameters;
mod refuse;
pub mod request_validator;
pub mod safeline_waf;
pub mod websocket_validation;
pub mod xml_threat_protection;
// End of the modules.
