//! Sending reports: when one is due, its panels are asked, and it goes to its receivers through the outbox.
//!
//! The time of the last report is in the outbox's store, so one control plane at a time sends, and a restart repeats
//! nothing. A report that became due while nothing ran is sent at the start; of several of the same kind, the latest.

use super::{Analytics, AnalyticsStorage};
use crate::lease;
use crate::operational::{OperationalError, OperationalWrite};
use crate::outbox::{Attachment, Mail, Message, Origin, Outbox};
use data_encoding::BASE64;
use serde::{Deserialize, Serialize};
use std::time::{Duration, SystemTime};
use weir_analytics::StoreError;
use weir_analytics::query::QueryError;
use weir_analytics::reports::{Period, Rendered, ScheduledReport, Section, render};
use weir_model::unix_time::seconds;
use weir_store::Key;

/// The kind of documents that reports are.
pub const REPORTS: &str = "report";
/// The kind of the messages of reports.
const KIND: &str = "report";
/// Below here it is noted what was sent last.
const SENT: &str = "reports/";
/// The lease's name, and for how long a control plane sends before it says so again.
const LEASE_NAME: &str = "reports";
const LEASE: Duration = Duration::from_secs(300);

/// Why a report is not sent.
#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    /// Nothing sends mails.
    #[error("there is no mail server: start Weir with --smtp and --mail-from")]
    NoMail,
    /// Its schedule cannot be read.
    #[error(transparent)]
    Schedule(#[from] QueryError),
    /// The numbers cannot be had.
    #[error(transparent)]
    Numbers(#[from] StoreError),
    /// The messages cannot be stored.
    #[error("the outbox: {0}")]
    Outbox(#[from] OperationalError),
}

/// The note about a report.
#[derive(Serialize, Deserialize)]
struct ReportRecord {
    /// The time up to which everything that was due is sent.
    through: u64,
}

fn key(report: &ScheduledReport) -> Result<Key, OperationalError> {
    Key::new(&format!("{SENT}{}", report.id)).map_err(OperationalError::Name)
}

impl AnalyticsStorage {
    /// All reports, by id. One that cannot be read is left out.
    ///
    /// # Errors
    /// The store failed.
    pub fn reports(&self) -> Result<Vec<ScheduledReport>, StoreError> {
        let mut reports = Vec::new();
        for (id, text) in self.documents.documents(REPORTS)? {
            match serde_json::from_str::<ScheduledReport>(&text) {
                Ok(report) => reports.push(ScheduledReport { id, ..report }),
                Err(error) => tracing::warn!(id, %error, "a stored report cannot be parsed and is ignored"),
            }
        }
        Ok(reports)
    }

    /// A report over a time, as it is sent.
    ///
    /// # Errors
    /// If its board is gone, or the store failed. A query that cannot be answered is reported in the report itself.
    pub fn rendered(
        &self,
        report: &ScheduledReport,
        period: Period,
        now: u64,
    ) -> Result<Rendered, StoreError> {
        let board = match &report.board {
            None => None,
            Some(id) => Some(self.board(id)?.ok_or_else(|| {
                let message = format!("there is no board '{id}'");
                StoreError::Query(QueryError::new("board", message))
            })?),
        };
        let mut sections = Vec::new();
        for panel in report.panels(board.as_ref()) {
            let query = report.query_of(board.as_ref(), panel, period);
            let answer = match self.answer(&query, now) {
                Ok(answer) => Ok(answer),
                Err(StoreError::Query(error)) => Err(error.to_string()),
                Err(error) => return Err(error),
            };
            sections.push(Section { panel, answer });
        }
        let link = self.link("analytics");
        Ok(render(report, period, &sections, link.as_deref()))
    }
}

/// The mail of a report for an address.
fn mail(to: &str, report: &Rendered) -> Mail {
    let pictures = report.pictures.iter().map(|(name, png)| Attachment {
        name: name.clone(),
        media_type: "image/png".to_owned(),
        contents: BASE64.encode(png),
        is_inline: true,
    });
    let files = report.files.iter().map(|(name, text)| Attachment {
        name: name.clone(),
        media_type: "text/csv; charset=utf-8".to_owned(),
        contents: BASE64.encode(text.as_bytes()),
        is_inline: false,
    });
    Mail {
        to: to.to_owned(),
        subject: report.subject.clone(),
        text: report.text.clone(),
        html: report.html.clone(),
        attachments: pictures.chain(files).collect(),
    }
}

impl Analytics {
    /// Sends reports when they are due, until the process ends.
    pub async fn watch_reports(self, every: Duration) {
        let mut tick = tokio::time::interval(every);
        tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            tick.tick().await;
            let Some(outbox) = self.outbox() else {
                continue;
            };
            if let Err(error) = self.send_due(outbox, SystemTime::now()).await {
                tracing::warn!(%error, "scheduled reports cannot be sent; retrying");
            }
        }
    }

    /// Sends the reports that are due at a time. Returns how many.
    ///
    /// # Errors
    /// The stores cannot be read. A report that cannot be sent does not keep others from it.
    pub async fn send_due(&self, outbox: &Outbox, now: SystemTime) -> Result<usize, ReportError> {
        let reports = self.with(AnalyticsStorage::reports).await?;
        let enabled: Vec<ScheduledReport> = reports.into_iter().filter(|it| it.enabled).collect();
        if enabled.is_empty() || !outbox.can_mail() {
            return Ok(0);
        }
        if !lease::hold(outbox.store(), LEASE_NAME, (outbox.holder(), LEASE), now).await? {
            return Ok(0);
        }
        let mut sent = 0;
        for report in enabled {
            match self.send_if_due(outbox, &report, now).await {
                Ok(was_due) => sent += usize::from(was_due),
                Err(error) => {
                    tracing::warn!(report = report.id, %error, "a scheduled report cannot be sent; retrying")
                }
            }
        }
        Ok(sent)
    }

    async fn send_if_due(
        &self,
        outbox: &Outbox,
        report: &ScheduledReport,
        now: SystemTime,
    ) -> Result<bool, ReportError> {
        let at = seconds(now);
        let key = key(report)?;
        let known = outbox.store().read::<ReportRecord>(&key, now).await?;
        let due = report.schedule.last_due(at)?;
        let is_due = match known {
            Some(known) if due > known.value.through => true,
            Some(_) => return Ok(false),
            // What was due before the report was there is not sent.
            None => false,
        };
        if is_due {
            let reason = format!("report-{}-{due}", report.id);
            let period = report.schedule.last(due)?;
            self.send_report(outbox, (report, &report.to), (period, Some(&reason)), now)
                .await?;
        }
        let through = if is_due { due } else { at };
        let noted = OperationalWrite::put(key, &ReportRecord { through }, None)?;
        outbox.store().write(vec![noted], now).await?;
        Ok(is_due)
    }

    /// Sends a report over a time to addresses. With a reason, messages of the same reason that wait are not doubled.
    ///
    /// # Errors
    /// The numbers cannot be had, or the messages cannot be stored.
    pub async fn send_report(
        &self,
        outbox: &Outbox,
        (report, to): (&ScheduledReport, &[String]),
        (period, reason): (Period, Option<&str>),
        now: SystemTime,
    ) -> Result<(), ReportError> {
        if !outbox.can_mail() {
            return Err(ReportError::NoMail);
        }
        let asked = report.clone();
        let at = seconds(now);
        let rendered = self.with(move |kept| kept.rendered(&asked, period, at)).await?;
        for (place, to) in to.iter().enumerate() {
            let id = reason.map(|reason| format!("{reason}-{place}"));
            let message = Message::Mail(mail(to, &rendered));
            // A mail each: all of them together may be more than a store takes at once.
            let write = outbox.entry(id.as_deref(), (Origin::Provider, KIND, message), now)?;
            outbox.store().write(vec![write], now).await?;
        }
        outbox.notify();
        Ok(())
    }

    /// Forgets what was sent of a report that is gone.
    pub async fn forget_report(&self, id: &str, now: SystemTime) {
        let (Some(outbox), Ok(key)) = (self.outbox(), Key::new(&format!("{SENT}{id}"))) else {
            return;
        };
        if let Err(error) = outbox.store().remove([key], now).await {
            tracing::debug!(id, %error, "the send time of a removed report cannot be removed");
        }
    }
}

#[cfg(test)]
mod tests;
