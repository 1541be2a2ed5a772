//! The definitions of `google.api.http`, by which methods of gRPC say which HTTP calls they answer. What Protocol
//! Buffers themselves define comes with the compiler.

/// The text of a file that everybody imports.
pub(super) fn text_of(name: &str) -> Option<&'static str> {
    match name {
        "google/api/annotations.proto" => Some(ANNOTATIONS),
        "google/api/http.proto" => Some(HTTP),
        _ => None,
    }
}

const ANNOTATIONS: &str = r#"syntax = "proto3";
package google.api;
import "google/api/http.proto";
import "google/protobuf/descriptor.proto";
extend google.protobuf.MethodOptions {
  HttpRule http = 72295728;
}
"#;

const HTTP: &str = r#"syntax = "proto3";
package google.api;
message Http {
  repeated HttpRule rules = 1;
  bool fully_decode_reserved_expansion = 2;
}
message HttpRule {
  string selector = 1;
  oneof pattern {
    string get = 2;
    string put = 3;
    string post = 4;
    string delete = 5;
    string patch = 6;
    CustomHttpPattern custom = 8;
  }
  string body = 7;
  string response_body = 12;
  repeated HttpRule additional_bindings = 11;
}
message CustomHttpPattern {
  string kind = 1;
  string path = 2;
}
"#;
