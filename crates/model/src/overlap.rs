//! Whether two matches can hold for one call. If that is not decidable (regular expressions, conditions over
//! variables), the answer is yes: callers want to know whether one route can take calls of another.

use crate::{
    Endpoint, HeaderMatch, HostPattern, PathPattern, RouteMatch, StreamProtocol, StreamRoute, TemplatePart,
};
use std::borrow::Cow;

impl RouteMatch {
    /// Whether both may hold for one call. `tls_only`: only calls over TLS count, to which server names apply.
    pub fn may_overlap(&self, other: &Self, tls_only: bool) -> bool {
        self.path.begins_overlap(&other.path)
            && any_or_common(&self.hosts, &other.hosts, HostPattern::may_overlap)
            // Gateways compare methods by case, as HTTP says.
            && any_or_common(&self.methods, &other.methods, PartialEq::eq)
            && !self
                .headers
                .iter()
                .any(|one| other.headers.iter().any(|other| one.excludes(other)))
            && (!tls_only || server_names_may_overlap(&self.snis, &other.snis))
            // The most work, so it comes last.
            && self.path.fits_with(&other.path)
    }
}

impl StreamRoute {
    /// Whether both may take one connection or datagram.
    pub fn may_overlap(&self, other: &Self) -> bool {
        let is_tls = |it: StreamProtocol| matches!(it, StreamProtocol::Tls | StreamProtocol::TlsPassthrough);
        let speaks = |it: &Self, over_tls: bool| {
            it.protocols.is_empty() || it.protocols.iter().any(|protocol| is_tls(*protocol) == over_tls)
        };
        let shares_plain = any_or_common(&self.protocols, &other.protocols, |one, other| {
            one == other && !is_tls(*one)
        });
        // Server names bind only what comes over TLS.
        let shares_tls =
            speaks(self, true) && speaks(other, true) && server_names_may_overlap(&self.snis, &other.snis);
        (shares_plain || shares_tls)
            && any_or_common(&self.sources, &other.sources, Endpoint::may_overlap)
            && any_or_common(&self.destinations, &other.destinations, Endpoint::may_overlap)
    }
}

impl Endpoint {
    fn may_overlap(&self, other: &Self) -> bool {
        let ports = self.port.is_none() || other.port.is_none() || self.port == other.port;
        let networks = match (&self.network, &other.network) {
            (Some(one), Some(other)) => one.contains(other) || other.contains(one),
            _ => true,
        };
        ports && networks
    }
}

impl RouteMatch {
    /// Whether its hosts or server names may hold this name. No name belongs to a route without them.
    pub fn is_for_server_name(&self, name: &HostPattern) -> bool {
        let mut hosts = self.hosts.iter();
        hosts.any(|host| host.is_of(name)) || names_server(&self.snis, name)
    }
}

impl StreamRoute {
    /// Whether its server names may hold this name. No name belongs to a route without them.
    pub fn is_for_server_name(&self, name: &HostPattern) -> bool {
        names_server(&self.snis, name)
    }
}

fn names_server(names: &[String], name: &HostPattern) -> bool {
    let mut patterns = names.iter().filter_map(|it| HostPattern::parse(it).ok());
    patterns.any(|it| it.is_of(name))
}

/// Whether both lists may name one server; an empty one names all.
pub fn server_names_may_overlap(one: &[String], other: &[String]) -> bool {
    any_or_common(one, other, |one, other| {
        match (HostPattern::parse(one), HostPattern::parse(other)) {
            (Ok(one), Ok(other)) => one.may_overlap(&other),
            _ => true,
        }
    })
}

/// Whether two members are compatible, or one of the lists is empty and so matches everything.
fn any_or_common<T>(one: &[T], other: &[T], goes_together: impl Fn(&T, &T) -> bool) -> bool {
    one.is_empty()
        || other.is_empty()
        || one
            .iter()
            .any(|one| other.iter().any(|other| goes_together(one, other)))
}

impl HeaderMatch {
    /// Whether no call can match both, because they require different values of one header.
    fn excludes(&self, other: &Self) -> bool {
        let is_list = |it: &Self| it.regex.is_none() && !it.values.is_empty();
        let has = |value: &String| other.values.iter().any(|known| known.eq_ignore_ascii_case(value));
        self.name.eq_ignore_ascii_case(&other.name)
            && is_list(self)
            && is_list(other)
            && !self.values.iter().any(has)
    }
}

