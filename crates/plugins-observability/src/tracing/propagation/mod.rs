//! Trace headers: reading a call's trace context, and forwarding it to the upstream. There is one module per family of
//! formats.
//!
//! Well-formed values of clients are trusted: ids are numbers, never texts that could break out of a header. Headers
//! that carry baggage beside the ids pass unchanged.

mod b3;
mod clouds;
mod opentracing;
mod w3c;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weir_plugin::{Headers, TraceContext};

/// The form of trace headers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Format {
    /// W3C Trace Context: `traceparent`; `tracestate` passes unchanged if the trace continues.
    W3c,
    /// Zipkin's: `X-B3-TraceId` and its kin. Reading it, `b3` is read as well.
    B3,
    /// Zipkin's in one header: `b3`.
    B3Single,
    /// Jaeger's: `uber-trace-id`.
    Jaeger,
    /// OpenTracing's: `ot-tracer-traceid` and its kin.
    Ot,
    /// Amazon's: `X-Amzn-Trace-Id`.
    Aws,
    /// Google's: `X-Cloud-Trace-Context`.
    Gcp,
    /// Datadog's: `x-datadog-trace-id` and its kin.
    Datadog,
}

/// The format of the trace headers for the upstream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Inject {
    /// The format that the client used, or else the default format.
    Preserve,
    /// In a form.
    #[serde(untagged)]
    Form(Format),
}

/// The content of a request's trace headers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Extracted {
    /// The trace; 0 if the headers have none.
    pub trace_id: u128,
    /// The span of the caller; 0: none.
    pub span_id: u64,
    /// The parent of that span; 0 if the headers have none.
    pub parent_id: u64,
    /// Whether the caller has decided to have the call sampled, or not to.
    pub sampled: Option<bool>,
    /// Whether the call is to be traced in any case.
    pub debug: bool,
    /// The trace's id has 64 bits only.
    pub is_short: bool,
    /// The format in which this was sent.
    pub format: Option<Format>,
}

impl Extracted {
    /// Nothing without an id of a trace or a decision.
    fn of(self, format: Format) -> Option<Self> {
        let tells = self.trace_id != 0 || self.sampled.is_some() || self.debug;
        tells.then_some(Self {
            format: Some(format),
            ..self
        })
    }
}

/// The content of the trace headers of a request to the upstream.
pub struct Injected<'i> {
    /// The ids; `is_sampled` is the decision to forward.
    pub trace: &'i TraceContext,
    /// The content of the client's headers.
    pub extracted: &'i Extracted,
}

impl Injected<'_> {
    /// The parent of the span that is sent to the upstream; 0: it has none.
    fn parent_id(&self) -> u64 {
        match self.trace.upstream_id == self.trace.span_id {
            true => self.trace.parent_id,
            false => self.trace.span_id,
        }
    }

    /// The trace's id in hexadecimal, with 16 digits if the client's had no more.
    fn trace_digits(&self, buffer: &mut [u8; 32]) -> usize {
        *buffer = self.trace.trace_digits();
        match self.extracted.is_short {
            true => {
                buffer.copy_within(16.., 0);
                16
            }
            false => 32,
        }
    }
}

impl Format {
    /// All formats that can be read, in the order in which they are tried by default.
    pub const READABLE: [Self; 7] = [
        Self::B3,
        Self::W3c,
        Self::Jaeger,
        Self::Ot,
        Self::Datadog,
        Self::Aws,
        Self::Gcp,
    ];

    /// The content of the headers in this format.
    pub fn extract(self, headers: &Headers) -> Option<Extracted> {
        match self {
            Self::W3c => w3c::extract(headers),
            Self::B3 | Self::B3Single => b3::extract(headers),
            Self::Jaeger => opentracing::extract_jaeger(headers),
            Self::Ot => opentracing::extract_ot(headers),
            Self::Aws => clouds::extract_aws(headers),
            Self::Gcp => clouds::extract_gcp(headers),
            Self::Datadog => clouds::extract_datadog(headers),
        }
    }

    /// Writes the headers of this form.
    pub fn inject(self, it: &Injected<'_>, headers: &mut Headers) {
        match self {
            Self::W3c => w3c::inject(it, headers),
            Self::B3 => b3::inject(it, headers),
            Self::B3Single => b3::inject_single(it, headers),
            Self::Jaeger => opentracing::inject_jaeger(it, headers),
            Self::Ot => opentracing::inject_ot(it, headers),
            Self::Aws => clouds::inject_aws(it, headers),
            Self::Gcp => clouds::inject_gcp(it, headers),
            Self::Datadog => clouds::inject_datadog(it, headers),
        }
    }
}

/// A number of 1 to `most` hexadecimal digits.
fn hex(digits: &[u8], most: usize) -> Option<u128> {
    if digits.is_empty() || digits.len() > most {
        return None;
    }
    digits.iter().try_fold(0_u128, |number, digit| {
        let value = (*digit as char).to_digit(16)?;
        Some(number << 4 | u128::from(value))
    })
}

/// A span's id of exactly 16 hexadecimal digits.
fn span_id(digits: &[u8]) -> Option<u64> {
    let number = hex(digits, 16).filter(|_| digits.len() == 16)?;
    u64::try_from(number).ok()
}

/// A trace's id of 16 or 32 hexadecimal digits, and whether it is one of 16.
fn trace_id(digits: &[u8]) -> Option<(u128, bool)> {
    let number = hex(digits, 32).filter(|_| matches!(digits.len(), 16 | 32))?;
    Some((number, digits.len() == 16))
}

/// A decimal number of 64 bits.
fn decimal(digits: &[u8]) -> Option<u64> {
    let is_number = !digits.is_empty() && digits.iter().all(u8::is_ascii_digit);
    std::str::from_utf8(digits)
        .ok()
        .filter(|_| is_number)?
        .parse()
        .ok()
}

/// The only value of a header; `None` if there is none, or several.
fn only<'h>(headers: &'h Headers, name: &'h [u8]) -> Option<&'h [u8]> {
    let first = headers.get(name)?;
    let has_more = headers.get_all(name).nth(1).is_some();
    (!has_more).then_some(first)
}

/// `1` or `0`.
fn flag(is_set: bool) -> u8 {
    b'0' + u8::from(is_set)
}
