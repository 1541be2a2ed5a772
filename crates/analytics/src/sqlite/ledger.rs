//! The part of the file that a store elsewhere needs with it: which batches came, how far each gateway is, what is
//! missing, which days that store has summed up, and of which it has minutes.

use super::{SqliteAnalytics, ingest, meta, read, set_meta};
use crate::batch::Batch;
use crate::query::QueryPlan;
use crate::store::{Gap, StoreError};

/// The first day that the other store has not summed up yet.
const ROLLED: &str = "elsewhere_rolled_days";
/// The first day of which the other store has minutes.
const KEPT: &str = "elsewhere_kept_days";

impl SqliteAnalytics {
    /// Whether a batch has come before.
    pub(crate) fn knows(&self, batch: &Batch) -> Result<bool, StoreError> {
        ingest::is_known(&self.reader(), batch)
    }

    /// Notes that a batch has come, and the state of its gateway in it.
    pub(crate) fn note(&self, batch: &Batch, now: u64) -> Result<(), StoreError> {
        let mut writer = self.writer();
        let transaction = writer.connection.transaction()?;
        ingest::remember(&transaction, batch, now)?;
        ingest::note_gateway(&transaction, batch)?;
        transaction.commit()?;
        Ok(())
    }

    /// The gaps in the time of a plan.
    pub(crate) fn gaps(&self, plan: &QueryPlan, now: u64) -> Result<Vec<Gap>, StoreError> {
        read::gaps(&self.reader(), plan, now)
    }

    /// The first day that the other store has not summed up yet.
    pub(crate) fn rolled_days(&self) -> Result<Option<u64>, StoreError> {
        meta(&self.reader(), ROLLED)
    }

    pub(crate) fn set_rolled_days(&self, day: u64) -> Result<(), StoreError> {
        set_meta(&self.writer().connection, ROLLED, day)
    }

    /// Notes that something is missing of a gateway: from a minute to another.
    pub(crate) fn note_gap(
        &self,
        gateway: &str,
        (first, last): (u32, u32),
        reason: &str,
    ) -> Result<(), StoreError> {
        let writer = self.writer();
        let mut insert = writer
            .connection
            .prepare_cached("INSERT OR IGNORE INTO gap VALUES (?1, ?2, ?3, ?4)")?;
        insert.execute((gateway, first, last, reason))?;
        Ok(())
    }

    /// The first day of which the other store has minutes; all older ones are summed up for good.
    pub(crate) fn first_kept_day(&self) -> Result<u64, StoreError> {
        Ok(meta(&self.reader(), KEPT)?.unwrap_or(0))
    }

    pub(crate) fn set_first_kept_day(&self, day: u64) -> Result<(), StoreError> {
        set_meta(&self.writer().connection, KEPT, day)
    }

    /// Rows of a day come late: it is summed up again, and everything after it.
    pub(crate) fn unroll(&self, day: u64) -> Result<(), StoreError> {
        match self.rolled_days()? {
            Some(rolled) if day < rolled => self.set_rolled_days(day),
            _ => Ok(()),
        }
    }
}
