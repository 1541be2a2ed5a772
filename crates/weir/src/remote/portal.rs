//! `weir portal`: a developer portal as a folder. `portal.yaml` is its document, `logo.svg` or `logo.png` its logo, and
//! `pages/NAME.md` a page: its Markdown, with what else is said of it as YAML between two lines `---`.

use super::{address, encoded, make};
use crate::args::{PortalArgs, PortalCommand, RemoteArgs};
use crate::command_output::CommandOutput;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use weir_apis::logo;
use weir_control::http::{ClientRequest, Method};
use weir_model::document;
use weir_portal::yaml;

const PORTAL: &str = "portal.yaml";
const PAGES: &str = "pages";
const LOGOS: [&str; 2] = ["logo.svg", "logo.png"];
/// The line before and after the metadata of a page.
const FENCE: &str = "---\n";

type CommandResult<T> = Result<T, CommandOutput>;

/// Runs a command.
pub fn portal(args: &PortalArgs) -> CommandOutput {
    let done = match &args.command {
        PortalCommand::Export { name, folder, remote } => export(name, folder, remote),
        PortalCommand::Apply {
            name,
            folder,
            dry_run,
            remote,
        } => apply((name, folder), *dry_run, remote),
    };
    match done {
        Ok(text) => CommandOutput::succeeded(text),
        Err(failed) => failed,
    }
}

fn wrong(file: &Path, what: impl std::fmt::Display) -> CommandOutput {
    CommandOutput::failed(2, format!("{}: {what}\n", file.display()))
}

fn path_of(remote: &RemoteArgs, name: &str) -> String {
    address(remote, &format!("/api/v1/portals/{}/files", encoded(name)))
}

fn export(name: &str, folder: &Path, remote: &RemoteArgs) -> CommandResult<String> {
    may_export(folder)?;
    let body = make(remote, ClientRequest::get(path_of(remote, name)))?;
    let answer: Value = serde_json::from_slice(&body).unwrap_or_default();
    let files = files_of(&answer).map_err(|what| wrong(folder, what))?;
    let pages = folder.join(PAGES);
    fs::create_dir_all(&pages).map_err(|error| wrong(&pages, error))?;
    // What is no longer there would come back with the next `apply`.
    for gone in known_files(folder)?.iter().filter(|it| !files.contains_key(*it)) {
        let file = folder.join(gone);
        fs::remove_file(&file).map_err(|error| wrong(&file, error))?;
    }
    for (file, bytes) in &files {
        let file = folder.join(file);
        fs::write(&file, bytes).map_err(|error| wrong(&file, error))?;
    }
    Ok(format!(
        "{}: {} files of the portal {name}\n",
        folder.display(),
        files.len()
    ))
}

/// The pages and the logos in a folder.
fn known_files(folder: &Path) -> CommandResult<Vec<String>> {
    let pages = page_files(&folder.join(PAGES))?
        .into_iter()
        .map(|page| format!("{PAGES}/{page}.md"));
    let logos = LOGOS
        .map(str::to_owned)
        .into_iter()
        .filter(|it| folder.join(it).exists());
    Ok(pages.chain(logos).collect())
}

/// Files are replaced and removed in the folder of a portal only.
fn may_export(folder: &Path) -> CommandResult<()> {
    if folder.join(PORTAL).exists() {
        return Ok(());
    }
    match known_files(folder)?.first() {
        None => Ok(()),
        Some(file) => Err(wrong(
            folder,
            format!(
                "there is '{file}' but no {PORTAL}, so this is not a portal's folder and nothing was written: use an empty folder, or move the file"
            ),
        )),
    }
}

