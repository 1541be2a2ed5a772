//! What calls are counted by: made ready for many calls, and turned into keys of counters.

use data_encoding::HEXLOWER;
use schemars::JsonSchema;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use std::net::IpAddr;
use weir_flow::rate_limit::KeyPrefix;
use weir_plugin::{Exchange, Indeterminate, Template};

/// The key that calls are counted by.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(rename = "CountBy")]
pub enum RateLimitKey {
    /// The client's address.
    #[default]
    Ip,
    /// The consumer, the anonymous one too.
    Consumer,
    /// The credential that was used.
    Credential,
    /// The group that the consumer belongs to.
    ConsumerGroup,
    /// The service that the route leads to.
    Service,
    /// The route.
    Route,
    /// Nothing: all calls together.
    Everybody,
    /// The client's address; of IPv6 only the given number of bits (1 to 128), because a client with one address has a
    /// network of them: mostly 64 bits.
    IpNetwork(
        #[serde(deserialize_with = "prefix_length")]
        #[schemars(range(min = 1, max = 128))]
        u8,
    ),
    /// The value of this request header.
    Header(String),
    /// All calls to exactly this path (as the client wrote it) together; others are counted by `when_key_missing`.
    Path(String),
    /// A text with variables, such as `$remote_addr $http_x_tenant`. It counts as absent if none of its variables has a
    /// value, or if it is empty.
    Template(String),
    /// All of these together. A missing value counts as empty; a call without any of them has no value to count by.
    All(#[schemars(length(min = 1, max = 8))] Vec<RateLimitKey>),
}

fn prefix_length<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u8, D::Error> {
    match u8::deserialize(deserializer)? {
        bits @ 1..=128 => Ok(bits),
        other => Err(D::Error::custom(format!("expected 1 to 128 bits, found {other}"))),
    }
}

/// The key for calls that have no value to count by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum MissingKey {
    /// The client's address.
    #[default]
    Ip,
    /// Not at all: it passes.
    Nothing,
    /// It fails, as `on_failure` says.
    Fail,
}

/// What happens when no limit can be found out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum OnFailure {
    /// Status 500.
    #[default]
    Refuse,
    /// The call passes uncounted.
    Pass,
}

/// A number, or a text with variables (`$http_x_limit`, `${http_x_limit ?? 10}`) that gives one for each call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum LimitValue {
    /// The same for all calls.
    Number(u64),
    /// Read from the call.
    Template(String),
}

/// A [`LimitValue`] made ready for many calls.
pub(crate) enum Number {
    Fixed(u64),
    PerCall(Template),
}

impl Number {
    pub(crate) fn new(amount: LimitValue) -> Self {
        match amount {
            LimitValue::Number(number) => Self::Fixed(number),
            LimitValue::Template(text) => Self::PerCall(Template::parse(&text)),
        }
    }

    pub(crate) fn needs_body(&self) -> bool {
        matches!(self, Self::PerCall(template) if template.needs_body())
    }

    /// Why the number for this call cannot be believed.
    pub(crate) fn indeterminate(&self, exchange: &Exchange) -> Option<Indeterminate> {
        match self {
            Self::Fixed(_) => None,
            Self::PerCall(template) => template.indeterminate(exchange),
        }
    }

    /// The number, if it is the same for all calls.
    pub(crate) fn fixed(&self) -> Option<u64> {
        match self {
            Self::Fixed(number) => Some(*number),
            Self::PerCall(_) => None,
        }
    }

    /// The number for this call, at most 2^53-1; `None` if a variable has no usable value.
    pub(crate) fn read(&self, exchange: &Exchange) -> Option<u64> {
        match self {
            Self::Fixed(number) => Some(*number),
            Self::PerCall(template) => {
                let mut text = Vec::new();
                template.render(exchange, &mut text);
                let number = std::str::from_utf8(&text).ok()?.trim().parse().ok()?;
                // Readers that use floating-point numbers read greater ones differently.
                (number < 1 << 53).then_some(number)
            }
        }
    }

