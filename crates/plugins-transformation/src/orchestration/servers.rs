//! Which servers the values of a call may name. What it is not: the calls of servers.

use std::net::Ipv6Addr;
use weir_plugins_shared::http_request::HttpServer;

/// Servers that values may name.
#[derive(Debug)]
pub(super) enum Servers {
    Any,
    /// As [`place`] writes them.
    These(Vec<String>),
}

impl Servers {
    /// Reads a list of servers as `host:port`, where `*` is any, and adds it to those that are allowed by themselves.
    ///
    /// # Errors
    /// What was expected.
    pub(super) fn read(names: &[String], mut own: Vec<String>) -> Result<Self, String> {
        if names.iter().any(|name| name == "*") {
            return Ok(Self::Any);
        }
        for name in names {
            match read(name) {
                Some(server) => own.push(server),
                None => {
                    return Err(format!(
                        "expected servers as `host:port`, or `*` for any, found {name:?}"
                    ));
                }
            }
        }
        Ok(Self::These(own))
    }

    /// Whether values may name this one.
    pub(super) fn allow(&self, place: &str) -> bool {
        match self {
            Self::Any => true,
            Self::These(places) => places.iter().any(|it| it == place),
        }
    }
}

/// A server as `host:port`.
fn read(name: &str) -> Option<String> {
    let (_, port) = name.rsplit_once(':')?;
    port.parse::<u16>().ok()?;
    let server = HttpServer::parse(&format!("http://{name}"))?;
    let is_whole = server.authority == name;
    is_whole.then(|| place(&server))
}

/// How a server is named in the list.
pub(super) fn place(server: &HttpServer) -> String {
    at(&server.host, server.port)
}

/// A host and a port in one form: an IPv6 address in brackets and its shortest spelling, a name in small letters.
pub(super) fn at(host: &str, port: u16) -> String {
    match host.parse::<Ipv6Addr>() {
        Ok(address) => format!("[{address}]:{port}"),
        Err(_) => format!("{}:{port}", host.to_ascii_lowercase()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_are_allowed_in_every_spelling() {
        let names = ["A.example:80", "[0:0::1]:81", "10.0.0.1:82"].map(str::to_owned);
        let servers = Servers::read(&names, vec![at("own", 1)]).expect("valid");
        for (host, port, allowed) in [
            ("a.EXAMPLE", 80, true),
            ("a.example", 81, false),
            ("::1", 81, true),
            ("0:0:0:0:0:0:0:1", 81, true),
            ("::1", 80, false),
            ("10.0.0.1", 82, true),
            ("own", 1, true),
            ("", 80, false),
        ] {
            assert_eq!(servers.allow(&at(host, port)), allowed, "{host} {port}");
        }
        for name in [
            "a", "a:0", ":80", "::1:81", "[::1]", "[a]:80", "a/b:80", "a:80/", "a b:80",
        ] {
            assert!(Servers::read(&[name.to_owned()], vec![]).is_err(), "{name}");
        }
        let any = Servers::read(&["*".to_owned()], vec![]).expect("valid");
        assert!(any.allow(&at("x", 9)));
    }
}
