//! The stored documents of all doors, and the one model that they make.

use crate::acme;
use crate::secrets::Forms;
use std::borrow::Cow;
use std::time::SystemTime;
use weir_model::{Model, Voice};
use weir_store::Key;

/// A document that is not served.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Broken {
    /// Its key; or what a person calls the resource, where that is all that is known.
    pub document: String,
    /// Why.
    pub reason: String,
}

/// How the doors' documents are read.
#[derive(Debug, Clone, Copy, Default)]
pub struct DoorOptions {
    /// Kong's documents; `None`: they come from a file instead.
    pub kong: Option<weir_kong::Options>,
    /// APISIX's documents; `None`: they come from a file instead.
    pub apisix: Option<weir_apisix::Options>,
    /// Whose words answer calls as long as there are no documents.
    pub voice: Voice,
}

/// One door's documents, read.
trait Read: Send {
    fn apply(&mut self, key: &str, value: Option<&[u8]>);
    fn model(&mut self) -> (Model, Vec<Broken>);

    /// Documents that are served otherwise than they ask for.
    fn notes(&self) -> Vec<Broken> {
        Vec::new()
    }
}

impl Read for weir_native::Stored {
    fn apply(&mut self, key: &str, value: Option<&[u8]>) {
        Self::apply(self, key, value);
    }

    fn model(&mut self) -> (Model, Vec<Broken>) {
        let (model, broken) = Self::model(self);
        let broken = broken.into_iter().map(|it| told("native/", &it.key, it.reason));
        (model, broken.collect())
    }
}

impl Read for weir_kong::stored::Stored {
    fn apply(&mut self, key: &str, value: Option<&[u8]>) {
        Self::apply(self, key, value);
    }

    fn model(&mut self) -> (Model, Vec<Broken>) {
        let (model, broken) = Self::model(self);
        let broken = broken.into_iter().map(|it| told("kong/", &it.key, it.reason));
        (model, broken.collect())
    }

    fn notes(&self) -> Vec<Broken> {
        let notes = weir_kong::stored::Stored::notes(self).into_iter();
        notes.map(|it| told("kong/", &it.key, it.reason)).collect()
    }
}

impl Read for weir_apisix::Stored {
    fn apply(&mut self, key: &str, value: Option<&[u8]>) {
        Self::apply(self, key, value);
    }

    fn model(&mut self) -> (Model, Vec<Broken>) {
        let (model, broken) = Self::model(self);
        let broken = broken.into_iter().map(|it| told("apisix/", &it.key, it.reason));
        (model, broken.collect())
    }
}

/// What files say, which comes whole.
impl Read for Model {
    fn apply(&mut self, _key: &str, _value: Option<&[u8]>) {}

    fn model(&mut self) -> (Model, Vec<Broken>) {
        (self.clone(), Vec::new())
    }
}

fn told(prefix: &str, key: &str, reason: String) -> Broken {
    Broken {
        document: format!("{prefix}{key}"),
        reason,
    }
}

struct Door {
    /// What its keys begin with.
    prefix: &'static str,
    read: Box<dyn Read>,
    /// Whether something came since the model was made.
    is_stale: bool,
    model: Model,
    broken: Vec<Broken>,
}

impl Door {
    fn new(prefix: &'static str, read: Box<dyn Read>) -> Self {
        Self {
            prefix,
            read,
            is_stale: true,
            model: Model::default(),
            broken: Vec::new(),
        }
    }

    /// What may refer to secrets in its documents. Whoever writes a file may do all that Weir can.
    fn forms(&self) -> Forms {
        match self.prefix {
            "kong/" => Forms::Kong,
            "apisix/" => Forms::Apisix,
            _ => Forms::All,
        }
    }
}

/// What the keys of served documents begin with that are configuration.
pub const PREFIXES: [&str; 3] = ["kong/", "apisix/", "native/"];

/// Whether gateways serve a document: it is configuration, or what came of it.
pub fn is_served(key: &Key) -> bool {
    let mut prefixes = PREFIXES.iter().chain(&acme::FOLLOWED);
    prefixes.any(|prefix| key.as_str().starts_with(prefix))
}

/// When a document goes by itself; `None`: it stays.
pub fn end_of(key: &str, value: &[u8]) -> Option<SystemTime> {
    match key.split_once('/')? {
        ("kong", key) => weir_kong::stored::end_of(key, value),
        ("apisix", _) => weir_apisix::end_of(value),
        _ => None,
    }
}

