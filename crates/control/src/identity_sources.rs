//! The parts of a call by which a gateway learns who calls, as its configuration says: `real_ip` of a dialect, and plugins that
//! take an address or a certificate from a header, an argument, a cookie, the body, the host, the whole query or a part of the
//! path. Calls that Weir sends for a user must not have them: it sends them from an address of its own, which the
//! gateway may trust.
//!
//! **What it is not**: it does not look at which peers the gateway trusts, nor at what other plugins make of a call before.

use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};
use weir_model::{ChainStep, Model, PluginInstance, PluginRef};
use weir_plugin::Variable;
use weir_plugin::uri::{decode_form, query_pairs};

/// Takes the client's address from a variable.
const ADDRESS: &str = "real-ip";
/// Takes the client's certificate from a header, if its configuration says so.
const CERTIFICATE: &str = "mtls-auth";

/// The parts of calls that say who calls.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct IdentitySources {
    /// Names of headers in small letters, with `-` for each `_`: the variables that read them take both.
    pub headers: BTreeSet<String>,
    /// Names of arguments of the query.
    pub arguments: BTreeSet<Vec<u8>>,
    /// Names of cookies.
    pub cookies: BTreeSet<Vec<u8>>,
    /// Whether a body says so.
    pub body: bool,
    /// Whether the host does, if it is an address.
    pub host: bool,
    /// Whether the whole query does, if it is an address.
    pub query: bool,
    /// Whether a part of the path does.
    pub path: bool,
}

impl IdentitySources {
    /// Those of a configuration.
    pub fn of(model: &Model) -> Self {
        let mut sources = Self::default();
        for settings in &model.dialect_settings {
            if let Some(real_ip) = &settings.real_ip {
                sources.add_header(&real_ip.header);
            }
        }
        let chains = model.routes.iter().map(|it| &it.plugins);
        let steps = chains.chain([&model.unmatched]).flatten();
        for plugin in steps.filter_map(inline).chain(&model.plugins) {
            sources.add(plugin);
        }
        sources
    }

    fn add(&mut self, plugin: &PluginInstance) {
        let text = |place: &str| plugin.config.pointer(place).and_then(serde_json::Value::as_str);
        match plugin.name.as_str() {
            ADDRESS => match Variable::parse(text("/from").unwrap_or_default()) {
                Variable::Header(name) => self.add_header(&String::from_utf8_lossy(&name)),
                Variable::Arg(name) => drop(self.arguments.insert(name)),
                Variable::Cookie(name) => drop(self.cookies.insert(name)),
                Variable::FormField(_) | Variable::PostArg(_) => self.body = true,
                Variable::Host | Variable::HttpHost => self.host = true,
                Variable::Args => self.query = true,
                Variable::Capture(_) => self.path = true,
                _ => {}
            },
            CERTIFICATE => text("/source/header/name")
                .into_iter()
                .for_each(|name| self.add_header(name)),
            _ => {}
        }
    }

    fn add_header(&mut self, name: &str) {
        self.headers.insert(plain(name));
    }

    /// Whether a header says who calls.
    pub fn has_header(&self, name: &str) -> bool {
        self.headers.contains(&plain(name))
    }

    /// Whether a host says who calls.
    pub fn takes_host(&self, host: &str) -> bool {
        self.host && is_address(host)
    }

    /// Whether a query says who calls as a whole.
    pub fn takes_query(&self, query: &str) -> bool {
        self.query && is_address(query)
    }

    /// Whether a path has an address in it, which a capture may take out to say who calls.
    pub fn takes_path(&self, path: &str) -> bool {
        self.path && has_address(&decode_form(path.as_bytes()))
    }

    /// The argument of a query that says who calls.
    pub fn argument_of(&self, query: &str) -> Option<String> {
        let mut names = query_pairs(query.as_bytes()).map(|(name, _)| decode_form(name));
        let found = names.find(|name| self.arguments.contains(name.as_ref()))?;
        Some(String::from_utf8_lossy(&found).into_owned())
    }

    /// The cookie of a `Cookie` header that says who calls.
    pub fn cookie_of(&self, header: &str) -> Option<String> {
        let mut names = header
            .split(';')
            .map(|it| it.split('=').next().unwrap_or_default().trim());
        names
            .find(|name| self.cookies.contains(name.as_bytes()))
            .map(str::to_owned)
    }
}

/// A header's name as [`IdentitySources`] has it.
pub fn plain(header: &str) -> String {
    header.to_ascii_lowercase().replace('_', "-")
}

/// Whether a text is an address, with a port or without, in brackets or not.
fn is_address(text: &str) -> bool {
    let bare = text.strip_prefix('[').and_then(|text| text.strip_suffix(']'));
    bare.unwrap_or(text).parse::<IpAddr>().is_ok() || text.parse::<SocketAddr>().is_ok()
}