/// The files of a portal, by their names in the folder.
fn files_of(answer: &Value) -> Result<BTreeMap<String, Vec<u8>>, String> {
    let mut files = BTreeMap::new();
    let mut portal = answer["portal"].clone();
    let logo = portal.as_object_mut().and_then(|it| it.remove("logo"));
    let logo = logo::read(logo.as_ref().and_then(Value::as_str).unwrap_or_default())?;
    if let Some(logo) = logo {
        let name = LOGOS[usize::from(logo.media == "image/png")];
        files.insert(name.to_owned(), logo.bytes);
    }
    files.insert(PORTAL.to_owned(), yaml::of(&portal).into_bytes());
    for (name, page) in answer["pages"].as_object().into_iter().flatten() {
        if !weir_apis::naming::is_name(name) {
            return Err(format!("'{name}' is not a valid name of a page"));
        }
        let mut about = page.clone();
        let body = about.as_object_mut().and_then(|it| it.remove("body"));
        let body = body.as_ref().and_then(Value::as_str).unwrap_or_default();
        let text = format!("{FENCE}{}{FENCE}{body}", yaml::of(&about));
        files.insert(format!("{PAGES}/{name}.md"), text.into_bytes());
    }
    Ok(files)
}

fn apply((name, folder): (&str, &Path), dry_run: bool, remote: &RemoteArgs) -> CommandResult<String> {
    let body = read(folder)?;
    let mut call = ClientRequest::json(Method::PUT, path_of(remote, name), &body);
    if dry_run {
        call = call.header("weir-dry-run", "true");
    }
    let answer = make(remote, call)?;
    Ok(summary(
        name,
        &serde_json::from_slice(&answer).unwrap_or_default(),
        dry_run,
    ))
}

/// The changes, in words.
fn summary(name: &str, answer: &Value, dry_run: bool) -> String {
    let mut text = format!(
        "portal {name}: {}\n",
        answer["portal"].as_str().unwrap_or_default()
    );
    for what in ["made", "changed", "removed"] {
        for page in answer[what].as_array().into_iter().flatten() {
            text += &format!("page {}: {what}\n", page.as_str().unwrap_or_default());
        }
    }
    if dry_run {
        text += "nothing was written\n";
    }
    text
}

/// The names of the pages in a folder; none if it is not there.
fn page_files(folder: &Path) -> CommandResult<Vec<String>> {
    if !folder.exists() {
        return Ok(Vec::new());
    }
    let mut names = Vec::new();
    for entry in fs::read_dir(folder).map_err(|error| wrong(folder, error))? {
        let file = entry.map_err(|error| wrong(folder, error))?.path();
        if let (Some(stem), Some("md")) = (file.file_stem(), file.extension().and_then(|it| it.to_str())) {
            names.push(stem.to_string_lossy().into_owned());
        }
    }
    names.sort();
    Ok(names)
}

fn text_of(file: &Path) -> CommandResult<String> {
    fs::read_to_string(file).map_err(|error| wrong(file, error))
}

/// A folder as the body of a call.
fn read(folder: &Path) -> CommandResult<Value> {
    let file = folder.join(PORTAL);
    let mut portal = document::parse(&text_of(&file)?).map_err(|error| wrong(&file, error.message))?;
    let fields = portal.as_object_mut();
    let fields = fields.ok_or_else(|| wrong(&file, "expected an object"))?;
    for name in LOGOS {
        let file = folder.join(name);
        if !file.exists() {
            continue;
        }
        let bytes = fs::read(&file).map_err(|error| wrong(&file, error))?;
        let text = match name {
            "logo.png" => logo::of_png(&bytes),
            _ => String::from_utf8(bytes).map_err(|error| wrong(&file, error))?,
        };
        if let Some(fault) = logo::fault(&text) {
            return Err(wrong(&file, fault));
        }
        fields.insert("logo".to_owned(), text.into());
    }
    let mut pages = Map::new();
    if !folder.join(PAGES).is_dir() {
        return Err(wrong(
            folder,
            format!(
                "there is no folder {PAGES}/, and without it all pages would be removed: create an empty one to remove them"
            ),
        ));
    }
    for name in page_files(&folder.join(PAGES))? {
        let file = folder.join(PAGES).join(format!("{name}.md"));
        let page = page_of(&text_of(&file)?).map_err(|what| wrong(&file, what))?;
        pages.insert(name, page);
    }
    Ok(json!({ "portal": portal, "pages": pages }))
}

