//! What is started for the plugins: the API, one whose answers are pages, a Redis, and Weir with a route for each
//! plugin; a second Weir that writes an access log.

use std::ffi::OsString;
use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use super::cases::{Case, PLAIN, PLAIN_PAGE};
use super::{LEVEL, page};
use crate::bench::Bench;
use crate::client::{self, Header};
use crate::experiment::KEY;
use crate::gateway::StopSignal;
use crate::process::{Process, StartOptions, find_program, free_addresses};
use crate::upstream::{ResponseKind, Upstream};

/// How many networks `ip-restriction` has to look through.
const NETWORKS: u32 = 10_000;
/// Weir under an instrument starts slowly.
const START_LIMIT: Duration = Duration::from_secs(120);

/// What stands behind the gateways.
#[derive(Debug)]
pub struct RunContext {
    directory: PathBuf,
    /// The API.
    pub api: Upstream,
    pages: Upstream,
    redis: Option<(SocketAddr, Process)>,
}

/// A Weir that serves, until dropped.
#[derive(Debug)]
pub struct Gateway {
    /// Its proxy port.
    pub address: SocketAddr,
    /// Its process.
    pub process: Process,
}

impl RunContext {
    /// Starts all of it. Without a Redis the case that needs one is left out.
    ///
    /// # Errors
    /// A program is missing or does not come up.
    pub fn start(bench: &Bench, directory: &Path) -> Result<Self> {
        let start = |name: &str, bytes| bench.upstream(&directory.join(name), ResponseKind::Body(bytes));
        let page = page();
        let (api, pages) = (start("api", 1024)?, start("pages", page.len())?);
        // The same file, so that NGINX's open one has the page too.
        fs::write(directory.join("pages/body"), page).context("writing the page")?;
        Ok(Self {
            redis: start_redis(bench, directory)?,
            directory: directory.to_owned(),
            api,
            pages,
        })
    }

    /// Why a case cannot be measured here, if so.
    pub fn lacks(&self, case: &Case) -> Option<&'static str> {
        let needs_redis = case.plugins.contains("<redis_port>");
        (needs_redis && self.redis.is_none())
            .then_some("not found: redis-server (apt-get install redis-server)")
    }

    /// Starts Weir with these cases, perhaps under an instrument.
    ///
    /// # Errors
    /// It does not come up.
    pub fn gateway(
        &self,
        bench: &Bench,
        (name, cases): (&str, &[Case]),
        command: &[OsString],
        more: &[OsString],
    ) -> Result<Gateway> {
        let directory = self.directory.join(name);
        fs::create_dir(&directory).with_context(|| format!("creating {}", directory.display()))?;
        let file = directory.join("weir.yaml");
        fs::write(&file, self.configuration(cases, &directory)?).context("writing the configuration")?;
        let [address, status] = free_addresses()?;
        let flags = [
            OsString::from("run"),
            "-c".into(),
            file.into_os_string(),
            "--listen".into(),
            address.to_string().into(),
            "--status".into(),
            status.to_string().into(),
            "--workers".into(),
            "1".into(),
        ];
        let (program, instrument) = command.split_first().context("no program")?;
        let process = bench.supervisor.start(&StartOptions {
            program: Path::new(program),
            arguments: [instrument, &flags, more].concat(),
            environment: Vec::new(),
            cores: vec![bench.pinning.gateway],
            log: &directory.join("log"),
            stop: StopSignal::Term,
        })?;
        let mut gateway = Gateway { address, process };
        gateway.wait_until_ready(status)?;
        Ok(gateway)
    }

    /// A `weir.yaml` with a route for each case, and those without plugins.
    fn configuration(&self, cases: &[Case], directory: &Path) -> Result<String> {
        let folder = directory.to_str().context("a path that is not UTF-8")?;
        let networks: Vec<String> = (0..NETWORKS)
            .map(|at| format!("10.{}.{}.0/24", at / 256, at % 256))
            .collect();
        let redis_port = self.redis.as_ref().map_or(0, |(address, _)| address.port());
        let route = |name: &str, plugins: &str| {
            let plugins = plugins
                .replace("<networks>", &networks.join(", "))
                .replace("<redis_port>", &redis_port.to_string())
                .replace("<collector>", &self.api.address.to_string())
                .replace("<folder>", folder)
                .replace("<level>", &LEVEL.to_string());
            format!("      - {{name: {name:?}, paths: ['/{name}'], plugins: [{plugins}]}}\n")
        };
        let routes = |is_page: bool| -> String {
            let of_service = cases.iter().filter(|case| case.is_page() == is_page);
            of_service.map(|case| route(case.name, case.plugins)).collect()
        };
        let (api, pages) = (self.api.address, self.pages.address);
        Ok(format!(
            "weir: 1\nservices:\n  - name: api\n    url: http://{api}\n    routes:\n{}{}  - name: pages\n    \
             url: http://{pages}\n    routes:\n{}{}consumers:\n  - name: bench\n    labels: {{team: blue}}\n    \
             credentials: [{{key-auth: {{key: {KEY}}}}}, {{basic-auth: {{username: bench, password: {KEY}}}}}]\n",
            route(PLAIN, ""),
            routes(false),
            route(PLAIN_PAGE, ""),
            routes(true),
        ))
    }
}

/// The headers of every call, so that all routes get the same bytes.
pub fn headers() -> Vec<Header> {
    let basic = STANDARD.encode(format!("bench:{KEY}"));
    [
        ("apikey", KEY.to_owned()),
        ("Authorization", format!("Basic {basic}")),
        (
            "User-Agent",
            "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0".to_owned(),
        ),
        ("Accept-Encoding", "gzip".to_owned()),
        ("Origin", "https://app.example".to_owned()),
        ("Referer", "https://app.example/page".to_owned()),
        ("X-Forwarded-For", "203.0.113.7, 127.0.0.9".to_owned()),
    ]
    .into()
}

impl Gateway {
    fn wait_until_ready(&mut self, status: SocketAddr) -> Result<()> {
        let deadline = Instant::now() + START_LIMIT;
        while !client::get(status, "/status/ready", &[]).is_ok_and(|answer| answer.status == 200) {
            if self.process.ended()?.is_some() || Instant::now() > deadline {
                bail!("weir does not start:\n{}", self.process.last_words());
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(())
    }
}

fn start_redis(bench: &Bench, directory: &Path) -> Result<Option<(SocketAddr, Process)>> {
    let Some(program) = find_program("redis-server") else {
        return Ok(None);
    };
    let [address] = free_addresses()?;
    let port = address.port().to_string();
    let arguments = [
        "--port",
        &port,
        "--bind",
        "127.0.0.1",
        "--save",
        "",
        "--appendonly",
        "no",
    ];
    let mut process = bench.supervisor.start(&StartOptions {
        program: &program,
        arguments: arguments.map(OsString::from).into(),
        environment: Vec::new(),
        cores: vec![bench.pinning.upstream],
        log: &directory.join("redis.log"),
        stop: StopSignal::Term,
    })?;
    let deadline = Instant::now() + START_LIMIT;
    while client::connect(address).is_err() {
        if process.ended()?.is_some() || Instant::now() > deadline {
            bail!("redis-server does not start:\n{}", process.last_words());
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok(Some((address, process)))
}
