//! The gateway's own log: lines on standard error, as much as `WEIR_LOG` says, and the same lines for configurations that
//! have them sent elsewhere. It sends nothing itself.

use std::io::{self, IsTerminal, Write};
use std::sync::OnceLock;
use tracing::{Level, Metadata, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::fmt::{self, MakeWriter};
use tracing_subscriber::layer::{Context, Filter, SubscriberExt};
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::util::SubscriberInitExt;
use weir_plugin::GatewayLogLevel;
use weir_proxy::GatewayLogLines;

/// Receives lines once the gateway serves. What was written before is on standard error only.
static LINES: OnceLock<GatewayLogLines> = OnceLock::new();

/// Begins the log.
pub fn begin() {
    let filter = tracing_subscriber::EnvFilter::try_from_env("WEIR_LOG").unwrap_or_else(|_| "info".into());
    let to_stderr = fmt::layer()
        .with_writer(io::stderr)
        .with_ansi(io::stderr().is_terminal());
    // The one without colours first: both write what the first has made of spans.
    let is_taken = |level| LINES.get().is_some_and(|lines| lines.are_taken(level));
    // The filter of all outermost: what it leaves out costs the least then.
    tracing_subscriber::registry()
        .with(gateway_log_layer(is_taken))
        .with(to_stderr)
        .with(filter)
        .init();
}

/// Writes the lines that are handed over. A line that nothing takes is not even made.
fn gateway_log_layer<S>(is_taken: impl Fn(GatewayLogLevel) -> bool + Send + Sync + 'static) -> impl Layer<S>
where
    S: Subscriber + for<'s> LookupSpan<'s>,
{
    let layer = fmt::layer().with_writer(GatewayLogWriter).with_ansi(false);
    layer.with_filter(ActiveLevelFilter(is_taken))
}

/// Lets lines through that something takes at this moment: that changes with the configuration.
struct ActiveLevelFilter<T>(T);

impl<S, T: Fn(GatewayLogLevel) -> bool> Filter<S> for ActiveLevelFilter<T> {
    fn enabled(&self, of: &Metadata<'_>, _: &Context<'_, S>) -> bool {
        (self.0)(level(*of.level())) && !GatewayLogLines::is_about_sending(of.target())
    }
}

/// Hands lines over to a gateway from now on. The first gateway of the process gets them.
pub fn hand_over_to(lines: GatewayLogLines) {
    let _first = LINES.set(lines);
}

/// Makes writers that hand lines over.
struct GatewayLogWriter;

/// Takes one line.
struct Line(GatewayLogLevel);

impl<'w> MakeWriter<'w> for GatewayLogWriter {
    type Writer = Line;

    fn make_writer(&'w self) -> Line {
        Line(GatewayLogLevel::Info)
    }

    fn make_writer_for(&'w self, of: &Metadata<'_>) -> Line {
        Line(level(*of.level()))
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
        if let Some(lines) = LINES.get() {
            let text = String::from_utf8_lossy(line);
            lines.offer(self.0, text.trim_end());
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::{GatewayLogLevel, SubscriberExt, gateway_log_layer};
    use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

    /// Counts how often it is written.
    struct CountingValue<'c>(&'c AtomicUsize);

    impl std::fmt::Debug for CountingValue<'_> {
        fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            self.0.fetch_add(1, Relaxed);
            f.write_str("counted")
        }
    }

    #[test]
    fn lines_that_nothing_takes_are_not_made() {
        for (taken, expected) in [
            (None, 0),
            (Some(GatewayLogLevel::Error), 0),
            (Some(GatewayLogLevel::Warn), 1),
            (Some(GatewayLogLevel::Debug), 1),
        ] {
            let made = AtomicUsize::new(0);
            let layer = gateway_log_layer(move |level| taken.is_some_and(|taken| level <= taken));
            let subscriber = tracing_subscriber::registry().with(layer);
            tracing::subscriber::with_default(subscriber, || {
                tracing::warn!(value = ?CountingValue(&made), "a line");
                tracing::warn!(target: "weir_proxy::log_sinks", value = ?CountingValue(&made), "about sending");
            });
            assert_eq!(made.load(Relaxed), expected, "{taken:?}");
        }
    }
}