/// A page of its file.
fn page_of(text: &str) -> Result<Value, String> {
    // An editor wrote all lines so. Of other files only the page's own lines may end so, and they stay.
    let text = match text.starts_with("---\r\n") {
        true => text.replace("\r\n", "\n"),
        false => text.to_owned(),
    };
    let parts = text
        .strip_prefix(FENCE)
        .and_then(|it| it.split_once(&format!("\n{FENCE}")));
    let (about, body) =
        parts.ok_or("expected a line ---, the title and more as YAML, and a line --- first")?;
    let mut page = document::parse(about).map_err(|error| error.message)?;
    let fields = page
        .as_object_mut()
        .ok_or("expected fields between the lines ---")?;
    fields.insert("body".to_owned(), body.into());
    Ok(page)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_portal_comes_back_from_its_files() {
        let portal = json!({
            "portal": { "display_name": "Acme: developers", "home": "# Hello\n\n---\n", "hosts": ["dev.test"], "logo": "<svg></svg>" },
            "pages": {
                "about": { "title": "About: us", "body": "---\nwords\n---\n", "visibility": { "groups": ["a"] }, "order": 3, "published": true },
                "empty": { "title": "yes", "body": "", "visibility": "public", "published": false },
                "windows": { "title": "Lines", "body": "one\r\ntwo\r\n", "visibility": "public", "published": true },
            },
        });
        let folder = tempfile::tempdir().expect("a folder");
        fs::create_dir_all(folder.path().join(PAGES)).expect("made");
        for (file, bytes) in files_of(&portal).expect("files") {
            fs::write(folder.path().join(file), bytes).expect("written");
        }
        let found = read(folder.path()).map_err(|it| format!("{it:?}")).expect("read");
        assert_eq!(found, portal);
    }

    #[test]
    fn a_folder_that_is_no_portal_keeps_its_files() {
        for file in ["logo.svg", "pages/notes.md"] {
            let folder = tempfile::tempdir().expect("a folder");
            assert!(may_export(folder.path()).is_ok(), "it is empty");
            fs::create_dir_all(folder.path().join(PAGES)).expect("made");
            fs::write(folder.path().join(file), "mine").expect("written");
            let refused = may_export(folder.path()).expect_err("no portal");
            assert!(format!("{refused:?}").contains(file), "{refused:?}");
            fs::write(folder.path().join(PORTAL), "{}").expect("written");
            assert!(may_export(folder.path()).is_ok(), "a portal");
        }
    }

    #[test]
    fn a_folder_without_pages_removes_none() {
        let folder = tempfile::tempdir().expect("a folder");
        fs::write(folder.path().join(PORTAL), "display_name: Main\n").expect("written");
        let refused = read(folder.path()).expect_err("no pages");
        assert!(format!("{refused:?}").contains("pages/"), "{refused:?}");
        fs::create_dir(folder.path().join(PAGES)).expect("made");
        assert!(read(folder.path()).is_ok());
    }

    #[test]
    fn files_of_editors_that_end_lines_otherwise_are_read() {
        let page = page_of("---\r\ntitle: x\r\n---\r\none\r\ntwo\r\n").expect("a page");
        assert_eq!(page, json!({ "title": "x", "body": "one\ntwo\n" }));
    }

    #[test]
    fn files_that_are_no_pages_are_refused() {
        for text in ["", "words", "---\ntitle: x\n", "---\n- a\n---\nb"] {
            assert!(page_of(text).is_err(), "{text:?}");
        }
        let hostile = json!({ "portal": {}, "pages": { "../../x": { "title": "x", "body": "" } } });
        assert!(files_of(&hostile).is_err(), "a name leads out of the folder");
    }
}
