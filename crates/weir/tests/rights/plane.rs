//! The Admin APIs of all dialects over one store, with users, and calls to them.

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::ConnectInfo;
use axum::http::Request;
use serde_json::Value;
use std::net::SocketAddr;
use std::sync::Arc;
use tower::ServiceExt as _;
use weir_control::access::{Audit, Guard, Right, Role, TokenHash, User, Users, key_of, protect};
use weir_control::api::{Api, ApiOptions};
use weir_dialect::{
    AdminApi, AdminContext, Dialect, DialectName, DialectSet, ForeignRoutes, Node, RouteOwner,
};
use weir_model::{RouteMatch, StreamRoute};
use weir_store::Store;
use weir_store::memory::MemoryStore;

/// No gateway serves anything.
#[derive(Debug)]
struct NothingElse;

impl ForeignRoutes for NothingElse {
    fn any(&self, _: DialectName, _: &mut dyn FnMut(&[RouteMatch], RouteOwner<'_>) -> bool) -> bool {
        false
    }

    fn any_stream(&self, _: DialectName, _: &mut dyn FnMut(&StreamRoute, RouteOwner<'_>) -> bool) -> bool {
        false
    }

    fn any_server_names(&self, _: DialectName, _: &mut dyn FnMut(&[String], &str) -> bool) -> bool {
        false
    }

    fn are_known(&self) -> bool {
        true
    }
}

/// The dialects over one store.
pub struct Plane {
    kong: Router,
    apisix: Router,
    native: Router,
    users: Users,
    /// What they share.
    pub store: Arc<dyn Store>,
}

impl Plane {
    pub async fn new() -> Self {
        Self::beside(Arc::new(NothingElse)).await
    }

    /// A plane whose gateway serves these routes.
    pub async fn beside(routes: Arc<dyn ForeignRoutes>) -> Self {
        let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
        let users = Users::default();
        let guarded = |dialect: Arc<dyn Dialect>, router| {
            let guard = Guard::new(dialect, users.clone(), Audit::default());
            protect(router, guard)
        };
        let native: Arc<dyn Dialect> = Arc::new(weir_native::NativeDialect);
        let kong: Arc<dyn Dialect> = Arc::new(weir_kong::KongDialect {
            has_config: true,
            ..weir_kong::KongDialect::default()
        });
        let apisix: Arc<dyn Dialect> = Arc::new(weir_apisix::ApisixDialect::default());
        let options = ApiOptions {
            users: users.clone(),
            dialects: DialectSet::new(vec![Arc::clone(&kong), Arc::clone(&apisix), Arc::clone(&native)]),
            ..ApiOptions::default()
        };
        let api = Api::open(Arc::clone(&store), options).await.expect("opened");
        let context = AdminContext {
            store: Arc::clone(&store),
            declared: None,
            routes,
            node: Node::default(),
        };
        let open = async |dialect: &Arc<dyn Dialect>| -> AdminApi {
            let opening = dialect.open_admin(context.clone()).expect("an Admin API");
            opening.await.expect("opened")
        };
        let (of_kong, of_apisix) = (open(&kong).await.router, open(&apisix).await.router);
        Self {
            kong: guarded(kong, of_kong),
            apisix: guarded(apisix, of_apisix),
            native: guarded(native, api.router()),
            users,
            store,
        }
    }

    /// A user whose token is the name.
    pub fn add(&self, name: &str, rights: &[(&str, Role)]) {
        let right = |(workspace, role): &(&str, Role)| Right::in_workspace(workspace, *role);
        let user = User {
            name: name.to_owned(),
            token_hash: Some(TokenHash::of(name)),
            password_hash: None,
            rights: rights.iter().map(right).collect(),
            created: 0,
        };
        let value = serde_json::to_vec(&user).expect("JSON");
        self.users.apply(&key_of(name).expect("a key"), Some(&value));
    }

    /// Status, the header `Warning` and the body of an answer.
    pub async fn call(&self, who: &str, method: &str, path: &str, body: &Value) -> (u16, String, String) {
        let router = match path {
            path if path.starts_with("/apisix/") || path.starts_with("/v1/") => &self.apisix,
            path if path.starts_with("/api/") => &self.native,
            _ => &self.kong,
        };
        let peer: SocketAddr = "127.0.0.1:1".parse().expect("an address");
        let body = match body {
            Value::Null => String::new(),
            body => body.to_string(),
        };
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header("content-type", "application/json")
            .header("authorization", format!("Bearer {who}"))
            .header("x-api-key", who)
            .extension(ConnectInfo(peer))
            .body(Body::from(body))
            .expect("a request");
        let answer = router.clone().oneshot(request).await.expect("an answer");
        let status = answer.status().as_u16();
        let warning = answer
            .headers()
            .get("warning")
            .map(|it| it.to_str().expect("text").to_owned());
        let body = to_bytes(answer.into_body(), usize::MAX).await.expect("a body");
        (
            status,
            warning.unwrap_or_default(),
            String::from_utf8_lossy(&body).into_owned(),
        )
    }

    pub async fn expect(&self, who: &str, method: &str, path: &str, body: &Value) -> String {
        let (status, _, answer) = self.call(who, method, path, body).await;
        assert!(status < 300, "{who} {method} {path} {body}: {status} {answer}");
        answer
    }
}

/// A certificate with its key.
pub fn certificate() -> (String, String) {
    let key = rcgen::KeyPair::generate().expect("a key");
    let params = rcgen::CertificateParams::new(["a.test".to_owned()]).expect("a name");
    (
        params.self_signed(&key).expect("signed").pem(),
        key.serialize_pem(),
    )
}
