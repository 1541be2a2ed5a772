//! Commits of those who do not mind what others committed meanwhile.

use weir_store::{CommitError, Revision, Store, Transaction};

/// Commits, again when somebody else was faster, at most so many times. For changes that stand for themselves: no
/// other document and no earlier value decides whether they are right.
///
/// # Errors
/// As [`Store::commit`].
pub async fn insist(
    store: &dyn Store,
    transaction: Transaction,
    mut expected: Revision,
    attempts: usize,
) -> Result<Revision, CommitError> {
    for _ in 1..attempts.max(1) {
        match store.commit(transaction.clone(), expected).await {
            Err(CommitError::Conflict { current }) => expected = current,
            done => return done,
        }
    }
    store.commit(transaction, expected).await
}
