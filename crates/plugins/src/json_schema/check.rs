//! Checking values by a schema that was made ready, and filling in its defaults. Schemas are read beside.

use super::equality::{check_unique, is_same};
use super::{Dependency, Fields, Items, Kind, MAX_DEPTH, Name, Node, Numbers, Rules, Schema, Text};
use serde_json::{Map, Number, Value};

type Checked = Result<(), String>;

impl Schema {
    pub(super) fn verify(&self, node: &Node, value: &mut Value, depth: usize) -> Checked {
        if depth > MAX_DEPTH {
            return Err("nested too deep".to_owned());
        }
        match node {
            Node::Always(true) => Ok(()),
            Node::Always(false) => Err("expect false always".to_owned()),
            Node::Reference(place) => self.verify(&self.nodes[*place], value, depth + 1),
            Node::Rules(rules) => self.verify_rules(rules, value, depth + 1),
        }
    }

    fn verify_rules(&self, rules: &Rules, value: &mut Value, depth: usize) -> Checked {
        check_kind(&rules.kinds, value)?;
        match value {
            Value::Object(map) => {
                if let Some(fields) = &rules.fields {
                    self.verify_fields(fields, map, depth)?;
                }
            }
            Value::Array(items) => {
                if let Some(rules) = &rules.items {
                    self.verify_items(rules, items, depth)?;
                }
            }
            Value::String(text) => rules
                .text
                .as_ref()
                .map_or(Ok(()), |rules| check_text(rules, text))?,
            Value::Number(number) => {
                let rules = rules.number.as_ref();
                rules.map_or(Ok(()), |rules| check_number(rules, number))?;
            }
            Value::Null | Value::Bool(_) => {}
        }
        if let Some(options) = &rules.options
            && !options.iter().any(|option| is_same(option, value))
        {
            return Err("matches none of the enum values".to_owned());
        }
        self.verify_compounds(rules, value, depth)?;
        match (&rules.constant, value) {
            (Some(constant), value) if !is_same(constant, value) => {
                Err("failed to check const value".to_owned())
            }
            _ => Ok(()),
        }
    }

    fn verify_fields(&self, fields: &Fields, map: &mut Map<String, Value>, depth: usize) -> Checked {
        for property in &fields.properties {
            let name = &property.name;
            match map.get_mut(&name.looked_up) {
                Some(value) => {
                    self.verify(&property.node, value, depth)
                        .map_err(|error| format!("property {} validation failed: {error}", name.quoted()))?;
                }
                None if property.is_required => return Err(name.missing()),
                None => {
                    if let Node::Rules(rules) = &property.node
                        && let Some(default) = &rules.default
                    {
                        map.insert(name.looked_up.clone(), default.clone());
                    }
                }
            }
        }
        if let Some(name) = fields
            .required
            .iter()
            .find(|name| !map.contains_key(&name.looked_up))
        {
            return Err(name.missing());
        }
        for (name, dependency) in &fields.dependencies {
            if map.contains_key(&name.looked_up) {
                self.verify_dependency(name, dependency, map, depth)?;
            }
        }
        self.verify_other_fields(fields, map, depth)?;
        match (fields.least, fields.most) {
            (Some(least), _) if map.len() < least => {
                Err(format!("expect object to have at least {least} properties"))
            }
            (_, Some(most)) if map.len() > most => {
                Err(format!("expect object to have at most {most} properties"))
            }
            _ => Ok(()),
        }
    }

    fn verify_dependency(
        &self,
        name: &Name,
        dependency: &Dependency,
        map: &mut Map<String, Value>,
        depth: usize,
    ) -> Checked {
        match dependency {
            Dependency::Fields(needed) => {
                match needed.iter().find(|needed| !map.contains_key(&needed.looked_up)) {
                    None => Ok(()),
                    Some(needed) => Err(format!("{} when {} is set", needed.missing(), name.quoted())),
                }
            }
            Dependency::Schema(node) => {
                let mut whole = Value::Object(std::mem::take(map));
                let checked = self.verify(node, &mut whole, depth);
                if let Value::Object(whole) = whole {
                    *map = whole;
                }
                checked.map_err(|error| {
                    format!(
                        "failed to validate dependent schema for {}: {error}",
                        name.quoted()
                    )
                })
            }
        }
    }

