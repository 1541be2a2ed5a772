//! The tasks in which calls on streams run. A task that is done waits for the next call of its worker: making one costs
//! more than many a call does otherwise.

use super::fields::Asked;
use super::list::SpareLists;
use super::session::Live;
use super::stream::Ends;
use std::cell::RefCell;
use std::rc::Rc;
use std::task::{Poll, Waker};

/// Most tasks that wait for a call.
const MAX_IDLE: usize = 256;

/// A call to be run.
struct Call {
    live: Live,
    asked: Asked,
    ends: Ends,
}

/// Where a task that waits is told of its call.
#[derive(Default)]
struct Desk {
    call: RefCell<Option<Call>>,
    waker: RefCell<Option<Waker>>,
}

/// A worker's tasks that wait, and lists for the heads of their calls.
#[derive(Default)]
pub struct Runners {
    idle: Rc<RefCell<Vec<Rc<Desk>>>>,
    pub lists: SpareLists,
}

impl Runners {
    /// Has a call run.
    pub fn run(&self, live: Live, asked: Asked, ends: Ends) {
        let call = Call { live, asked, ends };
        let Some(desk) = self.idle.borrow_mut().pop() else {
            let desk = Rc::new(Desk::default());
            tokio::task::spawn_local(work(desk, Rc::clone(&self.idle), call));
            return;
        };
        *desk.call.borrow_mut() = Some(call);
        if let Some(waker) = desk.waker.borrow_mut().take() {
            waker.wake();
        }
    }
}

/// Runs calls, one after the other, until there are tasks enough.
async fn work(desk: Rc<Desk>, idle: Rc<RefCell<Vec<Rc<Desk>>>>, first: Call) {
    let mut call = first;
    loop {
        let Call { live, asked, ends } = call;
        live.call(asked, ends).await;
        {
            let mut idle = idle.borrow_mut();
            if idle.len() >= MAX_IDLE {
                return;
            }
            idle.push(Rc::clone(&desk));
        }
        call = std::future::poll_fn(|context| match desk.call.borrow_mut().take() {
            Some(call) => Poll::Ready(call),
            None => {
                *desk.waker.borrow_mut() = Some(context.waker().clone());
                Poll::Pending
            }
        })
        .await;
    }
}
