//! Refusals: why the gateway itself answers a call. Typed, without words; an [`ErrorRenderer`](crate::error_renderer::ErrorRenderer)
//! renders them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// Why the gateway answers a call itself, with the status that this calls for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// What happened.
    pub kind: RefusalKind,
    /// The status to answer with.
    pub status: u16,
    /// `WWW-Authenticate`, as configured.
    pub challenge: Option<String>,
    /// A message from the configuration that replaces the dialect's own.
    pub message: Option<String>,
    /// Headers to send with it.
    pub headers: Vec<(Cow<'static, str>, String)>,
}

impl Refusal {
    /// A refusal of this kind with its usual status.
    pub fn new(kind: RefusalKind) -> Self {
        let status = kind.status();
        Self {
            kind,
            status,
            challenge: None,
            message: None,
            headers: Vec::new(),
        }
    }

    /// A refusal with another status.
    pub fn with_status(kind: RefusalKind, status: u16) -> Self {
        Self {
            status,
            ..Self::new(kind)
        }
    }
}

/// What happened.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum RefusalKind {
    /// The request breaks the protocol; the text says how, for logs.
    BadRequest(&'static str),
    /// `TRACE`, `CONNECT` and the like.
    MethodNotAllowed,
    /// The head did not arrive in time.
    RequestTimeout,
    /// The body is larger than allowed.
    BodyTooLarge,
    /// The request target is longer than allowed.
    UriTooLong,
    /// An expectation other than `100-continue`.
    ExpectationFailed,
    /// The header fields are larger or more than allowed.
    HeadTooLarge,
    /// A transfer coding that the gateway does not know.
    NotImplemented,
    /// An HTTP version that the gateway does not speak.
    VersionNotSupported,
    /// No route matches.
    NoRoute,
    /// The route leads to no service, or to one that does not exist.
    NoService,
    /// The route takes calls over TLS only; the status says whether to redirect.
    HttpsRequired,
    /// The upstream has no target that may be tried.
    NoTarget,
    /// The target's name cannot be resolved.
    NameResolution,
    /// No connection to a target could be established.
    ConnectFailed,
    /// The upstream closed or broke the protocol before a response.
    UpstreamFailed,
    /// The upstream did not answer in time.
    UpstreamTimeout,
    /// The upstream has as many calls in flight as it can bear.
    Overloaded,
    /// A plugin of this name did not find a good credential.
    Unauthenticated {
        /// The plugin's name in the catalogue.
        plugin: &'static str,
        /// What was wrong.
        failure: AuthFailure,
    },
    /// A configured consumer for unauthenticated calls does not exist.
    AnonymousConsumerMissing,
    /// A rate limit is reached.
    RateLimited,
    /// A quota, which is a limit by the day or longer, is used up.
    QuotaSpent,
    /// What the caller is subscribed to does not open the call.
    NotOpen {
        /// The plugin's name in the catalogue.
        plugin: &'static str,
        /// Why.
        reason: NotOpen,
    },
    /// A plugin's own check says no (address, origin, method, …).
    Forbidden {
        /// The plugin's name in the catalogue.
        plugin: &'static str,
    },
    /// A plugin finds the request itself wrong: its size, its form, what it says about itself.
    Unacceptable {
        /// The plugin's name in the catalogue.
        plugin: &'static str,
    },
    /// A plugin answers with a status of its own and leaves the words for it to the dialect.
    Answered {
        /// The plugin's name in the catalogue.
        plugin: &'static str,
    },
    /// The work for the call goes beyond its budget.
    WorkLimit,
    /// A plugin cannot work with its configuration for this call.
    PluginFailed {
        /// The plugin's name in the catalogue.
        plugin: &'static str,
        /// What is the matter, for logs.
        reason: &'static str,
    },
}

impl RefusalKind {
    /// The status that this calls for by itself.
    pub fn status(&self) -> u16 {
        match self {
            Self::BadRequest(_) | Self::Unacceptable { .. } | Self::WorkLimit => 400,
            Self::Unauthenticated { .. } => 401,
            Self::Forbidden { .. } | Self::NotOpen { .. } => 403,
            Self::NoRoute => 404,
            Self::MethodNotAllowed => 405,
            Self::RequestTimeout => 408,
            Self::BodyTooLarge => 413,
            Self::UriTooLong => 414,
            Self::ExpectationFailed => 417,
            Self::HttpsRequired => 426,
            Self::RateLimited | Self::QuotaSpent => 429,
            Self::HeadTooLarge => 431,
            Self::AnonymousConsumerMissing | Self::PluginFailed { .. } => 500,
            Self::NotImplemented => 501,
            Self::ConnectFailed | Self::UpstreamFailed => 502,
            Self::NoService
            | Self::NoTarget
            | Self::NameResolution
            | Self::Overloaded
            | Self::Answered { .. } => 503,
            Self::UpstreamTimeout => 504,
            Self::VersionNotSupported => 505,
        }
    }

