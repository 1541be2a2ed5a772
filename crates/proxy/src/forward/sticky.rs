//! Sticky sessions: a client's cookie names the target that its calls go to. The cookie is set when another target has
//! answered than the one it names.

use super::ForwardPlan;
use super::cookie::StickyCookie;
use crate::serve::RequestContext;
use weir_snapshot::{StickySessions, Upstream};

fn sticky(upstream: &Upstream) -> Option<&StickySessions> {
    upstream.traffic.as_ref()?.sticky.as_ref()
}

impl RequestContext<'_> {
    /// The target that the client's cookie names; one of weight 0, too, which gets no new clients.
    #[inline]
    pub(super) fn sticky_target(&self, upstream: &Upstream) -> Option<usize> {
        let sticky = sticky(upstream)?;
        let mut values = self.exchange.request.cookies(&sticky.cookie);
        values.find_map(|value| sticky.target(value))
    }

    /// Names the target that has answered, unless the client's cookie names it.
    #[inline]
    pub(super) fn keep_sticky(&mut self, plan: &ForwardPlan<'_>) {
        let Some(sticky) = sticky(plan.upstream) else {
            return;
        };
        let answered = self.report.target.map(|(_, index)| index);
        if answered == plan.sticky {
            return;
        }
        let Some(value) = answered.and_then(|index| sticky.values.get(index)) else {
            return;
        };
        let mut line = sticky.cookie.clone();
        line.push(b'=');
        let name_len = line.len();
        line.extend_from_slice(value);
        line.extend_from_slice(&sticky.attributes);
        let cookie = StickyCookie { line, name_len };
        cookie.replace_in(&mut self.exchange.response.headers);
        self.exchange.response_headers.append(b"Set-Cookie", &cookie.line);
    }
}
