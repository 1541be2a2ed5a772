//! Tests of sending reports: the clock is an argument, and the outbox has a transport that keeps what it is given.

use super::*;
use crate::analytics::{AnalyticsPaths, Options};
use crate::operational::OperationalStore;
use crate::outbox::{Failure, Transport};
use std::sync::{Arc, Mutex};
use std::time::UNIX_EPOCH;
use weir_analytics::aggregate::{Aggregator, FinishedCall};

/// Monday, 2026-01-12, 06:00 UTC.
const MONDAY: u64 = 1_768_197_600;
const DAY: u64 = 86_400;

/// Keeps what is sent.
#[derive(Clone, Default)]
struct MailRecorder(Arc<Mutex<Vec<(String, Mail)>>>);

#[async_trait::async_trait]
impl Transport for MailRecorder {
    async fn send(&self, id: &str, message: &Message, _now: SystemTime) -> Result<(), Failure> {
        if let Message::Mail(mail) = message {
            self.0
                .lock()
                .expect("not poisoned")
                .push((id.to_owned(), mail.clone()));
        }
        Ok(())
    }

    fn can_mail(&self) -> bool {
        true
    }
}

fn at(seconds: u64) -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(seconds)
}

fn report(id: &str) -> ScheduledReport {
    serde_json::from_value(serde_json::json!({
        "id": id, "title": "Week", "to": ["ann@example.com", "bob@example.com"],
        "schedule": { "every": "week", "day": 1, "at": "07:00", "time_zone": "Europe/Berlin" },
        "panels": [{ "title": "Calls", "kind": "line", "query": { "metrics": ["calls"], "step": "1h" } }],
    }))
    .expect("a report")
}

async fn put(analytics: &Analytics, report: &ScheduledReport) {
    let (id, text) = (report.id.clone(), serde_json::to_string(report).expect("JSON"));
    let put = analytics.with(move |kept| {
        kept.documents
            .place_document((REPORTS, &id), Some(&text), (false, 10), |_| true)
    });
    put.await.expect("stored");
}

struct Plane {
    analytics: Analytics,
    outbox: Outbox,
    mails: MailRecorder,
    _folder: tempfile::TempDir,
}

impl Plane {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let analytics =
            Analytics::open(&AnalyticsPaths::of(folder.path()), Options::default()).expect("opened");
        let mails = MailRecorder::default();
        Self {
            analytics,
            outbox: Outbox::new(OperationalStore::in_memory(), mails.clone()),
            mails,
            _folder: folder,
        }
    }

    /// Counts calls of a minute.
    async fn count(&self, minute: u64, calls: u64) {
        let mut aggregator = Aggregator::new("g", "", minute * 60_000 + calls);
        for _ in 0..calls {
            aggregator.add(&FinishedCall {
                minute: minute as u32,
                status: 200,
                total_us: 1_000,
                ..FinishedCall::default()
            });
        }
        let batch = aggregator.take_batch(minute * 60 + 60, true);
        let counted = self
            .analytics
            .with(move |kept| kept.store.ingest(&batch, minute * 60 + 60));
        counted.await.expect("counted");
    }

    /// Sends the reports that are due at a time. Returns how many, and the number of mails by then.
    async fn turn(&self, now: u64) -> (usize, usize) {
        let sent = self
            .analytics
            .send_due(&self.outbox, at(now))
            .await
            .expect("sent");
        self.outbox.deliver(at(now)).await.expect("delivered");
        (sent, self.mails.0.lock().expect("not poisoned").len())
    }
}

#[tokio::test]
async fn a_report_is_sent_once_when_it_is_due() {
    let plane = Plane::new();
    put(&plane.analytics, &report("week")).await;
    // Ten calls on Wednesday, five the week before.
    plane.count((MONDAY - 5 * DAY) / 60, 10).await;
    plane.count((MONDAY - 12 * DAY) / 60, 5).await;
    for (now, expected) in [
        // What was due before the report was there is not sent.
        (MONDAY - 3 * DAY, (0, 0)),
        (MONDAY - 1, (0, 0)),
        (MONDAY, (1, 2)),
        (MONDAY + 60, (0, 2)),
        (MONDAY + 6 * DAY, (0, 2)),
        // Nothing ran for two weeks: one report, the latest.
        (MONDAY + 15 * DAY, (1, 4)),
        (MONDAY + 16 * DAY, (0, 4)),
    ] {
        assert_eq!(plane.turn(now).await, expected, "{now}");
    }
    let mails = plane.mails.0.lock().expect("not poisoned").clone();
    let (_, mail) = mails
        .iter()
        .find(|(_, it)| it.to == "bob@example.com")
        .expect("a mail");
    assert_eq!(mail.subject, "Week: 2026-01-05 to 2026-01-11");
    assert!(mail.text.contains("all: calls 10 +100.0 %;"), "{}", mail.text);
    let kinds: Vec<(&str, bool)> = mail
        .attachments
        .iter()
        .map(|it| (it.name.as_str(), it.is_inline))
        .collect();
    assert_eq!(kinds, [("chart-0.png", true), ("1-calls.csv", false)]);
    let csv = BASE64
        .decode(mail.attachments[1].contents.as_bytes())
        .expect("base64");
    let csv = String::from_utf8(csv).expect("a text");
    assert_eq!(
        csv.lines().filter(|line| line.contains(",10,")).count(),
        1,
        "{csv}"
    );
    let last = &mails.last().expect("a mail").1;
    assert!(
        last.subject.contains("2026-01-19 to 2026-01-25"),
        "{}",
        last.subject
    );
}

#[tokio::test]
async fn one_control_plane_at_a_time_sends_and_bad_reports_do_not_hinder_others() {
    let plane = Plane::new();
    let mut broken = report("a-broken");
    (broken.board, broken.panels) = (Some("gone".to_owned()), Vec::new());
    put(&plane.analytics, &broken).await;
    put(&plane.analytics, &report("week")).await;
    assert_eq!(plane.turn(MONDAY - DAY).await, (0, 0));
    let other = Outbox::new(plane.outbox.store().clone(), plane.mails.clone());
    assert_eq!(plane.turn(MONDAY).await, (1, 2));
    let sent = plane
        .analytics
        .send_due(&other, at(MONDAY + 1))
        .await
        .expect("read");
    assert_eq!(sent, 0, "another one has the lease");
    // After its end the other one goes on with what is noted.
    let sent = plane
        .analytics
        .send_due(&other, at(MONDAY + 7 * DAY))
        .await
        .expect("read");
    assert_eq!(sent, 1);
}

#[tokio::test]
async fn without_a_mail_server_nothing_is_noted_as_sent() {
    let plane = Plane::new();
    put(&plane.analytics, &report("week")).await;
    assert_eq!(plane.turn(MONDAY - DAY).await, (0, 0));
    let mute = Outbox::without_mail(plane.outbox.store().clone());
    assert_eq!(
        plane.analytics.send_due(&mute, at(MONDAY)).await.expect("read"),
        0
    );
    let whole = report("week");
    let period = whole.schedule.last(MONDAY).expect("a period");
    let sent = plane
        .analytics
        .send_report(&mute, (&whole, &whole.to), (period, None), at(MONDAY));
    assert!(matches!(sent.await, Err(ReportError::NoMail)));
    assert_eq!(
        plane.turn(MONDAY + 60).await,
        (1, 2),
        "it is sent once there is one"
    );
}
