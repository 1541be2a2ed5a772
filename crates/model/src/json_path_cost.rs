//! The most that a JSONPath costs in a document: a bound, worked out before the path is looked for, as `$..*..*` finds
//! a value once for each pair of the maps around it.
//!
//! **What it is not**: it evaluates nothing, and does not count what a path really finds.

use serde_json::Value;

/// How many values a document has at each depth.
#[derive(Debug)]
pub struct DocumentShape {
    by_depth: Vec<u64>,
}

impl DocumentShape {
    /// That of a document.
    pub fn of(document: &Value) -> Self {
        let mut by_depth = Vec::new();
        let mut level = vec![document];
        while !level.is_empty() {
            by_depth.push(level.len() as u64);
            level = level.into_iter().flat_map(children).collect();
        }
        Self { by_depth }
    }

    fn values(&self) -> u64 {
        self.by_depth.iter().sum()
    }

    /// How many ways there are to come to a value by so many `..`, for all values together: each `..` chooses one of the maps
    /// and lists around it, or it itself.
    fn ways(&self, descents: u64) -> u64 {
        let ways = self.by_depth.iter().enumerate().map(|(depth, values)| {
            let ways = (1..descents).fold(1_u64, |ways, step| {
                ways.saturating_mul((depth as u64).saturating_add(step)) / step
            });
            values.saturating_mul(ways)
        });
        ways.fold(0, u64::saturating_add)
    }
}

fn children(value: &Value) -> Box<dyn Iterator<Item = &Value> + '_> {
    match value {
        Value::Array(items) => Box::new(items.iter()),
        Value::Object(fields) => Box::new(fields.values()),
        _ => Box::new(std::iter::empty()),
    }
}

/// The parts of a path that make it costly.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PathCost {
    /// It names one place only.
    is_narrow: bool,
    /// Its `..`, those of its filters too.
    descents: u64,
    /// Filters that start again at the document and look at many places of it, for each value.
    restarts: u32,
    /// How many times the selectors in brackets may find the same value.
    repeats: u64,
}

impl PathCost {
    /// That of a path.
    pub fn of(path: &str) -> Self {
        let plain = without_texts(path);
        let is_wide = |part: &str| part.contains(['*', ':', '?']) || part.contains("..");
        let restarts = plain.split('$').skip(2).filter(|part| is_wide(part));
        let brackets = plain.split('[').skip(1);
        let selectors = brackets.map(|it| it.split(']').next().unwrap_or_default().split(',').count() as u64);
        Self {
            is_narrow: !is_wide(&plain),
            descents: plain.matches("..").count() as u64,
            restarts: u32::try_from(restarts.count()).unwrap_or(u32::MAX),
            repeats: selectors.fold(1, u64::saturating_mul),
        }
    }

    /// The steps that it takes at most in a document.
    pub fn steps(&self, shape: &DocumentShape) -> u64 {
        let ways = match self.is_narrow {
            true => 1,
            false => shape.ways(self.descents.max(1)),
        };
        let restarts = shape.values().saturating_pow(self.restarts);
        ways.saturating_mul(restarts).saturating_mul(self.repeats)
    }
}

/// A path without what stands between quotes: names, and texts of filters.
fn without_texts(path: &str) -> String {
    let mut plain = String::with_capacity(path.len());
    let mut quote = None;
    let mut is_escaped = false;
    for character in path.chars() {
        match quote {
            Some(open) => {
                let ends = character == open && !is_escaped;
                is_escaped = character == '\\' && !is_escaped;
                if ends {
                    quote = None;
                }
            }
            None if matches!(character, '\'' | '"') => quote = Some(character),
            None => plain.push(character),
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use serde_json_path::JsonPath;

    /// Maps in maps, as deep and with as many fields as said.
    fn tree(depth: usize, fields: usize) -> Value {
        match depth {
            0 => json!(1),
            _ => (0..fields)
                .map(|it| (format!("f{it}"), tree(depth - 1, fields)))
                .collect::<serde_json::Map<_, _>>()
                .into(),
        }
    }

    #[test]
    fn no_path_finds_more_than_its_steps() {
        let document = tree(6, 2);
        let shape = DocumentShape::of(&document);
        for path in [
            "$",
            "$.f0.f1",
            "$.*.*",
            "$..*",
            "$..*..*",
            "$..f0..f0..f1",
            "$..*..*..*",
            "$..[?@..f1]",
            "$[*,*][*,*][*,*]",
            "$['f0','f0']['f0','f0']",
            "$..[?@.f0 || $.f0]",
            "$..[?$..f0]",
            "$..[?@.a == 'x..*$']",
            "$..['a..b']",
        ] {
            let found = JsonPath::parse(path).expect(path).query(&document).len() as u64;
            let steps = PathCost::of(path).steps(&shape);
            assert!(found <= steps, "{path}: {found} in {steps}");
        }
    }

    #[test]
    fn what_is_usual_is_cheap() {
        let shape = DocumentShape::of(&tree(12, 2));
        let values = shape.values();
        for (path, most) in [
            ("$.info.title", 1),
            ("$.paths.*['get','put','post'].responses", 3 * values),
            ("$..description", values),
            ("$..[?@.a == 'x..*$']", values),
            ("$.paths[?$.info.title == 'a']", values),
        ] {
            let steps = PathCost::of(path).steps(&shape);
            assert!(steps <= most, "{path}: {steps}");
        }
        let costly = PathCost::of("$..*..*..*..*..*..*..*..*").steps(&shape);
        assert!(costly > 100_000_000, "{costly}");
    }
}
