//! A search in the request log, and its results.

use super::CallLine;
use schemars::JsonSchema;
use serde::Serialize;
use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

/// Calls that are found at once, at most.
pub const MAX_FOUND: usize = 1_000;

/// A part of what is managed, to which calls belong by their service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CallOwner {
    /// A workspace whose name stands before those of its services, as that of all but `default` does.
    Workspace(String),
    /// Services of no publication, by their names.
    Services(BTreeSet<String>),
    /// An environment.
    Environment(String),
    /// A published API.
    Api(String),
}

impl CallOwner {
    fn holds(&self, line: &CallLine) -> bool {
        match self {
            Self::Services(names) => line.environment.is_empty() && names.contains(&*line.service),
            Self::Workspace(name) => line.service.split_once('/').is_some_and(|it| it.0 == name),
            Self::Environment(name) => *line.environment == **name,
            Self::Api(name) => api_of(line).is_some_and(|it| it == name),
        }
    }
}

/// The API that a call belongs to: services of publications are called `ENVIRONMENT.API.VERSION.COMPONENT`.
fn api_of(line: &CallLine) -> Option<&str> {
    let of_environment = line.service.strip_prefix(&*line.environment)?;
    let rest = of_environment
        .strip_prefix('.')
        .filter(|_| !line.environment.is_empty())?;
    rest.split_once('.').map(|(api, _)| api)
}

/// A place in the order of results: the next ones come after it. It is written `TIME-HASH-GIVEN`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CallCursor {
    /// The time of the last call before it, in milliseconds since the Unix epoch.
    pub time: u64,
    /// The hash of that call.
    pub hash: u64,
    /// How many equal calls were given.
    pub given: usize,
}

impl CallCursor {
    /// The place after all calls of a time, and later ones.
    pub(super) fn at(time: u64) -> Self {
        Self {
            time: time.saturating_sub(1),
            hash: u64::MAX,
            given: 0,
        }
    }

    /// How a call stands to the cursor's.
    pub(super) fn order(self, line: &CallLine) -> Ordering {
        let by_time = line.time.cmp(&self.time);
        by_time.then_with(|| line.hash().cmp(&self.hash))
    }
}

impl fmt::Display for CallCursor {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "{}-{:016x}-{}", self.time, self.hash, self.given)
    }
}

/// The most calls of one millisecond that a cursor counts. All of them are held while a page is searched.
const MAX_GIVEN: usize = 100_000;

impl FromStr for CallCursor {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let mut parts = text.split('-');
        let mut part = || parts.next().ok_or(());
        let (time, hash, given) = (part()?, part()?, part()?);
        let found = Self {
            time: time.parse().map_err(|_| ())?,
            hash: u64::from_str_radix(hash, 16).map_err(|_| ())?,
            given: given.parse().map_err(|_| ())?,
        };
        match parts.next() {
            None if found.given <= MAX_GIVEN => Ok(found),
            _ => Err(()),
        }
    }
}

/// The order of results: the latest first, and of a millisecond always the same.
pub(super) fn latest_first(a: &Arc<CallLine>, b: &Arc<CallLine>) -> Ordering {
    b.time.cmp(&a.time).then_with(|| b.hash().cmp(&a.hash()))
}

/// The conditions of a search. All of them must hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Search {
    /// From when, in milliseconds since the Unix epoch.
    pub from: u64,
    /// Until when.
    pub to: u64,
    /// Where the calls before it ended: only those after it are found.
    pub after: Option<CallCursor>,
    /// The id.
    pub request_id: Option<String>,
    /// The service.
    pub service: Option<String>,
    /// The route.
    pub route: Option<String>,
    /// The consumer.
    pub consumer: Option<String>,
    /// The API that the service belongs to.
    pub api: Option<String>,
    /// The application that called: the consumer of a service that belongs to an API.
    pub application: Option<String>,
    /// Why it was refused.
    pub refusal: Option<String>,
    /// The status, such as `404`, or a class, such as `5xx`.
    pub status: Option<String>,
    /// The begin of the path.
    pub path: Option<String>,
    /// The shortest time, in microseconds.
    pub min_us: u32,
    /// How many calls, at most.
    pub limit: usize,
    /// The call belongs to one of these; `None`: to any part, or to none.
    pub parts: Option<Vec<CallOwner>>,
}

impl Default for Search {
    fn default() -> Self {
        Self {
            from: 0,
            to: u64::MAX,
            after: None,
            request_id: None,
            service: None,
            route: None,
            consumer: None,
            api: None,
            application: None,
            refusal: None,
            status: None,
            path: None,
            min_us: 0,
            limit: 100,
            parts: None,
        }
    }
}

/// The results of a search.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct CallSearchResponse {
    /// The calls, the latest first.
    pub calls: Vec<Arc<CallLine>>,
    /// Whether all of the time was searched. If not, there may be more.
    pub complete: bool,
    /// How far back was searched, in milliseconds since the Unix epoch.
    pub searched_from: u64,
    /// Where to go on, as `after`, if not all of the time was searched.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

