//! The store of analytics in a ClickHouse server, for those who outgrow one machine. All of ClickHouse's SQL is in this
//! module; what carries it to the server is an argument ([`Transport`]).
//!
//! ```text
//!  weir_minute(cube_id, minute, d1 … d5, sums, batch)           what was counted for a key in a minute
//!  weir_minute_times(cube_id, minute, d1 … d5, kind, bucket, count, batch)  the buckets of its sketches
//!  weir_hour, weir_hour_times                                  the same by the hour, of days that are over
//!  weir_callers(hour, environment, service, register, rank)    estimates of unique callers
//! ```
//!
//! Which batches came, how far each gateway is and what is missing stand in an SQLite file ([`SqliteAnalytics`]).
//! A batch counts once: that file knows those that were stored. If it is not known what became of one, the server is
//! sent the same deduplication token again; a server too old for tokens (before 22.1) is asked whether it has the
//! batch. Registers of callers may come twice: the larger one counts.
//!
//! The same [`QueryPlan`] answers a query as in SQLite, so answers are the same, but for sums of times and bytes by the
//! minute, which SQLite rounds.

mod ingest;
mod read;
mod retain;
mod rows;
mod schema;

use crate::batch::Batch;
use crate::cube::{Cube, Dimension, Position};
use crate::query::{Query, QueryResponse};
use crate::retention::Retention;
use crate::sqlite::SqliteAnalytics;
use crate::store::{AnalyticsStore, IngestResult, Renames, RetentionStats, StoreError};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Carries SQL to a server.
pub trait Transport: Send + Sync {
    /// Sends a statement, and a body of rows if it takes some. Returns the server's answer.
    ///
    /// # Errors
    /// What the server says, or that it cannot be reached.
    fn send(&self, sql: &str, rows: Option<Vec<u8>>) -> Result<Vec<u8>, String>;
}

/// The facts about the server.
#[derive(Debug, Clone, Copy)]
struct Server {
    /// Whether it knows deduplication tokens.
    has_tokens: bool,
}

/// The store.
pub struct ClickhouseAnalytics {
    transport: Box<dyn Transport>,
    /// Which batches came, and what is missing.
    ledger: Arc<SqliteAnalytics>,
    retention: Retention,
    /// Once the server has answered.
    server: Mutex<Option<Server>>,
    /// One batch at a time: each is looked up, stored and noted.
    storing: Mutex<()>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Every change leaves it whole.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl ClickhouseAnalytics {
    /// Over a server, with a ledger in a file. The server is asked when it is first needed, and need not be there
    /// before.
    pub fn new(
        transport: impl Transport + 'static,
        ledger: Arc<SqliteAnalytics>,
        retention: Retention,
    ) -> Self {
        Self {
            transport: Box::new(transport),
            ledger,
            retention,
            server: Mutex::default(),
            storing: Mutex::default(),
        }
    }

    fn send(&self, sql: &str, rows: Option<Vec<u8>>) -> Result<Vec<u8>, StoreError> {
        let sent = self.transport.send(sql, rows);
        sent.map_err(|error| StoreError::Engine(format!("ClickHouse: {error}")))
    }

    /// The facts about the server. The first time, missing tables are created.
    fn server(&self) -> Result<Server, StoreError> {
        let mut known = lock(&self.server);
        if let Some(server) = *known {
            return Ok(server);
        }
        let version = self.send("SELECT version()", None)?;
        let version = String::from_utf8_lossy(&version).trim().to_owned();
        let server = Server {
            has_tokens: schema::has_tokens(&version)?,
        };
        for statement in schema::tables(server.has_tokens) {
            self.send(&statement, None)?;
        }
        *known = Some(server);
        Ok(server)
    }
}

impl AnalyticsStore for ClickhouseAnalytics {
    fn ingest(&self, batch: &Batch, now: u64) -> Result<IngestResult, StoreError> {
        let _one_at_a_time = lock(&self.storing);
        if self.ledger.knows(batch)? {
            return Ok(IngestResult::Duplicate);
        }
        if let Err(error) = ingest::store(self, self.server()?, batch) {
            // It may be another server by now, or one that has lost its tables.
            *lock(&self.server) = None;
            return Err(error);
        }
        self.ledger.note(batch, now)?;
        Ok(IngestResult::Added)
    }

    fn query(&self, query: &Query, now: u64) -> Result<QueryResponse, StoreError> {
        // Faults of a query are found without the server.
        let plan = crate::query::QueryPlan::of(query, &self.retention, now)?;
        self.server()?;
        read::answer(self, &plan, now)
    }

    /// Names stand in the order of the tables, which the server does not change: rows of these callers are deleted. Other
    /// cubes have the same calls without their callers.
    fn anonymise(&self, renamed: &Renames) -> Result<u64, StoreError> {
        if renamed.is_empty() {
            return Ok(0);
        }
        self.server()?;
        for condition in rows_of(renamed) {
            for table in ["weir_minute", "weir_minute_times", "weir_hour", "weir_hour_times"] {
                self.send(&format!("ALTER TABLE {table} DELETE WHERE {condition}"), None)?;
            }
        }
        Ok(0)
    }

