//! The factory side of the contract: plugins, filters, and the registry that joins them to names.

use crate::consumer::{CredentialEntry, CredentialIndex, CredentialSource, Identity};
use crate::conversation::Conversation;
use crate::destination::{DestinationId, Destinations};
use crate::exchange::Exchange;
use crate::gateway_log::GatewayLog;
use crate::indeterminate::Indeterminate;
use crate::kafka::KafkaWork;
use crate::log::{CallRecord, LogEntry};
use crate::redis::RedisCommand;
use crate::refusal::{Refusal, RefusalKind};
use crate::response::Reply;
use crate::shared_counts::SharedCounts;
use crate::shared_records::SharedRecords;
use crate::subrequest::Subrequest;
use crate::suspend::Suspend;
use serde_json::Value;
use std::any::Any;
use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;
use weir_model::{Diagnostic, DialectName, UpstreamHost};

/// Counts that outlive a restart, as bytes that only their plugin can read.
pub trait PersistentCounters: Send + Sync {
    /// What is counted now.
    fn export(&self, now_ms: u64) -> Vec<u8>;

    /// Goes on from what was counted before.
    ///
    /// # Errors
    /// Why that cannot be read.
    fn import(&self, bytes: &[u8], now_ms: u64) -> Result<(), &'static str>;

    /// What a limit that counts by consumers has counted of one of them in a window; `None`: it does not count so.
    fn counted(&self, of: &ConsumerCount<'_>, now_ms: u64) -> Option<WindowUsage> {
        let _ = (of, now_ms);
        None
    }
}

/// How a count stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WindowUsage {
    /// Calls in the window that is open.
    pub used: u64,
    /// Milliseconds until it ends.
    pub reset_ms: u64,
}

/// A count of the calls of a consumer.
#[derive(Debug, Clone, Copy)]
pub struct ConsumerCount<'c> {
    /// The name of the limit: its scope, or the id of its instance.
    pub limit: &'c str,
    /// The consumer's id.
    pub consumer: &'c str,
    /// The window.
    pub window: CountWindow,
}

/// A window in which calls are counted, as a limit's `per` names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CountWindow {
    /// A second.
    Second,
    /// A minute.
    Minute,
    /// An hour.
    Hour,
    /// A day in UTC.
    Day,
    /// A week in UTC, from Monday on.
    Week,
    /// A month in UTC.
    Month,
}

/// A plugin of the catalogue: a name, a configuration type, and how an instance is built from it.
///
/// The value lives as long as the process; state that outlives a reload (counters) is its own.
pub trait Plugin: Send + Sync {
    /// The name in documents, metrics and logs.
    fn name(&self) -> &'static str;

    /// JSON Schema of the configuration.
    fn config_schema(&self) -> schemars::Schema;

    /// Builds an instance. Paths of diagnostics begin at the configuration.
    fn build(&self, config: &Value, context: &BuildContext<'_>) -> Result<Arc<dyn Filter>, Vec<Diagnostic>>;

    /// What is worth a look in a configuration that is good. Paths begin at the configuration.
    fn warnings(&self, config: &Value, context: &BuildContext<'_>) -> Vec<Diagnostic> {
        let _ = (config, context);
        Vec::new()
    }

    /// Whether it works on stream routes too: its request work, when a session begins, then gets an exchange that knows
    /// the client, the gateway's address and the server name, and nothing of HTTP. What it answers only says whether the
    /// session goes on; [`Exchange::destination`](crate::Exchange::destination) says where to. Its log work gets the
    /// same exchange when the session is over.
    fn works_on_streams(&self) -> bool {
        false
    }

    /// How many counters that still counted were evicted to make room for others; `None`: it holds none.
    fn evictions(&self) -> Option<Arc<AtomicU64>> {
        None
    }

    /// Counts that outlive a restart if the operator names a file for them; `None` if the plugin has none.
    fn persistent_counters(&self) -> Option<Arc<dyn PersistentCounters>> {
        None
    }

    /// Counts that gateways share through their control plane; `None`: it has none.
    fn shared_counts(&self) -> Option<Arc<dyn SharedCounts>> {
        None
    }

    /// Records that all gateways of a store share; `None`: it has none.
    fn shared_records(&self) -> Option<Arc<dyn SharedRecords>> {
        None
    }

    /// What credentials of this plugin look like; `None`: it has none.
    fn credentials(&self) -> Option<CredentialKind> {
        None
    }
}

/// The credentials that a plugin accepts.
pub struct CredentialKind {
    /// The fields by one of which a call names the credential; no two credentials have the same.
    pub identities: &'static [&'static str],
    /// JSON Schema of a credential's configuration.
    pub schema: schemars::Schema,
    /// Whether a credential's configuration is good.
    pub check: fn(&Value) -> Result<(), Vec<Diagnostic>>,
}

