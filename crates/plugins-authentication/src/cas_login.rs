//! `cas-login`: logs browsers in through a CAS server (version 2 and 3 of its protocol).
//!
//! ```yaml
//! url: https://cas.example.com/cas
//! callback: /cas_callback
//! logout_path: /logout
//! session: {secret: 0123456789abcdef0123456789abcdef}
//! ```
//!
//! Browsers without a session are sent to the server and come back to `callback` with a ticket. Weir checks the ticket
//! with the server once. A session lasts for an hour after its last use. The server may end it by posting the ticket to
//! `callback`.
//!
//! Security: a ticket is accepted only from the browser that began the login. If the server ends a session, all
//! gateways of a store learn of it; without a store, only the gateway that received the message does.

use crate::browser::{redirect, refused};
use crate::http_rules::HttpRules;
use crate::login_cookie::LoginCookie;
use crate::session_cookie::{SessionConfig, Sessions};
use crate::shared_revocations::{RevocationRecords, SharedRevocations};
use aws_lc_rs::digest;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::sync::Arc;
use weir_model::{Diagnostic, DocPath};
use weir_plugin::{
    BuildContext, Exchange, Filter, Outcome, Phases, Plugin, Reply, SharedRecords, parse_config,
};
use weir_plugins_shared::config_checks::ConfigErrors;
use weir_plugins_shared::http_request::{HttpRequest, HttpServer, ServerCallRules, form};
use weir_plugins_shared::random::{Random, system_random};
use weir_saml::{Document, Limits};

/// Configuration of `cas-login`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// The server's address.
    pub url: String,
    /// The address to which the server sends browsers back: a path, or a whole address.
    pub callback: String,
    /// The path that logs out.
    pub logout_path: String,
    /// The most bytes of a message by which the server ends a session.
    #[serde(default = "sixty_four_kib")]
    pub max_body_bytes: usize,
    /// The session and its cookie.
    pub session: SessionConfig,
    /// The HTTP settings for calls to the server.
    #[serde(default)]
    pub http: HttpRules,
}

fn sixty_four_kib() -> usize {
    64 << 10
}

const NAME: &str = "cas-login";
/// The namespace of the server's answers.
const CAS: &str = "http://www.yale.edu/tp/cas";
const ENDED_BYTES: usize = 8 << 20;
/// The longest ticket: what the protocol advises clients to take.
const MAX_TICKET: usize = 256;

/// The plugin `cas-login`.
pub struct CasLogin {
    /// Tickets whose sessions the server has ended.
    ended: Arc<SharedRevocations>,
    random: Random,
}

impl Default for CasLogin {
    fn default() -> Self {
        Self {
            ended: SharedRevocations::new(ENDED_BYTES),
            random: system_random,
        }
    }
}

impl Plugin for CasLogin {
    fn name(&self) -> &'static str {
        "cas-login"
    }

    fn config_schema(&self) -> schemars::Schema {
        schemars::schema_for!(Config)
    }

    fn build(&self, config: &Value, _: &BuildContext<'_>) -> Result<Arc<dyn Filter>, Vec<Diagnostic>> {
        let mut config: Config = parse_config(config)?;
        let mut faults = ConfigErrors::default();
        let server = HttpServer::parse(&format!("{}/serviceValidate", config.url));
        if server.is_none() {
            faults.add("url", "expected an address that begins with http:// or https://");
        }
        let callback_path = match config.callback.contains("://") {
            false => Some(config.callback.clone()).filter(|path| path.starts_with('/')),
            true => HttpServer::parse(&config.callback)
                .map(|it| it.target.split('?').next().unwrap_or_default().to_owned()),
        };
        if callback_path.is_none() {
            faults.add(
                "callback",
                "expected a path, or an address that begins with http:// or https://",
            );
        }
        config.http.check(&mut faults);
        faults.extend(config.session.faults(&DocPath::root().field("session")));
        faults.done()?;
        // Sessions of one server and callback are not those of another.
        let context = format!("{}|{}", config.url, config.callback);
        let context = digest::digest(&digest::SHA256, context.as_bytes());
        let context = data_encoding::HEXLOWER.encode(context.as_ref());
        config.session.audience.push_str(&context);
        Ok(Arc::new(LoginFilter {
            server: server.expect("invariant: its absence has been reported"),
            callback_path: callback_path.unwrap_or_default(),
            sessions: Sessions::new(config.session.clone(), self.random),
            rules: config.http.rules(),
            ended: Arc::clone(&self.ended),
            context,
            config,
        }))
    }

    fn shared_records(&self) -> Option<Arc<dyn SharedRecords>> {
        Some(Arc::new(RevocationRecords(Arc::clone(&self.ended))))
    }
}