    /// The cause for access logs: the word, or the reason that callers do not see.
    pub fn cause(&self) -> &'static str {
        match self {
            Self::Unauthenticated {
                failure: AuthFailure::Rejected(reason),
                ..
            } => reason,
            other => other.as_str(),
        }
    }

    /// A short word for metrics and logs.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::BadRequest(_) => "bad_request",
            Self::MethodNotAllowed => "method_not_allowed",
            Self::RequestTimeout => "request_timeout",
            Self::BodyTooLarge => "body_too_large",
            Self::UriTooLong => "uri_too_long",
            Self::ExpectationFailed => "expectation_failed",
            Self::HeadTooLarge => "head_too_large",
            Self::NotImplemented => "not_implemented",
            Self::VersionNotSupported => "version_not_supported",
            Self::NoRoute => "no_route",
            Self::NoService => "no_service",
            Self::HttpsRequired => "https_required",
            Self::NoTarget => "no_target",
            Self::NameResolution => "name_resolution",
            Self::ConnectFailed => "connect_failed",
            Self::UpstreamFailed => "upstream_failed",
            Self::UpstreamTimeout => "upstream_timeout",
            Self::Overloaded => "overloaded",
            Self::Unauthenticated { .. } => "unauthenticated",
            Self::AnonymousConsumerMissing => "anonymous_consumer_missing",
            Self::RateLimited => "rate_limited",
            Self::QuotaSpent => "quota_spent",
            Self::NotOpen { reason, .. } => reason.as_str(),
            Self::Forbidden { .. } => "forbidden",
            Self::Unacceptable { .. } => "unacceptable",
            Self::Answered { .. } => "answered",
            Self::WorkLimit => "work_limit",
            Self::PluginFailed { .. } => "plugin_failed",
        }
    }
}

/// Why a subscription does not open a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum NotOpen {
    /// The caller is known, and has no subscription here.
    NoSubscription,
    /// The provider has paused the subscription.
    SubscriptionPaused,
    /// Its application has stopped the subscription.
    SubscriptionStopped,
    /// The subscription has ended.
    SubscriptionEnded,
    /// The subscription has not begun.
    SubscriptionNotBegun,
    /// The plan of the subscription does not contain the operation.
    NotInPlan,
    /// The version of the API is retired.
    Retired,
}

impl NotOpen {
    /// A short word for metrics and logs.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::NoSubscription => "no_subscription",
            Self::SubscriptionPaused => "subscription_paused",
            Self::SubscriptionStopped => "subscription_stopped",
            Self::SubscriptionEnded => "subscription_ended",
            Self::SubscriptionNotBegun => "subscription_not_begun",
            Self::NotInPlan => "not_in_plan",
            Self::Retired => "retired",
        }
    }
}

/// Why a call is not authenticated.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum AuthFailure {
    /// The call carries no credential.
    Missing,
    /// The credential is unknown or wrong.
    Invalid,
    /// The credential cannot be read.
    Malformed,
    /// What the call says about its time is absent, unreadable, or too far from the gateway's.
    Stale,
    /// The call carries several credentials of one kind.
    Duplicate,
    /// The credential belongs to a consumer that does not exist.
    ConsumerMissing,
    /// A token has a fault that is reported to the caller.
    Token(TokenDefect),
    /// The credential is not accepted. The text gives the reason for logs and explanations; callers do not see it.
    Rejected(&'static str),
}

/// What is wrong with a token.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum TokenDefect {
    /// It cannot be decoded; the text names the place.
    Malformed(&'static str),
    /// The claim (or header) that names the credential is absent; its name.
    NoKeyClaim(String),
    /// The claim (or header) that names the credential is empty or no text; its name.
    BadKeyClaim(String),
    /// No credential has this key; the claim's name and value.
    UnknownKey {
        /// The claim's name.
        claim: String,
        /// Its value.
        value: String,
    },
    /// The algorithm is not the credential's.
    AlgorithmMismatch,
    /// The credential's key cannot be used.
    BadKey,
    /// The signature is wrong.
    BadSignature,
    /// Claims that do not hold: name and what is wrong with each.
    Claims(Vec<(String, ClaimDefect)>),
}

/// What is wrong with a claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ClaimDefect {
    /// It must be there.
    Missing,
    /// It must be a number.
    NotANumber,
    /// `exp` lies in the past.
    Expired,
    /// `nbf` lies in the future.
    NotYetValid,
    /// It lies further ahead than allowed.
    TooFarAhead,
    /// It has another value than it must.
    Mismatch,
}
