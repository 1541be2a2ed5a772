//! Limits and what they count by, read from the configuration once.

use super::{Limit, LimitHeaders, Per, SummaryHeaders};
use crate::rate_key::Number;
use weir_flow::rate_limit::{Window, WindowLimit};
use weir_plugin::headers::FieldName;
use weir_plugin::{Exchange, Indeterminate};

/// A limit made ready for many calls.
pub(super) struct CompiledLimit {
    count: Number,
    window: WindowKind,
    pub(super) headers: Names,
}

/// The headers that describe a limit, if they are configured.
pub(super) struct Names {
    pub(super) limit: Option<FieldName>,
    pub(super) remaining: Option<FieldName>,
    pub(super) reset: Option<FieldName>,
    pub(super) retry_after: Option<FieldName>,
}

impl From<LimitHeaders> for Names {
    fn from(headers: LimitHeaders) -> Self {
        SummaryHeaders {
            limit: headers.limit,
            remaining: headers.remaining,
            reset: headers.reset,
            retry_after: None,
        }
        .into()
    }
}

impl From<SummaryHeaders> for Names {
    fn from(headers: SummaryHeaders) -> Self {
        let name = |name: Option<String>| name.and_then(|name| FieldName::new(&name));
        Self {
            limit: name(headers.limit),
            remaining: name(headers.remaining),
            reset: name(headers.reset),
            retry_after: name(headers.retry_after),
        }
    }
}

enum WindowKind {
    Fixed(Window),
    /// So many seconds from the first call.
    FromFirst(Number),
    /// The last so many seconds.
    Sliding(Number),
    /// So many seconds of the clock.
    Aligned(Number),
}

impl CompiledLimit {
    pub(super) fn new(limit: Limit) -> Self {
        let window = match limit.per {
            Per::Second => WindowKind::Fixed(Window::Second),
            Per::Minute => WindowKind::Fixed(Window::Minute),
            Per::Hour => WindowKind::Fixed(Window::Hour),
            Per::Day => WindowKind::Fixed(Window::Day),
            Per::Week => WindowKind::Fixed(Window::Week),
            Per::Month => WindowKind::Fixed(Window::Month),
            Per::Year => WindowKind::Fixed(Window::Year),
            Per::Seconds(amount) => WindowKind::FromFirst(Number::new(amount)),
            Per::SlidingSeconds(amount) => WindowKind::Sliding(Number::new(amount)),
            Per::ClockSeconds(amount) => WindowKind::Aligned(Number::new(amount)),
        };
        Self {
            count: Number::new(limit.count),
            window,
            headers: limit.headers.into(),
        }
    }

    pub(super) fn needs_body(&self) -> bool {
        let span = match &self.window {
            WindowKind::Fixed(_) => false,
            WindowKind::FromFirst(seconds) | WindowKind::Sliding(seconds) | WindowKind::Aligned(seconds) => {
                seconds.needs_body()
            }
        };
        span || self.count.needs_body()
    }

    /// Why the limit for this call cannot be believed.
    pub(super) fn indeterminate(&self, exchange: &Exchange) -> Option<Indeterminate> {
        let span = match &self.window {
            WindowKind::Fixed(_) => None,
            WindowKind::FromFirst(seconds) | WindowKind::Sliding(seconds) | WindowKind::Aligned(seconds) => {
                seconds.indeterminate(exchange)
            }
        };
        span.or_else(|| self.count.indeterminate(exchange))
    }

    /// The limit for this call; `None` if a variable has no usable value.
    pub(super) fn read(&self, exchange: &Exchange) -> Option<WindowLimit> {
        let count = self.count.read_positive(exchange)?;
        self.of(count, |seconds| seconds.read(exchange))
    }

    /// The limit, if it is the same for all calls.
    pub(super) fn fixed(&self) -> Option<WindowLimit> {
        self.of(self.count.fixed()?, Number::fixed)
    }

    fn of(&self, limit: u64, seconds: impl Fn(&Number) -> Option<u64>) -> Option<WindowLimit> {
        let milliseconds = |number: &Number| {
            let seconds = seconds(number).filter(|seconds| *seconds > 0)?;
            Some(seconds.saturating_mul(1_000))
        };
        Some(WindowLimit {
            limit,
            window: match &self.window {
                WindowKind::Fixed(window) => *window,
                WindowKind::FromFirst(seconds) => Window::FromFirst {
                    length_ms: milliseconds(seconds)?,
                },
                WindowKind::Aligned(seconds) => Window::Aligned {
                    length_ms: milliseconds(seconds)?,
                },
                WindowKind::Sliding(seconds) => Window::Sliding {
                    length_ms: milliseconds(seconds)?,
                },
            },
        })
    }
}

/// A day.
pub(super) const DAY_MS: u64 = 86_400_000;

/// The approximate length of a window, to compare two windows.
pub(super) fn length_ms(window: Window) -> u64 {
    match window {
        Window::Second => 1_000,
        Window::Minute => 60_000,
        Window::Hour => 3_600_000,
        Window::Day => DAY_MS,
        Window::Week => 7 * DAY_MS,
        Window::Month => 30 * DAY_MS,
        Window::Year => 365 * DAY_MS,
        Window::Aligned { length_ms } | Window::FromFirst { length_ms } | Window::Sliding { length_ms } => {
            length_ms
        }
    }
}
