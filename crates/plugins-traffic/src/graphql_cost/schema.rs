//! The parts of a GraphQL service's schema that costs need, and how it is fetched: one caller fetches it while the
//! others wait.

use super::Introspection;
use serde::Deserialize;
use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use weir_flow::expiring::{ExpiringMap, Fetch, Lifetime, Lookup};
use weir_plugin::headers::is_value;
use weir_plugin::uri::{escape_controls, escape_path};
use weir_plugin::{Exchange, Outcome, Request, SubrequestResponse, Suspend};
use weir_plugins_shared::http_request::{HttpRequest, HttpServer, ServerCallRules};

/// Cached schemas, by their source.
pub(super) type Schemas = ExpiringMap<Arc<Types>>;

/// Bytes of all schemas that are kept at most, as they came.
pub(super) const CACHE_BYTES: usize = 64 << 20;
/// The longest answer that is read.
const MAX_ANSWER: usize = 3 << 20;
/// Fields and arguments of a schema at most.
const MAX_FIELDS: usize = 50_000;
/// The longest that an answer may take.
const TIMEOUT: Duration = Duration::from_secs(5);
/// How long a schema is used before it is fetched again, and how long it is used if that fails.
const LIFETIME: Lifetime = Lifetime {
    fresh_ms: 600_000,
    stale_ms: 24 * 3_600_000,
};
/// After a failure, the next call that asks waits so long, in milliseconds.
const RETRY_MS: u64 = 10_000;

/// What asks a service for its schema.
const QUESTION: &str = r#"{"query":"query{__schema{queryType{name}mutationType{name}subscriptionType{name}types{name fields{name args{name defaultValue}type{...T}}}}}fragment T on __Type{name ofType{name ofType{name ofType{name ofType{name ofType{name ofType{name ofType{name}}}}}}}}"}"#;

/// The types of a schema.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Types {
    query: String,
    mutation: String,
    subscription: String,
    fields: HashMap<String, HashMap<String, SchemaField>>,
}

/// A field of a type.
#[derive(Debug, PartialEq)]
pub(super) struct SchemaField {
    /// Its type's own name.
    pub(super) type_name: String,
    /// The default values of its arguments, if they are numbers.
    pub(super) defaults: HashMap<String, f64>,
}

#[derive(Deserialize)]
struct IntrospectionResponse {
    data: Data,
}

