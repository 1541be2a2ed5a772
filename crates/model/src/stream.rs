//! Stream routes: which connections and datagrams go to which service, below HTTP.

use crate::{ChainStep, DialectName, is_default};
use ipnet::IpNet;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use std::borrow::Cow;
use std::fmt;
use std::net::{IpAddr, SocketAddr};

/// A route of sessions: a connection over TCP, or the datagrams of one client over UDP. All conditions that are given
/// must hold.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StreamRoute {
    /// Unique name within its dialect; metrics and logs carry it.
    pub name: String,
    /// Which original the route is served like.
    #[serde(default, skip_serializing_if = "is_default")]
    pub dialect: DialectName,
    /// Any of these protocols; empty: `tcp`, `tls` and `udp`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub protocols: Vec<StreamProtocol>,
    /// Any of these server names of the TLS handshake, `*.example.com` for all names below one; empty: every name, and
    /// none. They bind only `tls` and `tls-passthrough`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub snis: Vec<String>,
    /// The client is any of these; empty: every client.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sources: Vec<Endpoint>,
    /// The client has come to any of these addresses of the gateway; empty: to any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub destinations: Vec<Endpoint>,
    /// Among routes whose conditions hold, the highest wins, then the first in the document. Absent: more kinds of
    /// conditions win, then full server names, then longer ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub precedence: Option<u64>,
    /// The service that gets the sessions, by its name; absent: they are closed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service: Option<String>,
    /// Milliseconds without a byte in either direction after which a session ends; absent: the service's read
    /// time-out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idle_timeout_ms: Option<u64>,
    /// Datagrams that answer each one of a client; once they came, the session ends. Absent: it ends when it is idle.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub udp_responses: Option<u32>,
    /// The PROXY protocol, which sends the client's address to targets; absent: off.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proxy_protocol: Option<ProxyProtocol>,
    /// Sessions are of MQTT, and begin with this CONNECT; others are closed. Their client's id may choose the target
    /// (`hash_on: [mqtt-client-id]`). Absent: sessions may be anything.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mqtt: Option<MqttConnect>,
    /// The plugins, in the order in which they work when a session begins.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub plugins: Vec<ChainStep>,
}

/// The version of MQTT that a CONNECT has to name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MqttConnect {
    /// The protocol's name.
    #[serde(default = "mqtt")]
    pub protocol_name: String,
    /// Its level: 4 is version 3.1.1, and 5 version 5.
    pub protocol_level: u8,
}

fn mqtt() -> String {
    "MQTT".to_owned()
}

/// The protocol of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum StreamProtocol {
    /// Anything over TCP, as it comes.
    Tcp,
    /// TLS that the gateway ends: targets get what was inside.
    Tls,
    /// TLS that the gateway only reads the server name of: targets get it as it comes.
    TlsPassthrough,
    /// Datagrams.
    Udp,
}

impl StreamProtocol {
    /// The protocol's word in logs and metrics.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Tcp => "tcp",
            Self::Tls => "tls",
            Self::TlsPassthrough => "tls-passthrough",
            Self::Udp => "udp",
        }
    }
}

/// A version of the PROXY protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ProxyProtocol {
    /// A line of text.
    V1,
    /// A binary header.
    V2,
}

/// An end of a session: an address or a network, a port, or both.
///
/// | text form | is |
/// |---|---|
/// | `10.0.0.1`, `10.0.0.0/8`, `2001:db8::/32` | any port of these addresses |
/// | `:9000` | this port of any address |
/// | `10.0.0.0/8:9000`, `[2001:db8::1]:9000` | this port of these addresses |
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Endpoint {
    /// The addresses; `None`: all.
    pub network: Option<IpNet>,
    /// The port; `None`: all.
    pub port: Option<u16>,
}

impl Endpoint {
    /// Reads the text form; the sentence of an error says what was expected.
    pub fn parse(text: &str) -> Result<Self, String> {
        if let Some(network) = network(text) {
            return Ok(Self {
                network: Some(network),
                port: None,
            });
        }
        let wrong =
            || format!("expected an address, a network, ':PORT', or one with the other, found '{text}'");
        let (address, port) = text.rsplit_once(':').ok_or_else(wrong)?;
        let port: u16 = port.parse().map_err(|_| wrong())?;
        let network = match address {
            "" => None,
            _ => {
                let bare = address
                    .strip_prefix('[')
                    .and_then(|address| address.strip_suffix(']'));
                // Without brackets the port of an IPv6 address could be a part of it.
                let is_fit = bare.is_some() || !address.contains(':');
                let network = network(bare.unwrap_or(address)).filter(|_| is_fit);
                Some(network.ok_or_else(wrong)?)
            }
        };
        Ok(Self {
            network,
            port: Some(port),
        })
    }

