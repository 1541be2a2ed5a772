//! Signing up, signing in, and what somebody may change of their own account. No answer tells whether a mail address is
//! known: the mail itself says what happened.

use super::confirming::{confirm_step, send_confirm, send_welcome, vouched};
use super::operation::{Operation, Shared};
use super::signed_in::developer;
use crate::cookie;
use crate::people::{Developer, DeveloperState, Purpose, Session, Vouched, mail_of, random_id, seconds};
use crate::state::{Mail, Portals, Visit};
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::time::SystemTime;
use weir_apis::entities::{SignUp, SignUpMode};
use weir_control::access::AuditedAs;
use weir_control::access::password::{PasswordError, PasswordHash, fault_of};
use weir_control::api::Problem;

/// The longest name, in characters.
const MAX_NAME: usize = 80;
/// Sign-ups and resets from one address in a minute.
const MOST: u32 = 10;
/// What is said whatever has come of it.
const SENT: &str = "If this address can be used, a mail is on its way. Its link is good once.";

/// The calls.
pub fn operations() -> Vec<Operation> {
    let operations = vec![
        Operation::get("/portal/v1/me", ("getMe", "Reads who is signed in"), me).answers::<Me>(),
        Operation::post(
            "/portal/v1/sign-up",
            ("signUp", "Signs up; a mail has the link that confirms it"),
            sign_up,
        )
        .body::<NewDeveloper>()
        .status(StatusCode::ACCEPTED)
        .answers::<Said>(),
        Operation::post(
            "/portal/v1/confirm",
            ("confirm", "Confirms a mail address by the link of a mail"),
            confirm,
        )
        .body::<UsedLink>()
        .answers::<Said>(),
        Operation::post(
            "/portal/v1/session",
            ("signIn", "Signs in; the session is a cookie"),
            sign_in,
        )
        .body::<Credentials>()
        .answers::<Me>(),
        Operation::delete("/portal/v1/session", ("signOut", "Ends this session"), sign_out),
        Operation::post(
            "/portal/v1/reset",
            ("askReset", "Sends a mail with a link for a new password"),
            ask_reset,
        )
        .body::<Address>()
        .status(StatusCode::ACCEPTED)
        .answers::<Said>(),
        Operation::post(
            "/portal/v1/reset/password",
            ("resetPassword", "Sets a new password by the link of a mail"),
            reset,
        )
        .body::<NewPassword>()
        .answers::<Said>(),
        Operation::put(
            "/portal/v1/account",
            ("changeAccount", "Changes name or password"),
            change,
        )
        .personal()
        .body::<AccountChange>()
        .answers::<Me>(),
        Operation::delete(
            "/portal/v1/account",
            ("deleteAccount", "Removes the account"),
            delete,
        )
        .personal(),
        Operation::get(
            "/portal/v1/account/sessions",
            ("listSessions", "Lists one's sessions"),
            sessions,
        )
        .personal()
        .answers::<SessionList>(),
        Operation::delete(
            "/portal/v1/account/sessions/{id}",
            ("endSession", "Ends one of one's sessions"),
            end_session,
        )
        .personal(),
    ];
    Operation::tagged("Account", operations)
}

/// Who is signed in.
#[derive(Serialize, JsonSchema)]
pub struct Me {
    /// The developer's id; `null`: somebody who is not signed in.
    id: Option<String>,
    /// The mail address.
    mail: String,
    /// The name.
    name: String,
    /// Whether there is a password: who signs in through an identity provider needs none.
    has_password: bool,
}

/// A sentence for people.
#[derive(Serialize, JsonSchema)]
pub struct Said {
    /// The sentence.
    pub message: String,
}

/// Somebody who signs up.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NewDeveloper {
    /// The mail address.
    mail: String,
    /// The name.
    name: String,
    /// The password.
    password: String,
    /// The secret of an invitation's link.
    #[serde(default)]
    invitation: Option<String>,
}

/// A link of a mail.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct UsedLink {
    /// The secret in it.
    pub token: String,
}

/// What somebody signs in with.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Credentials {
    /// The mail address.
    mail: String,
    /// The password.
    password: String,
}

/// A mail address.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Address {
    /// The mail address.
    mail: String,
}

/// A new password by a link.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NewPassword {
    /// The secret of the link.
    token: String,
    /// The new password.
    password: String,
}

/// What changes of an account.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AccountChange {
    /// The name.
    #[serde(default)]
    name: Option<String>,
    /// The password as it was, to change it.
    #[serde(default)]
    old_password: Option<String>,
    /// The new password.
    #[serde(default)]
    new_password: Option<String>,
}

