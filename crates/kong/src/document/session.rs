//! The records that plugins of the original leave in its database while they work: sessions, tokens, certificates on
//! demand. Of these, tokens that an administrator writes let calls in; the others are kept and given back.

use super::common::{CREATED_AT, ID};
use crate::schema::{Check, Default, Field, Kind, Record};

/// The time after which a member goes.
const TTL: Field = Field::new("ttl", Kind::Integer);

/// The fields of a session.
pub static SESSION: Record = Record::of(&[
    ID,
    Field::new("session_id", Kind::String).required().unique(),
    Field::new("expires", Kind::Integer),
    Field::new("data", Kind::String),
    CREATED_AT,
    TTL,
]);

/// The fields of an access token of OAuth 2.0.
pub static OAUTH2_TOKEN: Record = Record::of(&[
    ID,
    CREATED_AT,
    Field::new("service", Kind::Foreign("services")),
    Field::new("credential", Kind::Foreign("oauth2_credentials")).required(),
    Field::new("token_type", Kind::String)
        .required()
        .or(Default::Text("bearer"))
        .check(&[Check::OneOf(&["bearer"])]),
    Field::new("expires_in", Kind::Integer).required(),
    Field::new("access_token", Kind::String).unique().auto(),
    Field::new("refresh_token", Kind::String).unique(),
    Field::new("authenticated_userid", Kind::String),
    Field::new("scope", Kind::String),
    TTL,
]);

/// The fields of what is kept for certificates on demand.
pub static ACME: Record = Record::of(&[
    ID,
    Field::new("key", Kind::String).required().unique().auto(),
    Field::new("value", Kind::String).required().auto(),
    CREATED_AT,
    TTL,
]);