/// An instance of a plugin in a chain: immutable, shared by all workers.
///
/// A phase is called only if [`Filter::phases`] names it, so a chain without response work costs nothing in the
/// response phase.
pub trait Filter: Send + Sync {
    /// The phases in which this instance works.
    fn phases(&self) -> Phases;

    /// Whether its work reads variables that are in the request's body. The engine then reads a body of at most
    /// [`MAX_VARIABLE_BODY`](crate::MAX_VARIABLE_BODY) bytes before the chain begins its request work.
    fn needs_body(&self) -> bool {
        false
    }

    /// True for filters that only observe (logging, metrics): skipping one loses a log record and nothing else. The
    /// conditions of all other filters must be decided: if they cannot be, the call is refused.
    fn is_observer(&self) -> bool {
        false
    }

    /// Whether clients of the filter's routes are asked for a certificate in the TLS handshake, of any authority.
    /// Clients without one are let in too: the filter finds the certificates in
    /// [`Request::client_certificates`](crate::Request::client_certificates), and decides.
    fn requests_client_certificate(&self) -> bool {
        false
    }

    /// What takes lines of the gateway's own log, whether a chain has this instance or not; `None`: it takes none.
    fn gateway_log(&self) -> Option<Arc<dyn GatewayLog>> {
        None
    }

    /// Why it cannot do its work on this call, which is refused then: what it refuses or counts calls by is in a body
    /// that cannot be judged. Asked only of those that need the body.
    fn indeterminate(&self, exchange: &Exchange) -> Option<Indeterminate> {
        let _ = exchange;
        None
    }

    /// Works on the request before it is forwarded.
    fn on_request(&self, exchange: &mut Exchange) -> Outcome {
        let _ = exchange;
        Outcome::Continue
    }

    /// Removes the headers that only this filter may set, from a call whose caller another filter knows: the client has
    /// sent them.
    fn remove_forged(&self, exchange: &mut Exchange) {
        let _ = exchange;
    }

    /// Works on a request whose answer was one of [`Exchange::repeat_on`](crate::Exchange::repeat_on), before it is sent once
    /// more; the answer's head is in the exchange. Called of all filters that do request work, in its order. With
    /// [`Outcome::Continue`] the call goes on; after anything that takes time, the filter is called once more.
    fn on_refused(&self, exchange: &mut Exchange) -> Outcome {
        let _ = exchange;
        Outcome::Continue
    }

    /// Whether its response work makes another response of the upstream's. A cache behind it keeps that one, so the work is
    /// not done again on what comes out of the cache.
    fn rewrites_responses(&self) -> bool {
        false
    }

    /// Works on the head of the response, the upstream's or the gateway's own.
    fn on_response(&self, exchange: &mut Exchange) {
        let _ = exchange;
    }

