//! Puts the gateways' descriptions and templates into the program, so that it runs without the sources.

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

fn main() -> std::io::Result<()> {
    let root = PathBuf::from(env("CARGO_MANIFEST_DIR")).join("gateways");
    println!("cargo::rerun-if-changed=gateways");
    let mut files = Vec::new();
    collect(&root, &mut files)?;
    files.sort();
    let mut table = String::from("&[\n");
    for file in files {
        let name = file.strip_prefix(&root).unwrap_or(&file).display().to_string();
        println!("cargo::rerun-if-changed={}", file.display());
        let _ = writeln!(
            table,
            "    ({name:?}, include_str!({:?})),",
            file.display().to_string()
        );
    }
    table.push_str("]\n");
    fs::write(Path::new(&env("OUT_DIR")).join("gateway_files.rs"), table)
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> std::io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            collect(&path, files)?;
        } else {
            files.push(path);
        }
    }
    Ok(())
}

fn env(name: &str) -> String {
    std::env::var(name).unwrap_or_default()
}
