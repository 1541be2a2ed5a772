//! The cubes: which dimensions calls are counted by together, and what is kept for each combination.
//!
//! A cube is small because its dimensions are few. What no cube holds cannot be asked for; the definition says so
//! ([`crate::definition`]).

use crate::cell::Field;
use Dimension as D;

macro_rules! named {
    ($(#[$meta:meta])* $name:ident { $($(#[doc = $doc:literal])* $variant:ident = $text:literal,)* }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $name {
            $($(#[doc = $doc])* $variant,)*
        }

        impl $name {
            /// All of them.
            pub const ALL: &'static [Self] = &[$(Self::$variant),*];

            /// The name.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $text,)* }
            }

            /// Its meaning, in words.
            pub const fn help(self) -> &'static str {
                match self { $(Self::$variant => concat!($($doc),*).trim_ascii(),)* }
            }

            /// The one of this name.
            pub fn of(name: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|it| it.as_str() == name)
            }
        }
    };
}
pub(crate) use named;

named! {
    /// The dimensions by which calls can be grouped and filtered.
    Dimension {
        /// The environment of the gateway; empty without environments.
        Environment = "environment",
        /// The gateway, by its name.
        Gateway = "gateway",
        /// The service that the route belongs to; empty without one.
        Service = "service",
        /// The route; `_unmatched` for calls that no route took.
        Route = "route",
        /// The status of the answer; 499 if the client left before its end.
        Status = "status",
        /// The class of the status: `2xx`, `3xx`, `4xx`, `5xx`.
        Class = "class",
        /// The consumer that called; empty for callers without one.
        Consumer = "consumer",
        /// The upstream that was asked; empty if none was.
        Upstream = "upstream",
        /// The target that was asked last, as HOST:PORT.
        Target = "target",
        /// The protocol of the client: `http/1.0`, `http/1.1`, `http/2`, `http/3`.
        Protocol = "protocol",
        /// The method; `other` for unusual ones.
        Method = "method",
        /// Why the gateway refused the call, as in `weir_refusals_total`; empty if it did not.
        Refusal = "refusal",
        /// The plugin that refused the call; empty if none did.
        Plugin = "plugin",
        /// The path of a call that no route took.
        Path = "path",
        /// The network of the client: /24 of IPv4, /48 of IPv6.
        Network = "network",
        /// The family of the user agent, such as `curl` or `Firefox`.
        Agent = "agent",
        /// The API that the route belongs to; empty for routes of no API.
        Api = "api",
        /// The version of the API.
        Version = "version",
        /// The application that called, by its subscription; empty for callers without one.
        Application = "application",
        /// The plan of the subscription.
        Plan = "plan",
        /// The operation, by its id in the document; empty for routes of no API and for calls that no operation takes.
        Operation = "operation",
        /// The revision of the API's version that served the call. A canary's calls have that of the candidate.
        Revision = "revision",
        /// The subscription that called, by its id; empty for callers without one.
        Subscription = "subscription",
    }
}

named! {
    /// The cubes.
    Cube {
        /// Traffic, errors and latency.
        Route = "route",
        /// Usage of each consumer.
        Caller = "caller",
        /// The most frequent pairs of consumer and route.
        CallerRoute = "caller_route",
        /// How targets answer.
        Target = "target",
        /// How clients speak.
        Client = "client",
        /// Why calls were refused.
        Refusal = "refusal",
        /// Traffic of each gateway.
        Gateway = "gateway",
        /// The most frequent paths of calls that no route took, estimated from the sampled calls.
        Path = "path",
        /// The most frequent networks of clients, estimated from the sampled calls.
        Network = "network",
        /// The most frequent families of user agents, estimated from the sampled calls.
        Agent = "agent",
        /// Usage of APIs by applications.
        Usage = "usage",
        /// Traffic of the operations and revisions of APIs.
        Operation = "operation",
        /// Usage of APIs by subscriptions.
        Subscription = "subscription",
    }
}

/// Most dimensions of a cube.
pub const MAX_DIMENSIONS: usize = 5;
/// Keys of a cube in an hour, unless it says otherwise.
const MANY: usize = 20_000;
/// The classes of statuses.
pub const CLASSES: [&str; 6] = ["1xx", "2xx", "3xx", "4xx", "5xx", OTHER];
/// The protocols of clients.
pub const PROTOCOLS: [&str; 6] = ["http/1.0", "http/1.1", "http/2", "http/3", "other", OTHER];
/// The value that stands for all keys beyond a cube's limit.
pub const OTHER: &str = "_other";

