//! Checking values by a schema that was made ready, and filling in its defaults. Schemas are read beside.

use super::equality::{check_unique, is_same};
use super::scalars::{KindSet, check_number, check_text, weight};
use super::{Dependency, Fields, Items, MAX_DEPTH, Name, Node, Property, Rules};
use serde_json::{Map, Value};
use weir_plugin::WorkBudget;

pub(super) type CheckResult = Result<(), String>;

/// One check of a value.
#[derive(Clone, Copy)]
pub(super) struct Check<'c> {
    nodes: &'c [Node],
    work: &'c WorkBudget,
    /// The message is not needed: an alternative is tried.
    is_silent: bool,
}

impl<'c> Check<'c> {
    pub(super) fn new(nodes: &'c [Node], work: &'c WorkBudget) -> Self {
        Self {
            nodes,
            work,
            is_silent: false,
        }
    }

    /// Whether a value matches. Words about what is wrong would be made for each of many alternatives.
    fn holds(&self, node: &Node, value: &mut Value, depth: usize) -> bool {
        let silent = Self {
            is_silent: true,
            ..*self
        };
        silent.verify(node, value, depth).is_ok()
    }

    /// The description of a fault; empty if nothing reads it.
    fn words(&self, make: impl FnOnce() -> String) -> String {
        if self.is_silent { String::new() } else { make() }
    }