impl Search {
    /// The names of a call by which blocks can be found, each with the number of its field.
    pub(super) fn indexed(line: &CallLine) -> [(u8, &str); 5] {
        [
            (0, &line.request_id),
            (1, &line.service),
            (2, &line.route),
            (3, &line.consumer),
            (4, &line.refusal),
        ]
    }

    /// The names that are searched for.
    pub(super) fn names(&self) -> impl Iterator<Item = (u8, &str)> {
        let consumer = match &self.consumer {
            None => &self.application,
            named => named,
        };
        let fields = [
            &self.request_id,
            &self.service,
            &self.route,
            consumer,
            &self.refusal,
        ];
        let named = fields.into_iter().enumerate();
        named.filter_map(|(field, name)| Some((field as u8, name.as_deref()?)))
    }

    /// The end of the time that calls are searched in.
    pub(super) fn end(&self) -> u64 {
        self.after
            .map_or(self.to, |it| self.to.min(it.time.saturating_add(1)))
    }

    /// The classes that a status of the search can have, a bit each; `None`: any.
    pub(super) fn classes(&self) -> Option<u16> {
        let first = self.status.as_ref()?.chars().next()?;
        Some(1 << first.to_digit(10)?.min(15))
    }

    /// Whether a call is one that is searched for.
    pub fn holds(&self, line: &CallLine) -> bool {
        let is_status = |status: &String| match status.strip_suffix("xx") {
            Some(class) => class.parse() == Ok(line.status / 100),
            None => status.parse() == Ok(line.status),
        };
        (self.from..self.to).contains(&line.time)
            && line.total_us >= self.min_us
            && self
                .api
                .as_ref()
                .is_none_or(|name| api_of(line) == Some(name.as_str()))
            && self
                .application
                .as_ref()
                .is_none_or(|name| *line.consumer == **name && api_of(line).is_some())
            && self
                .parts
                .as_ref()
                .is_none_or(|parts| parts.iter().any(|part| part.holds(line)))
            && self.after.is_none_or(|it| it.order(line).is_le())
            && self.status.as_ref().is_none_or(is_status)
            && self
                .path
                .as_ref()
                .is_none_or(|path| line.path.starts_with(path.as_str()))
            && self
                .names()
                .all(|(field, name)| Self::indexed(line)[usize::from(field)].1 == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_found_by_their_api_and_application() {
        let line = |service: &str| CallLine {
            environment: "test".into(),
            service: service.into(),
            consumer: "shop".into(),
            ..CallLine::default()
        };
        let name = |it: &str| Some(it.to_owned());
        for (api, application, service, expected) in [
            (name("pets"), None, "test.pets.1.0.main", true),
            (name("cats"), None, "test.pets.1.0.main", false),
            (None, name("shop"), "test.pets.1.0.main", true),
            (None, name("other"), "test.pets.1.0.main", false),
            // A consumer of a service by hand is no application.
            (None, name("shop"), "pets", false),
            (name("pets"), name("shop"), "test.pets.1.0.main", true),
        ] {
            let search = Search {
                api,
                application,
                ..Search::default()
            };
            assert_eq!(search.holds(&line(service)), expected, "{search:?} {service}");
        }
    }

    #[test]
    fn calls_belong_to_parts_by_their_services() {
        let line = |environment: &str, service: &str| CallLine {
            environment: environment.into(),
            service: service.into(),
            ..CallLine::default()
        };
        let of = |name: &str| name.to_owned();
        for (part, line, expected) in [
            (
                CallOwner::Api(of("pets")),
                line("test", "test.pets.1.0.main"),
                true,
            ),
            (
                CallOwner::Api(of("pets")),
                line("test", "test.cats.1.0.main"),
                false,
            ),
            // A service by hand is of no API, whatever it is called.
            (CallOwner::Api(of("pets")), line("", "test.pets.1.0.main"), false),
            (
                CallOwner::Api(of("pets")),
                line("prod", "test.pets.1.0.main"),
                false,
            ),
            (
                CallOwner::Api(of("pet")),
                line("test", "test.pets.1.0.main"),
                false,
            ),
            (
                CallOwner::Environment(of("test")),
                line("test", "test.pets.1.0.main"),
                true,
            ),
            (CallOwner::Environment(of("test")), line("", "shop"), false),
            (CallOwner::Workspace(of("team")), line("", "team/shop"), true),
            (CallOwner::Workspace(of("team")), line("", "teams/shop"), false),
            (CallOwner::Services([of("shop")].into()), line("", "shop"), true),
            (
                CallOwner::Services([of("shop")].into()),
                line("", "team/shop"),
                false,
            ),
            (CallOwner::Services([of("shop")].into()), line("", "other"), false),
            (
                CallOwner::Services([of("shop")].into()),
                line("prod", "shop"),
                false,
            ),
        ] {
            let search = |parts| Search {
                parts,
                ..Search::default()
            };
            assert_eq!(
                search(Some(vec![part.clone()])).holds(&line),
                expected,
                "{part:?} {line:?}"
            );
            assert!(search(None).holds(&line) && !search(Some(Vec::new())).holds(&line));
        }
    }
}
