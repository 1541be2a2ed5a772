//! What is said to a directory: StartTLS, a search for the user's entry, and the bind that checks the password.
//!
//! Every conversation begins with a bind, so the earlier identity of a connection does not matter.

use super::ber;
use std::any::Any;
use weir_plugin::{ProtocolDriver, Received, Step};

/// Result codes (RFC 4511, appendix A).
const SUCCESS: u32 = 0;
const SIZE_LIMIT: u32 = 4;
/// No such entry, an invalid name, invalid credentials, unwilling to perform.
const REFUSALS: [u32; 4] = [32, 34, 49, 53];

/// No such entry, insufficient access rights.
const UNREADABLE: [u32; 2] = [32, 50];

/// What a directory says of a user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Verdict {
    /// The password is that of this user.
    Accepted(User),
    /// It is not, or there is no such user, or more than one.
    Refused,
}

/// A user of a directory.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct User {
    /// The name of the entry.
    pub(super) entry: String,
    /// The names of the caller's group entries, if the configuration asks for groups.
    pub(super) groups: Vec<String>,
}

/// Who a user is said to be.
pub(super) struct Claim {
    /// The entry, or how it is found.
    pub(super) entry: UserEntry,
    pub(super) password: String,
    pub(super) start_tls: bool,
    /// The attribute with the groups, if the configuration asks for groups.
    pub(super) group_attribute: Option<String>,
}

/// The entry of a user.
pub(super) enum UserEntry {
    Known(String),
    Searched {
        bind_dn: String,
        bind_password: String,
        base: String,
        attribute: String,
        user: String,
        limits: (u32, u32),
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    StartTls,
    ServiceBind,
    Search,
    UserBind,
    Groups,
}

/// A conversation with a directory.
pub(super) struct LdapConversation {
    claim: Claim,
    stage: Stage,
    /// Whether the request of the stage has been sent.
    is_sent: bool,
    id: u32,
    found: Vec<User>,
    verdict: Option<Verdict>,
}

impl LdapConversation {
    pub(super) fn new(claim: Claim) -> Self {
        Self {
            claim,
            stage: Stage::UserBind,
            is_sent: false,
            id: 0,
            found: Vec::new(),
            verdict: None,
        }
    }

    fn enter(&mut self, stage: Stage) {
        self.stage = stage;
        self.is_sent = false;
    }

    fn first_bind(&self) -> Stage {
        match self.claim.entry {
            UserEntry::Known(_) => Stage::UserBind,
            UserEntry::Searched { .. } => Stage::ServiceBind,
        }
    }

    /// The name of the user's entry.
    fn entry(&self) -> &str {
        match &self.claim.entry {
            UserEntry::Known(name) => name,
            UserEntry::Searched { .. } => self.found.first().map_or("", |user| user.entry.as_str()),
        }
    }

    /// An entry that was found.
    fn read(&self, content: &[u8]) -> Result<User, ber::Invalid> {
        let attribute = self.claim.group_attribute.as_deref();
        let groups = attribute.map(|attribute| ber::entry_values(content, attribute));
        Ok(User {
            entry: ber::entry_name(content)?,
            groups: groups.transpose()?.unwrap_or_default(),
        })
    }

    /// The user's password is good.
    fn accept(&mut self) -> Step {
        let user = User {
            entry: self.entry().to_owned(),
            groups: self
                .found
                .first()
                .map(|user| user.groups.clone())
                .unwrap_or_default(),
        };
        self.end(Verdict::Accepted(user))
    }

    /// Sends the request of the stage.
    fn send(&mut self) -> Step {
        self.id += 1;
        self.is_sent = true;
        let id = self.id;
        Step::Write(match (self.stage, &self.claim.entry) {
            (Stage::StartTls, _) => ber::start_tls(id),
            (
                Stage::ServiceBind,
                UserEntry::Searched {
                    bind_dn,
                    bind_password,
                    ..
                },
            ) => ber::bind(id, bind_dn, bind_password),
            (
                Stage::Search,
                UserEntry::Searched {
                    base,
                    attribute,
                    user,
                    limits,
                    ..
                },
            ) => ber::search(
                id,
                ber::Search {
                    base,
                    below: Some((attribute, user)),
                    limits: *limits,
                    wanted: self.claim.group_attribute.as_deref(),
                },
            ),
            (Stage::Groups, _) => ber::search(
                id,
                ber::Search {
                    base: self.entry(),
                    below: None,
                    limits: (1, 0),
                    wanted: self.claim.group_attribute.as_deref(),
                },
            ),
            _ => ber::bind(id, self.entry(), &self.claim.password),
        })
    }

    fn end(&mut self, verdict: Verdict) -> Step {
        self.verdict = Some(verdict);
        Step::Done
    }

