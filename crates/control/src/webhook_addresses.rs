//! The addresses that webhooks may go to, and other calls to addresses of people who may be no operators: without a
//! rule, none leads into the operator's own network. Which networks are allowed, each kind of call says by itself.

use ipnet::IpNet;
use std::net::{IpAddr, Ipv6Addr};

/// Addresses that webhooks may be sent to.
#[derive(Debug, Clone, Default)]
pub struct WebhookAddressPolicy {
    /// Networks that are allowed in addition to all public ones.
    pub allowed: Vec<IpNet>,
}

impl WebhookAddressPolicy {
    /// Whether a webhook may be sent to an address.
    pub fn permits(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        is_public(address) || self.allowed.iter().any(|it| it.contains(&address))
    }
}

/// The URL of a webhook as those see it who may not change it: scheme and host. Many chats have the secret in the path.
pub fn without_path(url: &str) -> String {
    let (scheme, rest) = url.split_once("://").unwrap_or_default();
    let authority = rest.split(['/', '?', '#', '\\']).next().unwrap_or_default();
    let (_, host) = authority.rsplit_once('@').unwrap_or(("", authority));
    format!("{scheme}://{host}/***")
}

/// Whether an address belongs to no network of a special use (RFC 6890).
fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(it) => {
            let [first, second, third, _] = it.octets();
            let is_shared = first == 100 && (64..128).contains(&second);
            let is_benchmark = first == 198 && (second == 18 || second == 19);
            let is_protocol = first == 192 && second == 0 && third == 0;
            !(it.is_private()
                || it.is_loopback()
                || it.is_link_local()
                || it.is_unspecified()
                || it.is_broadcast()
                || it.is_multicast()
                || it.is_documentation()
                || first == 0
                || first >= 240
                || is_shared
                || is_benchmark
                || is_protocol)
        }
        IpAddr::V6(it) => {
            let is_documentation = it.segments()[..2] == [0x2001, 0xdb8];
            let is_translated = it.segments()[..2] == [0x64, 0xff9b];
            // IPv4 in the last four bytes (RFC 4291, 2.5.5.1), which some stacks take for the IPv4 address itself.
            let is_compatible = it.segments()[..6] == [0; 6];
            !(it.is_loopback()
                || it.is_unspecified()
                || it.is_multicast()
                || it.is_unique_local()
                || it.is_unicast_link_local()
                || is_documentation
                || is_translated
                || is_compatible
                || is_site_local(it))
        }
    }
}

fn is_site_local(address: Ipv6Addr) -> bool {
    address.segments()[0] & 0xffc0 == 0xfec0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_url_scheme_and_host_are_shown() {
        for (url, shortened) in [
            ("https://chat.test/services/T0/s3cr3t", "https://chat.test/***"),
            (
                "https://u:s3cr3t@chat.test:8443?s3cr3t",
                "https://chat.test:8443/***",
            ),
            ("http://[::1]:1#s3cr3t@a", "http://[::1]:1/***"),
            ("http://chat.test\\s3cr3t", "http://chat.test/***"),
            ("s3cr3t", ":///***"),
        ] {
            assert_eq!(without_path(url), shortened);
        }
    }

    #[test]
    fn own_networks_are_out_of_reach_unless_allowed() {
        let none = WebhookAddressPolicy::default();
        let some = WebhookAddressPolicy {
            allowed: vec![
                "127.0.0.0/8".parse().expect("a network"),
                "fd00::/8".parse().expect("a network"),
            ],
        };
        for (address, outside, with_rules) in [
            ("93.184.215.14", true, true),
            ("2606:2800:220:1::1", true, true),
            ("127.0.0.1", false, true),
            ("::ffff:127.0.0.1", false, true),
            ("fd00::1", false, true),
            ("10.1.2.3", false, false),
            ("169.254.169.254", false, false),
            ("100.64.0.1", false, false),
            ("192.168.1.1", false, false),
            ("0.0.0.0", false, false),
            ("::1", false, false),
            ("fe80::1", false, false),
            ("64:ff9b::7f00:1", false, false),
            ("::7f00:1", false, false),
            ("::5db8:d70e", false, false),
            ("224.0.0.1", false, false),
        ] {
            let parsed = address.parse().expect("an address");
            assert_eq!(
                (none.permits(parsed), some.permits(parsed)),
                (outside, with_rules),
                "{address}"
            );
        }
    }
}
