//! Conditions whose result depends on a body that is too large or ambiguous. Routing ignores such variables, but
//! plugins that refuse or limit calls by them must not be bypassed.

use crate::condition::Condition;
use crate::exchange::Exchange;
use crate::refusal::RefusalKind;
use crate::request::Request;
use crate::template::Template;
use crate::variable::Variable;

/// Why the value of a variable for a call cannot be believed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Indeterminate {
    /// The body that holds it is larger than what is read for variables, [`MAX_VARIABLE_BODY`](crate::MAX_VARIABLE_BODY).
    TooLarge,
    /// The body is compressed.
    Encoded,
    /// The request carries several GraphQL operations, or fragments instead of fields; only the upstream decides which
    /// one counts.
    Ambiguous,
}

impl From<Indeterminate> for RefusalKind {
    fn from(reason: Indeterminate) -> Self {
        match reason {
            Indeterminate::TooLarge => Self::BodyTooLarge,
            Indeterminate::Encoded => Self::BadRequest("the Content-Encoding"),
            Indeterminate::Ambiguous => Self::BadRequest("the GraphQL request"),
        }
    }
}

impl Variable {
    /// Why the value that this call has for it cannot be believed, once the engine has read what it may of the body;
    /// `None`: it can.
    fn indeterminate(&self, request: &Request) -> Option<Indeterminate> {
        if self.awaits_body(request) {
            return Some(Indeterminate::TooLarge);
        }
        if self.is_in_body(request) && request.headers.contains(b"content-encoding") {
            return Some(Indeterminate::Encoded);
        }
        let is_ambiguous = match self {
            Self::GraphqlOperation | Self::GraphqlName => request.has_several_operations(),
            Self::GraphqlRootFields => {
                let has_fragments = || request.graphql_operation().is_some_and(|it| it.has_fragments);
                request.has_several_operations() || has_fragments()
            }
            _ => false,
        };
        is_ambiguous.then_some(Indeterminate::Ambiguous)
    }
}

impl Condition {
    /// Evaluates the condition for this call without guessing. Unlike in [`Condition::holds`], a variable of a body
    /// that cannot be evaluated does not simply count as absent.
    ///
    /// # Errors
    /// The reason why the result is unknown, if it depends on such a variable.
    pub fn evaluate_strict(&self, exchange: &Exchange) -> Result<bool, Indeterminate> {
        // A member with a result may decide alone, whatever its place.
        let evaluate_list = |list: &[Self], deciding: bool| {
            let mut result = Ok(!deciding);
            for condition in list {
                match condition.evaluate_strict(exchange) {
                    Ok(holds) if holds == deciding => return Ok(deciding),
                    Ok(_) => {}
                    Err(reason) => result = Err(reason),
                }
            }
            result
        };
        match self {
            Self::All(list) => evaluate_list(list, false),
            Self::Any(list) => evaluate_list(list, true),
            Self::Not(inner) => inner.evaluate_strict(exchange).map(|holds| !holds),
            Self::Test(variable, _) => match variable.indeterminate(&exchange.request) {
                Some(reason) => Err(reason),
                None => Ok(self.holds(exchange)),
            },
        }
    }
}

impl Template {
    /// Why the text for this call cannot be believed; `None`: it can.
    pub fn indeterminate(&self, exchange: &Exchange) -> Option<Indeterminate> {
        self.variables()
            .find_map(|variable| variable.indeterminate(&exchange.request))
    }
}
