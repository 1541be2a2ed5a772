//! A caller's name and password, or a client's id and secret: where a call brings them, and how they are taken out.

use super::config::{GrantLocation, Method};
use super::engine::Engine;
use crate::key_locations::{KeyLocation, Lookup, MultipleKeys};
use crate::query::remove_argument;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use weir_plugin::Request;

/// What a grant exchanges for a token.
pub(super) struct GrantCredentials {
    pub(super) name: String,
    pub(super) secret: String,
    location: GrantLocation,
}

/// What the two are called in a query or a body (RFC 6749, 2.3.1 and 4.3.2).
fn fields(method: Method) -> [&'static str; 2] {
    match method {
        Method::ClientCredentials => ["client_id", "client_secret"],
        _ => ["username", "password"],
    }
}

impl Engine {
    /// What the call brings for this method, in the first place that has both.
    pub(super) fn grant_credentials(&self, request: &Request, method: Method) -> Option<GrantCredentials> {
        let mut locations = self.grant_locations(method).iter();
        locations.find_map(|location| {
            let (name, secret) = match location {
                GrantLocation::Header => basic(request)?,
                GrantLocation::Query => both(request, fields(method), KeyLocation::Query)?,
                GrantLocation::Body => both(request, fields(method), KeyLocation::Body)?,
            };
            let is_there = !name.is_empty() && !secret.is_empty();
            is_there.then_some(GrantCredentials {
                name,
                secret,
                location: *location,
            })
        })
    }

    fn grant_locations(&self, method: Method) -> &[GrantLocation] {
        match method {
            Method::Password => &self.config.password_locations,
            Method::ClientCredentials => &self.config.client_credentials_locations,
            _ => &[],
        }
    }

    /// Whether one of the methods looks for them in a body that is not read yet, because no other place has them.
    pub(super) fn seeks_grant_in_body(&self, request: &Request) -> bool {
        self.config.methods.iter().any(|method| {
            let locations = self.grant_locations(*method);
            locations.contains(&GrantLocation::Body) && self.grant_credentials(request, *method).is_none()
        })
    }

    /// Takes them out, so that the upstream does not see them.
    pub(super) fn remove_grant_credentials(&self, request: &mut Request, method: Method) {
        let Some(found) = self.grant_credentials(request, method) else {
            return;
        };
        let location = match found.location {
            GrantLocation::Header => {
                request.headers.remove(b"authorization");
                return;
            }
            GrantLocation::Query => KeyLocation::Query,
            GrantLocation::Body => KeyLocation::Body,
        };
        for field in fields(method) {
            location(field.to_owned()).remove(request, remove_argument);
        }
    }
}

fn both(
    request: &Request,
    names: [&str; 2],
    location: fn(String) -> KeyLocation,
) -> Option<(String, String)> {
    let [name, secret] = names.map(|name| {
        let location = location(name.to_owned());
        match location.look(request, MultipleKeys::Refuse) {
            Lookup::Key(value) => String::from_utf8(value.into_owned()).ok(),
            _ => None,
        }
    });
    name.zip(secret)
}

fn basic(request: &Request) -> Option<(String, String)> {
    let value = request.headers.get(b"authorization")?;
    let (scheme, rest) = value.split_at_checked(6)?;
    if !scheme.eq_ignore_ascii_case(b"basic ") {
        return None;
    }
    let pair = String::from_utf8(STANDARD.decode(rest.trim_ascii()).ok()?).ok()?;
    let (name, secret) = pair.split_once(':')?;
    Some((name.to_owned(), secret.to_owned()))
}
