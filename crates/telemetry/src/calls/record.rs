//! The record of a finished call, in numbers: as it is written, and packed into words for a ring. Rings are in
//! [`super::ring`].

/// Words of a record.
pub(super) const WORDS: usize = 8;

/// Methods by the numbers of records; all others are the last one.
pub const METHODS: [&str; 10] = [
    "GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH", "CONNECT", "TRACE", "other",
];
/// Protocols by the numbers of records; what cannot be read is the last one.
pub const PROTOCOLS: [&str; 5] = ["http/1.0", "http/1.1", "http/2", "http/3", "other"];

/// A finished call.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CallRecord {
    /// When it ended, in microseconds since the rings were made.
    pub ended_us: u64,
    /// The snapshot that served it.
    pub generation: u32,
    /// The route's place in the snapshot.
    pub route: Option<u32>,
    /// The consumer's place.
    pub consumer: Option<u32>,
    /// The places of the upstream and of its target that was asked last.
    pub target: Option<(u32, u16)>,
    /// The status.
    pub status: u16,
    /// Why the gateway refused it: a place in [`crate::metrics::Refusal::ALL`].
    pub refusal: Option<u8>,
    /// The plugin that refused it, by its place among all plugins' names.
    pub plugin: Option<u16>,
    /// A place in [`METHODS`].
    pub method: u8,
    /// A place in [`PROTOCOLS`].
    pub protocol: u8,
    /// Whether the client left before the end.
    pub is_aborted: bool,
    /// Upstream calls beyond the first.
    pub retries: u8,
    /// The whole time, in microseconds.
    pub total_us: u32,
    /// The upstream's part; 0: none was asked.
    pub upstream_us: u32,
    /// Bytes received; beyond a terabyte, that.
    pub bytes_in: u64,
    /// Bytes sent.
    pub bytes_out: u64,
    /// The client's address: that of IPv4, or the network of IPv6.
    pub address: u64,
}

const NONE: u32 = u32::MAX;

impl CallRecord {
    #[inline]
    pub(super) fn pack(&self) -> [u64; WORDS] {
        let (upstream, target) = self.target.unwrap_or((NONE, 0));
        let pair = |high: u32, low: u32| u64::from(high) << 32 | u64::from(low);
        let small = |high: u16, low: u16| u32::from(high) << 16 | u32::from(low);
        let refusal = self.refusal.map_or(0, |it| it + 1);
        let bytes_in = self.bytes_in.min((1 << 40) - 1);
        let kinds = u64::from(self.method) << 56 | u64::from(self.protocol) << 48;
        [
            self.ended_us,
            pair(self.route.unwrap_or(NONE), self.generation),
            pair(
                self.consumer.unwrap_or(NONE),
                small(self.status, self.plugin.map_or(0, |it| it + 1)),
            ),
            pair(self.total_us, self.upstream_us),
            kinds | u64::from(self.is_aborted) << 40 | bytes_in,
            self.bytes_out,
            pair(
                upstream,
                small(target, u16::from(self.retries) << 8 | u16::from(refusal)),
            ),
            self.address,
        ]
    }

    pub(super) fn unpack(words: &[u64]) -> Self {
        let high = |place: usize| (words[place] >> 32) as u32;
        let low = |place: usize| words[place] as u32;
        let some = |value: u32| (value != NONE).then_some(value);
        Self {
            ended_us: words[0],
            route: some(high(1)),
            generation: low(1),
            consumer: some(high(2)),
            status: (low(2) >> 16) as u16,
            plugin: (low(2) as u16).checked_sub(1),
            total_us: high(3),
            upstream_us: low(3),
            method: (words[4] >> 56) as u8,
            protocol: (words[4] >> 48) as u8,
            is_aborted: words[4] >> 40 & 1 == 1,
            bytes_in: words[4] & ((1 << 40) - 1),
            bytes_out: words[5],
            target: some(high(6)).map(|upstream| (upstream, (low(6) >> 16) as u16)),
            retries: (low(6) >> 8) as u8,
            refusal: (low(6) as u8).checked_sub(1),
            address: words[7],
        }
    }
}

/// The further facts of a sampled call.
#[derive(Debug, Clone, Copy, Default)]
pub struct CallTexts<'c> {
    /// The path, as the client wrote it.
    pub path: &'c [u8],
    /// The id.
    pub request_id: &'c [u8],
    /// The host.
    pub host: &'c [u8],
    /// The user agent.
    pub agent: &'c [u8],
    /// Headers that are kept, a line each. They are cut to the room that is left.
    pub headers: &'c [u8],
}

/// A sampled call.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SampledRecord<'c> {
    /// The call.
    pub record: CallRecord,
    /// How many calls it represents.
    pub weight: u32,
    /// Its path, id, host and user agent, each perhaps cut.
    pub texts: [&'c [u8]; 4],
    /// Headers that are kept, a line each.
    pub headers: &'c [u8],
}

/// The number of a method.
#[inline]
pub fn method_number(method: &[u8]) -> u8 {
    match method {
        b"GET" => 0,
        b"HEAD" => 1,
        b"POST" => 2,
        b"PUT" => 3,
        b"DELETE" => 4,
        b"OPTIONS" => 5,
        b"PATCH" => 6,
        b"CONNECT" => 7,
        b"TRACE" => 8,
        _ => 9,
    }
}

/// The number of a version of HTTP.
#[inline]
pub fn protocol_number(version: (u8, u8)) -> u8 {
    match version {
        (1, 0) => 0,
        (1, 1) => 1,
        (2, _) => 2,
        (3, _) => 3,
        _ => 4,
    }
}