/// An instance of `cas-login`.
struct LoginFilter {
    config: Config,
    server: HttpServer,
    callback_path: String,
    sessions: Sessions,
    rules: ServerCallRules,
    ended: Arc<SharedRevocations>,
    /// The server and the callback, as a name for what belongs to them.
    context: String,
}

/// What a session remembers.
#[derive(Serialize, Deserialize)]
struct CasSession {
    ticket: String,
    user: String,
}

/// A ticket that is being checked with the server, and the address that the browser asked for.
struct TicketCheck {
    ticket: String,
    url: String,
}

/// The text between two marks.
fn between<'t>(text: &'t str, begin: &str, end: &str) -> Option<&'t str> {
    let rest = &text[text.find(begin)? + begin.len()..];
    Some(&rest[..rest.find(end)?])
}

/// The user whose ticket the server accepts, by its answer. It is read as XML: what a refusal or an attribute quotes, also
/// in a comment or a section of characters, is no answer.
fn user_of(answer: &str) -> Option<String> {
    let answer = Document::parse(answer.trim(), Limits::default()).ok()?;
    let root = answer.root();
    let mut results = answer.children(root);
    let success = results
        .next()
        .filter(|it| answer.is(*it, CAS, "authenticationSuccess"))?;
    if !answer.is(root, CAS, "serviceResponse") || results.next().is_some() {
        return None;
    }
    let user = answer.text(answer.only(success, CAS, "user").ok()??)?;
    // Other blanks than those of XML belong to a name: one that ends with them is another one's.
    let user = user.trim_matches([' ', '\t', '\r', '\n']);
    (!user.is_empty()).then(|| user.to_owned())
}

impl LoginFilter {
    /// The address for which the server gives tickets.
    fn service(&self, exchange: &Exchange) -> String {
        let callback = &self.config.callback;
        if callback.contains("://") {
            return callback.clone();
        }
        let request = &exchange.request;
        let scheme = if request.is_tls { "https" } else { "http" };
        let host = String::from_utf8_lossy(&request.host);
        format!("{scheme}://{host}:{}{callback}", request.local.port())
    }

    fn login_cookie(&self) -> LoginCookie<'_> {
        let purpose = [b"cas login", self.context.as_bytes()];
        LoginCookie::new(&self.sessions, "CAS_REQUEST_URI", purpose)
    }

    fn begin(&self, exchange: &mut Exchange) -> Outcome {
        self.login_cookie().begin(exchange, String::new());
        let query = form([("service", self.service(exchange).as_str())]);
        redirect(302, &format!("{}/login?{query}", self.config.url))
    }

    /// Has the server say whose a ticket is.
    fn ask(&self, exchange: &mut Exchange, ticket: String) -> Outcome {
        let Some(login) = self.login_cookie().read(exchange) else {
            return refused(NAME, 401, "invalid callback state");
        };
        let service = self.service(exchange);
        let query = form([("ticket", ticket.as_str()), ("service", service.as_str())]);
        let request = HttpRequest {
            query: &query,
            accept: "application/xml, */*",
            ..HttpRequest::GET
        };
        let asked = self.server.request(request, &self.rules);
        exchange.filter_state.put(
            self,
            TicketCheck {
                ticket,
                url: login.url,
            },
        );
        Outcome::Subrequest(Box::new(asked))
    }

    /// What the server says about the ticket.
    fn finish(&self, exchange: &mut Exchange, asked: TicketCheck) -> Outcome {
        let answer = exchange.subrequest_response.take().flatten();
        let answer = answer.filter(|answer| answer.status == 200);
        let user = answer.and_then(|answer| user_of(std::str::from_utf8(&answer.body).ok()?));
        let Some(user) = user else {
            return refused(NAME, 401, "invalid ticket");
        };
        let remembered = CasSession {
            ticket: asked.ticket,
            user,
        };
        match self.login_cookie().end(exchange, &remembered) {
            true => redirect(302, &asked.url),
            false => refused(NAME, 401, "invalid ticket"),
        }
    }

    fn key(&self, ticket: &str) -> Vec<u8> {
        let text = format!("{}:{ticket}", self.context);
        digest::digest(&digest::SHA256, text.as_bytes()).as_ref().to_vec()
    }

    /// The server ends a session.
    fn end(&self, exchange: &mut Exchange) -> Outcome {
        let request = &exchange.request;
        if request.body.is_none() && request.has_body {
            return Outcome::NeedBody {
                max_bytes: self.config.max_body_bytes,
            };
        }
        let body = String::from_utf8_lossy(request.body.as_deref().unwrap_or_default());
        // Servers send it as a form; the original looks for the element in the body as it is.
        let decoded = weir_plugin::uri::decode_form(body.as_bytes()).into_owned();
        let decoded = String::from_utf8_lossy(&decoded);
        let marks = ("<samlp:SessionIndex>", "</samlp:SessionIndex>");
        let ticket = between(&body, marks.0, marks.1).or_else(|| between(&decoded, marks.0, marks.1));
        let is_ticket = |it: &&str| !it.is_empty() && it.len() <= MAX_TICKET;
        let Some(ticket) = ticket.map(str::trim).filter(is_ticket) else {
            return refused(NAME, 400, "invalid logout request from IdP, no ticket");
        };
        let key = self.key(ticket);
        self.ended
            .set(&key, self.config.session.life_of_ended(), exchange.unix_ms());
        Outcome::Reply(Box::new(Reply::new(200, "", Vec::new())))
    }

    fn logout(&self, exchange: &mut Exchange) -> Outcome {
        let now_s = exchange.unix_ms() / 1_000;
        let Some(session) = self.sessions.open(&exchange.request, now_s) else {
            return refused(NAME, 401, "");
        };
        let now_ms = exchange.unix_ms();
        if let Ok(remembered) = serde_json::from_slice::<CasSession>(&session.data) {
            let key = self.key(&remembered.ticket);
            self.ended.set(&key, self.config.session.life_of_ended(), now_ms);
        }
        self.sessions.close(exchange);
        redirect(302, &format!("{}/logout", self.config.url))
    }

    /// The call has a good session; `None`: it has none.
    fn by_session(&self, exchange: &mut Exchange) -> Option<Outcome> {
        let now_ms = exchange.unix_ms();
        let mut session = self.sessions.open(&exchange.request, now_ms / 1_000)?;
        let remembered: CasSession = serde_json::from_slice(&session.data).ok()?;
        if self.ended.get(&self.key(&remembered.ticket), now_ms).is_some() {
            self.sessions.close(exchange);
            return None;
        }
        self.sessions.touch(&mut session, exchange);
        self.sessions.strip(&mut exchange.request);
        exchange.add_fingerprint(remembered.user.as_bytes());
        Some(Outcome::Continue)
    }
}

