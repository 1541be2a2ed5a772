//! Protocol Buffers definitions as configurations name them: compiled once, when the configuration is loaded.
//!
//! This module reads no file. The loader of a configuration puts the text of a named file beside its name.

mod fields;
mod google;
mod json_in;
mod json_out;

pub(crate) use fields::FieldPath;
pub(crate) use json_in::read_message;
pub(crate) use json_out::{write_field, write_message};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use prost_reflect::{DescriptorPool, FileDescriptor, MethodDescriptor, ServiceDescriptor};
use protox::file::{ChainFileResolver, File as Parsed, FileResolver, GoogleFileResolver};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use weir_model::{Diagnostic, DocPath};

/// Most bytes of all texts of one definition, or of its descriptor set.
pub const MAX_DEFINITION_BYTES: usize = 4 << 20;
/// The name of a definition that comes from no file.
const UNNAMED: &str = "definition.proto";

/// Protocol Buffers definitions: a file, a text, or a compiled set.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Definitions {
    /// A `.proto` file. It is read, with what it imports, when the configuration is loaded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// The definitions as a text, at most 4 MiB with all that it imports.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// The texts of files that are imported, by their names. `google/protobuf/*.proto`, `google/api/annotations.proto`
    /// and `google/api/http.proto` are known.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub imports: BTreeMap<String, String>,
    /// A `FileDescriptorSet` in Base64, as `protoc --include_imports --descriptor_set_out` writes it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub descriptor_set: Option<String>,
}

/// How messages are written as JSON, and read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct JsonForm {
    /// How messages, times and bytes become JSON.
    pub mapping: Mapping,
    /// What fields are called: `json` (`lowerCamelCase`, or their `json_name`) or `proto` (as defined). Both are read.
    pub names: Names,
    /// What 64-bit integers are.
    pub integers: Integers,
    /// What enums are. Both are read.
    pub enums: Enums,
    /// Whether fields with their default value are written. Lists that are empty then are, messages that are absent
    /// are not.
    pub defaults: bool,
}

impl Default for JsonForm {
    fn default() -> Self {
        Self {
            mapping: Mapping::Canonical,
            names: Names::Json,
            integers: Integers::Text,
            enums: Enums::Name,
            defaults: false,
        }
    }
}

/// How messages, times and bytes become JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Mapping {
    /// As Protocol Buffers' own JSON mapping says: times as texts, bytes in Base64. Unknown fields are refused.
    #[default]
    Canonical,
    /// Every message field by field, bytes as texts; unknown fields are passed over.
    Fields,
    /// Likewise, with `Timestamp` as a text of UTC without a zone and without fractions.
    FieldsAndTimes,
}

/// What fields are called.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Names {
    /// As in JSON.
    #[default]
    Json,
    /// As in the definition.
    Proto,
}

/// What 64-bit integers are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Integers {
    /// Texts.
    #[default]
    Text,
    /// Numbers.
    Number,
    /// Numbers as far as 32 bits go, then texts with a `#` in front.
    MarkedText,
    /// Likewise, in hexadecimal.
    MarkedHex,
}

/// What enums are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Enums {
    /// Their names; numbers if they have none.
    #[default]
    Name,
    /// Their numbers.
    Number,
}

/// Definitions that were compiled.
#[derive(Debug)]
pub(crate) struct Compiled {
    pub pool: DescriptorPool,
    services: Vec<ServiceDescriptor>,
}

impl Compiled {
    /// The methods of the definition itself and of what it imports publicly; of a compiled set, all.
    pub(crate) fn methods(&self) -> impl Iterator<Item = MethodDescriptor> {
        self.services.iter().flat_map(ServiceDescriptor::methods)
    }

    /// The method `package.Service/Method`.
    pub(crate) fn method(&self, path: &str) -> Option<MethodDescriptor> {
        let (service, method) = path.rsplit_once('/')?;
        let service = self.services.iter().find(|it| it.full_name() == service)?;
        service.methods().find(|it| it.name() == method)
    }
}

/// What was compiled and is in use, so that many instances with the same definitions share them.
#[derive(Default)]
pub(crate) struct Cache(Mutex<HashMap<Arc<Definitions>, Weak<Compiled>>>);

impl Cache {
    /// The compiled form of definitions that stand at `place`.
    pub(crate) fn compile(&self, given: &Definitions, place: &DocPath) -> Result<Arc<Compiled>, Diagnostic> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(compiled) = known.get(given).and_then(Weak::upgrade) {
            return Ok(compiled);
        }
        let compiled = Arc::new(given.compile(place)?);
        known.retain(|_, compiled| compiled.strong_count() > 0);
        known.insert(Arc::new(given.clone()), Arc::downgrade(&compiled));
        Ok(compiled)
    }
}

