//! The verdicts of a chain's plugins about a call, as far as that can be said without I/O: their request work runs on a
//! call that is sent nowhere.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use weir_plugin::error_renderer::ErrorRenderer;
use weir_plugin::{
    AuthFailure, ConsumerIdentity, Exchange, Identity, Outcome, Refusal, RefusalKind, Registry, Reply,
};
use weir_snapshot::{Chain, Instance};

/// The longest part of an answer's body that is shown, in bytes.
const MAX_BODY: usize = 1000;
/// How often a plugin is called that reads the body.
const ROUNDS: usize = 3;

/// A plugin's verdict about a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum VerdictKind {
    /// An earlier plugin has answered.
    #[default]
    NotReached,
    /// It changes the call, which continues.
    Continues,
    /// It refuses the call.
    Refuses,
    /// It answers the call.
    Answers,
    /// Its condition does not hold.
    DoesNotApply,
    /// Nothing runs here for this consumer, or nothing that works on requests.
    Idle,
    /// Unknown without calling another server or waiting.
    Unknown,
}

/// The verdict of a step of a chain about a call.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
pub struct StepVerdict {
    /// In a word.
    pub verdict: VerdictKind,
    /// The status of a refusal or an answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// Why, in a sentence.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// How the body of the refusal or the answer begins.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub body: Option<String>,
    /// The id of the plugin that runs for this consumer, if it is another one than the step's own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instance: Option<String>,
}

impl StepVerdict {
    fn of(verdict: VerdictKind, reason: impl Into<String>) -> Self {
        let reason = Some(reason.into()).filter(|it| !it.is_empty());
        Self {
            verdict,
            reason,
            ..Self::default()
        }
    }
}

/// The outcome of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum EndKind {
    /// It goes to the target.
    #[default]
    Forwarded,
    /// The gateway answers it.
    Answered,
    /// It depends on another server's answer.
    Unknown,
}

/// The end of a call, with its reason.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
pub struct CallEnd {
    /// In a word.
    pub kind: EndKind,
    /// The status, if the gateway answers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// Why.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The place in `plugins` (from 1) of the plugin that decides.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step: Option<usize>,
}

impl CallEnd {
    /// The gateway answers.
    pub fn answered(status: u16, reason: &str) -> Self {
        Self {
            kind: EndKind::Answered,
            status: Some(status),
            reason: Some(reason.to_owned()),
            step: None,
        }
    }
}

/// A call on which plugins work.
pub(super) struct Work<'w> {
    pub(super) exchange: Exchange,
    pub(super) renderer: &'w dyn ErrorRenderer,
    pub(super) registry: &'w Registry,
    /// The consumer that the call is taken for if it carries no good credential.
    pub(super) consumer: Option<Arc<ConsumerIdentity>>,
    /// The plugins that the consumer has credentials of: it carries those, and no others. `None`: whatever is asked for.
    pub(super) credentials: Option<Vec<&'w str>>,
    /// Why the first credential was not accepted.
    pub(super) auth_failure: Option<AuthFailure>,
}