/// Sessions.
#[derive(Serialize, JsonSchema)]
pub struct SessionList {
    /// The sessions, the latest last.
    items: Vec<SessionLine>,
}

/// A session.
#[derive(Serialize, JsonSchema)]
pub struct SessionLine {
    /// By what it is ended.
    id: String,
    /// Seconds since 1970.
    created: u64,
    /// From which address.
    address: String,
    /// With which browser.
    agent: String,
}

fn busy(error: &PasswordError) -> Problem {
    Problem::new(StatusCode::SERVICE_UNAVAILABLE, error.to_string())
}

fn said(message: &str) -> Json<Said> {
    Json(Said {
        message: message.to_owned(),
    })
}

fn wrong(field: &str, message: impl Into<String>) -> Problem {
    Problem::step("check", vec![(field.to_owned(), message.into())])
}

fn checked_name(name: &str) -> Result<String, Problem> {
    let name = name.trim();
    match (1..=MAX_NAME).contains(&name.chars().count()) && !name.contains(char::is_control) {
        true => Ok(name.to_owned()),
        false => Err(wrong("name", format!("expected 1 to {MAX_NAME} characters"))),
    }
}

/// Few from one address: each makes a hash and a mail.
pub fn take_turn(portals: &Portals, visit: &Visit, now: SystemTime) -> Result<(), Problem> {
    let who = format!("mail {}", visit.address.to_canonical());
    portals.tries.take(&who, MOST, seconds(now)).map_err(|wait| {
        let detail = format!("too many of these from your address; try again in {wait} seconds");
        Problem::new(StatusCode::TOO_MANY_REQUESTS, detail)
    })
}

async fn me(State(portals): Shared, Extension(visit): Extension<Visit>) -> Result<Json<Me>, Problem> {
    if visit.viewer.developer.is_none() {
        let (mail, name) = (String::new(), String::new());
        return Ok(Json(Me {
            id: None,
            mail,
            name,
            has_password: false,
        }));
    }
    Ok(Json(shown(
        &developer(&portals, &visit, SystemTime::now()).await?,
    )))
}

pub fn shown(developer: &Developer) -> Me {
    Me {
        id: Some(developer.id.clone()),
        mail: developer.mail.clone(),
        name: developer.name.clone(),
        has_password: developer.password.is_some(),
    }
}

async fn sign_up(
    State(portals): Shared,
    Extension(visit): Extension<Visit>,
    Json(wanted): Json<NewDeveloper>,
) -> Result<Response, Problem> {
    let (now, portal) = (SystemTime::now(), &visit.portal.name);
    let rules = &visit.portal.sign_up;
    let mail = mail_of(&wanted.mail).ok_or_else(|| wrong("mail", "expected a mail address"))?;
    let name = checked_name(&wanted.name)?;
    if let Some(fault) = fault_of(&wanted.password, &mail) {
        return Err(wrong("password", fault));
    }
    let invited = match wanted.invitation.as_deref() {
        Some(token) => portals.people.look(portal, token, now).await?,
        None => None,
    };
    let is_invited = matches!(&invited, Some(Purpose::Invitation { mail: to, .. }) if *to == mail);
    may_join(rules, &mail, is_invited).map_err(Problem::forbidden)?;
    portals.need_mail()?;
    visit.link_url()?;
    take_turn(&portals, &visit, now)?;
    // Hashed whether or not the address is known: both take as long.
    let password = portals.people.passwords.hash(wanted.password).await;
    let developer = Developer {
        id: random_id()?,
        mail,
        name,
        password: Some(password.map_err(|error| busy(&error))?),
        state: DeveloperState::Registered,
        groups: Default::default(),
        provided: Default::default(),
        created: seconds(now),
        decided: None,
    };
    register(&portals, &visit, developer, now).await?;
    Ok((StatusCode::ACCEPTED, said(SENT)).into_response())
}

