//! Routes of a `weir.yaml`, as the model has them. Whether they fit together is checked by the compiler.

use super::reader::{Reader, only};
use crate::shorthand::{FIELDS, MATCH_WORDS, RouteShorthand};
use serde_json::{Map, Value, json};
use weir_model::{DialectName, DocPath, PathPattern, Route, RouteTarget, TemplatePart, UpstreamHost};
use weir_plugin::uri::encode_pattern;

impl Reader {
    /// A route; within a service, `service` is that service's name and the route says none.
    pub(super) fn route(&mut self, value: &Value, place: &DocPath, service: Option<&str>) -> Option<Route> {
        let map = self.map(value, place)?;
        let fields = match service {
            Some(_) => &FIELDS.nested_route,
            None => &FIELDS.route,
        };
        let map = &*self.known(map, place, fields);
        let plugins = self.chain(map, place);
        let words = only(map, |key| FIELDS.route_words.iter().any(|word| word == key));
        let own = only(map, |key| key != "plugins" && !words.contains_key(key));
        let says_match = self.one_way(map, place, "match", &MATCH_WORDS);
        let words = self.typed::<RouteShorthand>(&Value::Object(words), place);
        let route = self.model_route(own, place);
        let (mut route, mut words) = (route?, words?);
        let is_disabled = words.disabled;
        route.plugins = plugins;
        match (
            service.map(str::to_owned),
            words.service.take(),
            map.contains_key("to"),
        ) {
            (Some(name), _, _) | (None, Some(name), false) => route.target = RouteTarget::Service(name),
            (None, None, true) => {}
            (None, Some(_), true) => {
                self.error(
                    place.field("service"),
                    "expected either 'service' or 'to', not both",
                );
            }
            (None, None, false) => self.error(
                place.clone(),
                "expected 'service', the name of the service that gets the calls",
            ),
        }
        self.say_path_and_host(&words, map, place, &mut route);
        match says_match {
            Some(true) => self.check_match_methods(&route, place),
            Some(false) => {
                self.check_methods(&words.methods, || place.field("methods"));
                route.matches = words.into_matches();
            }
            None => return None,
        }
        if route.dialect == DialectName::NATIVE {
            let matches = route.matches.iter_mut();
            matches.for_each(|it| encode(&mut it.path));
        }
        (!is_disabled).then_some(route)
    }

    /// The fields that stand in the document as in the model. What the words say is filled in later.
    fn model_route(&mut self, mut own: Map<String, Value>, place: &DocPath) -> Option<Route> {
        own.entry("match").or_insert_with(|| json!([]));
        own.entry("to").or_insert_with(|| json!({"service": ""}));
        self.typed(&Value::Object(own), place)
    }

    fn say_path_and_host(
        &mut self,
        words: &RouteShorthand,
        map: &Map<String, Value>,
        place: &DocPath,
        route: &mut Route,
    ) {
        if let Some(strip) = words.strip_prefix {
            let long = map.get("path").and_then(|path| path.get("strip_matched"));
            if long.is_some() {
                self.error(
                    place.field("strip_prefix"),
                    "expected either 'strip_prefix' or 'path.strip_matched', not both",
                );
            }
            route.path.strip_matched = strip;
        }
        if let Some(preserve) = words.preserve_host {
            if map.contains_key("upstream_host") {
                self.error(
                    place.field("preserve_host"),
                    "expected either 'preserve_host' or 'upstream_host', not both",
                );
            }
            route.upstream_host = match preserve {
                true => UpstreamHost::Client,
                false => UpstreamHost::Target,
            };
        }
    }

    /// Whether the map speaks the long way (`true`) or in short words (`false`); doing both, or neither, is an
    /// error.
    fn one_way(
        &mut self,
        map: &Map<String, Value>,
        place: &DocPath,
        long: &str,
        words: &[&str],
    ) -> Option<bool> {
        let word = words.iter().find(|word| map.contains_key(**word));
        match (map.contains_key(long), word) {
            (true, None) => Some(true),
            (false, Some(_)) => Some(false),
            (true, Some(word)) => {
                let message = format!("expected either '{word}' or '{long}', not both");
                self.error(place.field(*word), message);
                None
            }
            (false, None) => {
                let message = format!("expected at least one of {}, {long}", words.join(", "));
                self.error(place.clone(), message);
                None
            }
        }
    }

    fn check_match_methods(&mut self, route: &Route, place: &DocPath) {
        for (index, found) in route.matches.iter().enumerate() {
            self.check_methods(&found.methods, || {
                place.field("match").index(index).field("methods")
            });
        }
    }

    /// Methods are case-sensitive (RFC 9110, 9.1): one that is written small never matches a usual client.
    fn check_methods(&mut self, methods: &[String], place: impl Fn() -> DocPath) {
        for (index, method) in methods.iter().enumerate() {
            let is_token = !method.is_empty()
                && method
                    .bytes()
                    .all(|byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte));
            let upper = method.to_ascii_uppercase();
            if !is_token {
                self.error(
                    place().index(index),
                    format!("expected a method such as GET, found '{method}'"),
                );
            } else if *method != upper {
                let message = format!("methods are case-sensitive: did you mean '{upper}'?");
                self.warning(place().index(index), message);
            }
        }
    }
}

/// Native routes are matched with encoded paths, which people write as they read them. Expressions are taken as they are.
fn encode(pattern: &mut PathPattern) {
    match pattern {
        PathPattern::Exact(text) | PathPattern::Prefix(text) | PathPattern::Segments(text) => {
            *text = encode_pattern(text);
        }
        PathPattern::Template(parts) => {
            for part in parts {
                if let TemplatePart::Literal(text) = part {
                    *text = encode_pattern(text);
                }
            }
        }
        PathPattern::Any | PathPattern::Regex(_) => {}
    }
}
