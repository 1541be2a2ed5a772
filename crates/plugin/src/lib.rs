//! The plugin contract: what a plugin is given, what it may do, and what it answers.
//!
//! A [`Plugin`] is a named factory in the [`Registry`]. Once for each instance in a configuration it turns a
//! typed configuration into a [`Filter`], which is immutable and shared by all workers. A filter works on one
//! [`Exchange`] (one request and its response) at a time, in few phases, and says by an [`Outcome`] how the
//! call goes on. When it refuses, it returns a typed [`Refusal`]; the route's [`Voice`](voice::Voice) finds
//! the words.
//!
//! **What it is not**: it knows no single plugin, no front door, no protocol version and no I/O.

pub mod graphql;
pub mod headers;
pub mod multipart;
pub mod template;
pub mod uri;
pub mod voice;

mod ambiguous_path;
mod body;
mod body_filter;
mod condition;
mod consumer;
mod exchange;
mod json_path;
mod kept;
mod line_end;
mod log;
mod matched;
mod permit;
mod plugin;
mod question;
mod redis;
mod refusal;
mod request;
mod response;
mod shelf;
mod side_call;
mod trace;
mod undecided;
mod variable;
mod wait;
mod work;

pub use body::MAX_VARIABLE_BODY;
pub use body_filter::{BodyFilter, BodyFilters};
pub use condition::Condition;
pub use consumer::{ConsumerIdentity, CredentialEntry, CredentialIndex, Identity, ModelCredential};
pub use exchange::{Clock, Exchange, RouteFacts, system_clock};
pub use headers::{Header, Headers};
pub use json_path::JsonPath;
pub use kept::Kept;
pub use line_end::newline_tolerant;
pub use log::{
    CallRecord, FailedTry, LogBatching, LogEntry, LogFile, LogGrpc, LogHttp, LogJoint, LogKafka, LogNesting,
    LogSasl, LogSink, LogTarget, SaslMechanism,
};
pub use permit::Permit;
pub use plugin::{
    BuildContext, CredentialIndexes, CredentialKind, Destinations, Filter, Outcome, Phases, Plugin, Registry,
    parse_config,
};
pub use question::{Answer, Question, Verify};
pub use redis::{
    RedisAddress, RedisAnswer, RedisCall, RedisLedger, RedisOutlet, RedisPlace, RedisScript, RedisServer,
    RedisTls, RedisWork,
};
pub use refusal::{AuthFailure, ClaimFault, Refusal, RefusalKind, TokenFault};
pub use request::{ABOUT_CLIENT, Request, bit_about_client};
pub use response::{Hold, Reply, Response, SharedReply};
pub use shelf::{Shelf, ShelfKey, ShelfReader, Shelves};
pub use side_call::SideCall;
pub use template::Template;
pub use trace::{TraceContext, write_hex};
pub use undecided::Undecided;
pub use variable::Variable;
pub use wait::Wait;
pub use work::{Exhausted, WORK_STEPS, WorkBudget};
