//! An instance of `ldap-auth` at work: reads credentials, asks the directory about them, and says who calls.

use super::ber::escape;
use super::config::{Config, DirectoryTls};
use super::dialogue::{Claim, LdapConversation, User, UserEntry, Verdict};
use super::groups;
use crate::consumer_names::ConsumerNames;
use crate::identity::Gate;
use crate::shared_fetch::{FetchRequest, FetchResult};
use crate::{authenticated_groups, user_headers};
use aws_lc_rs::digest;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use std::sync::Arc;
use std::time::Duration;
use weir_flow::expiring::{ExpiringMap, Lifetime};
use weir_plugin::{
    AuthFailure, Conversation, ConversationTls, CredentialIndex, Exchange, Filter, Identity, Outcome, Phases,
    RefusalKind, Verify,
};

/// How long a directory that has failed is not asked about the same user.
const RETRY_MS: u64 = 500;
/// The headers with credentials.
const PLACES: [&[u8]; 2] = [b"proxy-authorization", b"authorization"];

/// What is kept of directories' answers, by a hash of all that they were asked.
pub(super) type Verdicts = ExpiringMap<Arc<Verdict>>;

/// An instance of `ldap-auth`.
pub(super) struct DirectoryFilter {
    pub(super) config: Config,
    pub(super) gate: Gate,
    pub(super) index: Arc<CredentialIndex<()>>,
    pub(super) names: Arc<ConsumerNames>,
    pub(super) verdicts: Arc<Verdicts>,
}

/// A user's name and password.
struct Credentials {
    user: String,
    password: String,
}

impl DirectoryFilter {
    /// The credentials of a call. An empty password does not count: a directory treats it as an anonymous bind and
    /// accepts it (RFC 4513, 5.1.2).
    fn credentials(&self, exchange: &Exchange) -> Result<Credentials, AuthFailure> {
        let mut failure = AuthFailure::Missing;
        let places = if self.config.proxy_authorization {
            &PLACES[..]
        } else {
            &PLACES[1..]
        };
        for place in places {
            let Some(value) = exchange.request.headers.get(place) else {
                continue;
            };
            match self.read(value) {
                Some(credentials) => return Ok(credentials),
                None => failure = AuthFailure::Malformed,
            }
        }
        Err(failure)
    }

    fn read(&self, value: &[u8]) -> Option<Credentials> {
        let value = value.trim_ascii();
        let end = value.iter().position(u8::is_ascii_whitespace)?;
        let (scheme, rest) = value.split_at(end);
        let schemes = &self.config.schemes;
        if !schemes
            .iter()
            .any(|it| it.as_bytes().eq_ignore_ascii_case(scheme))
        {
            return None;
        }
        let pair = String::from_utf8(STANDARD.decode(rest.trim_ascii()).ok()?).ok()?;
        let (user, password) = pair.split_once(':')?;
        (!user.is_empty() && !password.is_empty()).then(|| Credentials {
            user: user.to_owned(),
            password: password.to_owned(),
        })
    }

    /// What the directory was asked, and as whom, as a key that shows no password.
    fn key(&self, credentials: &Credentials) -> Vec<u8> {
        let config = &self.config;
        let port = config.port.unwrap_or(0).to_string();
        let search = config.search.as_ref();
        let service = search.map(|it| (&it.bind_dn, it.size_limit, it.time_limit_seconds));
        let service_password = search.and_then(|it| it.password.as_deref()).unwrap_or_default();
        let groups = config.groups.as_ref().map(|groups| &groups.attribute);
        let search = format!("{service:?} {:?} {} {groups:?}", config.tls, config.verify_tls);
        let mut context = digest::Context::new(&digest::SHA256);
        for part in [
            config.host.as_str(),
            &port,
            &search,
            service_password,
            &config.base_dn,
            &config.attribute,
            &credentials.user,
            &credentials.password,
        ] {
            context.update(&(part.len() as u64).to_be_bytes());
            context.update(part.as_bytes());
        }
        context.finish().as_ref().to_vec()
    }

    fn conversation(&self, credentials: &Credentials) -> Conversation {
        let config = &self.config;
        let verify = if config.verify_tls {
            Verify::Yes
        } else {
            Verify::No
        };
        let entry = match &config.search {
            None => {
                let user = escape(&credentials.user);
                UserEntry::Known(format!("{}={user},{}", config.attribute, config.base_dn))
            }
            Some(search) => UserEntry::Searched {
                bind_dn: search.bind_dn.clone().unwrap_or_default(),
                bind_password: search.password.clone().unwrap_or_default(),
                base: config.base_dn.clone(),
                attribute: config.attribute.clone(),
                user: credentials.user.clone(),
                limits: (search.size_limit, search.time_limit_seconds),
            },
        };
        Conversation {
            host: config.host.clone(),
            port: config.port.unwrap_or(match config.tls {
                DirectoryTls::Ldaps => 636,
                DirectoryTls::None | DirectoryTls::StartTls => 389,
            }),
            tls: match config.tls {
                DirectoryTls::None => ConversationTls::None,
                DirectoryTls::Ldaps => ConversationTls::AtOnce(verify),
                DirectoryTls::StartTls => ConversationTls::OnRequest(verify),
            },
            connector: None,
            tag: "ldap".to_owned(),
            timeout: Duration::from_millis(config.timeout_ms),
            keep: (config.pool_size > 0).then(|| {
                (
                    config.pool_size,
                    Duration::from_millis(config.pool_idle_timeout_ms),
                )
            }),
            dialogue: Box::new(LdapConversation::new(Claim {
                entry,
                password: credentials.password.clone(),
                start_tls: config.tls == DirectoryTls::StartTls,
                group_attribute: config.groups.as_ref().map(|groups| groups.attribute.clone()),
            })),
        }
    }

