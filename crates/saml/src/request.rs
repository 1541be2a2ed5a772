//! Messages that a service provider sends: asking for a login, ending a session, answering that it has ended.

use crate::escape::escaped;
use crate::instant::instant_text;
use crate::login::NameId;
use crate::names::{ASSERTION, POST, PROTOCOL, REDIRECT, SUCCESS};

/// Asks for a login.
#[derive(Debug, Clone, Copy)]
pub struct AuthnRequest<'r> {
    /// Its id, which no other message has.
    pub id: &'r str,
    /// When it is made, in seconds since the Unix epoch.
    pub now_s: i64,
    /// Where it is sent.
    pub destination: &'r str,
    /// Where the answer is sent.
    pub callback: &'r str,
    /// Whether the answer comes with a redirect; otherwise a form is posted.
    pub by_redirect: bool,
    /// The service provider's name.
    pub issuer: &'r str,
    /// What kind of a name the user has.
    pub name_id_format: Option<&'r str>,
}

impl AuthnRequest<'_> {
    /// The message.
    pub fn xml(&self) -> String {
        let binding = if self.by_redirect { REDIRECT } else { POST };
        let head = head("AuthnRequest", self.id, self.now_s, self.destination);
        let callback = escaped(self.callback);
        let policy = self.name_id_format.map(|format| {
            let format = escaped(format);
            format!("<samlp:NameIDPolicy Format=\"{format}\" AllowCreate=\"true\"></samlp:NameIDPolicy>")
        });
        format!(
            "{head} AssertionConsumerServiceURL=\"{callback}\" ProtocolBinding=\"{binding}\">{}{}</samlp:AuthnRequest>",
            issuer(self.issuer),
            policy.unwrap_or_default(),
        )
    }
}

/// Asks the provider to end a user's session.
pub fn logout_request(
    id: &str,
    now_s: i64,
    destination: &str,
    own: &str,
    (name, session_index): (&NameId, Option<&str>),
) -> String {
    let mut user = String::from("<saml:NameID");
    for (attribute, value) in [
        ("Format", &name.format),
        ("NameQualifier", &name.qualifier),
        ("SPNameQualifier", &name.service_qualifier),
    ] {
        if let Some(value) = value {
            user.push_str(&format!(" {attribute}=\"{}\"", escaped(value)));
        }
    }
    user.push_str(&format!(">{}</saml:NameID>", escaped(&name.value)));
    let session = session_index.map(|index| {
        let index = escaped(index);
        format!("<samlp:SessionIndex>{index}</samlp:SessionIndex>")
    });
    format!(
        "{}>{}{user}{}</samlp:LogoutRequest>",
        head("LogoutRequest", id, now_s, destination),
        issuer(own),
        session.unwrap_or_default(),
    )
}

/// Tells the provider that the sessions that it named have ended.
pub fn logout_response(id: &str, now_s: i64, destination: &str, own: &str, request_id: &str) -> String {
    format!(
        "{} InResponseTo=\"{}\">{}<samlp:Status><samlp:StatusCode Value=\"{SUCCESS}\"></samlp:StatusCode></samlp:Status>\
         </samlp:LogoutResponse>",
        head("LogoutResponse", id, now_s, destination),
        escaped(request_id),
        issuer(own),
    )
}

fn head(name: &str, id: &str, now_s: i64, destination: &str) -> String {
    format!(
        "<samlp:{name} xmlns:samlp=\"{PROTOCOL}\" xmlns:saml=\"{ASSERTION}\" ID=\"{}\" Version=\"2.0\" \
         IssueInstant=\"{}\" Destination=\"{}\"",
        escaped(id),
        instant_text(now_s),
        escaped(destination),
    )
}

fn issuer(name: &str) -> String {
    format!("<saml:Issuer>{}</saml:Issuer>", escaped(name))
}
