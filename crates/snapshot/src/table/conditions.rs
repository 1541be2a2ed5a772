//! What a match demands beside host and path.

use super::Mismatch;
use crate::route::contains;
use ipnet::IpNet;
use regex::bytes::{Regex, RegexBuilder};
use weir_model::{DocPath, HeaderMatch, HostPattern, RouteMatch};
use weir_plugin::{Condition, Exchange, Request};

/// The bit of all methods that have none of their own; which of them is for [`Conditions`] to check.
const OTHER: u16 = 1 << 15;
/// Every method.
const ALL: u16 = u16::MAX;

/// The bit of this method.
#[inline]
pub(super) fn method_bit(method: &[u8]) -> u16 {
    match method {
        b"GET" => 1,
        b"HEAD" => 1 << 1,
        b"POST" => 1 << 2,
        b"PUT" => 1 << 3,
        b"DELETE" => 1 << 4,
        b"PATCH" => 1 << 5,
        b"OPTIONS" => 1 << 6,
        b"TRACE" => 1 << 7,
        b"CONNECT" => 1 << 8,
        _ => OTHER,
    }
}

/// Conditions that are rarer than host, path and method.
#[derive(Clone, Default)]
pub(super) struct Conditions {
    /// The only port of the call.
    port: Option<u16>,
    /// Methods without a bit of their own; empty: the bits say it all.
    methods: Vec<Vec<u8>>,
    headers: Vec<HeaderCondition>,
    networks: Vec<IpNet>,
    snis: Vec<HostPattern>,
    when: Option<Condition>,
}

#[derive(Clone)]
struct HeaderCondition {
    name: String,
    values: Vec<String>,
    regex: Option<Regex>,
}

impl Conditions {
    /// The bits of the methods of a match, and its other conditions. Calls `report` with each fault and its place
    /// within the match.
    pub(super) fn compile(route_match: &RouteMatch, report: &mut dyn FnMut(DocPath, String)) -> (u16, Self) {
        let mut conditions = Self {
            networks: route_match.remote_addrs.clone(),
            ..Self::default()
        };
        let mut bits = if route_match.methods.is_empty() { ALL } else { 0 };
        for method in &route_match.methods {
            let bit = method_bit(method.as_bytes());
            bits |= bit;
            if bit == OTHER {
                conditions.methods.push(method.as_bytes().to_vec());
            }
        }
        let root = DocPath::root();
        for (index, header) in route_match.headers.iter().enumerate() {
            match HeaderCondition::compile(header) {
                Ok(header) => conditions.headers.push(header),
                Err(message) => report(root.field("headers").index(index).field("regex"), message),
            }
        }
        for (index, sni) in route_match.snis.iter().enumerate() {
            match HostPattern::parse(sni.trim_end_matches('.')) {
                Ok(pattern) => conditions.snis.push(pattern),
                Err(error) => report(root.field("snis").index(index), error.to_string()),
            }
        }
        if let Some(predicate) = &route_match.when {
            match Condition::compile(predicate) {
                Ok(condition) => conditions.when = Some(condition),
                Err(message) => report(root.field("when"), message),
            }
        }
        (bits, conditions)
    }

    /// The same for one port of the call, or for every one.
    pub(super) fn at_port(&self, port: Option<u16>) -> Self {
        Self { port, ..self.clone() }
    }

    /// Whether there are no conditions.
    pub(super) fn is_empty(&self) -> bool {
        self.port.is_none()
            && self.methods.is_empty()
            && self.headers.is_empty()
            && self.networks.is_empty()
            && self.snis.is_empty()
            && self.when.is_none()
    }

    /// Whether all hold. Captures of the path are not known yet.
    pub(super) fn hold(&self, exchange: &Exchange) -> bool {
        self.matches_without_variables(&exchange.request)
            && self
                .when
                .as_ref()
                .is_none_or(|condition| condition.holds(exchange))
    }

    /// Whether any reads variables that are in the request's body.
    pub(super) fn need_body(&self) -> bool {
        self.when.as_ref().is_some_and(Condition::needs_body)
    }

