//! All rows of all lists, kept up to date. What documents say is read when they change; what they say together, such as
//! which plugins a route has, is joined when a list is asked for after a change.

use super::references::References;
use crate::access::Scope;
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
    /// What is in it.
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

/// A row as it is searched.
#[derive(Debug)]
pub struct IndexedRow {
    /// The row.
    pub row: Row,
    /// All that is shown of it, in small letters.
    pub text: String,
    /// What other documents call it, beside its name.
    pub own_id: String,
    /// Where one must have the right to see it.
    pub scope: Scope,
}

/// The rows of every list.
type Lists = HashMap<List, Arc<Vec<Arc<IndexedRow>>>>;

/// All rows. Cheap to share.
#[derive(Clone)]
pub struct Index(Arc<Mutex<CachedIndex>>);

struct CachedIndex {
    dialects: DialectSet,
    documents: BTreeMap<Key, Arc<Overview>>,
    /// Where they refer to secrets.
    references: References,
    files: FileTexts,
    /// Grows with each change of the documents.
    changes: u64,
    joined: Option<(u64, u64, Arc<Lists>)>,
}

impl Index {
    /// Reads a store's documents and follows them, beside these files.
    pub async fn open(
        store: Arc<dyn Store>,
        files: FileTexts,
        dialects: DialectSet,
    ) -> Result<Self, StoreError> {
        let (documents, _, following) = weir_store::follow::start(store, "").await?;
        let index = Self::new(files, dialects);
        {
            let mut known = index.known();
            for document in &documents {
                known.apply(&document.key, Some(&document.value));
            }
        }
        tokio::spawn(index.clone().follow(following));
        Ok(index)
    }

    fn new(files: FileTexts, dialects: DialectSet) -> Self {
        Self(Arc::new(Mutex::new(CachedIndex {
            references: References::new(&dialects),
            dialects,
            documents: BTreeMap::new(),
            files,
            changes: 0,
            joined: None,
        })))
    }

    async fn follow(self, mut following: Subscription) {
        loop {
            let changes = following.next().await;
            let mut known = self.known();
            for (key, document) in &changes.documents {
                known.apply(key, document.as_ref().map(|it| it.value.as_ref()));
            }
        }
    }

    fn known(&self) -> MutexGuard<'_, CachedIndex> {
        // Every change leaves it whole.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks where documents refer to secrets.
    pub fn with_references<T>(&self, ask: impl FnOnce(&References) -> T) -> T {
        ask(&self.known().references)
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
                known.documents.clone(),
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
    fn apply(&mut self, key: &Key, value: Option<&[u8]>) {
        self.references.apply(key, value);
        let Some((dialect, short)) = self.dialects.of_key(key.as_str()) else {
            return;
        };
        let read = value.and_then(|value| serde_json::from_slice(value).ok());
        let overview = read.map(|value| dialect.overview(short, &value));
        self.changes += 1;
        match overview {
            Some(overview) if !overview.parts.is_empty() => {
                self.documents.insert(key.clone(), Arc::new(overview));
            }
            _ => {
                self.documents.remove(key);
            }
        }
    }
}

/// Where names count: those of one dialect and workspace.
type Space = (DialectName, Option<String>);

/// What stands in documents of their own, by what it belongs to.
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
            let whose = (space.clone(), to.clone());
            attached.entry(whose).or_default().push(what.clone());
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
            let whose = (space.clone(), Reference { list, id });
            attach(&mut row, attached.get(&whose).into_iter().flatten());
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
        let shown = IndexedRow {
            row,
            text,
            own_id,
            scope,
        };
        lists.entry(list).or_default().push(Arc::new(shown));
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
