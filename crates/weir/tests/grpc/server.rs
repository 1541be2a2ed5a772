//! A gRPC server: one service that greets, by tonic.

use crate::grpc::{Answers, serve};
use std::net::SocketAddr;
use std::pin::Pin;
use tonic::body::Body;
use tonic::codegen::tokio_stream;
use tonic::server::{Grpc, NamedService};
use tonic::{Request, Response, Status};
use tonic_prost::ProstCodec;
use tower::service_fn;

/// The service's definition, for the gateway.
pub const PROTO: &str = r#"syntax = "proto3";
package hello;
import "google/api/annotations.proto";
import "sub/messages.proto";
service HelloService {
  rpc SayHello(HelloRequest) returns (HelloResponse) {
    option (google.api.http) = {
      get: "/v1/hello/{greeting}"
      additional_bindings { post: "/v1/hello" body: "*" }
    };
  }
  rpc LotsOfReplies(HelloRequest) returns (stream HelloResponse) {
    option (google.api.http) = { get: "/v1/lots/{greeting}" };
  }
}
"#;

/// What it imports.
pub const MESSAGES: &str = r#"syntax = "proto3";
package hello;
message HelloRequest { string greeting = 1; int64 times = 2; }
message HelloResponse { string reply = 1; int64 times = 2; }
"#;

#[derive(Clone, PartialEq, prost::Message)]
pub struct HelloRequest {
    #[prost(string, tag = "1")]
    pub greeting: String,
    #[prost(int64, tag = "2")]
    pub times: i64,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct HelloResponse {
    #[prost(string, tag = "1")]
    pub reply: String,
    #[prost(int64, tag = "2")]
    pub times: i64,
}

#[derive(Clone)]
struct Greeter;

impl NamedService for Greeter {
    const NAME: &'static str = "hello.HelloService";
}

async fn greet(request: Request<HelloRequest>) -> Result<Response<HelloResponse>, Status> {
    let request = request.into_inner();
    match request.greeting.as_str() {
        "stranger" => Err(Status::not_found("no such greeting: ä")),
        greeting => Ok(Response::new(HelloResponse {
            reply: format!("hello {greeting}"),
            times: request.times,
        })),
    }
}

type Replies = Pin<Box<dyn tokio_stream::Stream<Item = Result<HelloResponse, Status>> + Send>>;

async fn greet_often(request: Request<HelloRequest>) -> Result<Response<Replies>, Status> {
    let greeting = request.into_inner().greeting;
    let reply = move |times| HelloResponse {
        reply: format!("hello {greeting}"),
        times,
    };
    let end = Err(Status::resource_exhausted("enough"));
    let replies = vec![Ok(reply(1)), Ok(reply(2)), end];
    Ok(Response::new(Box::pin(tokio_stream::iter(replies))))
}

impl Answers for Greeter {
    async fn answer(request: http::Request<Body>) -> http::Response<Body> {
        let codec = ProstCodec::<HelloResponse, HelloRequest>::default();
        let mut grpc = Grpc::new(codec);
        match request.uri().path() {
            "/hello.HelloService/SayHello" => grpc.unary(service_fn(greet), request).await,
            "/hello.HelloService/LotsOfReplies" => {
                grpc.server_streaming(service_fn(greet_often), request).await
            }
            _ => Status::unimplemented("no such method").into_http(),
        }
    }
}

/// Starts the server on a thread of its own.
pub fn start() -> SocketAddr {
    serve::<Greeter>()
}
