//! Definitions of gRPC services that configurations name by a file: their texts are put next to the name, with those of
//! the files that they import.

use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Path, PathBuf};
use weir_plugins::protobuf::{self, MAX_DEFINITION_BYTES};

/// The folders in which imports are looked for after the folder of the file itself and those of dialects.
const FOLDERS: [&str; 2] = ["/usr/local/include", "/usr/include"];
/// Most files of a definition.
const MAX_FILES: usize = 200;

/// Whether a configuration names a file of definitions.
pub(super) fn names_file(config: &Value) -> bool {
    config
        .get("proto")
        .is_some_and(|proto| proto.get("file").is_some_and(Value::is_string) && proto.get("text").is_none())
}

/// Reads the files of a configuration that names one. `folders` are where dialects look for what they import.
///
/// # Errors
/// Which file cannot be read, or what in it is no definition.
pub(super) fn inline_files(config: &mut Value, folders: &[&str]) -> Result<(), String> {
    let Some(proto) = config.get_mut("proto") else {
        return Ok(());
    };
    let Some(file) = proto.get("file").and_then(Value::as_str) else {
        return Ok(());
    };
    let wrong = |message: String| format!("proto.file: {message}");
    let path = PathBuf::from(file);
    let text = read(&path).map_err(|reason| wrong(format!("{file}: cannot be read: {reason}")))?;
    let folder = path.parent().unwrap_or(Path::new(""));
    let folders: Vec<&Path> = std::iter::once(folder)
        .chain(folders.iter().copied().chain(FOLDERS).map(Path::new))
        .collect();
    let imports = imports(file, &text, &folders).map_err(wrong)?;
    proto["text"] = text.into();
    proto["imports"] = json!(imports);
    Ok(())
}

/// The texts of all files that a definition imports, directly or not, by the names by which they are imported.
fn imports(file: &str, text: &str, folders: &[&Path]) -> Result<BTreeMap<String, String>, String> {
    let mut found = BTreeMap::new();
    let mut wanted = protobuf::imports(file, text)?;
    let mut left = MAX_DEFINITION_BYTES.saturating_sub(text.len());
    while let Some(name) = wanted.pop() {
        if found.contains_key(&name) || protobuf::is_known(&name) {
            continue;
        }
        // Names lead down from the folders only.
        let is_inside = !name.starts_with('/') && !name.split('/').any(|part| part == "..");
        let text = folders
            .iter()
            .filter(|_| is_inside)
            .find_map(|folder| read(&folder.join(&name)).ok());
        let text = text.ok_or_else(|| format!("{file}: the file '{name}' that it imports is not there"))?;
        left = left
            .checked_sub(text.len())
            .filter(|_| found.len() < MAX_FILES)
            .ok_or_else(|| format!("{file}: it imports too much"))?;
        wanted.extend(protobuf::imports(&name, &text)?);
        found.insert(name, text);
    }
    Ok(found)
}

/// A definition's text. Only definitions are read, because the error about a file quotes a part of it.
fn read(path: &Path) -> Result<String, String> {
    if path.extension().is_none_or(|extension| extension != "proto") {
        return Err("expected a file whose name ends in .proto".to_owned());
    }
    let file = std::fs::File::open(path).map_err(|error| error.to_string())?;
    if !file.metadata().is_ok_and(|metadata| metadata.is_file()) {
        return Err("it is not a file".to_owned());
    }
    let mut text = String::new();
    let most = MAX_DEFINITION_BYTES as u64;
    let read = file.take(most + 1).read_to_string(&mut text);
    match read {
        Err(error) => Err(error.to_string()),
        Ok(count) if count as u64 > most => Err(format!("expected at most {most} bytes")),
        Ok(_) => Ok(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_brought_in_with_what_they_import() {
        let folder = tempfile::tempdir().expect("a folder");
        let write = |name: &str, text: &str| {
            let path = folder.path().join(name);
            std::fs::create_dir_all(path.parent().expect("a parent")).expect("a folder");
            std::fs::write(path, text).expect("a file");
        };
        write(
            "a.proto",
            "import \"sub/b.proto\"; import \"google/api/annotations.proto\";",
        );
        write("sub/b.proto", "import \"c.proto\";");
        write("c.proto", "import \"a.proto\";");
        write("up.proto", "import \"../c.proto\";");
        write("gone.proto", "import \"gone/b.proto\";");
        write("broken.proto", "message");
        write("secret.txt", "");
        std::fs::create_dir(folder.path().join("folder.proto")).expect("a folder");
        let file = |name: &str| folder.path().join(name).display().to_string();
        for (name, expected) in [
            ("a.proto", Ok(vec!["a.proto", "c.proto", "sub/b.proto"])),
            ("up.proto", Err("proto.file: up.proto:1:8: ")),
            (
                "gone.proto",
                Err("the file 'gone/b.proto' that it imports is not there"),
            ),
            (
                "broken.proto",
                Err("proto.file: broken.proto: expected an identifier"),
            ),
            (
                "secret.txt",
                Err("cannot be read: expected a file whose name ends in .proto"),
            ),
            ("none.proto", Err("cannot be read: No such file")),
            ("folder.proto", Err("cannot be read: it is not a file")),
        ] {
            let mut config = json!({"proto": {"file": file(name)}});
            assert!(names_file(&config));
            let brought = inline_files(&mut config, &[]);
            match expected {
                Ok(names) => {
                    brought.expect("good");
                    let imports = config["proto"]["imports"].as_object().expect("imports");
                    assert_eq!(imports.keys().collect::<Vec<_>>(), names);
                    assert!(!names_file(&config));
                }
                Err(expected) => {
                    let message = brought.expect_err("wrong");
                    assert!(message.contains(expected), "{message}");
                }
            }
        }
        for config in [json!({}), json!({"proto": "x"}), json!({"proto": {"text": ""}})] {
            assert!(!names_file(&config) && inline_files(&mut config.clone(), &[]).is_ok());
        }
    }
}
