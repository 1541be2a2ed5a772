//! SAML 2.0 for service providers: the messages of logins and logouts, their signatures and their encryption.
//!
//! **What it is not**: it does no I/O, has no clock and no randomness of its own, and knows nothing of HTTP beyond the bindings'
//! parameters. It is not a general XML library: it reads the XML that SAML allows, and refuses everything else.
//!
//! How wrapped messages are kept out: a signature must stand in the element that it signs, refer to that element's `ID`, and
//! only that element of the parsed tree is read afterwards. An `ID` is never looked up.

mod binding;
mod canonical;
mod encryption;
mod error;
mod escape;
mod instant;
mod keys;
mod login;
mod logout;
mod names;
mod request;
mod signature;
mod xml;

pub use binding::{Received, form_page, from_form, from_query, redirect_url};
pub use canonical::exclusive;
pub use encryption::DecryptionKey;
pub use error::SamlError;
pub use instant::{instant_text, parse_instant};
pub use keys::{BadKey, Hash, SigningKey, VerifyingKey};
pub use login::{Attribute, Expected, Login, LoginResponse, NameId};
pub use logout::{LogoutMessage, LogoutRequest};
pub use request::{AuthnRequest, logout_request, logout_response};
pub use signature::Trust;
pub use xml::{Document, ElementId, Limits};
