//! Routes of the originals that another spelling of a path bypasses: a route that authenticates, and another that takes
//! all other paths to the same place without authentication.
//!
//! A router that matches `/admin%2Fx` as one segment sends it to the open route; a server that decodes it finds
//! `/admin/x`. One that decodes paths once lets through what a server decodes again. Dialects stay as their originals
//! are ([`undecoded_slash`](weir_dialect::Dialect::undecoded_slash)), so this is a warning.

use std::collections::HashMap;
use weir_dialect::DialectSet;
use weir_model::{
    ChainStep, Diagnostic, DialectName, DocPath, HostPattern, Model, PathPattern, PluginRef, Route,
    RouteMatch, RouteTarget, TemplatePart,
};

/// Plugins that keep callers out.
const GUARDS: [&str; 24] = [
    "acl",
    "app-login",
    "authz-keycloak",
    "basic-auth",
    "cas-login",
    "casbin",
    "casdoor-login",
    "forward-auth",
    "hmac-auth",
    "ip-restriction",
    "jwe-decrypt",
    "jwt",
    "jwt-signer",
    "key-auth",
    "ldap-auth",
    "mtls-auth",
    "multi-auth",
    "opa",
    "openid-connect",
    "request-termination",
    "saml",
    "vault-auth",
    "webhook-signature",
    "wolf-rbac",
];

/// A route with one of its matches.
type Candidate<'m> = (usize, &'m Route, &'m RouteMatch);

/// A warning for each route that another spelling of its path leads around.
pub fn warnings(model: &Model, dialects: &DialectSet) -> Vec<Diagnostic> {
    let slash = |name: DialectName| dialects.get(name)?.undecoded_slash();
    let shared: HashMap<&str, &str> = (model.plugins.iter())
        .map(|it| (it.id.as_str(), it.name.as_str()))
        .collect();
    let guards = |route: &Route| -> Vec<&str> {
        let names = route.plugins.iter().filter_map(|step| name_of(step, &shared));
        names
            .filter_map(|name| GUARDS.into_iter().find(|it| *it == name))
            .collect()
    };
    let mut open: HashMap<&str, Vec<Candidate<'_>>> = HashMap::new();
    let mut guarded = Vec::new();
    for (index, route) in model.routes.iter().enumerate() {
        let of_route = guards(route);
        if of_route.is_empty() {
            let takes_others = slash(route.dialect).is_some();
            for found in (route.matches.iter()).filter(|_| takes_others) {
                if let Some(start) = start_of(&found.path) {
                    open.entry(start).or_default().push((index, route, found));
                }
            }
        } else {
            guarded.push((route, of_route));
        }
    }
    if open.is_empty() {
        return Vec::new();
    }
    let mut messages = Vec::new();
    for (route, of_route) in guarded {
        let around = route.matches.iter().find_map(|found| {
            let path = literal(&found.path)?;
            let around = way_around(model, &open, path, (route, found))?;
            Some((path, around))
        });
        if let Some((path, (index, other))) = around
            && let Some(slash) = slash(other.dialect)
        {
            let place = DocPath::root().field("routes").index(index).field("matches");
            let message = message(path, slash, &route.name, &of_route);
            messages.push(Diagnostic::warning(place, message));
        }
    }
    messages
}

fn message(path: &str, slash: &str, guarded: &str, guards: &[&str]) -> String {
    format!(
        "it takes calls for {path}{slash}x and {path};x, which a server may read as {path}, past {} of route '{guarded}'",
        guards.join(" and ")
    )
}

fn name_of<'m>(step: &'m ChainStep, shared: &HashMap<&'m str, &'m str>) -> Option<&'m str> {
    match step.plugin.as_ref()? {
        PluginRef::Inline(instance) => Some(&instance.name),
        PluginRef::Shared(id) => shared.get(id.as_str()).copied(),
    }
}

/// The first open route that takes what begins like this path, to the same place.
fn way_around<'m>(
    model: &Model,
    open: &HashMap<&str, Vec<Candidate<'m>>>,
    path: &str,
    (route, found): (&Route, &RouteMatch),
) -> Option<(usize, &'m Route)> {
    let starts = (0..path.len()).rev().filter(|end| path.is_char_boundary(*end));
    let mut candidates = starts.filter_map(|end| open.get(&path[..end])).flatten();
    candidates
        .find(|(_, other, its)| {
            other.dialect == route.dialect
                && conditions_overlap(&found.hosts, &its.hosts, same_host)
                && conditions_overlap(&found.methods, &its.methods, |one, other| one == other)
                && its.headers.is_empty()
                && its.remote_addrs.is_empty()
                && have_same_target(model, route, other)
        })
        .map(|(index, other, _)| (*index, *other))
}

fn same_host(one: &HostPattern, other: &HostPattern) -> bool {
    one == other || matches!(one, HostPattern::Any) || matches!(other, HostPattern::Any)
}

/// Whether two conditions can hold at once; an empty one always holds.
fn conditions_overlap<T>(one: &[T], other: &[T], same: impl Fn(&T, &T) -> bool) -> bool {
    one.is_empty() || other.is_empty() || one.iter().any(|it| other.iter().any(|its| same(it, its)))
}

