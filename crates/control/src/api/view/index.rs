//! All rows of all lists, kept up to date. What documents say is read when they change; what they say together, such as
//! which plugins a route has, is joined when a list is asked for after a change.

use super::references::{DocumentReferences, FileReferences, ReferenceFinder, References};
use crate::access::Scope;
use serde_json::Value;
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use weir_dialect::{DialectName, DialectSet};
use weir_model::document;
use weir_model::overview::{Attachment, List, Overview, OverviewItem, Reference, Row};
use weir_store::follow::Subscription;
use weir_store::{Key, Store, StoreError};

/// A configuration file, as it is served.
#[derive(Debug, Clone)]
pub struct FileText {
    /// The dialect.
    pub dialect: DialectName,
    /// The file's name.
    pub file: String,
    /// Its content.
    pub text: Arc<str>,
}

/// The configuration files that are served. Cheap to share.
#[derive(Debug, Clone, Default)]
pub struct FileTexts(Arc<Mutex<(u64, Arc<Vec<FileText>>)>>);

impl FileTexts {
    /// From now on these are served.
    pub fn set(&self, files: Vec<FileText>) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *known = (known.0 + 1, Arc::new(files));
    }

    /// The files, and a number that grows with each change.
    pub(crate) fn get(&self) -> (u64, Arc<Vec<FileText>>) {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        (known.0, Arc::clone(&known.1))
    }
}

/// The references in files, and the stamp of the files.
type StampedReferences = (u64, Arc<FileReferences>);

/// A row as it is searched.
#[derive(Debug)]
pub struct IndexedRow {
    /// The row.
    pub row: Row,
    /// All that is shown of it, in small letters.
    pub text: String,
    /// The id by which other documents refer to it, if that is not its name.
    pub own_id: String,
    /// The scope in which a user must have the right to see it.
    pub scope: Scope,
}

/// The rows of every list.
type Lists = HashMap<List, Arc<Vec<Arc<IndexedRow>>>>;

/// All rows. Cheap to share.
#[derive(Clone)]
pub struct Index {
    rows: Arc<Mutex<CachedIndex>>,
    /// The references to secrets in documents. Lists do not wait for readers of these.
    references: Arc<Mutex<References>>,
    /// The same of files, with the number of their changes.
    of_files: Arc<Mutex<Option<StampedReferences>>>,
}

struct CachedIndex {
    dialects: DialectSet,
    /// A reader that joins them holds what they were at that time, so that changes need not wait.
    documents: Arc<BTreeMap<Key, Arc<Overview>>>,
    files: FileTexts,
    /// Grows with each change of the documents.
    changes: u64,
    joined: Option<(u64, u64, Arc<Lists>)>,
}

impl Index {
    /// Reads a store's documents and follows them, together with these files.
    pub async fn open(
        store: Arc<dyn Store>,
        files: FileTexts,
        dialects: DialectSet,
    ) -> Result<Self, StoreError> {
        let (documents, _, following) = weir_store::follow::start(store, "").await?;
        let reader = Reader::new(&dialects);
        let index = Self::new(files, dialects);
        let all = documents.iter();
        index.apply(&reader, all.map(|it| (&it.key, Some(it.value.as_ref()))));
        tokio::spawn(index.clone().follow(reader, following));
        Ok(index)
    }

    fn new(files: FileTexts, dialects: DialectSet) -> Self {
        Self {
            references: Arc::new(Mutex::new(References::new(&dialects))),
            of_files: Arc::default(),
            rows: Arc::new(Mutex::new(CachedIndex {
                dialects,
                documents: Arc::default(),
                files,
                changes: 0,
                joined: None,
            })),
        }
    }

    async fn follow(self, reader: Reader, mut following: Subscription) {
        loop {
            let changes = following.next().await;
            let changed = changes.documents.iter();
            self.apply(
                &reader,
                changed.map(|(key, document)| (key, document.as_ref().map(|it| it.value.as_ref()))),
            );
        }
    }

