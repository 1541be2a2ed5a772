//! Limits and what they count by, read from the configuration once.

use super::{Amount, CountBy, Limit, LimitHeaders, Per};
use weir_flow::rate_limit::{Window, WindowLimit};
use weir_plugin::{Exchange, Template};

/// A limit made ready for many calls.
pub(super) struct CompiledLimit {
    count: Number,
    window: Span,
    pub(super) headers: LimitHeaders,
}

enum Number {
    Fixed(u64),
    PerCall(Template),
}

enum Span {
    Fixed(Window),
    /// So many seconds from the first call.
    PerCall(Template),
}

/// What is counted by, with names as the request has them.
pub(super) enum Key {
    Ip,
    Consumer,
    Credential,
    Service,
    Route,
    Everybody,
    Header(Vec<u8>),
    Path(Vec<u8>),
    Variables(Template),
}

impl Key {
    pub(super) fn new(by: CountBy) -> Self {
        match by {
            CountBy::Ip => Self::Ip,
            CountBy::Consumer => Self::Consumer,
            CountBy::Credential => Self::Credential,
            CountBy::Service => Self::Service,
            CountBy::Route => Self::Route,
            CountBy::Everybody => Self::Everybody,
            CountBy::Header(name) => Self::Header(name.into_bytes()),
            CountBy::Path(path) => Self::Path(path.into_bytes()),
            CountBy::Template(text) if text == "$remote_addr" || text == "${remote_addr}" => Self::Ip,
            CountBy::Template(text) => Self::Variables(Template::parse(&text)),
        }
    }

    pub(super) fn needs_body(&self) -> bool {
        matches!(self, Self::Variables(template) if template.needs_body())
    }
}

impl CompiledLimit {
    pub(super) fn new(limit: Limit) -> Self {
        let window = match limit.per {
            Per::Second => Span::Fixed(Window::Second),
            Per::Minute => Span::Fixed(Window::Minute),
            Per::Hour => Span::Fixed(Window::Hour),
            Per::Day => Span::Fixed(Window::Day),
            Per::Month => Span::Fixed(Window::Month),
            Per::Year => Span::Fixed(Window::Year),
            Per::Seconds(Amount::Number(seconds)) => Span::Fixed(from_first(seconds)),
            Per::Seconds(Amount::Template(text)) => Span::PerCall(Template::parse(&text)),
        };
        Self {
            count: match limit.count {
                Amount::Number(count) => Number::Fixed(count),
                Amount::Template(text) => Number::PerCall(Template::parse(&text)),
            },
            window,
            headers: limit.headers,
        }
    }

    pub(super) fn needs_body(&self) -> bool {
        matches!(&self.count, Number::PerCall(template) if template.needs_body())
            || matches!(&self.window, Span::PerCall(template) if template.needs_body())
    }

    /// The limit for this call; `None` where a variable has no good value.
    pub(super) fn read(&self, exchange: &Exchange) -> Option<WindowLimit> {
        Some(WindowLimit {
            limit: match &self.count {
                Number::Fixed(count) => *count,
                Number::PerCall(template) => number(template, exchange)?,
            },
            window: match &self.window {
                Span::Fixed(window) => *window,
                Span::PerCall(template) => from_first(number(template, exchange).filter(|it| *it > 0)?),
            },
        })
    }
}

fn number(template: &Template, exchange: &Exchange) -> Option<u64> {
    let mut text = Vec::new();
    template.render(exchange, &mut text);
    std::str::from_utf8(&text).ok()?.trim().parse().ok()
}

fn from_first(seconds: u64) -> Window {
    Window::FromFirst {
        length_ms: seconds.saturating_mul(1_000),
    }
}

/// About how long a window is, to tell the longer of two.
pub(super) fn length_ms(window: Window) -> u64 {
    const DAY: u64 = 86_400_000;
    match window {
        Window::Second => 1_000,
        Window::Minute => 60_000,
        Window::Hour => 3_600_000,
        Window::Day => DAY,
        Window::Month => 30 * DAY,
        Window::Year => 365 * DAY,
        Window::FromFirst { length_ms } => length_ms,
    }
}
