//! Properties: what nodes read of a call besides its request, and what they set. What it is not: the parts of the request,
//! which are outputs of `request`.

use super::data::{Datum, Mismatch};
use super::servers::{Servers, at};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use weir_plugin::{Exchange, TargetOverride, Variable};

/// A property.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Property {
    /// A variable; whether it is a number.
    Fact(Variable, bool),
    /// The port of the connection's peer.
    PeerPort,
    /// Who calls.
    Consumer,
    /// A value that all instances of a call know.
    Shared(String),
    /// A value that only this instance knows.
    Own(String),
    /// The status of the response.
    ResponseStatus,
    /// Another target of the call, as `host:port`.
    UpstreamTarget,
    /// Another upstream of the call, by name.
    UpstreamName,
}

/// Variables that are numbers.
const NUMBERS: [&str; 7] = [
    "remote_port",
    "server_port",
    "upstream_port",
    "upstream_status",
    "status",
    "content_length",
    "request_length",
];

/// What values that lead calls elsewhere may be.
#[derive(Debug)]
pub(super) struct TargetRules {
    /// The targets that values may name.
    pub(super) servers: Servers,
    /// What the names of upstreams begin with, before the value, which has no `/` then.
    pub(super) prefix: Option<String>,
}

/// Values that one instance keeps during a call.
pub(super) type OwnValues = BTreeMap<String, Datum>;

/// Values that instances share during a call.
#[derive(Debug, Default)]
struct SharedValues(BTreeMap<String, Datum>);

/// The owner of shared values in a call's state. It has a size, and so an address of its own.
static SHARED: u8 = 0;

impl Property {
    /// Finds the property of this name.
    ///
    /// # Errors
    /// What was expected.
    pub(super) fn parse(name: &str) -> Result<Self, String> {
        let key = |key: &str| match key.is_empty() {
            false => Ok(key.to_owned()),
            true => Err("expected a name behind the dot".to_owned()),
        };
        if let Some(name) = name.strip_prefix("shared.") {
            return key(name).map(Self::Shared);
        }
        if let Some(name) = name.strip_prefix("own.") {
            return key(name).map(Self::Own);
        }
        Ok(match name {
            "peer_port" => Self::PeerPort,
            "consumer" => Self::Consumer,
            "response_status" => Self::ResponseStatus,
            "upstream_target" => Self::UpstreamTarget,
            "upstream_name" => Self::UpstreamName,
            name => match Variable::parse(name) {
                Variable::Unknown => {
                    return Err(format!(
                        "expected a variable, `consumer`, `peer_port`, `shared.NAME`, `own.NAME`, `response_status`, \
                         `upstream_target` or `upstream_name`, found {name:?}"
                    ));
                }
                variable if variable.needs_body() => {
                    return Err(
                        "expected a variable that is not in the body: `request.body` has it".to_owned(),
                    );
                }
                variable => Self::Fact(variable, NUMBERS.contains(&name)),
            },
        })
    }

    pub(super) fn can_be_read(&self) -> bool {
        !matches!(
            self,
            Self::ResponseStatus | Self::UpstreamTarget | Self::UpstreamName
        )
    }

    pub(super) fn can_be_set(&self) -> bool {
        !matches!(self, Self::Fact(..) | Self::PeerPort | Self::Consumer)
    }

    /// Whether it is there, or can be set, only when the service has answered.
    pub(super) fn is_of_response(&self) -> bool {
        use Variable as V;
        match self {
            Self::ResponseStatus => true,
            Self::Fact(variable, _) => matches!(
                variable,
                V::Status
                    | V::ResponseHeader(_)
                    | V::UpstreamAddr
                    | V::UpstreamIp
                    | V::UpstreamPort
                    | V::UpstreamStatus
            ),
            _ => false,
        }
    }

    /// Whether it has an effect only before the service is called.
    pub(super) fn is_of_request(&self) -> bool {
        matches!(self, Self::UpstreamTarget | Self::UpstreamName)
    }

    /// Its value; null if it has none.
    pub(super) fn read(&self, exchange: &mut Exchange, own: &OwnValues) -> Datum {
        match self {
            Self::Fact(Variable::RequestId, _) => Datum::json(exchange.ensure_request_id()),
            Self::Fact(variable, is_number) => match variable.read(exchange) {
                None => Datum::null(),
                Some(bytes) => match std::str::from_utf8(&bytes)
                    .ok()
                    .and_then(|text| text.parse::<u64>().ok())
                {
                    Some(number) if *is_number => Datum::json(number),
                    _ => Datum::of_bytes(bytes.into_owned()),
                },
            },
            Self::PeerPort => Datum::json(exchange.request.peer.port()),
            Self::Consumer => consumer(exchange),
            Self::Shared(name) => {
                let shared = exchange.filter_state.get_mut::<_, SharedValues>(&SHARED);
                shared
                    .and_then(|shared| shared.0.get(name).cloned())
                    .unwrap_or_else(Datum::null)
            }
            Self::Own(name) => own.get(name).cloned().unwrap_or_else(Datum::null),
            Self::ResponseStatus | Self::UpstreamTarget | Self::UpstreamName => Datum::null(),
        }
    }

