//! Headers that tell upstreams about a user, of plugins whose configuration names them. A client must never say them. A
//! plugin that finds a caller known already removes what the client says, and keeps what a plugin before it has told.

use weir_plugin::Exchange;

/// Under this place of a call stands which headers its plugins have told so far.
static TOLD: u8 = 1;

/// The names of the headers that plugins have told.
struct Names(Vec<String>);

/// Tells the upstream something, in place of what the client says.
pub(crate) fn set_header(exchange: &mut Exchange, name: &str, value: &[u8]) {
    exchange.request.headers.set_owned(name.as_bytes(), value);
    match exchange.filter_state.get_mut::<_, Names>(&TOLD) {
        Some(names) => names.0.push(name.to_owned()),
        None => exchange.filter_state.put(&TOLD, Names(vec![name.to_owned()])),
    }
}

/// Removes headers that no plugin of this call has told: they are the client's.
pub(crate) fn remove_forged<'n>(exchange: &mut Exchange, names: impl Iterator<Item = &'n str>) {
    for name in names {
        let told = exchange.filter_state.get_mut::<_, Names>(&TOLD);
        let is_told = told.is_some_and(|told| told.0.iter().any(|it| it.eq_ignore_ascii_case(name)));
        if !is_told {
            exchange.request.headers.remove_owned(name.as_bytes());
        }
    }
}
