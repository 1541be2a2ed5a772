//! A server of gRPC on a thread of its own. What it serves is the tests' own.

use std::convert::Infallible;
use std::future::Future;
use std::marker::PhantomData;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::net::TcpListener;
use tonic::body::Body;
use tonic::server::NamedService;
use tower::Service;

/// What answers the calls of a service.
pub trait Answers: NamedService + Clone + Send + Sync + 'static {
    fn answer(request: http::Request<Body>) -> impl Future<Output = http::Response<Body>> + Send;
}

#[derive(Clone)]
struct RawService<S>(PhantomData<S>);

impl<S: Answers> NamedService for RawService<S> {
    const NAME: &'static str = S::NAME;
}

impl<S: Answers> Service<http::Request<Body>> for RawService<S> {
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        Box::pin(async move { Ok(S::answer(request).await) })
    }
}

/// Serves on a port that the kernel gives, until the test ends.
pub fn serve<S: Answers>() -> SocketAddr {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    listener.set_nonblocking(true).expect("set");
    let address = listener.local_addr().expect("bound");
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.expect("a runtime").block_on(async move {
            let listener = TcpListener::from_std(listener).expect("a listener");
            let incoming = tonic::transport::server::TcpIncoming::from(listener);
            let server = tonic::transport::Server::builder().add_service(RawService::<S>(PhantomData));
            server.serve_with_incoming(incoming).await.expect("it serves");
        });
    });
    address
}
