//! Whether a plan is good as it is written, and whether a subscriber has said what it asks.

use crate::entities::{Comment, OauthSettings, Plan, PlanSecurity, TokenCheck, fingerprint};
use crate::lint::check_schema;
use crate::states::Refusal;
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// The most questions of a form.
const MAX_QUESTIONS: usize = 30;
/// The most bytes of a form, and of its answers.
const MAX_FORM: usize = 16 << 10;
/// The most characters of what a subscriber says.
const MAX_REQUEST: usize = 4_000;
/// The most authorities of a plan.
const MAX_AUTHORITIES: usize = 20;

/// The id of no operation. It stands where a plan opens nothing: a plan without any id opens all operations.
pub const NO_OPERATION: &str = "";

/// The most calls that a limit may be of.
pub const MAX_COUNT: u64 = 1_000_000_000_000;

/// The faults of a plan: places, and what was expected there.
pub fn check(plan: &Plan) -> Vec<(String, String)> {
    let mut wrong = Vec::new();
    let mut add = |place: &str, message: &str| wrong.push((place.to_owned(), message.to_owned()));
    let settings = [
        ("oauth2", PlanSecurity::Oauth2, plan.oauth2.is_some()),
        ("hmac", PlanSecurity::Hmac, plan.hmac.is_some()),
        ("mtls", PlanSecurity::Mtls, plan.mtls.is_some()),
    ];
    for (name, security, is_there) in settings {
        if is_there && plan.security != security {
            add(name, &format!("expected it with \"security\": \"{name}\" only"));
        }
    }
    match (&plan.oauth2, plan.security) {
        (None, PlanSecurity::Oauth2) => add(
            "oauth2.discovery",
            "expected the address of an authorization server",
        ),
        (Some(settings), PlanSecurity::Oauth2) => check_oauth(settings, &mut add),
        _ => {}
    }
    for (index, name) in plan.hmac.iter().flat_map(|it| &it.headers).enumerate() {
        if !is_header(name) {
            add(&format!("hmac.headers[{index}]"), "expected a header name");
        }
    }
    let authorities = plan.mtls.as_ref().map_or(&[][..], |it| &it.authorities);
    if authorities.len() > MAX_AUTHORITIES {
        add(
            "mtls.authorities",
            &format!("expected at most {MAX_AUTHORITIES} authorities"),
        );
    }
    for (index, pem) in authorities.iter().enumerate() {
        if fingerprint(pem).is_none() {
            add(
                &format!("mtls.authorities[{index}]"),
                "expected a certificate in PEM",
            );
        }
    }
    if plan.is_of_application() && plan.key_lifetime.is_some() {
        add(
            "key_lifetime",
            "expected none: the plan's subscribers have no keys",
        );
    }
    if plan.key_lifetime == Some(0) {
        add(
            "key_lifetime",
            "expected at least 1 second: with 0 no key would ever be good",
        );
    }
    let of_operations = plan.operation_limits.iter().map(|(id, limits)| {
        let place = format!("operation_limits.{id}");
        (place, limits)
    });
    for (place, limits) in [("limits".to_owned(), &plan.limits)]
        .into_iter()
        .chain(of_operations)
    {
        for (index, limit) in limits.iter().enumerate() {
            if !(1..=MAX_COUNT).contains(&limit.count) {
                let message = format!("expected 1 to {MAX_COUNT} calls, found {}", limit.count);
                add(&format!("{place}[{index}].count"), &message);
            }
            if limits[..index].iter().any(|it| it.per == limit.per) {
                let message = "a limit above is for the same window: one of the two would never count";
                add(&format!("{place}[{index}].per"), message);
            }
        }
    }
    if plan.security == PlanSecurity::Keyless && plan.form.is_some() {
        add("form", "expected none: a keyless plan has no subscriptions");
    }
    if let Some(form) = &plan.form {
        check_form(form, &mut add);
    }
    wrong
}

/// What is to be said of a plan although it is good: a place, and why.
pub fn advice(plan: &Plan) -> Option<(&'static str, &'static str)> {
    let takes_any = |it: &OauthSettings| it.audiences.is_empty() && it.check == TokenCheck::Jwks;
    plan.oauth2.as_ref().filter(|it| takes_any(it)).map(|_| {
        (
            "oauth2.audiences",
            "without audiences, tokens for any other API of this authorization server are accepted, too: set the values of 'aud' in tokens for this API",
        )
    })
}

fn check_oauth(settings: &OauthSettings, add: &mut impl FnMut(&str, &str)) {
    let is_address = |text: &str| {
        let rest = text
            .strip_prefix("https://")
            .or_else(|| text.strip_prefix("http://"));
        rest.is_some_and(|rest| {
            !rest.is_empty() && !rest.starts_with('/') && !text.contains(char::is_whitespace)
        })
    };
    let address = "expected an address that begins with http:// or https://";
    if !is_address(&settings.discovery) {
        add("oauth2.discovery", address);
    }
    if !settings.introspection_endpoint.is_empty() && !is_address(&settings.introspection_endpoint) {
        add("oauth2.introspection_endpoint", address);
    }
    let asks = settings.check == TokenCheck::Introspection;
    if asks && settings.client_id.is_empty() {
        add(
            "oauth2.client_id",
            "expected the gateway's client id: it is needed for introspection",
        );
    }
    if asks && settings.client_secret.is_empty() {
        add("oauth2.client_secret", "expected the secret of that client");
    }
    for (place, list) in [
        ("scopes", &settings.scopes),
        ("audiences", &settings.audiences),
        ("client_claims", &settings.client_claims),
    ] {
        if list
            .iter()
            .any(|it| it.is_empty() || it.contains(char::is_whitespace))
        {
            add(&format!("oauth2.{place}"), "expected words without blanks");
        }
    }
}

