//! Writes down what the bench would start and ask for, so that everybody can read it and repeat it by hand: every
//! configuration of every gateway, and a script for each with fixed ports.

use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, bail};

use crate::bench::Options;
use crate::cores;
use crate::experiment::{EXPERIMENTS, Experiment, Load};
use crate::gateway::{self, Gateway, Listeners};
use crate::load::{self, Work, shell};
use crate::running::{self, InstanceLocation, open_files};
use crate::template::render;
use crate::terminal::note;
use crate::upstream;

const UPSTREAM_PORT: u16 = 1980;
const UPSTREAM_HTTP2_PORT: u16 = 1981;
const UPSTREAM_HTTPS_PORT: u16 = 1982;
const LISTEN_PORT: u16 = 9080;
const STATUS_PORT: u16 = 9081;

/// Writes everything below `folder`.
///
/// # Errors
/// The folder exists, or a file cannot be written.
pub fn run(options: &Options, folder: &Path) -> Result<bool> {
    let gateways = gateway::select(&options.known_gateways()?, &options.gateways)?;
    if folder.exists() {
        bail!("{} exists already", folder.display());
    }
    fs::create_dir_all(folder).with_context(|| format!("creating {}", folder.display()))?;
    let folder = folder.canonicalize().context("the folder's full name")?;
    let mut count = 0;
    for experiment in EXPERIMENTS
        .iter()
        .filter(|experiment| experiment.setup.routes <= 5_000)
    {
        for gateway in &gateways {
            if gateway.refuses(experiment).is_none() {
                write(options, experiment, gateway, &folder)?;
                count += 1;
            }
        }
    }
    note(&format!(
        "{count} configurations, each with by-hand.sh, in {}",
        folder.display()
    ))?;
    Ok(true)
}

fn write(options: &Options, experiment: &Experiment, gateway: &Gateway, folder: &Path) -> Result<()> {
    let directory = folder.join(experiment.id).join(&gateway.name);
    fs::create_dir_all(&directory).with_context(|| format!("creating {}", directory.display()))?;
    let address = |port| SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let apis = Listeners {
        http1: address(UPSTREAM_PORT),
        http2: address(UPSTREAM_HTTP2_PORT),
        https: address(UPSTREAM_HTTPS_PORT),
    };
    let place = InstanceLocation {
        directory: directory.clone(),
        listen: address(LISTEN_PORT),
        status: address(STATUS_PORT),
        upstream: gateway.upstream_for(experiment, &apis),
    };
    let program = gateway
        .find(&options.given())
        .unwrap_or_else(|_| gateway.program.clone().into());
    let values = running::values(experiment, &place, &program)?;
    let put = |path: &Path, text: String| {
        fs::write(path, text).with_context(|| format!("writing {}", path.display()))
    };
    let certificate = running::certificate_files(experiment, &directory)?;
    for (path, text) in running::configuration(gateway, &values, &directory)?
        .into_iter()
        .chain(certificate)
    {
        put(&path, text)?;
    }
    let upstream_folder = directory.join("upstream");
    fs::create_dir_all(&upstream_folder).context("creating the API's folder")?;
    let upstream_file = upstream_folder.join("api.conf");
    put(
        &upstream_file,
        upstream::configuration(&upstream_folder, apis, upstream::ResponseKind::of(experiment))?,
    )?;
    for (file, text) in load::files(experiment)? {
        let path = directory.join(file);
        fs::write(&path, text).with_context(|| format!("writing {}", path.display()))?;
    }
    let words = gateway
        .command(experiment)
        .map(|word| render(word, &values))
        .collect::<Result<Vec<_>>>()?;
    let (command, arguments) = words.split_first().context("no start command")?;
    let mut environment = String::new();
    for (name, value) in &gateway.environment {
        environment.push_str(&format!("{name}='{}' ", render(value, &values)?));
    }
    let text = by_hand(
        options,
        experiment,
        &place,
        &shell(command, arguments.iter()),
        &environment,
    );
    put(&directory.join("by-hand.sh"), text?)
}

fn by_hand(
    options: &Options,
    experiment: &Experiment,
    place: &InstanceLocation,
    gateway: &str,
    environment: &str,
) -> Result<String> {
    let pinning = cores::choose()?;
    let upstream = place.directory.join("upstream");
    let upstream = upstream.to_str().context("a path that is not UTF-8")?;
    let connections = options.connections.unwrap_or(experiment.connections);
    let load = match experiment.load {
        Load::Closed | Load::Rates(_) | Load::Handshakes => {
            let work = Work {
                target: place.listen,
                experiment,
                connections,
                duration: Duration::from_secs(options.duration.into()),
            };
            load::command(&work, &place.directory)
        }
        Load::Single => format!(
            "curl -s -o /dev/null -w '%{{time_total}}\\n' http://{}/hello",
            place.listen
        ),
    };
    Ok(format!(
        "#!/bin/sh\n\
         # {experiment}: {}. Ends what it started when it ends.\n\
         set -eu\n\
         ulimit -n {}\n\
         trap 'kill $gateway $upstream; wait' EXIT\n\
         taskset -c {} nginx -e stderr -p '{upstream}' -c '{upstream}/api.conf' -g 'daemon off;' & upstream=$!\n\
         {environment}taskset -c {} {gateway} & gateway=$!\n\
         sleep 3\n\
         ticks() {{ cat /proc/$gateway/stat $(for c in $(cat /proc/$gateway/task/*/children); do echo /proc/$c/stat; done) \
         | sed 's/.*) //' | awk '{{ sum += $12 + $13 }} END {{ print sum }}'; }}\n\
         before=$(ticks)\n\
         taskset -c {} {load}\n\
         echo \"CPU time of the gateway in clock ticks of $(getconf CLK_TCK) a second: $(($(ticks) - before))\"\n",
        experiment.title,
        open_files(),
        pinning.upstream,
        cores::list(&pinning.gateway_cores(experiment.setup.workers)),
        pinning.load,
    ))
}