    /// Like [`Self::read`]; a variable's value that is not a positive number is not good either.
    pub(crate) fn read_positive(&self, exchange: &Exchange) -> Option<u64> {
        let number = self.read(exchange)?;
        (number > 0 || matches!(self, Self::Fixed(_))).then_some(number)
    }
}

/// Counters of one kind, with names as the request has them.
pub(crate) struct RateKey {
    /// Separates the counters from all others.
    place: Vec<u8>,
    /// What their keys begin with.
    start: KeyPrefix,
    by: Key,
}

enum Key {
    Ip,
    /// The bits of an address of IPv6 that count.
    Network(u128),
    Consumer,
    Credential,
    Service,
    Route,
    Everybody,
    Header(Vec<u8>),
    Path(Vec<u8>),
    Variables(Template),
    Group,
    All(Vec<Key>),
}

impl Key {
    fn new(by: RateLimitKey) -> Self {
        match by {
            RateLimitKey::Ip => Self::Ip,
            RateLimitKey::IpNetwork(bits) => Self::Network(!u128::MAX.checked_shr(bits.into()).unwrap_or(0)),
            RateLimitKey::Consumer => Self::Consumer,
            RateLimitKey::Credential => Self::Credential,
            RateLimitKey::ConsumerGroup => Self::Group,
            RateLimitKey::All(parts) => Self::All(parts.into_iter().map(Self::new).collect()),
            RateLimitKey::Service => Self::Service,
            RateLimitKey::Route => Self::Route,
            RateLimitKey::Everybody => Self::Everybody,
            RateLimitKey::Header(name) => Self::Header(name.into_bytes()),
            RateLimitKey::Path(path) => Self::Path(path.into_bytes()),
            RateLimitKey::Template(text) if text == "$remote_addr" || text == "${remote_addr}" => Self::Ip,
            RateLimitKey::Template(text) => Self::Variables(Template::parse(&text)),
        }
    }

    fn needs_body(&self) -> bool {
        match self {
            Self::Variables(template) => template.needs_body(),
            Self::All(parts) => parts.iter().any(Self::needs_body),
            _ => false,
        }
    }

    /// Why the value cannot be believed.
    fn indeterminate(&self, exchange: &Exchange) -> Option<Indeterminate> {
        match self {
            Self::Variables(template) => template.indeterminate(exchange),
            Self::All(parts) => parts.iter().find_map(|part| part.indeterminate(exchange)),
            _ => None,
        }
    }

    /// Hands the value over with its kind.
    fn with_value<T>(&self, exchange: &Exchange, make: impl Fn(u8, &[u8]) -> T) -> Option<T> {
        let request = &exchange.request;
        let consumer = || exchange.identity.as_ref().map(|identity| &identity.consumer);
        let of = |kind, value: &[u8]| (!value.is_empty()).then(|| make(kind, value));
        match self {
            Self::Ip => Some(with_address(request.client, make)),
            Self::Network(mask) => {
                let network = match request.client.to_canonical() {
                    IpAddr::V6(address) => IpAddr::V6((address.to_bits() & mask).into()),
                    address => address,
                };
                Some(with_address(network, make))
            }
            Self::Consumer => of(b'c', consumer()?.id.as_bytes()),
            Self::Credential => {
                let id = exchange.identity.as_ref()?.credential_id.as_deref()?;
                // A credential without a name of its own counts as its consumer.
                of(b'k', id.as_bytes()).or_else(|| of(b'c', consumer()?.id.as_bytes()))
            }
            Self::Service => of(b's', exchange.route.as_ref()?.service.as_bytes()),
            Self::Route => of(b'r', exchange.route.as_ref()?.name.as_bytes()),
            Self::Everybody => Some(make(b'e', b"")),
            Self::Header(name) => of(b'h', request.headers.get(name)?),
            Self::Path(path) => (request.raw_path == *path).then(|| make(b'p', path)),
            Self::Variables(template) => {
                let mut value = Vec::new();
                let found = template.render(exchange, &mut value);
                of(b'v', &value).filter(|_| found > 0)
            }
            Self::Group => of(b'g', consumer()?.group.as_deref()?.as_bytes()),
            Self::All(parts) => {
                let mut value = Vec::new();
                let found = parts
                    .iter()
                    .filter(|part| part.append(exchange, &mut value))
                    .count();
                (found > 0).then(|| make(b't', &value))
            }
        }
    }

