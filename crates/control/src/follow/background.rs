//! A thread of low priority that does another's work for it.

use std::io;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

/// Niceness of work that may take its time while calls are served.
pub const NICENESS: i32 = 10;

/// A thread that is handed something, works on it, and hands it back.
pub struct Background<W> {
    given: SyncSender<W>,
    done: Receiver<W>,
}

impl<W: Send + 'static> Background<W> {
    /// Starts the thread, which ends with the last that could hand it anything.
    ///
    /// # Errors
    /// It cannot be started.
    pub fn start(name: &str, work: impl Fn(&mut W) + Send + 'static) -> io::Result<Self> {
        let (given, to_do) = sync_channel::<W>(1);
        let (finished, done) = sync_channel(1);
        std::thread::Builder::new().name(name.to_owned()).spawn(move || {
            lower_priority();
            while let Ok(mut it) = to_do.recv() {
                work(&mut it);
                if finished.send(it).is_err() {
                    return;
                }
            }
        })?;
        Ok(Self { given, done })
    }

    /// Has the thread work on it, and waits for that; `None`: the thread has ended.
    pub fn work_on(&self, it: W) -> Option<W> {
        self.given.send(it).ok()?;
        self.done.recv().ok()
    }
}

/// Lets calls go before what the calling thread does.
pub fn lower_priority() {
    // On Linux this is the calling thread's own priority. If it cannot be lowered, all still works.
    let _unchanged = rustix::process::setpriority_process(None, NICENESS);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_comes_back_done() {
        let background = Background::start("test", |number: &mut u32| *number += 1).expect("a thread");
        assert_eq!(background.work_on(1), Some(2));
        assert_eq!(background.work_on(7), Some(8));
    }
}
