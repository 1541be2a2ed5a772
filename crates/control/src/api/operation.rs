//! A call of `/api/v1`: method, path, what it is for, which right it asks for, what goes in and comes out, and what
//! answers it. The router, the check of rights and the OpenAPI document are all made of these.

use super::Api;
use super::boxed_handler::BoxedHandler;
use super::describe;
use super::problem::Problem;
use super::writing::tried;
use crate::access::{Action, Caller, NotAllowed, Scope};
use axum::Extension;
use axum::extract::{Query, Request, State};
use axum::handler::Handler;
use axum::http::{Method, StatusCode, Uri};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::{self, MethodRouter};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use std::sync::Arc;

/// Headers of writes of a document that has a version.
pub const WRITES: &[&str] = &["If-Match", "If-None-Match", "Weir-Dry-Run", "Weir-Note"];

/// Makes a schema.
pub type SchemaOf = fn(&mut SchemaGenerator) -> Schema;

/// The content of a call or an answer.
#[derive(Clone, Copy)]
pub struct Content {
    /// Its media type.
    pub media: &'static str,
    /// Its schema; `None`: it is no JSON.
    pub schema: Option<SchemaOf>,
}

/// A call of the API.
pub struct Operation {
    /// The method.
    pub method: Method,
    /// The path, with `{names}` for what differs from call to call.
    pub path: &'static str,
    /// Its name, unique and stable: clients' functions are called so.
    pub id: &'static str,
    /// The group in the documentation.
    pub tag: &'static str,
    /// One line on what it does.
    pub summary: &'static str,
    /// Further text.
    pub description: &'static str,
    /// The right that it requires.
    pub action: Action,
    /// Whether it may be called with the right in any part. It then shows or does only what lies in such parts.
    pub is_partial: bool,
    /// Whether it needs neither a token nor a session. The dialect lets such calls in.
    pub is_public: bool,
    /// Its query. Parameters that are not in it are refused.
    pub query: Option<SchemaOf>,
    /// Whether parameters that its query does not have are ignored: a gateway of a later version, or a server of
    /// others, writes it.
    pub ignores_unknown_parameters: bool,
    /// Its body.
    pub body: Option<Content>,
    /// Headers of the call that mean something to it.
    pub headers: &'static [&'static str],
    /// The status of a good answer.
    pub status: StatusCode,
    /// The content of a good answer; `None`: nothing.
    pub answer: Option<Content>,
    /// The content of refusals with these statuses, if they say more than a problem does.
    pub refusal: Option<(&'static [StatusCode], SchemaOf)>,
    /// Another path that leads to it, from before there was this API.
    pub also: Option<&'static str>,
    handler: MethodRouter<Arc<Api>>,
}

impl Operation {
    fn new(
        method: Method,
        (path, id): (&'static str, &'static str),
        action: Action,
        handler: MethodRouter<Arc<Api>>,
    ) -> Self {
        Self {
            method,
            path,
            id,
            tag: "",
            summary: "",
            description: "",
            action,
            is_partial: false,
            is_public: false,
            query: None,
            ignores_unknown_parameters: false,
            body: None,
            headers: &[],
            status: StatusCode::OK,
            answer: None,
            refusal: None,
            also: None,
            handler,
        }
    }