    /// Appends the value behind others, with its kind and its length, so that they cannot run into each other. Says whether
    /// there is one.
    fn append(&self, exchange: &Exchange, out: &mut Vec<u8>) -> bool {
        let value = self.with_value(exchange, |kind, value| (kind, value.to_vec()));
        let (kind, bytes) = value
            .as_ref()
            .map_or((b'-', &[][..]), |(kind, bytes)| (*kind, bytes.as_slice()));
        out.push(kind);
        out.extend_from_slice(bytes.len().to_string().as_bytes());
        out.push(b':');
        out.extend_from_slice(bytes);
        value.is_some()
    }
}

impl RateKey {
    /// Counters of `scope`; `group` keeps those of one configuration apart.
    pub(crate) fn new(scope: &str, group: u8, by: RateLimitKey) -> Self {
        let mut place = vec![group];
        place.extend_from_slice(scope.as_bytes());
        Self {
            start: KeyPrefix::new(&[&place]),
            place,
            by: Key::new(by),
        }
    }

    pub(crate) fn needs_body(&self) -> bool {
        self.by.needs_body()
    }

    /// Why what the call is counted by cannot be believed.
    pub(crate) fn indeterminate(&self, exchange: &Exchange) -> Option<Indeterminate> {
        self.by.indeterminate(exchange)
    }

    /// The key of the call's counters; `None` if the call has no value to count by.
    pub(crate) fn key(&self, exchange: &Exchange) -> Option<u128> {
        self.with_value(exchange, |kind, value| self.key_of(kind, value))
    }

    /// The name of the call's counters, for stores that several gateways share; `None` if the call has no value to
    /// count by.
    pub(crate) fn name(&self, exchange: &Exchange) -> Option<Vec<u8>> {
        self.with_value(exchange, |kind, value| self.name_of(kind, value))
    }

    /// Hands over what the call is counted by, with its kind.
    fn with_value<T>(&self, exchange: &Exchange, make: impl Fn(u8, &[u8]) -> T) -> Option<T> {
        self.by.with_value(exchange, make)
    }

    /// The key of the counters of a consumer, by its id.
    pub(crate) fn key_of_consumer(&self, id: &str) -> u128 {
        self.key_of(b'c', id.as_bytes())
    }

    /// The key of the counters of an address.
    pub(crate) fn key_of_address(&self, address: IpAddr) -> u128 {
        with_address(address, |kind, value| self.key_of(kind, value))
    }

    /// What the counters of an address are called.
    pub(crate) fn name_of_address(&self, address: IpAddr) -> Vec<u8> {
        with_address(address, |kind, value| self.name_of(kind, value))
    }

    /// Counters of one caller are in one slot of a cluster, so the group of the configuration stands behind the hash
    /// tag.
    fn name_of(&self, kind: u8, value: &[u8]) -> Vec<u8> {
        let (group, scope) = self.place.split_first().unwrap_or((&0, &[]));
        let mut name = Vec::with_capacity(scope.len() + value.len() + 16);
        name.push(b'{');
        push_bounded(&mut name, scope);
        name.extend_from_slice(&[b':', kind, b':']);
        match (kind, <[u8; 4]>::try_from(value), <[u8; 16]>::try_from(value)) {
            (b'a', Ok(octets), _) => name.extend_from_slice(IpAddr::from(octets).to_string().as_bytes()),
            (b'a', _, Ok(octets)) => name.extend_from_slice(IpAddr::from(octets).to_string().as_bytes()),
            _ => push_bounded(&mut name, value),
        }
        name.extend_from_slice(b"}:");
        name.extend_from_slice(itoa::Buffer::new().format(*group).as_bytes());
        name
    }

    /// `kind` keeps a client from counting on another's address by naming it in a header.
    fn key_of(&self, kind: u8, value: &[u8]) -> u128 {
        self.start.key(&[&[kind], value])
    }
}

