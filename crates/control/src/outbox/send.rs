//! What sends messages: a mail server, and HTTP for webhooks.

use super::mail::Smtp;
use super::message::{Message, Webhook};
use super::{seconds, signature};
use crate::http::{Call, Method};
use crate::reach::Reach;
use async_trait::async_trait;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

/// Until a receiver has answered.
const TIMEOUT: Duration = Duration::from_secs(15);
/// What is read of its answer.
const MAX_ANSWER: usize = 64 << 10;

/// Why a message has not arrived.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// In words.
    pub reason: String,
    /// Whether another attempt cannot help.
    pub is_final: bool,
}

/// What sends messages.
#[async_trait]
pub trait Transport: Send + Sync {
    /// Sends a message.
    async fn send(&self, id: &str, message: &Message, now: SystemTime) -> Result<(), Failure>;

    /// Whether mails can be sent.
    fn can_mail(&self) -> bool;
}

/// Sends for real.
pub struct Network {
    mail: Option<Smtp>,
    reach: Arc<Reach>,
}

impl Network {
    /// With a mail server, if there is one, and with rules for webhooks.
    pub fn new(mail: Option<Smtp>, reach: Reach) -> Self {
        Self {
            mail,
            reach: Arc::new(reach),
        }
    }

    async fn call(&self, id: &str, hook: &Webhook, now: SystemTime) -> Result<(), Failure> {
        let timestamp = seconds(now);
        let mut call = Call {
            method: Method::POST,
            body: hook.body.clone().into_bytes(),
            timeout: TIMEOUT,
            max_body: MAX_ANSWER,
            reach: Some(Arc::clone(&self.reach)),
            ..Call::get(hook.url.clone())
        }
        .header("content-type", "application/json")
        .header("webhook-id", id)
        .header("webhook-timestamp", timestamp.to_string());
        if !hook.secret.is_empty() {
            let signature = signature::sign(&hook.secret, id, timestamp, &hook.body);
            call = call.header("webhook-signature", signature);
        }
        match call.make().await {
            Ok((status, _)) if status.is_success() => Ok(()),
            Ok((status, _)) => Err(Failure {
                reason: format!("the receiver answered {status}"),
                // The receiver says that it will never take it.
                is_final: status.as_u16() == 410,
            }),
            Err(error) => Err(Failure {
                reason: error.to_string(),
                is_final: matches!(error, crate::http::HttpError::Call(_)),
            }),
        }
    }
}

#[async_trait]
impl Transport for Network {
    async fn send(&self, id: &str, message: &Message, now: SystemTime) -> Result<(), Failure> {
        match (message, &self.mail) {
            (Message::Webhook(hook), _) => self.call(id, hook, now).await,
            (Message::Mail(mail), Some(smtp)) => smtp.send(id, mail).await,
            (Message::Mail(_), None) => Err(Failure {
                reason: "there is no mail server: start Weir with --smtp".to_owned(),
                is_final: false,
            }),
        }
    }

    fn can_mail(&self) -> bool {
        self.mail.is_some()
    }
}
