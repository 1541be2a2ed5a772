//! Paths into JSON values: `user.name`, `messages[*].role`, `items[0]`, `..model`.

use crate::work::{Exhausted, WorkBudget};
use serde_json::Value;

/// Where to look in a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JsonPath {
    steps: Vec<Step>,
    /// It looks for any number of values. A path of names alone leads to one.
    is_query: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Step {
    /// The member of this name.
    Name(String),
    /// The item at this index, from 0.
    Index(usize),
    /// Every item or member.
    Each,
    /// The value itself and all below it.
    Below,
}

/// What a path leads to.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Selected<'v> {
    /// One value.
    One(&'v Value),
    /// What a query found; never empty.
    Several(Vec<&'v Value>),
}

impl JsonPath {
    /// Parses a path. A path with `[`, `*` or `..` finds a list, whatever is in it; any other path finds a single
    /// value. Steps are `.name`, `['name']`, `[0]`, `[*]`, `.*` and, once, `..`. `None` if the text is not such a path.
    pub fn parse(text: &str) -> Option<Self> {
        let is_query = text.contains(['[', '*']) || text.contains("..");
        if !is_query {
            let names = text.split('.').filter(|name| !name.is_empty());
            let steps: Vec<_> = names.map(|name| Step::Name(name.to_owned())).collect();
            return (!steps.is_empty()).then_some(Self { steps, is_query });
        }
        let mut steps = Vec::new();
        let mut rest = text;
        while !rest.is_empty() {
            let (step, behind) = match rest.strip_prefix('[') {
                Some(subscript) => read_subscript(subscript)?,
                None if rest.starts_with("..") => {
                    // A second one would find the same values over and over.
                    if steps.contains(&Step::Below) || rest.len() == 2 {
                        return None;
                    }
                    steps.push(Step::Below);
                    rest = &rest[2..];
                    continue;
                }
                None => {
                    let name = rest.strip_prefix('.').unwrap_or(rest);
                    let end = name.find(['.', '[']).unwrap_or(name.len());
                    let step = match &name[..end] {
                        "" => return None,
                        "*" => Step::Each,
                        name if name.contains(['*', ']']) => return None,
                        name => Step::Name(name.to_owned()),
                    };
                    (step, &name[end..])
                }
            };
            steps.push(step);
            rest = behind;
        }
        Some(Self { steps, is_query })
    }

    /// What it leads to in `root`; `None`: nothing, or the work for that goes beyond the call's budget.
    pub(crate) fn select<'v>(&self, root: &'v Value, work: &WorkBudget) -> Option<Selected<'v>> {
        let mut found = vec![root];
        for step in &self.steps {
            found = step.apply(found, work).ok()?;
        }
        match self.is_query {
            true => (!found.is_empty()).then_some(Selected::Several(found)),
            false => found.first().copied().map(Selected::One),
        }
    }
}

/// The step in a subscript whose `[` has been read, and what follows its `]`.
fn read_subscript(text: &str) -> Option<(Step, &str)> {
    for quote in ['\'', '"'] {
        if let Some(quoted) = text.strip_prefix(quote) {
            let (name, behind) = quoted.split_once(quote)?;
            return Some((Step::Name(name.to_owned()), behind.strip_prefix(']')?));
        }
    }
    let (inner, behind) = text.split_once(']')?;
    let step = match inner.trim() {
        "*" => Step::Each,
        digits if digits.bytes().all(|byte| byte.is_ascii_digit()) => Step::Index(digits.parse().ok()?),
        _ => return None,
    };
    Some((step, behind))
}

impl Step {
    fn apply<'v>(&self, values: Vec<&'v Value>, work: &WorkBudget) -> Result<Vec<&'v Value>, Exhausted> {
        // To pass by a value takes much less than to judge it.
        work.spend(1 + values.len() / 8)?;
        Ok(match self {
            Self::Name(name) => values.into_iter().filter_map(|value| value.get(name)).collect(),
            Self::Index(index) => values.into_iter().filter_map(|value| value.get(index)).collect(),
            Self::Each => values.into_iter().flat_map(children).collect(),
            Self::Below => {
                let mut found = values;
                let mut next = 0;
                while let Some(value) = found.get(next).copied() {
                    found.extend(children(value));
                    next += 1;
                    work.spend(usize::from(next % 8 == 0))?;
                }
                found
            }
        })
    }
}

fn children(value: &Value) -> Box<dyn Iterator<Item = &Value> + '_> {
    match value {
        Value::Array(items) => Box::new(items.iter()),
        Value::Object(members) => Box::new(members.values()),
        _ => Box::new(std::iter::empty()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn paths_lead_to_values() {
        let root = json!({
            "model": "m",
            "user": {"name": "jack", "model": 2},
            "a.b": 1,
            "messages": [{"role": "system", "parts": [{"t": 1}, {"t": 2}]}, {"role": "user", "parts": [{"t": 3}]}, 7],
        });
        for (path, wanted) in [
            ("model", json!("m")),
            ("user.name", json!("jack")),
            ("user.", json!({"name": "jack", "model": 2})),
            ("user.name.x", Value::Null),
            ("messages.0", Value::Null),
            ("nothing", Value::Null),
            ("messages[0].role", json!(["system"])),
            ("messages[*].role", json!(["system", "user"])),
            ("messages[*].parts[*].t", json!([1, 2, 3])),
            ("messages[9].role", Value::Null),
            ("messages[99999999999999999999]", Value::Null),
            ("['a.b']", json!([1])),
            ("user.*", json!(["jack", 2])),
            ("*.name", json!(["jack"])),
            ("..model", json!(["m", 2])),
            ("messages..t", json!([1, 2, 3])),
        ] {
            let seen =
                JsonPath::parse(path).and_then(|path| match path.select(&root, &WorkBudget::default())? {
                    Selected::One(value) => Some(value.clone()),
                    Selected::Several(values) => Some(values.into_iter().cloned().collect()),
                });
            assert_eq!(seen.unwrap_or_default(), wanted, "{path}");
        }
    }

    #[test]
    fn what_is_no_path_is_refused() {
        for path in [
            "",
            ".",
            "a[",
            "a[]x",
            "a[-1]",
            "a[?(@.x)]",
            "a[1:2]",
            "a['x",
            "..",
            "a..",
            "..a..b",
            "a.*x",
            "a[.b[*]",
        ] {
            assert_eq!(JsonPath::parse(path), None, "{path}");
        }
    }
}
