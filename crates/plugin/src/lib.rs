//! The plugin contract: what a plugin is given, what it may do, and what it answers.
//!
//! A [`Plugin`] is a named factory in the [`Registry`]. Once for each instance in a configuration it turns a
//! typed configuration into a [`Filter`], which is immutable and shared by all workers. A filter works on one
//! [`Exchange`] (one request and its response) at a time, in few phases, and says by an [`Outcome`] how the
//! call goes on. When it refuses, it returns a typed [`Refusal`]; the route's [`Dialect`](dialect::Dialect) finds
//! the words.
//!
//! **What it is not**: it knows no single plugin, no dialect , no protocol version and no I/O.

mod background_request;
pub mod error_renderer;
pub mod graphql;
pub mod headers;
pub mod multipart;
pub mod template;
pub mod uri;

mod ambiguous_path;
mod body;
mod body_filter;
mod call_time;
mod client_certificates;
mod condition;
mod connector;
mod consumer;
mod conversation;
mod destination;
mod disk_cache;
mod exchange;
mod filter_state;
mod gateway_log;
mod indeterminate;
mod json_path;
mod kafka;
pub mod last_use;
mod line_end;
mod log;
mod log_broker;
mod log_receipt;
mod matched_pattern;
mod parse_config;
mod path_parameters;
mod plugin;
mod redis;
mod refusal;
mod request;
mod response;
mod semaphore;
mod shared_counts;
mod shared_records;
mod subrequest;
mod suspend;
mod target_override;
mod trace;
mod upstream_proxy;
mod variable;
mod websocket;
pub use background_request::BackgroundRequest;
mod work;

pub use body::MAX_VARIABLE_BODY;
pub use body_filter::{BodyFilter, BodyFilters};
pub use client_certificates::ClientCertificates;
pub use condition::Condition;
pub use connector::{Connector, HttpProxy};
pub use consumer::{ConsumerIdentity, CredentialEntry, CredentialIndex, CredentialSource, Identity};
pub use conversation::{Conversation, ConversationTls, ProtocolDriver, Received, Step, UpstreamDialogue};
pub use destination::{DestinationId, Destinations};
pub use disk_cache::{DiskCache, DiskCacheKey, DiskCacheReader, DiskCaches};
pub use exchange::{Clock, Exchange, RouteInfo, UpstreamTimeouts, system_clock};
pub use filter_state::FilterState;
pub use gateway_log::{GatewayLog, GatewayLogLevel};
pub use headers::{Header, Headers};
pub use indeterminate::Indeterminate;
pub use json_path::JsonPath;
pub use kafka::{
    KafkaAnswer, KafkaCluster, KafkaEvents, KafkaFailure, KafkaForm, KafkaPartition, KafkaRead, KafkaRecord,
    KafkaSource, KafkaStart, KafkaWork,
};
pub use line_end::newline_tolerant;
pub use log::{
    CallRecord, FailedAttempt, LogAuthorization, LogAuthorizer, LogBatching, LogEntry, LogFile, LogFraming,
    LogGrpc, LogHttp, LogKafka, LogOrigin, LogSasl, LogSigner, LogSink, LogTarget, ProtobufWrapper,
    SaslMechanism,
};
pub use log_broker::{LogBroker, LogProducer, LogProtocol, LogStep};
pub use log_receipt::{LogDelivery, LogReceipt, log_receipt};
pub use parse_config::parse_config;
pub use plugin::{
    BuildContext, ConsumerCount, CountWindow, CredentialIndexes, CredentialKind, EmptyContext, Filter,
    IndexSlot, Outcome, PersistentCounters, Phases, Plugin, Registry, WindowUsage,
};
pub use redis::{
    RedisAccumulator, RedisAddress, RedisCall, RedisCommand, RedisPublisher, RedisResponse, RedisScript,
    RedisServer, RedisTls, RedisTopology,
};
pub use refusal::{AuthFailure, ClaimDefect, NotOpen, Refusal, RefusalKind, TokenDefect};
pub use request::{CLIENT_HEADERS, OWN_CALL_HEADER, PathRules, Request, TlsAgreement, client_header_bit};
pub use response::{BufferResponse, Reply, Response, SharedReply};
pub use semaphore::Permit;
pub use shared_counts::{SharedCount, SharedCounts};
pub use shared_records::{
    Committed, Deliver, PendingResult, RecordRead, SharedChange, SharedRecord, SharedRecords, SharedStore,
    StoreUnavailable, awaited,
};
pub use subrequest::{Subrequest, SubrequestResponse, Verify};
pub use suspend::Suspend;
pub use target_override::TargetOverride;
pub use template::Template;
pub use trace::{TraceContext, write_hex};
pub use upstream_proxy::{ProxiedForwarding, UpstreamProxy};
pub use variable::Variable;
pub use websocket::{MESSAGE_TOO_LARGE, MessageFilter, MessageKind, MessageViolation, WebSocketSide};

pub use work::{Exhausted, WORK_STEPS, WorkBudget};