    fn retain(&self, retention: &Retention, now: u64) -> Result<RetentionStats, StoreError> {
        self.ledger.retain(retention, now)?;
        // Not while a batch is stored: a late one has its day summed up again.
        let _one_at_a_time = lock(&self.storing);
        self.server()?;
        retain::retain(self, retention, now)
    }
}

/// Which rows have these callers: a condition for each cube that names some.
fn rows_of(renamed: &Renames) -> Vec<String> {
    let column = |cube: Cube, dimension: Dimension| match cube.position(dimension)? {
        Position::Value(place) => Some(format!("d{}", place + 1)),
        Position::ClassOf(_) => None,
    };
    let among = |column: &str, names: &[(String, String)]| {
        let names: Vec<String> = names.iter().map(|(old, _)| quoted(old)).collect();
        (!names.is_empty()).then(|| format!("{column} IN ({})", names.join(", ")))
    };
    let mut conditions = Vec::new();
    for cube in Cube::ALL {
        let mut any = Vec::new();
        if let Some(application) = column(*cube, Dimension::Application) {
            any.extend(among(&application, &renamed.applications));
        }
        if let Some(consumer) = column(*cube, Dimension::Consumer) {
            any.extend(among(&consumer, &renamed.consumers));
            let of_services = among(&consumer, &renamed.consumers_of_services);
            if let (Some(condition), Some(service)) = (of_services, column(*cube, Dimension::Service)) {
                let begins = renamed
                    .services
                    .iter()
                    .map(|it| format!("startsWith({service}, {})", quoted(it)));
                let begins: Vec<String> = begins.collect();
                any.extend(
                    (!begins.is_empty()).then(|| format!("{condition} AND ({})", begins.join(" OR "))),
                );
            }
        }
        conditions.extend(
            any.into_iter()
                .map(|it| format!("cube_id = {} AND {it}", cube.number())),
        );
    }
    conditions
}

/// A text as SQL writes it.
fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('\'');
    for character in text.chars() {
        match character {
            '\\' => out.push_str("\\\\"),
            '\'' => out.push_str("\\'"),
            '\0' => out.push_str("\\0"),
            other => out.push(other),
        }
    }
    out.push('\'');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_quoted() {
        for (text, expected) in [
            ("a", "'a'"),
            ("it's", r"'it\'s'"),
            (r"\' OR 1", r"'\\\' OR 1'"),
            ("\0", r"'\0'"),
        ] {
            assert_eq!(quoted(text), expected);
        }
    }

    #[test]
    fn callers_are_found_by_what_they_are() {
        let pair = |name: &str| vec![(name.to_owned(), "removed-1".to_owned())];
        let renamed = Renames {
            applications: pair("till"),
            consumers: pair("sub.1"),
            consumers_of_services: pair("it's"),
            services: vec!["test.pets.1.".to_owned()],
        };
        let number = |cube: Cube| cube.number();
        assert_eq!(
            rows_of(&renamed),
            [
                format!("cube_id = {} AND d3 IN ('sub.1')", number(Cube::Caller)),
                format!(
                    r"cube_id = {} AND d3 IN ('it\'s') AND (startsWith(d2, 'test.pets.1.'))",
                    number(Cube::Caller)
                ),
                format!("cube_id = {} AND d2 IN ('sub.1')", number(Cube::CallerRoute)),
                format!(
                    r"cube_id = {} AND d2 IN ('it\'s') AND (startsWith(d3, 'test.pets.1.'))",
                    number(Cube::CallerRoute)
                ),
                format!("cube_id = {} AND d4 IN ('till')", number(Cube::Usage)),
                format!("cube_id = {} AND d4 IN ('till')", number(Cube::Subscription)),
            ]
        );
        assert!(rows_of(&Renames::default()).is_empty());
    }

    struct Unavailable;

    impl Transport for Unavailable {
        fn send(&self, _sql: &str, _rows: Option<Vec<u8>>) -> Result<Vec<u8>, String> {
            Err("no answer".to_owned())
        }
    }

    #[test]
    fn a_server_that_is_away_is_an_error_and_nothing_is_noted() {
        let folder = tempfile::tempdir().expect("a folder");
        let ledger =
            SqliteAnalytics::open(&folder.path().join("a.db"), Retention::default()).expect("opened");
        let store = ClickhouseAnalytics::new(Unavailable, Arc::new(ledger), Retention::default());
        let batch = Batch::default();
        for _ in 0..2 {
            let refused = store.ingest(&batch, 1_000_000).expect_err("it is away");
            assert!(refused.to_string().contains("ClickHouse: no answer"), "{refused}");
        }
        assert!(!store.ledger.knows(&batch).expect("read"));
        let wrong = store.query(&Query::of("no", 0, 60), 60).expect_err("no metric");
        assert!(
            matches!(wrong, StoreError::Query(_)),
            "what is wrong is told all the same"
        );
        assert!(matches!(
            store.query(&Query::of("calls", 0, 60), 60),
            Err(StoreError::Engine(_))
        ));
    }
}