    /// Whether this is an end of a session; IPv4 addresses may be written within IPv6.
    pub fn contains(&self, end: SocketAddr) -> bool {
        if self.port.is_some_and(|port| port != end.port()) {
            return false;
        }
        self.network
            .is_none_or(|network| network.contains(&end.ip().to_canonical()) || network.contains(&end.ip()))
    }
}

fn network(text: &str) -> Option<IpNet> {
    let address = text.parse::<IpAddr>().map(IpNet::from);
    address.or_else(|_| text.parse::<IpNet>().map_err(drop)).ok()
}

impl fmt::Display for Endpoint {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(network) = self.network {
            let is_whole = network.prefix_len() == network.max_prefix_len();
            let text = match is_whole {
                true => network.addr().to_string(),
                false => network.to_string(),
            };
            match self.port.is_some() && text.contains(':') {
                true => write!(formatter, "[{text}]")?,
                false => formatter.write_str(&text)?,
            }
        }
        match self.port {
            Some(port) => write!(formatter, ":{port}"),
            None => Ok(()),
        }
    }
}

impl Serialize for Endpoint {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Endpoint {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Cow::<str>::deserialize(deserializer)?;
        Self::parse(&text).map_err(de::Error::custom)
    }
}

impl JsonSchema for Endpoint {
    fn schema_name() -> Cow<'static, str> {
        "Endpoint".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string",
            "description": "An address or a network, `:PORT`, or one with the other: `10.0.0.0/8:9000`, `[2001:db8::1]:9000`.",
        })
    }
}

/// Whether this can be a server name of a stream route, or `*.` and the rest of one.
pub(crate) fn is_server_name(name: &str) -> bool {
    let rest = name.strip_prefix("*.").unwrap_or(name);
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    !rest.is_empty() && rest.len() <= 253 && rest.bytes().all(fits) && !rest.starts_with('.')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endpoints_are_read_and_written() {
        for (text, written) in [
            ("10.0.0.1", Some("10.0.0.1")),
            ("10.0.0.1/32", Some("10.0.0.1")),
            ("10.0.0.0/8", Some("10.0.0.0/8")),
            ("2001:db8::/32", Some("2001:db8::/32")),
            (":9000", Some(":9000")),
            ("10.0.0.0/8:9000", Some("10.0.0.0/8:9000")),
            ("[2001:db8::1]:9000", Some("[2001:db8::1]:9000")),
            ("[2001:db8::/32]:1", Some("[2001:db8::/32]:1")),
            ("::1", Some("::1")),
            ("", None),
            ("x", None),
            (":x", None),
            (":70000", None),
            ("10.0.0.1:", None),
            ("[2001:db8::1]", None),
            ("name:80", None),
        ] {
            let read = Endpoint::parse(text);
            assert_eq!(
                read.as_ref().ok().map(ToString::to_string).as_deref(),
                written,
                "{text}"
            );
            if let Ok(endpoint) = read {
                assert_eq!(Endpoint::parse(&endpoint.to_string()), Ok(endpoint), "{text}");
            }
        }
    }

    #[test]
    fn ends_are_contained() {
        for (endpoint, end, wanted) in [
            ("10.0.0.0/8", "10.1.2.3:5", true),
            ("10.0.0.0/8", "[::ffff:10.1.2.3]:5", true),
            ("10.0.0.0/8", "11.1.2.3:5", false),
            (":5", "11.1.2.3:5", true),
            (":5", "11.1.2.3:6", false),
            ("11.0.0.0/8:5", "11.1.2.3:5", true),
            ("11.0.0.0/8:5", "11.1.2.3:6", false),
            ("::/0", "[2001:db8::1]:1", true),
        ] {
            let endpoint = Endpoint::parse(endpoint).expect("an end");
            assert_eq!(
                endpoint.contains(end.parse().expect("an address")),
                wanted,
                "{endpoint} {end}"
            );
        }
    }

    #[test]
    fn server_names_are_distinguished_from_other_names() {
        for (name, good) in [
            ("a.test", true),
            ("*.a.test", true),
            ("a", true),
            ("*", false),
            ("a.*", false),
            ("", false),
            ("a b", false),
            ("*.", false),
        ] {
            assert_eq!(is_server_name(name), good, "{name}");
        }
    }
}
