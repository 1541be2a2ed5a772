//! The tasks in which calls on streams run. A task that is done waits for the next call of its worker: making one costs
//! more than many a call does otherwise.

use super::connection::ActiveStream;
use super::fields::StreamRequest;
use super::stream::{Stream, StreamHalves};
use crate::object_pool::ObjectPool;
use crate::timer::Timer;
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::task::{Poll, Waker};
use std::time::{Duration, Instant};

/// Most tasks that wait for a call.
const MAX_IDLE: usize = 1024;

/// A call to be run.
struct QueuedCall {
    live: ActiveStream,
    request: StreamRequest,
    halves: StreamHalves,
}

/// The state that a task keeps for its next call, as making it again costs more.
pub struct TaskState {
    pub timer: Timer,
    pub stream: Rc<Stream>,
}

impl Default for TaskState {
    fn default() -> Self {
        Self {
            timer: Timer::new(Instant::now(), Duration::ZERO),
            stream: Rc::default(),
        }
    }
}

/// The slot from which a waiting task gets its call.
#[derive(Default)]
struct TaskSlot {
    call: RefCell<Option<QueuedCall>>,
    waker: RefCell<Option<Waker>>,
    /// There will be no more calls.
    is_closed: Cell<bool>,
}

impl TaskSlot {
    fn wake(&self) {
        if let Some(waker) = self.waker.borrow_mut().take() {
            waker.wake();
        }
    }
}

/// A worker's tasks that wait.
pub struct TaskPool {
    idle: Rc<ObjectPool<Rc<TaskSlot>>>,
}

impl Default for TaskPool {
    fn default() -> Self {
        Self {
            idle: Rc::new(ObjectPool::new(MAX_IDLE)),
        }
    }
}

impl TaskPool {
    /// Runs a call.
    pub fn run(&self, live: ActiveStream, request: StreamRequest, halves: StreamHalves) {
        let call = QueuedCall {
            live,
            request,
            halves,
        };
        let Some(slot) = self.idle.take() else {
            let slot = Rc::new(TaskSlot::default());
            tokio::task::spawn_local(work(slot, Rc::clone(&self.idle), call));
            return;
        };
        *slot.call.borrow_mut() = Some(call);
        slot.wake();
    }

    /// Ends some tasks that were not needed for a while, and frees some of the rest.
    pub fn trim(&self) {
        for slot in self.idle.trim() {
            slot.is_closed.set(true);
            slot.wake();
        }
    }
}

/// Runs calls, one after the other, until there are tasks enough.
async fn work(slot: Rc<TaskSlot>, idle: Rc<ObjectPool<Rc<TaskSlot>>>, first: QueuedCall) {
    let mut call = first;
    let mut kept = TaskState::default();
    loop {
        let QueuedCall {
            live,
            request,
            halves,
        } = call;
        kept = live.call(request, halves, kept).await;
        if !idle.has_room() {
            return;
        }
        idle.give(Rc::clone(&slot));
        let next = std::future::poll_fn(|context| match slot.call.borrow_mut().take() {
            Some(call) => Poll::Ready(Some(call)),
            None if slot.is_closed.get() => Poll::Ready(None),
            None => {
                *slot.waker.borrow_mut() = Some(context.waker().clone());
                Poll::Pending
            }
        })
        .await;
        match next {
            Some(next) => call = next,
            None => return,
        }
    }
}
