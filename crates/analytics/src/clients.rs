//! The data about clients: the family of their user agent, and their network.

use foldhash::HashMap;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

/// Families by what is found in the text, the first that is found. Browsers name others, so the order matters.
const FAMILIES: [(&str, &str); 26] = [
    ("curl/", "curl"),
    ("Wget/", "Wget"),
    ("PostmanRuntime/", "Postman"),
    ("insomnia/", "Insomnia"),
    ("python-requests/", "python-requests"),
    ("python-httpx/", "python-httpx"),
    ("aiohttp/", "aiohttp"),
    ("Go-http-client/", "Go"),
    ("okhttp/", "okhttp"),
    ("Apache-HttpClient/", "Apache HttpClient"),
    ("Java/", "Java"),
    ("axios/", "axios"),
    ("node-fetch/", "node-fetch"),
    ("undici", "undici"),
    ("Dart/", "Dart"),
    ("CFNetwork/", "CFNetwork"),
    ("grpc-", "gRPC"),
    ("kube-probe/", "kube-probe"),
    ("Prometheus/", "Prometheus"),
    ("Googlebot", "Googlebot"),
    ("bingbot", "bingbot"),
    ("Edg/", "Edge"),
    ("Firefox/", "Firefox"),
    ("Chrome/", "Chrome"),
    ("Safari/", "Safari"),
    ("Mozilla/", "other browser"),
];
/// The longest name of a family that is not in the table, in bytes.
const MAX_FAMILY: usize = 32;

/// The family of a user agent: one of the table, or what stands before the version.
pub fn agent_family(agent: &str) -> &str {
    if agent.is_empty() {
        return "none";
    }
    if let Some((_, family)) = FAMILIES.iter().find(|(part, _)| agent.contains(part)) {
        return family;
    }
    let end = agent
        .find(['/', ' ', '(', ';'])
        .unwrap_or(agent.len())
        .min(MAX_FAMILY);
    let end = (0..=end)
        .rev()
        .find(|end| agent.is_char_boundary(*end))
        .unwrap_or(0);
    match &agent[..end] {
        "" => "other",
        family => family,
    }
}

/// Families of user agents that were looked up: finding one reads the text many times.
#[derive(Debug, Default)]
pub struct AgentFamilies(HashMap<Box<str>, Arc<str>>);

impl AgentFamilies {
    /// Texts that are remembered. With more, all of them are forgotten.
    const MOST: usize = 1_000;

    /// The family of a user agent ([`agent_family`]).
    pub fn of(&mut self, agent: &str) -> Arc<str> {
        if let Some(family) = self.0.get(agent) {
            return Arc::clone(family);
        }
        if self.0.len() >= Self::MOST {
            self.0.clear();
        }
        let family: Arc<str> = agent_family(agent).into();
        self.0.insert(agent.into(), Arc::clone(&family));
        family
    }
}

/// The network of a client, /24 or /48, by the number that records have of its address.
pub fn network(address: u64) -> String {
    // Addresses of IPv4 are written as IPv6 has them: no network of IPv6 begins so.
    match address >> 32 {
        0xffff => format!("{}/24", Ipv4Addr::from_bits(address as u32 & 0xffff_ff00)),
        _ => format!(
            "{}/48",
            Ipv6Addr::from_bits(u128::from(address >> 16 << 16) << 64)
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn families_are_found() {
        let chrome = "Mozilla/5.0 (X11) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/126.0 Safari/537.36";
        for (agent, family) in [
            ("", "none"),
            ("curl/8.5.0", "curl"),
            (chrome, "Chrome"),
            (&format!("{chrome} Edg/126.0"), "Edge"),
            (
                "Mozilla/5.0 (X11; rv:128.0) Gecko/20100101 Firefox/128.0",
                "Firefox",
            ),
            ("shop-client/2.1 (linux)", "shop-client"),
            ("/", "other"),
            ("äääääääääääääääääääääääää", "ääääääääääääääää"),
        ] {
            assert_eq!(agent_family(agent), family, "{agent}");
        }
    }

    #[test]
    fn families_are_remembered_within_bounds() {
        let mut families = AgentFamilies::default();
        for number in 0..3 * AgentFamilies::MOST {
            let agent = format!("curl/{number}");
            assert_eq!((&*families.of(&agent), &*families.of(&agent)), ("curl", "curl"));
            assert!(families.0.len() <= AgentFamilies::MOST);
        }
    }

    #[test]
    fn addresses_are_cut_to_their_networks() {
        let number = |address: u128| (address >> 64) as u64;
        let v6: Ipv6Addr = "2001:db8:1:2::3".parse().expect("an address");
        for (address, text) in [
            (
                0xffff << 32 | u64::from(Ipv4Addr::new(192, 0, 2, 77).to_bits()),
                "192.0.2.0/24",
            ),
            (number(v6.to_bits()), "2001:db8:1::/48"),
            (0, "::/48"),
        ] {
            assert_eq!(network(address), text);
        }
    }
}
