//! Which data about callers and clients is kept: how addresses are shown, which headers are in the request log, and
//! what is switched off in which environment.
//!
//! It is applied before anything is counted or written, so what is switched off is nowhere. **What it is not**: it does
//! not change what was kept before.

use crate::clients;
use serde::Serialize;
use std::collections::BTreeMap;
use std::hash::{BuildHasher, RandomState};

/// Headers that may be kept, at most.
pub const MAX_HEADERS: usize = 8;
/// Every environment.
const ALL: &str = "*";
/// How long a client has the same hash, in minutes.
const HASHED_FOR: u32 = 24 * 60;
/// Headers that hold secrets. They are never kept.
const SECRET: [&str; 7] = [
    "authorization",
    "proxy-authorization",
    "cookie",
    "set-cookie",
    "x-api-key",
    "apikey",
    "x-csrf-token",
];

/// How the addresses of clients are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Addresses {
    /// Cut to their network: /24 of IPv4, /48 of IPv6.
    #[default]
    Network,
    /// As a hash whose key changes with every start and every day, and is never stored.
    Hash,
    /// Not at all.
    Off,
}

/// The data that is not kept in an environment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct HiddenFields {
    /// Consumers and applications.
    pub consumers: bool,
    /// Networks, user agents and the paths of calls that no route took.
    pub clients: bool,
    /// The request log.
    pub calls: bool,
}

/// The settings.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Privacy {
    /// How addresses are kept.
    pub addresses: Addresses,
    /// Names of request headers whose values are in the request log, in small letters.
    pub headers: Vec<String>,
    /// The data that is not kept, by environment; `*` is all of them.
    pub hidden: BTreeMap<String, HiddenFields>,
}

impl Privacy {
    /// The data about calls that is not kept in an environment.
    pub fn hidden(&self, environment: &str) -> HiddenFields {
        let of = |name: &str| self.hidden.get(name).copied().unwrap_or_default();
        let (all, own) = (of(ALL), of(environment));
        HiddenFields {
            consumers: all.consumers || own.consumers,
            clients: all.clients || own.clients,
            calls: all.calls || own.calls,
        }
    }
}

/// Reads how addresses are kept.
///
/// # Errors
/// If the text is none of the ways.
pub fn addresses(text: &str) -> Result<Addresses, String> {
    match text {
        "network" => Ok(Addresses::Network),
        "hash" => Ok(Addresses::Hash),
        "off" => Ok(Addresses::Off),
        _ => Err("expected 'network', 'hash' or 'off'".to_owned()),
    }
}

/// Reads the name of a header that is kept. One that holds secrets is refused.
///
/// # Errors
/// It is no name, or one of a header that holds secrets.
pub fn header(text: &str) -> Result<String, String> {
    let name = text.trim().to_ascii_lowercase();
    let is_token = |it: char| it.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(it);
    if name.is_empty() || name.len() > 64 || !name.chars().all(is_token) {
        return Err(format!("'{text}' is not a valid name of a header"));
    }
    match SECRET.contains(&name.as_str()) {
        true => Err(format!("'{name}' holds secrets; the request log never keeps it")),
        false => Ok(name),
    }
}

/// Reads what is not kept: `consumers`, `clients`, `calls`, with an environment and a colon before it: `prod:consumers`.
/// Without one, it is not kept in any environment.
///
/// # Errors
/// If the text is none of these.
pub fn hidden(text: &str) -> Result<(String, HiddenFields), String> {
    let (environment, what) = text.split_once(':').unwrap_or((ALL, text));
    let mut hidden = HiddenFields::default();
    match what {
        "consumers" => hidden.consumers = true,
        "clients" => hidden.clients = true,
        "calls" => hidden.calls = true,
        _ => {
            let message = "expected 'consumers', 'clients' or 'calls', such as 'prod:consumers'";
            return Err(format!("{message}, found '{text}'"));
        }
    }
    match environment {
        "" => Err(format!("'{text}' names no environment before the colon")),
        environment => Ok((environment.to_owned(), hidden)),
    }
}