/// Whether a document tells caches what to forget. It is no configuration, and is soon gone.
pub fn is_purge(key: &Key) -> bool {
    key.as_str().starts_with(weir_kong::admin::PURGES)
}

/// What the keys begin with of the documents that gateways are told of, those that are the most last.
pub fn told_prefixes() -> impl Iterator<Item = &'static str> {
    let others = [weir_kong::admin::PURGES].into_iter().chain(acme::FOLLOWED);
    others.chain(PREFIXES)
}

/// Whether gateways are told of a document.
pub fn is_told(key: &Key) -> bool {
    is_served(key) || is_purge(key)
}

/// The documents of all doors.
pub struct Doors {
    doors: Vec<Door>,
    /// What files say, which goes before.
    files: Option<Door>,
    /// What authorities have signed, and what they check.
    acme: acme::Served,
    voice: Voice,
}

impl Doors {
    /// No documents yet.
    pub fn new(options: &DoorOptions) -> Self {
        let mut doors: Vec<(&'static str, Box<dyn Read>)> = Vec::new();
        if let Some(options) = options.kong {
            doors.push(("kong/", Box::new(weir_kong::stored::Stored::new(options))));
        }
        if let Some(options) = options.apisix {
            doors.push(("apisix/", Box::new(weir_apisix::Stored::new(options))));
        }
        doors.push(("native/", Box::new(weir_native::Stored::new())));
        Self {
            doors: doors
                .into_iter()
                .map(|(prefix, read)| Door::new(prefix, read))
                .collect(),
            files: None,
            acme: acme::Served::default(),
            voice: options.voice,
        }
    }

    /// Takes over one document; `None`: it is gone.
    pub fn apply(&mut self, key: &str, value: Option<&[u8]>) {
        self.acme.apply(key, value);
        for door in &mut self.doors {
            if let Some(rest) = key.strip_prefix(door.prefix) {
                door.read.apply(rest, value);
                door.is_stale = true;
            }
        }
    }

    /// Takes over what the files say.
    pub fn set_files(&mut self, model: Model) {
        self.files = Some(Door::new("", Box::new(model)));
    }

    /// What the files say stands in the one where it stood in the other.
    pub(super) fn swap_files(&mut self, other: &mut Self) {
        std::mem::swap(&mut self.files, &mut other.files);
    }

    /// Reads again what was read, because what it refers to has changed.
    pub fn refresh(&mut self) {
        let all = self.files.iter_mut().chain(&mut self.doors);
        all.for_each(|door| door.is_stale = true);
    }

    /// Documents that are served, but otherwise than they ask for. They stand in no way of a change.
    pub fn notes(&self) -> impl Iterator<Item = Broken> {
        self.doors.iter().flat_map(|door| door.read.notes())
    }

    /// All documents as one model, passed through `finish` door by door, and those that had to be left out.
    pub fn model(
        &mut self,
        mut finish: impl FnMut(Forms, &mut Model) -> Vec<Broken>,
    ) -> (Cow<'_, Model>, Vec<Broken>) {
        let all = self.files.iter_mut().chain(&mut self.doors);
        for door in all.filter(|door| door.is_stale) {
            (door.model, door.broken) = door.read.model();
            door.broken.extend(finish(door.forms(), &mut door.model));
            door.is_stale = false;
        }
        let all = || self.files.iter().chain(&self.doors);
        let broken = all().flat_map(|door| door.broken.iter().cloned()).collect();
        let mut parts = all().map(|door| &door.model).filter(|part| !is_empty(part));
        let mut model = match (parts.next(), parts.next()) {
            (None, _) => Cow::Owned(Model {
                voice: self.voice,
                ..Model::default()
            }),
            (Some(only), None) => Cow::Borrowed(only),
            (Some(first), Some(second)) => {
                let mut whole = first.clone();
                whole.merge(second.clone());
                parts.for_each(|part| whole.merge(part.clone()));
                Cow::Owned(whole)
            }
        };
        self.acme.finish(&mut model);
        (model, broken)
    }
}

/// Whether a model says nothing.
fn is_empty(model: &Model) -> bool {
    model.services.is_empty()
        && model.routes.is_empty()
        && model.upstreams.is_empty()
        && model.consumers.is_empty()
        && model.plugins.is_empty()
        && model.unmatched.is_empty()
        && model.certificates.is_empty()
        && model.acme.is_empty()
        && model.stream_routes.is_empty()
}