    /// Takes over documents, `None`: it is gone. Each is read once, before anything is locked.
    fn apply<'d>(&self, reader: &Reader, documents: impl Iterator<Item = (&'d Key, Option<&'d [u8]>)>) {
        let (mut overviews, mut found) = (Vec::new(), Vec::new());
        for (key, value) in documents {
            let Some(read) = reader.read(key, value) else {
                continue;
            };
            if read.is_listed {
                overviews.push((key, read.overview));
            }
            found.push((key, value, read.references));
        }
        {
            let mut rows = self.known();
            for (key, overview) in overviews {
                rows.apply(key, overview);
            }
        }
        let mut references = self.known_references();
        for (key, value, found) in found {
            references.apply(key, value, found);
        }
    }

    fn known(&self) -> MutexGuard<'_, CachedIndex> {
        // Every change leaves it whole.
        self.rows.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The references to secrets in documents. No change waits for readers of these.
    pub fn references(&self) -> References {
        self.known_references().clone()
    }

    /// The references to secrets in files. They are read once after each change. To be called on a thread that may take
    /// its time.
    pub fn references_of_files(&self) -> Arc<FileReferences> {
        let (dialects, (stamp, files)) = {
            let known = self.known();
            (known.dialects.clone(), known.files.get())
        };
        // Who asks at the same time waits, instead of reading them too.
        let mut read = self.of_files.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((of, read)) = &*read
            && *of >= stamp
        {
            return Arc::clone(read);
        }
        let found = Arc::new(FileReferences::of(&dialects, &files));
        *read = Some((stamp, Arc::clone(&found)));
        found
    }

    fn known_references(&self) -> MutexGuard<'_, References> {
        // Every change leaves them whole.
        self.references.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The rows of a list. To be called on a thread that may take its time.
    pub fn rows(&self, list: List) -> Arc<Vec<Arc<IndexedRow>>> {
        let (dialects, documents, files, stamp) = {
            let known = self.known();
            let (file_changes, files) = known.files.get();
            if let Some((changes, seen, joined)) = &known.joined
                && (*changes, *seen) == (known.changes, file_changes)
            {
                return joined.get(&list).cloned().unwrap_or_default();
            }
            (
                known.dialects.clone(),
                Arc::clone(&known.documents),
                files,
                (known.changes, file_changes),
            )
        };
        let joined = Arc::new(join(&dialects, &documents, &files));
        let rows = joined.get(&list).cloned().unwrap_or_default();
        self.known().joined = Some((stamp.0, stamp.1, joined));
        rows
    }
}

impl CachedIndex {
    fn apply(&mut self, key: &Key, overview: Option<Arc<Overview>>) {
        self.changes += 1;
        let documents = Arc::make_mut(&mut self.documents);
        match overview {
            Some(overview) => documents.insert(key.clone(), overview),
            None => documents.remove(key),
        };
    }
}

/// The content of one document.
struct ReadDocument {
    /// Whether it counts in lists. Documents of one environment do not.
    is_listed: bool,
    /// Its row in lists; `None`: it has none, or it is gone.
    overview: Option<Arc<Overview>>,
    references: Option<DocumentReferences>,
}

/// Reads documents, each by itself.
struct Reader {
    dialects: DialectSet,
    finder: ReferenceFinder,
}

impl Reader {
    fn new(dialects: &DialectSet) -> Self {
        Self {
            dialects: dialects.clone(),
            finder: ReferenceFinder::new(dialects),
        }
    }

    /// The content of a document; `None`: it is of no dialect.
    fn read(&self, key: &Key, value: Option<&[u8]>) -> Option<ReadDocument> {
        let key = key.as_str();
        let listed = self.dialects.of_key(key);
        if listed.is_none() && !self.finder.has_place(key) {
            return None;
        }
        let value: Option<Value> = value.and_then(|value| serde_json::from_slice(value).ok());
        let overview = listed
            .zip(value.as_ref())
            .map(|((dialect, short), value)| dialect.overview(short, value))
            .filter(|it| !it.parts.is_empty());
        Some(ReadDocument {
            is_listed: listed.is_some(),
            overview: overview.map(Arc::new),
            references: value.and_then(|value| self.finder.found(key, &value)),
        })
    }
}

