//! The service of gRPC that the examples call: it knows one thing of every book.

use std::convert::Infallible;
use std::future::Future;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::net::TcpListener;
use tonic::body::Body;
use tonic::server::{Grpc, NamedService};
use tonic::{Request, Response, Status};
use tonic_prost::ProstCodec;
use tower::{Service, service_fn};

#[derive(Clone, PartialEq, prost::Message)]
struct Book {
    #[prost(string, tag = "1")]
    id: String,
    #[prost(int64, tag = "2")]
    pages: i64,
}

#[derive(Clone)]
struct Books;

impl NamedService for Books {
    const NAME: &'static str = "shop.Books";
}

async fn get(request: Request<Book>) -> Result<Response<Book>, Status> {
    let id = request.into_inner().id;
    match id.as_str() {
        "0" => Err(Status::not_found("no such book")),
        _ => Ok(Response::new(Book { id, pages: 312 })),
    }
}

impl Service<http::Request<Body>> for Books {
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        Box::pin(async move {
            let mut grpc = Grpc::new(ProstCodec::<Book, Book>::default());
            Ok(match request.uri().path() {
                "/shop.Books/Get" => grpc.unary(service_fn(get), request).await,
                _ => Status::unimplemented("no such method").into_http(),
            })
        })
    }
}

/// Starts the service on a thread of its own.
pub fn start() -> SocketAddr {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    listener.set_nonblocking(true).expect("set");
    let address = listener.local_addr().expect("bound");
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.expect("a runtime").block_on(async move {
            let listener = TcpListener::from_std(listener).expect("a listener");
            let incoming = tonic::transport::server::TcpIncoming::from(listener);
            let server = tonic::transport::Server::builder().add_service(Books);
            server.serve_with_incoming(incoming).await.expect("it serves");
        });
    });
    address
}
