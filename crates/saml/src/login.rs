//! Responses to logins: the user's identity, as the identity provider asserts it.
//!
//! Only the one assertion directly in the response is read, and only if a signature covers it: its own, that of the
//! response, or that of the redirect. Unsolicited responses are refused.

use crate::binding::Received;
use crate::encryption::{self, DecryptionKey};
use crate::error::{SamlError, ensure};
use crate::instant::parse_instant;
use crate::names::{ASSERTION, BEARER, PROTOCOL, SUCCESS};
use crate::signature::{Trust, allowed_only_in, signed};
use crate::xml::{Document, ElementId, Limits};

/// The most values that are read of all attributes.
const MAX_VALUES: usize = 1_000;

/// A response, before anything of it is believed.
#[derive(Debug)]
pub struct LoginResponse {
    document: Document,
    /// The binding's own signature covers all of it.
    is_signed: bool,
}

/// What a good response says.
#[derive(Debug)]
pub struct Expected<'e> {
    /// The provider's keys.
    pub trust: &'e Trust,
    /// What opens encrypted assertions.
    pub key: Option<&'e DecryptionKey>,
    /// The service provider's own name.
    pub audience: &'e str,
    /// The identity provider's name; `None`: any name, if the key is right.
    pub issuer: Option<&'e str>,
    /// Where it was sent to.
    pub recipient: &'e str,
    /// The id of the request that it answers.
    pub request_id: &'e str,
    /// Now, in seconds since the Unix epoch.
    pub now_s: i64,
    /// How far the clocks may be apart, in seconds.
    pub leeway_s: i64,
}

/// A user's name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NameId {
    /// The name.
    pub value: String,
    /// What kind of a name it is.
    pub format: Option<String>,
    /// The domain of the name, as the provider states it.
    pub qualifier: Option<String>,
    /// For which service provider it is.
    pub service_qualifier: Option<String>,
}

/// An attribute of a user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attribute {
    /// Its name.
    pub name: String,
    /// Its name for people.
    pub friendly_name: Option<String>,
    /// Its values; those that are no text are left out.
    pub values: Vec<String>,
}

/// A user who has logged in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Login {
    /// The name.
    pub name_id: NameId,
    /// The session at the provider.
    pub session_index: Option<String>,
    /// When the session ends, in seconds since the Unix epoch.
    pub session_ends_s: Option<i64>,
    /// The attributes.
    pub attributes: Vec<Attribute>,
}

impl NameId {
    pub(crate) fn read(document: &Document, id: ElementId) -> Result<Self, SamlError> {
        let value = document
            .name(id)
            .ok_or(SamlError("the name of the user has elements in it"))?;
        ensure(!value.is_empty(), "the name of the user is empty")?;
        let attribute = |name: &str| document.attribute(id, name).map(str::to_owned);
        Ok(Self {
            value,
            format: attribute("Format"),
            qualifier: attribute("NameQualifier"),
            service_qualifier: attribute("SPNameQualifier"),
        })
    }
}

impl LoginResponse {
    /// Reads a response.
    ///
    /// # Errors
    /// The message is not a response.
    pub fn parse(received: &Received, limits: Limits) -> Result<Self, SamlError> {
        let document = Document::parse(&received.xml, limits)?;
        let root = document.root();
        ensure(
            document.is(root, PROTOCOL, "Response"),
            "the message is not a response to a login",
        )?;
        Ok(Self {
            document,
            is_signed: received.is_signed,
        })
    }

    /// The id of the request that it says it answers. It is not to be believed yet.
    pub fn in_response_to(&self) -> Option<&str> {
        self.document.attribute(self.document.root(), "InResponseTo")
    }

    /// The user, if all is as it is expected.
    ///
    /// # Errors
    /// What is wrong.
    pub fn login(&self, expected: &Expected<'_>) -> Result<Login, SamlError> {
        let document = &self.document;
        let root = document.root();
        document.ids_are_unique()?;
        let assertion = the_assertion(document)?;
        allowed_only_in(document, &[root, assertion])?;
        let is_signed = signed(document, root, expected.trust)? || self.is_signed;
        self.check_response(root, is_signed, expected)?;
        if document.is(assertion, ASSERTION, "Assertion") {
            let is_signed = signed(document, assertion, expected.trust)? || is_signed;
            ensure(is_signed, "the assertion is not signed")?;
            return Reader(document, expected).login(assertion);
        }
        let key = expected.key.ok_or(SamlError(
            "the assertion is encrypted, and there is no key to open it with",
        ))?;
        let text = encryption::open(document, assertion, key, is_signed)?;
        let inner = Document::parse(&text, Limits::default())?;
        let root = inner.root();
        inner.ids_are_unique()?;
        ensure(
            inner.is(root, ASSERTION, "Assertion") && assertions(&inner).count() == 1,
            "what is encrypted is not one assertion",
        )?;
        allowed_only_in(&inner, &[root])?;
        let is_signed = signed(&inner, root, expected.trust)? || is_signed;
        ensure(is_signed, "the assertion is not signed")?;
        Reader(&inner, expected).login(root)
    }