/// Writes somebody who signs up, and sends the mail that tells what has come of it.
async fn register(
    portals: &Portals,
    visit: &Visit,
    wanted: Developer,
    now: SystemTime,
) -> Result<(), Problem> {
    let (people, portal) = (&portals.people, &visit.portal.name);
    let written = match people.by_mail(portal, &wanted.mail, now).await? {
        Some(known) => {
            let step = |it: &mut Developer| {
                // What an administrator has made, and what is confirmed, is replaced by no stranger.
                if it.state == DeveloperState::Registered && it.decided.is_none() {
                    it.name.clone_from(&wanted.name);
                    it.password.clone_from(&wanted.password);
                }
                Ok(Vec::new())
            };
            people.change(portal, &known.id, now, step).await?
        }
        None if people.add(portal, &wanted, now).await? => wanted.clone(),
        None => return Err(again()),
    };
    if written.password == wanted.password {
        portals.tell(visit, "developer.registered", &written, now).await?;
        let of = Vouched::Password(written.password_mark().unwrap_or_default());
        return send_confirm(portals, visit, &written, (of, "a password"), now).await;
    }
    if written.state == DeveloperState::Registered {
        return send_welcome(portals, visit, &written, now).await;
    }
    let url = visit.link_url()?;
    let text = format!(
        "Somebody, probably you, tried to sign up with this address. There is an account already.\n\nSign in: {url}/login\nA new password: {url}/reset\n"
    );
    portals
        .send(Mail::new(&written.mail, "You have an account already", text))
        .await
}

/// Two do the same at once.
fn again() -> Problem {
    Problem::new(
        StatusCode::CONFLICT,
        "something else was changed at the same moment: try again",
    )
}

async fn confirm(
    State(portals): Shared,
    Extension(visit): Extension<Visit>,
    Json(link): Json<UsedLink>,
) -> Result<Json<Said>, Problem> {
    let (now, portal) = (SystemTime::now(), &visit.portal.name);
    let used = match portals.people.look(portal, &link.token, now).await? {
        Some(Purpose::Confirm { .. }) => portals.people.take(portal, &link.token, now).await?,
        _ => None,
    };
    let Some(Purpose::Confirm { developer, of }) = used else {
        return Err(gone());
    };
    let developer = vouched(&portals, &visit, (&developer, &of), now).await?;
    Ok(said(match developer.state == DeveloperState::Confirmed {
        true => "Your address is confirmed. You can sign in as soon as somebody has approved your account.",
        false => "Your address is confirmed. You can sign in now.",
    }))
}

/// Whether somebody with this address may have an account, by the portal's rules. The error says why not.
pub fn may_join(rules: &SignUp, mail: &str, is_invited: bool) -> Result<(), String> {
    let domain = mail.split_once('@').map_or("", |(_, domain)| domain);
    let is_welcome = rules.domains.is_empty() || rules.domains.iter().any(|it| it == domain);
    match rules.mode {
        SignUpMode::Closed => {
            Err("signing up is closed here; ask the administrators of this portal".to_owned())
        }
        SignUpMode::Invited if !is_invited => Err("only those who are invited can sign up here".to_owned()),
        _ if !is_welcome && !is_invited => Err(format!(
            "only addresses of {} can sign up here",
            rules.domains.join(", ")
        )),
        _ => Ok(()),
    }
}

pub fn gone() -> Problem {
    Problem::new(
        StatusCode::GONE,
        "this link was used already, or is too old: ask for another one",
    )
}

async fn sign_in(
    State(portals): Shared,
    Extension(visit): Extension<Visit>,
    headers: HeaderMap,
    Json(given): Json<Credentials>,
) -> Result<Response, Problem> {
    let (now, portal) = (SystemTime::now(), &visit.portal.name);
    let mail = mail_of(&given.mail).unwrap_or_default();
    let name = format!("{portal} {mail}");
    if let Err(wait) = portals.people.attempts.begin(&name, visit.address, now) {
        let seconds = wait.as_secs().max(1);
        let detail = format!("too many wrong passwords; try again in {seconds} seconds");
        let mut answer = Problem::new(StatusCode::TOO_MANY_REQUESTS, detail).into_response();
        answer.headers_mut().insert(header::RETRY_AFTER, seconds.into());
        return Ok(answer);
    }
    let known = portals.people.by_mail(portal, &mail, now).await?;
    let hash = known.as_ref().and_then(|it| it.password.clone());
    let is_right = portals.people.passwords.matches(given.password, hash).await;
    let is_right = is_right.map_err(|error| busy(&error))?;
    let Some(developer) = known.filter(|_| is_right) else {
        return Err(
            Problem::new(StatusCode::UNAUTHORIZED, "mail address or password is wrong")
                .of_type("wrong-password"),
        );
    };
    portals.people.attempts.succeeded(&name, visit.address, now);
    // The password was right: now it may be said.
    match developer.state {
        DeveloperState::Active => {}
        DeveloperState::Registered => {
            return Err(Problem::forbidden(
                "confirm your mail address first: the link is in the mail",
            ));
        }
        DeveloperState::Confirmed => {
            return Err(Problem::forbidden(
                "your account waits for somebody to approve it",
            ));
        }
        DeveloperState::Suspended => {
            return Err(refused("your account is suspended", &developer));
        }
        DeveloperState::Refused => {
            return Err(refused("your account was not approved", &developer));
        }
    }
    let cookie = begin_session(&portals, &visit, &developer, &headers).await?;
    let mut answer = ([(header::SET_COOKIE, cookie)], Json(shown(&developer))).into_response();
    let who = AuditedAs(format!("developer {}", developer.mail));
    answer.extensions_mut().insert(who);
    Ok(answer)
}

