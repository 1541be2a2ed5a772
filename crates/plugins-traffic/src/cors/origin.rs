//! Origins (RFC 6454): which may call, and how they are answered.

use super::Config;
use regex::bytes::Regex;
use std::borrow::Cow;
use weir_model::{Diagnostic, DocPath};

/// How a caller's origin is answered.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Grant<'x> {
    /// With `*`.
    Star,
    /// With this origin.
    Origin(Cow<'x, [u8]>),
    /// It may not call.
    Refused,
}

/// A list of origins.
pub(super) struct Origins {
    any: Any,
    fixed: Option<Vec<u8>>,
    exact: Vec<Vec<u8>>,
    patterns: Vec<Regex>,
    hosts: Vec<Vec<u8>>,
    host_patterns: Vec<Regex>,
    normalize: bool,
}

/// Whether every origin is good, and how it is answered then.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Any {
    No,
    /// With `*`.
    Star,
    /// With the caller's own origin, if it sends one.
    Own,
}

impl Origins {
    /// Origins that may call.
    pub(super) fn of_callers(config: &Config) -> Result<Self, Vec<Diagnostic>> {
        let root = DocPath::root();
        let patterns = weir_plugins_shared::regex_list::compile_list(
            &config.origin_patterns,
            &root.field("origin_patterns"),
        )?;
        let host_patterns = weir_plugins_shared::regex_list::compile_list(
            &config.host_patterns,
            &root.field("host_patterns"),
        )?;
        let lists = [
            &config.origins,
            &config.origin_patterns,
            &config.hosts,
            &config.host_patterns,
        ];
        let has_none = lists.iter().all(|list| list.is_empty()) && config.fixed_origin.is_none();
        let any = match Any::of(&config.origins) {
            Any::No if has_none => Any::Star,
            any => any,
        };
        Ok(Self {
            any: match any {
                Any::Star if config.credentials => Any::Own,
                any => any,
            },
            fixed: config.fixed_origin.as_ref().map(|it| it.as_bytes().to_vec()),
            exact: bytes(&config.origins),
            patterns,
            hosts: bytes(&config.hosts),
            host_patterns,
            normalize: config.normalize_origin,
        })
    }

    /// Origins that may read timing details.
    pub(super) fn of_timing(config: &Config) -> Result<Self, Vec<Diagnostic>> {
        let path = DocPath::root().field("timing_origin_patterns");
        Ok(Self {
            any: Any::of(&config.timing_origins),
            fixed: None,
            exact: bytes(&config.timing_origins),
            patterns: weir_plugins_shared::regex_list::compile_list(&config.timing_origin_patterns, &path)?,
            hosts: Vec::new(),
            host_patterns: Vec::new(),
            normalize: false,
        })
    }

    /// How a caller of this origin is answered.
    pub(super) fn grant<'x>(&'x self, origin: Option<&'x [u8]>) -> Grant<'x> {
        if let Some(fixed) = &self.fixed {
            return Grant::Origin(fixed.into());
        }
        match (self.any, origin) {
            (Any::Star, _) | (Any::Own, None) => Grant::Star,
            (Any::Own, Some(origin)) => Grant::Origin(origin.into()),
            (Any::No, None) => Grant::Refused,
            (Any::No, Some(origin)) => {
                let origin = match self.normalize {
                    true => without_standard_port(origin),
                    false => origin.into(),
                };
                match self.holds(&origin) {
                    true => Grant::Origin(origin),
                    false => Grant::Refused,
                }
            }
        }
    }

    fn holds(&self, origin: &[u8]) -> bool {
        let host = || host_of(origin);
        self.exact.iter().any(|it| it == origin)
            || self.patterns.iter().any(|it| it.is_match(origin))
            || self.hosts.iter().any(|it| it == host())
            || self.host_patterns.iter().any(|it| it.is_match(host()))
    }
}

impl Any {
    fn of(origins: &[String]) -> Self {
        match origins {
            origins if origins.iter().any(|it| it == "**") => Self::Own,
            origins if origins.iter().any(|it| it == "*") => Self::Star,
            _ => Self::No,
        }
    }
}

fn bytes(texts: &[String]) -> Vec<Vec<u8>> {
    let exact = texts.iter().filter(|text| !matches!(text.as_str(), "*" | "**"));
    exact.map(|text| text.as_bytes().to_vec()).collect()
}

fn without_standard_port(origin: &[u8]) -> Cow<'_, [u8]> {
    let standard: [(&[u8], &[u8]); 2] = [(b"http://", b":80"), (b"https://", b":443")];
    let rest = standard
        .iter()
        .find_map(|(scheme, port)| origin.starts_with(scheme).then(|| origin.strip_suffix(*port))?);
    rest.unwrap_or(origin).into()
}

/// The host of an origin, without scheme and port; the whole text if it has no such parts.
fn host_of(origin: &[u8]) -> &[u8] {
    let authority = match memchr::memmem::find(origin, b"://") {
        Some(at) => &origin[at + 3..],
        None => origin,
    };
    let port = authority.iter().rposition(|byte| *byte == b':');
    match port.filter(|at| authority[at + 1..].iter().all(u8::is_ascii_digit)) {
        Some(at) => &authority[..at],
        None => authority,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_and_ports_are_split() {
        for (origin, host, normal) in [
            ("http://a.test", "a.test", "http://a.test"),
            ("http://a.test:80", "a.test", "http://a.test"),
            ("https://a.test:80", "a.test", "https://a.test:80"),
            ("https://a.test:443", "a.test", "https://a.test"),
            ("http://[::1]:80", "[::1]", "http://[::1]"),
            ("http://[::1]", "[::1]", "http://[::1]"),
            ("null", "null", "null"),
            ("", "", ""),
        ] {
            assert_eq!(host_of(origin.as_bytes()), host.as_bytes(), "{origin}");
            assert_eq!(
                without_standard_port(origin.as_bytes()),
                normal.as_bytes(),
                "{origin}"
            );
        }
    }
}
