//! The service of gRPC that the examples call: it knows one thing of every book.

use crate::grpc::{Answers, serve};
use std::net::SocketAddr;
use tonic::body::Body;
use tonic::server::{Grpc, NamedService};
use tonic::{Request, Response, Status};
use tonic_prost::ProstCodec;
use tower::service_fn;

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

impl Answers for Books {
    async fn answer(request: http::Request<Body>) -> http::Response<Body> {
        let mut grpc = Grpc::new(ProstCodec::<Book, Book>::default());
        match request.uri().path() {
            "/shop.Books/Get" => grpc.unary(service_fn(get), request).await,
            _ => Status::unimplemented("no such method").into_http(),
        }
    }
}

/// Starts the service on a thread of its own.
pub fn start() -> SocketAddr {
    serve::<Books>()
}
