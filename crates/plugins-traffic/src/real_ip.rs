//! `real-ip`: takes over who the client is from a part of the call, such as a header that a proxy sets.
//!
//! ```yaml
//! from: http_x_forwarded_for
//! trusted: [10.0.0.0/8]
//! recursive: true
//! ```
//!
//! Security: everybody can send such a header. Say whose word is to be believed (`trusted`).

use crate::networks::Networks;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::borrow::Cow;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use weir_model::{Diagnostic, DocPath};
use weir_plugin::{BuildContext, Exchange, Filter, Outcome, Phases, Plugin, Variable, parse_config};
use weir_plugins_shared::config_checks::ConfigErrors;

/// Configuration of `real-ip`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// The variable that holds the address, with a port or without: `http_x_client`, `arg_ip`. Of
    /// `http_x_forwarded_for` the last address counts.
    pub from: String,
    /// Addresses and networks; if there are any, only the headers of calls from one of them are used.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub trusted: Vec<String>,
    /// Whether, of the addresses in `X-Forwarded-For`, the last one that is not trusted counts.
    #[serde(default)]
    pub recursive: bool,
}

/// The plugin `real-ip`.
pub struct RealIp;

impl Plugin for RealIp {
    fn name(&self) -> &'static str {
        "real-ip"
    }

    fn config_schema(&self) -> schemars::Schema {
        schemars::schema_for!(Config)
    }

    fn build(&self, config: &Value, _: &BuildContext<'_>) -> Result<Arc<dyn Filter>, Vec<Diagnostic>> {
        let config: Config = parse_config(config)?;
        let mut faults = ConfigErrors::default();
        if config.from.is_empty() {
            faults.add("from", "expected the name of a variable");
        }
        let path = DocPath::root().field("trusted");
        let trusted = Networks::parse(&config.trusted, &path).unwrap_or_else(|found| {
            faults.extend(found);
            Networks::default()
        });
        faults.done()?;
        Ok(Arc::new(AddressFilter {
            is_list: config.from == "http_x_forwarded_for",
            from: Variable::parse(&config.from),
            trusted: (!trusted.is_empty()).then_some(trusted),
            recursive: config.recursive,
        }))
    }
}

/// An instance of `real-ip`.
struct AddressFilter {
    from: Variable,
    is_list: bool,
    trusted: Option<Networks>,
    recursive: bool,
}

impl AddressFilter {
    fn client(&self, exchange: &Exchange) -> Option<(IpAddr, Option<u16>)> {
        let headers = &exchange.request.headers;
        let text: Cow<'_, [u8]> = match self.is_list {
            true => {
                let list = headers.get_all(b"x-forwarded-for").last()?;
                Cow::Borrowed(self.pick(list))
            }
            false => self.from.read(exchange)?,
        };
        parse(&text)
    }

    /// The address of a list that counts.
    fn pick<'l>(&self, list: &'l [u8]) -> &'l [u8] {
        let mut addresses = list.rsplit(|byte| *byte == b',').map(<[u8]>::trim_ascii);
        let last = addresses.next().unwrap_or_default();
        let Some(trusted) = self.trusted.as_ref().filter(|_| self.recursive) else {
            return last;
        };
        let is_foreign =
            |address: &&[u8]| !parse(address).is_some_and(|(address, _)| trusted.contains(address));
        std::iter::once(last)
            .chain(addresses)
            .find(is_foreign)
            .unwrap_or_else(|| {
                list.split(|byte| *byte == b',')
                    .next()
                    .unwrap_or_default()
                    .trim_ascii()
            })
    }
}

impl Filter for AddressFilter {
    fn phases(&self) -> Phases {
        Phases::REQUEST
    }

    fn needs_body(&self) -> bool {
        self.from.needs_body()
    }

    fn on_request(&self, exchange: &mut Exchange) -> Outcome {
        let is_believed = self
            .trusted
            .as_ref()
            .is_none_or(|trusted| trusted.contains(exchange.request.client));
        if is_believed && let Some((client, port)) = self.client(exchange) {
            exchange.request.client = client;
            exchange.request.client_port = port;
        }
        Outcome::Continue
    }
}

