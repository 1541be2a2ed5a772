//! Lists of entities, page by page: what a call asks for, and the begin of the next page.

use super::call::ApiCall;
use super::failure::Failure;
use super::table::{Table, TableRow};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::sync::Arc;
use uuid::Uuid;
use weir_plugin::uri;

/// The members of a page if a call does not say.
const DEFAULT_SIZE: usize = 100;
/// The members of the largest page.
const MAX_SIZE: usize = 1000;
/// A filter may name so many tags.
const MAX_TAGS: usize = 5;

/// Which members of a list are asked for.
#[derive(Debug)]
pub struct PageRequest {
    size: usize,
    from: Uuid,
    tags: Vec<String>,
    /// Whether a member has all the tags, or one of them.
    needs_all: bool,
    /// The part of the call that goes into the address of the next page.
    rest: String,
}

/// A page.
#[derive(Debug)]
pub struct Page {
    /// Its members.
    pub members: Vec<Arc<TableRow>>,
    /// The begin of the next one.
    pub offset: Option<String>,
}

impl PageRequest {
    /// Reads the arguments of a call. Lists below another entity do not carry the size and the tags over to the
    /// next page.
    ///
    /// # Errors
    /// A size, an offset or a filter that cannot be.
    pub fn read(call: &ApiCall) -> Result<Self, Failure> {
        let mut rest = String::new();
        let tags = match call.argument("tags") {
            None => (Vec::new(), true),
            Some(text) => {
                let _ = write!(rest, "&tags={}", escape(text));
                read_tags(text)?
            }
        };
        let size = match call.argument("size") {
            None => DEFAULT_SIZE,
            Some(text) => {
                let _ = write!(rest, "&size={}", escape(text));
                read_size(text)?
            }
        };
        let from = match call.argument("offset") {
            None => Uuid::nil(),
            Some(offset) => read_offset(offset)?,
        };
        Ok(Self {
            size,
            from,
            tags: tags.0,
            needs_all: tags.1,
            rest,
        })
    }

    /// How many members are asked for, and from which id on.
    pub fn cut_of(&self) -> (usize, Uuid) {
        (self.size, self.from)
    }

    /// The same, whatever the tags.
    pub fn without_tags(mut self) -> Self {
        self.tags.clear();
        self
    }

    /// The part of the next page's address other than the offset.
    pub fn rest(&self) -> &str {
        &self.rest
    }

    /// The page of a table's members, or of those `among` them.
    pub fn page(&self, table: &Table, among: Option<&BTreeSet<Uuid>>) -> Page {
        let tagged = self.tagged(table);
        let ids = match (&tagged, among) {
            (None, None) => return self.cut(table.all(self.from).cloned()),
            (Some(tagged), None) => return self.cut(found(table, tagged, self.from)),
            (None, Some(among)) => return self.cut(found(table, among, self.from)),
            (Some(tagged), Some(among)) => tagged & among,
        };
        self.cut(found(table, &ids, self.from))
    }

    fn tagged(&self, table: &Table) -> Option<BTreeSet<Uuid>> {
        let (first, others) = self.tags.split_first()?;
        let mut ids = table.tagged(first).cloned().unwrap_or_default();
        for tag in others {
            match table.tagged(tag) {
                Some(more) if self.needs_all => ids.retain(|id| more.contains(id)),
                Some(more) => ids.extend(more),
                None if self.needs_all => ids.clear(),
                None => {}
            }
        }
        Some(ids)
    }

    fn cut(&self, mut members: impl Iterator<Item = Arc<TableRow>>) -> Page {
        let page: Vec<Arc<TableRow>> = members.by_ref().take(self.size).collect();
        Page {
            members: page,
            offset: members.next().map(|next| offset(next.id)),
        }
    }
}

fn found<'t>(
    table: &'t Table,
    ids: &'t BTreeSet<Uuid>,
    from: Uuid,
) -> impl Iterator<Item = Arc<TableRow>> + 't {
    ids.range(from..).filter_map(|id| table.get(*id)).cloned()
}

/// The begin of a page, in the form in which clients send it back.
pub fn offset(id: Uuid) -> String {
    URL_SAFE_NO_PAD.encode(format!("[\"{id}\"]"))
}

fn read_offset(offset: &str) -> Result<Uuid, Failure> {
    let bytes = URL_SAFE_NO_PAD
        .decode(offset.trim_end_matches('='))
        .map_err(|_| Failure::invalid_offset(offset, "bad base64 encoding"))?;
    let ids: Vec<Uuid> =
        serde_json::from_slice(&bytes).map_err(|_| Failure::invalid_offset(offset, "bad json encoding"))?;
    ids.first()
        .copied()
        .ok_or_else(|| Failure::invalid_offset(offset, "invalid offset"))
}

/// The size of a page.
///
/// # Errors
/// It is no size, or too large.
pub fn read_size(text: &str) -> Result<usize, Failure> {
    let number: f64 = text
        .trim()
        .parse()
        .map_err(|_| Failure::invalid_size("size must be a number"))?;
    if number.fract() == 0.0 && (1.0..=MAX_SIZE as f64).contains(&number) {
        Ok(number as usize)
    } else {
        Err(Failure::invalid_size(&format!(
            "size must be an integer between 1 and {MAX_SIZE}"
        )))
    }
}

/// The tags of a filter, and whether all of them are asked for.
fn read_tags(text: &str) -> Result<(Vec<String>, bool), Failure> {
    if text.is_empty() {
        return Err(Failure::invalid_option("tags", "cannot be null"));
    }
    let separator = match (text.contains(','), text.contains('/')) {
        (true, true) => return Err(Failure::invalid_option("tags", "invalid filter syntax")),
        (_, true) => '/',
        _ => ',',
    };
    let text = text.strip_suffix(separator).unwrap_or(text);
    let tags: Vec<String> = text.split(separator).map(str::to_owned).collect();
    let is_odd = |it: char| it.is_ascii_control() || it == char::REPLACEMENT_CHARACTER;
    if tags.iter().any(|tag| tag.is_empty() || tag.contains(is_odd)) {
        return Err(Failure::invalid_option("tags", "invalid filter syntax"));
    }
    if tags.len() > MAX_TAGS {
        return Err(Failure::invalid_option("tags", "cannot query more than 5 tags"));
    }
    Ok((tags, separator == ','))
}

/// A text as it stands in a query.
pub fn escape(text: &str) -> String {
    let mut out = Vec::new();
    uri::encode_component(text.as_bytes(), &mut out);
    out.into_iter().map(char::from).collect()
}
