//! Files that entries are appended to: in the operator's folder, and made by Weir.
//!
//! A configuration names the file, and its author may not be allowed to write elsewhere. So the way to it is
//! walked name by name, without links, and a file that is there already is taken only if Weir has made it, or if it is
//! empty. The names of files that Weir has made are in a list in the folder.

use rustix::fs::{FileType, Mode, OFlags, fstat, mkdirat, open as open_folder, openat};
use rustix::io::Errno;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use weir_plugin::LogFile;

/// The list of the files that Weir has made, a name a line. No configuration can name it, for its first letter.
const LIST: &str = ".weir-log-files";
/// Most bytes of the list that are read.
const MAX_LIST: u64 = 1 << 20;

/// A file to append to.
pub enum LogOutput {
    File(File),
    StandardOutput,
    StandardError,
}

impl LogOutput {
    /// Appends a message.
    pub fn append(&mut self, message: &[u8]) -> io::Result<()> {
        match self {
            Self::File(file) => file.write_all(message),
            Self::StandardOutput => {
                let mut output = io::stdout().lock();
                output.write_all(message)?;
                output.flush()
            }
            Self::StandardError => io::stderr().lock().write_all(message),
        }
    }
}

/// The name of a file in logs.
pub fn name(file: &LogFile) -> String {
    match file {
        LogFile::StandardOutput => "/dev/stdout".to_owned(),
        LogFile::StandardError => "/dev/stderr".to_owned(),
        LogFile::In { folder, name } => folder.join(name).display().to_string(),
        LogFile::Forbidden(path, _) => path.clone(),
    }
}

/// Opens a file, and makes it if need be.
pub fn open(file: &LogFile) -> io::Result<LogOutput> {
    match file {
        LogFile::StandardOutput => Ok(LogOutput::StandardOutput),
        LogFile::StandardError => Ok(LogOutput::StandardError),
        LogFile::Forbidden(_, reason) => Err(io::Error::new(io::ErrorKind::PermissionDenied, *reason)),
        LogFile::In { folder, name } => {
            let root = open_folder(
                folder,
                OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC,
                Mode::empty(),
            )?;
            open_in(&root, name).map(LogOutput::File)
        }
    }
}

fn open_in(root: &OwnedFd, name: &str) -> io::Result<File> {
    let mut parts: Vec<&str> = name.split('/').collect();
    let is_bad = |part: &&str| part.is_empty() || part.starts_with('.');
    let Some(last) = parts.pop().filter(|last| !is_bad(last)) else {
        return Err(refused("its name is invalid"));
    };
    let mut folder = root.try_clone()?;
    for part in parts {
        if is_bad(&part) {
            return Err(refused("its name is invalid"));
        }
        folder = enter(&folder, part)?;
    }
    let made = OFlags::CREATE | OFlags::EXCL;
    match openat(&folder, last, FLAGS | made, Mode::from_raw_mode(0o640)) {
        Ok(file) => {
            remember(root, name)?;
            Ok(file.into())
        }
        Err(Errno::EXIST) => {
            let file = openat(&folder, last, FLAGS, Mode::empty()).map_err(|error| match error {
                Errno::LOOP => refused("it is a link"),
                other => other.into(),
            })?;
            check(root, &file, name)?;
            // One that was empty is ours from now on.
            remember(root, name)?;
            Ok(file.into())
        }
        Err(error) => Err(error.into()),
    }
}

/// A pipe without a reader is refused, and not waited for.
const FLAGS: OFlags = OFlags::WRONLY
    .union(OFlags::APPEND)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::NONBLOCK)
    .union(OFlags::NOCTTY)
    .union(OFlags::CLOEXEC);

/// Opens a folder in another, and makes it if need be. Links are not followed.
fn enter(folder: &OwnedFd, name: &str) -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    match openat(folder, name, flags, Mode::empty()) {
        Err(Errno::NOENT) => {
            match mkdirat(folder, name, Mode::from_raw_mode(0o750)) {
                Ok(()) | Err(Errno::EXIST) => {}
                Err(error) => return Err(error.into()),
            }
            Ok(openat(folder, name, flags, Mode::empty())?)
        }
        Err(Errno::LOOP | Errno::NOTDIR) => Err(refused("a part of its path is a link or no folder")),
        opened => Ok(opened?),
    }
}