impl Work<'_> {
    /// Runs the request work of a chain. Returns a verdict for each step, and the end of the call.
    pub(super) fn run(&mut self, chain: &Chain) -> (Vec<StepVerdict>, CallEnd) {
        let mut verdicts = vec![StepVerdict::default(); chain.steps.len()];
        let mut unknown = None;
        for (index, step) in chain.steps.iter().enumerate() {
            let instance = step.instance(self.exchange.identity.as_ref());
            let verdict = match instance {
                Some(instance) if instance.phases.request && !step.response_only => self.step(instance),
                _ => StepVerdict::of(VerdictKind::Idle, ""),
            };
            let is_own = |it: &&Arc<Instance>| {
                step.instance(None)
                    .is_none_or(|standard| !Arc::ptr_eq(standard, it))
            };
            let verdict = StepVerdict {
                instance: instance.filter(is_own).map(|it| it.id.clone()),
                ..verdict
            };
            let is_end = matches!(verdict.verdict, VerdictKind::Refuses | VerdictKind::Answers);
            if verdict.verdict == VerdictKind::Unknown && unknown.is_none() {
                unknown = Some(CallEnd {
                    kind: EndKind::Unknown,
                    status: None,
                    reason: verdict.reason.clone(),
                    step: Some(index + 1),
                });
            }
            verdicts[index] = verdict;
            if is_end {
                let end = unknown.unwrap_or_else(|| CallEnd {
                    kind: EndKind::Answered,
                    status: verdicts[index].status,
                    reason: verdicts[index].reason.clone(),
                    step: Some(index + 1),
                });
                return (verdicts, end);
            }
        }
        (verdicts, unknown.unwrap_or_default())
    }

    fn step(&mut self, instance: &Instance) -> StepVerdict {
        if let Some(condition) = &instance.when
            && !condition.holds(&self.exchange)
        {
            return StepVerdict::of(VerdictKind::DoesNotApply, "its condition does not hold");
        }
        for _ in 0..ROUNDS {
            return match instance.filter.on_request(&mut self.exchange) {
                Outcome::Continue => StepVerdict::of(VerdictKind::Continues, self.reservation(instance)),
                Outcome::Delay(time) => StepVerdict::of(
                    VerdictKind::Continues,
                    format!("it waits for {} ms", time.as_millis()),
                ),
                Outcome::Refuse(refusal) => self.refused(instance, &refusal),
                Outcome::Reply(reply) => answered(&reply),
                Outcome::NeedBody { .. } | Outcome::NeedBodyStart { .. } => continue,
                Outcome::Subrequest(_) => unknown("it calls another server"),
                Outcome::Redis(_) => unknown("it uses a Redis"),
                Outcome::Publish(_) => unknown("it hands the call over to a message broker"),
                Outcome::Kafka(_) => unknown("it reads from a message broker"),
                Outcome::Converse(_) => unknown("it speaks with another server"),
                Outcome::Suspend(_) => unknown("it waits for something outside of the call"),
            };
        }
        unknown("it reads the body again and again")
    }

    /// What remains unknown here about a plugin that lets the call go on.
    fn reservation(&self, instance: &Instance) -> &'static str {
        let counts = self.registry.get(instance.plugin).and_then(|it| it.evictions());
        match counts.is_some() {
            true => "unless its limit is reached: counters are not checked",
            false => "",
        }
    }

    /// The verdict of a plugin that asks for a credential, if the consumer carries all that it has.
    fn by_own_credentials(&mut self, instance: &Instance) -> Option<StepVerdict> {
        let (own, consumer) = (self.credentials.as_ref()?, self.consumer.as_ref()?);
        let name = instance.plugin;
        if own.contains(&name) {
            self.exchange.identity = Some(Identity {
                consumer: Arc::clone(consumer),
                credential_id: None,
            });
            let reason = format!("the consumer has a {name} credential");
            return Some(StepVerdict::of(VerdictKind::Continues, reason));
        }
        let has_credentials = self
            .registry
            .get(name)
            .is_some_and(|it| it.credentials().is_some());
        Some(match has_credentials {
            true => StepVerdict {
                status: Some(401),
                ..StepVerdict::of(
                    VerdictKind::Refuses,
                    format!("the consumer has no {name} credential"),
                )
            },
            false => unknown("it does not identify callers by credentials of consumers"),
        })
    }

    fn refused(&mut self, instance: &Instance, refusal: &Refusal) -> StepVerdict {
        if let RefusalKind::Unauthenticated { failure, .. } = &refusal.kind {
            self.auth_failure.get_or_insert_with(|| failure.clone());
            if let Some(verdict) = self.by_own_credentials(instance) {
                return verdict;
            }
            if let Some(consumer) = self.consumer.take() {
                let reason = format!("the call is treated as one of the consumer {}", consumer.id);
                self.exchange.identity = Some(Identity {
                    consumer,
                    credential_id: None,
                });
                return StepVerdict::of(VerdictKind::Continues, reason);
            }
        }
        let reply = self.renderer.render(refusal, &self.exchange);
        let fixed = instance.refusal_body.as_ref().map(|it| it.body.as_slice());
        StepVerdict {
            status: Some(reply.status),
            body: body_text(fixed.unwrap_or(&reply.body)),
            ..StepVerdict::of(VerdictKind::Refuses, reason(refusal))
        }
    }
}

fn unknown(reason: &str) -> StepVerdict {
    StepVerdict::of(VerdictKind::Unknown, reason)
}

fn answered(reply: &Reply) -> StepVerdict {
    let shared = reply.shared.as_ref().map(|it| it.body.as_ref());
    let body: &[u8] = shared.unwrap_or(&reply.body);
    StepVerdict {
        status: Some(reply.status),
        body: body_text(body),
        ..StepVerdict::of(VerdictKind::Answers, "it answers itself")
    }
}

/// How a body begins, as a text.
fn body_text(body: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(&body[..body.len().min(MAX_BODY)]).into_owned();
    Some(text).filter(|it| !it.is_empty())
}

/// A refusal in words.
fn reason(refusal: &Refusal) -> String {
    let text = match &refusal.kind {
        RefusalKind::Unauthenticated { failure, .. } => match failure {
            AuthFailure::Missing => "the call carries no credential",
            AuthFailure::Invalid => "the credential is unknown or wrong",
            AuthFailure::Malformed => "the credential cannot be read",
            AuthFailure::Stale => "the time in the credential is missing or too far from the gateway's",
            AuthFailure::Duplicate => "the call carries several credentials of one kind",
            AuthFailure::ConsumerMissing => "the credential belongs to a consumer that does not exist",
            AuthFailure::Rejected(reason) => reason,
            _ => "the token is not accepted",
        },
        RefusalKind::RateLimited => "a limit is reached",
        RefusalKind::QuotaSpent => "a quota is used up",
        RefusalKind::NotOpen { .. } => "the subscription does not open the call",
        RefusalKind::Forbidden { .. } => "the plugin's own check refuses the call",
        RefusalKind::Unacceptable { .. } => "the plugin finds the request wrong",
        RefusalKind::AnonymousConsumerMissing => "the consumer for anonymous calls does not exist",
        RefusalKind::Answered { .. } => "the plugin answers",
        RefusalKind::WorkLimit => "the request asks for too much work",
        RefusalKind::PluginFailed { reason, .. } => reason,
        other => return other.as_str().replace('_', " "),
    };
    match &refusal.message {
        Some(message) => format!("{text}: {message}"),
        None => text.to_owned(),
    }
}