    /// A call that reads.
    pub fn get<H: Handler<T, Arc<Api>>, T: 'static>(
        path: &'static str,
        id: &'static str,
        action: Action,
        handler: H,
    ) -> Self {
        Self::new(
            Method::GET,
            (path, id),
            action,
            routing::get(BoxedHandler::new(handler)),
        )
    }

    /// A call that makes or does something.
    pub fn post<H: Handler<T, Arc<Api>>, T: 'static>(
        path: &'static str,
        id: &'static str,
        action: Action,
        handler: H,
    ) -> Self {
        Self::new(
            Method::POST,
            (path, id),
            action,
            routing::post(BoxedHandler::new(handler)),
        )
    }

    /// A call that writes a whole resource.
    pub fn put<H: Handler<T, Arc<Api>>, T: 'static>(
        path: &'static str,
        id: &'static str,
        action: Action,
        handler: H,
    ) -> Self {
        Self::new(
            Method::PUT,
            (path, id),
            action,
            routing::put(BoxedHandler::new(handler)),
        )
    }

    /// A call that removes something. Its good answer is 204, without a body.
    pub fn delete<H: Handler<T, Arc<Api>>, T: 'static>(
        path: &'static str,
        id: &'static str,
        action: Action,
        handler: H,
    ) -> Self {
        Self::new(
            Method::DELETE,
            (path, id),
            action,
            routing::delete(BoxedHandler::new(handler)),
        )
        .status(StatusCode::NO_CONTENT)
    }

    /// Its purpose: the group in the documentation, and one line.
    #[must_use]
    pub fn about(self, tag: &'static str, summary: &'static str) -> Self {
        Self { tag, summary, ..self }
    }

    /// Further text.
    #[must_use]
    pub fn description(self, description: &'static str) -> Self {
        Self { description, ..self }
    }

    /// Its query.
    #[must_use]
    pub fn query<T: JsonSchema>(self) -> Self {
        Self {
            query: Some(|generator| generator.subschema_for::<T>()),
            ..self
        }
    }

    /// A gateway of a later version, or a server of others, writes its query: what it does not know is ignored.
    #[must_use]
    pub fn ignoring_unknown_parameters(self) -> Self {
        Self {
            ignores_unknown_parameters: true,
            ..self
        }
    }

    /// Its body, in JSON.
    #[must_use]
    pub fn body<T: JsonSchema>(self) -> Self {
        self.body_of(
            "application/json",
            Some(|generator| generator.subschema_for::<T>()),
        )
    }

    /// Its body, of another type.
    #[must_use]
    pub fn body_of(self, media: &'static str, schema: Option<SchemaOf>) -> Self {
        Self {
            body: Some(Content { media, schema }),
            ..self
        }
    }

    /// The content of a good answer, in JSON.
    #[must_use]
    pub fn answers<T: JsonSchema>(self) -> Self {
        self.answers_of(
            "application/json",
            Some(|generator| generator.subschema_for::<T>()),
        )
    }

    /// The content of a good answer, of another type.
    #[must_use]
    pub fn answers_of(self, media: &'static str, schema: Option<SchemaOf>) -> Self {
        Self {
            answer: Some(Content { media, schema }),
            ..self
        }
    }

    /// The content of refusals with these statuses: a problem with further members.
    #[must_use]
    pub fn refuses<T: JsonSchema>(self, statuses: &'static [StatusCode]) -> Self {
        Self {
            refusal: Some((statuses, |generator| generator.subschema_for::<T>())),
            ..self
        }
    }

    /// The status of a good answer.
    #[must_use]
    pub fn status(self, status: StatusCode) -> Self {
        Self { status, ..self }
    }

    /// Headers of the call that mean something to it.
    #[must_use]
    pub fn headers(self, headers: &'static [&'static str]) -> Self {
        Self { headers, ..self }
    }

    /// It may be called with the right in any part, and shows or does only what lies in such parts.
    #[must_use]
    pub fn partial(self) -> Self {
        Self {
            is_partial: true,
            ..self
        }
    }

    /// It needs neither a token nor a session.
    #[must_use]
    pub fn public(self) -> Self {
        Self {
            is_public: true,
            ..self
        }
    }

    /// Another path that leads to it.
    #[must_use]
    pub fn also(self, path: &'static str) -> Self {
        Self {
            also: Some(path),
            ..self
        }
    }

    /// Whether a right in a part may be enough: it may be called with that, or its path names a part.
    pub fn has_parts(&self) -> bool {
        let names_a_part = |it: &str| {
            let kind = it.strip_prefix('{').and_then(|it| it.strip_suffix('}'));
            kind.is_some_and(|kind| Scope::of(kind, "-").is_some())
        };
        self.is_partial || self.path.split('/').any(names_a_part)
    }

    /// The parts that a path names. The right in one of them is enough.
    pub fn scopes(&self, path: &str) -> Vec<Scope> {
        let named = self.path.split('/').zip(path.split('/'));
        let scopes = named.filter_map(|(template, given)| {
            let kind = template.strip_prefix('{')?.strip_suffix('}')?;
            let given = percent_encoding::percent_decode_str(given);
            Scope::of(kind, &given.decode_utf8().ok()?)
        });
        let scopes: Vec<Scope> = scopes.collect();
        match scopes.is_empty() {
            true => vec![Scope::Everything],
            false => scopes,
        }
    }

    /// Why a caller may not call it at this path; `None`: it may.
    pub fn refusal(&self, caller: &Caller, path: &str) -> Option<String> {
        if self.is_partial && !caller.scopes(self.action).is_empty() {
            return None;
        }
        let scopes = self.scopes(path);
        match scopes.iter().any(|scope| caller.can(self.action, scope)) {
            true => None,
            false => Some(refusal(caller, self.action, &scopes)),
        }
    }

    /// Whether it can say what it would do, and not do it.
    fn takes_dry_runs(&self) -> bool {
        self.headers.contains(&"Weir-Dry-Run")
    }

    /// Whether it would change a store that is not to be changed.
    fn is_refused_as_a_change(&self, request: &Request) -> bool {
        self.method != Method::GET
            && self.action.changes_the_store()
            && request.extensions().get::<super::ReadOnly>().is_some()
            && !super::is_dry_run(request.headers())
    }

    /// Joins it with its paths.
    pub fn into_routes(self) -> Vec<(&'static str, MethodRouter<Arc<Api>>)> {
        let handler = self.handler.clone();
        let known = KnownQuery::of(&self);
        let paths: Vec<&'static str> = [Some(self.path), self.also].into_iter().flatten().collect();
        let this = Arc::new((self, known));
        let guarded = handler.layer(middleware::from_fn_with_state(this, check));
        paths.into_iter().map(|path| (path, guarded.clone())).collect()
    }
}

