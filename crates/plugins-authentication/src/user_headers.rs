//! Headers that describe a user to upstreams, for plugins whose configuration names them. A client's own copies must
//! never get through. A plugin that finds a caller already identified removes the client's copies, and keeps the
//! headers that an earlier plugin has set.

use weir_plugin::Exchange;

/// Sets a header for the upstream, instead of what the client sent.
pub(crate) fn set_header(exchange: &mut Exchange, name: &str, value: &[u8]) {
    set_header_with_scheme(exchange, name, "", value);
}

/// The same, of a value that begins with a scheme and its blank.
pub(crate) fn set_header_with_scheme(exchange: &mut Exchange, name: &str, scheme: &str, value: &[u8]) {
    let headers = &mut exchange.request.headers;
    headers.set_owned_with_scheme(name.as_bytes(), scheme.as_bytes(), value);
    exchange.note_user_header(name);
}

/// Removes headers that no plugin of this call has set: they are the client's.
pub(crate) fn remove_forged<'n>(exchange: &mut Exchange, names: impl Iterator<Item = &'n str>) {
    for name in names {
        if !exchange.is_user_header(name) {
            exchange.request.headers.remove_owned(name.as_bytes());
        }
    }
}
