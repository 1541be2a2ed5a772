//! The outbox of `weir run`: what sends mails and webhooks.

use crate::args::OutboxArgs;
use anyhow::Context;
use weir_control::operational::OperationalStore;
use weir_control::outbox::{Network, Outbox, Smtp, WebhookAddressPolicy};

/// The addresses that may be called when others than operators name them, and are not shown the answer: for webhooks, OCSP
/// responders.
pub fn reach(args: &OutboxArgs) -> WebhookAddressPolicy {
    WebhookAddressPolicy {
        allowed: args.webhook_allow.clone(),
    }
}

/// The addresses that documents may be fetched from: who names them reads what is there.
pub fn document_reach(args: &OutboxArgs) -> WebhookAddressPolicy {
    WebhookAddressPolicy {
        allowed: args.document_allow.clone(),
    }
}

/// An outbox in a store, as the flags say. It delivers from now on. To be called inside of a tokio runtime.
pub fn open(args: &OutboxArgs, store: OperationalStore) -> anyhow::Result<Outbox> {
    let mail = args
        .smtp
        .as_deref()
        .map(|url| Smtp::new(url, args.mail_from.as_deref().unwrap_or_default()))
        .transpose()
        .context("--smtp, --mail-from")?;
    let of_developers = WebhookAddressPolicy {
        allowed: args.portal_webhook_allow.clone(),
    };
    let network = Network::new(mail, reach(args)).with_developers(of_developers);
    let outbox = Outbox::new(store, network);
    tokio::spawn(outbox.clone().run());
    Ok(outbox)
}
