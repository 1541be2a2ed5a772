//! The gateway's own log: lines on standard error, as much as `WEIR_LOG` says, and the same lines for configurations that
//! have them sent elsewhere. It sends nothing itself.

use std::io::{self, IsTerminal, Write};
use std::sync::OnceLock;
use tracing::{Level, Metadata};
use tracing_subscriber::fmt::{self, MakeWriter};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use weir_plugin::GatewayLogLevel;
use weir_proxy::GatewayLogLines;

/// Where lines are handed over once the gateway serves. What was written before is on standard error only.
static LINES: OnceLock<GatewayLogLines> = OnceLock::new();

/// Begins the log.
pub fn begin() {
    let filter = tracing_subscriber::EnvFilter::try_from_env("WEIR_LOG").unwrap_or_else(|_| "info".into());
    let to_stderr = fmt::layer()
        .with_writer(io::stderr)
        .with_ansi(io::stderr().is_terminal());
    // The one without colours first: both write what the first has made of spans.
    tracing_subscriber::registry()
        .with(filter)
        .with(fmt::layer().with_writer(HandedOver).with_ansi(false))
        .with(to_stderr)
        .init();
}

/// Hands lines over to a gateway from now on. The first gateway of the process gets them.
pub fn hand_over_to(lines: GatewayLogLines) {
    let _first = LINES.set(lines);
}

/// Makes writers that hand lines over.
struct HandedOver;

/// Takes one line; `None`: it is not handed over.
struct Line(Option<GatewayLogLevel>);

impl<'w> MakeWriter<'w> for HandedOver {
    type Writer = Line;

    fn make_writer(&'w self) -> Line {
        Line(Some(GatewayLogLevel::Info))
    }

    fn make_writer_for(&'w self, of: &Metadata<'_>) -> Line {
        let is_sent = !GatewayLogLines::is_about_sending(of.target());
        Line(is_sent.then(|| level(*of.level())))
    }
}

fn level(level: Level) -> GatewayLogLevel {
    match level {
        Level::ERROR => GatewayLogLevel::Error,
        Level::WARN => GatewayLogLevel::Warn,
        Level::INFO => GatewayLogLevel::Info,
        _ => GatewayLogLevel::Debug,
    }
}

impl Write for Line {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        if let (Some(level), Some(lines)) = (self.0, LINES.get()) {
            let text = String::from_utf8_lossy(line);
            lines.offer(level, text.trim_end());
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