fn is_header(name: &str) -> bool {
    let is_token = |it: u8| it.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&it);
    !name.is_empty() && name.bytes().all(is_token)
}

/// The fields of a question, with what is expected there.
const OF_QUESTION: [&str; 14] = [
    "type",
    "title",
    "description",
    "enum",
    "default",
    "minLength",
    "maxLength",
    "pattern",
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
    "format",
];

/// A form is a JSON Schema that people can be shown as a page: a map of texts, numbers and truth values.
fn check_form(form: &Value, add: &mut impl FnMut(&str, &str)) {
    if form.to_string().len() > MAX_FORM {
        return add("form", &format!("expected at most {MAX_FORM} bytes"));
    }
    let Some(fields) = form.as_object() else {
        return add("form", "expected a JSON Schema");
    };
    for name in fields.keys() {
        if ![
            "$schema",
            "type",
            "title",
            "description",
            "properties",
            "required",
            "additionalProperties",
        ]
        .contains(&name.as_str())
        {
            add(
                &format!("form.{name}"),
                "expected type, title, description, properties and required only",
            );
        }
    }
    if fields.get("type").is_none_or(|it| it != "object") {
        add("form.type", "expected 'object'");
    }
    let Some(questions) = fields
        .get("properties")
        .and_then(Value::as_object)
        .filter(|it| !it.is_empty())
    else {
        return add(
            "form.properties",
            "expected a map with a schema for each question",
        );
    };
    if questions.len() > MAX_QUESTIONS {
        add(
            "form.properties",
            &format!("expected at most {MAX_QUESTIONS} questions"),
        );
    }
    for (name, question) in questions {
        check_question(&format!("form.properties.{name}"), question, add);
    }
    match fields.get("required") {
        None => {}
        Some(Value::Array(required)) => {
            for (index, name) in required.iter().enumerate() {
                if name.as_str().is_none_or(|name| !questions.contains_key(name)) {
                    add(
                        &format!("form.required[{index}]"),
                        "expected the name of a question",
                    );
                }
            }
        }
        Some(_) => add("form.required", "expected a list of names"),
    }
}

fn check_question(place: &str, question: &Value, add: &mut impl FnMut(&str, &str)) {
    let Some(fields) = question.as_object() else {
        return add(place, "expected a schema");
    };
    let kind = fields.get("type").and_then(Value::as_str);
    if !matches!(kind, Some("string" | "number" | "integer" | "boolean")) {
        add(
            &format!("{place}.type"),
            "expected 'string', 'number', 'integer' or 'boolean'",
        );
    }
    for (name, value) in fields {
        let place = format!("{place}.{name}");
        let is_count = value.as_u64().is_some();
        match name.as_str() {
            other if !OF_QUESTION.contains(&other) => {
                add(&place, &format!("expected one of {}", OF_QUESTION.join(", ")));
            }
            "title" | "description" | "format" if !value.is_string() => add(&place, "expected a text"),
            "minLength" | "maxLength" if !is_count => add(&place, "expected a number"),
            "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum" | "multipleOf"
                if !value.is_number() =>
            {
                add(&place, "expected a number");
            }
            "enum" if value.as_array().is_none_or(Vec::is_empty) => add(&place, "expected a list of values"),
            "pattern" if value.as_str().is_none_or(|it| regex::Regex::new(it).is_err()) => {
                add(&place, "expected a regular expression");
            }
            _ => {}
        }
    }
}

/// Whether what a subscriber says is what the plan asks.
///
/// # Errors
/// What is missing, or was not asked.
pub fn check_answers(plan: &Plan, request: &str, answers: &Map<String, Value>) -> Result<(), Refusal> {
    let refuse = |reason: String| Err(Refusal::Because(reason));
    match plan.comment {
        Comment::None if !request.trim().is_empty() => {
            return refuse(format!("the plan '{}' accepts no reason in 'request'", plan.name));
        }
        Comment::Required if request.trim().is_empty() => {
            return refuse(format!("the plan '{}' requires a reason in 'request'", plan.name));
        }
        _ => {}
    }
    if request.chars().count() > MAX_REQUEST {
        return refuse(format!("expected at most {MAX_REQUEST} characters in 'request'"));
    }
    let Some(form) = &plan.form else {
        return match answers.is_empty() {
            true => Ok(()),
            false => refuse(format!(
                "the plan '{}' has no questions: expected no 'answers'",
                plan.name
            )),
        };
    };
    let given = Value::Object(answers.clone());
    if given.to_string().len() > MAX_FORM {
        return refuse(format!("expected at most {MAX_FORM} bytes in 'answers'"));
    }
    let questions: BTreeMap<&String, &Value> = form["properties"].as_object().into_iter().flatten().collect();
    if let Some(unknown) = answers.keys().find(|it| !questions.contains_key(it)) {
        return refuse(format!(
            "answers.{unknown}: the plan '{}' has no such question",
            plan.name
        ));
    }
    check_schema::check(&Map::new(), form, &given).or_else(|message| refuse(format!("answers: {message}")))
}

#[cfg(test)]
mod tests;