#[derive(Deserialize)]
struct Data {
    #[serde(rename = "__schema")]
    schema: Schema,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Schema {
    query_type: Option<NamedType>,
    mutation_type: Option<NamedType>,
    subscription_type: Option<NamedType>,
    types: Vec<TypeDef>,
}

#[derive(Deserialize)]
struct NamedType {
    name: String,
}

#[derive(Deserialize)]
struct TypeDef {
    name: Option<String>,
    fields: Option<Vec<FieldDef>>,
}

#[derive(Deserialize)]
struct FieldDef {
    name: String,
    #[serde(default)]
    args: Vec<ArgumentDef>,
    #[serde(rename = "type")]
    of: TypeRef,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ArgumentDef {
    name: String,
    default_value: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct TypeRef {
    name: Option<String>,
    of_type: Option<Box<TypeRef>>,
}

impl TypeRef {
    fn into_name(self) -> Option<String> {
        let mut here = self;
        loop {
            match (here.name, here.of_type) {
                (Some(name), _) => return Some(name),
                (None, Some(inner)) => here = *inner,
                (None, None) => return None,
            }
        }
    }
}

impl Types {
    /// Reads the response to an introspection query; `None` if it is not a schema.
    pub(super) fn read(answer: &[u8]) -> Option<Self> {
        let IntrospectionResponse { data } = serde_json::from_slice(answer).ok()?;
        let schema = data.schema;
        let name = |named: Option<NamedType>, usual: &str| named.map_or(usual.to_owned(), |it| it.name);
        let mut types = Self {
            query: name(schema.query_type, "Query"),
            mutation: name(schema.mutation_type, "Mutation"),
            subscription: name(schema.subscription_type, "Subscription"),
            fields: HashMap::new(),
        };
        let all = schema.types.iter().flat_map(|of| of.fields.iter().flatten());
        if all.map(|field| 1 + field.args.len()).sum::<usize>() > MAX_FIELDS {
            return None;
        }
        for of in schema.types {
            let (Some(name), Some(fields)) = (of.name, of.fields) else {
                continue;
            };
            let fields = fields.into_iter().filter_map(|field| {
                let defaults = field.args.into_iter().filter_map(|argument| {
                    let number = argument.default_value?.parse().ok()?;
                    Some((argument.name, number))
                });
                let defaults = defaults.collect();
                let type_name = field.of.into_name()?;
                Some((field.name, SchemaField { type_name, defaults }))
            });
            types.fields.insert(name, fields.collect());
        }
        Some(types)
    }

    /// The type of operations of a kind.
    pub(super) fn root(&self, kind: &str) -> &str {
        match kind {
            "mutation" => &self.mutation,
            "subscription" => &self.subscription,
            _ => &self.query,
        }
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.fields.contains_key(name)
    }

    pub(super) fn field(&self, type_name: &str, name: &str) -> Option<&SchemaField> {
        self.fields.get(type_name)?.get(name)
    }
}

/// Where a schema comes from, ready for use.
pub(super) struct Source {
    server: HttpServer,
    use_request_path: bool,
    use_request_host: bool,
    headers: Vec<(String, String)>,
    rules: ServerCallRules,
    key: Vec<u8>,
    schemas: Arc<Schemas>,
}

/// What a call finds.
pub(super) enum SchemaLookup {
    Types(Arc<Types>),
    /// There is no schema.
    Nothing,
    /// The engine has something to do first.
    Wait(Outcome),
}

/// The ticket of the call that asks, and the name under which the schema is kept.
struct Ticket(Fetch<Arc<Types>>, Vec<u8>);

impl Source {
    /// `None` if its address is invalid. Instances with different owners do not share schemas.
    pub(super) fn new(of: &Introspection, owner: &str, schemas: &Arc<Schemas>) -> Option<Self> {
        let mut server = HttpServer::parse(&of.url)?;
        if let Some(host) = &of.host {
            server.authority.clone_from(host);
        }
        Some(Self {
            server,
            use_request_path: of.use_request_path,
            use_request_host: of.use_request_host,
            headers: of.headers.clone().into_iter().collect(),
            rules: ServerCallRules {
                verify_tls: of.verify_tls,
                timeout: TIMEOUT,
                pool_size: 0,
                pool_idle_timeout: Duration::ZERO,
                max_answer_bytes: MAX_ANSWER,
                connector: None,
            },
            key: serde_json::json!([owner, of]).to_string().into_bytes(),
            schemas: Arc::clone(schemas),
        })
    }

    /// The server to call for this call, and the name under which its schema is cached.
    fn asked_for(&self, request: &Request) -> (HttpServer, Vec<u8>) {
        let (mut server, mut key) = (self.server.clone(), self.key.clone());
        if self.use_request_path {
            let mut target = Vec::with_capacity(request.path.len());
            match request.path_is_decoded {
                true => escape_path(request.forwarded_path(), &mut target),
                false => escape_controls(request.forwarded_path(), &mut target),
            }
            server.target = String::from_utf8_lossy(&target).into_owned();
            key.extend_from_slice(server.target.as_bytes());
        }
        let host = request.headers.get(b"host").filter(|host| is_value(host));
        if let Some(host) = host.filter(|host| self.use_request_host && !host.is_empty()) {
            server.authority = String::from_utf8_lossy(host).into_owned();
            // No path has a space.
            key.push(b' ');
            key.extend_from_slice(host);
        }
        (server, key)
    }

    /// Finds the schema in the cache, or has it fetched.
    pub(super) fn find(&self, exchange: &mut Exchange) -> SchemaLookup {
        if let Some(Ticket(fetch, key)) = exchange.filter_state.take(self) {
            let answer = exchange.subrequest_response.take().flatten();
            return self.keep(fetch, &key, answer, exchange.unix_ms());
        }
        let now = exchange.unix_ms();
        let (server, key) = match self.use_request_path || self.use_request_host {
            true => {
                let (server, key) = self.asked_for(&exchange.request);
                (Cow::Owned(server), Cow::Owned(key))
            }
            false => (Cow::Borrowed(&self.server), Cow::Borrowed(&self.key)),
        };
        let fetch = match self.schemas.lookup(&key, now) {
            Lookup::Hit(found) => return SchemaLookup::Types(found),
            Lookup::Failed => return SchemaLookup::Nothing,
            Lookup::Pending(pending) => {
                return SchemaLookup::Wait(Outcome::Suspend(Suspend::event(pending, TIMEOUT)));
            }
            Lookup::Stale(_, fetch) | Lookup::Miss(fetch) => fetch,
        };
        exchange.filter_state.put(self, Ticket(fetch, key.into_owned()));
        let mut headers = vec![("Content-Type", "application/json")];
        headers.extend(self.headers.iter().map(|(name, value)| (&**name, &**value)));
        let request = HttpRequest {
            method: "POST",
            headers: &headers,
            body: Some(QUESTION.as_bytes()),
            ..HttpRequest::GET
        };
        SchemaLookup::Wait(Outcome::Subrequest(Box::new(
            server.request(request, &self.rules),
        )))
    }

    fn keep(
        &self,
        fetch: Fetch<Arc<Types>>,
        key: &[u8],
        answer: Option<SubrequestResponse>,
        now: u64,
    ) -> SchemaLookup {
        let answer = answer.filter(|answer| answer.status == 200);
        let types = answer.as_ref().and_then(|answer| Types::read(&answer.body));
        match (types, answer) {
            (Some(types), Some(answer)) => {
                let types = Arc::new(types);
                fetch.store(Arc::clone(&types), answer.body.len() + 1024, LIFETIME, now);
                SchemaLookup::Types(types)
            }
            _ => {
                let before = self.schemas.get(key, now);
                fetch.fail(RETRY_MS, now);
                before.map_or(SchemaLookup::Nothing, SchemaLookup::Types)
            }
        }
    }
}
