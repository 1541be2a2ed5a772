//! The groups of a caller that a directory, a token or a certificate names. Plugins that find them note them for those
//! that come after; they are kept for one call.
//!
//! **What it is not**: labels or groups of consumers, which are configured.

use crate::user_headers;
use std::sync::Arc;
use weir_plugin::Exchange;
use weir_plugin::headers::is_value;

/// Under this place of a call stand the groups.
static PLACE: u8 = 2;

/// The names of the groups.
struct Groups(Arc<[String]>);

/// Stores the caller's groups and replaces any earlier ones.
pub(crate) fn note(exchange: &mut Exchange, groups: impl Into<Arc<[String]>>) {
    exchange.filter_state.put(&PLACE, Groups(groups.into()));
}

/// The groups that were noted; `None`: nothing knows any.
pub(crate) fn of(exchange: &mut Exchange) -> Option<Arc<[String]>> {
    let noted = exchange.filter_state.get_mut::<_, Groups>(&PLACE)?;
    Some(Arc::clone(&noted.0))
}

/// Sets the header with the groups for the upstream, instead of what the client sent.
pub(crate) fn set_header(exchange: &mut Exchange, header: &str, groups: &[String]) {
    let names = groups.join(", ");
    match !groups.is_empty() && is_value(names.as_bytes()) {
        true => user_headers::set_header(exchange, header, names.as_bytes()),
        false => exchange.request.headers.remove_owned(header.as_bytes()),
    };
}