/// Why a caller may not do something there.
pub fn refusal(caller: &Caller, action: Action, scopes: &[Scope]) -> String {
    let (name, action_name) = (caller.name(), action.as_str());
    let named = |scopes: &[Scope], between| {
        let names: Vec<String> = scopes.iter().map(ToString::to_string).collect();
        names.join(between)
    };
    // With the user's own rights it would be allowed: the reason is in the token.
    let with = match caller.is_narrowed(action, scopes) {
        true => " with this personal token, which was given fewer rights than its user has",
        false => "",
    };
    let asked = format!(
        "{name} may not do this{with}: it asks for '{action_name}' in {}",
        named(scopes, " or ")
    );
    let own = caller.scopes(action);
    if !own.is_empty() {
        // The roles are no news to who has one of them: the place is what is missing.
        return format!("{asked}, and {name} has it in {} only", named(&own, " and "));
    }
    let roles = crate::access::Role::that_allow(action).map(crate::access::Role::as_str);
    format!(
        "{asked}, which these roles allow: {}",
        roles.collect::<Vec<_>>().join(", ")
    )
}

/// The names of an operation's query parameters; `None`: it takes any.
#[derive(Debug)]
pub struct KnownQuery(Option<Vec<String>>);

impl KnownQuery {
    fn of(operation: &Operation) -> Self {
        match operation.ignores_unknown_parameters {
            true => Self(None),
            false => Self::of_schema(operation.query),
        }
    }

    /// The parameters of a query's schema; without one, none.
    pub fn of_schema(query: Option<SchemaOf>) -> Self {
        Self(Some(query.map_or_else(Vec::new, describe::query_names)))
    }

    /// The refusal of a query with a parameter that means nothing: what it was to narrow would be answered whole.
    pub fn refusal(&self, uri: &Uri) -> Option<Problem> {
        let known: Vec<&str> = self.0.as_ref()?.iter().map(String::as_str).collect();
        // What is no query at all is refused by what reads it.
        let Query(given) = Query::<Vec<(String, String)>>::try_from_uri(uri).ok()?;
        let mut names = given.iter().map(|(name, _)| name.as_str());
        let unknown = names.find(|it| !known.contains(it))?;
        let detail = match known.as_slice() {
            [] => format!("unknown query parameter '{unknown}': this call takes none"),
            known => weir_native::unknown_name("query parameter", unknown, known),
        };
        Some(Problem::bad(detail).of_type("unknown-parameter"))
    }
}

/// Refuses callers who may not do this, and calls that ask for what there is not.
async fn check(
    State(operation): State<Arc<(Operation, KnownQuery)>>,
    Extension(caller): Extension<Caller>,
    request: Request,
    next: Next,
) -> Response {
    let (operation, known) = &*operation;
    match operation.refusal(&caller, request.uri().path()) {
        None if operation.is_refused_as_a_change(&request) => Problem::read_only().into_response(),
        None => match known.refusal(request.uri()) {
            None if operation.takes_dry_runs() && super::is_dry_run(request.headers()) => {
                let answer = next.run(request).await;
                if answer.status().is_success() {
                    tried(answer)
                } else {
                    answer
                }
            }
            None => next.run(request).await,
            Some(problem) => problem.into_response(),
        },
        Some(detail) => {
            let mut answer = Problem::forbidden(detail).into_response();
            answer.extensions_mut().insert(NotAllowed);
            answer
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::{Right, Role, User};

    #[test]
    fn a_refusal_says_whether_the_role_or_the_place_is_missing() {
        let user = User {
            name: "vera".to_owned(),
            token_hash: None,
            password_hash: None,
            rights: vec![Right {
                role: Role::ApiOwner,
                scope: Scope::Api("pets".to_owned()),
            }],
            created: 0,
        };
        let caller = Caller::User(Arc::new(user));
        for (action, expected) in [
            (
                Action::BoardsWrite,
                "vera may not do this: it asks for 'boards:write' in everything, and vera has it in api:pets only",
            ),
            (
                Action::AuditRead,
                "vera may not do this: it asks for 'audit:read' in everything, which these roles allow: admin, auditor",
            ),
        ] {
            assert_eq!(refusal(&caller, action, &[Scope::Everything]), expected);
        }
    }
}
