//! Flags of `weir run` for mails and webhooks, and for the addresses that others than operators name.

use clap::Args;
use ipnet::IpNet;

/// How mails and webhooks are sent.
#[derive(Clone, Args)]
#[command(next_help_heading = "Mails and webhooks")]
pub struct OutboxArgs {
    /// The mail server: `smtp://HOST:PORT`, `smtps://USER:PASSWORD@HOST`, with `?tls=required` for STARTTLS
    /// [default: mails are not sent].
    #[arg(
        long,
        value_name = "URL",
        env = "WEIR_SMTP",
        hide_env_values = true,
        requires = "mail_from"
    )]
    pub smtp: Option<String>,
    /// The sender of mails, such as `Weir <weir@example.com>`.
    #[arg(long, value_name = "ADDRESS", env = "WEIR_MAIL_FROM")]
    pub mail_from: Option<String>,
    /// The public URL of the console, such as `https://console.example.com`, for links in mails about alerts and
    /// reports.
    #[arg(long, value_name = "URL", env = "WEIR_CONSOLE_URL")]
    pub console_url: Option<String>,
    /// A network that webhooks may be sent to, in addition to public addresses, such as `10.1.0.0/16`. It also holds
    /// for OCSP responders of certificates, for vaults of `vault-auth` that Kong's Admin API calls, and for tests of
    /// secrets that nothing served refers to; their answers are not shown. Repeat the flag for several; in the
    /// variable, separate them with spaces.
    #[arg(long, value_name = "CIDR", env = "WEIR_WEBHOOK_ALLOW", value_delimiter = ' ')]
    pub webhook_allow: Vec<IpNet>,
    /// A network that webhooks of the portal's developers may be sent to, in addition to public addresses. Everyone who
    /// can sign up reaches it. Repeat the flag for several.
    #[arg(
        long,
        value_name = "CIDR",
        env = "WEIR_PORTAL_WEBHOOK_ALLOW",
        value_delimiter = ' '
    )]
    pub portal_webhook_allow: Vec<IpNet>,
    /// A network that documents may be fetched from (`POST /api/v1/documents/fetch`), in addition to public addresses.
    /// Everyone with `apis:write` can read what its servers answer to a GET. Repeat the flag for several.
    #[arg(long, value_name = "CIDR", env = "WEIR_DOCUMENT_ALLOW", value_delimiter = ' ')]
    pub document_allow: Vec<IpNet>,
}

/// URLs of mail servers hold passwords.
impl std::fmt::Debug for OutboxArgs {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("OutboxArgs")
            .field("webhook_allow", &self.webhook_allow)
            .field("portal_webhook_allow", &self.portal_webhook_allow)
            .field("document_allow", &self.document_allow)
            .finish_non_exhaustive()
    }
}