    fn check_response(
        &self,
        root: ElementId,
        is_signed: bool,
        expected: &Expected<'_>,
    ) -> Result<(), SamlError> {
        let document = &self.document;
        let attribute = |name: &str| document.attribute(root, name);
        ensure(
            attribute("Version") == Some("2.0"),
            "the response is not of version 2.0",
        )?;
        ensure(
            attribute("InResponseTo") == Some(expected.request_id),
            "the response answers another request",
        )?;
        match attribute("Destination") {
            Some(place) => ensure(
                place == expected.recipient,
                "the response was sent to another place",
            )?,
            // A signed message must say where it was sent (SAML bindings, 3.4.5.2 and 3.5.5.2).
            None => ensure(!is_signed, "the response does not say where it was sent")?,
        }
        let reader = Reader(document, expected);
        reader.check_issuer(root, false)?;
        reader.check_time(attribute("IssueInstant"))?;
        let status = document.only(root, PROTOCOL, "Status")?;
        let status = match status {
            Some(status) => document.only(status, PROTOCOL, "StatusCode")?,
            None => None,
        };
        let code = status.and_then(|it| document.attribute(it, "Value"));
        ensure(
            code == Some(SUCCESS),
            "the identity provider did not log the user in",
        )
    }
}

/// All assertions of a document, at any depth.
fn assertions(document: &Document) -> impl Iterator<Item = ElementId> + '_ {
    document.all().filter(|it| {
        document.is(*it, ASSERTION, "Assertion") || document.is(*it, ASSERTION, "EncryptedAssertion")
    })
}

/// The only assertion of a response, plain or encrypted.
fn the_assertion(document: &Document) -> Result<ElementId, SamlError> {
    let mut all = assertions(document);
    let (first, second) = (all.next(), all.next());
    ensure(second.is_none(), "the response has several assertions")?;
    let first = first.filter(|it| document.parent(*it) == Some(document.root()));
    first.ok_or(SamlError("the response has no assertion"))
}

/// Reads an assertion that is signed.
struct Reader<'d>(&'d Document, &'d Expected<'d>);

