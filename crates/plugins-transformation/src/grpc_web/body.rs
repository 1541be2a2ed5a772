//! The body of an answer on its way to a browser: messages perhaps as JSON, all of it perhaps in Base64, and the
//! trailers as its last message.

use super::Trailers;
use super::text::Encoder;
use crate::grpc_frames::{self, Unframer};
use crate::grpc_status::{self, GrpcStatus};
use crate::protobuf::{JsonForm, write_message};
use prost_reflect::{DynamicMessage, MessageDescriptor};
use weir_plugin::{BodyFilter, Headers};

/// The flag of the message that holds the trailers.
const TRAILERS: u8 = 0x80;

/// Messages of an answer that become JSON.
pub(super) struct JsonBody {
    pub(super) output: MessageDescriptor,
    pub(super) form: JsonForm,
    pub(super) unframer: Unframer,
    pub(super) is_bare: bool,
}

impl JsonBody {
    /// Says whether the messages could be read.
    fn piece(&mut self, data: &[u8], out: &mut Vec<u8>) -> bool {
        let Self {
            output,
            form,
            unframer,
            is_bare,
        } = self;
        let mut is_good = true;
        let read = unframer.piece(data, |message| {
            let Ok(message) = DynamicMessage::decode(output.clone(), message) else {
                is_good = false;
                return;
            };
            if *is_bare {
                write_message(&message, form, out);
            } else {
                let mut json = Vec::new();
                write_message(&message, form, &mut json);
                grpc_frames::write(0, &json, out);
            }
        });
        is_good && read.is_ok()
    }
}

/// The body of an answer on its way to a browser.
pub(super) struct WebBody {
    pub(super) encoder: Option<Encoder>,
    pub(super) json: Option<JsonBody>,
    pub(super) has_trailers: bool,
    pub(super) wanted: Trailers,
    /// The trailers, as they stand in the last message.
    pub(super) lines: Vec<u8>,
    /// The messages cannot be read; the trailers report it.
    pub(super) is_broken: bool,
}

impl WebBody {
    fn put(&mut self, data: &[u8], out: &mut Vec<u8>) {
        match &mut self.encoder {
            Some(encoder) => encoder.piece(data, out),
            None => out.extend_from_slice(data),
        }
    }

    fn write_trailers(&mut self, ended: &GrpcStatus) {
        self.lines.clear();
        let text = format!("grpc-status:{}\r\ngrpc-message:{}\r\n", ended.code, ended.message);
        self.lines.extend_from_slice(text.as_bytes());
    }
}

impl BodyFilter for WebBody {
    fn piece(&mut self, data: &[u8], out: &mut Vec<u8>) {
        let Some(json) = &mut self.json else {
            return self.put(data, out);
        };
        if !self.is_broken {
            let mut made = Vec::new();
            self.is_broken = !json.piece(data, &mut made);
            self.put(&made, out);
        }
    }

    fn pause(&mut self, out: &mut Vec<u8>) {
        if let Some(encoder) = &mut self.encoder {
            encoder.flush(out);
        }
    }

    fn trailers(&mut self, trailers: &mut Headers) {
        if !self.has_trailers {
            trailers.clear();
            return;
        }
        for name in [&b"grpc-status"[..], b"grpc-message"] {
            let value = trailers.get(name);
            if value.is_some() || trailers.contains(b"grpc-status") {
                self.lines.extend_from_slice(&[name, b":"].concat());
                self.lines.extend_from_slice(value.unwrap_or_default());
                self.lines.extend_from_slice(b"\r\n");
            }
        }
        let is_status = |name: &[u8]| {
            [&b"grpc-status"[..], b"grpc-message"]
                .iter()
                .any(|known| name.eq_ignore_ascii_case(known))
        };
        if self.wanted == Trailers::All {
            for field in trailers.iter().filter(|field| !is_status(field.name)) {
                self.lines.extend_from_slice(&field.name.to_ascii_lowercase());
                self.lines.push(b':');
                self.lines.extend_from_slice(field.value);
                self.lines.extend_from_slice(b"\r\n");
            }
        }
        trailers.clear();
    }

    fn end(&mut self, out: &mut Vec<u8>) {
        self.pause(out);
        if !self.has_trailers {
            return;
        }
        if self.is_broken {
            let message = "the answer cannot be written as JSON";
            self.write_trailers(&GrpcStatus::new(grpc_status::INTERNAL, message));
        } else if self.lines.is_empty() {
            self.write_trailers(&GrpcStatus::new(
                grpc_status::UNKNOWN,
                "upstream grpc status not received",
            ));
        }
        let mut last = Vec::with_capacity(self.lines.len() + 5);
        grpc_frames::write(TRAILERS, &self.lines, &mut last);
        self.put(&last, out);
        self.pause(out);
    }
}
