//! Headers that describe a user to upstreams, for plugins whose configuration names them. A client's own copies must
//! never get through. A plugin that finds a caller already identified removes the client's copies, and keeps the
//! headers that an earlier plugin has set.

use weir_plugin::Exchange;

/// The key of a call's filter state for the headers that its plugins have set so far.
static TOLD: u8 = 1;

/// The names of the headers that plugins have set, each with a line's end.
struct Names(String);

impl Names {
    fn add(&mut self, name: &str) {
        self.0.push_str(name);
        self.0.push('\n');
    }
}

/// Sets a header for the upstream, instead of what the client sent.
pub(crate) fn set_header(exchange: &mut Exchange, name: &str, value: &[u8]) {
    exchange.request.headers.set_owned(name.as_bytes(), value);
    match exchange.filter_state.get_mut::<_, Names>(&TOLD) {
        Some(names) => names.add(name),
        None => {
            let mut names = Names(String::with_capacity(64));
            names.add(name);
            exchange.filter_state.put(&TOLD, names);
        }
    }
}

/// Removes headers that no plugin of this call has set: they are the client's.
pub(crate) fn remove_forged<'n>(exchange: &mut Exchange, names: impl Iterator<Item = &'n str>) {
    for name in names {
        let told = exchange.filter_state.get_mut::<_, Names>(&TOLD);
        let is_told = told.is_some_and(|told| told.0.lines().any(|it| it.eq_ignore_ascii_case(name)));
        if !is_told {
            exchange.request.headers.remove_owned(name.as_bytes());
        }
    }
}
