//! Calls that are distinguished by method and path, each with a query of its own.

use super::{NAME, QueryRoute};
use crate::request_rewrite::set_body;
use serde_json::{Map, Number, Value, json};
use std::collections::BTreeMap;
use weir_plugin::graphql::Tree;
use weir_plugin::{Exchange, Filter, Outcome, Phases, Refusal, RefusalKind, uri};
use weir_plugins_shared::SERVICE_LABEL;

/// Segments of a path at most.
const MAX_SEGMENTS: usize = 32;

/// The routes of an instance.
pub(super) struct RouteFilter {
    /// By service; the empty name is for all others. Those with fewer variables in their paths come first.
    services: BTreeMap<String, Vec<CompiledRoute>>,
    path: Vec<u8>,
    max_body_bytes: usize,
}

struct CompiledRoute {
    methods: Vec<Vec<u8>>,
    segments: Vec<Segment>,
    query: String,
    variables: Vec<QueryVariable>,
}

enum Segment {
    Literal(Vec<u8>),
    Variable(String),
}

/// A variable of a query.
struct QueryVariable {
    name: String,
    type_name: String,
    is_list: bool,
}

impl CompiledRoute {
    /// # Errors
    /// The field that is wrong, and what was expected.
    fn new(of: &QueryRoute) -> Result<Self, (&'static str, String)> {
        let path = of.path.strip_prefix('/');
        let path = path.ok_or(("path", "expected a path that begins with `/`".to_owned()))?;
        let segments: Vec<Segment> = path.split('/').map(Segment::new).collect();
        if segments.len() > MAX_SEGMENTS {
            return Err(("path", format!("expected at most {MAX_SEGMENTS} segments")));
        }
        if of.methods.is_empty() {
            return Err(("methods", "expected at least one method".to_owned()));
        }
        let expected = "expected a GraphQL document with one operation";
        let tree = Tree::read(&of.query).ok_or(("query", expected.to_owned()))?;
        let [operation] = tree.operations.as_slice() else {
            return Err(("query", expected.to_owned()));
        };
        let variables = operation.variables.iter().map(|it| QueryVariable {
            name: it.name.to_owned(),
            type_name: it.type_name.to_owned(),
            is_list: it.is_list,
        });
        Ok(Self {
            methods: of.methods.iter().map(|it| it.clone().into_bytes()).collect(),
            variables: variables.collect(),
            segments,
            query: of.query.clone(),
        })
    }

    fn variables_in_path(&self) -> usize {
        let is_variable = |segment: &&Segment| matches!(segment, Segment::Variable(_));
        self.segments.iter().filter(is_variable).count()
    }

    /// The values of the path's variables; `None`: it is another path.
    fn captures(&self, segments: &[Vec<u8>]) -> Option<Map<String, Value>> {
        if segments.len() != self.segments.len() {
            return None;
        }
        let mut captures = Map::new();
        for (wanted, found) in self.segments.iter().zip(segments) {
            match wanted {
                Segment::Literal(text) => (text == found).then_some(())?,
                Segment::Variable(_) if found.is_empty() => return None,
                Segment::Variable(name) => {
                    let value = String::from_utf8_lossy(found).into_owned();
                    captures.insert(name.clone(), value.into());
                }
            }
        }
        Some(captures)
    }
}

impl Segment {
    fn new(text: &str) -> Self {
        match text.strip_prefix(':').filter(|name| !name.is_empty()) {
            Some(name) => Self::Variable(name.to_owned()),
            None => Self::Literal(text.as_bytes().to_vec()),
        }
    }
}

impl QueryVariable {
    /// The value of a text from a path or a query.
    fn value(&self, text: &str) -> Value {
        if self.is_list {
            return match serde_json::from_str(text) {
                Ok(Value::Array(items)) => Value::Array(items),
                _ => Value::Array(vec![self.single(text)]),
            };
        }
        self.single(text)
    }

    fn single(&self, text: &str) -> Value {
        let typed = match self.type_name.as_str() {
            "String" | "ID" => None,
            "Int" => text.parse::<i64>().ok().map(Value::from),
            "Float" => text.parse().ok().and_then(Number::from_f64).map(Value::from),
            "Boolean" => text.parse::<bool>().ok().map(Value::from),
            // An object of another type is written as JSON.
            _ => serde_json::from_str(text).ok().filter(Value::is_object),
        };
        typed.unwrap_or_else(|| text.into())
    }
}

