//! Translates the end of a failed gRPC call into HTTP.

use super::{ErrorBody, Errors};
use crate::grpc_status::{GrpcStatus, to_http};
use crate::protobuf::{JsonForm, write_message};
use base64::Engine as _;
use base64::alphabet::STANDARD as ALPHABET;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use prost::Message as _;
use prost_reflect::{DescriptorPool, DynamicMessage};
use serde_json::{Map, Value, json};

const LENIENT: GeneralPurposeConfig =
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent);
/// Fields of gRPC in binary may lack their padding.
const BASE64: GeneralPurpose = GeneralPurpose::new(&ALPHABET, LENIENT);
/// The most details that are written.
const MAX_DETAILS: usize = 100;

/// `google.rpc.Status`, as `grpc-status-details-bin` holds it.
#[derive(Clone, PartialEq, prost::Message)]
struct Status {
    #[prost(int32, tag = "1")]
    code: i32,
    #[prost(string, tag = "2")]
    message: String,
    #[prost(message, repeated, tag = "3")]
    details: Vec<Detail>,
}

/// `google.protobuf.Any`.
#[derive(Clone, PartialEq, prost::Message)]
struct Detail {
    #[prost(string, tag = "1")]
    type_url: String,
    #[prost(bytes = "vec", tag = "2")]
    value: Vec<u8>,
}

impl Errors {
    /// The status of the answer.
    pub(super) fn status(&self, code: u16) -> u16 {
        match to_http(code) {
            Some(501) => self.unimplemented_status,
            Some(status) => status,
            None => self.unknown_status,
        }
    }

    /// The body of the answer.
    pub(super) fn body(&self, ended: &GrpcStatus, pool: &DescriptorPool, form: &JsonForm) -> Vec<u8> {
        let details = ended.details.as_deref();
        match self.body {
            ErrorBody::None => Vec::new(),
            ErrorBody::Status => {
                let decoded = details.and_then(|it| decode(it).ok());
                let details = decoded.map_or_else(Vec::new, |status| status.details);
                let details = details.iter().take(MAX_DETAILS);
                let details: Vec<Value> = details.map(|it| with_type(it, pool, form)).collect();
                let status_json = json!({"code": ended.code, "message": ended.message, "details": details});
                status_json.to_string().into_bytes()
            }
            ErrorBody::Details => match details.map(|it| self.details_only(it, pool, form)) {
                None => Vec::new(),
                Some(Ok(body)) => body.to_string().into_bytes(),
                Some(Err(message)) => message.as_bytes().to_vec(),
            },
        }
    }

    /// The details alone, in a member `error`.
    fn details_only(
        &self,
        text: &[u8],
        pool: &DescriptorPool,
        form: &JsonForm,
    ) -> Result<Value, &'static str> {
        let status = decode(text)?;
        let kind = match &self.detail_type {
            Some(name) => pool.get_message_by_name(name.trim_start_matches('.')),
            None => None,
        };
        let failed = "failed to call pb.decode to decode details in grpc-status-details-bin";
        let mut details = Vec::new();
        for detail in status.details.iter().take(MAX_DETAILS) {
            details.push(match (&kind, &self.detail_type) {
                (None, None) => {
                    let value = String::from_utf8_lossy(&detail.value);
                    json!({"type_url": detail.type_url, "value": value})
                }
                (Some(kind), _) => {
                    let message = DynamicMessage::decode(kind.clone(), detail.value.as_slice());
                    fields(&message.map_err(|_| failed)?, form)
                }
                (None, Some(_)) => return Err(failed),
            });
        }
        let mut error = Map::new();
        error.insert("code".to_owned(), json!(status.code));
        error.insert("message".to_owned(), json!(status.message));
        error.insert("details".to_owned(), Value::Array(details));
        Ok(json!({ "error": error }))
    }
}

fn decode(text: &[u8]) -> Result<Status, &'static str> {
    let bytes = BASE64
        .decode(text)
        .map_err(|_| "grpc-status-details-bin is not base64 format")?;
    Status::decode(bytes.as_slice()).map_err(|_| "failed to call pb.decode to decode grpc-status-details-bin")
}

fn fields(message: &DynamicMessage, form: &JsonForm) -> Value {
    let mut json = Vec::new();
    write_message(message, form, &mut json);
    serde_json::from_slice(&json).unwrap_or_default()
}

/// A detail with its type beside its fields; of a type that the definitions lack, its bytes.
fn with_type(detail: &Detail, pool: &DescriptorPool, form: &JsonForm) -> Value {
    let name = detail.type_url.rsplit('/').next().unwrap_or_default();
    let kind = pool.get_message_by_name(name);
    let message = kind.and_then(|kind| DynamicMessage::decode(kind, detail.value.as_slice()).ok());
    let mut members = Map::new();
    members.insert("@type".to_owned(), json!(detail.type_url));
    match message.map(|message| fields(&message, form)) {
        Some(Value::Object(fields)) => members.extend(fields),
        Some(value) => {
            members.insert("value".to_owned(), value);
        }
        None => {
            members.insert("value".to_owned(), json!(BASE64.encode(&detail.value)));
        }
    }
    Value::Object(members)
}
