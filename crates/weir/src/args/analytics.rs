//! Flags of `weir run` that are about analytics.

use crate::seconds::Seconds;
use clap::Args;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

/// Whether calls are counted, and where.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Analytics")]
pub struct AnalyticsArgs {
    /// Where counts of calls and the request log are kept: a folder, or a file FILE.db; `off`: nowhere [default:
    /// DIR/analytics of --data DIR; with --control, the control plane; else off].
    #[arg(long, value_name = "off|FOLDER|FILE", env = "WEIR_ANALYTICS")]
    pub analytics: Option<AnalyticsPlace>,
    /// How often counts are stored or delivered. Alert rules are evaluated every third time.
    #[arg(
        long,
        value_name = "SECONDS",
        env = "WEIR_ANALYTICS_INTERVAL",
        default_value = "10",
        value_parser = interval
    )]
    pub analytics_interval: Seconds,
}

/// A place, or none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AnalyticsPlace {
    /// Calls are not counted.
    Off,
    /// A folder or a file.
    At(PathBuf),
}

impl FromStr for AnalyticsPlace {
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
