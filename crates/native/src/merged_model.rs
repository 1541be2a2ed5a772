//! The model of many small ones, one behind the other, kept in place: a part that changes costs as much as the part, and
//! no other is copied. What a part says is not looked at.

use std::collections::BTreeMap;
use std::ops::Bound;
use weir_model::Model;

/// The lists of a model that parts add to.
const LISTS: usize = 10;
/// If more parts have changed, all are merged again.
const MAX_SPLICED: usize = 16;

/// What a part says, or why it says nothing.
pub type PartialModel = Result<Model, String>;

/// How much a part adds to each list.
type Lengths = [usize; LISTS];

fn lengths(part: Option<&PartialModel>) -> Lengths {
    let Some(Ok(part)) = part else {
        return Lengths::default();
    };
    [
        part.services.len(),
        part.routes.len(),
        part.stream_routes.len(),
        part.upstreams.len(),
        part.consumers.len(),
        part.plugins.len(),
        part.consumer_tables.len(),
        part.certificates.len(),
        part.acme.len(),
        part.tls_challenges.len(),
    ]
}

/// Parts by their keys, and the model that they form together.
pub struct MergedModel {
    parts: BTreeMap<String, PartialModel>,
    /// The merged model when it was last built.
    model: Model,
    /// The parts that have changed since, with what they added to each list then.
    changed: BTreeMap<String, Lengths>,
    /// Whether something has changed that is more than a list.
    must_merge: bool,
}

impl MergedModel {
    /// No parts, in this version of the text form.
    pub fn new(version: u32) -> Self {
        Self {
            parts: BTreeMap::new(),
            model: nothing(version),
            changed: BTreeMap::new(),
            must_merge: false,
        }
    }

    /// The parts.
    pub fn parts(&self) -> &BTreeMap<String, PartialModel> {
        &self.parts
    }

    /// Puts a part in the place of the one with its key, which is returned; `None`: it is gone.
    pub fn replace(&mut self, key: &str, part: Option<PartialModel>) -> Option<PartialModel> {
        // Of the settings of a dialect, the first count: their places say nothing.
        let has_more = |part: &Option<PartialModel>| {
            let part = part.as_ref().and_then(|it| it.as_ref().ok());
            part.is_some_and(|it| !it.dialect_settings.is_empty() || !it.unmatched.is_empty())
        };
        self.must_merge |= has_more(&part);
        let old = match part {
            Some(part) => self.parts.insert(key.to_owned(), part),
            None => self.parts.remove(key),
        };
        self.must_merge |= has_more(&old);
        self.changed
            .entry(key.to_owned())
            .or_insert_with(|| lengths(old.as_ref()));
        old
    }

    /// What the parts say together, in the order of their keys.
    pub fn model(&mut self) -> &Model {
        if self.must_merge || self.changed.len() > MAX_SPLICED {
            self.model = merged(nothing(self.model.weir), self.parts.values());
            self.changed.clear();
            self.must_merge = false;
        }
        // In the order of keys: what stands before has its new length already.
        for (key, old) in std::mem::take(&mut self.changed) {
            let before = (Bound::Unbounded, Bound::Excluded(key.as_str()));
            let mut at = Lengths::default();
            for (_, part) in self.parts.range::<str, _>(before) {
                for (sum, length) in at.iter_mut().zip(lengths(Some(part))) {
                    *sum += length;
                }
            }
            let part = self.parts.get(&key).and_then(|it| it.as_ref().ok());
            splice(&mut self.model, at, old, part.cloned().unwrap_or_default());
        }
        &self.model
    }
}

/// Puts a part in the place of one that added so much from there on.
fn splice(whole: &mut Model, at: Lengths, old: Lengths, part: Model) {
    fn list<T>(list: &mut Vec<T>, at: usize, old: usize, new: Vec<T>) {
        drop(list.splice(at..at + old, new));
    }
    list(&mut whole.services, at[0], old[0], part.services);
    list(&mut whole.routes, at[1], old[1], part.routes);
    list(&mut whole.stream_routes, at[2], old[2], part.stream_routes);
    list(&mut whole.upstreams, at[3], old[3], part.upstreams);
    list(&mut whole.consumers, at[4], old[4], part.consumers);
    list(&mut whole.plugins, at[5], old[5], part.plugins);
    list(&mut whole.consumer_tables, at[6], old[6], part.consumer_tables);
    list(&mut whole.certificates, at[7], old[7], part.certificates);
    list(&mut whole.acme, at[8], old[8], part.acme);
    list(&mut whole.tls_challenges, at[9], old[9], part.tls_challenges);
}

fn nothing(version: u32) -> Model {
    Model {
        weir: version,
        ..Model::default()
    }
}

/// What the good ones say together, put into an empty model.
fn merged<'p>(mut whole: Model, parts: impl Iterator<Item = &'p PartialModel>) -> Model {
    for part in parts.flatten() {
        whole.merge(part.clone());
    }
    whole
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::incremental::resource;
    use serde_json::json;

    fn part(key: &str, version: usize) -> PartialModel {
        let (kind, name) = key.split_once('/').expect("a key");
        let value = match kind {
            "services" => {
                let routes: Vec<_> = (0..version)
                    .map(|it| json!({"name": format!("{name}-{it}"), "paths": ["/"]}))
                    .collect();
                json!({"name": name, "url": "http://127.0.0.1:1", "routes": routes})
            }
            "consumers" => {
                json!({"name": name, "credentials": [{"key-auth": {"key": format!("{name}{version}")}}]})
            }
            "dialect_settings" => json!({"dialect": name, "answer_expect": version > 1}),
            _ => return Err("no such kind".to_owned()),
        };
        resource(kind, name, &value)
            .map(|(model, _)| model)
            .map_err(|found| format!("{found:?}"))
    }

    /// Whatever changes in whatever order, the model is that of all parts merged.
    #[test]
    fn whole_kept_in_place_is_the_one_that_merging_gives() {
        let keys = [
            "consumers/a",
            "consumers/b",
            "dialect_settings/native",
            "odd/x",
            "services/a",
            "services/b",
            "services/c",
        ];
        let mut whole = MergedModel::new(1);
        let mut seed = 7_usize;
        for step in 0..2_000 {
            seed = seed
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            let random = seed >> 33;
            let key = keys[random % keys.len()];
            let version = (random / 16) % 4;
            let new = (version > 0).then(|| part(key, version));
            whole.replace(key, new);
            // Several changes may come before the next look.
            if random.is_multiple_of(3) {
                let expected = merged(nothing(1), whole.parts().values());
                assert!(*whole.model() == expected, "step {step}, {key}");
            }
        }
    }
}