    /// Takes a message in; `None`: more of the same answer follows.
    fn take(&mut self, operation: u8, content: &[u8]) -> Result<Option<Step>, ber::Invalid> {
        let code = |wanted| match operation == wanted {
            true => ber::result_code(content),
            false => Err(ber::Invalid),
        };
        Ok(Some(match self.stage {
            Stage::StartTls => match code(ber::EXTENDED_ANSWER)? {
                SUCCESS => {
                    let bind = self.first_bind();
                    self.enter(bind);
                    Step::StartTls
                }
                _ => Step::Fail,
            },
            Stage::ServiceBind => match code(ber::BIND_ANSWER)? {
                SUCCESS => {
                    self.enter(Stage::Search);
                    self.send()
                }
                // The gateway's own password is wrong, not the user's.
                _ => Step::Fail,
            },
            Stage::Search => match operation {
                ber::ENTRY if self.found.len() < 2 => {
                    self.found.push(self.read(content)?);
                    return Ok(None);
                }
                ber::ENTRY | ber::REFERENCE => return Ok(None),
                _ => match (code(ber::SEARCH_DONE)?, self.found.len()) {
                    (SUCCESS, 1) if !self.entry().is_empty() => {
                        self.enter(Stage::UserBind);
                        self.send()
                    }
                    (SUCCESS | SIZE_LIMIT, _) => self.end(Verdict::Refused),
                    _ => Step::Fail,
                },
            },
            Stage::UserBind => match code(ber::BIND_ANSWER)? {
                // A search has already returned the groups.
                SUCCESS if self.claim.group_attribute.is_some() && self.found.is_empty() => {
                    self.enter(Stage::Groups);
                    self.send()
                }
                SUCCESS => self.accept(),
                code if REFUSALS.contains(&code) => self.end(Verdict::Refused),
                _ => Step::Fail,
            },
            Stage::Groups => match operation {
                ber::ENTRY if self.found.is_empty() => {
                    self.found.push(self.read(content)?);
                    return Ok(None);
                }
                ber::ENTRY | ber::REFERENCE => return Ok(None),
                _ => match code(ber::SEARCH_DONE)? {
                    SUCCESS => self.accept(),
                    // A user who may not read the own entry has no groups.
                    code if UNREADABLE.contains(&code) => self.accept(),
                    _ => Step::Fail,
                },
            },
        }))
    }
}

impl ProtocolDriver for LdapConversation {
    fn begin(&mut self, is_new: bool) -> Step {
        self.found.clear();
        self.verdict = None;
        let first = self.first_bind();
        self.enter(if is_new && self.claim.start_tls {
            Stage::StartTls
        } else {
            first
        });
        self.send()
    }

    fn next(&mut self, received: &mut Received<'_>) -> Step {
        if !self.is_sent {
            return self.send();
        }
        loop {
            let bytes = received.bytes();
            let message = match ber::next(bytes) {
                Ok(Some(message)) => message,
                Ok(None) => return Step::Read,
                Err(_) => return Step::Fail,
            };
            received.consume(message.length);
            // An unsolicited message, such as a notice of disconnection, has a different number.
            if message.id != self.id {
                return Step::Close(ber::unbind(self.id + 1));
            }
            match self.take(message.operation, message.content) {
                Ok(Some(step)) => return step,
                Ok(None) => {}
                Err(_) => return Step::Fail,
            }
        }
    }