    /// Sets it. Null leaves what is not a value of the instance as it is.
    pub(super) fn set(
        &self,
        exchange: &mut Exchange,
        own: &mut OwnValues,
        value: Datum,
        rules: &TargetRules,
    ) -> Result<(), Mismatch> {
        let is_value = matches!(self, Self::Shared(_) | Self::Own(_));
        if value.is_null() && !is_value {
            return Ok(());
        }
        match self {
            Self::Shared(name) => {
                let value = value.packed();
                match exchange.filter_state.get_mut::<_, SharedValues>(&SHARED) {
                    Some(shared) => drop(shared.0.insert(name.clone(), value)),
                    None => {
                        let first = SharedValues(BTreeMap::from([(name.clone(), value)]));
                        exchange.filter_state.put(&SHARED, first);
                    }
                }
            }
            Self::Own(name) => drop(own.insert(name.clone(), value)),
            Self::ResponseStatus => {
                let status = value
                    .whole_number()?
                    .and_then(|number| u16::try_from(number).ok());
                let status = status.filter(|status| (200..=599).contains(status));
                exchange.response.status = status.ok_or(Mismatch("a status from 200 to 599"))?;
                exchange.response.reason.clear();
            }
            Self::UpstreamTarget => {
                let text = text_of(&value)?;
                let (host, port) = target(&text).ok_or(Mismatch("a target as `host:port`"))?;
                if !rules.servers.allow(&at(host, port)) {
                    return Err(Mismatch("a target that `servers` allows"));
                }
                exchange.target_override = Some(Box::new(TargetOverride {
                    host: Some(host.to_owned()),
                    port: Some(port),
                    ..TargetOverride::default()
                }));
            }
            Self::UpstreamName => {
                let name = text_of(&value)?;
                let name = match &rules.prefix {
                    None => name,
                    // Behind a `/`, it would be a name of something else.
                    Some(_) if name.contains('/') => return Err(Mismatch("a name without `/`")),
                    Some(prefix) => format!("{prefix}{name}"),
                };
                exchange.target_override = Some(Box::new(TargetOverride {
                    upstream: Some(name),
                    ..TargetOverride::default()
                }));
            }
            Self::Fact(..) | Self::PeerPort | Self::Consumer => {}
        }
        Ok(())
    }
}

fn text_of(value: &Datum) -> Result<String, Mismatch> {
    let text = value.text()?.unwrap_or_default();
    String::from_utf8(text.into_owned()).map_err(|_| Mismatch("a text"))
}

/// A host and a port. An IPv6 address is in brackets.
pub(super) fn target(text: &str) -> Option<(&str, u16)> {
    let (host, port) = text.rsplit_once(':')?;
    let port = port.parse().ok().filter(|port| *port > 0)?;
    let inner = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
    let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_');
    match inner {
        Some(inner) => inner.parse::<std::net::Ipv6Addr>().ok().map(|_| (inner, port)),
        None => {
            (!host.is_empty() && host.len() <= 253 && host.bytes().all(is_letter)).then_some((host, port))
        }
    }
}

fn consumer(exchange: &Exchange) -> Datum {
    let Some(identity) = &exchange.identity else {
        return Datum::null();
    };
    let consumer = &identity.consumer;
    let mut map = Map::new();
    map.insert("id".to_owned(), consumer.id.clone().into());
    for (name, value) in [
        ("username", &consumer.username),
        ("custom_id", &consumer.custom_id),
    ] {
        if let Some(value) = value {
            map.insert(name.to_owned(), value.clone().into());
        }
    }
    Datum::json(Value::Object(map))
}

#[cfg(test)]
mod tests {
    use super::target;

    #[test]
    fn targets_are_hosts_with_ports() {
        for (text, expected) in [
            ("a.example:80", Some(("a.example", 80))),
            ("[::1]:81", Some(("::1", 81))),
            ("::1:81", None),
            ("a", None),
            ("a:0", None),
            (":80", None),
            ("a/b:80", None),
            ("a@b:80", None),
        ] {
            assert_eq!(target(text), expected, "{text}");
        }
    }
}
