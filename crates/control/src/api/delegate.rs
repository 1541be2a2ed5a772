//! Calls of the API from inside of the process, for people who have no user here: a developer portal acts for its
//! developers, with the rights that it says, and the history has their names.

use super::{Api, Problem};
use crate::access::{Caller, Right, User};
use crate::identity_sources::IdentitySources;
use axum::Router;
use axum::body::Body;
use axum::http::{HeaderValue, Method, Request, StatusCode, header};
use http_body_util::BodyExt;
use serde_json::Value;
use std::sync::Arc;
use tower::ServiceExt;

/// Makes calls from inside. Cheap to share.
#[derive(Clone)]
pub struct Delegate {
    api: Arc<Api>,
    router: Router,
    rights: Vec<Right>,
}

impl Delegate {
    /// With these rights.
    pub fn new(api: &Arc<Api>, rights: Vec<Right>) -> Self {
        Self {
            api: Arc::clone(api),
            router: api.router(),
            rights,
        }
    }

    /// The sources of a caller's identity at the gateway.
    ///
    /// # Errors
    /// The configuration cannot be read.
    pub async fn identity_sources(&self) -> Result<Arc<IdentitySources>, Problem> {
        self.api.identity_sources().await
    }

    /// Makes a call. `who` is the name for the history.
    ///
    /// # Errors
    /// The API's refusal, in its words.
    pub async fn call(
        &self,
        who: &str,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> Result<Value, Problem> {
        self.call_if(who, (method, path), body, None).await
    }

    /// Makes a call; a write only of the version that `If-Match` names.
    ///
    /// # Errors
    /// The API's refusal, in its words.
    pub async fn call_if(
        &self,
        who: &str,
        (method, path): (Method, &str),
        body: Option<&Value>,
        if_match: Option<&HeaderValue>,
    ) -> Result<Value, Problem> {
        let body = body.map_or_else(Body::empty, |body| Body::from(body.to_string()));
        let mut request = Request::new(body);
        *request.method_mut() = method;
        *request.uri_mut() = path
            .parse()
            .map_err(|_| Problem::bad(format!("'{path}' is not a valid path")))?;
        let json = HeaderValue::from_static("application/json");
        request.headers_mut().insert(header::CONTENT_TYPE, json);
        if let Some(version) = if_match {
            request.headers_mut().insert(header::IF_MATCH, version.clone());
        }
        let user = User {
            name: who.to_owned(),
            token_hash: None,
            password_hash: None,
            rights: self.rights.clone(),
            created: 0,
        };
        request.extensions_mut().insert(Caller::User(Arc::new(user)));
        let answer = match self.router.clone().oneshot(request).await {
            Ok(answer) => answer,
            Err(never) => match never {},
        };
        let status = answer.status();
        let body = answer.into_body().collect().await;
        let body = body.map_err(|error| Problem::unreadable(error.to_string()))?;
        let value: Value = match body.to_bytes() {
            bytes if bytes.is_empty() => Value::Null,
            bytes => {
                serde_json::from_slice(&bytes).map_err(|error| Problem::unreadable(error.to_string()))?
            }
        };
        match status.is_success() {
            true => Ok(value),
            false => Err(problem(status, &value)),
        }
    }
}

fn problem(status: StatusCode, value: &Value) -> Problem {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let errors = value["errors"].as_array().into_iter().flatten();
    let errors = errors.map(|it| (text(&it["path"]), text(&it["message"])));
    Problem::listing(status, text(&value["detail"]), errors.collect())
}
