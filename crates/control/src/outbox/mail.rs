//! Mails over SMTP: the connection to the operator's server, and the parts of a mail.

use super::message::{Attachment, Mail};
use super::send::Failure;
use data_encoding::BASE64;
use lettre::message::header::ContentType;
use lettre::message::{Attachment as File, Mailbox, MultiPart, SinglePart};
use lettre::{Address, AsyncSmtpTransport, AsyncTransport, Message, Tokio1Executor};
use std::time::Duration;

/// Until the server has answered.
const TIMEOUT: Duration = Duration::from_secs(30);

/// A mail server, and in whose name it sends.
#[derive(Clone)]
pub struct Smtp {
    transport: AsyncSmtpTransport<Tokio1Executor>,
    from: Mailbox,
}

/// Why a mail server cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum SmtpError {
    /// The URL is invalid. It may hold a password and is not shown.
    #[error("expected smtp://HOST:PORT, smtps://USER:PASSWORD@HOST or smtp://HOST?tls=required: {0}")]
    Url(String),
    /// The address is invalid.
    #[error("expected an address such as 'Weir <weir@example.com>', found '{0}'")]
    From(String),
}

impl Smtp {
    /// By the URL of a server (`smtp://`, `smtps://`, `?tls=required`), and the address that mails are from.
    ///
    /// # Errors
    /// If one of them is invalid.
    pub fn new(url: &str, from: &str) -> Result<Self, SmtpError> {
        let builder = AsyncSmtpTransport::<Tokio1Executor>::from_url(url)
            .map_err(|error| SmtpError::Url(error.to_string()))?;
        Ok(Self {
            transport: builder.timeout(Some(TIMEOUT)).build(),
            from: mailbox(from).ok_or_else(|| SmtpError::From(from.to_owned()))?,
        })
    }

    /// Sends a mail.
    pub(super) async fn send(&self, id: &str, mail: &Mail) -> Result<(), Failure> {
        let message = self.message(id, mail).map_err(|reason| Failure {
            reason,
            is_final: true,
        })?;
        match self.transport.send(message).await {
            Ok(_) => Ok(()),
            Err(error) => Err(Failure {
                is_final: error.is_permanent(),
                reason: format!("the mail server: {error}"),
            }),
        }
    }

    fn message(&self, id: &str, mail: &Mail) -> Result<Message, String> {
        let to = mailbox(&mail.to).ok_or_else(|| {
            format!(
                "'{}' is not a valid mail address: expected one such as ops@example.com",
                mail.to
            )
        })?;
        let builder = Message::builder()
            .from(self.from.clone())
            .to(to)
            .subject(mail.subject.clone())
            // The same mail has the same id, so that mail programs show it once.
            .message_id(Some(format!("<{id}@{}>", self.from.email.domain())));
        let text = SinglePart::plain(mail.text.clone());
        let built = if mail.html.is_empty() && mail.attachments.is_empty() {
            builder.singlepart(text)
        } else {
            let mut related = MultiPart::related().singlepart(SinglePart::html(mail.html.clone()));
            let (inline, others): (Vec<_>, Vec<_>) = mail.attachments.iter().partition(|it| it.is_inline);
            for file in inline {
                let (contents, kind) = read(file)?;
                related = related.singlepart(File::new_inline(file.name.clone()).body(contents, kind));
            }
            let alternative = MultiPart::alternative().singlepart(text).multipart(related);
            let mut mixed = MultiPart::mixed().multipart(alternative);
            for file in others {
                let (contents, kind) = read(file)?;
                mixed = mixed.singlepart(File::new(file.name.clone()).body(contents, kind));
            }
            builder.multipart(mixed)
        };
        built.map_err(|error| error.to_string())
    }
}

/// An address whose domain is written as every mail server takes it (RFC 5891): with letters beyond ASCII in it, a server
/// without SMTPUTF8 (RFC 6531) would refuse the mail.
fn mailbox(text: &str) -> Option<Mailbox> {
    let read: Mailbox = text.parse().ok()?;
    let domain = idna::domain_to_ascii(read.email.domain()).ok()?;
    let email = Address::new(read.email.user(), domain).ok()?;
    Some(Mailbox::new(read.name, email))
}

fn read(file: &Attachment) -> Result<(Vec<u8>, ContentType), String> {
    let contents = BASE64
        .decode(file.contents.as_bytes())
        .map_err(|error| format!("{}: {error}", file.name))?;
    let kind = ContentType::parse(&file.media_type).map_err(|error| format!("{}: {error}", file.name))?;
    Ok((contents, kind))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_server_or_address_is_refused() {
        for (url, from, part) in [
            ("http://localhost", "a@example.com", "expected smtp://"),
            ("smtp://localhost", "no address", "found 'no address'"),
        ] {
            let refused = Smtp::new(url, from).err().expect(part).to_string();
            assert!(refused.contains(part), "{refused}");
        }
    }

    #[tokio::test]
    async fn domains_are_sent_in_punycode() {
        let smtp = Smtp::new("smtp://localhost:2525", "Weir <weir@bücher.example>").expect("a server");
        let message = |to: &str| {
            let mail = Mail {
                to: to.into(),
                subject: "s".into(),
                text: "t".into(),
                html: String::new(),
                attachments: Vec::new(),
            };
            smtp.message("id", &mail)
        };
        let sent = message("Gün <g@exämple.de>").expect("a mail");
        let recipients: Vec<&str> = sent.envelope().to().iter().map(AsRef::as_ref).collect();
        assert_eq!(recipients, ["g@xn--exmple-cua.de"]);
        let text = String::from_utf8(sent.formatted()).expect("a text");
        assert!(text.is_ascii(), "{text}");
        assert!(text.contains("Message-ID: <id@xn--bcher-kva.example>"), "{text}");
        let refused = message("g@a..b").expect_err("no address");
        assert!(
            refused.contains("'g@a..b' is not a valid mail address"),
            "{refused}"
        );
    }

    #[tokio::test]
    async fn mails_have_their_parts_and_no_header_can_be_slipped_in() {
        let smtp = Smtp::new("smtp://localhost:2525", "Weir <weir@example.com>").expect("a server");
        let mail = Mail {
            to: "ann@example.com".into(),
            subject: "one\r\nBcc: eve@example.com".into(),
            text: "text".into(),
            html: "<img src=\"cid:chart.png\">".into(),
            attachments: vec![Attachment {
                name: "chart.png".into(),
                media_type: "image/png".into(),
                contents: BASE64.encode(b"png"),
                is_inline: true,
            }],
        };
        let message = smtp.message("id", &mail).expect("a mail");
        let text = String::from_utf8(message.formatted()).expect("a text");
        for part in [
            "Message-ID: <id@example.com>",
            "Content-ID: <chart.png>",
            "multipart/alternative",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
        assert!(!text.contains("\nBcc:"), "{text}");
    }
}
