//! A constant-rate load over keep-alive connections, on one thread, with latency counted from the intended time.

use std::collections::VecDeque;
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::num::NonZeroU64;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use hdrhistogram::Histogram;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::client;
use crate::cpu::of_this_thread;
use crate::schedule::{ResponseReader, Schedule};

/// A call without an answer for this long has failed.
const TIME_OUT: Duration = Duration::from_secs(5);
/// The longest sleep: the stop flag and time-outs are looked at this often.
const MAX_SLEEP: Duration = Duration::from_millis(50);

/// What is sent where, and how often.
#[derive(Debug, Clone)]
pub struct LoadPlan {
    /// The gateway.
    pub target: SocketAddr,
    /// The bytes of each request; they are sent in turn.
    pub requests: Vec<Vec<u8>>,
    /// Calls per second.
    pub rate: u32,
    /// Connections; a due call takes whichever is free.
    pub connections: usize,
    /// Time at the beginning of which latencies are not kept.
    pub warm_up: Duration,
    /// Time after that.
    pub length: Duration,
}

/// What came back. Times are in nanoseconds.
#[derive(Debug)]
pub struct Record {
    /// From a call's intended time to its whole answer.
    pub latency: Histogram<u64>,
    /// How late the sender itself was with calls that had a free connection.
    pub lateness: Histogram<u64>,
    /// Good answers, those of the warm-up included.
    pub calls: u64,
    /// Answers with another status than 200.
    pub refused: u64,
    /// Connections that broke with a call on them, or answered something unreadable.
    pub broken: u64,
    /// Calls without an answer in time.
    pub timed_out: u64,
    /// Calls that were due and never got a connection.
    pub unsent: u64,
    /// CPU time of the sending thread.
    pub cpu: Duration,
}

impl Record {
    fn new() -> Result<Self> {
        let histogram = || Histogram::new_with_bounds(100, 120_000_000_000, 3).context("making a histogram");
        Ok(Self {
            latency: histogram()?,
            lateness: histogram()?,
            calls: 0,
            refused: 0,
            broken: 0,
            timed_out: 0,
            unsent: 0,
            cpu: Duration::ZERO,
        })
    }

    /// Calls without a good answer.
    pub fn failed(&self) -> u64 {
        self.refused + self.broken + self.timed_out + self.unsent
    }

    /// The failures by kind, for a message.
    pub fn failures(&self) -> String {
        format!(
            "of {} calls {} were refused, {} broke, {} timed out, {} were never sent",
            self.calls + self.failed(),
            self.refused,
            self.broken,
            self.timed_out,
            self.unsent
        )
    }
}

/// Sends the plan's calls until its end or until `stop` is set.
///
/// # Errors
/// The gateway takes no connection.
pub fn send(plan: &LoadPlan, stop: &AtomicBool) -> Result<Record> {
    // The kernel may otherwise wake this thread 50 µs late, which would count as latency.
    rustix::thread::set_current_timer_slack(NonZeroU64::new(1)).context("setting the timer slack")?;
    if plan.requests.is_empty() || plan.rate == 0 {
        bail!("a load without requests");
    }
    let mut sender = Sender::new(plan)?;
    let cpu = of_this_thread();
    while !sender.is_done() {
        if stop.load(Ordering::Relaxed) {
            sender.schedule.end_now();
        }
        sender.send_due_calls()?;
        sender.wait()?;
        sender.receive()?;
        sender.drop_overdue_calls()?;
    }
    sender.record.cpu = of_this_thread().saturating_sub(cpu);
    Ok(sender.record)
}

#[derive(Debug)]
struct SenderConnection {
    stream: TcpStream,
    reader: ResponseReader,
    /// The intended and the real time of the call that it carries.
    call: Option<(Instant, Instant)>,
    free_since: Instant,
}

struct Sender<'a> {
    plan: &'a LoadPlan,
    schedule: Schedule,
    keep_from: Instant,
    give_up: Instant,
    overdue_check: Instant,
    connections: Vec<SenderConnection>,
    free: VecDeque<usize>,
    ready: Vec<usize>,
    buffer: Vec<u8>,
    next_request: usize,
    record: Record,
}

impl<'a> Sender<'a> {
    fn new(plan: &'a LoadPlan) -> Result<Self> {
        let connections: Vec<SenderConnection> = (0..plan.connections)
            .map(|_| SenderConnection::open(plan.target))
            .collect::<Result<_>>()?;
        let start = Instant::now();
        let whole = plan.warm_up + plan.length;
        Ok(Self {
            plan,
            schedule: Schedule::new(start, plan.rate, whole),
            keep_from: start + plan.warm_up,
            give_up: start + whole + TIME_OUT,
            overdue_check: start,
            free: (0..connections.len()).collect(),
            connections,
            ready: Vec::new(),
            buffer: vec![0; 256 << 10],
            next_request: 0,
            record: Record::new()?,
        })
    }

