//! Running a chain: the request work of its filters before a call is forwarded, the response work after.

use crate::outcome::ShortCircuit;
use crate::serve::RequestContext;
use std::task::Poll;
use weir_plugin::{
    Exchange, Filter, KafkaAnswer, KafkaWork, Outcome, RedisCommand, Refusal, RefusalKind, Response, Suspend,
};
use weir_snapshot::{Chain, Charset, Instance};

impl RequestContext<'_> {
    /// Runs the request work of a chain, in order, until one filter answers.
    pub async fn run_request_work(&mut self, chain: &Chain) -> Result<(), ShortCircuit> {
        if chain.needs_body {
            self.read_body_for_variables().await?;
            let done = self.run_steps(chain).await;
            self.exchange.request.forget_parsed_body();
            return done;
        }
        self.run_steps(chain).await
    }

    async fn run_steps(&mut self, chain: &Chain) -> Result<(), ShortCircuit> {
        for step in &chain.steps {
            if step.response_only {
                continue;
            }
            let Some(instance) = step.instance(self.exchange.identity.as_ref()) else {
                continue;
            };
            if !instance.phases.request {
                continue;
            }
            let applies = match chain.needs_body {
                true => self.evaluate(instance)?,
                false => self.applies(instance),
            };
            self.check_work()?;
            if applies {
                self.run_instance(instance).await?;
            }
        }
        if let Some(limit) = self.exchange.request.max_body_bytes {
            self.body.limit = limit;
        }
        Ok(())
    }

    /// Refuses a call whose content asked for more work than there is, whatever came of that work.
    pub fn check_work(&self) -> Result<(), ShortCircuit> {
        match self.exchange.request.work.is_exhausted() {
            true => Err(RefusalKind::WorkLimit.into()),
            false => Ok(()),
        }
    }

    pub fn applies(&self, instance: &Instance) -> bool {
        instance
            .when
            .as_ref()
            .is_none_or(|condition| condition.holds(self.exchange))
    }

    /// Whether an instance works on the call, if that or its work may depend on the body. A call that no plugin can
    /// judge is refused: a large body is no way past a plugin that may refuse the call.
    fn evaluate(&self, instance: &Instance) -> Result<bool, ShortCircuit> {
        let filter = &instance.filter;
        let applies = match &instance.when {
            None => true,
            Some(condition) if filter.is_observer() => condition.holds(self.exchange),
            Some(condition) => condition
                .evaluate_strict(self.exchange)
                .map_err(RefusalKind::from)?,
        };
        let undecided = match applies && filter.needs_body() {
            true => filter.indeterminate(self.exchange),
            false => None,
        };
        undecided.map_or(Ok(applies), |reason| Err(RefusalKind::from(reason).into()))
    }

    async fn run_instance(&mut self, instance: &Instance) -> Result<(), ShortCircuit> {
        let mut has_asked = false;
        let stop = loop {
            let outcome = instance.filter.on_request(self.exchange);
            self.check_work()?;
            match outcome {
                Outcome::Continue => return Ok(()),
                Outcome::Reply(reply) => return Err(ShortCircuit::Reply(reply)),
                Outcome::Delay(time) => {
                    return self.wait_for(Suspend::time(time)).await;
                }
                Outcome::Suspend(wait) => self.wait_for(wait).await?,
                Outcome::Subrequest(subrequest) => {
                    // In a place of its own, as calls that ask nothing need no room for it.
                    let answer = Box::pin(self.send_subrequest(&subrequest)).await?;
                    self.exchange.subrequest_response = Some(answer);
                }
                Outcome::Converse(conversation) => {
                    let answer = Box::pin(self.converse(conversation)).await?;
                    self.exchange.filter_state.put_answer(answer);
                }
                Outcome::Redis(work) => match *work {
                    RedisCommand::Run(call) => {
                        let answer = Box::pin(self.run_script(call)).await?;
                        self.exchange.redis = Some(answer);
                    }
                    RedisCommand::Settle(ledger, refusal) => {
                        self.worker.redis.flush(ledger);
                        match refusal {
                            None => return Ok(()),
                            Some(refusal) => break refusal,
                        }
                    }
                },
                Outcome::Publish(entry) => self.worker.shared.log_sinks.offer(*entry),
                Outcome::Kafka(KafkaWork::Read(read)) => {
                    let answer: KafkaAnswer = Box::pin(self.read_kafka(&read)).await?;
                    self.exchange.filter_state.put_answer(Some(Box::new(answer)));
                }
                Outcome::Kafka(KafkaWork::Events(events)) => {
                    match Box::pin(self.open_events(events)).await? {
                        Ok(open) => return Err(ShortCircuit::Events(Box::new(open))),
                        Err(failure) => {
                            let answer: KafkaAnswer = Err(failure);
                            self.exchange.filter_state.put_answer(Some(Box::new(answer)));
                        }
                    }
                }
                Outcome::Refuse(refusal) => break refusal,
                Outcome::NeedBody { max_bytes } if !has_asked => {
                    has_asked = true;
                    self.read_whole_body(max_bytes).await?;
                }
                Outcome::NeedBodyStart { max_bytes } if !has_asked => {
                    has_asked = true;
                    self.read_body_start(max_bytes).await?;
                }
                Outcome::NeedBody { .. } | Outcome::NeedBodyStart { .. } => {
                    break Box::new(Refusal::new(RefusalKind::BodyTooLarge));
                }
            }
        };
        match &instance.refusal_body {
            None => Err(ShortCircuit::Refuse(stop)),
            Some(fixed) => {
                let mut reply = self.render(&stop);
                reply.content_type = fixed.content_type.clone().into();
                reply.body.clone_from(&fixed.body);
                Err(ShortCircuit::Reply(Box::new(reply)))
            }
        }
    }

    /// Waits for what a filter wants to wait for, as long as the client does.
    async fn wait_for(&mut self, mut wait: Suspend) -> Result<(), ShortCircuit> {
        let mut time = std::pin::pin!(tokio::time::sleep(wait.at_most));
        let (client, worker) = (&mut *self.client, self.worker);
        std::future::poll_fn(|context| {
            let event = wait.event.as_mut().map(|event| event.as_mut().poll(context));
            if event.is_some_and(|event| event.is_ready()) || time.as_mut().poll(context).is_ready() {
                return Poll::Ready(Ok(()));
            }
            client
                .reader
                .poll_closed(context, &worker.runtime)
                .map(|()| Err(ShortCircuit::Gone))
        })
        .await
    }

    /// Runs the response work of a chain on the exchange's response.
    pub fn run_response_work(&mut self, chain: &Chain) {
        self.exchange.request.work.restart();
        for index in &chain.response_order {
            let step = &chain.steps[usize::from(*index)];
            let Some(instance) = step.instance(self.exchange.identity.as_ref()) else {
                continue;
            };
            let is_done = self.exchange.response.is_kept && instance.filter.rewrites_responses();
            if instance.phases.response && !is_done && self.applies(instance) {
                instance.filter.on_response(self.exchange);
            }
        }
        if let Some(charset) = &self.settings().charset {
            add_charset(charset, &mut self.exchange.response);
        }
    }

    /// Lets filters wait before a response goes on, in the order of the response work.
    ///
    /// # Errors
    /// The answer in place of the response, or that the client has gone.
    #[cold]
    pub async fn run_response_waits(&mut self, chain: &Chain) -> Result<(), ShortCircuit> {
        self.exchange.response.waits = false;
        for index in &chain.response_order {
            let step = &chain.steps[usize::from(*index)];
            let Some(instance) = step.instance(self.exchange.identity.as_ref()) else {
                continue;
            };
            if instance.phases.response && self.applies(instance) {
                self.wait_with_response(instance).await?;
            }
        }
        Ok(())
    }

    /// Lets filters work on a call that its upstream has refused, before it is sent once more.
    ///
    /// # Errors
    /// The answer in place of another attempt, or that the client has gone.
    #[cold]
    pub async fn run_refused(&mut self, chain: &Chain) -> Result<(), ShortCircuit> {
        for step in &chain.steps {
            let Some(instance) = step.instance(self.exchange.identity.as_ref()) else {
                continue;
            };
            if !step.response_only && instance.phases.request && self.applies(instance) {
                self.work_on_answer(instance, |filter, exchange| filter.on_refused(exchange))
                    .await?;
            }
        }
        Ok(())
    }

    async fn wait_with_response(&mut self, instance: &Instance) -> Result<(), ShortCircuit> {
        self.work_on_answer(instance, |filter, exchange| filter.on_waiting_response(exchange))
            .await
    }

    /// Runs a filter until it lets the call go on; its request has been sent.
    async fn work_on_answer(
        &mut self,
        instance: &Instance,
        work: fn(&dyn Filter, &mut Exchange) -> Outcome,
    ) -> Result<(), ShortCircuit> {
        loop {
            match work(&*instance.filter, self.exchange) {
                // The request's body is no longer to be had, and records are read in place of an upstream.
                Outcome::Continue
                | Outcome::NeedBody { .. }
                | Outcome::NeedBodyStart { .. }
                | Outcome::Kafka(_) => return Ok(()),
                Outcome::Reply(reply) => return Err(ShortCircuit::Reply(reply)),
                Outcome::Refuse(refusal) => return Err(ShortCircuit::Refuse(refusal)),
                Outcome::Delay(time) => return self.wait_for(Suspend::time(time)).await,
                Outcome::Suspend(wait) => self.wait_for(wait).await?,
                Outcome::Publish(entry) => self.worker.shared.log_sinks.offer(*entry),
                Outcome::Subrequest(subrequest) => {
                    self.exchange.subrequest_response = Some(self.send_subrequest(&subrequest).await?);
                }
                Outcome::Converse(conversation) => {
                    let answer = self.converse(conversation).await?;
                    self.exchange.filter_state.put_answer(answer);
                }
                Outcome::Redis(work) => match *work {
                    RedisCommand::Run(call) => {
                        self.exchange.redis = Some(self.run_script(call).await?);
                    }
                    RedisCommand::Settle(ledger, refusal) => {
                        self.worker.redis.flush(ledger);
                        return refusal.map_or(Ok(()), |refusal| Err(ShortCircuit::Refuse(refusal)));
                    }
                },
            }
        }
    }
}

/// Names the charset of a textual response that names none.
fn add_charset(charset: &Charset, response: &mut Response) {
    if !matches!(response.status, 301 | 302) {
        let addition = |content_type: &[u8]| charset.parameter_for(content_type);
        response.headers.extend_value(b"Content-Type", addition);
    }
}
