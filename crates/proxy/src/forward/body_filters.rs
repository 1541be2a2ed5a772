//! Passing on the body of a response that filters work on.

use super::pump::Background;
use crate::serve::RequestContext;
use std::io;
use weir_http1::{Framing, chunked};
use weir_plugin::Headers;

impl RequestContext<'_> {
    /// Passes on what filters make of a piece.
    pub async fn send_filtered(
        &mut self,
        data: &[u8],
        framing: Framing,
        out: &mut Vec<u8>,
        watch: &mut Background<'_>,
    ) -> io::Result<()> {
        let mut passed = self.worker.runtime.buffers.acquire_output();
        self.exchange.response.body_filters.piece(data, &mut passed);
        let sent = match passed.is_empty() {
            true => Ok(()),
            false => self.send_data(&passed, framing, out, watch).await,
        };
        self.worker.runtime.buffers.release_output(passed);
        sent
    }

    /// Takes out of the filters what can go on before more comes.
    pub fn pause_filters(&mut self, framing: Framing, out: &mut Vec<u8>) {
        if !self.exchange.response.body_filters.is_empty() {
            let mut passed = Vec::new();
            self.exchange.response.body_filters.pause(&mut passed);
            put(&passed, framing, out);
        }
    }

    /// Ends the filters' work with the body, and takes out of the trailers what they keep.
    pub fn end_filters(&mut self, framing: Framing, trailers: &mut Vec<u8>, out: &mut Vec<u8>) {
        if !self.exchange.response.body_filters.is_empty() {
            self.filter_trailers(trailers);
            let mut passed = Vec::new();
            self.exchange.response.body_filters.end(&mut passed);
            put(&passed, framing, out);
        }
    }

    /// Shows the filters the trailers, which are header lines.
    pub(super) fn filter_trailers(&mut self, trailers: &mut Vec<u8>) {
        let mut fields = Headers::default();
        for line in trailers.split(|byte| *byte == b'\n') {
            if let Some(colon) = memchr::memchr(b':', line) {
                fields.append(&line[..colon], line[colon + 1..].trim_ascii());
            }
        }
        self.exchange.response.body_filters.trailers(&mut fields);
        trailers.clear();
        fields.write_lines(trailers);
    }
}

/// Appends data to what is to be written.
fn put(data: &[u8], framing: Framing, out: &mut Vec<u8>) {
    match framing {
        // The message has no body, whatever filters have at its end.
        Framing::None => {}
        Framing::Chunked if !data.is_empty() => {
            chunked::write_size_line(data.len(), out);
            out.extend_from_slice(data);
            out.extend_from_slice(b"\r\n");
        }
        _ => out.extend_from_slice(data),
    }
}
