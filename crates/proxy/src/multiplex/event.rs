//! Events on a stream of HTTP/2 or HTTP/3: data, trailers and the end.

use bytes::Bytes;
use http::HeaderMap;
use weir_http2::FieldList;

/// A part of a stream's body.
pub enum BodyFrame {
    /// Data.
    Data(Bytes),
    /// Its end, and the trailers before it.
    End(Option<HeaderMap>),
    /// Its end after trailers, which are header lines already.
    Trailers(Vec<u8>),
}

/// A head from an upstream.
pub enum StreamEvent {
    /// An interim one.
    Interim(Box<FieldList>),
    /// The final one, and whether nothing follows it.
    Final(Box<FieldList>, bool),
}
