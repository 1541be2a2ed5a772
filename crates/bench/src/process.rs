//! Starts and ends the programs of a run, so that none outlives it: not on an error, not on Ctrl-C, and not even when
//! the bench itself is killed (the kernel then ends each of them).

use std::ffi::OsString;
use std::fs::{self, File};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use rustix::process::{Pid, Signal, kill_process};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use crate::cores;
use crate::gateway::StopSignal;
use crate::procfs::{self, Identity};

/// How long a program may take to end after SIGTERM before it is killed.
const GRACE: Duration = Duration::from_secs(5);
const POLL: Duration = Duration::from_millis(10);

/// Knows every program that runs and every directory to remove.
#[derive(Debug, Clone, Default)]
pub struct Supervisor {
    inner: Arc<Mutex<Inner>>,
}

#[derive(Debug, Default)]
struct Inner {
    stopping: bool,
    running: Vec<Identity>,
    directories: Vec<PathBuf>,
}

impl Supervisor {
    /// Ends everything and exits with 130 when SIGINT, SIGTERM or SIGHUP arrives.
    ///
    /// # Errors
    /// The signal handlers cannot be installed.
    pub fn stop_on_signals(&self) -> Result<()> {
        let mut signals = signal_hook::iterator::Signals::new([SIGINT, SIGTERM, SIGHUP])
            .context("installing the signal handlers")?;
        let supervisor = self.clone();
        thread::Builder::new()
            .name("signals".to_owned())
            .spawn(move || {
                if signals.forever().next().is_some() {
                    eprintln!("stopped: ending what was started");
                    supervisor.stop_all();
                    std::process::exit(130);
                }
            })
            .context("starting the signal thread")?;
        Ok(())
    }

    /// A new directory below the system's temporary one, removed when dropped and on a signal. Programs that give up
    /// their privileges must be able to enter it.
    ///
    /// # Errors
    /// It cannot be created.
    pub fn directory(&self) -> Result<tempfile::TempDir> {
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        let directory = tempfile::Builder::new()
            .prefix("weir-bench-")
            .permissions(mode)
            .tempdir()
            .context("creating a temporary directory")?;
        self.lock().directories.push(directory.path().to_owned());
        Ok(directory)
    }

    /// Starts a program, with both its outputs in its log.
    ///
    /// # Errors
    /// It cannot be started.
    pub fn start(&self, start: &StartOptions<'_>) -> Result<Process> {
        let output = File::create(start.log).with_context(|| format!("creating {}", start.log.display()))?;
        let errors = output.try_clone().context("sharing the log file")?;
        let mut command = Command::new("setpriv");
        command
            .args(["--pdeathsig", "TERM", "taskset", "-c"])
            .arg(cores::list(&start.cores))
            .arg(start.program)
            .args(&start.arguments)
            .envs(start.environment.iter().cloned())
            // Its own group: Ctrl-C in a terminal reaches the bench alone, which then ends the others in order.
            .process_group(0)
            .stdin(Stdio::null())
            .stdout(output)
            .stderr(errors);
        let mut inner = self.lock();
        if inner.stopping {
            drop(inner);
            wait_for_exit();
        }
        let child = command
            .spawn()
            .context("starting setpriv and taskset (apt-get install util-linux)")?;
        let identity = Identity::of(child.id()).context("the program ended at once")?;
        inner.running.push(identity);
        Ok(Process {
            child,
            identity,
            members: Vec::new(),
            log: start.log.to_owned(),
            stop: match start.stop {
                StopSignal::Term => Signal::TERM,
                StopSignal::Quit => Signal::QUIT,
            },
            supervisor: self.clone(),
        })
    }