impl HostPattern {
    /// Whether one host may fit both.
    pub fn may_overlap(&self, other: &Self) -> bool {
        let ports = match (self.port(), other.port()) {
            (Some(one), Some(other)) => one == other,
            _ => true,
        };
        ports
            && match (self, other) {
                (Self::Any, _)
                | (_, Self::Any)
                | (Self::Suffix { .. }, Self::Prefix { .. })
                | (Self::Prefix { .. }, Self::Suffix { .. }) => true,
                (Self::Exact { host: one, .. }, Self::Exact { host: other, .. }) => one == other,
                (Self::Exact { host, .. }, Self::Suffix { suffix, .. })
                | (Self::Suffix { suffix, .. }, Self::Exact { host, .. }) => host.ends_with(suffix.as_str()),
                (Self::Exact { host, .. }, Self::Prefix { prefix, .. })
                | (Self::Prefix { prefix, .. }, Self::Exact { host, .. }) => {
                    host.starts_with(prefix.as_str())
                }
                (Self::Suffix { suffix: one, .. }, Self::Suffix { suffix: other, .. }) => {
                    one.ends_with(other.as_str()) || other.ends_with(one.as_str())
                }
                (Self::Prefix { prefix: one, .. }, Self::Prefix { prefix: other, .. }) => {
                    one.starts_with(other.as_str()) || other.starts_with(one.as_str())
                }
            }
    }

    /// Whether it is about some hosts only, and this may be one of them.
    fn is_of(&self, name: &Self) -> bool {
        *self != Self::Any && self.may_overlap(name)
    }

    fn port(&self) -> Option<u16> {
        match self {
            Self::Any => None,
            Self::Exact { port, .. } | Self::Suffix { port, .. } | Self::Prefix { port, .. } => *port,
        }
    }
}

/// A text without its escapes (RFC 3986, 2.1). What looks like a broken one stays.
pub(crate) fn decoded(text: &str) -> Cow<'_, [u8]> {
    if !text.contains('%') {
        return Cow::Borrowed(text.as_bytes());
    }
    let digit = |byte: Option<&u8>| byte.and_then(|it| char::from(*it).to_digit(16));
    let (mut out, mut rest) = (Vec::with_capacity(text.len()), text.as_bytes());
    while let Some((byte, behind)) = rest.split_first() {
        match (byte, digit(behind.first()), digit(behind.get(1))) {
            (b'%', Some(high), Some(low)) => {
                out.push((high * 16 + low) as u8);
                rest = &behind[2..];
            }
            _ => {
                out.push(*byte);
                rest = behind;
            }
        }
    }
    Cow::Owned(out)
}

impl PathPattern {
    /// Whether one path may fit both, by what their paths begin with.
    fn begins_overlap(&self, other: &Self) -> bool {
        let (begin, other_begin) = (self.begin(), other.begin());
        // Some dialects have paths as they are read, and others as they are sent: `/küche` and `/k%C3%BCche`.
        let (begin, other_begin) = (decoded(&begin), decoded(&other_begin));
        match (self.is_exact(), other.is_exact()) {
            _ if begin == other_begin => true,
            (true, true) => false,
            (true, false) => begin.starts_with(&other_begin),
            (false, true) => other_begin.starts_with(&begin),
            (false, false) => begin.starts_with(&other_begin) || other_begin.starts_with(&begin),
        }
    }

    /// Whether one path may fit both, if their begins do: segments and parameters say more than begins.
    fn fits_with(&self, other: &Self) -> bool {
        let has_segments = |it: &Self| matches!(it, Self::Segments(_) | Self::Template(_));
        !(has_segments(self) || has_segments(other)) || self.common_path(other).is_some()
    }

    fn is_exact(&self) -> bool {
        matches!(self, Self::Exact(_))
    }

    /// What every path that fits begins with.
    pub fn begin(&self) -> Cow<'_, str> {
        match self {
            Self::Any => "".into(),
            Self::Exact(path) | Self::Prefix(path) | Self::Segments(path) => path.as_str().into(),
            Self::Template(parts) => match parts.first() {
                Some(TemplatePart::Literal(literal)) => literal.as_str().into(),
                _ => "".into(),
            },
            Self::Regex(regex) => literal_begin(regex).into(),
        }
    }
}

