//! Checks of texts: names, tags, hosts, paths, header names. The words are Kong's.

use regex::RegexBuilder;
use std::net::{IpAddr, Ipv6Addr};
use weir_plugin::headers;

/// The port of targets that name none.
const TARGET_PORT: u16 = 8000;
/// The complaints about a port where there should be none, and about one that is none.
const NO_PORT: &str = "must not have a port";
const BAD_PORT: &str = "invalid port number";
/// Bytes of a route's path at most: the gateway's tables hold no longer ones. The original has no bound.
const MAX_ROUTE_PATH: usize = 4096;

/// Names of services, routes and the like: unreserved characters, or anything beyond ASCII.
pub fn name(text: &str) -> Result<(), String> {
    let is_fine = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_' | '~') || !c.is_ascii();
    if text.chars().all(is_fine) {
        Ok(())
    } else {
        Err(format!(
            "invalid value '{text}': the only accepted ascii characters are alphanumerics or ., -, _, and ~"
        ))
    }
}

/// Tags: printable, without the separators of tag filters.
pub fn tag(text: &str) -> Result<(), String> {
    let is_fine = |c: char| !c.is_ascii_control() && !matches!(c, ',' | '/');
    if text.chars().all(is_fine) {
        Ok(())
    } else {
        Err(format!(
            "invalid tag '{text}': expected printable ascii (except `,` and `/`) or valid utf-8 sequences"
        ))
    }
}

/// Names of headers.
pub fn header_name(text: &str) -> Result<(), String> {
    let is_fine = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    if text.chars().all(is_fine) {
        Ok(())
    } else {
        Err(format!(
            "bad header name '{text}', allowed characters are A-Z, a-z, 0-9, '_', and '-'"
        ))
    }
}

/// Names of the headers that a route matches; `Host` has a field of its own.
pub fn route_header_name(text: &str) -> Result<(), String> {
    if text.eq_ignore_ascii_case("host") {
        return Err(
            "cannot contain 'host' header, which must be specified in the 'hosts' attribute".to_owned(),
        );
    }
    header_name(text)
}

/// Names of cookies.
pub fn cookie_name(text: &str) -> Result<(), String> {
    let is_fine = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    if text.chars().all(is_fine) {
        Ok(())
    } else {
        Err(format!(
            "bad cookie name '{text}', allowed characters are A-Z, a-z, 0-9, '_', and '-'"
        ))
    }
}

/// HTTP methods: upper-case letters.
pub fn method(text: &str) -> Result<(), String> {
    if text.bytes().all(|byte| byte.is_ascii_uppercase()) {
        Ok(())
    } else {
        Err(format!("invalid value: {text}"))
    }
}

/// A host name or an address, without a port.
pub fn host(text: &str) -> Result<(), String> {
    match split_port(text) {
        Ok((name, None)) if is_host(name) => Ok(()),
        Ok((_, Some(_))) => Err(NO_PORT.to_owned()),
        _ => Err(format!("invalid value: {text}")),
    }
}

/// A host name or an address, perhaps with a port.
pub fn host_with_port(text: &str) -> Result<(), String> {
    let (name, _) = split_port(text)?;
    if is_host(name) {
        Ok(())
    } else {
        Err(format!("invalid hostname: {text}"))
    }
}

/// A host of a route: one wildcard at either end, perhaps with a port.
pub fn wildcard_host(text: &str) -> Result<(), String> {
    let (name, _) = split_port(text)?;
    wildcard(name)?;
    if is_host(&name.replace('*', "wildcard")) {
        Ok(())
    } else {
        Err(format!("invalid hostname: {text}"))
    }
}

/// A server name of a certificate: a host without a port and no address, with one wildcard at either end or as a whole.
pub fn certificate_name(text: &str) -> Result<(), String> {
    let name = match text.find('*') {
        Some(at) if at > 0 && at + 1 < text.len() => {
            return Err("wildcard must be leftmost or rightmost character".to_owned());
        }
        Some(_) if text.matches('*').count() > 1 => {
            return Err("only one wildcard must be specified".to_owned());
        }
        Some(_) => text.replace('*', "wildcard"),
        None => text.to_owned(),
    };
    let invalid = || format!("invalid value: {name}");
    let (host, has_port) = match split_port(&name) {
        Ok((host, port)) if is_host(host) => (host, port.is_some()),
        Err(message) if message == BAD_PORT => return Err(NO_PORT.to_owned()),
        _ => return Err(invalid()),
    };
    if host.trim_matches(['[', ']']).parse::<IpAddr>().is_ok() {
        return Err("must not be an IP".to_owned());
    }
    match has_port {
        true => Err(NO_PORT.to_owned()),
        false => Ok(()),
    }
}