    fn stop_all(&self) {
        let (running, directories) = {
            let mut inner = self.lock();
            inner.stopping = true;
            (inner.running.clone(), inner.directories.clone())
        };
        let members: Vec<Identity> = running.iter().flat_map(|root| members(root.pid)).collect();
        for root in &running {
            signal(*root, Signal::TERM);
        }
        let deadline = Instant::now() + GRACE;
        while members.iter().any(|member| member.is_alive()) && Instant::now() < deadline {
            thread::sleep(POLL);
        }
        for member in members {
            signal(member, Signal::KILL);
        }
        for directory in directories {
            let _ = fs::remove_dir_all(directory);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How a program is started.
#[derive(Debug)]
pub struct StartOptions<'a> {
    /// The program.
    pub program: &'a Path,
    /// Its arguments.
    pub arguments: Vec<OsString>,
    /// Its environment in addition to that of the bench.
    pub environment: Vec<(String, String)>,
    /// The cores that it may use.
    pub cores: Vec<usize>,
    /// The file for its outputs.
    pub log: &'a Path,
    /// The signal that ends it.
    pub stop: StopSignal,
}

/// A running program; it ends when dropped.
#[derive(Debug)]
pub struct Process {
    child: Child,
    identity: Identity,
    members: Vec<Identity>,
    log: PathBuf,
    stop: Signal,
    supervisor: Supervisor,
}

impl Process {
    /// Process id of the program itself.
    pub fn pid(&self) -> u32 {
        self.identity.pid
    }

    /// Remembers the worker processes that run now, so that they are ended even if their parent is killed.
    pub fn note_members(&mut self) {
        self.members = members(self.pid());
    }

    /// The end of what it wrote, for an error message.
    pub fn last_words(&self) -> String {
        let text = fs::read(&self.log).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
        match lines.len() {
            0 => "it wrote nothing".to_owned(),
            count => lines[count.saturating_sub(8)..].join("\n"),
        }
    }

    /// Everything that it wrote.
    ///
    /// # Errors
    /// The log file cannot be read.
    pub fn output(&self) -> Result<String> {
        let text = fs::read(&self.log).with_context(|| format!("reading {}", self.log.display()))?;
        Ok(String::from_utf8_lossy(&text).into_owned())
    }

    /// Its exit status if it has ended.
    ///
    /// # Errors
    /// If the operating system cannot say.
    pub fn ended(&mut self) -> Result<Option<ExitStatus>> {
        if self.supervisor.lock().stopping {
            wait_for_exit();
        }
        self.child.try_wait().context("waiting for a program")
    }

    /// Waits until it ends by itself.
    ///
    /// # Errors
    /// It has not ended after `limit`.
    pub fn wait(&mut self, limit: Duration) -> Result<ExitStatus> {
        let deadline = Instant::now() + limit;
        loop {
            if let Some(status) = self.ended()? {
                return Ok(status);
            }
            if Instant::now() >= deadline {
                bail!("it still ran after {} s", limit.as_secs());
            }
            thread::sleep(POLL);
        }
    }

    fn stop(&mut self) {
        let mut all = members(self.pid());
        all.append(&mut self.members);
        signal(self.identity, self.stop);
        let deadline = Instant::now() + GRACE;
        while matches!(self.child.try_wait(), Ok(None)) && Instant::now() < deadline {
            thread::sleep(POLL);
        }
        for member in all {
            signal(member, Signal::KILL);
        }
        let _ = self.child.wait();
        self.supervisor
            .lock()
            .running
            .retain(|identity| *identity != self.identity);
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.stop();
    }
}

fn members(root: u32) -> Vec<Identity> {
    procfs::tree(root).into_iter().filter_map(Identity::of).collect()
}

fn signal(process: Identity, signal: Signal) {
    if process.is_alive()
        && let Some(pid) = i32::try_from(process.pid).ok().and_then(Pid::from_raw)
    {
        let _ = kill_process(pid, signal);
    }
}

/// The signal thread is ending everything and exits the process: nothing else may start or be reported now.
fn wait_for_exit() -> ! {
    loop {
        thread::park();
    }
}

/// As many different free loopback ports as asked for.
///
/// # Errors
/// No port is free.
pub fn free_addresses<const N: usize>() -> Result<[SocketAddr; N]> {
    // All are held until all are known; each is different for that reason.
    let mut held = Vec::with_capacity(N);
    for _ in 0..N {
        held.push(TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("looking for a free port")?);
    }
    let mut addresses = [SocketAddr::from((Ipv4Addr::LOCALHOST, 0)); N];
    for (address, listener) in addresses.iter_mut().zip(&held) {
        *address = listener.local_addr().context("reading a free port")?;
    }
    Ok(addresses)
}

/// Finds a program by name in `PATH`.
pub fn find_program(name: &str) -> Option<PathBuf> {
    // Debian keeps servers in folders that an ordinary user's PATH does not name.
    let path = std::env::var_os("PATH").unwrap_or_default();
    let directories = std::env::split_paths(&path).chain(["/usr/sbin".into(), "/usr/local/sbin".into()]);
    directories
        .map(|directory| directory.join(name))
        .find(|file| is_executable(file))
}

fn is_executable(file: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    fs::metadata(file).is_ok_and(|metadata| metadata.is_file() && metadata.permissions().mode() & 0o111 != 0)
}