    fn verify_other_fields(&self, fields: &Fields, map: &mut Map<String, Value>, depth: usize) -> Checked {
        if fields.patterns.is_empty() && fields.others.is_none() && fields.names.is_none() {
            return Ok(());
        }
        for (name, value) in map.iter_mut() {
            let mut is_known = fields.properties.iter().any(|it| it.name.looked_up == *name);
            for (pattern, node) in fields
                .patterns
                .iter()
                .filter(|(pattern, _)| pattern.is_match(name))
            {
                is_known = true;
                self.verify(node, value, depth).map_err(|error| {
                    format!(
                        "failed to validate {name} (matching {:?}): {error}",
                        pattern.as_str()
                    )
                })?;
            }
            match &fields.others {
                Some(node) if !is_known => self.verify(node, value, depth).map_err(|error| match node {
                    Node::Always(_) => format!("additional properties forbidden, found {name}"),
                    _ => format!("failed to validate additional property {name}: {error}"),
                })?,
                _ => {}
            }
            if let Some(node) = &fields.names {
                self.verify(node, &mut Value::from(name.as_str()), depth)
                    .map_err(|error| format!("property name {name:?} validation failed: {error}"))?;
            }
        }
        Ok(())
    }

    fn verify_items(&self, rules: &Items, items: &mut [Value], depth: usize) -> Checked {
        match (rules.least, rules.most) {
            (Some(least), _) if items.len() < least => {
                return Err(format!("expect array to have at least {least} items"));
            }
            (_, Some(most)) if items.len() > most => {
                return Err(format!("expect array to have at most {most} items"));
            }
            _ => {}
        }
        for (item, (index, node)) in items.iter_mut().zip((1..).zip(&rules.first)) {
            self.verify(node, item, depth)
                .map_err(|error| format!("failed to validate item {index}: {error}"))?;
        }
        if let Some(node) = rules.others.as_ref().filter(|_| !rules.first.is_empty()) {
            for (item, index) in items.iter_mut().zip(1..).skip(rules.first.len()) {
                self.verify(node, item, depth).map_err(|error| match node {
                    Node::Always(_) => "found unexpected extra items in array".to_owned(),
                    _ => format!("failed to validate additional item {index}: {error}"),
                })?;
            }
        }
        if let Some(node) = &rules.each {
            for (item, index) in items.iter_mut().zip(1..) {
                self.verify(node, item, depth)
                    .map_err(|error| format!("failed to validate item {index}: {error}"))?;
            }
        }
        if rules.unique {
            check_unique(items)?;
        }
        match &rules.contains {
            Some(node)
                if !items
                    .iter_mut()
                    .any(|item| self.verify(node, item, depth).is_ok()) =>
            {
                Err("failed to check contains".to_owned())
            }
            _ => Ok(()),
        }
    }

    fn verify_compounds(&self, rules: &Rules, value: &mut Value, depth: usize) -> Checked {
        for (node, number) in rules.all_of.iter().zip(1..) {
            self.verify(node, value, depth)
                .map_err(|error| format!("allOf {number} failed: {error}"))?;
        }
        let mut any_of = rules.any_of.iter();
        if !rules.any_of.is_empty() && !any_of.any(|node| self.verify(node, value, depth).is_ok()) {
            return Err(format!(
                "object matches none of the required{}",
                rules.any_of_required
            ));
        }
        let mut matched = None;
        for (node, number) in rules.one_of.iter().zip(1..) {
            match (self.verify(node, value, depth), matched) {
                (Ok(()), Some(earlier)) => {
                    return Err(format!(
                        "value should match only one schema, but matches both schemas {earlier} and {number}"
                    ));
                }
                (Ok(()), None) => matched = Some(number),
                (Err(_), _) => {}
            }
        }
        if !rules.one_of.is_empty() && matched.is_none() {
            return Err("value should match only one schema, but matches none".to_owned());
        }
        if let Some((condition, then, otherwise)) = &rules.condition {
            let (branch, word) = match self.verify(condition, value, depth) {
                Ok(()) => (then, "then"),
                Err(_) => (otherwise, "else"),
            };
            if let Some(branch) = branch {
                self.verify(branch, value, depth)
                    .map_err(|_| format!("{word} clause did not match"))?;
            }
        }
        match &rules.not {
            Some(node) if self.verify(node, value, depth).is_ok() => {
                Err("value wasn't supposed to match schema".to_owned())
            }
            _ => Ok(()),
        }
    }
}