/// An address, with a port or without.
fn parse(text: &[u8]) -> Option<(IpAddr, Option<u16>)> {
    let text = std::str::from_utf8(text).ok()?;
    let bare = text.strip_prefix('[').and_then(|text| text.strip_suffix(']'));
    let address = bare.unwrap_or(text).parse().ok();
    address.map(|address| (address, None)).or_else(|| {
        let address: SocketAddr = text.parse().ok()?;
        (address.port() > 0).then(|| (address.ip(), Some(address.port())))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use weir_plugins_testkit::*;

    #[test]
    fn clients_are_taken_over() {
        let forwarded = json!({"from": "http_x_forwarded_for", "trusted": ["10.0.0.0/24"]});
        let recursive = json!({"from": "http_x_forwarded_for", "trusted": ["10.0.0.0/8"], "recursive": true});
        let header = json!({"from": "http_x_client"});
        let argument = json!({"from": "arg_ip", "trusted": ["192.168.0.0/16"]});
        let xff = "X-Forwarded-For";
        type Call<'c> = (&'c Value, &'c [(&'c str, &'c str)], &'c str);
        let cases: [Call<'_>; 15] = [
            (&forwarded, &[(xff, "9.9.9.9")], "9.9.9.9"),
            (&forwarded, &[(xff, "9.9.9.9, 8.8.8.8")], "8.8.8.8"),
            (&forwarded, &[(xff, "9.9.9.9"), (xff, "7.7.7.7")], "7.7.7.7"),
            (&forwarded, &[(xff, "junk")], "10.0.0.1"),
            (&forwarded, &[], "10.0.0.1"),
            (&recursive, &[(xff, "9.9.9.9, 8.8.8.8, 10.1.1.1")], "8.8.8.8"),
            (&recursive, &[(xff, "10.9.9.9, 10.8.8.8")], "10.9.9.9"),
            (&header, &[("X-Client", "4.4.4.4")], "4.4.4.4"),
            (&header, &[("X-Client", "4.4.4.4:80")], "4.4.4.4"),
            (&header, &[("X-Client", "4.4.4.4:0")], "10.0.0.1"),
            (&header, &[("X-Client", "[2001:db8::1]:99")], "2001:db8::1"),
            (&header, &[("X-Client", "[2001:db8::1]")], "2001:db8::1"),
            (&header, &[("X-Client", "2001:db8::1")], "2001:db8::1"),
            (&argument, &[], "10.0.0.1"),
            (
                &example(include_str!("real_ip.rs")),
                &[(xff, "1.1.1.1")],
                "1.1.1.1",
            ),
        ];
        for (config, headers, client) in cases {
            let mut exchange = exchange();
            prepare(&mut exchange, "GET /?ip=1.2.3.4", headers);
            let filter = build(&RealIp, config).expect("valid");
            assert_eq!(word(&filter.on_request(&mut exchange)), "continue");
            assert_eq!(
                exchange.request.client.to_string(),
                client,
                "{config} {headers:?}"
            );
            let port = headers
                .iter()
                .find_map(|(_, value)| value.strip_suffix(":80").or(value.strip_suffix(":99")));
            let port_read = Variable::parse("remote_port")
                .read(&exchange)
                .map(|port| port.into_owned());
            let has_port = port.is_some() && client != "10.0.0.1";
            assert_eq!(
                port_read
                    .as_deref()
                    .is_some_and(|port| matches!(port, b"80" | b"99")),
                has_port,
                "{headers:?}"
            );
        }
    }

    #[test]
    fn bad_configurations_are_refused_at_their_place() {
        for (config, places) in [
            (json!({}), &[""][..]),
            (json!({"from": "", "trusted": ["x"]}), &["from", "trusted[0]"]),
        ] {
            assert_eq!(refused_at(&RealIp, &config), places, "{config}");
        }
    }
}
