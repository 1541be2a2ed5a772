//! Plugins that recognise callers, with real partners: each test starts the partner and a gateway, on ports that the kernel
//! gave, or for foreign programs on ports below the kernel's own.

mod acceptance;
mod browser;
mod directory;
mod kong;
mod oauth;
mod opa;
mod openid;
mod partners;
#[path = "../support/ports.rs"]
mod ports;
#[path = "../support/provider.rs"]
mod provider;
mod saml;
#[path = "../support/tools.rs"]
mod tools;
#[path = "../support/weir.rs"]
mod weir;
