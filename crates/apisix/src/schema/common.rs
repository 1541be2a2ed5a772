//! Shapes that several resources and plugins share.

use super::{Schema, any_of, array, integer, number, object, text};

/// The id of a resource.
pub fn id() -> Schema {
    any_of([
        text().length(1, 64).pattern("^[a-zA-Z0-9-_.]+$"),
        integer().at_least(1),
    ])
}

/// A moment, in seconds since the Unix epoch.
pub fn timestamp() -> Schema {
    integer()
}

/// A name.
pub fn short_text() -> Schema {
    text().length(1, 256)
}

/// A description.
pub fn long_text() -> Schema {
    text().length(0, 256)
}

/// Labels.
pub fn label_map() -> Schema {
    let value = text()
        .length(1, 256)
        .pattern(r"^\S+$")
        .described("value of label");
    object([])
        .each_field(".*", value)
        .described("key/value pairs to specify attributes")
}

/// A host, which may begin with a wildcard.
pub fn host() -> Schema {
    text().pattern(r"^\*$|^\*?[0-9a-zA-Z-._\[\]:]+$")
}

/// An address or a network.
pub fn address() -> Schema {
    text().address()
}

/// A method.
pub fn method() -> Schema {
    text().options([
        "GET", "POST", "PUT", "DELETE", "PATCH", "HEAD", "OPTIONS", "CONNECT", "TRACE", "PURGE",
    ])
}

/// A list of methods.
pub fn methods() -> Schema {
    array(method().described("HTTP method")).unique()
}

/// A span of time in seconds, with fractions.
fn seconds() -> Schema {
    number().above(0)
}

/// Time-outs towards an upstream.
pub fn timeout() -> Schema {
    object([("connect", seconds()), ("send", seconds()), ("read", seconds())])
        .required(["connect", "send", "read"])
}