    fn reject(&self, exchange: &mut Exchange, failure: AuthFailure) -> Outcome {
        let mut outcome = self
            .gate
            .reject(exchange, failure, self.config.challenge.as_ref());
        if let Outcome::Refuse(refusal) = &mut outcome {
            refusal.message.clone_from(&self.config.message);
        }
        outcome
    }

    /// The consumer that a user is.
    fn identity(&self, name: &str, user: &User, now_ms: u64) -> Option<Identity> {
        if let Some(found) = self.index.get(user.entry.as_bytes(), || now_ms) {
            return Some(found.identity.clone());
        }
        let consumer = self.names.find(name, &self.config.consumer_by)?;
        Some(Identity {
            consumer: Arc::clone(consumer),
            credential_id: Some(Arc::from(name)),
        })
    }

    fn accept(&self, exchange: &mut Exchange, name: &str, user: &User) -> Outcome {
        let config = &self.config;
        let names = config
            .groups
            .as_ref()
            .map(|groups| (groups, groups::names(config, groups, &user.groups)));
        if let Some((groups, names)) = &names
            && !groups::are_enough(groups, names)
        {
            return Outcome::refuse(RefusalKind::Forbidden { plugin: "ldap-auth" });
        }
        match self.identity(name, user, exchange.now_ms()) {
            Some(identity) => {
                self.gate.accept(exchange, &identity);
            }
            None if config.consumer_required => {
                return self.reject(exchange, AuthFailure::ConsumerMissing);
            }
            None => self.gate.accept_unknown(exchange, name),
        }
        if let Some((groups, names)) = names {
            if let Some(header) = &groups.header {
                authenticated_groups::set_header(exchange, header, &names);
            }
            authenticated_groups::note(exchange, names);
        }
        exchange.add_fingerprint(user.entry.as_bytes());
        if self.config.strip {
            for place in PLACES {
                exchange.request.headers.remove(place);
            }
        }
        Outcome::Continue
    }
}

impl Filter for DirectoryFilter {
    fn phases(&self) -> Phases {
        Phases::REQUEST
    }

    fn remove_forged(&self, exchange: &mut Exchange) {
        let names = self.config.cleared_headers.iter();
        user_headers::remove_forged(exchange, names.map(String::as_str));
    }

    fn on_request(&self, exchange: &mut Exchange) -> Outcome {
        if self.gate.skips(exchange) {
            self.remove_forged(exchange);
            return Outcome::Continue;
        }
        for name in &self.config.cleared_headers {
            exchange.request.headers.remove_owned(name.as_bytes());
        }
        let credentials = match self.credentials(exchange) {
            Ok(credentials) => credentials,
            Err(failure) => return self.reject(exchange, failure),
        };
        let wanted = FetchRequest {
            map: &self.verdicts,
            key: &self.key(&credentials),
            since_ms: 0,
            retry_ms: RETRY_MS,
            timeout: Duration::from_millis(self.config.timeout_ms),
        };
        let lifetime = Lifetime::fresh((self.config.cache_seconds * 1_000).max(1));
        let found = wanted.find(
            self,
            exchange,
            |_| Outcome::Converse(Box::new(self.conversation(&credentials))),
            |exchange| {
                let verdict = exchange.filter_state.take_answer::<Option<Verdict>>()??;
                let verdict = (*verdict)?;
                let bytes = match &verdict {
                    Verdict::Accepted(user) => user.groups.iter().map(|group| 32 + group.len()).sum(),
                    Verdict::Refused => 0,
                };
                Some((Arc::new(verdict), 256 + bytes, lifetime))
            },
        );
        match found {
            FetchResult::Wait(outcome) => outcome,
            FetchResult::Nothing => Outcome::refuse(RefusalKind::PluginFailed {
                plugin: "ldap-auth",
                reason: "the directory gives no answer that can be used",
            }),
            FetchResult::Value(verdict) => match &*verdict {
                Verdict::Accepted(user) => self.accept(exchange, &credentials.user, user),
                Verdict::Refused => self.reject(exchange, AuthFailure::Invalid),
            },
        }
    }
}
