//! Flags of `weir run` that are about analytics.

use crate::seconds::Seconds;
use clap::Args;
use std::convert::Infallible;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;
use weir_analytics::privacy::{self, Addresses, HiddenFields, MAX_HEADERS, Privacy};
use weir_control::analytics::clickhouse::ClickhouseServer;

/// Whether calls are counted, and where.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Analytics")]
pub struct AnalyticsArgs {
    /// Where to store counts of calls and the request log: a folder, or a file FILE.db; `off` stores nothing [default:
    /// DIR/analytics with --data DIR; the control plane with --control; else off].
    #[arg(long, value_name = "off|FOLDER|FILE", env = "WEIR_ANALYTICS")]
    pub analytics: Option<AnalyticsLocation>,
    /// Store counts in ClickHouse instead of a file: `clickhouse://[USER@]HOST[:PORT]/DATABASE`, with `?tls=required`
    /// for TLS.
    #[arg(
        long,
        value_name = "URL",
        env = "WEIR_ANALYTICS_STORE",
        hide_env_values = true,
        value_parser = store
    )]
    pub analytics_store: Option<StoreUrl>,
    /// A file with the password for --analytics-store.
    #[arg(
        long,
        value_name = "FILE",
        env = "WEIR_ANALYTICS_STORE_PASSWORD_FILE",
        requires = "analytics_store"
    )]
    pub analytics_store_password_file: Option<PathBuf>,
    /// Seconds between two times that counts are stored or delivered. Alert rules are evaluated every third time.
    #[arg(
        long,
        value_name = "SECONDS",
        env = "WEIR_ANALYTICS_INTERVAL",
        default_value = "10",
        value_parser = interval
    )]
    pub analytics_interval: Seconds,
    /// How to store addresses of clients: cut to their network, as a hash whose key is never stored, or not at all.
    #[arg(
        long,
        value_name = "network|hash|off",
        env = "WEIR_ANALYTICS_ADDRESSES",
        default_value = "network",
        value_parser = privacy::addresses
    )]
    pub analytics_addresses: Addresses,
    /// Request headers to record in the request log, separated by commas. Do not name headers that hold secrets.
    #[arg(
        long,
        value_name = "NAME,…",
        env = "WEIR_ANALYTICS_HEADERS",
        value_delimiter = ',',
        value_parser = privacy::header
    )]
    pub analytics_headers: Vec<String>,
    /// What not to store: `consumers`, `clients` (networks, user agents, unmatched paths) or `calls` (the request log).
    /// `prod:consumers` applies to one environment. Separate several with commas.
    #[arg(
        long,
        value_name = "[ENV:]WHAT",
        env = "WEIR_ANALYTICS_WITHOUT",
        value_delimiter = ',',
        value_parser = privacy::hidden
    )]
    pub analytics_without: Vec<(String, HiddenFields)>,
}

impl AnalyticsArgs {
    /// The data about callers and clients that is kept.
    pub fn privacy(&self) -> Privacy {
        let mut headers = self.analytics_headers.clone();
        headers.sort();
        headers.dedup();
        headers.truncate(MAX_HEADERS);
        Privacy {
            addresses: self.analytics_addresses,
            headers,
            ..self.analytics_without.iter().cloned().collect()
        }
    }
}

/// A server, or what is wrong with its URL. The flag parser would print the URL in its error, and it may hold a
/// password.
pub type StoreUrl = Result<ClickhouseServer, String>;

fn store(url: &str) -> Result<StoreUrl, Infallible> {
    Ok(ClickhouseServer::read(url))
}

/// A place, or none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AnalyticsLocation {
    /// Calls are not counted.
    Off,
    /// A folder or a file.
    At(PathBuf),
}

impl FromStr for AnalyticsLocation {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "" => Err("expected 'off', a folder, or a file FILE.db".to_owned()),
            "off" => Ok(Self::Off),
            path => Ok(Self::At(path.into())),
        }
    }
}

fn interval(text: &str) -> Result<Seconds, String> {
    let seconds: Seconds = text.parse()?;
    match (Duration::from_secs(1)..=Duration::from_secs(60)).contains(&seconds.0) {
        true => Ok(seconds),
        false => Err("expected 1 to 60 seconds".to_owned()),
    }
}