impl Filter for LoginFilter {
    fn phases(&self) -> Phases {
        Phases::REQUEST
    }

    fn on_request(&self, exchange: &mut Exchange) -> Outcome {
        if let Some(asked) = exchange.filter_state.take::<_, TicketCheck>(self) {
            return self.finish(exchange, asked);
        }
        let request = &exchange.request;
        let is_callback = request.is_for_path(self.callback_path.as_bytes());
        if request.method == b"GET" && request.is_for_path(self.config.logout_path.as_bytes()) {
            return self.logout(exchange);
        }
        if request.method == b"POST" && is_callback {
            return self.end(exchange);
        }
        if let Some(outcome) = self.by_session(exchange) {
            return outcome;
        }
        let ticket = exchange.request.query_arg(b"ticket").filter(|_| is_callback);
        let ticket = ticket.and_then(|ticket| String::from_utf8(ticket.into_owned()).ok());
        match ticket {
            // The server could not end its session.
            Some(ticket) if ticket.len() > MAX_TICKET => refused(NAME, 401, "invalid ticket"),
            Some(ticket) => self.ask(exchange, ticket),
            None => self.begin(exchange),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use weir_plugin::SubrequestResponse;
    use weir_plugins_testkit::*;

    fn config() -> Value {
        json!({
            "url": "http://cas.test/cas", "callback": "/back", "logout_path": "/logout",
            "session": {"secret": "0123456789abcdef0123456789abcdef"},
        })
    }

    fn cookies(call: &Exchange) -> String {
        let set = call.response_headers.get_all(b"set-cookie");
        let pairs = set.map(|it| {
            String::from_utf8_lossy(it)
                .split(';')
                .next()
                .unwrap_or_default()
                .to_owned()
        });
        pairs
            .filter(|it| !it.ends_with('='))
            .collect::<Vec<_>>()
            .join("; ")
    }

    /// Runs a call. Returns its outcome with the redirect target, the request to the server, and the browser's cookies.
    fn run(
        filter: &Arc<dyn Filter>,
        (line, cookie, body): (&str, &str, &str),
        answer: Option<&str>,
    ) -> (String, Option<String>, String) {
        let mut call = exchange();
        prepare(&mut call, line, &[("Cookie", cookie)]);
        call.request.body = (!body.is_empty()).then(|| body.as_bytes().to_vec());
        let mut outcome = filter.on_request(&mut call);
        let mut asked = None;
        if let Outcome::Subrequest(sent) = &outcome {
            let message = String::from_utf8_lossy(&sent.message);
            asked = message.lines().next().map(str::to_owned);
            call.subrequest_response = Some(answer.map(|body| SubrequestResponse {
                status: 200,
                body: body.as_bytes().to_vec(),
                ..SubrequestResponse::default()
            }));
            outcome = filter.on_request(&mut call);
        }
        let location = match &outcome {
            Outcome::Reply(reply) => {
                let found = reply.headers.iter().find(|(name, _)| name == "Location");
                let address = found.map(|(_, value)| String::from_utf8_lossy(value).into_owned());
                format!("{} {}", reply.status, address.unwrap_or_default())
            }
            Outcome::Refuse(refusal) => {
                format!(
                    "{} {}",
                    refusal.status,
                    refusal.message.clone().unwrap_or_default()
                )
            }
            other => word(other),
        };
        (location, asked, cookies(&call))
    }

    const GOOD: &str = "<?xml version=\"1.0\"?>\n<cas:serviceResponse xmlns:cas='http://www.yale.edu/tp/cas'>\
        <cas:authenticationSuccess>\n<cas:user>alice</cas:user><cas:attributes><cas:user>eve</cas:user></cas:attributes>\
        </cas:authenticationSuccess></cas:serviceResponse>";

    /// The defect: an accepted ticket was looked for in the text, so a refusal that quotes one logged its caller in.
    #[test]
    fn only_the_element_of_the_answer_says_who_calls() {
        const SUCCESS: &str =
            "<cas:authenticationSuccess><cas:user>alice</cas:user></cas:authenticationSuccess>";
        let whole = |inner: &str| {
            format!(
                "<cas:serviceResponse xmlns:cas='http://www.yale.edu/tp/cas'>{inner}</cas:serviceResponse>"
            )
        };
        let failure = |inner: &str| {
            let code = "code='INVALID_TICKET'";
            whole(&format!(
                "<cas:authenticationFailure {code}>{inner}</cas:authenticationFailure>"
            ))
        };
        for (answer, expected) in [
            (GOOD.to_owned(), Some("alice")),
            (whole(SUCCESS), Some("alice")),
            (
                whole(&SUCCESS.replace("alice", " <![CDATA[a&b]]>\n")),
                Some("a&b"),
            ),
            (
                whole(SUCCESS).replace("cas:", "c:").replace(":cas", ":c"),
                Some("alice"),
            ),
            (
                whole(SUCCESS).replace("xmlns:cas", "xmlns").replace("cas:", ""),
                Some("alice"),
            ),
            (
                failure(&format!("ticket <![CDATA[{SUCCESS}]]> not recognised")),
                None,
            ),
            (failure(&format!("<!--{SUCCESS}-->")), None),
            (failure(SUCCESS), None),
            (whole(&format!("<!--{SUCCESS}-->")), None),
            (whole(&format!("<cas:x>{SUCCESS}</cas:x>")), None),
            (whole(&format!("{SUCCESS}{SUCCESS}")), None),
            (whole(&format!("{SUCCESS}<cas:authenticationFailure/>")), None),
            (
                whole(&SUCCESS.replace("alice", "alice</cas:user><cas:user>eve")),
                None,
            ),
            (whole(&SUCCESS.replace("alice", "<b>alice</b>")), None),
            (whole(&SUCCESS.replace("alice", " ")), None),
            (
                whole("<cas:authenticationSuccess/><cas:user>alice</cas:user>"),
                None,
            ),
            (whole(SUCCESS).replace("yale", "evil"), None),
            (whole(SUCCESS).replace("serviceResponse", "proxyResponse"), None),
            (SUCCESS.to_owned(), None),
            (
                format!("<!DOCTYPE a [<!ENTITY b '{SUCCESS}'>]>{}", failure("&b;")),
                None,
            ),
        ] {
            assert_eq!(user_of(&answer).as_deref(), expected, "{answer}");
        }
    }

    #[test]
    fn a_ticket_begins_a_session_that_the_server_may_end() {
        let filter = build(&CasLogin::default(), &config()).expect("valid");
        let login = run(&filter, ("GET /a?x=1", "", ""), None);
        let service = "http%3A%2F%2Fapi.example%3A8000%2Fback";
        assert_eq!(
            login.0,
            format!("302 http://cas.test/cas/login?service={service}")
        );
        let back = run(&filter, ("GET /back?ticket=ST-1", &login.2, ""), Some(GOOD));
        assert_eq!(back.0, "302 /a?x=1");
        let target = format!("GET /cas/serviceValidate?ticket=ST-1&service={service} HTTP/1.1");
        assert_eq!(back.1, Some(target));
        let session = back.2;
        assert_eq!(run(&filter, ("GET /b", &session, ""), None).0, "continue");
        let message = |ticket: &str| format!("<samlp:SessionIndex>{ticket}</samlp:SessionIndex>");
        for (body, expected) in [
            ("x", "400 invalid logout request from IdP, no ticket"),
            (
                &message(&"x".repeat(257)),
                "400 invalid logout request from IdP, no ticket",
            ),
            (&message(&"x".repeat(256)), "200 "),
            (&message("ST-2"), "200 "),
        ] {
            assert_eq!(run(&filter, ("POST /back", "", body), None).0, expected);
            assert_eq!(run(&filter, ("GET /b", &session, ""), None).0, "continue");
        }
        let form = weir_plugins_shared::http_request::form([("logoutRequest", message("ST-1").as_str())]);
        assert_eq!(run(&filter, ("POST /back", "", &form), None).0, "200 ");
        assert!(
            run(&filter, ("GET /b", &session, ""), None)
                .0
                .starts_with("302 http://cas.test/")
        );
    }

    #[test]
    fn a_copy_of_the_cookie_is_dead_after_the_logout() {
        let filter = build(&CasLogin::default(), &config()).expect("valid");
        let login = run(&filter, ("GET /a", "", ""), None);
        let session = run(&filter, ("GET /back?ticket=ST-1", &login.2, ""), Some(GOOD)).2;
        let out = run(&filter, ("GET /logout", &session, ""), None);
        assert_eq!(out.0, "302 http://cas.test/cas/logout");
        assert!(
            run(&filter, ("GET /b", &session, ""), None)
                .0
                .starts_with("302 http://cas.test/")
        );
        assert_eq!(run(&filter, ("GET /logout", "", ""), None).0, "401 ");
    }

    #[test]
    fn tickets_of_other_browsers_and_bad_ones_are_refused() {
        let filter = build(&CasLogin::default(), &config()).expect("valid");
        let login = run(&filter, ("GET /a", "", ""), None).2;
        let other = {
            let mut other = config();
            other["url"] = json!("http://other.test/cas");
            build(&CasLogin::default(), &other).expect("valid")
        };
        let of_other = run(&other, ("GET /a", "", ""), None).2;
        for (cookie, answer, expected) in [
            ("", Some(GOOD), "401 invalid callback state"),
            (
                "CAS_REQUEST_URI=L2E.sig",
                Some(GOOD),
                "401 invalid callback state",
            ),
            (of_other.as_str(), Some(GOOD), "401 invalid callback state"),
            (&login, None, "401 invalid ticket"),
            (&login, Some("rubbish"), "401 invalid ticket"),
            (
                &login,
                Some(
                    "<cas:authenticationFailure code=\"INVALID_TICKET\"><cas:user>alice</cas:user></cas:authenticationFailure>",
                ),
                "401 invalid ticket",
            ),
            (
                &login,
                Some("<cas:authenticationSuccess></cas:authenticationSuccess><cas:user>alice</cas:user>"),
                "401 invalid ticket",
            ),
        ] {
            let found = run(&filter, ("GET /back?ticket=ST-1", cookie, ""), answer);
            assert_eq!(
                (found.0.as_str(), found.2.as_str()),
                (expected, ""),
                "{cookie} {answer:?}"
            );
        }
        let long = format!("GET /back?ticket={}", "x".repeat(257));
        let found = run(&filter, (&long, &login, ""), Some(GOOD));
        assert_eq!((found.0.as_str(), found.1), ("401 invalid ticket", None));
        // A session of one server is not valid at another.
        let session = run(&filter, ("GET /back?ticket=ST-1", &login, ""), Some(GOOD)).2;
        assert!(
            run(&other, ("GET /b", &session, ""), None)
                .0
                .starts_with("302 http://other.test/")
        );
    }

    #[test]
    fn bad_configurations_are_refused_at_their_place() {
        for (field, value, place) in [
            ("url", json!("cas"), "url"),
            ("callback", json!("back"), "callback"),
            ("callback", json!("ftp://a/b"), "callback"),
            ("session", json!({"secret": ""}), "session.secret"),
        ] {
            let mut config = config();
            config[field] = value;
            assert_eq!(refused_at(&CasLogin::default(), &config), [place], "{config}");
        }
        assert!(build(&CasLogin::default(), &example(include_str!("cas_login.rs"))).is_ok());
    }
}
