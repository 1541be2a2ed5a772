//! The trace context of a call: the content of `traceparent` and similar headers, in numbers.

/// The ids of a call within a distributed trace, once a filter has found or made them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TraceContext {
    /// The trace; never 0.
    pub trace_id: u128,
    /// The gateway's own span of the call; never 0.
    pub span_id: u64,
    /// The span that is the parent of the gateway's; 0: the trace begins here.
    pub parent_id: u64,
    /// The span that is sent to the upstream as its parent.
    pub upstream_id: u64,
    /// Whether the call gets a log record. What is not sampled costs no more than its headers.
    pub is_sampled: bool,
}

impl TraceContext {
    /// The form of W3C Trace Context, level 1, 3.2: `00-TRACE-SPAN-FLAGS`, for the span `span_id`.
    pub fn traceparent(&self, span_id: u64) -> [u8; 55] {
        let mut text = *b"00-00000000000000000000000000000000-0000000000000000-00";
        write_hex(&mut text[3..35], self.trace_id);
        write_hex(&mut text[36..52], u128::from(span_id));
        text[54] = b'0' + u8::from(self.is_sampled);
        text
    }

    /// The trace's id as 32 hexadecimal digits.
    pub fn trace_digits(&self) -> [u8; 32] {
        let mut text = [0; 32];
        write_hex(&mut text, self.trace_id);
        text
    }

    /// The id of the gateway's span as 16 hexadecimal digits.
    pub fn span_digits(&self) -> [u8; 16] {
        let mut text = [0; 16];
        write_hex(&mut text, u128::from(self.span_id));
        text
    }
}

/// Fills `text` with the lowest digits of a number, in lower case.
pub fn write_hex(text: &mut [u8], mut number: u128) {
    for digit in text.iter_mut().rev() {
        *digit = b"0123456789abcdef"[(number & 15) as usize];
        number >>= 4;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_written_with_all_their_digits() {
        let trace = TraceContext {
            trace_id: 0x4bf9_2f35_77b3_4da6_a3ce_929d_0e0e_4736,
            span_id: 0x00f0_67aa_0ba9_02b7,
            is_sampled: true,
            ..TraceContext::default()
        };
        assert_eq!(
            &trace.traceparent(trace.span_id),
            b"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
        );
        assert_eq!(&trace.trace_digits(), b"4bf92f3577b34da6a3ce929d0e0e4736");
        assert_eq!(&trace.span_digits(), b"00f067aa0ba902b7");
        let unsampled = TraceContext {
            is_sampled: false,
            ..trace
        };
        assert!(unsampled.traceparent(7).ends_with(b"-0000000000000007-00"));
    }
}