/// Whether a file that is there may be appended to.
fn check(root: &OwnedFd, file: &OwnedFd, name: &str) -> io::Result<()> {
    let found = fstat(file)?;
    if FileType::from_raw_mode(found.st_mode) != FileType::RegularFile {
        return Err(refused("it is not a regular file"));
    }
    if found.st_nlink != 1 {
        return Err(refused("it has several names"));
    }
    if found.st_uid != rustix::process::geteuid().as_raw() {
        return Err(refused("it belongs to another user"));
    }
    match found.st_size == 0 || list(root)?.lines().any(|line| line == name) {
        true => Ok(()),
        false => Err(refused("it already exists, and Weir did not create it")),
    }
}

fn refused(reason: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::PermissionDenied, reason)
}

/// The list of the files that Weir has made here.
fn list(root: &OwnedFd) -> io::Result<String> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let mut text = String::new();
    match openat(root, LIST, flags, Mode::empty()) {
        Ok(file) => File::from(file).take(MAX_LIST).read_to_string(&mut text)?,
        Err(Errno::NOENT) => 0,
        Err(error) => return Err(error.into()),
    };
    Ok(text)
}

/// Writes down that Weir has made a file.
fn remember(root: &OwnedFd, name: &str) -> io::Result<()> {
    if list(root)?.lines().any(|line| line == name) {
        return Ok(());
    }
    let flags = FLAGS | OFlags::CREATE;
    let mut file = File::from(openat(root, LIST, flags, Mode::from_raw_mode(0o640))?);
    file.write_all(format!("{name}\n").as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;
    use std::path::Path;

    fn append(folder: &Path, name: &str, text: &str) -> Result<(), String> {
        let file = LogFile::In {
            folder: folder.to_owned(),
            name: name.to_owned(),
        };
        let opened = open(&file).map_err(|error| error.to_string())?;
        let mut opened = opened;
        opened.append(text.as_bytes()).map_err(|error| error.to_string())
    }

    #[test]
    fn files_that_weir_has_made_are_appended_to() {
        let root = tempfile::tempdir().expect("a folder");
        let read = |name: &str| std::fs::read_to_string(root.path().join(name)).expect("a file");
        for (name, text) in [
            ("a.log", "1"),
            ("a.log", "2"),
            ("sub/deep/b.log", "1"),
            ("sub/deep/b.log", "2"),
        ] {
            assert_eq!(append(root.path(), name, text), Ok(()), "{name}");
        }
        assert_eq!(
            (read("a.log"), read("sub/deep/b.log")),
            ("12".into(), "12".into())
        );
        // If it was moved away, it is made once more; an empty one made for it is taken.
        std::fs::rename(root.path().join("a.log"), root.path().join("a.log.1")).expect("moved");
        assert_eq!(append(root.path(), "a.log", "3"), Ok(()));
        std::fs::write(root.path().join("empty.log"), "").expect("written");
        assert_eq!(append(root.path(), "empty.log", "4"), Ok(()));
        assert_eq!(append(root.path(), "empty.log", "5"), Ok(()));
        assert_eq!((read("a.log"), read("empty.log")), ("3".into(), "45".into()));
    }

    #[test]
    fn other_files_are_left_alone() {
        let parent = tempfile::tempdir().expect("a folder");
        let root = parent.path().join("logs");
        std::fs::create_dir(&root).expect("a folder");
        let outside = parent.path().join("weir.db");
        std::fs::write(&outside, "store").expect("written");
        std::fs::write(root.join("other.txt"), "other").expect("written");
        symlink(&outside, root.join("link.log")).expect("a link");
        symlink(parent.path().join("new.log"), root.join("dangling.log")).expect("a link");
        symlink(parent.path(), root.join("up")).expect("a link");
        std::fs::hard_link(&outside, root.join("hard.log")).expect("a link");
        std::fs::create_dir(root.join("folder.log")).expect("a folder");
        rustix::fs::mknodat(
            rustix::fs::CWD,
            root.join("pipe.log"),
            FileType::Fifo,
            Mode::from_raw_mode(0o600),
            0,
        )
        .expect("a pipe");
        for name in [
            "link.log",
            "dangling.log",
            "up/weir.db",
            "up/new.log",
            "hard.log",
            "other.txt",
            "other.txt/a.log",
            "folder.log",
            "pipe.log",
            "../weir.db",
            ".weir-log-files",
            "a//b.log",
            "",
        ] {
            let done = append(&root, name, "x");
            assert!(done.is_err(), "{name}: {done:?}");
        }
        let read = |path: &Path| std::fs::read_to_string(path).expect("a file");
        assert_eq!(
            (read(&outside), read(&root.join("other.txt"))),
            ("store".into(), "other".into())
        );
        assert!(!parent.path().join("new.log").exists());
        let forbidden = LogFile::Forbidden("/etc/passwd".into(), "why");
        assert_eq!(
            open(&forbidden).err().map(|error| error.to_string()),
            Some("why".to_owned())
        );
    }
}
