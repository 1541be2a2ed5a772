//! The API behind the gateways: one NGINX process that gives the same body on every path.

use std::ffi::OsString;
use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::client;
use crate::gateway::Stop;
use crate::process::{Process, Start, Supervisor, find_program, free_addresses};
use crate::running::open_files;
use crate::template::{Values, render};

const START_LIMIT: Duration = Duration::from_secs(10);
/// The longest body that NGINX takes inside its configuration; longer ones are a file.
const MAX_INLINE_BODY: usize = 2048;

/// The API, serving until dropped.
#[derive(Debug)]
pub struct Upstream {
    /// Where it listens.
    pub address: SocketAddr,
    /// Its processes.
    pub process: Process,
}

impl Upstream {
    /// Starts it on `core` in the new directory `directory`, with answers of `body_bytes`.
    ///
    /// # Errors
    /// NGINX is missing or does not come up.
    pub fn start(directory: &Path, body_bytes: usize, core: usize, supervisor: &Supervisor) -> Result<Self> {
        let program = find_program("nginx").context("not found: nginx (apt-get install nginx)")?;
        fs::create_dir(directory).with_context(|| format!("creating {}", directory.display()))?;
        let dir = directory
            .to_str()
            .context("the temporary directory's name is not UTF-8")?;
        let [address] = free_addresses()?;
        let file = directory.join("api.conf");
        fs::write(&file, configuration(directory, address, body_bytes)?)
            .context("writing the upstream's configuration")?;
        let arguments = ["-e", "stderr", "-p", dir, "-g", "daemon off;", "-c"].map(OsString::from);
        let process = supervisor.start(&Start {
            program: &program,
            arguments: [&arguments[..], &[file.into_os_string()]].concat(),
            environment: Vec::new(),
            core,
            log: &directory.join("log"),
            stop: Stop::Term,
        })?;
        let mut upstream = Self { address, process };
        upstream.wait_until_ready(body_bytes)?;
        upstream.process.note_members();
        Ok(upstream)
    }

    fn wait_until_ready(&mut self, body_bytes: usize) -> Result<()> {
        let deadline = Instant::now() + START_LIMIT;
        loop {
            if let Ok(response) = client::get(self.address, "/", &[]) {
                if response.status == 200 && response.body.len() == body_bytes {
                    return Ok(());
                }
                bail!("the upstream answers wrongly: {}", response.summary());
            }
            if self.process.ended()?.is_some() || Instant::now() >= deadline {
                bail!("the upstream does not start:\n{}", self.process.last_words());
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

/// Its configuration; a long body is written into `directory`.
///
/// # Errors
/// The body cannot be written.
pub fn configuration(directory: &Path, address: SocketAddr, body_bytes: usize) -> Result<String> {
    let dir = directory.to_str().context("a path that is not UTF-8")?;
    let body = "x".repeat(body_bytes);
    let answer = match body_bytes {
        0 => "return 200 \"\";".to_owned(),
        1..=MAX_INLINE_BODY => format!("return 200 \"{body}\";"),
        _ => {
            fs::write(directory.join("body"), body).context("writing the upstream's body")?;
            format!("sendfile on; open_file_cache max=10; rewrite ^ /body break; root {dir};")
        }
    };
    let mut values = Values::default();
    values
        .text("dir", dir)
        .text("listen", address)
        .text("answer", answer)
        .text("open_files", open_files());
    render(include_str!("../upstream/api.conf"), &values)
}