impl RouteFilter {
    /// # Errors
    /// The place of a route in the list, its field that is wrong, and what was expected.
    pub(super) fn new(
        routes: &[QueryRoute],
        path: &str,
        max_body_bytes: usize,
    ) -> Result<Self, (usize, &'static str, String)> {
        let mut services: BTreeMap<String, Vec<CompiledRoute>> = BTreeMap::new();
        for (index, route) in routes.iter().enumerate() {
            let compiled = CompiledRoute::new(route);
            let compiled = compiled.map_err(|(field, message)| (index, field, message))?;
            let service = route.service.clone().unwrap_or_default();
            services.entry(service).or_default().push(compiled);
        }
        for routes in services.values_mut() {
            routes.sort_by_key(CompiledRoute::variables_in_path);
        }
        Ok(Self {
            services,
            path: path.as_bytes().to_vec(),
            max_body_bytes,
        })
    }

    /// The route of a call, with the values in its path. What the gateway's own route has matched is left out, unless that is
    /// the whole path.
    fn find(&self, exchange: &Exchange) -> Option<(&CompiledRoute, Map<String, Value>)> {
        let route = exchange.route.as_deref();
        let service = route.map_or("", |route| match route.labels.get(SERVICE_LABEL) {
            Some(id) => id,
            None => &route.service,
        });
        let routes = self.services.get(service).or_else(|| self.services.get(""))?;
        let request = &exchange.request;
        let rest = request.path.get(exchange.matched_len..).unwrap_or_default();
        let path = match rest {
            b"" | b"/" => request.path.as_slice(),
            rest => rest,
        };
        let path = path.strip_prefix(b"/").unwrap_or(path);
        let segments = path
            .split(|byte| *byte == b'/')
            .map(|it| match request.path_is_decoded {
                true => it.to_vec(),
                false => uri::unescape(it).to_vec(),
            });
        let segments: Vec<Vec<u8>> = segments.take(MAX_SEGMENTS + 1).collect();
        let mut routes = routes
            .iter()
            .filter(|route| route.methods.contains(&request.method));
        routes.find_map(|route| Some((route, route.captures(&segments)?)))
    }

    /// The variables of a call: those of its path, then of its query, then of its body.
    fn variables(
        route: &CompiledRoute,
        captures: &Map<String, Value>,
        exchange: &Exchange,
    ) -> Result<Map<String, Value>, u16> {
        let request = &exchange.request;
        let body = request.body.as_deref().unwrap_or_default();
        let given = match body.is_empty() {
            true => Map::new(),
            false => match serde_json::from_slice(body) {
                Ok(Value::Object(members)) => members,
                _ => return Err(400),
            },
        };
        let value = |of: &QueryVariable| {
            if let Some(Value::String(text)) = captures.get(&of.name) {
                return Some(of.value(text));
            }
            if let Some(text) = request.query_arg(of.name.as_bytes()) {
                return Some(of.value(&String::from_utf8_lossy(&text)));
            }
            given.get(&of.name).cloned()
        };
        let variables = route.variables.iter();
        Ok(variables
            .filter_map(|it| Some((it.name.clone(), value(it)?)))
            .collect())
    }
}

fn refuse(status: u16) -> Outcome {
    let kind = RefusalKind::Answered { plugin: NAME };
    Outcome::Refuse(Box::new(Refusal::with_status(kind, status)))
}

impl Filter for RouteFilter {
    fn phases(&self) -> Phases {
        Phases::REQUEST
    }

    fn on_request(&self, exchange: &mut Exchange) -> Outcome {
        let Some((route, captures)) = self.find(exchange) else {
            return refuse(404);
        };
        if exchange.request.has_body && exchange.request.body.is_none() {
            if !exchange.filter_state.mark_body_requested(self) {
                return refuse(413);
            }
            return Outcome::NeedBody {
                max_bytes: self.max_body_bytes,
            };
        }
        let made = match Self::variables(route, &captures, exchange) {
            Err(status) => return refuse(status),
            Ok(variables) if variables.is_empty() => json!({"query": route.query}),
            Ok(variables) => json!({"query": route.query, "variables": variables}),
        };
        exchange.upstream_path = Some(self.path.clone());
        exchange.upstream_query = Some(Vec::new());
        let request = &mut exchange.request;
        request.method.clear();
        request.method.extend_from_slice(b"POST");
        request.headers.set(b"Content-Type", b"application/json");
        request.headers.remove(b"Content-Encoding");
        set_body(request, made.to_string().into_bytes());
        Outcome::Continue
    }
}