/// The scope of names: one dialect and workspace.
type Space = (DialectName, Option<String>);

/// Parts that stand in documents of their own, by what they belong to.
type Attached = HashMap<(Space, Reference), Vec<Attachment>>;

/// Puts together what documents say.
fn join(dialects: &DialectSet, documents: &BTreeMap<Key, Arc<Overview>>, files: &[FileText]) -> Lists {
    let mut rows = Vec::new();
    let mut attached: Attached = HashMap::new();
    for (key, overview) in documents {
        let Some((dialect, _)) = dialects.of_key(key.as_str()) else {
            continue;
        };
        let space = (dialect.name(), overview.workspace.clone());
        for (place, part) in &overview.parts {
            let id = format!("{key}{}{place}", if place.is_empty() { "" } else { "#" });
            let document = Some(key.as_str().to_owned());
            let of_row = Row {
                id,
                document,
                pointer: place.clone(),
                ..Row::default()
            };
            take(part, of_row, &space, &mut rows, &mut attached);
        }
    }
    for file in files {
        // What is served can be read.
        let document = document::parse(&file.text).unwrap_or_default();
        let overview = dialects
            .get(file.dialect)
            .map(|it| it.overview_of_file(&document));
        for (place, part) in overview.map(|it| it.parts).unwrap_or_default() {
            let of_row = Row {
                id: format!("{}#{place}", file.file),
                file: Some(file.file.clone()),
                pointer: place,
                ..Row::default()
            };
            take(&part, of_row, &(file.dialect, None), &mut rows, &mut attached);
        }
    }
    finish(dialects, rows, &attached)
}

fn take(
    part: &OverviewItem,
    place: Row,
    space: &Space,
    rows: &mut Vec<(List, String, Row)>,
    attached: &mut Attached,
) {
    match part {
        OverviewItem::Row { list, own_id, row } => {
            let row = Row {
                id: place.id,
                document: place.document,
                file: place.file,
                pointer: place.pointer,
                dialect: space.0,
                workspace: space.1.clone(),
                ..row.as_ref().clone()
            };
            rows.push((*list, own_id.clone(), row));
        }
        OverviewItem::Attached { to, what } => {
            let owner = (space.clone(), to.clone());
            attached.entry(owner).or_default().push(what.clone());
        }
    }
}

fn finish(dialects: &DialectSet, rows: Vec<(List, String, Row)>, attached: &Attached) -> Lists {
    let mut names: HashMap<(Space, Reference), String> = HashMap::new();
    for (list, own_id, row) in &rows {
        if matches!(list, List::Services | List::Upstreams) {
            let reference = Reference {
                list: *list,
                id: own_id.clone(),
            };
            names.insert((space_of(row), reference), row.name.clone());
        }
    }
    let mut lists: HashMap<List, Vec<Arc<IndexedRow>>> = HashMap::new();
    for (list, own_id, mut row) in rows {
        let space = space_of(&row);
        let name_of = |list, id: &String| {
            names
                .get(&(space.clone(), Reference { list, id: id.clone() }))
                .cloned()
        };
        if let Some(name) = row.service.as_ref().and_then(|id| name_of(List::Services, id)) {
            row.service = Some(name);
        }
        if let Some(name) = row.upstream.as_ref().and_then(|id| name_of(List::Upstreams, id)) {
            row.upstream = Some(name);
        }
        let mut ids = vec![own_id.clone(), row.name.clone()];
        ids.dedup();
        for id in ids {
            let owner = (space.clone(), Reference { list, id });
            attach(&mut row, attached.get(&owner).into_iter().flatten());
        }
        if list == List::Certificates
            && row.name == own_id
            && let Some(first) = row.server_names.first()
        {
            row.name.clone_from(first);
        }
        let text = text_of(&row);
        let own = dialects.get(row.dialect).map(|it| it.workspace());
        let scope = row
            .workspace
            .as_deref()
            .or(own)
            .map_or(Scope::Everything, Scope::workspace);
        let indexed = IndexedRow {
            row,
            text,
            own_id,
            scope,
        };
        lists.entry(list).or_default().push(Arc::new(indexed));
    }
    lists
        .into_iter()
        .map(|(list, rows)| (list, Arc::new(rows)))
        .collect()
}

