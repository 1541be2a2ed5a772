//! What holds for all calls of a dialect, whatever their route.

use crate::route::contains;
use ipnet::IpNet;
use std::net::IpAddr;
use weir_plugin::PathRules;
use weir_plugin::uri::NormalForm;

/// What holds for all calls of a dialect.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DialectSettings {
    /// Where the client's address is read from, before routes are matched.
    pub real_ip: Option<RealIp>,
    /// Whether its peers are trusted as proxies, too.
    pub trusts_real_ip_peers: bool,
    /// `Expect: 100-continue` is answered here and not passed on.
    pub answer_expect: bool,
    /// Peers whose `X-Forwarded-*` are trusted, if those of other peers are replaced before routes are matched.
    pub forwarded_from: Option<Vec<IpNet>>,
    /// Request headers whose names have other characters than letters, digits, `-` and `_` are dropped.
    pub plain_header_names: bool,
    /// Path parameters are no part of what is matched.
    pub strips_path_parameters: bool,
    /// A `/` at the end of a path is no part of what is matched.
    pub drops_tail_slash: bool,
    /// An escaped slash stays one in the decoded path that routes match.
    pub keeps_escaped_slashes: bool,
    /// The longest body in which `graphql_…` variables look for a query; `None`: as for other variables.
    pub graphql_max_bytes: Option<usize>,
    /// The charset of textual responses that name none.
    pub charset: Option<Charset>,
}

impl DialectSettings {
    /// Nothing special.
    pub const PLAIN: Self = Self {
        real_ip: None,
        trusts_real_ip_peers: false,
        answer_expect: false,
        forwarded_from: None,
        plain_header_names: false,
        strips_path_parameters: false,
        drops_tail_slash: false,
        keeps_escaped_slashes: false,
        graphql_max_bytes: None,
        charset: None,
    };

    /// How paths are read.
    pub fn path_rules(&self, form: NormalForm) -> PathRules {
        PathRules {
            form,
            strips_parameters: self.strips_path_parameters,
            drops_tail_slash: self.drops_tail_slash,
        }
    }

    /// Whether the `X-Forwarded-*` of this peer are believed.
    pub fn believes(trusted: &[IpNet], peer: IpAddr) -> bool {
        contains(trusted, peer)
    }

    /// Whether this peer is a proxy whose word on the client's call is believed.
    pub fn trusts_proxy(&self, peer: IpAddr) -> bool {
        self.trusts_real_ip_peers && self.real_ip.as_ref().is_some_and(|it| it.trusts(peer))
    }
}

/// A request header that names the client. Of several values or a comma-separated list, the last counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RealIp {
    /// The header's name.
    pub header: Vec<u8>,
    /// Peers that are believed.
    pub trusted: Vec<IpNet>,
}

impl RealIp {
    /// Whether what this peer says of the client is believed.
    pub fn trusts(&self, peer: IpAddr) -> bool {
        contains(&self.trusted, peer)
    }
}

/// A charset that is put behind `Content-Type`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Charset {
    /// What is put there: `; charset=utf-8`.
    pub parameter: Vec<u8>,
    /// The media types that get it, in lower case.
    pub media_types: Vec<Vec<u8>>,
}

impl Charset {
    /// The text to append to this `Content-Type`; `None` if it names a charset or another media type.
    pub fn parameter_for(&self, content_type: &[u8]) -> Option<&[u8]> {
        let end = content_type.iter().position(|byte| *byte == b';');
        let (media_type, parameters) = content_type.split_at(end.unwrap_or(content_type.len()));
        let media_type = media_type.trim_ascii();
        let is_listed = |it: &Vec<u8>| it == media_type || it.eq_ignore_ascii_case(media_type);
        if !self.media_types.iter().any(is_listed) {
            return None;
        }
        if parameters.is_empty() {
            return Some(&self.parameter);
        }
        let is_charset = |part: &[u8]| {
            part.get(..8)
                .is_some_and(|name| name.eq_ignore_ascii_case(b"charset="))
        };
        let mut parameters = parameters.split(|byte| *byte == b';').map(<[u8]>::trim_ascii);
        (!parameters.any(is_charset)).then_some(&self.parameter)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn charsets_go_behind_listed_types_that_have_none() {
        let charset = Charset {
            parameter: b"; charset=utf-8".to_vec(),
            media_types: vec![b"text/plain".to_vec(), b"text/html".to_vec()],
        };
        for (content_type, added) in [
            ("text/plain", true),
            ("Text/HTML ; q=1", true),
            ("text/plain; charset=latin1", false),
            ("text/plain;Charset=x", false),
            ("application/json", false),
            ("", false),
        ] {
            assert_eq!(
                charset.parameter_for(content_type.as_bytes()).is_some(),
                added,
                "{content_type}"
            );
        }
    }
}