    fn finish(self: Box<Self>) -> Box<dyn Any> {
        Box::new(self.verdict)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hex(text: &str) -> Vec<u8> {
        data_encoding::HEXLOWER
            .decode(text.replace(' ', "").as_bytes())
            .expect("hex")
    }

    fn answer(id: u8, operation: u8, code: u8) -> Vec<u8> {
        vec![0x30, 12, 2, 1, id, operation, 7, 0x0a, 1, code, 4, 0, 4, 0]
    }

    fn entry(id: u8, name: &str) -> Vec<u8> {
        let name = [&[4, name.len() as u8][..], name.as_bytes(), &[0x30, 0]].concat();
        let operation = [&[0x64, name.len() as u8][..], &name].concat();
        [&[0x30, operation.len() as u8 + 3, 2, 1, id][..], &operation].concat()
    }

    fn known(start_tls: bool) -> Claim {
        Claim {
            entry: UserEntry::Known("cn=a,o=x".into()),
            password: "pw".into(),
            start_tls,
            group_attribute: None,
        }
    }

    fn with_groups(claim: Claim) -> Claim {
        Claim {
            group_attribute: Some("m".into()),
            ..claim
        }
    }

    /// An entry with a value of `m`.
    fn member(id: u8, name: &str, group: &str) -> Vec<u8> {
        let text = |text: &str| [&[4, text.len() as u8][..], text.as_bytes()].concat();
        let wrap = |tag: u8, content: &[u8]| [&[tag, content.len() as u8][..], content].concat();
        let attribute = wrap(0x30, &[text("m"), wrap(0x31, &text(group))].concat());
        let operation = wrap(0x64, &[text(name), wrap(0x30, &attribute)].concat());
        wrap(0x30, &[&[2, 1, id][..], &operation].concat())
    }

    fn searched() -> Claim {
        Claim {
            entry: UserEntry::Searched {
                bind_dn: "cn=gw".into(),
                bind_password: "s".into(),
                base: "o=x".into(),
                attribute: "uid".into(),
                user: "a".into(),
                limits: (2, 5),
            },
            password: "pw".into(),
            start_tls: false,
            group_attribute: None,
        }
    }

    /// Plays a directory that answers each request with the next of these; gives the last step and the verdict.
    fn play(claim: Claim, answers: &[Vec<u8>]) -> (Step, Option<Verdict>) {
        let mut talk = LdapConversation::new(claim);
        let mut step = talk.begin(true);
        let mut answers = answers.iter();
        let mut bytes = Vec::new();
        loop {
            match step {
                Step::Write(_) => {}
                Step::Read => match answers.next() {
                    Some(answer) => bytes.extend_from_slice(answer),
                    None => return (Step::Read, talk.verdict),
                },
                Step::StartTls => assert!(bytes.is_empty()),
                last => return (last, talk.verdict),
            }
            let mut received = Received::new(&bytes);
            step = talk.next(&mut received);
            let consumed = received.consumed();
            bytes.drain(..consumed);
        }
    }

    fn accepted_with(groups: &[&str]) -> Option<Verdict> {
        Some(Verdict::Accepted(User {
            entry: "cn=a,o=x".into(),
            groups: groups.iter().map(|group| (*group).to_owned()).collect(),
        }))
    }

    #[test]
    fn directories_name_groups() {
        let (accepted, refused) = (accepted_with(&[]), Some(Verdict::Refused));
        let bound = |id| answer(id, 0x61, 0);
        for (what, claim, answers, expected) in [
            (
                "found with groups",
                with_groups(searched()),
                vec![
                    bound(1),
                    member(2, "cn=a,o=x", "cn=g"),
                    answer(2, 0x65, 0),
                    bound(3),
                ],
                (Step::Done, accepted_with(&["cn=g"])),
            ),
            (
                "groups of a known entry",
                with_groups(known(false)),
                vec![bound(1), member(2, "cn=a,o=x", "cn=g"), answer(2, 0x65, 0)],
                (Step::Done, accepted_with(&["cn=g"])),
            ),
            (
                "groups that may not be read",
                with_groups(known(false)),
                vec![bound(1), answer(2, 0x65, 50)],
                (Step::Done, accepted.clone()),
            ),
            (
                "groups of a busy directory",
                with_groups(known(false)),
                vec![bound(1), answer(2, 0x65, 51)],
                (Step::Fail, None),
            ),
            (
                "no groups without the password",
                with_groups(known(false)),
                vec![answer(1, 0x61, 49), member(2, "cn=a,o=x", "cn=g")],
                (Step::Done, refused.clone()),
            ),
        ] {
            assert_eq!(play(claim, &answers), expected, "{what}");
        }
    }

    #[test]
    fn directories_decide() {
        let accepted = accepted_with(&[]);
        let refused = Some(Verdict::Refused);
        let bound = |id| answer(id, 0x61, 0);
        for (what, claim, answers, expected) in [
            (
                "good",
                known(false),
                vec![bound(1)],
                (Step::Done, accepted.clone()),
            ),
            (
                "bad",
                known(false),
                vec![answer(1, 0x61, 49)],
                (Step::Done, refused.clone()),
            ),
            (
                "no user",
                known(false),
                vec![answer(1, 0x61, 32)],
                (Step::Done, refused.clone()),
            ),
            (
                "busy",
                known(false),
                vec![answer(1, 0x61, 51)],
                (Step::Fail, None),
            ),
            (
                "TLS",
                known(true),
                vec![answer(1, 0x78, 0), bound(2)],
                (Step::Done, accepted.clone()),
            ),
            (
                "no TLS",
                known(true),
                vec![answer(1, 0x78, 2), bound(2)],
                (Step::Fail, None),
            ),
            (
                "another kind",
                known(false),
                vec![answer(1, 0x65, 0)],
                (Step::Fail, None),
            ),
            (
                "found",
                searched(),
                vec![bound(1), entry(2, "cn=a,o=x"), answer(2, 0x65, 0), bound(3)],
                (Step::Done, accepted),
            ),
            (
                "not found",
                searched(),
                vec![bound(1), answer(2, 0x65, 0)],
                (Step::Done, refused.clone()),
            ),
            (
                "found twice",
                searched(),
                vec![
                    bound(1),
                    entry(2, "cn=a"),
                    entry(2, "cn=b"),
                    entry(2, "cn=c"),
                    answer(2, 0x65, 4),
                ],
                (Step::Done, refused),
            ),
            (
                "its own password",
                searched(),
                vec![answer(1, 0x61, 49)],
                (Step::Fail, None),
            ),
            (
                "search fails",
                searched(),
                vec![bound(1), answer(2, 0x65, 1)],
                (Step::Fail, None),
            ),
            ("rubbish", known(false), vec![hex("ffff")], (Step::Fail, None)),
        ] {
            assert_eq!(play(claim, &answers), expected, "{what}");
        }
        let (step, verdict) = play(known(false), &[answer(0, 0x78, 52)]);
        assert!(matches!(step, Step::Close(_)) && verdict.is_none());
    }
}