fn space_of(row: &Row) -> Space {
    (row.dialect, row.workspace.clone())
}

fn attach<'a>(row: &mut Row, all: impl Iterator<Item = &'a Attachment>) {
    for what in all {
        let (list, text) = match what {
            Attachment::Plugin(text) => (&mut row.plugins, text),
            Attachment::Target(text) => (&mut row.targets, text),
            Attachment::Credential(text) => (&mut row.credentials, text),
            Attachment::Group(text) => (&mut row.groups, text),
            Attachment::ServerName(text) => (&mut row.server_names, text),
        };
        list.push(text.clone());
    }
}

/// All that is shown of a row, in small letters, with line breaks between its parts.
fn text_of(row: &Row) -> String {
    let single = [
        Some(&row.id),
        Some(&row.name),
        row.workspace.as_ref(),
        row.service.as_ref(),
        row.upstream.as_ref(),
        row.url.as_ref(),
        row.algorithm.as_ref(),
        row.applies_to.as_ref(),
        row.custom_id.as_ref(),
    ];
    let lists = [
        &row.hosts,
        &row.paths,
        &row.methods,
        &row.targets,
        &row.plugins,
        &row.groups,
        &row.credentials,
        &row.server_names,
    ];
    let mut text = row.dialect.as_str().to_owned();
    let labels = row.labels.iter().flat_map(|(name, value)| [name, value]);
    for part in single
        .into_iter()
        .flatten()
        .chain(lists.into_iter().flatten())
        .chain(labels)
    {
        text.push('\n');
        text.push_str(&part.to_lowercase());
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_read_for_references_once_after_each_change() {
        let files = FileTexts::default();
        let index = Index::new(files.clone(), crate::sample::all());
        let with = |text: &str| FileText {
            dialect: DialectName::new("sample"),
            file: "sample.yaml".to_owned(),
            text: Arc::from(text),
        };
        for (text, uses) in [
            ("{}", 0),
            ("a: 'sample:A'", 1),
            ("a: ['sample:A', 'sample:B']", 2),
        ] {
            files.set(vec![with(text)]);
            let found = index.references_of_files();
            assert_eq!(found.uses(|_| true).count(), uses, "{text}");
            assert!(Arc::ptr_eq(&found, &index.references_of_files()), "{text}");
        }
    }

    /// A list works with what they were, and holds up no change.
    #[test]
    fn references_stay_as_they_were_for_those_who_read_them() {
        let dialects = crate::sample::all();
        let index = Index::new(FileTexts::default(), dialects.clone());
        let reader = Reader::new(&dialects);
        let put = |key: &str, value: &str| {
            let key = Key::new(key).expect("a key");
            index.apply(&reader, std::iter::once((&key, Some(value.as_bytes()))));
        };
        let native = DialectName::NATIVE;
        put("sample/routes/1", r#"{"a":"sample:vault/a"}"#);
        let before = index.references();
        put("sample/vault", "http://v:1");
        put("sample/routes/2", r#"{"a":"sample:vault/a"}"#);
        for (references, uses, leads) in [(before, 1, false), (index.references(), 2, true)] {
            assert_eq!(references.uses(|_| true).count(), uses);
            let found = references.locate(native, "sample:vault/a");
            assert_eq!(found.map(|it| it.is_ok()), Some(leads));
        }
    }
}
