//! Scripts that filters have a Redis run: the part of it that waits for the client, too. Connections to servers are in
//! [`crate::redis`].

use crate::outcome::ShortCircuit;
use crate::serve::RequestContext;
use crate::worker::Worker;
use std::task::Poll;
use weir_plugin::{RedisCall, RedisResponse};

impl Worker {
    /// Runs a script. `None`: there is no answer.
    pub async fn run_script(&self, call: RedisCall) -> Option<RedisResponse> {
        self.redis.run_script(call).await
    }
}

impl RequestContext<'_> {
    /// Runs a script for a filter, as long as the client waits. `None`: there is no answer.
    pub async fn run_script(&mut self, call: RedisCall) -> Result<Option<RedisResponse>, ShortCircuit> {
        let (client, worker) = (&mut *self.client, self.worker);
        let mut answer = std::pin::pin!(worker.run_script(call));
        std::future::poll_fn(|context| match answer.as_mut().poll(context) {
            Poll::Ready(answer) => Poll::Ready(Ok(answer)),
            Poll::Pending => client
                .reader
                .poll_closed(context, &worker.runtime)
                .map(|()| Err(ShortCircuit::Gone)),
        })
        .await
    }
}