impl Definitions {
    /// Compiles the definitions at `place`.
    ///
    /// # Errors
    /// The fault and its place: the field, and in the message the file, line and column.
    pub(crate) fn compile(&self, place: &DocPath) -> Result<Compiled, Diagnostic> {
        let fault = |field: &str, message: String| Err(Diagnostic::error(place.field(field), message));
        let size: usize = self.imports.values().chain(&self.text).map(String::len).sum();
        if size > MAX_DEFINITION_BYTES {
            return fault("text", format!("expected at most {MAX_DEFINITION_BYTES} bytes"));
        }
        match (&self.text, &self.descriptor_set, &self.file) {
            (Some(text), None, file) => {
                let name = file.as_deref().map_or(UNNAMED, last_part);
                match compile_text(name, text, &self.imports) {
                    Ok(compiled) => Ok(compiled),
                    Err(message) => fault(if file.is_some() { "file" } else { "text" }, message),
                }
            }
            (None, Some(set), None) => match compile_set(set) {
                Ok(compiled) => Ok(compiled),
                Err(message) => fault("descriptor_set", message),
            },
            (None, None, Some(_)) => fault("file", "the file was not read".to_owned()),
            _ => Err(Diagnostic::error(
                place.clone(),
                "expected one of 'file', 'text' and 'descriptor_set'",
            )),
        }
    }
}

/// Whether a definition can be compiled: a text, or a `FileDescriptorSet` in Base64.
///
/// # Errors
/// The fault, with line and column if the definition is a text.
pub fn check(definitions: &Definitions) -> Result<(), String> {
    match definitions.compile(&DocPath::root()) {
        Ok(_) => Ok(()),
        Err(found) => Err(found.message),
    }
}

/// What is wrong with a definition, behind its place as far as that is known.
fn error_text(error: &protox::Error) -> String {
    // The debug format also contains the place, unless it is the end of a file.
    let message = format!("{error:?}");
    match error.file() {
        Some(file) if !message.starts_with(file) => format!("{file}: {message}"),
        _ => message,
    }
}

/// The names of the files that a definition imports.
///
/// # Errors
/// What is wrong with the definition, with file, line and column.
pub fn imports(name: &str, text: &str) -> Result<Vec<String>, String> {
    let file = Parsed::from_source(last_part(name), text).map_err(|error| error_text(&error))?;
    Ok(file.file_descriptor_proto().dependency.clone())
}

/// Whether a file of this name need not be there to be imported.
pub fn is_known(name: &str) -> bool {
    google::text_of(name).is_some() || GoogleFileResolver::new().open_file(name).is_ok()
}

fn last_part(name: &str) -> &str {
    name.rsplit('/').next().unwrap_or(name)
}

/// Files that are at hand as texts.
struct Texts(HashMap<String, String>);

impl FileResolver for Texts {
    fn open_file(&self, name: &str) -> Result<Parsed, protox::Error> {
        let own = self.0.get(name).map(String::as_str);
        match own.or_else(|| google::text_of(name)) {
            Some(text) => Parsed::from_source(name, text),
            None => Err(protox::Error::file_not_found(name)),
        }
    }
}

fn compile_text(name: &str, text: &str, imports: &BTreeMap<String, String>) -> Result<Compiled, String> {
    let mut texts: HashMap<_, _> = imports.clone().into_iter().collect();
    texts.insert(name.to_owned(), text.to_owned());
    let mut resolver = ChainFileResolver::new();
    resolver.add(Texts(texts));
    resolver.add(GoogleFileResolver::new());
    let mut compiler = protox::Compiler::with_file_resolver(resolver);
    compiler.include_imports(true);
    compiler.open_file(name).map_err(|error| error_text(&error))?;
    let pool = compiler.descriptor_pool();
    let mut services = Vec::new();
    let mut files: Vec<FileDescriptor> = pool.get_file_by_name(name).into_iter().collect();
    let mut seen = Vec::new();
    while let Some(file) = files.pop() {
        if !seen.iter().any(|known| known == file.name()) {
            seen.push(file.name().to_owned());
            services.extend(file.services());
            files.extend(file.public_dependencies());
        }
    }
    Ok(Compiled { pool, services })
}

fn compile_set(set: &str) -> Result<Compiled, String> {
    if set.len() > MAX_DEFINITION_BYTES {
        return Err(format!("expected at most {MAX_DEFINITION_BYTES} bytes"));
    }
    let bytes = STANDARD
        .decode(set.trim())
        .map_err(|_| "expected a text in Base64".to_owned())?;
    let pool = DescriptorPool::decode(bytes.as_slice()).map_err(|error| format!("{error:?}"))?;
    if pool.files().len() == 0 {
        return Err("expected a FileDescriptorSet".to_owned());
    }
    let services = pool.services().collect();
    Ok(Compiled { pool, services })
}

#[cfg(test)]
mod tests;
