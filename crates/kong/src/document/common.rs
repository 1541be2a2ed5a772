//! Fields that many entities share, such as ids, times and tags. Those of one kind stand with that kind.

use crate::schema::{Check, Default, Field, Kind, text};

/// The entity's id; made from its name where absent.
pub const ID: Field = Field::new("id", Kind::Uuid).auto();
/// Seconds since the Unix epoch.
pub const CREATED_AT: Field = Field::new("created_at", Kind::Integer).auto();
/// Seconds since the Unix epoch.
pub const UPDATED_AT: Field = Field::new("updated_at", Kind::Integer).auto();
/// A unique name.
pub const NAME: Field = Field::new("name", Kind::String)
    .check(&[Check::Text(text::name)])
    .unique();
/// Free words by which an administrator finds entities.
pub const TAGS: Field = Field::new(
    "tags",
    Kind::Set(
        &Field::element(Kind::String)
            .required()
            .check(&[Check::Text(text::tag)]),
    ),
);

/// Protocols of services, in the order in which Kong lists them.
pub const PROTOCOLS: &[&str] = &[
    "grpc",
    "grpcs",
    "http",
    "https",
    "tcp",
    "tls",
    "tls_passthrough",
    "udp",
];
/// Protocols of plugins that work on HTTP.
pub const HTTP_PROTOCOLS: &[&str] = &["grpc", "grpcs", "http", "https"];

/// A port number.
pub const PORT: &[Check] = &[Check::Between(0, 65_535)];
/// A path that calls are forwarded to.
pub const PATH: &[Check] = &[Check::Text(text::path)];

/// A time-out of a service.
pub const fn timeout(name: &'static str) -> Field {
    Field::new(name, Kind::Integer)
        .or(Default::Integer(60_000))
        .check(&[Check::Between(1, 2_147_483_646)])
}