/// What every text begins with that a regular expression finds at its start.
fn literal_begin(regex: &str) -> String {
    let mut literal = String::new();
    // One of several ways may begin otherwise.
    if regex.contains('|') {
        return literal;
    }
    let mut rest = regex.strip_prefix('^').unwrap_or(regex).chars().peekable();
    while let Some(character) = rest.next() {
        let character = match character {
            '\\' => match rest.next() {
                Some(escaped) if !escaped.is_ascii_alphanumeric() => escaped,
                _ => break,
            },
            '.' | '(' | ')' | '[' | ']' | '{' | '}' | '*' | '+' | '?' | '^' | '$' => break,
            literal => literal,
        };
        match rest.peek() {
            Some('*' | '?' | '{') => break,
            _ => literal.push(character),
        }
    }
    literal
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_that_have_calls_in_common_are_known() {
        for (one, other, expected) in [
            ("*", "/a", true),
            ("/a*", "/ab", true),
            ("/a*", "/b*", false),
            ("=/a", "=/a", true),
            ("=/a", "=/b", false),
            ("=/abc", "/ab*", true),
            ("=/a", "/ab*", false),
            ("~/pay/\\d+$", "/pay*", true),
            ("~/pay/\\d+$", "/pay/x*", true),
            ("~/pay/\\d+$", "/paid*", false),
            ("~/pay/\\d+$", "/orders*", false),
            ("~(/a|/b)", "/orders*", true),
            ("~/pay?", "/pa*", true),
            ("~/a\\.b", "/a.b*", true),
            ("/users/{id}", "/users/7", true),
            ("/users/{id}", "/orders", false),
            ("/users/{id}", "/users/{id}/posts", false),
            ("/users/{id}", "=/users/a%2Fb", true),
            ("/users", "/user", false),
            ("/users", "/user*", true),
            ("=/küche", "=/k%C3%BCche", true),
            ("=/küche", "=/k%c3%bcche", true),
            ("/a b*", "=/a%20bc", true),
            ("=/küche", "=/k%C3%BC", false),
            ("=/a%2", "=/a%2", true),
            ("=/a%2", "=/a", false),
        ] {
            let of = |text: &str| RouteMatch {
                path: PathPattern::parse(text).expect("a pattern"),
                ..RouteMatch::default()
            };
            let (one, other) = (of(one), of(other));
            assert_eq!(one.may_overlap(&other, false), expected, "{one:?} {other:?}");
            assert_eq!(other.may_overlap(&one, false), expected, "{other:?} {one:?}");
        }
    }

    #[test]
    fn hosts_that_have_calls_in_common_are_known() {
        for (one, other, expected) in [
            ("*", "a.test", true),
            ("a.test", "A.test", true),
            ("a.test", "b.test", false),
            ("a.test:80", "a.test", true),
            ("a.test:80", "a.test:81", false),
            ("*.test", "a.test", true),
            ("*.a.test", "*.test", true),
            ("*.a.test", "*.b.test", false),
            ("a.*", "a.test", true),
            ("a.*", "*.test", true),
            ("a.*", "b.*", false),
        ] {
            let pattern = |text: &str| HostPattern::parse(text).expect("a pattern");
            let (one, other) = (pattern(one), pattern(other));
            assert_eq!(one.may_overlap(&other), expected, "{one:?} {other:?}");
            assert_eq!(other.may_overlap(&one), expected, "{other:?} {one:?}");
        }
    }

    #[test]
    fn every_condition_can_keep_matches_apart() {
        let header = |value: &str| HeaderMatch {
            name: "X".to_owned(),
            values: vec![value.to_owned()],
            regex: None,
        };
        let texts = |text: &str| vec![text.to_owned()];
        let plain = RouteMatch::default();
        let get = RouteMatch {
            methods: texts("GET"),
            ..RouteMatch::default()
        };
        let post = RouteMatch {
            methods: texts("POST"),
            ..RouteMatch::default()
        };
        let lower = RouteMatch {
            methods: texts("get"),
            ..RouteMatch::default()
        };
        let blue = RouteMatch {
            headers: vec![header("blue")],
            ..RouteMatch::default()
        };
        let red = RouteMatch {
            headers: vec![header("red")],
            ..RouteMatch::default()
        };
        let named = RouteMatch {
            snis: texts("a.test"),
            ..RouteMatch::default()
        };
        let other = RouteMatch {
            snis: texts("b.test"),
            ..RouteMatch::default()
        };
        for (one, other, tls_only, expected) in [
            (&plain, &get, false, true),
            (&get, &post, false, false),
            (&get, &lower, false, false),
            (&get, &blue, false, true),
            (&blue, &red, false, false),
            (&blue, &blue, false, true),
            (&named, &other, true, false),
            // Without TLS there is no server name to distinguish them.
            (&named, &other, false, true),
        ] {
            assert_eq!(one.may_overlap(other, tls_only), expected, "{one:?} {other:?}");
        }
    }
}