impl FromIterator<(String, HiddenFields)> for Privacy {
    fn from_iter<I: IntoIterator<Item = (String, HiddenFields)>>(all: I) -> Self {
        let mut privacy = Self::default();
        for (environment, new) in all {
            let known = privacy.hidden.entry(environment).or_default();
            known.consumers |= new.consumers;
            known.clients |= new.clients;
            known.calls |= new.calls;
        }
        privacy
    }
}

/// Writes addresses as they are kept.
pub struct AddressWriter {
    how: Addresses,
    key: RandomState,
    since: u32,
}

impl AddressWriter {
    /// One that writes them so.
    pub fn new(how: Addresses) -> Self {
        Self {
            how,
            key: RandomState::new(),
            since: 0,
        }
    }

    /// The address of a call that ended in a minute, by the number that records have of it; empty: it is not kept.
    pub fn write(&mut self, address: u64, minute: u32) -> String {
        match self.how {
            Addresses::Network => clients::network(address),
            Addresses::Off => String::new(),
            Addresses::Hash => {
                if minute.saturating_sub(self.since) >= HASHED_FOR {
                    (self.key, self.since) = (RandomState::new(), minute);
                }
                format!("{:016x}", self.key.hash_one(address))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_read() {
        for (text, expected) in [
            ("consumers", Ok(("*", (true, false, false)))),
            ("prod:clients", Ok(("prod", (false, true, false)))),
            ("prod:calls", Ok(("prod", (false, false, true)))),
            (":calls", Err("':calls' names no environment")),
            ("prod", Err("expected 'consumers', 'clients' or 'calls'")),
            ("prod:all", Err("expected 'consumers'")),
        ] {
            let read = hidden(text);
            match (expected, read) {
                (Ok((environment, flags)), Ok((name, it))) => {
                    assert_eq!(
                        (name.as_str(), (it.consumers, it.clients, it.calls)),
                        (environment, flags)
                    );
                }
                (Err(part), Err(message)) => assert!(message.starts_with(part), "{text}: {message}"),
                (_, read) => panic!("{text}: {read:?}"),
            }
        }
        for (text, expected) in [
            ("X-Tenant", Some("x-tenant")),
            ("Authorization", None),
            ("cookie", None),
            ("a b", None),
            ("", None),
        ] {
            assert_eq!(header(text).ok().as_deref(), expected, "{text}");
        }
        assert_eq!(addresses("hash"), Ok(Addresses::Hash));
        assert!(addresses("full").is_err());
    }

    #[test]
    fn what_is_hidden_everywhere_is_hidden_in_each_environment() {
        let flags = ["consumers", "prod:clients", "prod:calls"];
        let privacy: Privacy = flags.iter().map(|it| hidden(it).expect("good")).collect();
        let hidden_parts = |environment: &str| {
            let it = privacy.hidden(environment);
            (it.consumers, it.clients, it.calls)
        };
        assert_eq!(hidden_parts("prod"), (true, true, true));
        assert_eq!(hidden_parts("test"), (true, false, false));
        assert_eq!(Privacy::default().hidden("prod"), HiddenFields::default());
    }

    #[test]
    fn addresses_are_cut_hashed_or_left_out() {
        let (one, two) = (0xffff << 32 | 0xc000_024d, 0xffff << 32 | 0xc000_024e);
        let mut network = AddressWriter::new(Addresses::Network);
        assert_eq!(network.write(one, 5), "192.0.2.0/24");
        assert_eq!(AddressWriter::new(Addresses::Off).write(one, 5), "");
        let mut hash = AddressWriter::new(Addresses::Hash);
        let first = hash.write(one, 30_000_000);
        assert_eq!(first.len(), 16);
        assert_eq!(
            hash.write(one, 30_000_000 + HASHED_FOR - 1),
            first,
            "the same all day"
        );
        assert_ne!(
            hash.write(two, 30_000_001),
            first,
            "clients of one network differ"
        );
        assert_ne!(
            hash.write(one, 30_000_000 + HASHED_FOR),
            first,
            "another key the next day"
        );
        assert_ne!(AddressWriter::new(Addresses::Hash).write(one, 30_000_000), first);
    }
}
