//! The parts of a call by which a gateway learns who calls, as its configuration says: `real_ip` of a dialect, and plugins that
//! take an address or a certificate from a header, an argument, a cookie or the body. Calls that Weir sends for somebody must
//! not have them: it sends them from an address of its own, which the gateway may trust.
//!
//! **What it is not**: it does not look at which peers the gateway trusts, and captures of a path are no part here.

use std::collections::BTreeSet;
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
        let body = json!({"plugins": [{"id": "a", "name": "real-ip", "config": {"from": "post_arg_ip"}}]});
        assert!(IdentitySources::of(&serde_json::from_value(body).expect("a model")).body);
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
