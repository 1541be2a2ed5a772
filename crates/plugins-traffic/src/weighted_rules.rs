//! Rules of which the first that holds shares calls out among its choices, by their weights.

use crate::weights::Weights;
use weir_model::{Diagnostic, DocPath, Predicate};
use weir_plugin::{Condition, Exchange};

/// Such rules, in order.
pub(crate) struct WeightedRules<T>(Vec<Rule<T>>);

struct Rule<T> {
    when: Option<Condition>,
    choices: Vec<T>,
    /// `None`: all are 0.
    weights: Option<Weights>,
}

impl<T> Default for WeightedRules<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T> WeightedRules<T> {
    /// Adds a rule from `path`, and reports faults of its condition to `faults`.
    pub(crate) fn add(
        &mut self,
        when: Option<&Predicate>,
        choices: Vec<T>,
        weights: impl Iterator<Item = u32>,
        path: &DocPath,
        faults: &mut Vec<Diagnostic>,
    ) {
        let when = when.map(Condition::compile).transpose();
        let when = when.unwrap_or_else(|message| {
            faults.push(Diagnostic::error(path.field("when"), message));
            None
        });
        self.0.push(Rule {
            when,
            choices,
            weights: Weights::new(weights),
        });
    }

    /// Whether a condition is over the request's body.
    pub(crate) fn need_body(&self) -> bool {
        let mut conditions = self.0.iter().filter_map(|rule| rule.when.as_ref());
        conditions.any(Condition::needs_body)
    }

    /// All choices.
    pub(crate) fn choices(&self) -> impl Iterator<Item = &T> {
        self.0.iter().flat_map(|rule| &rule.choices)
    }

    /// The choice for a call; `None`: no rule is for it, or it is given to none.
    pub(crate) fn choose(&self, exchange: &Exchange) -> Option<&T> {
        let holds = |rule: &&Rule<T>| rule.when.as_ref().is_none_or(|when| when.holds(exchange));
        let rule = self.0.iter().find(holds)?;
        rule.choices.get(rule.weights.as_ref()?.next())
    }
}
