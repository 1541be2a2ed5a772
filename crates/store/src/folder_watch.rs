//! Reports of the system about folders, so that who waits for a change of a file need not look again and again.
//!
//! **What it is not**: a promise. Not every file system reports changes, such as one that is shared with another machine,
//! and not every system can. Look now and then without a report, too.

use std::ffi::OsStr;

/// An event in the folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FolderEvent<'e> {
    /// The file in the folder; `None`: reports were lost, or it is about the folder itself.
    pub name: Option<&'e OsStr>,
    /// The file was written to, and is the same file as before.
    pub is_write: bool,
}

pub use system::FolderWatch;

#[cfg(target_os = "linux")]
mod system {
    use super::FolderEvent;
    use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd, poll};
    use rustix::fd::OwnedFd;
    use rustix::fs::inotify::{self, CreateFlags, ReadFlags, WatchFlags};
    use std::ffi::OsStr;
    use std::io;
    use std::mem::MaybeUninit;
    use std::os::unix::ffi::OsStrExt;
    use std::path::Path;
    use std::sync::Arc;
    use std::thread;

    /// Room for the events that are read at once.
    const EVENT_BYTES: usize = 4096;

    /// A thread that waits for reports. It ends with this.
    #[derive(Debug)]
    pub struct FolderWatch {
        events: Arc<OwnedFd>,
        stop: Arc<OwnedFd>,
    }

    impl FolderWatch {
        /// Calls `report` for what happens in the folders that are watched, until it says `false`.
        ///
        /// # Errors
        /// The system has no room for another watch.
        pub fn start(
            thread_name: &str,
            report: impl Fn(FolderEvent<'_>) -> bool + Send + 'static,
        ) -> io::Result<Self> {
            let events = Arc::new(inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)?);
            let stop = Arc::new(eventfd(0, EventfdFlags::CLOEXEC)?);
            let watch = Self {
                events: Arc::clone(&events),
                stop: Arc::clone(&stop),
            };
            thread::Builder::new()
                .name(thread_name.to_owned())
                .spawn(move || wait(&events, &stop, &report))?;
            Ok(watch)
        }

        /// Watches a folder for files that come, go or change. A folder that is watched already stays so.
        ///
        /// # Errors
        /// It is not there, or cannot be watched.
        pub fn watch(&self, folder: &Path) -> io::Result<()> {
            let changes = WatchFlags::MODIFY
                | WatchFlags::CREATE
                | WatchFlags::MOVED_TO
                | WatchFlags::DELETE
                | WatchFlags::ATTRIB
                | WatchFlags::ONLYDIR;
            inotify::add_watch(&*self.events, folder, changes)?;
            Ok(())
        }
    }

    impl Drop for FolderWatch {
        fn drop(&mut self) {
            // It can only fail if the counter overflows, and then the thread is woken already.
            let _written = rustix::io::write(&*self.stop, &1_u64.to_ne_bytes());
        }
    }

    fn wait(events: &OwnedFd, stop: &OwnedFd, report: &dyn Fn(FolderEvent<'_>) -> bool) {
        loop {
            let mut ready = [
                PollFd::new(events, PollFlags::IN),
                PollFd::new(stop, PollFlags::IN),
            ];
            match poll(&mut ready, None) {
                Err(rustix::io::Errno::INTR) => continue,
                Err(error) => {
                    tracing::debug!(%error, "watching files for changes has failed");
                    return;
                }
                Ok(_) if !ready[1].revents().is_empty() => return,
                Ok(_) => {}
            }
            if !pass_on(events, report) {
                return;
            }
        }
    }

    /// Passes on what waits; whether more is wanted.
    fn pass_on(events: &OwnedFd, report: &dyn Fn(FolderEvent<'_>) -> bool) -> bool {
        let mut room = [MaybeUninit::uninit(); EVENT_BYTES];
        let mut reader = inotify::Reader::new(events, &mut room);
        // The end is an error: no event waits.
        while let Ok(event) = reader.next() {
            let is_wanted = report(FolderEvent {
                name: event.file_name().map(|it| OsStr::from_bytes(it.to_bytes())),
                is_write: event.events() == ReadFlags::MODIFY,
            });
            if !is_wanted {
                return false;
            }
        }
        true
    }
}

#[cfg(not(target_os = "linux"))]
mod system {
    use super::FolderEvent;
    use std::io;
    use std::path::Path;

    /// This system has none.
    #[derive(Debug)]
    pub struct FolderWatch(std::convert::Infallible);

    impl FolderWatch {
        /// # Errors
        /// Always.
        pub fn start(_: &str, _: impl Fn(FolderEvent<'_>) -> bool + Send + 'static) -> io::Result<Self> {
            Err(io::ErrorKind::Unsupported.into())
        }

        /// # Errors
        /// Always.
        pub fn watch(&self, _: &Path) -> io::Result<()> {
            match self.0 {}
        }
    }
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;
    use std::time::Duration;

    const LONG: Duration = Duration::from_secs(60);

    #[test]
    fn folders_report_what_happens_to_their_files() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("log");
        let (sender, tell) = channel();
        let report = move |event: FolderEvent<'_>| {
            let name = event.name.map(|it| it.to_string_lossy().into_owned());
            sender.send((name, event.is_write)).is_ok()
        };
        let watch = FolderWatch::start("test-folder", report).expect("started");
        watch.watch(folder.path()).expect("watched");
        std::fs::write(&file, "x").expect("written");
        let next = || tell.recv_timeout(LONG).expect("in time");
        let name = || Some("log".to_owned());
        assert_eq!([next(), next()], [(name(), false), (name(), true)]);
        std::fs::remove_file(&file).expect("removed");
        assert_eq!(next(), (name(), false));
        assert!(watch.watch(&folder.path().join("none")).is_err());
        // Its thread ends, and with it the sender.
        drop(watch);
        assert!(tell.recv_timeout(LONG).is_err());
    }
}
