//! A model with its policy: which rules there are, and what follows from those that match.

use super::functions::Patterns;
use super::matcher::{Expression, Names, Values, parse};
use std::collections::{HashMap, HashSet};

/// How many roles may lead from one to the next.
const MAX_ROLES: usize = 10;

/// What is asked.
pub(super) struct Request<'r> {
    pub(super) subject: &'r str,
    pub(super) object: &'r str,
    pub(super) action: &'r str,
}

/// What follows from the rules that match.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Effect {
    /// One allows.
    SomeAllows,
    /// None denies.
    NoneDenies,
    /// One allows, and none denies.
    Both,
    /// The first that matches decides.
    First,
}

/// A model with its policy.
#[derive(Debug)]
pub(super) struct Enforcer {
    matcher: Expression,
    effect: Effect,
    /// The place of `eft` in rules.
    effect_field: Option<usize>,
    rules: Vec<Vec<String>>,
    patterns: Patterns,
    /// By kind of roles: who has which.
    roles: Vec<HashMap<String, HashSet<String>>>,
}

/// The field that is wrong, and why.
type ModelError = (&'static str, String);

/// The definitions of a model, by name.
fn definitions(text: &str) -> Result<HashMap<String, String>, ModelError> {
    let mut found = HashMap::new();
    let joined = text.replace("\\\n", " ");
    for line in joined.lines() {
        let line = line.trim();
        if line.is_empty() || line.starts_with(['#', ';', '[']) {
            continue;
        }
        let (name, value) = line
            .split_once('=')
            .ok_or_else(|| ("model", format!("expected `name = value`, found '{line}'")))?;
        found.insert(name.trim().to_owned(), value.trim().to_owned());
    }
    Ok(found)
}

fn list(text: &str) -> Vec<String> {
    text.split(',').map(|part| part.trim().to_owned()).collect()
}

impl Enforcer {
    /// Reads a model and its policy.
    ///
    /// # Errors
    /// The field that is wrong, and why.
    pub(super) fn read(model: &str, policy: &str) -> Result<Self, ModelError> {
        let definitions = definitions(model)?;
        let one = |name: &str| {
            let found = definitions.get(name).filter(|it| !it.is_empty());
            found.ok_or_else(|| ("model", format!("expected a definition of `{name}`")))
        };
        let request = list(one("r")?);
        if request.len() != 3 {
            let message = "expected three fields of a request: subject, object and action";
            return Err(("model", message.to_owned()));
        }
        let rule = list(one("p")?);
        let mut kinds: Vec<String> = definitions
            .iter()
            .filter(|(name, _)| {
                name.strip_prefix('g')
                    .is_some_and(|rest| rest.bytes().all(|it| it.is_ascii_digit()))
            })
            .map(|(name, _)| name.clone())
            .collect();
        kinds.sort();
        for kind in &kinds {
            if list(&definitions[kind]).len() != 2 {
                return Err(("model", format!("`{kind}` with domains is not available")));
            }
        }
        let names = Names {
            request: &request,
            rule: &rule,
            roles: &kinds,
        };
        let matcher = parse(one("m")?, &names).map_err(|fault| ("model", format!("`m`: {fault}")))?;
        let mut enforcer = Self {
            effect: effect(one("e")?)?,
            effect_field: rule.iter().position(|field| field == "eft"),
            rules: Vec::new(),
            patterns: Patterns::default(),
            roles: vec![HashMap::new(); kinds.len()],
            matcher,
        };
        for line in policy.lines() {
            enforcer.add(line.trim(), rule.len(), &kinds)?;
        }
        let (rules, patterns) = (&enforcer.rules, &mut enforcer.patterns);
        enforcer
            .matcher
            .patterns(rules, &mut |function, pattern| patterns.add(function, pattern));
        Ok(enforcer)
    }

    fn add(&mut self, line: &str, fields: usize, kinds: &[String]) -> Result<(), ModelError> {
        if line.is_empty() || line.starts_with('#') {
            return Ok(());
        }
        let mut parts = list(line);
        let kind = parts.remove(0);
        if kind == "p" {
            // The effect may be left out.
            let least = fields - usize::from(self.effect_field == Some(fields - 1));
            if !(least..=fields).contains(&parts.len()) {
                let message = format!("expected {fields} fields, found '{line}'");
                return Err(("policy", message));
            }
            self.rules.push(parts);
            return Ok(());
        }
        let Some(place) = kinds.iter().position(|known| *known == kind) else {
            return Err(("policy", format!("expected a line of `p` or `g`, found '{line}'")));
        };
        match <[String; 2]>::try_from(parts) {
            Ok([user, role]) => {
                self.roles[place].entry(user).or_default().insert(role);
                Ok(())
            }
            Err(_) => Err(("policy", format!("expected two names, found '{line}'"))),
        }
    }

    fn has_role(&self, kind: usize, user: &str, role: &str) -> bool {
        let roles = &self.roles[kind];
        let mut reached: HashSet<&str> = HashSet::from([user]);
        let mut last = vec![user];
        for _ in 0..=MAX_ROLES {
            if reached.contains(role) {
                return true;
            }
            let next = last.iter().filter_map(|it| roles.get(*it)).flatten();
            last = next
                .map(String::as_str)
                .filter(|it| !reached.contains(it))
                .collect();
            if last.is_empty() {
                return false;
            }
            reached.extend(&last);
        }
        false
    }

    /// Whether the policy allows it.
    pub(super) fn allows(&self, request: &Request<'_>) -> bool {
        let has_role = |kind: usize, user: &str, role: &str| self.has_role(kind, user, role);
        let matching = self.rules.iter().filter(|rule| {
            self.matcher.holds(&Values {
                request: [request.subject, request.object, request.action],
                rule,
                patterns: &self.patterns,
                has_role: &has_role,
            })
        });
        let mut effects = matching.map(|rule| {
            let field = self.effect_field.and_then(|at| rule.get(at));
            field.map_or("allow", String::as_str)
        });
        match self.effect {
            Effect::SomeAllows => effects.any(|effect| effect == "allow"),
            Effect::NoneDenies => effects.all(|effect| effect != "deny"),
            Effect::First => effects.next() == Some("allow"),
            Effect::Both => {
                let mut allowed = false;
                for effect in effects {
                    if effect == "deny" {
                        return false;
                    }
                    allowed |= effect == "allow";
                }
                allowed
            }
        }
    }
}

fn effect(text: &str) -> Result<Effect, ModelError> {
    let plain: String = text
        .chars()
        .filter(|character| !character.is_whitespace())
        .collect();
    Ok(match plain.as_str() {
        "some(where(p.eft==allow))" => Effect::SomeAllows,
        "!some(where(p.eft==deny))" => Effect::NoneDenies,
        "some(where(p.eft==allow))&&!some(where(p.eft==deny))" => Effect::Both,
        "priority(p.eft)||deny" => Effect::First,
        _ => return Err(("model", format!("there is no effect '{text}'"))),
    })
}
