//! A gateway that runs: started with one worker on its core, ready, and proven by probe calls to do what the experiment
//! needs before anything is measured.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::client;
use crate::experiment::{Experiment, Probe};
use crate::gateway::{Gateway, Place, Ready};
use crate::process::{Process, Supervisor};
use crate::template::render;

/// How long a gateway may take to be ready: 100,000 routes have to be read.
const START_LIMIT: Duration = Duration::from_secs(120);

/// A gateway that serves.
#[derive(Debug)]
pub struct Running {
    /// What it is.
    pub gateway: &'static Gateway,
    /// Where it lives.
    pub place: Place,
    /// Its configuration file.
    pub configuration: PathBuf,
    /// Its processes.
    pub process: Process,
}

/// Starts `gateway` for `experiment` on `core` and waits until it is ready.
///
/// # Errors
/// It ends, or is not ready in time; with the last lines that it wrote.
pub fn start(
    gateway: &'static Gateway,
    program: &Path,
    experiment: &Experiment,
    place: Place,
    core: usize,
    supervisor: &Supervisor,
) -> Result<Running> {
    let configuration = place.directory.join(gateway.file);
    let text = gateway.configuration(experiment, &place)?;
    fs::write(&configuration, text).with_context(|| format!("writing {}", configuration.display()))?;
    let config = configuration
        .to_str()
        .context("the temporary directory's name is not UTF-8")?;
    let (listen, status) = (place.listen.to_string(), place.status.to_string());
    let values = [
        ("dir", place.directory_text()?),
        ("config", config),
        ("listen", listen.as_str()),
        ("status", status.as_str()),
    ];
    let rendered = gateway
        .arguments
        .iter()
        .map(|argument| render(argument, &values, 0).map(OsString::from));
    let arguments = rendered.collect::<Result<Vec<OsString>>>()?;
    let process = supervisor.start(program, &arguments, core, &place.directory.join("log"))?;
    let mut running = Running {
        gateway,
        place,
        configuration,
        process,
    };
    running.wait_until_ready()?;
    running.process.note_members();
    Ok(running)
}

impl Running {
    fn wait_until_ready(&mut self) -> Result<()> {
        let deadline = Instant::now() + START_LIMIT;
        loop {
            let answer = match self.gateway.ready {
                Ready::Listen => client::get(self.place.listen, "/", &[]),
                Ready::Status(path) => client::get(self.place.status, path, &[]),
            };
            match (answer, self.gateway.ready) {
                (Ok(_), Ready::Listen) => return Ok(()),
                (Ok(response), Ready::Status(_)) if response.status == 200 => return Ok(()),
                _ => {}
            }
            if let Some(status) = self.process.ended()? {
                bail!(
                    "it ended while starting ({status}):\n{}",
                    self.process.last_words()
                );
            }
            if Instant::now() >= deadline {
                bail!(
                    "not ready after {} s:\n{}",
                    START_LIMIT.as_secs(),
                    self.process.last_words()
                );
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Asks the probe calls of `experiment` and checks every answer.
    ///
    /// # Errors
    /// An answer is not what the experiment needs; it is shown.
    pub fn probe(&self, experiment: &Experiment) -> Result<()> {
        let mut probes = experiment.accepted();
        if self.gateway.enforces {
            probes.extend(experiment.refused());
        }
        for probe in probes {
            self.check(experiment, &probe)
                .with_context(|| format!("probe refused, {}: GET {}", probe.what, probe.path))?;
        }
        Ok(())
    }

    fn check(&self, experiment: &Experiment, probe: &Probe) -> Result<()> {
        let response = client::get(self.place.listen, &probe.path, &probe.headers)?;
        let whole = probe.status != 200 || response.body.len() == experiment.body_bytes;
        if response.status != probe.status || !whole {
            let expected = match probe.status {
                200 => format!("status 200 with a body of {} bytes", experiment.body_bytes),
                status => format!("status {status}"),
            };
            bail!("expected {expected}, got {}", response.summary());
        }
        if let Some(mark) = experiment.mark()
            && self.gateway.enforces
            && probe.status == 200
            && !response.has_header_like(mark)
        {
            bail!("no header like {mark} in\n{}", response.head.trim_end());
        }
        Ok(())
    }
}
