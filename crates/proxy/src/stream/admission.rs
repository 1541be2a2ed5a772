//! Asking a route's plugins whether a session may go on.

use super::report::SessionRecord;
use crate::client::Addresses;
use crate::worker::Worker;
use std::sync::Arc;
use weir_plugin::{Exchange, Outcome, RedisCommand, Suspend};
use weir_snapshot::{Chain, Forward, Snapshot, StreamRoute};

/// The plugins of a session, with the values that they keep for as long as it lives, such as its place among those that
/// may be open.
pub struct SessionPlugins {
    pub exchange: Box<Exchange>,
    pub chain: Arc<Chain>,
}

/// That a plugin has refused the session.
pub struct SessionRefused;

/// Asks the plugins of a route in order. The report keeps them, as those that log are needed when the session is over.
pub async fn ask(
    worker: &Worker,
    route: &StreamRoute,
    addresses: Addresses,
    is_tls: bool,
    report: &mut SessionRecord,
) -> Result<(), SessionRefused> {
    if !route.chain.has_request_work && route.chain.log_steps.is_empty() {
        return Ok(());
    }
    let mut exchange = worker.acquire_exchange();
    let request = &mut exchange.request;
    request.peer = addresses.peer;
    request.client = addresses.peer.ip();
    request.local = addresses.local;
    request.is_tls = is_tls;
    request.sni.clone_from(&report.server_name);
    exchange.route = Some(Arc::clone(&route.facts));
    let chain = Arc::clone(&route.chain);
    let plugins = report.plugins.insert(SessionPlugins { exchange, chain });
    let exchange = &mut *plugins.exchange;
    for step in route.chain.steps.iter().filter(|step| !step.response_only) {
        let Some(instance) = step.instance(None) else {
            continue;
        };
        let applies = instance.when.as_ref().is_none_or(|when| when.holds(exchange));
        if !applies || !instance.phases.request {
            continue;
        }
        loop {
            match instance.filter.on_request(exchange) {
                Outcome::Continue => break,
                Outcome::Delay(time) => {
                    tokio::time::sleep(time).await;
                    break;
                }
                Outcome::Suspend(wait) => wait_for(wait).await,
                Outcome::Redis(work) => match *work {
                    RedisCommand::Run(call) => {
                        // In a place of its own, as sessions that ask nothing need no room for it.
                        exchange.redis = Some(Box::pin(worker.run_script(call)).await);
                    }
                    RedisCommand::Settle(ledger, refusal) => {
                        worker.redis.flush(ledger);
                        match refusal {
                            None => break,
                            Some(_) => return Err(SessionRefused),
                        }
                    }
                },
                // There is nothing to answer with, and no body. Who else is asked is for calls.
                Outcome::Refuse(_)
                | Outcome::Reply(_)
                | Outcome::Subrequest(_)
                | Outcome::Converse(_)
                | Outcome::Publish(_)
                | Outcome::Kafka(_)
                | Outcome::NeedBody { .. }
                | Outcome::NeedBodyStart { .. } => {
                    return Err(SessionRefused);
                }
            }
        }
    }
    Ok(())
}

/// Where a session goes: where a plugin has sent it, or else to its route's own service; `None`: nowhere.
pub fn forward_of<'s>(
    snapshot: &'s Snapshot,
    route: &'s StreamRoute,
    report: &SessionRecord,
) -> Option<&'s Forward> {
    let chosen = report.plugins.as_ref().and_then(|it| it.exchange.destination);
    match chosen {
        Some(destination) => snapshot.destinations.get(destination.0 as usize),
        None => route.forward.as_ref(),
    }
}

async fn wait_for(wait: Suspend) {
    match wait.event {
        Some(event) => {
            // Whether it came or time is up, the plugin is called again and sees for itself.
            let _is_in_time = tokio::time::timeout(wait.at_most, event).await;
        }
        None => tokio::time::sleep(wait.at_most).await,
    }
}
