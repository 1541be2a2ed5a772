//! The formats of texts that a schema may require, such as dates and addresses. An unknown format accepts any text.

use regex::Regex;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::LazyLock;

/// A format that is checked. Others are not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Format {
    Email,
    Ipv4,
    Ipv6,
    Hostname,
    Uuid,
    Date,
    DateTime,
    Uri,
}

impl Format {
    const ALL: [(Self, &'static str); 8] = [
        (Self::Email, "email"),
        (Self::Ipv4, "ipv4"),
        (Self::Ipv6, "ipv6"),
        (Self::Hostname, "hostname"),
        (Self::Uuid, "uuid"),
        (Self::Date, "date"),
        (Self::DateTime, "date-time"),
        (Self::Uri, "uri"),
    ];

    pub(super) fn named(name: &str) -> Option<Self> {
        let mut all = Self::ALL.into_iter();
        all.find(|(_, known)| *known == name).map(|(format, _)| format)
    }

    pub(super) fn name(self) -> &'static str {
        let mut all = Self::ALL.into_iter();
        all.find(|(format, _)| *format == self)
            .map_or("", |(_, name)| name)
    }

    pub(super) fn holds(self, text: &str) -> bool {
        static EMAIL: LazyLock<Regex> = LazyLock::new(|| constant(r"^[\w.-]+@[\w.-]+\.[A-Za-z]{2,4}$"));
        static DATE: LazyLock<Regex> =
            LazyLock::new(|| constant(r"^[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])$"));
        static TIME: LazyLock<Regex> = LazyLock::new(|| {
            constant(
                r"^([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\.[0-9]+)?([Zz]|[+-]([01][0-9]|2[0-3]):[0-5][0-9])$",
            )
        });
        match self {
            Self::Email => EMAIL.is_match(text),
            Self::Ipv4 => text.parse::<Ipv4Addr>().is_ok(),
            Self::Ipv6 => text.parse::<Ipv6Addr>().is_ok(),
            Self::Hostname => {
                !text.is_empty()
                    && text
                        .bytes()
                        .all(|it| it.is_ascii_alphanumeric() || b"-.".contains(&it))
            }
            Self::Uuid => {
                let is_hyphen = |place: usize| matches!(place, 8 | 13 | 18 | 23);
                let mut bytes = text.bytes().enumerate();
                text.len() == 36
                    && bytes.all(|(place, byte)| match is_hyphen(place) {
                        true => byte == b'-',
                        false => byte.is_ascii_hexdigit(),
                    })
            }
            Self::Date => DATE.is_match(text),
            Self::DateTime => text
                .split_once(['T', 't'])
                .is_some_and(|(date, time)| DATE.is_match(date) && TIME.is_match(time)),
            Self::Uri => text.split_once(':').is_some_and(|(scheme, rest)| {
                let is_scheme = |it: u8| it.is_ascii_alphanumeric() || b"+-.".contains(&it);
                scheme.starts_with(|first: char| first.is_ascii_alphabetic())
                    && scheme.bytes().all(is_scheme)
                    && !rest.contains(char::is_whitespace)
            }),
        }
    }
}

fn constant(pattern: &str) -> Regex {
    Regex::new(pattern).expect("invariant: the patterns are constants")
}
