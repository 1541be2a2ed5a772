//! Settings of a dialect: what holds for all its routes, before and after one of them is found.

use crate::DialectName;
use ipnet::IpNet;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Settings of all routes of one dialect. A dialect without an entry has the defaults.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DialectSettings {
    /// The dialect whose routes these settings are for.
    #[serde(default)]
    pub dialect: DialectName,
    /// Reads the client's address from a header, instead of using the connection's peer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub real_ip: Option<RealIp>,
    /// Peers that `real_ip` trusts are trusted as proxies, too: their `X-Forwarded-*` are passed on, they count as the last
    /// hop in `X-Forwarded-For`, and their `X-Forwarded-Proto` says whether a call came over TLS.
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub trusts_real_ip_peers: bool,
    /// `Expect: 100-continue` is answered by the gateway once it reads the body, and not passed on. Otherwise
    /// the upstream decides, and its answer is passed back.
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub answer_expect: bool,
    /// Peers whose `X-Forwarded-*` and `Forwarded` are trusted. For all other peers these headers are replaced before
    /// routes are matched, so that no condition, limit key or plugin sees what such a peer wrote: `X-Forwarded-Proto`,
    /// `-Host` and `-Port` hold what the gateway sees, `Forwarded` is removed, and `X-Forwarded-For` is removed if the
    /// list has a peer. Absent: they are replaced when the call is forwarded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Vec<String>>")]
    pub forwarded_from: Option<Vec<IpNet>>,
    /// Request headers whose names have other characters than letters, digits, `-` and `_` are dropped (as by NGINX).
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub plain_header_names: bool,
    /// Path parameters (`/a;x=1`) are no part of what is matched, nor of what plugins see of the path; the upstream gets
    /// them all the same, but where a route strips what it matched. Paths with `..;`, `.;`, or `;` directly behind a `/`
    /// that is not the last are refused. As servlet containers read paths.
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub strips_path_parameters: bool,
    /// A `/` at the end of a path is no part of what is matched, nor of what plugins see of the path. The upstream gets it
    /// all the same, but where a route or a plugin writes the path.
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub drops_tail_slash: bool,
    /// Where the dialect matches decoded paths, an escaped slash (`%2F`) stays a part of its segment while routes are
    /// matched, and in the values of path parameters. Plugins see the decoded path.
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub keeps_escaped_slashes: bool,
    /// The longest body, in bytes, in which `graphql_…` variables look for a query, instead of 1 MiB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub graphql_max_bytes: Option<usize>,
    /// Appended to the `Content-Type` of textual responses that name no charset, of the gateway and of upstreams alike.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub charset: Option<DefaultCharset>,
    /// Several credentials of one plugin may have the same key: the last one counts. Otherwise they are refused.
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub keys_may_repeat: bool,
    /// Plugins may name a consumer that does not exist: calls that need it are answered as failures. Otherwise such a
    /// plugin is refused.
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub consumers_may_be_missing: bool,
}

impl DialectSettings {
    /// Adds what other settings of the dialect say beyond these, as when a file of Weir's own sets `real_ip` for the routes of
    /// another dialect's file.
    pub(crate) fn add(&mut self, other: Self) {
        let Self {
            dialect: _,
            real_ip,
            trusts_real_ip_peers,
            answer_expect,
            forwarded_from,
            plain_header_names,
            strips_path_parameters,
            drops_tail_slash,
            keeps_escaped_slashes,
            graphql_max_bytes,
            charset,
            keys_may_repeat,
            consumers_may_be_missing,
        } = other;
        self.real_ip = self.real_ip.take().or(real_ip);
        self.forwarded_from = self.forwarded_from.take().or(forwarded_from);
        self.graphql_max_bytes = self.graphql_max_bytes.or(graphql_max_bytes);
        self.charset = self.charset.take().or(charset);
        self.trusts_real_ip_peers |= trusts_real_ip_peers;
        self.answer_expect |= answer_expect;
        self.plain_header_names |= plain_header_names;
        self.strips_path_parameters |= strips_path_parameters;
        self.drops_tail_slash |= drops_tail_slash;
        self.keeps_escaped_slashes |= keeps_escaped_slashes;
        self.keys_may_repeat |= keys_may_repeat;
        self.consumers_may_be_missing |= consumers_may_be_missing;
    }
}

/// A request header with the client's address, and the peers that are trusted to set it (as NGINX's `real_ip_header`
/// and `set_real_ip_from`). It is read before routes are matched; a value that is not an address changes nothing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RealIp {
    /// The header. Of several values or a comma-separated list, the last counts.
    pub header: String,
    /// Peers that are trusted.
    #[schemars(with = "Vec<String>")]
    pub trusted: Vec<IpNet>,
}

/// A charset that the gateway adds to responses (as NGINX's `charset` and `charset_types`). Responses with the
/// status 301 or 302 and responses with a `Content-Encoding` are left as they are.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DefaultCharset {
    /// The charset's name, such as `utf-8`; `Content-Type: text/plain` becomes `text/plain; charset=utf-8`.
    pub name: String,
    /// Media types that it is added to.
    pub media_types: Vec<String>,
}

impl DefaultCharset {
    /// A charset of this name, for the media types to which NGINX adds it by default.
    pub fn of_texts(name: &str) -> Self {
        const TEXTS: [&str; 6] = [
            "text/html",
            "text/xml",
            "text/plain",
            "text/vnd.wap.wml",
            "application/javascript",
            "application/rss+xml",
        ];
        Self {
            name: name.to_owned(),
            media_types: TEXTS.map(str::to_owned).to_vec(),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::Model;
    use serde_json::json;

    #[test]
    fn settings_of_one_dialect_add_up_and_the_first_counts() {
        let model = |settings: serde_json::Value| -> Model {
            serde_json::from_value(json!({ "weir": 1, "dialect_settings": settings })).expect("a model")
        };
        let real_ip = |header: &str| json!({"header": header, "trusted": ["10.0.0.0/8"]});
        let own = json!({"dialect": "another", "answer_expect": true, "charset": {"name": "UTF-8", "media_types": []}});
        let ours = json!({"dialect": "another", "real_ip": real_ip("X-A"), "charset": {"name": "b", "media_types": []}});
        for (first, second, charset) in [(&own, &ours, "UTF-8"), (&ours, &own, "b")] {
            let mut merged = model(json!([first]));
            let native = json!({"dialect": "native", "real_ip": real_ip("X-B")});
            merged.merge(model(json!([second, native])));
            let known = &merged.dialect_settings[0];
            assert_eq!(known.real_ip.as_ref().map(|it| it.header.as_str()), Some("X-A"));
            assert_eq!(known.charset.as_ref().map(|it| it.name.as_str()), Some(charset));
            assert!(known.answer_expect && !known.keys_may_repeat);
            assert_eq!(merged.dialect_settings.len(), 2);
        }
    }
}
