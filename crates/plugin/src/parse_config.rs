//! Reading a typed configuration, with all that is wrong with it. What it is not: the checks that a plugin makes of what
//! was read.

use serde::de::DeserializeOwned;
use serde_json::Value;
use weir_model::diagnostic::PathStep;
use weir_model::{Diagnostic, DocPath};

/// The most findings about one configuration: for each one it is read once more.
const MOST: usize = 20;

/// Reads a typed configuration; the paths of diagnostics lead to the fields that are wrong.
///
/// # Errors
/// What is wrong, as far as one fault does not hide another.
pub fn parse_config<T: DeserializeOwned>(config: &Value) -> Result<T, Vec<Diagnostic>> {
    read(config).map_err(|first| all_findings::<T>(config, first))
}

fn read<T: DeserializeOwned>(config: &Value) -> Result<T, Diagnostic> {
    serde_path_to_error::deserialize(config).map_err(|error| {
        let steps = error.path().iter().filter_map(|segment| match segment {
            serde_path_to_error::Segment::Seq { index } => Some(PathStep::Index(*index)),
            serde_path_to_error::Segment::Map { key } => Some(PathStep::Field(key.clone())),
            serde_path_to_error::Segment::Enum { .. } | serde_path_to_error::Segment::Unknown => None,
        });
        let path = DocPath(steps.collect());
        Diagnostic::error(path, error.into_inner().to_string())
    })
}

/// What else is wrong: what a finding is about is taken out, and the rest is read again.
fn all_findings<T: DeserializeOwned>(config: &Value, first: Diagnostic) -> Vec<Diagnostic> {
    let mut rest = Rest {
        config: config.clone(),
        gone: Vec::new(),
        unknown: Vec::new(),
    };
    let mut findings = vec![first.clone()];
    let mut last = first;
    for _ in 1..MOST {
        // The place of an unknown field is the field itself.
        let unknown = quoted_after(&last.message, "unknown field `");
        let path = match unknown {
            Some(name) if last.path.0.last() != Some(&PathStep::Field(name.to_owned())) => {
                last.path.field(name)
            }
            _ => last.path.clone(),
        };
        if unknown.is_some() {
            rest.unknown.push(rest.original(&path));
        }
        if !rest.take(&path) {
            break;
        }
        match read::<T>(&rest.config) {
            Ok(_) => break,
            Err(found) => last = found,
        }
        let path = rest.original(&last.path);
        if !rest.lacks_a_part(&path, &last.message) {
            findings.push(Diagnostic { path, ..last.clone() });
        }
    }
    findings
}

fn quoted_after<'t>(message: &'t str, start: &str) -> Option<&'t str> {
    message.strip_prefix(start)?.split('`').next()
}

/// What is left of a configuration.
struct Rest {
    config: Value,
    /// The original places of what was taken out.
    gone: Vec<DocPath>,
    /// Those of fields that are unknown: each may have been meant for one that is missing.
    unknown: Vec<DocPath>,
}

impl Rest {
    /// Takes out what stands at a place; `false`: there is nothing more to take out.
    fn take(&mut self, path: &DocPath) -> bool {
        let original = self.original(path);
        let Some((last, above)) = path.0.split_last() else {
            return false;
        };
        let mut place = Some(&mut self.config);
        for step in above {
            place = place.and_then(|value| match step {
                PathStep::Field(name) => value.get_mut(name),
                PathStep::Index(index) => value.get_mut(index),
            });
        }
        let is_out = match (last, place) {
            (PathStep::Field(name), Some(Value::Object(map))) => map.remove(name).is_some(),
            (PathStep::Index(index), Some(Value::Array(items))) if *index < items.len() => {
                items.remove(*index);
                true
            }
            _ => false,
        };
        self.gone.push(original);
        is_out
    }

    /// The original place of what is left: items of lists before it may be gone.
    fn original(&self, path: &DocPath) -> DocPath {
        path.0.iter().fold(DocPath::root(), |above, step| match step {
            PathStep::Field(name) => above.field(name),
            PathStep::Index(index) => {
                let mut gone: Vec<usize> = self.gone.iter().filter_map(|it| item_of(it, &above)).collect();
                gone.sort_unstable();
                let original = gone
                    .into_iter()
                    .fold(*index, |index, gone| index + usize::from(gone <= index));
                above.index(original)
            }
        })
    }

    /// Whether a finding may only be that something was taken out.
    fn lacks_a_part(&self, path: &DocPath, message: &str) -> bool {
        let is_part = |it: &DocPath| it.0.starts_with(&path.0);
        match quoted_after(message, "missing field `") {
            None => self.gone.iter().any(is_part),
            Some(name) => {
                let is_beside = |it: &DocPath| is_part(it) && it.0.len() == path.0.len() + 1;
                self.gone.contains(&path.field(name)) || self.unknown.iter().any(is_beside)
            }
        }
    }
}

/// The index of an item of this list.
fn item_of(path: &DocPath, list: &DocPath) -> Option<usize> {
    match path.0.split_last()? {
        (PathStep::Index(index), above) if above == list.0 => Some(*index),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Deserialize;
    use serde_json::json;

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    #[expect(dead_code, reason = "only whether it can be read counts")]
    struct Config {
        name: String,
        #[serde(default)]
        count: u32,
        #[serde(default)]
        items: Vec<Item>,
    }

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields, try_from = "ItemFields")]
    struct Item;

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct ItemFields {
        one: Option<u32>,
        other: Option<u32>,
    }

    impl TryFrom<ItemFields> for Item {
        type Error = &'static str;

        fn try_from(it: ItemFields) -> Result<Self, Self::Error> {
            match (it.one, it.other) {
                (None, None) => Err("one of both is needed"),
                _ => Ok(Self),
            }
        }
    }

    fn findings(config: &Value) -> Vec<String> {
        match parse_config::<Config>(config) {
            Ok(_) => Vec::new(),
            Err(found) => found
                .iter()
                .map(|it| format!("{}: {}", it.path, it.message))
                .collect(),
        }
    }

    fn places(config: &Value) -> Vec<String> {
        let places = |text: String| text.split(": ").next().unwrap_or_default().to_owned();
        findings(config).into_iter().map(places).collect()
    }

    #[test]
    fn one_fault_does_not_hide_the_others() {
        for (config, wanted) in [
            (json!({"name": "a"}), vec![]),
            (
                json!({"name": "a", "x": 1, "count": "1", "y": 1}),
                vec!["count", "x", "y"],
            ),
            // Items keep their places, and what an item lacks only because of a finding is none.
            (
                json!({"name": "a", "items": [{"one": "x"}, 5, {"other": 1}, {}, {"one": 1, "more": 1}]}),
                vec!["items[0].one", "items[1]", "items[3]", "items[4].more"],
            ),
            (json!({"count": "1"}), vec!["count", ""]),
            // It may have been meant for the one that is missing.
            (json!({"nmae": "a", "count": "1"}), vec!["count", "nmae"]),
            (json!([]), vec![""]),
        ] {
            let mut found = places(&config);
            found.sort();
            let mut wanted = wanted;
            wanted.sort_unstable();
            assert_eq!(found, wanted, "{config}: {:?}", findings(&config));
        }
    }

    #[test]
    fn findings_are_bounded() {
        let items: Vec<Value> = (0..1_000).map(Value::from).collect();
        assert_eq!(findings(&json!({"name": "a", "items": items})).len(), MOST);
    }
}
