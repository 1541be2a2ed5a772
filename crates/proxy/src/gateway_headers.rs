//! The headers that the gateway adds by itself, to requests and to answers.

use crate::serve::RequestContext;
use std::time::Instant;
use weir_model::GatewayHeaderValue;
use weir_snapshot::GatewayHeader;

impl RequestContext<'_> {
    /// Writes the headers that the gateway adds by itself.
    pub fn write_gateway_headers(&mut self, headers: &[GatewayHeader], out: &mut Vec<u8>) {
        for header in headers {
            let upstream = self.report.upstream_time;
            let gateway = || {
                let until = self.report.answered_at.unwrap_or_else(Instant::now);
                until
                    .saturating_duration_since(self.started())
                    .saturating_sub(upstream.unwrap_or_default())
            };
            let millis = match &header.value {
                GatewayHeaderValue::Text(_) => {
                    out.extend_from_slice(&header.line);
                    continue;
                }
                GatewayHeaderValue::TextIfAbsent(_) => {
                    if !self.exchange.response.headers.contains(&header.name) {
                        out.extend_from_slice(&header.line);
                    }
                    continue;
                }
                GatewayHeaderValue::RequestId => {
                    push_rest(out, &header.line, self.exchange.ensure_request_id().as_bytes());
                    continue;
                }
                GatewayHeaderValue::UpstreamStatus => {
                    self.write_upstream_status(&header.line, out);
                    continue;
                }
                GatewayHeaderValue::UpstreamErrorStatus => {
                    if self.report.answered.or(self.report.tries.last().copied()) >= Some(500) {
                        self.write_upstream_status(&header.line, out);
                    }
                    continue;
                }
                GatewayHeaderValue::UpstreamLatencyMs => upstream,
                GatewayHeaderValue::GatewayLatencyMs => upstream.map(|_| gateway()),
                GatewayHeaderValue::ResponseLatencyMs if upstream.is_none() => Some(gateway()),
                GatewayHeaderValue::ResponseLatencyMs => None,
            };
            if let Some(millis) = millis {
                push_rest(
                    out,
                    &header.line,
                    itoa::Buffer::new().format(millis.as_millis() as u64).as_bytes(),
                );
            }
        }
    }

    fn write_upstream_status(&self, line: &[u8], out: &mut Vec<u8>) {
        let statuses: Vec<String> = self
            .report
            .tries
            .iter()
            .chain(&self.report.answered)
            .map(u16::to_string)
            .collect();
        if !statuses.is_empty() {
            push_rest(out, line, statuses.join(", ").as_bytes());
        }
    }
}

/// Writes what is left of a header line after its beginning.
fn push_rest(out: &mut Vec<u8>, line: &[u8], value: &[u8]) {
    out.extend_from_slice(line);
    out.extend_from_slice(value);
    out.extend_from_slice(b"\r\n");
}