    /// Waits before the response goes on: called of all filters that do response work, in its order and after all of it,
    /// if one of them has set [`Response::waits`](crate::Response::waits). With [`Outcome::Continue`] the response goes
    /// on as it stands. After anything that takes time, the filter is called once more. [`Outcome::Refuse`] and
    /// [`Outcome::Reply`] take the place of an upstream's response, or of one
    /// [out of a cache](crate::Response::is_from_cache); the response work then runs on that answer, which can only be
    /// delayed, not replaced. If the response was [held back as a whole](crate::BufferResponse::Whole), or if the gateway
    /// answers, its body is in [`Response::replaced_body`](crate::Response::replaced_body).
    fn on_waiting_response(&self, exchange: &mut Exchange) -> Outcome {
        let _ = exchange;
        Outcome::Continue
    }

    /// Whether it wants to log this call, whose log record may still be prepared here. A filter that declines costs
    /// the call nothing more.
    fn wants_log(&self, exchange: &mut Exchange) -> bool {
        let _ = exchange;
        true
    }

    /// Makes the log record of the finished call; entries are put into `out`.
    fn on_log(&self, exchange: &mut Exchange, record: &CallRecord<'_>, out: &mut Vec<LogEntry>) {
        let _ = (exchange, record, out);
    }
}

/// The phases in which a filter works.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Phases {
    /// [`Filter::on_request`] is called.
    pub request: bool,
    /// [`Filter::on_response`] is called.
    pub response: bool,
    /// [`Filter::on_log`] is called.
    pub log: bool,
}

impl Phases {
    /// Request work only.
    pub const REQUEST: Self = Self {
        request: true,
        response: false,
        log: false,
    };
    /// Response work only.
    pub const RESPONSE: Self = Self {
        request: false,
        response: true,
        log: false,
    };
    /// Both.
    pub const BOTH: Self = Self {
        request: true,
        response: true,
        log: false,
    };
    /// Work on finished calls only.
    pub const LOG: Self = Self {
        request: false,
        response: false,
        log: true,
    };
}

/// How the call goes on after a filter's request work.
#[derive(Debug)]
pub enum Outcome {
    /// With the next filter.
    Continue,
    /// With a refusal in the route's dialect.
    Refuse(Box<Refusal>),
    /// With this answer.
    Reply(Box<Reply>),
    /// With the next filter, after this time.
    Delay(Duration),
    /// The engine waits for this and calls the filter again, which knows by what it has
    /// [kept](Exchange::filter_state) that it has waited.
    Suspend(Suspend),
    /// The engine calls another server and calls the filter again, which finds the result in
    /// [`Exchange::subrequest_response`].
    Subrequest(Box<Subrequest>),
    /// The engine speaks another protocol with a server and calls the filter again, which finds in
    /// [`FilterState::take_answer`](crate::FilterState::take_answer) the result.
    Converse(Box<Conversation>),
    /// The engine has a Redis do this.
    Redis(Box<RedisCommand>),
    /// The engine hands an entry over to its target, as it does with those of finished calls, and calls the filter again.
    /// By the [receipt](crate::LogReceipt) the filter knows what has become of it.
    Publish(Box<LogEntry>),
    /// The engine reads records of Kafka.
    Kafka(KafkaWork),
    /// The engine reads the body (of at most so many bytes) and calls this filter again. Then
    /// `request.body` is set, or was too large and is `None`; asking once more is a refusal.
    NeedBody {
        /// The most bytes to read.
        max_bytes: usize,
    },
    /// The engine reads the body, or so many bytes of it, and calls this filter again. Then `request.body` is set, or
    /// [`Request::body_start`](crate::Request::body_start) has the first bytes of a longer one; asking once more is a
    /// refusal.
    NeedBodyStart {
        /// The most bytes to read.
        max_bytes: usize,
    },
}

impl Outcome {
    /// A refusal of this kind with its usual status.
    pub fn refuse(kind: RefusalKind) -> Self {
        Self::Refuse(Box::new(Refusal::new(kind)))
    }
}

/// Credential indexes, each of the type that its plugin gave it.
pub type CredentialIndexes = RefCell<HashMap<IndexSlot, Arc<dyn Any + Send + Sync>>>;