    /// What a reference leads to.
    pub(super) fn node(&self, place: usize) -> &'c Node {
        &self.nodes[place]
    }

    pub(super) fn spend(&self, steps: usize) -> CheckResult {
        self.work.spend(steps).map_err(|_| String::new())
    }

    pub(super) fn verify(&self, node: &Node, value: &mut Value, depth: usize) -> CheckResult {
        self.spend(1)?;
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

    fn verify_rules(&self, rules: &Rules, value: &mut Value, depth: usize) -> CheckResult {
        rules.kinds.check(KindSet::of(value))?;
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
            Value::String(text) => {
                if let Some(rules) = &rules.text {
                    self.spend(text.len() / 16)?;
                    check_text(rules, text).map_err(|error| self.words(error))?;
                }
            }
            Value::Number(number) => {
                let rules = rules.number.as_ref();
                rules.map_or(Ok(()), |rules| check_number(rules, number))?;
            }
            Value::Null | Value::Bool(_) => {}
        }
        self.spend(rules.options.as_ref().map_or(0, Vec::len) / 4)?;
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

    fn verify_fields(&self, fields: &Fields, map: &mut Map<String, Value>, depth: usize) -> CheckResult {
        self.spend((fields.required.len() + fields.dependencies.len()) / 4)?;
        // Of many optional properties, few maps have many.
        let asked = map.len() + fields.always.len();
        if asked * 2 < fields.properties.len() {
            self.spend(asked / 2)?;
            let names = map.keys().filter_map(|name| fields.places.get(name));
            let mut places: Vec<usize> = names.chain(&fields.always).copied().collect();
            // In the schema's order, because the first fault is reported.
            places.sort_unstable();
            places.dedup();
            for place in places {
                self.verify_property(&fields.properties[place], map, depth)?;
            }
        } else {
            self.spend(fields.properties.len() / 4)?;
            for property in &fields.properties {
                self.verify_property(property, map, depth)?;
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
                Err(self.words(|| format!("expect object to have at least {least} properties")))
            }
            (_, Some(most)) if map.len() > most => {
                Err(self.words(|| format!("expect object to have at most {most} properties")))
            }
            _ => Ok(()),
        }
    }

    fn verify_property(
        &self,
        property: &Property,
        map: &mut Map<String, Value>,
        depth: usize,
    ) -> CheckResult {
        let name = &property.name;
        match map.get_mut(&name.looked_up) {
            Some(value) => self.verify(&property.node, value, depth).map_err(|error| {
                self.words(|| format!("property {} validation failed: {error}", name.quoted()))
            }),
            None if property.is_required => Err(name.missing()),
            None => {
                if let Node::Rules(rules) = &property.node
                    && let Some(default) = &rules.default
                {
                    self.spend(weight(default))?;
                    map.insert(name.looked_up.clone(), default.clone());
                }
                Ok(())
            }
        }
    }

    fn verify_dependency(
        &self,
        name: &Name,
        dependency: &Dependency,
        map: &mut Map<String, Value>,
        depth: usize,
    ) -> CheckResult {
        match dependency {
            Dependency::Fields(needed) => {
                match needed.iter().find(|needed| !map.contains_key(&needed.looked_up)) {
                    None => Ok(()),
                    Some(needed) => {
                        Err(self.words(|| format!("{} when {} is set", needed.missing(), name.quoted())))
                    }
                }
            }
            Dependency::Schema(node) => {
                let mut whole = Value::Object(std::mem::take(map));
                let checked = self.verify(node, &mut whole, depth);
                if let Value::Object(whole) = whole {
                    *map = whole;
                }
                checked.map_err(|error| {
                    let name = name.quoted();
                    self.words(|| format!("failed to validate dependent schema for {name}: {error}"))
                })
            }
        }
    }

    fn verify_other_fields(
        &self,
        fields: &Fields,
        map: &mut Map<String, Value>,
        depth: usize,
    ) -> CheckResult {
        if fields.patterns.is_empty() && fields.others.is_none() && fields.names.is_none() {
            return Ok(());
        }
        for (name, value) in map.iter_mut() {
            // Patterns look through names.
            self.spend(1 + fields.patterns.len() * (1 + name.len() / 16))?;
            let mut is_known = fields.places.contains_key(name);
            for (pattern, node) in fields
                .patterns
                .iter()
                .filter(|(pattern, _)| pattern.is_match(name))
            {
                is_known = true;
                self.verify(node, value, depth).map_err(|error| {
                    let pattern = pattern.as_str();
                    self.words(|| format!("failed to validate {name} (matching {pattern:?}): {error}"))
                })?;
            }
            match &fields.others {
                Some(node) if !is_known => self.verify(node, value, depth).map_err(|error| {
                    self.words(|| match node {
                        Node::Always(_) => format!("additional properties forbidden, found {name}"),
                        _ => format!("failed to validate additional property {name}: {error}"),
                    })
                })?,
                _ => {}
            }
            if let Some(node) = &fields.names {
                self.verify(node, &mut Value::from(name.as_str()), depth)
                    .map_err(|error| {
                        self.words(|| format!("property name {name:?} validation failed: {error}"))
                    })?;
            }
        }
        Ok(())
    }

    fn verify_items(&self, rules: &Items, items: &mut [Value], depth: usize) -> CheckResult {
        match (rules.least, rules.most) {
            (Some(least), _) if items.len() < least => {
                return Err(self.words(|| format!("expect array to have at least {least} items")));
            }
            (_, Some(most)) if items.len() > most => {
                return Err(self.words(|| format!("expect array to have at most {most} items")));
            }
            _ => {}
        }
        for (item, (index, node)) in items.iter_mut().zip((1..).zip(&rules.first)) {
            self.verify(node, item, depth)
                .map_err(|error| self.words(|| format!("failed to validate item {index}: {error}")))?;
        }
        if let Some(node) = rules.others.as_ref().filter(|_| !rules.first.is_empty()) {
            for (item, index) in items.iter_mut().zip(1..).skip(rules.first.len()) {
                self.verify(node, item, depth).map_err(|error| {
                    self.words(|| match node {
                        Node::Always(_) => "found unexpected extra items in array".to_owned(),
                        _ => format!("failed to validate additional item {index}: {error}"),
                    })
                })?;
            }
        }
        if let Some(node) = &rules.each {
            for (item, index) in items.iter_mut().zip(1..) {
                self.verify(node, item, depth)
                    .map_err(|error| self.words(|| format!("failed to validate item {index}: {error}")))?;
            }
        }
        if rules.unique {
            self.spend(items.iter().map(weight).sum())?;
            check_unique(items)?;
        }
        match &rules.contains {
            Some(node) if !items.iter_mut().any(|item| self.holds(node, item, depth)) => {
                Err("failed to check contains".to_owned())
            }
            _ => Ok(()),
        }
    }

    fn verify_compounds(&self, rules: &Rules, value: &mut Value, depth: usize) -> CheckResult {
        for (node, number) in rules.all_of.iter().zip(1..) {
            self.verify(node, value, depth)
                .map_err(|error| self.words(|| format!("allOf {number} failed: {error}")))?;
        }
        let mut any_of = rules.any_of.iter();
        if !rules.any_of.is_empty() && !any_of.any(|node| self.holds(node, value, depth)) {
            return Err(
                self.words(|| format!("object matches none of the required{}", rules.any_of_required))
            );
        }
        let mut matched = None;
        for (node, number) in rules.one_of.iter().zip(1..) {
            match (self.holds(node, value, depth), matched) {
                (true, Some(earlier)) => {
                    return Err(self.words(|| format!(
                        "value should match only one schema, but matches both schemas {earlier} and {number}"
                    )));
                }
                (true, None) => matched = Some(number),
                (false, _) => {}
            }
        }
        if !rules.one_of.is_empty() && matched.is_none() {
            return Err("value should match only one schema, but matches none".to_owned());
        }
        if let Some((condition, then, otherwise)) = &rules.condition {
            let (branch, word) = match self.holds(condition, value, depth) {
                true => (then, "then"),
                false => (otherwise, "else"),
            };
            if let Some(branch) = branch {
                self.verify(branch, value, depth)
                    .map_err(|_| format!("{word} clause did not match"))?;
            }
        }
        match &rules.not {
            Some(node) if self.holds(node, value, depth) => {
                Err("value wasn't supposed to match schema".to_owned())
            }
            _ => Ok(()),
        }
    }
}

impl Name {
    pub(super) fn quoted(&self) -> String {
        format!("\"{}\"", self.text)
    }

    pub(super) fn missing(&self) -> String {
        format!("property {} is required", self.quoted())
    }
}