    fn is_done(&mut self) -> bool {
        let all_answered = self.schedule.left() == 0 && self.free.len() == self.connections.len();
        if Instant::now() >= self.give_up {
            self.record.unsent += self.schedule.left();
            self.record.timed_out += (self.connections.len() - self.free.len()) as u64;
            return true;
        }
        all_answered
    }

    fn send_due_calls(&mut self) -> Result<()> {
        while let Some(&index) = self.free.front() {
            let now = Instant::now();
            let Some(intended) = self.schedule.take_due(now) else {
                break;
            };
            self.free.pop_front();
            let request = &self.plan.requests[self.next_request];
            self.next_request = (self.next_request + 1) % self.plan.requests.len();
            let connection = &mut self.connections[index];
            if connection.free_since <= intended && intended >= self.keep_from {
                self.record
                    .lateness
                    .saturating_record(nanoseconds(now - intended));
            }
            connection.call = Some((intended, now));
            // A request is far smaller than a socket's buffer: a short write means a broken connection.
            if !connection
                .stream
                .write(request)
                .is_ok_and(|sent| sent == request.len())
            {
                self.record.broken += 1;
                self.reopen(index)?;
            }
        }
        Ok(())
    }

    /// Sleeps until an answer arrives or the next call is due.
    fn wait(&mut self) -> Result<()> {
        let now = Instant::now();
        let next = if self.free.is_empty() {
            None
        } else {
            self.schedule.next_time()
        };
        let sleep = next
            .map_or(MAX_SLEEP, |time| time.saturating_duration_since(now))
            .min(MAX_SLEEP);
        let timeout = Timespec {
            tv_sec: 0,
            tv_nsec: sleep.subsec_nanos().into(),
        };
        let mut watched: Vec<PollFd<'_>> = self
            .connections
            .iter()
            .map(|connection| PollFd::new(&connection.stream, PollFlags::IN))
            .collect();
        match poll(&mut watched, Some(&timeout)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error).context("waiting for answers"),
        }
        self.ready.clear();
        let with_news = watched
            .iter()
            .enumerate()
            .filter(|(_, watched)| !watched.revents().is_empty());
        self.ready.extend(with_news.map(|(index, _)| index));
        Ok(())
    }

    fn receive(&mut self) -> Result<()> {
        for at in 0..self.ready.len() {
            let index = self.ready[at];
            let connection = &mut self.connections[index];
            let answer = match connection.stream.read(&mut self.buffer) {
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {
                    continue;
                }
                Ok(0) | Err(_) => None,
                Ok(length) => connection.reader.take(&self.buffer[..length]).ok(),
            };
            match (answer, connection.call) {
                (Some(None), Some(_)) => {}
                (Some(Some(status)), Some((intended, _))) => {
                    let now = Instant::now();
                    if status == 200 {
                        self.record.calls += 1;
                    } else {
                        self.record.refused += 1;
                    }
                    if intended >= self.keep_from {
                        self.record.latency.saturating_record(nanoseconds(now - intended));
                    }
                    if connection.reader.closes {
                        self.reopen(index)?;
                    } else {
                        (connection.call, connection.free_since) = (None, now);
                        self.free.push_back(index);
                    }
                }
                (None, Some(_)) => {
                    self.record.broken += 1;
                    self.reopen(index)?;
                }
                // A server may close an idle connection whenever it likes.
                (_, None) => {
                    self.free.retain(|free| *free != index);
                    self.reopen(index)?;
                }
            }
        }
        Ok(())
    }

    fn drop_overdue_calls(&mut self) -> Result<()> {
        let now = Instant::now();
        if now < self.overdue_check {
            return Ok(());
        }
        self.overdue_check = now + MAX_SLEEP;
        for index in 0..self.connections.len() {
            if self.connections[index]
                .call
                .is_some_and(|(_, sent)| now - sent > TIME_OUT)
            {
                self.record.timed_out += 1;
                self.reopen(index)?;
            }
        }
        Ok(())
    }

    /// Replaces a connection that cannot be used any more; it must not be in the free list.
    fn reopen(&mut self, index: usize) -> Result<()> {
        self.connections[index] = SenderConnection::open(self.plan.target)?;
        self.free.push_back(index);
        Ok(())
    }
}

impl SenderConnection {
    fn open(target: SocketAddr) -> Result<Self> {
        let stream = client::connect(target)?;
        stream
            .set_nonblocking(true)
            .context("making a connection non-blocking")?;
        Ok(Self {
            stream,
            reader: ResponseReader::default(),
            call: None,
            free_since: Instant::now(),
        })
    }
}

/// Nanoseconds, as the histograms count, in microseconds.
pub fn microseconds(nanoseconds: u64) -> f64 {
    nanoseconds as f64 / 1e3
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