/// A server name of a TLS handshake that a route takes: like a route's host, but without a port and no address.
pub fn sni(text: &str) -> Result<(), String> {
    let (name, port) = split_port(text)?;
    if port.is_some() {
        return Err(NO_PORT.to_owned());
    }
    if name.parse::<IpAddr>().is_ok() {
        return Err("must not be an IP".to_owned());
    }
    wildcard_host(name)
}

fn wildcard(name: &str) -> Result<(), String> {
    let wildcards = name.bytes().filter(|byte| *byte == b'*').count();
    if wildcards > 1 {
        return Err("invalid wildcard: must have at most one wildcard".to_owned());
    }
    if wildcards == 1 && !name.starts_with("*.") && !name.ends_with(".*") {
        return Err("invalid wildcard: must be placed at leftmost or rightmost label".to_owned());
    }
    Ok(())
}

/// The name of an upstream: a host name that is no address.
pub fn upstream_name(text: &str) -> Result<(), String> {
    if text.trim_matches(['[', ']']).parse::<IpAddr>().is_ok() {
        return Err(format!("Invalid name ('{text}'); no ip addresses allowed"));
    }
    match split_port(text) {
        Ok((_, Some(_))) => Err(format!("Invalid name ('{text}'); no port allowed")),
        Ok((name, None)) if is_host(name) => Ok(()),
        _ => Err(format!("Invalid name ('{text}'); must be a valid hostname")),
    }
}

/// A target: a host name or an address, perhaps with a port. The original takes port 0, which leads nowhere.
pub fn target(text: &str) -> Result<(), String> {
    match split_port(text) {
        Ok((name, port)) if is_host(name) && port != Some(0) => Ok(()),
        _ => Err(format!(
            "Invalid target ('{text}'); not a valid hostname or ip address"
        )),
    }
}

/// Splits `host:port`; brackets around an IPv6 address stay.
pub fn split_port(text: &str) -> Result<(&str, Option<u16>), String> {
    if text.matches(':').count() > 1 && !text.starts_with('[') {
        return Ok((text, None));
    }
    let Some((name, port)) = text
        .rsplit_once(':')
        .filter(|(name, _)| !name.starts_with('[') || name.ends_with(']'))
    else {
        return Ok((text, None));
    };
    if port.is_empty() || !port.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(format!("invalid hostname: {text}"));
    }
    match port.parse() {
        Ok(port) => Ok((name, Some(port))),
        Err(_) => Err(BAD_PORT.to_owned()),
    }
}

/// The value of a header: the original takes any, and writes it as it is.
pub fn header_value(text: &str) -> Result<(), String> {
    match headers::is_value(text.as_bytes()) {
        true => Ok(()),
        false => Err("expected a header value without control characters".to_owned()),
    }
}

fn is_host(name: &str) -> bool {
    if name.parse::<IpAddr>().is_ok() {
        return true;
    }
    if let Some(inner) = name.strip_prefix('[').and_then(|it| it.strip_suffix(']')) {
        return inner.parse::<std::net::Ipv6Addr>().is_ok();
    }
    let is_label = |label: &str| {
        !label.is_empty()
            && !label.ends_with('-')
            && label
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
    };
    name.strip_suffix('.').unwrap_or(name).split('.').all(is_label)
}

/// A path that calls are forwarded to.
pub fn path(text: &str) -> Result<(), String> {
    if !text.starts_with('/') {
        return Err("should start with: /".to_owned());
    }
    if text.contains("//") {
        return Err("must not have empty segments".to_owned());
    }
    let is_fine = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~/%:@!$&'()*+,;=".contains(&byte);
    if !text.bytes().all(is_fine) {
        return Err(format!(
            "invalid path: '{text}' (characters outside of the reserved list of RFC 3986 found)"
        ));
    }
    check_escapes(text)
}

/// A path of a route: a prefix, or `~` and a regular expression.
pub fn route_path(text: &str) -> Result<(), String> {
    if text.len() > MAX_ROUTE_PATH {
        return Err(format!(
            "paths of more than {MAX_ROUTE_PATH} bytes are not served by this version of Weir"
        ));
    }
    if let Some(pattern) = text.strip_prefix('~').filter(|pattern| pattern.starts_with('/')) {
        return regex_path(pattern);
    }
    if !text.starts_with('/') {
        return Err("should start with: / (fixed path) or ~/ (regex path)".to_owned());
    }
    if text.contains("//") {
        return Err("must not have empty segments".to_owned());
    }
    if !text.contains('%') && !text.contains("/.") {
        return Ok(());
    }
    check_escapes(text)?;
    match normal_path(text) {
        normal if normal == text => Ok(()),
        normal => Err(format!("non-normalized path, consider use '{normal}' instead")),
    }
}

