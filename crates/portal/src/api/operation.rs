//! A call of `/portal/v1`: method, path, what it is for, whether one has to be signed in, what goes in and comes out,
//! and what answers it. The router, the check and the OpenAPI document are all made of these.

use crate::state::{PortalContext, Portals};
use axum::Extension;
use axum::extract::{Request, State};
use axum::handler::Handler;
use axum::http::{Method, StatusCode};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::{self, MethodRouter};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use std::sync::Arc;
use weir_control::api::{BoxedHandler, KnownQuery, Problem};

/// Makes a schema.
pub type SchemaOf = fn(&mut SchemaGenerator) -> Schema;

/// A call.
pub struct Operation {
    pub method: Method,
    pub path: &'static str,
    /// Its name, unique and stable.
    pub id: &'static str,
    /// The group in the documentation.
    pub tag: &'static str,
    pub summary: &'static str,
    /// Whether the caller has to be signed in.
    pub is_personal: bool,
    /// Whether a personal token is not enough.
    pub needs_session: bool,
    pub query: Option<SchemaOf>,
    pub body: Option<SchemaOf>,
    /// The status of a good answer.
    pub status: StatusCode,
    /// The content of a good answer; `None`: nothing.
    pub answer: Option<SchemaOf>,
    /// The media type of a good answer.
    pub media: &'static str,
    /// Whether a query parameter that it does not know is passed over.
    ignores_unknown_parameters: bool,
    handler: MethodRouter<Arc<Portals>>,
}

impl Operation {
    fn new(
        method: Method,
        path: &'static str,
        (id, summary): (&'static str, &'static str),
        handler: MethodRouter<Arc<Portals>>,
    ) -> Self {
        Self {
            method,
            path,
            id,
            tag: "",
            summary,
            is_personal: false,
            needs_session: false,
            query: None,
            body: None,
            status: StatusCode::OK,
            answer: None,
            media: "application/json",
            ignores_unknown_parameters: false,
            handler,
        }
    }

    /// A call that reads.
    pub fn get<H: Handler<T, Arc<Portals>>, T: 'static>(
        path: &'static str,
        about: (&'static str, &'static str),
        handler: H,
    ) -> Self {
        Self::new(Method::GET, path, about, routing::get(BoxedHandler::new(handler)))
    }

    /// A call that makes or does something.
    pub fn post<H: Handler<T, Arc<Portals>>, T: 'static>(
        path: &'static str,
        about: (&'static str, &'static str),
        handler: H,
    ) -> Self {
        Self::new(
            Method::POST,
            path,
            about,
            routing::post(BoxedHandler::new(handler)),
        )
    }

    /// A call that writes a whole thing.
    pub fn put<H: Handler<T, Arc<Portals>>, T: 'static>(
        path: &'static str,
        about: (&'static str, &'static str),
        handler: H,
    ) -> Self {
        Self::new(Method::PUT, path, about, routing::put(BoxedHandler::new(handler)))
    }

    /// A call that removes something. Its good answer is 204, without a body.
    pub fn delete<H: Handler<T, Arc<Portals>>, T: 'static>(
        path: &'static str,
        about: (&'static str, &'static str),
        handler: H,
    ) -> Self {
        Self::new(
            Method::DELETE,
            path,
            about,
            routing::delete(BoxedHandler::new(handler)),
        )
        .status(StatusCode::NO_CONTENT)
    }

    /// The same calls in a group of the documentation.
    pub fn tagged(tag: &'static str, all: Vec<Self>) -> Vec<Self> {
        all.into_iter().map(|it| Self { tag, ..it }).collect()
    }

    /// Its query.
    #[must_use]
    pub fn query<T: JsonSchema>(self) -> Self {
        Self {
            query: Some(|generator| generator.subschema_for::<T>()),
            ..self
        }
    }

    /// The caller has to be signed in.
    #[must_use]
    pub fn personal(self) -> Self {
        Self {
            is_personal: true,
            ..self
        }
    }

    /// The caller has to be signed in in a browser: with a personal token alone, who has stolen it could stay.
    #[must_use]
    pub fn by_session(self) -> Self {
        Self {
            needs_session: true,
            ..self.personal()
        }
    }

    /// The status of a good answer.
    #[must_use]
    pub fn status(self, status: StatusCode) -> Self {
        Self { status, ..self }
    }

    /// Its body.
    #[must_use]
    pub fn body<T: JsonSchema>(self) -> Self {
        Self {
            body: Some(|generator| generator.subschema_for::<T>()),
            ..self
        }
    }

    /// The content of a good answer.
    #[must_use]
    pub fn answers<T: JsonSchema>(self) -> Self {
        Self {
            answer: Some(|generator| generator.subschema_for::<T>()),
            ..self
        }
    }

    /// The media type of a good answer that is no JSON.
    #[must_use]
    pub fn media(self, media: &'static str) -> Self {
        Self { media, ..self }
    }

    /// An identity provider writes its query: what it does not know is ignored.
    #[must_use]
    pub fn ignoring_unknown_parameters(self) -> Self {
        Self {
            ignores_unknown_parameters: true,
            ..self
        }
    }

    /// Joins it with its path.
    pub fn into_route(self) -> (&'static str, MethodRouter<Arc<Portals>>) {
        let handler = match self.ignores_unknown_parameters {
            true => self.handler,
            false => {
                let known = Arc::new(KnownQuery::of_schema(self.query));
                self.handler
                    .layer(middleware::from_fn_with_state(known, check_query))
            }
        };
        let handler = match (self.is_personal, self.needs_session) {
            (_, true) => handler.layer(middleware::from_fn(check_session)),
            (true, false) => handler.layer(middleware::from_fn(check)),
            (false, false) => handler,
        };
        (self.path, handler)
    }
}

/// Refuses a query with a parameter that means nothing: what it was to narrow would be answered whole.
async fn check_query(State(known): State<Arc<KnownQuery>>, request: Request, next: Next) -> Response {
    match known.refusal(request.uri()) {
        None => next.run(request).await,
        Some(problem) => problem.into_response(),
    }
}

/// Refuses callers who are not signed in.
async fn check(Extension(visit): Extension<PortalContext>, request: Request, next: Next) -> Response {
    match visit.viewer.developer {
        Some(_) => next.run(request).await,
        None => Problem::new(StatusCode::UNAUTHORIZED, "sign in first").into_response(),
    }
}

/// The same, and refuses programs.
async fn check_session(Extension(visit): Extension<PortalContext>, request: Request, next: Next) -> Response {
    match visit.token {
        Some(_) => {
            let detail = "a personal token may not do this: sign in to the portal";
            Problem::forbidden(detail).into_response()
        }
        None => check(Extension(visit), request, next).await,
    }
}

/// The state that handlers get.
pub type Shared = State<Arc<Portals>>;