/// Which index: its plugin, its name among the plugin's, the dialect and the workspace.
pub type IndexSlot = (String, &'static str, DialectName, Option<Arc<str>>);

/// What an instance may know of its context while it is built.
pub struct BuildContext<'c> {
    /// Stable id of the instance. State kept outside of the snapshot belongs to it.
    pub instance_id: &'c str,
    /// The dialect of the chains in which the instance works.
    pub dialect: DialectName,
    /// Whether several credentials of one plugin may have the same key: the last one counts.
    pub keys_may_repeat: bool,
    /// Whether a configuration may name a consumer that does not exist. Calls that need it are answered as failures.
    pub consumers_may_be_missing: bool,
    /// The workspace whose consumers it knows.
    pub workspace: Option<&'c Arc<str>>,
    /// All credentials of the configuration by plugin name.
    pub credentials: &'c HashMap<String, Vec<CredentialSource<'c>>>,
    /// All consumers of the dialect by id, for anonymous consumers.
    pub consumers: &'c HashMap<(DialectName, String), Arc<crate::ConsumerIdentity>>,
    /// Credential indexes built so far for this snapshot.
    pub indexes: &'c CredentialIndexes,
    /// Where filters may send calls, in the order of the snapshot's list.
    pub destinations: &'c Destinations,
    /// What was found wrong with credentials while they were indexed; paths lead into the model's text form.
    pub credential_diagnostics: &'c RefCell<Vec<Diagnostic>>,
}

/// What a [`BuildContext`] borrows, for a configuration that is looked at by itself: no consumers, no credentials, and
/// nothing that was built before.
#[derive(Default)]
pub struct EmptyContext {
    credentials: HashMap<String, Vec<CredentialSource<'static>>>,
    consumers: HashMap<(DialectName, String), Arc<crate::ConsumerIdentity>>,
    indexes: CredentialIndexes,
    destinations: Destinations,
    credential_diagnostics: RefCell<Vec<Diagnostic>>,
}

impl EmptyContext {
    /// The context of an instance.
    pub fn of<'c>(&'c self, instance_id: &'c str, dialect: DialectName) -> BuildContext<'c> {
        BuildContext {
            instance_id,
            dialect,
            keys_may_repeat: false,
            consumers_may_be_missing: false,
            workspace: None,
            credentials: &self.credentials,
            consumers: &self.consumers,
            indexes: &self.indexes,
            destinations: &self.destinations,
            credential_diagnostics: &self.credential_diagnostics,
        }
    }
}

