//! Running a chain: the request work of its filters before a call is forwarded, the response work after.

use crate::serve::{Call, Stop};
use weir_plugin::{Outcome, Refusal, RefusalKind, Response};
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
            if instance.phases.request && self.applies(instance) {
                self.run_instance(instance).await?;
            }
        }
        Ok(())
    }

    fn applies(&self, instance: &Instance) -> bool {
        instance
            .when
            .as_ref()
            .is_none_or(|condition| condition.holds(self.exchange))
    }

    async fn run_instance(&mut self, instance: &Instance) -> Result<(), Stop> {
        let mut outcome = instance.filter.on_request(self.exchange);
        if let Outcome::NeedBody { max_bytes } = outcome {
            self.read_whole_body(max_bytes).await?;
            outcome = instance.filter.on_request(self.exchange);
        }
        let stop = match outcome {
            Outcome::Continue => return Ok(()),
            Outcome::Reply(reply) => return Err(Stop::Reply(reply)),
            Outcome::Refuse(refusal) => refusal,
            Outcome::NeedBody { .. } => Box::new(Refusal::new(RefusalKind::BodyTooLarge)),
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

    /// Runs the response work of a chain on the exchange's response.
    pub fn run_response_work(&mut self, chain: &Chain) {
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
    let Some(content_type) = response.headers.get(b"content-type") else {
        return;
    };
    let Some(parameter) = charset.parameter_for(content_type) else {
        return;
    };
    if matches!(response.status, 301 | 302) || response.headers.contains(b"content-encoding") {
        return;
    }
    let full = [content_type, parameter].concat();
    response.headers.set(b"Content-Type", &full);
}