fn have_same_target(model: &Model, one: &Route, other: &Route) -> bool {
    let place = |route: &Route| {
        let RouteTarget::Service(name) = &route.target else {
            return None;
        };
        let service = model.services.iter().find(|it| it.name == *name)?;
        match (&service.url, &service.upstream) {
            (Some(url), _) => {
                let authority = url.split_once("://").map_or(url.as_str(), |(_, rest)| rest);
                Some(authority.split('/').next().unwrap_or_default().to_owned())
            }
            (None, Some(upstream)) => {
                let upstream = model.upstreams.iter().find(|it| it.name == *upstream)?;
                let targets = upstream.targets.iter();
                let mut targets: Vec<String> = targets.map(|it| format!("{}:{}", it.host, it.port)).collect();
                targets.sort();
                // One without targets of its own has them from elsewhere.
                Some(match targets.is_empty() {
                    true => upstream.name.clone(),
                    false => targets.join(" "),
                })
            }
            (None, None) => None,
        }
    };
    one.target == other.target || place(one).is_some_and(|it| Some(it) == place(other))
}

/// The beginning of the paths that an open route takes; `None`: that is not one text.
fn start_of(path: &PathPattern) -> Option<&str> {
    match path {
        PathPattern::Any => Some(""),
        PathPattern::Prefix(text) => Some(text),
        PathPattern::Segments(text) if text == "/" => Some(text),
        PathPattern::Template(parts) => match parts.as_slice() {
            [TemplatePart::Literal(text), TemplatePart::Rest(_)] => Some(text),
            _ => None,
        },
        PathPattern::Segments(_) | PathPattern::Exact(_) | PathPattern::Regex(_) => None,
    }
}

/// The beginning of the paths of a guarded route, without a `/` at the end; `None`: nothing, or not one text.
fn literal(path: &PathPattern) -> Option<&str> {
    let text = match path {
        PathPattern::Exact(text) | PathPattern::Prefix(text) | PathPattern::Segments(text) => text,
        // Text next to a parameter is no segment of its own.
        PathPattern::Template(parts) => match parts.first()? {
            TemplatePart::Literal(text) => text.rsplit_once('/').map_or("", |(start, _)| start),
            _ => return None,
        },
        PathPattern::Any | PathPattern::Regex(_) => return None,
    };
    Some(text.trim_end_matches('/')).filter(|text| !text.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialects::stock;
    use serde_json::{Value, json};

    fn kong(routes: &Value) -> Vec<String> {
        let document = json!({"_format_version": "3.0", "services": [
            {"name": "s", "url": "http://127.0.0.1:1/base", "routes": routes},
            {"name": "t", "url": "http://127.0.0.2:1", "routes": [{"name": "elsewhere", "paths": ["/"], "hosts": ["x.test"]}]},
        ]});
        let (model, _) = weir_kong::translate(&document, &weir_kong::Options::default()).expect("a model");
        warnings(&model, &stock())
            .into_iter()
            .map(|it| it.message)
            .collect()
    }

    #[test]
    fn ways_around_guards_are_reported() {
        let guarded = json!({"name": "admin", "paths": ["/admin"], "plugins": [{"name": "key-auth"}]});
        let message = "it takes calls for /admin%2Fx and /admin;x, which a server may read as /admin, past key-auth of route 'admin'";
        for (name, open, is_warned) in [
            ("all", json!({"name": "open", "paths": ["/"]}), true),
            (
                "other host",
                json!({"name": "open", "paths": ["/"], "hosts": ["a.test"]}),
                true,
            ),
            (
                "method",
                json!({"name": "open", "paths": ["/"], "methods": ["GET"]}),
                true,
            ),
            ("start", json!({"name": "open", "paths": ["/ad"]}), true),
            ("beside", json!({"name": "open", "paths": ["/public"]}), false),
            (
                "below",
                json!({"name": "open", "paths": ["/admin/public"]}),
                false,
            ),
            (
                "guarded too",
                json!({"name": "open", "paths": ["/"], "plugins": [{"name": "acl", "config": {"allow": ["a"]}}]}),
                false,
            ),
        ] {
            let expected: Vec<&str> = is_warned.then_some(message).into_iter().collect();
            assert_eq!(kong(&json!([guarded, open])), expected, "{name}");
        }
        let elsewhere = json!([{"name": "admin", "paths": ["/admin"], "hosts": ["x.test"], "plugins": [{"name": "key-auth"}]}]);
        assert_eq!(kong(&elsewhere), [""; 0]);
    }

    #[test]
    fn apisix_decodes_once_and_native_routes_are_strict() {
        let nodes = json!({"nodes": {"127.0.0.1:1": 1}, "type": "roundrobin"});
        let document = json!({"routes": [
            {"id": "1", "uri": "/admin/*", "upstream": nodes, "plugins": {"key-auth": {}}},
            {"id": "2", "uri": "/*", "upstream": nodes},
        ]});
        let (model, _) =
            weir_apisix::translate(&document, &weir_apisix::Options::default()).expect("a model");
        let messages: Vec<String> = warnings(&model, &stock())
            .into_iter()
            .map(|it| it.message)
            .collect();
        assert_eq!(messages.len(), 1, "{messages:?}");
        assert!(messages[0].contains("/admin%252Fx and /admin;x"), "{messages:?}");
        let document = json!({"weir": 1, "services": [{"name": "s", "url": "http://127.0.0.1:1", "routes": [
            {"name": "admin", "paths": ["/admin"], "plugins": [{"key-auth": {}}]}, {"name": "open", "paths": ["/"]}]}]});
        let (model, _) = weir_native::translate(&document).expect("a model");
        assert!(warnings(&model, &stock()).is_empty());
    }
}
