//! The trait that renders refusals as responses. Each dialect implements it.

use crate::exchange::Exchange;
use crate::refusal::Refusal;
use crate::response::Reply;
use crate::uri::NormalForm;

/// Renders refusals in the words, with the headers and in the form that clients of one original expect.
pub trait ErrorRenderer: Send + Sync {
    /// The answer for `refusal`. Of the exchange, only what has been read so far is set: for a request that
    /// breaks the protocol perhaps nothing at all.
    fn render(&self, refusal: &Refusal, exchange: &Exchange) -> Reply;

    /// The form in which this dialect's route table matches paths.
    fn normal_form(&self) -> NormalForm;

    /// The status of a call for a host whose clients must show a certificate, on a connection that was made for another
    /// host (RFC 9110, 15.5.20).
    fn misdirected_status(&self) -> u16 {
        421
    }

    /// Whether a call may be for `*`, the server as a whole (RFC 9110, 9.3.7).
    fn takes_asterisk(&self) -> bool {
        true
    }
}
