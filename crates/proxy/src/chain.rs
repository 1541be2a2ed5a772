//! Running a chain: the request work of its filters before a call is forwarded, the response work after.

use crate::serve::{Call, Stop};
use std::task::Poll;
use weir_plugin::{Outcome, RedisWork, Refusal, RefusalKind, Response, Wait};
use weir_snapshot::{Chain, Charset, Instance};

impl Call<'_> {
    /// Runs the request work of a chain, in order, until one filter answers.
    pub async fn run_request_work(&mut self, chain: &Chain) -> Result<(), Stop> {
        if chain.needs_body {
            self.read_body_for_variables().await?;
            let done = self.run_steps(chain).await;
            self.exchange.request.forget_parsed_body();
            return done;
        }
        self.run_steps(chain).await
    }

    async fn run_steps(&mut self, chain: &Chain) -> Result<(), Stop> {
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
                true => self.judge(instance)?,
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
    pub fn check_work(&self) -> Result<(), Stop> {
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

    /// Whether an instance works on the call, where that or what it does may hang on the body. A call that nobody can
    /// judge is refused: whoever may refuse it is not to be passed by with a large body.
    fn judge(&self, instance: &Instance) -> Result<bool, Stop> {
        let filter = &instance.filter;
        let applies = match &instance.when {
            None => true,
            Some(condition) if filter.only_tells() => condition.holds(self.exchange),
            Some(condition) => condition.judge(self.exchange).map_err(RefusalKind::from)?,
        };
        let undecided = match applies && filter.needs_body() {
            true => filter.undecided(self.exchange),
            false => None,
        };
        undecided.map_or(Ok(applies), |why| Err(RefusalKind::from(why).into()))
    }

    async fn run_instance(&mut self, instance: &Instance) -> Result<(), Stop> {
        let mut has_asked = false;
        let stop = loop {
            let outcome = instance.filter.on_request(self.exchange);
            self.check_work()?;
            match outcome {
                Outcome::Continue => return Ok(()),
                Outcome::Reply(reply) => return Err(Stop::Reply(reply)),
                Outcome::Delay(time) => {
                    return self.wait_for(Wait::time(time)).await;
                }
                Outcome::Wait(wait) => self.wait_for(wait).await?,
                Outcome::Ask(question) => {
                    // In a place of its own, as calls that ask nothing need no room for it.
                    let answer = Box::pin(self.ask(&question)).await?;
                    self.exchange.answer = Some(answer);
                }
                Outcome::Redis(work) => match *work {
                    RedisWork::Run(call) => {
                        let answer = Box::pin(self.run_script(call)).await?;
                        self.exchange.redis = Some(answer);
                    }
                    RedisWork::Settle(ledger, refusal) => {
                        self.worker.redis.settle(ledger);
                        match refusal {
                            None => return Ok(()),
                            Some(refusal) => break refusal,
                        }
                    }
                },
                Outcome::Refuse(refusal) => break refusal,
                Outcome::NeedBody { max_bytes } if !has_asked => {
                    has_asked = true;
                    self.read_whole_body(max_bytes).await?;
                }
                Outcome::NeedBody { .. } => break Box::new(Refusal::new(RefusalKind::BodyTooLarge)),
            }
        };
        match &instance.refusal_body {
            None => Err(Stop::Refuse(stop)),
            Some(fixed) => {
                let mut reply = self.render(&stop);
                reply.content_type = fixed.content_type.clone().into();
                reply.body.clone_from(&fixed.body);
                Err(Stop::Reply(Box::new(reply)))
            }
        }
    }

    /// Waits for what a filter wants to wait for, as long as the client does.
    async fn wait_for(&mut self, mut wait: Wait) -> Result<(), Stop> {
        let mut time = std::pin::pin!(tokio::time::sleep(wait.at_most));
        let (client, worker) = (&mut *self.client, self.worker);
        std::future::poll_fn(|context| {
            let event = wait.event.as_mut().map(|event| event.as_mut().poll(context));
            if event.is_some_and(|event| event.is_ready()) || time.as_mut().poll(context).is_ready() {
                return Poll::Ready(Ok(()));
            }
            client.reader.poll_gone(context, worker).map(|()| Err(Stop::Gone))
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
            if instance.phases.response && self.applies(instance) {
                instance.filter.on_response(self.exchange);
            }
        }
        if let Some(charset) = &self.serving.published.snapshot.settings(self.voice).charset {
            add_charset(charset, &mut self.exchange.response);
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