/// Begins a session. Gives the header that sets its cookie.
pub async fn begin_session(
    portals: &Portals,
    visit: &Visit,
    developer: &Developer,
    headers: &HeaderMap,
) -> Result<String, Problem> {
    let agent = headers
        .get(header::USER_AGENT)
        .and_then(|it| it.to_str().ok())
        .unwrap_or_default();
    let from = (visit.address.to_canonical().to_string(), agent.to_owned());
    let (portal, now) = (&visit.portal.name, SystemTime::now());
    let value = portals.people.begin(portal, &developer.id, from, now).await?;
    Ok(cookie::set(&value, visit.is_secure()))
}

/// What was decided, with the reason that the administrator gave.
fn refused(what: &str, developer: &Developer) -> Problem {
    let reason = developer.decided.as_ref().map_or("", |it| it.reason.as_str());
    Problem::forbidden(match reason {
        "" => format!("{what}; ask the administrators of this portal"),
        reason => format!("{what}: {reason}"),
    })
}

async fn sign_out(
    State(portals): Shared,
    Extension(visit): Extension<Visit>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    if let Some(value) = cookie::get(&headers, visit.is_secure()) {
        portals
            .people
            .end(&visit.portal.name, &value, SystemTime::now())
            .await?;
    }
    let cookie = cookie::clear(visit.is_secure());
    Ok((StatusCode::NO_CONTENT, [(header::SET_COOKIE, cookie)]).into_response())
}

async fn ask_reset(
    State(portals): Shared,
    Extension(visit): Extension<Visit>,
    Json(given): Json<Address>,
) -> Result<Response, Problem> {
    let (now, portal) = (SystemTime::now(), &visit.portal.name);
    let mail = mail_of(&given.mail).ok_or_else(|| wrong("mail", "expected a mail address"))?;
    portals.need_mail()?;
    let url = visit.link_url()?;
    take_turn(&portals, &visit, now)?;
    let known = portals.people.by_mail(portal, &mail, now).await?;
    // Without an account nothing is sent: a stranger's mailbox gets no mail from here. Both are written in the background.
    if let Some(developer) =
        known.filter(|it| !matches!(it.state, DeveloperState::Suspended | DeveloperState::Refused))
    {
        let purpose = Purpose::Reset {
            developer: developer.id,
        };
        let link = portals.people.link(portal, &purpose, now).await?;
        let text = format!(
            "Hello {},\n\nopen this link to set a new password. It is good once, for an hour.\n\n{url}/reset#{}\n\nIf you did not ask for it, ignore this mail.\n",
            developer.name, link.token
        );
        portals.send(Mail::new(&mail, "Set a new password", text)).await?;
    }
    Ok((StatusCode::ACCEPTED, said(SENT)).into_response())
}

async fn reset(
    State(portals): Shared,
    Extension(visit): Extension<Visit>,
    Json(given): Json<NewPassword>,
) -> Result<Json<Said>, Problem> {
    let (now, portal) = (SystemTime::now(), &visit.portal.name);
    let found = portals.people.look(portal, &given.token, now).await?;
    let Some(Purpose::Reset { developer } | Purpose::Welcome { developer }) = found else {
        return Err(gone());
    };
    let Some(developer) = portals.people.developer(portal, &developer, now).await? else {
        return Err(gone());
    };
    if let Some(fault) = fault_of(&given.password, &developer.mail) {
        return Err(wrong("password", fault));
    }
    let password = portals.people.passwords.hash(given.password).await;
    let password = password.map_err(|error| busy(&error))?;
    if portals.people.take(portal, &given.token, now).await?.is_none() {
        return Err(gone());
    }
    let set = |it: &mut Developer| {
        it.password = Some(password.clone());
        match it.state {
            // Who reads the mailbox has confirmed it.
            DeveloperState::Registered => confirm_step(&portals, &visit, it, now),
            _ => Ok(Vec::new()),
        }
    };
    let developer = portals.people.change(portal, &developer.id, now, set).await?;
    portals.notify();
    // Somebody else may have got in: a provider that says whose address it is may be joined again.
    portals
        .people
        .remove_accounts(portal, &developer.id, |_| true, now)
        .await?;
    portals
        .people
        .end_sessions(portal, &developer.id, |_| true, now)
        .await?;
    Ok(said(match developer.state {
        DeveloperState::Confirmed => {
            "Your password is set. You can sign in as soon as somebody has approved your account."
        }
        _ => "Your password is changed, and all sessions are ended. You can sign in now.",
    }))
}

