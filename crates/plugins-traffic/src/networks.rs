//! Networks: many addresses and networks, of which one question is asked: whether an address is in any of them.
//!
//! They are kept as sorted ranges that do not touch, so that a question is one binary search however many there are.

use ipnet::IpNet;
use std::net::IpAddr;
use weir_model::{Diagnostic, DocPath};

/// A set of addresses.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Networks {
    v4: Ranges<u32>,
    v6: Ranges<u128>,
}

/// Ranges in ascending order: the first address of each, and the last one. Kept apart, so that a search looks at
/// nothing but what it compares.
#[derive(Debug, PartialEq, Eq)]
struct Ranges<A> {
    firsts: Vec<A>,
    lasts: Vec<A>,
}

impl<A> Default for Ranges<A> {
    fn default() -> Self {
        Self {
            firsts: Vec::new(),
            lasts: Vec::new(),
        }
    }
}

impl<A: Copy + Ord> Ranges<A> {
    fn new(mut ranges: Vec<(A, A)>) -> Self {
        ranges.sort_unstable();
        let mut sorted = Self::default();
        for (first, last) in ranges {
            match sorted.lasts.last_mut() {
                Some(end) if first <= *end => *end = last.max(*end),
                _ => {
                    sorted.firsts.push(first);
                    sorted.lasts.push(last);
                }
            }
        }
        sorted
    }

    #[inline]
    fn contains(&self, address: A) -> bool {
        let after = self.firsts.partition_point(|first| *first <= address);
        after > 0 && address <= self.lasts[after - 1]
    }
}

impl Networks {
    /// Reads addresses and networks (`10.0.0.1`, `10.0.0.0/8`, `2001:db8::/32`).
    ///
    /// # Errors
    /// Each text that is neither, with its place in the list at `path`.
    pub(crate) fn parse(list: &[String], path: &DocPath) -> Result<Self, Vec<Diagnostic>> {
        let (mut v4, mut v6) = (Vec::new(), Vec::new());
        let mut faults = Vec::new();
        for (index, text) in list.iter().enumerate() {
            match parse(text) {
                Some(IpNet::V4(network)) => {
                    v4.push((network.network().to_bits(), network.broadcast().to_bits()));
                }
                Some(IpNet::V6(network)) => {
                    v6.push((network.network().to_bits(), network.broadcast().to_bits()));
                }
                None => {
                    let message = format!("expected an address or a network, found {text:?}");
                    faults.push(Diagnostic::error(path.index(index), message));
                }
            }
        }
        match faults.is_empty() {
            true => Ok(Self {
                v4: Ranges::new(v4),
                v6: Ranges::new(v6),
            }),
            false => Err(faults),
        }
    }

    /// Whether the address is in one of the networks. An IPv4 address in the form of IPv6 is an IPv4 address.
    #[inline]
    pub(crate) fn contains(&self, address: IpAddr) -> bool {
        match address.to_canonical() {
            IpAddr::V4(address) => self.v4.contains(address.to_bits()),
            IpAddr::V6(address) => self.v6.contains(address.to_bits()),
        }
    }

    /// Whether the list is empty.
    pub(crate) fn is_empty(&self) -> bool {
        self.v4.firsts.is_empty() && self.v6.firsts.is_empty()
    }
}

fn parse(text: &str) -> Option<IpNet> {
    text.parse::<IpNet>()
        .ok()
        .or_else(|| text.parse::<IpAddr>().ok().map(IpNet::from))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn networks(list: &[&str]) -> Result<Networks, Vec<Diagnostic>> {
        let list: Vec<String> = list.iter().map(|text| (*text).to_owned()).collect();
        Networks::parse(&list, &DocPath::root())
    }

    #[test]
    fn addresses_are_found_in_networks() {
        let list = [
            "10.0.0.0/8",
            "10.1.0.0/16",
            "192.168.1.7",
            "172.16.5.9/16",
            "2001:db8::/32",
            "::1",
        ];
        let networks = networks(&list).expect("valid");
        for (address, is_in) in [
            ("10.0.0.0", true),
            ("10.255.255.255", true),
            ("11.0.0.0", false),
            ("9.255.255.255", false),
            ("192.168.1.7", true),
            ("192.168.1.8", false),
            ("172.16.255.1", true),
            ("::ffff:10.2.3.4", true),
            ("2001:db8:ffff::1", true),
            ("2001:db9::", false),
            ("::1", true),
            ("::2", false),
        ] {
            assert_eq!(
                networks.contains(address.parse().expect("an address")),
                is_in,
                "{address}"
            );
        }
        assert!(!networks.is_empty());
    }

    #[test]
    fn everything_and_nothing() {
        let everything = networks(&["0.0.0.0/0", "::/0"]).expect("valid");
        let nothing = networks(&[]).expect("valid");
        for address in ["0.0.0.0", "255.255.255.255", "::", "ffff::"] {
            let address = address.parse().expect("an address");
            assert!(everything.contains(address) && !nothing.contains(address));
        }
        assert!(nothing.is_empty());
    }

    #[test]
    fn other_texts_are_refused_at_their_place() {
        let faults = networks(&["10.0.0.1", "x", "1.1.1", "10.0.0.0/33"]).expect_err("invalid");
        let places: Vec<String> = faults.iter().map(|fault| fault.path.to_string()).collect();
        assert_eq!(places, ["[1]", "[2]", "[3]"]);
    }
}
