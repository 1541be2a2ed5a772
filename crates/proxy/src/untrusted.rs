//! Claims of untrusted peers about others, taken out of requests before anything looks at them.

use ipnet::IpNet;
use weir_plugin::Request;
use weir_snapshot::DialectSettings;

/// The host of a call that names none.
const NO_HOST: &[u8] = b"localhost";

/// Takes what a peer that is not trusted says of others out of a request, before anything looks at it. `trusted`: who
/// is.
#[cold]
pub fn strip_headers(trusted: &[IpNet], request: &mut Request) {
    let is_trusted = DialectSettings::believes(trusted, request.peer.ip());
    let set = |request: &mut Request, name: &'static [u8], value: &[u8]| {
        if !is_trusted {
            // In conditions and keys of limits, `-` and `_` are one.
            request.headers.set_owned(name, value);
        } else if request.headers.get(name).is_none_or(<[u8]>::is_empty) {
            // An empty one tells nothing.
            request.headers.set(name, value);
        }
    };
    let scheme = request.scheme();
    set(request, b"X-Forwarded-Proto", scheme.as_bytes());
    let host = request.headers.get(b"host").unwrap_or(&request.host);
    let host = if host.is_empty() { NO_HOST } else { host }.to_vec();
    set(request, b"X-Forwarded-Host", &host);
    let port = request.host_port.unwrap_or(request.local.port());
    set(
        request,
        b"X-Forwarded-Port",
        itoa::Buffer::new().format(port).as_bytes(),
    );
    if !is_trusted {
        request.headers.remove(b"Forwarded");
        if !trusted.is_empty() {
            request.headers.remove_owned(b"X-Forwarded-For");
        }
    }
}