fn with_address<T>(address: IpAddr, make: impl Fn(u8, &[u8]) -> T) -> T {
    match address {
        IpAddr::V4(address) => make(b'a', &address.octets()),
        IpAddr::V6(address) => make(b'a', &address.octets()),
    }
}

/// The longest text that stands in a name as it is.
const LONGEST_IN_NAME: usize = 128;

/// Appends a text to a name; its digest, if the text is long or would end the hash tag.
fn push_bounded(name: &mut Vec<u8>, text: &[u8]) {
    let is_plain = text
        .iter()
        .all(|byte| byte.is_ascii_graphic() && !b"{}".contains(byte));
    if text.len() <= LONGEST_IN_NAME && is_plain {
        name.extend_from_slice(text);
        return;
    }
    let digest = aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, text);
    let mut digits = [0; 64];
    HEXLOWER.encode_mut(digest.as_ref(), &mut digits);
    name.push(b'#');
    name.extend_from_slice(&digits);
}

/// Plugins that have no more to do with a call, because another one has done their work in its own way.
pub(crate) mod handled {
    use weir_plugin::Exchange;

    /// Stands for the list among what is kept of a call.
    static OWNER: u8 = 0;

    /// The most plugins that can be recorded for one call.
    type List = [Option<&'static str>; 4];

    /// The plugin of this name has no more to do.
    pub(crate) fn mark_done(exchange: &mut Exchange, plugin: &'static str) {
        let mut list: List = exchange.filter_state.take(&OWNER).unwrap_or_default();
        let is_new = !list.contains(&Some(plugin));
        if let Some(place) = list.iter_mut().find(|place| is_new && place.is_none()) {
            *place = Some(plugin);
        }
        exchange.filter_state.put(&OWNER, list);
    }

    /// Whether the plugin of this name has no more to do.
    #[inline]
    pub(crate) fn is_handled(exchange: &mut Exchange, plugin: &str) -> bool {
        let list: Option<&mut List> = exchange.filter_state.get_mut(&OWNER);
        list.is_some_and(|list| list.iter().flatten().any(|handled| *handled == plugin))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use weir_plugins_testkit::exchange;

    #[test]
    fn addresses_of_a_network_count_as_one() {
        const SAME: &str = "2001:db8:0:1::1";
        for (by, address, is_same) in [
            (json!("ip"), SAME, true),
            (json!("ip"), "2001:db8:0:1::2", false),
            (json!({"ip-network": 64}), "2001:db8:0:1:ffff::2", true),
            (json!({"ip-network": 64}), "2001:db8:0:2::1", false),
            (json!({"ip-network": 48}), "2001:db8:0:ffff::1", true),
            (json!({"ip-network": 128}), "2001:db8:0:1::2", false),
            (json!({"ip-network": 128}), SAME, true),
            (json!({"ip-network": 1}), "192.0.2.1", false),
        ] {
            let counted = RateKey::new("s", 0, serde_json::from_value(by.clone()).expect("valid"));
            let of = |address: &str| {
                let mut exchange = exchange();
                exchange.request.client = address.parse().expect("an address");
                (counted.key(&exchange), counted.name(&exchange))
            };
            let ((key, name), (same_key, same_name)) = (of(address), of(SAME));
            assert_eq!(
                (key == same_key, name == same_name),
                (is_same, is_same),
                "{by} {address}"
            );
        }
        let by = serde_json::from_value(json!({"ip-network": 8})).expect("valid");
        let counted = RateKey::new("s", 0, by);
        let of = |address: &str| {
            let mut exchange = exchange();
            exchange.request.client = address.parse().expect("an address");
            counted.key(&exchange)
        };
        assert_ne!(of("192.0.2.1"), of("192.0.2.2"), "IPv4 is counted as a whole");
        assert_eq!(of("192.0.2.1"), of("::ffff:192.0.2.1"));
        for bits in [json!(0), json!(129), json!("64")] {
            let read: Result<RateLimitKey, _> = serde_json::from_value(json!({"ip-network": bits}));
            assert!(read.is_err(), "{bits}");
        }
    }
}
