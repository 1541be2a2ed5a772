//! The header `sw8`, version 3 of SkyWalking's protocol: the call's origin, in eight parts separated by `-`, with texts
//! in base64. It is not what the server gets.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

/// The longest header that is read.
const MAX_HEADER: usize = 2048;

/// The calling span, as its service describes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caller {
    /// The trace.
    pub trace_id: String,
    /// The segment that the span belongs to.
    pub segment_id: String,
    /// The span's number in its segment.
    pub span_id: u32,
    /// The service.
    pub service: String,
    /// Its instance.
    pub instance: String,
    /// What the service was called for.
    pub endpoint: String,
    /// The address that it calls.
    pub peer: String,
}

impl Caller {
    /// Reads a header; `None` if it is empty or not well-formed.
    pub fn read(header: &[u8]) -> Option<Self> {
        let header = std::str::from_utf8(header)
            .ok()
            .filter(|it| it.len() <= MAX_HEADER)?;
        let parts: Vec<&str> = header.split('-').collect();
        let [
            _,
            trace_id,
            segment_id,
            span_id,
            service,
            instance,
            endpoint,
            peer,
        ] = parts.as_slice()
        else {
            return None;
        };
        let text = |part: &str| String::from_utf8(STANDARD.decode(part).ok()?).ok();
        let id = |part: &str| text(part).filter(|id| !id.is_empty());
        Some(Self {
            trace_id: id(trace_id)?,
            segment_id: id(segment_id)?,
            span_id: span_id.parse().ok()?,
            service: text(service)?,
            instance: text(instance)?,
            endpoint: text(endpoint)?,
            peer: text(peer)?,
        })
    }

    /// The header.
    pub fn header(&self) -> String {
        let text = |part: &str| STANDARD.encode(part);
        format!(
            "1-{}-{}-{}-{}-{}-{}-{}",
            text(&self.trace_id),
            text(&self.segment_id),
            self.span_id,
            text(&self.service),
            text(&self.instance),
            text(&self.endpoint),
            text(&self.peer)
        )
    }

    /// What a segment says of it.
    pub fn reference(&self) -> Value {
        json!({
            "refType": "CrossProcess",
            "traceId": self.trace_id,
            "parentTraceSegmentId": self.segment_id,
            "parentSpanId": self.span_id,
            "parentService": self.service,
            "parentServiceInstance": self.instance,
            "parentEndpoint": self.endpoint,
            "networkAddressUsedAtPeer": self.peer,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of the protocol's description.
    const EXAMPLE: &str = "1-TRACEID-SEGMENTID-3-PARENT_SERVICE-PARENT_INSTANCE-PARENT_ENDPOINT-IPPORT";

    fn caller() -> Caller {
        Caller {
            trace_id: "t-1".into(),
            segment_id: "s.2".into(),
            span_id: 3,
            service: "shop".into(),
            instance: "shop@h".into(),
            endpoint: "/a".into(),
            peer: "10.0.0.1:80".into(),
        }
    }

    #[test]
    fn headers_are_written_and_read_back() {
        let header = caller().header();
        assert_eq!(header, "1-dC0x-cy4y-3-c2hvcA==-c2hvcEBo-L2E=-MTAuMC4wLjE6ODA=");
        assert_eq!(Caller::read(header.as_bytes()), Some(caller()));
    }

    #[test]
    fn what_is_not_well_formed_is_none() {
        let long = format!(
            "1-{}-cy4y-3-c2hvcA==-c2hvcEBo-L2E=-MTAuMC4wLjE6ODA=",
            "dC0x".repeat(600)
        );
        for header in [
            "",
            "1",
            EXAMPLE,
            "1-dC0x-cy4y-3-c2hvcA==-c2hvcEBo-L2E=",
            "1-dC0x-cy4y-3-c2hvcA==-c2hvcEBo-L2E=-MTAuMC4wLjE6ODA=-",
            "1--cy4y-3-c2hvcA==-c2hvcEBo-L2E=-MTAuMC4wLjE6ODA=",
            "1-dC0x-cy4y--3-c2hvcA==-c2hvcEBo-L2E=-MTAuMC4wLjE6ODA=",
            "1-dC0x-cy4y-x-c2hvcA==-c2hvcEBo-L2E=-MTAuMC4wLjE6ODA=",
            "1-dC0x-cy4y-3-/w==-c2hvcEBo-L2E=-MTAuMC4wLjE6ODA=",
            long.as_str(),
        ] {
            assert_eq!(Caller::read(header.as_bytes()), None, "{header}");
        }
    }
}