impl Reader<'_> {
    fn login(&self, assertion: ElementId) -> Result<Login, SamlError> {
        let document = self.0;
        ensure(
            document.attribute(assertion, "Version") == Some("2.0"),
            "the assertion is not of version 2.0",
        )?;
        self.check_issuer(assertion, true)?;
        self.check_time(document.attribute(assertion, "IssueInstant"))?;
        self.check_conditions(assertion)?;
        let subject = document.only(assertion, ASSERTION, "Subject")?;
        let subject = subject.ok_or(SamlError("the assertion is about no user"))?;
        let mut confirmations = document.named(subject, ASSERTION, "SubjectConfirmation");
        ensure(
            confirmations.any(|it| self.confirms(it)),
            "the assertion is not confirmed for this request, place and time",
        )?;
        let name = document.only(subject, ASSERTION, "NameID")?;
        let name = name.ok_or(SamlError("the assertion does not name the user"))?;
        let name_id = NameId::read(document, name)?;
        let (session_index, session_ends_s) = self.session(assertion)?;
        Ok(Login {
            name_id,
            session_index,
            session_ends_s,
            attributes: self.attributes(assertion)?,
        })
    }

    fn check_issuer(&self, element: ElementId, is_required: bool) -> Result<(), SamlError> {
        let issuer = self.0.only(element, ASSERTION, "Issuer")?;
        let name = issuer.and_then(|it| self.0.name(it)).unwrap_or_default();
        if issuer.is_none() {
            return ensure(!is_required, "the assertion does not say who makes it");
        }
        let is_good = !name.is_empty() && self.1.issuer.is_none_or(|wanted| wanted == name);
        ensure(is_good, "the message is one of another identity provider")
    }

    /// When something was made: it must not be in the future.
    fn check_time(&self, instant: Option<&str>) -> Result<(), SamlError> {
        let instant = instant.and_then(parse_instant);
        let instant = instant.ok_or(SamlError("the message does not say when it was made"))?;
        ensure(
            instant <= self.1.now_s + self.1.leeway_s,
            "the message was made in the future",
        )
    }

    /// Whether now is within `NotBefore` and `NotOnOrAfter`, as far as these are there.
    fn is_in_time(&self, element: ElementId) -> bool {
        let (now_s, leeway_s) = (self.1.now_s, self.1.leeway_s);
        let bound = |name: &str| self.0.attribute(element, name).map(parse_instant);
        let has_begun = match bound("NotBefore") {
            None => true,
            Some(begin) => begin.is_some_and(|begin| begin <= now_s + leeway_s),
        };
        let lasts = match bound("NotOnOrAfter") {
            None => true,
            Some(end) => end.is_some_and(|end| now_s < end + leeway_s),
        };
        has_begun && lasts
    }

    fn check_conditions(&self, assertion: ElementId) -> Result<(), SamlError> {
        let document = self.0;
        let conditions = document.only(assertion, ASSERTION, "Conditions")?;
        let conditions = conditions.ok_or(SamlError("the assertion is for no audience"))?;
        ensure(
            self.is_in_time(conditions),
            "the assertion is not good yet or not any more",
        )?;
        let mut audiences = 0;
        for condition in document.children(conditions) {
            if document.is(condition, ASSERTION, "AudienceRestriction") {
                audiences += 1;
                let mut names = document.named(condition, ASSERTION, "Audience");
                let is_own = |id: ElementId| document.name(id).is_some_and(|name| name == self.1.audience);
                ensure(names.any(is_own), "the assertion is for another audience")?;
            } else {
                // A condition that is not understood makes the assertion worthless (SAML core, 2.5.1.1).
                let is_known = document.is(condition, ASSERTION, "OneTimeUse")
                    || document.is(condition, ASSERTION, "ProxyRestriction");
                ensure(is_known, "the assertion has a condition that is not understood")?;
            }
        }
        ensure(audiences > 0, "the assertion is for no audience")
    }

    /// Whether the browser that brings the assertion may do so (SAML profiles, 4.1.4.3).
    fn confirms(&self, confirmation: ElementId) -> bool {
        let document = self.0;
        let data = document.only(confirmation, ASSERTION, "SubjectConfirmationData");
        let Ok(Some(data)) = data else {
            return false;
        };
        document.attribute(confirmation, "Method") == Some(BEARER)
            && document.attribute(data, "Recipient") == Some(self.1.recipient)
            && document.attribute(data, "InResponseTo") == Some(self.1.request_id)
            && document.attribute(data, "NotOnOrAfter").is_some()
            && self.is_in_time(data)
    }

    fn session(&self, assertion: ElementId) -> Result<(Option<String>, Option<i64>), SamlError> {
        let document = self.0;
        let statement = document.named(assertion, ASSERTION, "AuthnStatement").next();
        let statement = statement.ok_or(SamlError(
            "the assertion does not say that the user has logged in",
        ))?;
        let index = document.attribute(statement, "SessionIndex").map(str::to_owned);
        let ends_s = match document.attribute(statement, "SessionNotOnOrAfter") {
            None => None,
            Some(instant) => {
                let ends_s =
                    parse_instant(instant).ok_or(SamlError("the end of the session cannot be read"))?;
                ensure(self.1.now_s < ends_s + self.1.leeway_s, "the session has ended")?;
                Some(ends_s)
            }
        };
        Ok((index, ends_s))
    }

    fn attributes(&self, assertion: ElementId) -> Result<Vec<Attribute>, SamlError> {
        let document = self.0;
        let mut attributes = Vec::new();
        let mut count = 0;
        for statement in document.named(assertion, ASSERTION, "AttributeStatement") {
            for id in document.named(statement, ASSERTION, "Attribute") {
                let name = document.attribute(id, "Name");
                let name = name.ok_or(SamlError("an attribute of the user has no name"))?;
                let values = document.named(id, ASSERTION, "AttributeValue");
                let values: Vec<String> = values.filter_map(|it| document.text(it)).collect();
                count += 1 + values.len();
                ensure(count <= MAX_VALUES, "the user has too many attributes")?;
                attributes.push(Attribute {
                    name: name.to_owned(),
                    friendly_name: document.attribute(id, "FriendlyName").map(str::to_owned),
                    values,
                });
            }
        }
        Ok(attributes)
    }
}
