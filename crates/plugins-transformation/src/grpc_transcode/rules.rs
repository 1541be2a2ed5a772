//! The rules of `google.api.http`: the gRPC method of an HTTP call, and the sources of its fields.

use super::template::PathTemplate;
use crate::protobuf::{Compiled, FieldPath};
use prost_reflect::{DynamicMessage, FieldDescriptor, MethodDescriptor, Value};

/// Most rules of one definition.
const MAX_RULES: usize = 10_000;

/// One way to call a method.
pub(super) struct Rule {
    /// The method of HTTP.
    verb: Vec<u8>,
    template: PathTemplate,
    /// The fields of the template's variables.
    variables: Vec<FieldPath>,
    pub target: Target,
}

/// A gRPC method, and where the parts of its messages come from.
#[derive(Clone)]
pub(super) struct Target {
    pub method: MethodDescriptor,
    /// `/package.Service/Method`.
    pub path: Vec<u8>,
    pub body: Body,
    /// The field of the answer that is the body of HTTP's; absent: all of it.
    pub response_body: Option<FieldDescriptor>,
}

/// What the body of the call is.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Body {
    /// Nothing; the fields come from the query.
    Unused,
    /// This field; the others come from the query.
    Field(FieldDescriptor),
    /// The message, except for what the path contains.
    Whole,
}

impl Target {
    pub(super) fn new(method: MethodDescriptor, body: Body) -> Self {
        let path = format!("/{}/{}", method.parent_service().full_name(), method.name());
        Self {
            method,
            path: path.into_bytes(),
            body,
            response_body: None,
        }
    }
}

/// The rule of a call, and the values in its path.
pub(super) struct MatchedRule<'r, 'p> {
    pub target: &'r Target,
    pub values: Vec<(&'r FieldPath, &'p [u8])>,
}

/// Rules, of which that with the most literal parts of the path is asked first.
pub(super) struct Rules(Vec<Rule>);

impl Rules {
    /// The rules of all methods.
    ///
    /// # Errors
    /// What is wrong with one of them, with the method's name.
    pub(super) fn read(definitions: &Compiled) -> Result<Self, String> {
        let mut rules = Vec::new();
        let http = definitions.pool.get_extension_by_name("google.api.http");
        for method in definitions.methods() {
            let Some(http) = &http else { break };
            let options = method.options();
            if !options.has_extension(http) {
                continue;
            }
            let to_message = |message| format!("{}: {message}", method.full_name());
            if let Value::Message(rule) = options.get_extension(http).as_ref() {
                rules.push(read_rule(&method, rule).map_err(to_message)?);
                for more in list(rule, "additional_bindings") {
                    rules.push(read_rule(&method, &more).map_err(to_message)?);
                }
            }
        }
        if rules.is_empty() {
            return Err("expected methods with the option google.api.http, or one to be named".to_owned());
        }
        if rules.len() > MAX_RULES {
            return Err(format!("expected at most {MAX_RULES} rules of google.api.http"));
        }
        rules.sort_by_key(|rule| std::cmp::Reverse(rule.template.literals()));
        Ok(Self(rules))
    }

    /// The first rule that fits.
    pub(super) fn find<'p>(&self, verb: &[u8], path: &'p [u8]) -> Option<MatchedRule<'_, 'p>> {
        let of_verb = self.0.iter().filter(|rule| rule.verb == verb);
        of_verb
            .filter_map(|rule| {
                let values = rule.template.matches(path)?;
                Some(MatchedRule {
                    target: &rule.target,
                    values: rule.variables.iter().zip(values).collect(),
                })
            })
            .next()
    }

    /// Whether any rule is for this method of HTTP.
    pub(super) fn know(&self, verb: &[u8]) -> bool {
        self.0.iter().any(|rule| rule.verb == verb)
    }
}

fn text(rule: &DynamicMessage, name: &str) -> Option<String> {
    let value = rule.get_field_by_name(name)?;
    value.as_str().filter(|text| !text.is_empty()).map(str::to_owned)
}

fn list(rule: &DynamicMessage, name: &str) -> Vec<DynamicMessage> {
    let value = rule.get_field_by_name(name);
    let items = value.as_deref().and_then(Value::as_list).unwrap_or_default();
    items.iter().filter_map(Value::as_message).cloned().collect()
}

fn read_rule(method: &MethodDescriptor, rule: &DynamicMessage) -> Result<Rule, String> {
    let verbs = ["get", "put", "post", "delete", "patch"];
    let plain = verbs.iter().find_map(|verb| {
        let path = text(rule, verb)?;
        Some((verb.to_ascii_uppercase(), path))
    });
    let custom = || {
        let custom = rule.get_field_by_name("custom")?;
        let custom = custom.as_message()?;
        Some((text(custom, "kind")?, text(custom, "path")?))
    };
    let (verb, path) = plain
        .or_else(custom)
        .ok_or("expected a method of HTTP and a path in google.api.http")?;
    let template = PathTemplate::parse(&path)?;
    let input = method.input();
    let mut variables = Vec::new();
    for name in template.fields() {
        let field = FieldPath::find(&input, name).filter(FieldPath::takes_text);
        let field = field.filter(|field| field.last().is_some_and(|last| !last.is_list()));
        variables.push(field.ok_or_else(|| {
            let message = input.full_name();
            format!("expected a field of {message} with a single plain value, found '{name}' in '{path}'")
        })?);
    }
    let find = |message: prost_reflect::MessageDescriptor, name: String| {
        let field = message.get_field_by_name(&name);
        field.ok_or_else(|| format!("expected a field of {}, found '{name}'", message.full_name()))
    };
    let body = match text(rule, "body") {
        None => Body::Unused,
        Some(all) if all == "*" => Body::Whole,
        Some(name) => Body::Field(find(input, name)?),
    };
    let response_body = text(rule, "response_body").map(|name| find(method.output(), name));
    let mut target = Target::new(method.clone(), body);
    target.response_body = response_body.transpose()?;
    Ok(Rule {
        verb: verb.into_bytes(),
        template,
        variables,
        target,
    })
}