/// Whether routes can be matched by a regular expression.
///
/// # Errors
/// It is none, or it takes more memory than routes may use for one.
pub fn check_regex(pattern: &str) -> Result<(), regex::Error> {
    let mut builder = RegexBuilder::new(pattern);
    builder.size_limit(MAX_REGEX_BYTES).build().map(drop)
}

/// The most bytes of a regular expression of a route in memory.
const MAX_REGEX_BYTES: usize = 1 << 20;

fn regex_path(pattern: &str) -> Result<(), String> {
    check_regex(&format!("^{pattern}")).map_err(|error| {
        format!(
            "invalid regex: '{pattern}' ({})",
            regex_complaint(pattern, &error)
        )
    })
}

/// What is wrong with a regular expression; in the words of the original's library if it is one of the usual faults.
pub fn regex_complaint(pattern: &str, error: &regex::Error) -> String {
    let text = error.to_string();
    let last = text.lines().last().unwrap_or_default();
    let message = last.trim_start_matches("error: ");
    let usual = match message {
        "unclosed group" => "missing closing parenthesis",
        "unopened group" => "unmatched closing parenthesis",
        "unclosed character class" => "missing terminating ] for character class",
        "repetition operator missing expression" => "quantifier does not follow a repeatable item",
        other => return other.to_owned(),
    };
    format!("PCRE returned: pcre2_compile() failed: {usual} in \"{pattern}\"")
}

fn check_escapes(text: &str) -> Result<(), String> {
    for (position, _) in text.match_indices('%') {
        let pair = text.as_bytes().get(position + 1..position + 3);
        if !pair.is_some_and(|pair| pair.iter().all(u8::is_ascii_hexdigit)) {
            let end = text.len().min(position + 3);
            let found = text.get(position..end).unwrap_or("%");
            return Err(format!("invalid url-encoded value: '{found}'"));
        }
    }
    Ok(())
}

/// The form in which Kong compares paths: dot segments resolved, double slashes merged, and every escape
/// decoded that does not stand for a reserved character.
pub fn normal_path(text: &str) -> String {
    let decoded = decode_unreserved(text);
    let mut segments: Vec<&str> = Vec::new();
    let mut ends_in_slash = true;
    for segment in decoded.split('/').skip(1) {
        ends_in_slash = matches!(segment, "" | "." | "..");
        match segment {
            "" | "." => {}
            ".." => {
                segments.pop();
            }
            segment => segments.push(segment),
        }
    }
    let mut path = String::with_capacity(decoded.len());
    for segment in &segments {
        path.push('/');
        path.push_str(segment);
    }
    if ends_in_slash {
        path.push('/');
    }
    path
}

/// Whether an escape of this byte means something else than the byte itself (RFC 3986, 2.2).
pub fn is_reserved(byte: u8) -> bool {
    b"!*'();:@&=+$,/?%#[]".contains(&byte)
}