impl Name {
    fn quoted(&self) -> String {
        format!("\"{}\"", self.told)
    }

    fn missing(&self) -> String {
        format!("property {} is required", self.quoted())
    }
}

impl Kind {
    fn as_str(self) -> &'static str {
        match self {
            Self::Object => "object",
            Self::Array => "array",
            Self::Text => "string",
            Self::Integer => "integer",
            Self::Number => "number",
            Self::Boolean => "boolean",
            Self::Null => "null",
        }
    }

    fn is_of(self, value: &Value) -> bool {
        match (self, value) {
            (Self::Object, Value::Object(_))
            | (Self::Array, Value::Array(_))
            | (Self::Text, Value::String(_))
            | (Self::Number, Value::Number(_))
            | (Self::Boolean, Value::Bool(_))
            | (Self::Null, Value::Null) => true,
            (Self::Integer, Value::Number(number)) => number.as_f64().is_some_and(|it| it.fract() == 0.0),
            _ => false,
        }
    }
}

fn check_kind(kinds: &[Kind], value: &Value) -> Checked {
    if kinds.is_empty() || kinds.iter().any(|kind| kind.is_of(value)) {
        return Ok(());
    }
    let found = match value {
        Value::Null => "userdata",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) | Value::Object(_) => "table",
    };
    let names: Vec<&str> = kinds.iter().map(|kind| kind.as_str()).collect();
    let one_of = if kinds.len() > 1 { "one of " } else { "" };
    Err(format!(
        "wrong type: expected {one_of}{}, got {found}",
        names.join(", ")
    ))
}

fn check_text(rules: &Text, text: &str) -> Checked {
    if rules.least.is_some() || rules.most.is_some() {
        let length = text.chars().count();
        match (rules.least, rules.most) {
            (Some(least), _) if length < least => {
                return Err(format!(
                    "string too short, expected at least {least}, got {length}"
                ));
            }
            (_, Some(most)) if length > most => {
                return Err(format!("string too long, expected at most {most}, got {length}"));
            }
            _ => {}
        }
    }
    match &rules.pattern {
        Some((told, pattern)) if !pattern.is_match(text) => {
            return Err(format!("failed to match pattern \"{told}\" with \"{text}\""));
        }
        _ => {}
    }
    match rules.format {
        Some(format) if !format.holds(text) => {
            Err(format!("expect valid {} format but got: {text}", format.name()))
        }
        _ => Ok(()),
    }
}

fn check_number(rules: &Numbers, number: &Number) -> Checked {
    let value = number.as_f64().unwrap_or(f64::NAN);
    let told = |what: &str, bound: f64| Err(format!("expected {} to be {what} {bound}", written(number)));
    match rules {
        Numbers {
            minimum: Some(bound), ..
        } if value < *bound => told("at least", *bound),
        Numbers {
            above: Some(bound), ..
        } if value <= *bound => told("greater than", *bound),
        Numbers {
            maximum: Some(bound), ..
        } if value > *bound => told("at most", *bound),
        Numbers {
            below: Some(bound), ..
        } if value >= *bound => told("smaller than", *bound),
        Numbers {
            multiple_of: Some(of),
            ..
        } if !is_multiple(value, *of) => told("a multiple of", *of),
        _ => Ok(()),
    }
}

/// A number as the words have it: whole ones without a fraction.
fn written(number: &Number) -> String {
    match number.as_f64() {
        Some(value) if number.is_f64() => value.to_string(),
        _ => number.to_string(),
    }
}

/// Of fractions, only about as much counts as a binary number can hold of them.
fn is_multiple(value: f64, of: f64) -> bool {
    let quotient = value / of;
    let rounded = quotient.round();
    (quotient - rounded).abs() <= 1e-12 * rounded.abs().max(1.0)
}
