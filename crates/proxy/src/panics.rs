//! The scope of a panic: the call or the connection whose task has panicked, and no other. The runtime catches the
//! panic at the task; the parts here see to the tasks that others depend on. It is not the hook that logs a panic,
//! which the program sets.

use std::future::Future;
use std::time::Duration;

/// The beginning of the names of threads on which a panic ends a call or a connection. On any other thread a panic should
/// end the process: its work is not done again.
pub const WORKER_THREADS: &str = "weir-worker-";

/// Ends the process if a panic unwinds past it. For tasks without which a worker serves no client: a process that ends is
/// started again, one that is deaf is not.
pub struct AbortOnPanic(
    /// The part that has ended.
    pub &'static str,
);

impl Drop for AbortOnPanic {
    fn drop(&mut self) {
        if std::thread::panicking() {
            tracing::error!(task = self.0, "an essential task has panicked; the process ends");
            std::process::abort();
        }
    }
}

/// Runs a task, and starts it again `pause` after a panic, once `recover` has tidied up.
pub fn supervise<F>(
    task: &'static str,
    pause: Duration,
    mut start: impl FnMut() -> F + 'static,
    recover: impl Fn() + 'static,
) where
    F: Future<Output = ()> + 'static,
{
    tokio::task::spawn_local(async move {
        while let Err(error) = tokio::task::spawn_local(start()).await
            && error.is_panic()
        {
            tracing::error!(task, "a task has panicked and is restarted");
            recover();
            tokio::time::sleep(pause).await;
        }
    });
}

#[cfg(test)]
mod tests {
    use super::supervise;
    use std::cell::Cell;
    use std::rc::Rc;

    #[test]
    fn supervised_task_is_started_again_after_a_panic_and_not_after_its_end() {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .build_local(tokio::runtime::LocalOptions::default())
            .unwrap();
        let (starts, recoveries) = (Rc::new(Cell::new(0)), Rc::new(Cell::new(0)));
        runtime.block_on(async {
            let (counted, recovered) = (Rc::clone(&starts), Rc::clone(&recoveries));
            let start = move || {
                counted.set(counted.get() + 1);
                let count = counted.get();
                async move { assert!(count > 2, "on purpose") }
            };
            supervise("test", std::time::Duration::ZERO, start, move || {
                recovered.set(recovered.get() + 1);
            });
            while starts.get() < 3 {
                tokio::task::yield_now().await;
            }
        });
        assert_eq!((starts.get(), recoveries.get()), (3, 2));
    }
}