fn decode_unreserved(text: &str) -> String {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, behind)) = rest.split_first() {
        let pair = behind.get(..2).and_then(|pair| std::str::from_utf8(pair).ok());
        match pair.and_then(|pair| u8::from_str_radix(pair, 16).ok()) {
            Some(decoded) if byte == b'%' => {
                if is_reserved(decoded) {
                    out.extend_from_slice(format!("%{decoded:02X}").as_bytes());
                } else {
                    out.push(decoded);
                }
                rest = &behind[2..];
            }
            _ => {
                out.push(byte);
                rest = behind;
            }
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

/// A target with its port, IPv6 addresses with all their digits. `None`: it is no target.
pub fn full_target(target: &str) -> Option<String> {
    self::target(target).ok()?;
    let (host, port) = split_port(target).ok()?;
    let port = port.unwrap_or(TARGET_PORT);
    match host.trim_matches(['[', ']']).parse::<Ipv6Addr>() {
        Ok(address) => {
            let groups: Vec<String> = address
                .segments()
                .iter()
                .map(|group| format!("{group:04x}"))
                .collect();
            Some(format!("[{}]:{port}", groups.join(":")))
        }
        Err(_) => Some(format!("{host}:{port}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Row = (
        fn(&str) -> Result<(), String>,
        &'static str,
        Result<(), &'static str>,
    );

    fn check(table: &[Row]) {
        for (check, text, expected) in table {
            assert_eq!(check(text), expected.map_err(str::to_owned), "{text}");
        }
    }

    /// What routes could not be matched by is refused when it is written: the route would be missing.
    #[test]
    fn expressions_that_take_too_much_memory_are_refused() {
        assert!(regex_path("/a/(?:[a-z]{1,9}/){1,9}x").is_ok());
        let refused = regex_path("/a/(?:[a-z]{1,255}/){1,255}x").expect_err("too large");
        assert!(refused.contains("size limit of 1048576 bytes"), "{refused}");
    }

    #[test]
    fn texts_are_accepted_or_refused_in_kongs_words() {
        let table: &[Row] = &[
            (name, "a.b-c_d~é", Ok(())),
            (
                name,
                "bad name!",
                Err(
                    "invalid value 'bad name!': the only accepted ascii characters are alphanumerics or ., -, _, and ~",
                ),
            ),
            (tag, "b c", Ok(())),
            (
                tag,
                "c/d",
                Err(
                    "invalid tag 'c/d': expected printable ascii (except `,` and `/`) or valid utf-8 sequences",
                ),
            ),
            (wildcard_host, "*.x.test:81", Ok(())),
            (wildcard_host, "x.*", Ok(())),
            (wildcard_host, "under_score.test", Ok(())),
            (
                wildcard_host,
                "http://x.test",
                Err("invalid hostname: http://x.test"),
            ),
            (wildcard_host, "x.test:99999", Err("invalid port number")),
            (
                wildcard_host,
                "x.*.test",
                Err("invalid wildcard: must be placed at leftmost or rightmost label"),
            ),
            (wildcard_host, "[::1]:80", Ok(())),
            (sni, "x.test:443", Err("must not have a port")),
            (sni, "*.w.test", Ok(())),
            (
                upstream_name,
                "127.0.0.1",
                Err("Invalid name ('127.0.0.1'); no ip addresses allowed"),
            ),
            (target, "127.0.0.1:80", Ok(())),
            (
                target,
                "a b",
                Err("Invalid target ('a b'); not a valid hostname or ip address"),
            ),
            (route_path, "/a/\\d+$", Ok(())),
            (route_path, "/enc%2Foded", Ok(())),
            (route_path, "/café", Ok(())),
            (route_path, "/dot/.hidden", Ok(())),
            (
                route_path,
                "x",
                Err("should start with: / (fixed path) or ~/ (regex path)"),
            ),
            (route_path, "/a//b", Err("must not have empty segments")),
            (
                route_path,
                "/c/../d",
                Err("non-normalized path, consider use '/d' instead"),
            ),
            (
                route_path,
                "/e%20f",
                Err("non-normalized path, consider use '/e f' instead"),
            ),
            (route_path, "/a%zz", Err("invalid url-encoded value: '%zz'")),
            (
                route_path,
                "~/a(b",
                Err(
                    "invalid regex: '/a(b' (PCRE returned: pcre2_compile() failed: missing closing parenthesis in \"/a(b\")",
                ),
            ),
        ];
        check(table);
    }

    #[test]
    fn what_could_not_be_served_is_refused() {
        check(&[
            (certificate_name, "*", Ok(())),
            (certificate_name, "*.w.test", Ok(())),
            (certificate_name, "*w.test", Ok(())),
            (certificate_name, "w*", Ok(())),
            (certificate_name, "x.test:443", Err("must not have a port")),
            (certificate_name, "x.test:99999", Err("must not have a port")),
            (certificate_name, "127.0.0.1:443", Err("must not be an IP")),
            (certificate_name, "::1", Err("must not be an IP")),
            (certificate_name, "a b", Err("invalid value: a b")),
            (
                certificate_name,
                "w.*.test",
                Err("wildcard must be leftmost or rightmost character"),
            ),
            (
                certificate_name,
                "*.test.*",
                Err("only one wildcard must be specified"),
            ),
            (
                target,
                "127.0.0.1:0",
                Err("Invalid target ('127.0.0.1:0'); not a valid hostname or ip address"),
            ),
            (header_value, "a b", Ok(())),
            (
                header_value,
                "a\r\nb: c",
                Err("expected a header value without control characters"),
            ),
            (path, "x", Err("should start with: /")),
            (path, "/a.b-c_d~e/%20:@!$&'()*+,;=", Ok(())),
            (path, "/a%2", Err("invalid url-encoded value: '%2'")),
            (
                path,
                "/a b",
                Err("invalid path: '/a b' (characters outside of the reserved list of RFC 3986 found)"),
            ),
            (
                path,
                "/é",
                Err("invalid path: '/é' (characters outside of the reserved list of RFC 3986 found)"),
            ),
        ]);
        for unfit in [
            "?", "#", "|", "{", "}", "[", "]", "^", "\\", "<", ">", "\"", "`", "\t", "\r\nx",
        ] {
            let text = format!("/a{unfit}b");
            let wanted =
                format!("invalid path: '{text}' (characters outside of the reserved list of RFC 3986 found)");
            assert_eq!(path(&text), Err(wanted));
        }
        assert!(route_path(&format!("/{}", "a".repeat(4095))).is_ok());
        assert!(route_path(&format!("/{}", "a".repeat(4096))).is_err());
    }
}