impl BuildContext<'_> {
    /// The credentials of plugin `plugin` in this context's dialect and workspace, indexed by the key that `read` finds
    /// in each. Built once for a snapshot, however many instances use it. Credentials that `read` declines are left out
    /// (they have been checked before). Two credentials with the same key are reported to
    /// [`credential_diagnostics`](Self::credential_diagnostics).
    pub fn credential_index<T: Send + Sync + 'static>(
        &self,
        plugin: &str,
        read: impl Fn(&Value) -> Option<(Vec<u8>, T)>,
    ) -> Arc<CredentialIndex<T>> {
        self.credential_index_by("", plugin, read)
    }

    /// [`credential_index`](Self::credential_index), for a plugin with several indexes, distinguished by `name`.
    pub fn credential_index_by<T: Send + Sync + 'static>(
        &self,
        name: &'static str,
        plugin: &str,
        read: impl Fn(&Value) -> Option<(Vec<u8>, T)>,
    ) -> Arc<CredentialIndex<T>> {
        let slot = (plugin.to_owned(), name, self.dialect, self.workspace.cloned());
        if let Some(index) = self.indexes.borrow().get(&slot)
            && let Ok(index) = Arc::clone(index).downcast::<CredentialIndex<T>>()
        {
            return index;
        }
        let mut index = CredentialIndex::default();
        for credential in self.credentials.get(plugin).into_iter().flatten() {
            if credential.dialect == self.dialect
                && credential.workspace == self.workspace
                && let Some((key, secret)) = read(credential.config)
            {
                let identity = credential.identity.clone();
                let entry = CredentialEntry {
                    secret,
                    identity,
                    ends_ms: credential.ends_ms(),
                };
                let ousted = index.insert(&key, entry);
                if let Some(ousted) = ousted {
                    let found = self.same_key(plugin, credential, &ousted.identity);
                    self.credential_diagnostics.borrow_mut().push(found);
                }
            }
        }
        let index = Arc::new(index);
        self.indexes
            .borrow_mut()
            .insert(slot, Arc::clone(&index) as Arc<dyn Any + Send + Sync>);
        index
    }

    /// A service as a destination of the snapshot, for
    /// [`Exchange::destination`](crate::Exchange::destination). One that does not exist is found when all plugins
    /// are built.
    pub fn destination(&self, service: &str, host: &UpstreamHost) -> DestinationId {
        let mut asked = self.destinations.borrow_mut();
        let is_it = |(name, upstream_host): &(String, UpstreamHost)| name == service && upstream_host == host;
        let known = asked.iter().position(is_it);
        let index = known.unwrap_or_else(|| {
            asked.push((service.to_owned(), host.clone()));
            asked.len() - 1
        });
        DestinationId(index as u32)
    }

    /// The consumer with this id in this context's dialect.
    pub fn consumer(&self, id: &str) -> Option<Arc<crate::ConsumerIdentity>> {
        self.consumers.get(&(self.dialect, id.to_owned())).cloned()
    }

    /// Reports that a credential has the key of another one. The key itself may be a secret and is not shown.
    fn same_key(&self, plugin: &str, credential: &CredentialSource<'_>, other: &Identity) -> Diagnostic {
        let names = [&other.consumer, &credential.identity.consumer];
        let [other, own] = names.map(|consumer| consumer.username.as_ref().unwrap_or(&consumer.id));
        let message = format!(
            "expected a unique key: '{own}' and '{other}' have {plugin} credentials with the same key"
        );
        let place = credential.place.clone();
        match self.keys_may_repeat {
            true => Diagnostic::warning(place, message),
            false => Diagnostic::error(place, message),
        }
    }
}

/// The catalogue: all plugins by name.
#[derive(Default, Clone)]
pub struct Registry(BTreeMap<&'static str, Arc<dyn Plugin>>);

impl Registry {
    /// Adds a plugin.
    ///
    /// # Panics
    /// When the name is taken: the catalogue is a fixed list.
    pub fn add(&mut self, plugin: impl Plugin + 'static) {
        let name = plugin.name();
        assert!(
            self.0.insert(name, Arc::new(plugin)).is_none(),
            "two plugins are named {name}"
        );
    }

    /// The plugin of this name.
    pub fn get(&self, name: &str) -> Option<&dyn Plugin> {
        self.0.get(name).map(AsRef::as_ref)
    }

    /// Of the plugins that hold counters, how many were evicted.
    pub fn evictions(&self) -> impl Iterator<Item = (&'static str, Arc<AtomicU64>)> {
        self.iter()
            .filter_map(|plugin| Some((plugin.name(), plugin.evictions()?)))
    }

    /// The counts of plugins that outlive a restart.
    pub fn persistent_counters(&self) -> impl Iterator<Item = (&'static str, Arc<dyn PersistentCounters>)> {
        self.iter()
            .filter_map(|plugin| Some((plugin.name(), plugin.persistent_counters()?)))
    }

    /// The counts of plugins that gateways share.
    pub fn shared_counts(&self) -> impl Iterator<Item = Arc<dyn SharedCounts>> {
        self.iter().filter_map(Plugin::shared_counts)
    }

    /// The records that gateways of one store share, by plugin.
    pub fn shared_records(&self) -> impl Iterator<Item = (&'static str, Arc<dyn SharedRecords>)> {
        self.iter()
            .filter_map(|plugin| Some((plugin.name(), plugin.shared_records()?)))
    }

    /// All plugins, by name.
    pub fn iter(&self) -> impl Iterator<Item = &dyn Plugin> {
        self.0.values().map(AsRef::as_ref)
    }
}