async fn change(
    State(portals): Shared,
    Extension(visit): Extension<Visit>,
    headers: HeaderMap,
    Json(wanted): Json<AccountChange>,
) -> Result<Json<Me>, Problem> {
    let (now, portal) = (SystemTime::now(), &visit.portal.name);
    let known = developer(&portals, &visit, now).await?;
    let name = wanted.name.as_deref().map(checked_name).transpose()?;
    let is_new_password = wanted.new_password.is_some();
    let password = match wanted.new_password {
        Some(password) => Some(new_password(&portals, &known, (wanted.old_password, password)).await?),
        None => None,
    };
    let edit = |it: &mut Developer| {
        if let Some(name) = &name {
            it.name.clone_from(name);
        }
        if let Some(password) = &password {
            // The old one was compared with what there was then.
            if it.password != known.password {
                return Err(again());
            }
            it.password = Some(password.clone());
        }
        Ok(Vec::new())
    };
    let developer = portals.people.change(portal, &known.id, now, edit).await?;
    if is_new_password {
        // Somebody else may have the old one. This browser has just shown it.
        let cookie = cookie::get(&headers, visit.is_secure()).unwrap_or_default();
        let own = portals.people.session(portal, &cookie, now).await?;
        let is_other = |it: &Session| own.as_ref().is_none_or(|own| own.id != it.id);
        portals
            .people
            .end_sessions(portal, &developer.id, is_other, now)
            .await?;
    }
    Ok(Json(shown(&developer)))
}

/// The hash of a new password, if the old one is right.
async fn new_password(
    portals: &Portals,
    known: &Developer,
    (old, new): (Option<String>, String),
) -> Result<PasswordHash, Problem> {
    let passwords = &portals.people.passwords;
    let is_right = passwords.matches(old.unwrap_or_default(), known.password.clone());
    if !is_right.await.map_err(|error| busy(&error))? {
        return Err(wrong("old_password", "this is not your password"));
    }
    if let Some(fault) = fault_of(&new, &known.mail) {
        return Err(wrong("new_password", fault));
    }
    passwords.hash(new).await.map_err(|error| busy(&error))
}

async fn delete(State(portals): Shared, Extension(visit): Extension<Visit>) -> Result<Response, Problem> {
    let (now, portal) = (SystemTime::now(), &visit.portal.name);
    let developer = developer(&portals, &visit, now).await?;
    if super::apps::has_own(&portals, &developer.id) {
        return Err(Problem::new(
            StatusCode::CONFLICT,
            "you have applications: give them to a team, or remove them first",
        ));
    }
    portals.people.remove_from_all(portal, &developer, now).await?;
    portals.tell(&visit, "developer.removed", &developer, now).await?;
    let cookie = cookie::clear(visit.is_secure());
    Ok((StatusCode::NO_CONTENT, [(header::SET_COOKIE, cookie)]).into_response())
}

async fn sessions(
    State(portals): Shared,
    Extension(visit): Extension<Visit>,
) -> Result<Json<SessionList>, Problem> {
    let now = SystemTime::now();
    let developer = developer(&portals, &visit, now).await?;
    Ok(Json(SessionList {
        items: session_lines(&portals, &visit, &developer, now).await?,
    }))
}

/// The sessions of a developer, the latest last.
pub async fn session_lines(
    portals: &Portals,
    visit: &Visit,
    developer: &Developer,
    now: SystemTime,
) -> Result<Vec<SessionLine>, Problem> {
    let found = portals
        .people
        .sessions(&visit.portal.name, &developer.id, now)
        .await?;
    let lines = found.into_iter().map(|it| SessionLine {
        id: it.id,
        created: it.created,
        address: it.address,
        agent: it.agent,
    });
    Ok(lines.collect())
}

async fn end_session(
    State(portals): Shared,
    Extension(visit): Extension<Visit>,
    Path(id): Path<String>,
) -> Result<StatusCode, Problem> {
    let now = SystemTime::now();
    let developer = developer(&portals, &visit, now).await?;
    portals
        .people
        .end_sessions(&visit.portal.name, &developer.id, |it| it.id == id, now)
        .await?;
    Ok(StatusCode::NO_CONTENT)
}
