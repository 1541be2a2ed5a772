//! Sends messages: by a mail server, and by HTTP for webhooks.

use super::mail::Smtp;
use super::message::{ANSWERED, Message, Webhook};
use super::signature;
use crate::http::{ClientRequest, Method};
use crate::webhook_addresses::WebhookAddressPolicy;
use async_trait::async_trait;
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use weir_model::unix_time::seconds;

/// Until a receiver has answered.
const TIMEOUT: Duration = Duration::from_secs(15);
/// The most bytes that are read of its answer.
const MAX_ANSWER: usize = 64 << 10;

/// Why a message has not arrived.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// In words.
    pub reason: String,
    /// Whether another attempt cannot help.
    pub is_final: bool,
}

/// Sends messages.
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
    /// The addresses that webhooks of operators may go to.
    reach: Arc<WebhookAddressPolicy>,
    /// The addresses that webhooks of developers may go to: networks that operators opened for their own are not open
    /// to everybody who signs up.
    of_developers: Arc<WebhookAddressPolicy>,
}

impl Network {
    /// With a mail server, if there is one, and with rules for webhooks.
    pub fn new(mail: Option<Smtp>, reach: WebhookAddressPolicy) -> Self {
        Self {
            mail,
            reach: Arc::new(reach),
            of_developers: Arc::default(),
        }
    }

    /// Lets webhooks of developers go to further networks.
    #[must_use]
    pub fn with_developers(mut self, reach: WebhookAddressPolicy) -> Self {
        self.of_developers = Arc::new(reach);
        self
    }

    fn reach_of(&self, hook: &Webhook) -> &Arc<WebhookAddressPolicy> {
        match hook.of_application {
            Some(_) => &self.of_developers,
            None => &self.reach,
        }
    }

    async fn call(&self, id: &str, hook: &Webhook, now: SystemTime) -> Result<(), Failure> {
        let timestamp = seconds(now);
        let mut call = ClientRequest {
            method: Method::POST,
            body: hook.body.clone().into_bytes(),
            timeout: TIMEOUT,
            max_body: MAX_ANSWER,
            reach: Some(Arc::clone(self.reach_of(hook))),
            ..ClientRequest::get(hook.url.clone())
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
                reason: format!("{ANSWERED} {status}"),
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

#[cfg(test)]
mod tests {
    use super::*;

    /// A developer's webhook is no way into the operator's network, even if the operator's own webhooks go there.
    #[tokio::test]
    async fn webhooks_of_developers_have_their_own_reach() {
        let local = |_: ()| WebhookAddressPolicy {
            allowed: vec!["127.0.0.0/8".parse().expect("a network")],
        };
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        let url = format!("http://{}/hook", listener.local_addr().expect("an address"));
        // Nothing answers: who is let through learns that, who is not is refused before.
        drop(listener);
        let hook = |of_application: Option<(String, String)>| {
            Message::Webhook(Webhook {
                url: url.clone(),
                secret: String::new(),
                body: "{}".to_owned(),
                of_application,
            })
        };
        let own = Some(("till".to_owned(), "ci".to_owned()));
        for (network, of_application, is_let) in [
            (Network::new(None, local(())), None, true),
            (Network::new(None, local(())), own.clone(), false),
            (
                Network::new(None, WebhookAddressPolicy::default()).with_developers(local(())),
                own,
                true,
            ),
            (
                Network::new(None, WebhookAddressPolicy::default()).with_developers(local(())),
                None,
                false,
            ),
        ] {
            let message = hook(of_application.clone());
            let failure = network.send("id", &message, SystemTime::UNIX_EPOCH).await;
            let reason = failure.expect_err("nothing answers").reason;
            assert_eq!(!reason.contains("public"), is_let, "{of_application:?}: {reason}");
        }
    }
}
