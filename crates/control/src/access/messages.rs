//! Messages for callers who are refused, in the words of each dialect.

use super::guard::Refused;
use super::role::Role;
use axum::http::StatusCode;
use serde_json::{Value, json};

const FROM_ELSEWHERE: &str = "there are no users yet, so only calls from this machine are let in: `weir user add NAME --role admin` makes one";
const CROSS_SITE: &str = "a request that another site made a browser send is not let in";

/// In Kong's.
pub(super) fn kong_words(refused: &Refused) -> String {
    match refused {
        Refused::NoToken => "Invalid credentials. Token or User credentials required".to_owned(),
        Refused::WrongToken => "Unauthorized".to_owned(),
        Refused::FromElsewhere => FROM_ELSEWHERE.to_owned(),
        Refused::CrossSite => CROSS_SITE.to_owned(),
        Refused::MayNot(name, Role::Read) => {
            format!("{name}, you do not have permissions to read this resource")
        }
        Refused::MayNot(name, _) => format!("{name}, you do not have permissions to write this resource"),
    }
}

/// In APISIX's.
pub(super) fn apisix_words(refused: &Refused) -> &'static str {
    match refused {
        Refused::NoToken => "missing apikey",
        Refused::WrongToken => "wrong apikey",
        Refused::FromElsewhere => FROM_ELSEWHERE,
        Refused::CrossSite => CROSS_SITE,
        Refused::MayNot(..) => "invalid method for role viewer",
    }
}

/// As RFC 9457 has it.
pub(super) fn native_words(status: StatusCode, refused: &Refused) -> Value {
    let detail = match refused {
        Refused::NoToken => "a token is needed: `Authorization: Bearer TOKEN`".to_owned(),
        Refused::WrongToken => "nobody has this token".to_owned(),
        Refused::FromElsewhere => FROM_ELSEWHERE.to_owned(),
        Refused::CrossSite => CROSS_SITE.to_owned(),
        Refused::MayNot(name, _) => format!("{name} may not do this"),
    };
    json!({
        "type": crate::api::type_of(status),
        "title": status.canonical_reason(),
        "status": status.as_u16(),
        "detail": detail,
    })
}
