//! The `url` of a service, and other configured texts that become part of a request's head as they stand.

use weir_model::Scheme;

/// The parts of `http://host:port/path`.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ServiceUrl<'t> {
    pub scheme: Scheme,
    /// An IPv6 address without its brackets.
    pub host: &'t str,
    pub port: u16,
    /// Absent if the path is only `/`.
    pub path: Option<&'t str>,
}

/// Reads a service's `url`; the sentence of an error says what was expected.
pub(super) fn parse_url(text: &str) -> Result<ServiceUrl<'_>, String> {
    // The text may hold a password: no message repeats it.
    let (scheme, rest) = text
        .split_once("://")
        .ok_or("expected 'http://host:port/path' or 'https://host:port/path'")?;
    let scheme = match scheme.to_ascii_lowercase().as_str() {
        "http" => Scheme::Http,
        "https" => Scheme::Https,
        "grpc" => Scheme::Grpc,
        "grpcs" => Scheme::Grpcs,
        "h2c" => Scheme::H2c,
        "h2" => Scheme::H2,
        "tcp" => Scheme::Tcp,
        "tls" => Scheme::Tls,
        "udp" => Scheme::Udp,
        other => {
            return Err(format!(
                "expected the scheme http, https, h2c, h2, grpc, grpcs, tcp, tls or udp, found '{other}'"
            ));
        }
    };
    if rest.contains(['?', '#']) {
        return Err("expected a URL without a query and a fragment".to_owned());
    }
    let (authority, path) = match rest.find('/') {
        Some(slash) => (&rest[..slash], Some(&rest[slash..])),
        None => (rest, None),
    };
    if authority.contains('@') {
        return Err("expected a URL without user and password".to_owned());
    }
    let (host, port) = split_authority(authority)?;
    check_host(host)?;
    path.map_or(Ok(()), check_path)?;
    if scheme.is_stream() && port.is_none() {
        return Err(format!(
            "expected a port: {} has no default port",
            scheme.as_str()
        ));
    }
    if scheme.is_stream() && path.is_some_and(|path| path != "/") {
        return Err(format!("expected no path: {} has none", scheme.as_str()));
    }
    Ok(ServiceUrl {
        scheme,
        host,
        port: port.unwrap_or(scheme.default_port()),
        path: path.filter(|path| *path != "/"),
    })
}

fn split_authority(authority: &str) -> Result<(&str, Option<u16>), String> {
    let (host, port) = match authority.strip_prefix('[') {
        Some(rest) => {
            let (host, behind) = rest.split_once(']').ok_or("expected ']' after the address")?;
            if !behind.is_empty() && !behind.starts_with(':') {
                return Err("expected ':' and a port after ']'".to_owned());
            }
            (host, behind.strip_prefix(':'))
        }
        None => match authority.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (authority, None),
        },
    };
    let port = port.map(|text| match text.parse() {
        Ok(port) if port != 0 => Ok(port),
        _ => Err(format!("expected a port from 1 to 65535, found '{text}'")),
    });
    Ok((host, port.transpose()?))
}

/// What can stand neither in a path nor in a host (RFC 3986).
const UNFIT: &[u8] = b"?#\"<>\\^`{|}";

/// Whether this can be a path of a request target, without a query.
pub(super) fn check_path(path: &str) -> Result<(), String> {
    let fit = |byte: u8| byte.is_ascii_graphic() && !UNFIT.contains(&byte);
    if !path.starts_with('/') {
        return Err(format!(
            "expected a path that begins with '/', found '{}'",
            path.escape_debug()
        ));
    }
    match path.bytes().find(|byte| !fit(*byte)) {
        Some(byte) => Err(format!(
            "expected a path as in a request, found the character '{}', which must be percent-encoded",
            byte.escape_ascii()
        )),
        None => Ok(()),
    }
}

/// Whether this can be the `Host` of a request: a host, with a port or without.
pub(super) fn check_host_header(text: &str) -> Result<(), String> {
    match split_authority(text) {
        Ok((host, _)) if check_host(host).is_ok() => Ok(()),
        _ => Err(format!(
            "expected a host name or an address, with a port or without, found '{}'",
            text.escape_debug()
        )),
    }
}

/// Whether this can be a host: an address or a name, without brackets.
pub(super) fn check_host(host: &str) -> Result<(), String> {
    let good = |byte: u8| byte.is_ascii_graphic() && !UNFIT.contains(&byte) && !b"/@[]".contains(&byte);
    let is_address = host.parse::<std::net::IpAddr>().is_ok();
    if host.is_empty() || !host.bytes().all(good) || (host.contains(':') && !is_address) {
        return Err(format!(
            "expected a host name or an address, found '{}'",
            host.escape_debug()
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_a_head_are_checked() {
        for (text, good) in [
            ("/", true),
            ("/a/%20b;c=1:@!$&'()*+,~", true),
            ("a", false),
            ("/a b", false),
            ("/a?b", false),
            ("/a#b", false),
            ("/a\r\nX: y", false),
            ("/\u{7f}", false),
        ] {
            assert_eq!(check_path(text).is_ok(), good, "{text:?}");
        }
        for (text, good) in [
            ("a.com", true),
            ("a.com:81", true),
            ("[::1]:81", true),
            ("[::1]", true),
            ("", false),
            ("a.com:x", false),
            ("a b", false),
            ("a\r\nX: y", false),
            ("a/b", false),
        ] {
            assert_eq!(check_host_header(text).is_ok(), good, "{text:?}");
        }
    }

    #[test]
    fn urls_come_apart() {
        let url = |scheme, host, port, path| {
            Ok(ServiceUrl {
                scheme,
                host,
                port,
                path,
            })
        };
        for (text, wanted) in [
            ("http://a.com", url(Scheme::Http, "a.com", 80, None)),
            ("HTTPS://a.com/", url(Scheme::Https, "a.com", 443, None)),
            (
                "http://a.com:81/x/y",
                url(Scheme::Http, "a.com", 81, Some("/x/y")),
            ),
            ("http://[::1]:81/x", url(Scheme::Http, "::1", 81, Some("/x"))),
            ("http://[::1]", url(Scheme::Http, "::1", 80, None)),
            ("tcp://a.com:25", url(Scheme::Tcp, "a.com", 25, None)),
            ("tls://a.com:465/", url(Scheme::Tls, "a.com", 465, None)),
            ("udp://[::1]:53", url(Scheme::Udp, "::1", 53, None)),
        ] {
            assert_eq!(parse_url(text), wanted, "{text}");
        }
        for text in [
            "a.com",
            "ftp://a.com",
            "tcp://a.com",
            "udp://a.com:53/x",
            "http://",
            "http://a.com:0",
            "http://a.com:x",
            "http://u:p@a.com",
            "http://a.com/?x",
            "http://a b",
            "http://a.com/x y",
            "http://a.com/x\r\nz: 1",
            "http://a.com/\u{e4}",
            "http://[::1",
            "http://[::1]x",
            "http://a:1:2",
        ] {
            let error = parse_url(text).expect_err(text);
            assert!(!error.contains("u:p"), "{error}");
        }
    }
}