/// Whether there may be an address within a text: patterns take out any part of it, so what only looks like one counts.
fn has_address(text: &[u8]) -> bool {
    let mut runs = text.split(|byte| !(byte.is_ascii_hexdigit() || matches!(byte, b'.' | b':')));
    runs.any(|run| {
        let count = |wanted: u8| run.iter().filter(|byte| **byte == wanted).count();
        count(b'.') >= 3 || count(b':') >= 2
    })
}

/// The instance that is written in a step.
fn inline(step: &ChainStep) -> Option<&PluginInstance> {
    match step.plugin.as_ref()? {
        PluginRef::Inline(instance) => Some(&**instance),
        PluginRef::Shared(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn sources() -> IdentitySources {
        let plugin = |name: &str, config: serde_json::Value| json!({"name": name, "config": config});
        let model = json!({
            "dialect_settings": [{"real_ip": {"header": "X-From-The-Edge", "trusted": ["127.0.0.1/32"]}}],
            "plugins": [
                {"id": "shared", "name": "real-ip", "config": {"from": "http_X_Client_Address"}},
                {"id": "other", "name": "key-auth", "config": {"from": "http_x_no"}},
            ],
            "unmatched": [
                {"use": plugin("mtls-auth", json!({"source": {"header": {"name": "X-Client-Cert"}}}))},
                {"use": plugin("mtls-auth", json!({}))},
                {"use": plugin("real-ip", json!({"from": "arg_ip"}))},
                {"use": plugin("real-ip", json!({"from": "cookie_ip"}))},
                {"use": plugin("real-ip", json!({"from": "remote_addr"}))},
                {"use": "shared"},
            ],
        });
        IdentitySources::of(&serde_json::from_value(model).expect("a model"))
    }

    #[test]
    fn settings_and_plugins_name_the_parts() {
        let found = sources();
        let headers: Vec<&str> = found.headers.iter().map(String::as_str).collect();
        assert_eq!(headers, ["x-client-address", "x-client-cert", "x-from-the-edge"]);
        assert_eq!(
            (found.arguments.len(), found.cookies.len(), found.body),
            (1, 1, false)
        );
    }

    #[test]
    fn hosts_queries_paths_and_bodies_say_it_too() {
        let of = |from: &str| {
            let model = json!({"plugins": [{"id": "a", "name": "real-ip", "config": {"from": from}}]});
            IdentitySources::of(&serde_json::from_value(model).expect("a model"))
        };
        assert!(of("post_arg_ip").body);
        for (from, taken) in [
            ("host", "h"),
            ("http_host", "h"),
            ("args", "q"),
            ("query_string", "q"),
        ] {
            let sources = of(from);
            for (text, is_address) in [
                ("10.0.0.1", true),
                ("10.0.0.1:80", true),
                ("[2001:db8::1]", true),
                ("[2001:db8::1]:80", true),
                ("2001:db8::1", true),
                ("api.example.com:80", false),
                ("a=10.0.0.1", false),
                ("", false),
            ] {
                let is_taken = (sources.takes_host(text), sources.takes_query(text));
                let expected = (taken == "h" && is_address, taken == "q" && is_address);
                assert_eq!(is_taken, expected, "{from} {text}");
            }
        }
        let sources = of("uri_param_client");
        for (path, expected) in [
            ("/of/10.0.0.1/x", true),
            ("/of/x-10.0.0.1", true),
            ("/of/110.0.0.15x", true),
            ("/of/10%2e0.0%2E1", true),
            ("/of/2001:db8::1", true),
            ("/of/%5B%3A%3A1%5D", true),
            ("/v1.2.3/pets/7", false),
            ("/a:b/c", false),
        ] {
            assert_eq!(sources.takes_path(path), expected, "{path}");
            assert!(!of("remote_addr").takes_path(path), "{path}");
        }
    }

    #[test]
    fn parts_are_found_as_the_gateway_reads_them() {
        let sources = sources();
        for (name, expected) in [
            ("X-Client-Address", true),
            ("x_client_address", true),
            ("X-Client", false),
        ] {
            assert_eq!(sources.has_header(name), expected, "{name}");
        }
        for (query, expected) in [
            ("a=1&ip=10.0.0.1", Some("ip")),
            ("%69p=10.0.0.1", Some("ip")),
            ("ip", Some("ip")),
            ("a=ip&ips=1", None),
        ] {
            assert_eq!(sources.argument_of(query).as_deref(), expected, "{query}");
        }
        for (header, expected) in [
            ("a=1; ip=10.0.0.1", Some("ip")),
            ("ip=1", Some("ip")),
            ("a=ip", None),
        ] {
            assert_eq!(sources.cookie_of(header).as_deref(), expected, "{header}");
        }
    }
}