    /// Whether the request's body, which has not been read, decides.
    pub(super) fn await_body(&self, exchange: &Exchange) -> bool {
        self.when.as_ref().is_some_and(|condition| {
            self.matches_without_variables(&exchange.request) && condition.awaits_body(exchange)
        })
    }

    /// Whether all but the condition over variables hold.
    fn matches_without_variables(&self, request: &Request) -> bool {
        self.matches_port(request)
            && self.matches_method(request)
            && self.headers.iter().all(|header| header.holds(request))
            && self.matches_network(request)
            && self.matches_sni(request)
    }

    /// What does not hold.
    pub(super) fn mismatches(&self, exchange: &Exchange, found: &mut Vec<Mismatch>) {
        let request = &exchange.request;
        if let Some(port) = self.port.filter(|_| !self.matches_port(request)) {
            found.push(Mismatch::Port(port));
        }
        if !self.matches_method(request) {
            found.push(Mismatch::Method);
        }
        let headers = self.headers.iter().filter(|header| !header.holds(request));
        found.extend(headers.map(|header| Mismatch::Header(header.name.clone())));
        if !self.matches_network(request) {
            found.push(Mismatch::RemoteAddress);
        }
        if !self.matches_sni(request) {
            found.push(Mismatch::ServerName);
        }
        if self
            .when
            .as_ref()
            .is_some_and(|condition| !condition.holds(exchange))
        {
            found.push(Mismatch::Condition);
        }
    }

    fn matches_port(&self, request: &Request) -> bool {
        // A host field without a port means the scheme's (RFC 9110, 4.2).
        let of_scheme = if request.is_tls { 443 } else { 80 };
        self.port
            .is_none_or(|port| port == request.host_port.unwrap_or(of_scheme))
    }

    fn matches_method(&self, request: &Request) -> bool {
        self.methods.is_empty()
            || method_bit(&request.method) != OTHER
            || self.methods.contains(&request.method)
    }

    fn matches_network(&self, request: &Request) -> bool {
        self.networks.is_empty() || contains(&self.networks, request.client)
    }

    fn matches_sni(&self, request: &Request) -> bool {
        if self.snis.is_empty() || !request.is_tls {
            return true;
        }
        let Some(name) = &request.sni else {
            return false;
        };
        let name = name.trim_end_matches('.').as_bytes();
        self.snis.iter().any(|pattern| is_name_of(pattern, name))
    }
}

impl HeaderCondition {
    fn compile(header: &HeaderMatch) -> Result<Self, String> {
        let compile = |text: &String, unicode| {
            let mut builder = RegexBuilder::new(text);
            builder.unicode(unicode).size_limit(1 << 20).build()
        };
        let regex = header
            .regex
            .as_ref()
            .map(|text| compile(text, false).or_else(|_| compile(text, true)))
            .transpose()
            .map_err(|error| format!("not a regular expression: {error}"))?;
        Ok(Self {
            name: header.name.clone(),
            values: header.values.clone(),
            regex,
        })
    }

    /// Whether any of the call's headers of this name has one of the values or matches the expression; without either,
    /// whether there is such a header.
    fn holds(&self, request: &Request) -> bool {
        let name = self.name.as_bytes();
        if self.values.is_empty() && self.regex.is_none() {
            return request.headers.contains(name);
        }
        let mut values = request.headers.get_all(name);
        values.any(|value| {
            let same = |wanted: &String| wanted.as_bytes().eq_ignore_ascii_case(value);
            self.values.iter().any(same) || self.regex.as_ref().is_some_and(|regex| regex.is_match(value))
        })
    }
}

fn is_name_of(pattern: &HostPattern, name: &[u8]) -> bool {
    let same = |part: &[u8], text: &str| part.eq_ignore_ascii_case(text.as_bytes());
    match pattern {
        HostPattern::Any => true,
        HostPattern::Exact { host, .. } => same(name, host),
        HostPattern::Suffix { suffix, .. } => {
            name.len() > suffix.len() && same(&name[name.len() - suffix.len()..], suffix)
        }
        HostPattern::Prefix { prefix, .. } => {
            name.len() > prefix.len() && same(&name[..prefix.len()], prefix)
        }
    }
}
