//! A plugin that does what its configuration says, to reach the engine's work for filters.

use serde_json::Value;
use std::sync::Arc;
use weir_model::Diagnostic;
use weir_plugin::{BuildContext, Exchange, Filter, Outcome, Phases, Plugin, Reply};

/// `need_body` (bytes): asks for the body, tells its size in a request header. `reply`: answers with this
/// body. `replace`: puts this body in place of the response's. `status`: the response's status. `set`: sets these
/// headers (name, value) on the request and on the response.
pub struct Puppet;

struct PuppetFilter {
    need_body: Option<usize>,
    reply: Option<String>,
    replace: Option<String>,
    status: Option<u16>,
    set: Vec<(String, String)>,
}

impl Plugin for Puppet {
    fn name(&self) -> &'static str {
        "puppet"
    }

    fn config_schema(&self) -> schemars::Schema {
        schemars::Schema::default()
    }

    fn build(&self, config: &Value, _: &BuildContext<'_>) -> Result<Arc<dyn Filter>, Vec<Diagnostic>> {
        let text = |name: &str| config[name].as_str().map(str::to_owned);
        let need_body = config["need_body"].as_u64().map(|bytes| bytes as usize);
        Ok(Arc::new(PuppetFilter {
            need_body,
            reply: text("reply"),
            replace: text("replace"),
            status: config["status"].as_u64().map(|status| status as u16),
            set: serde_json::from_value(config["set"].clone()).unwrap_or_default(),
        }))
    }
}

impl Filter for PuppetFilter {
    fn phases(&self) -> Phases {
        Phases::BOTH
    }

    fn on_request(&self, exchange: &mut Exchange) -> Outcome {
        for (name, value) in &self.set {
            exchange.request.headers.set(name.as_bytes(), value.as_bytes());
        }
        if let Some(body) = &self.reply {
            return Outcome::Reply(Box::new(Reply::new(200, "text/plain", body.as_str())));
        }
        let Some(max_bytes) = self.need_body else {
            return Outcome::Continue;
        };
        // A header of its own remembers that the engine was asked once.
        if !exchange.request.headers.contains(b"x-asked") {
            exchange.request.headers.append(b"X-Asked", b"1");
            return Outcome::NeedBody { max_bytes };
        }
        let seen = exchange
            .request
            .body
            .as_ref()
            .map_or("none".to_owned(), |body| body.len().to_string());
        exchange.request.headers.append(b"X-Body-Seen", seen.as_bytes());
        Outcome::Continue
    }

    fn on_response(&self, exchange: &mut Exchange) {
        for (name, value) in &self.set {
            exchange.response.headers.set(name.as_bytes(), value.as_bytes());
        }
        if let Some(status) = self.status {
            exchange.response.status = status;
        }
        if let Some(body) = &self.replace {
            exchange.response.replaced_body = Some(body.clone().into_bytes());
        }
    }
}