impl Cube {
    /// Its dimensions, in the order of its keys.
    pub const fn dimensions(self) -> &'static [Dimension] {
        match self {
            Self::Route => &[D::Environment, D::Service, D::Route, D::Status],
            Self::Caller => &[D::Environment, D::Service, D::Consumer, D::Class],
            Self::CallerRoute => &[D::Environment, D::Consumer, D::Service, D::Route],
            Self::Target => &[D::Environment, D::Upstream, D::Target, D::Class],
            Self::Client => &[D::Environment, D::Service, D::Protocol, D::Method],
            Self::Refusal => &[D::Environment, D::Service, D::Refusal, D::Plugin, D::Status],
            Self::Gateway => &[D::Environment, D::Gateway, D::Class],
            Self::Path => &[D::Environment, D::Path],
            Self::Network => &[D::Environment, D::Service, D::Network],
            Self::Agent => &[D::Environment, D::Service, D::Agent],
            Self::Usage => &[D::Environment, D::Api, D::Version, D::Application, D::Plan],
            Self::Operation => &[D::Environment, D::Api, D::Version, D::Revision, D::Operation],
            Self::Subscription => &[
                D::Environment,
                D::Api,
                D::Version,
                D::Application,
                D::Subscription,
            ],
        }
    }

    /// The fields that are kept by the minute; all fields are kept by the hour.
    pub const fn minute_fields(self) -> &'static [Field] {
        use Field as F;
        match self {
            Self::Route => &[
                F::Calls,
                F::Total,
                F::BytesOut,
                F::BytesIn,
                F::Refused,
                F::Aborted,
                F::ClientErrors,
                F::ServerErrors,
                F::Retries,
            ],
            Self::Caller | Self::Usage | Self::Operation => &[
                F::Calls,
                F::Total,
                F::BytesOut,
                F::Refused,
                F::ClientErrors,
                F::ServerErrors,
            ],
            Self::CallerRoute | Self::Subscription => {
                &[F::Calls, F::Refused, F::ClientErrors, F::ServerErrors]
            }
            Self::Target => &[
                F::Calls,
                F::Upstream,
                F::UpstreamCalls,
                F::ServerErrors,
                F::Retries,
            ],
            Self::Client | Self::Refusal | Self::Path | Self::Network | Self::Agent => &[F::Calls],
            Self::Gateway => &[F::Calls, F::Total, F::BytesOut, F::BytesIn],
        }
    }

    /// Which sketches are kept by the hour: of the total time, the upstream's, the gateway's.
    pub const fn sketches(self) -> [bool; 3] {
        match self {
            Self::Route => [true, true, true],
            Self::Caller | Self::Gateway | Self::Usage | Self::Operation => [true, false, false],
            Self::Target => [false, true, false],
            _ => [false, false, false],
        }
    }

    /// Whether the sketch of the total time is also kept by the minute.
    pub const fn has_minute_sketch(self) -> bool {
        matches!(self, Self::Route)
    }

    /// Keys that are kept apart in an hour. Calls of all further keys count for `_other`.
    pub const fn limit(self) -> usize {
        match self {
            Self::CallerRoute => 2_000,
            Self::Caller | Self::Usage | Self::Subscription => 10_000,
            Self::Path | Self::Network | Self::Agent => 500,
            _ => MANY,
        }
    }

    /// Whether the most frequent keys push out others once the limit is reached. Else the first ones stay.
    pub const fn is_unbounded(self) -> bool {
        matches!(
            self,
            Self::CallerRoute
                | Self::Caller
                | Self::Usage
                | Self::Subscription
                | Self::Path
                | Self::Network
                | Self::Agent
        )
    }

    /// Whether its counts are estimates from sampled calls.
    pub const fn is_sampled(self) -> bool {
        matches!(self, Self::Path | Self::Network | Self::Agent)
    }

    /// The position of a dimension in its keys.
    pub fn position(self, dimension: Dimension) -> Option<Position> {
        let place = |wanted| self.dimensions().iter().position(|it| *it == wanted);
        match place(dimension) {
            Some(place) => Some(Position::Value(place)),
            None if dimension == D::Class => place(D::Status).map(Position::ClassOf),
            None => None,
        }
    }

    /// Whether a dimension keeps its value if a key is counted for `_other`.
    pub fn keeps_in_other(dimension: Dimension) -> bool {
        matches!(
            dimension,
            D::Environment
                | D::Api
                | D::Version
                | D::Revision
                | D::Status
                | D::Class
                | D::Gateway
                | D::Protocol
                | D::Method
        )
    }

    /// The number that stands for it in files. Never changes.
    pub const fn number(self) -> u8 {
        self as u8 + 1
    }

    /// The cube of a number.
    pub fn numbered(number: u8) -> Option<Self> {
        Self::ALL.iter().copied().find(|it| it.number() == number)
    }
}

/// The position of a dimension's value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Position {
    /// In the key, at this place.
    Value(usize),
    /// It is the class of the status at this place.
    ClassOf(usize),
}

/// The class of a status.
pub fn class_of(status: &str) -> &'static str {
    match status.as_bytes().first() {
        Some(b'1') => "1xx",
        Some(b'2') => "2xx",
        Some(b'3') => "3xx",
        Some(b'4') => "4xx",
        Some(b'5') => "5xx",
        _ => OTHER,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cubes_are_what_their_tables_say() {
        for cube in Cube::ALL {
            assert!(cube.dimensions().len() <= MAX_DIMENSIONS, "{cube:?}");
            assert_eq!(cube.minute_fields()[0], Field::Calls, "{cube:?}");
            assert_eq!(Cube::numbered(cube.number()), Some(*cube));
            assert_eq!(Cube::of(cube.as_str()), Some(*cube));
            assert!(cube.position(Dimension::Environment).is_some(), "{cube:?}");
            assert!(!cube.help().is_empty(), "{cube:?}");
        }
        assert_eq!(Cube::Route.position(Dimension::Class), Some(Position::ClassOf(3)));
        assert_eq!(Cube::Caller.position(Dimension::Class), Some(Position::Value(3)));
        assert_eq!(Cube::Caller.position(Dimension::Status), None);
        assert_eq!((class_of("204"), class_of("x")), ("2xx", OTHER));
    }
}
