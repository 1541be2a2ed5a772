//! Opening the Admin APIs and the portal over a store that may be away for a while.

use crate::run::admin::{AdminApis, Shared};
use crate::run::portal::OpenPortal;
use anyhow::Context;
use std::sync::Arc;
use std::time::Duration;
use weir_control::access::recording;
use weir_control::follow::OpenStore;
use weir_control::operational;
use weir_store::StoreError;

/// How long until a store that cannot be read is tried again; each further failure doubles it.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// Opens the Admin APIs and the portal once the store can be read.
pub async fn open_admin_apis(
    (apis, portal): (AdminApis, Option<OpenPortal>),
    store: OpenStore,
    shared: Shared,
) -> anyhow::Result<()> {
    if apis.is_empty() && portal.is_none() {
        return Ok(());
    }
    let store = store.opened().await;
    for (store, kept) in [
        (&store, shared.history),
        (shared.operational.store(), operational::HISTORY),
    ] {
        tokio::spawn(weir_control::compact_periodically(Arc::clone(store), kept));
    }
    // The audit log says what calls have changed.
    let store = recording(Arc::clone(&store));
    let (apis, portal, shared) = (&apis, &portal, &shared);
    let opened = until_read(FIRST_PAUSE, || async {
        apis.open(Arc::clone(&store), shared).await?;
        if let Some(portal) = portal {
            portal.open(Arc::clone(&store), shared).await?;
        }
        shared.health.0.admin_is_open();
        Ok(())
    });
    let opened = opened.await;
    let opened = opened.context("the Admin APIs cannot be opened");
    // A gateway that serves what it knows does not wait for them.
    opened.inspect_err(|error| tracing::error!("{error:#}"))
}

/// Tries again, less and less often, what a store that cannot be reached fails.
async fn until_read<T, R: Future<Output = Result<T, StoreError>>>(
    mut pause: Duration,
    mut read: impl FnMut() -> R,
) -> R::Output {
    loop {
        match read().await {
            Ok(done) => return Ok(done),
            Err(error @ StoreError::Damaged(_)) => return Err(error),
            Err(error) => {
                tracing::warn!(%error, "the store cannot be read, so the Admin APIs cannot be opened yet; retrying");
                tokio::time::sleep(pause).await;
                pause = (pause * 2).min(LONGEST_PAUSE);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn admin_apis_are_opened_once_the_store_can_be_read() {
        let unreachable = || StoreError::Unreachable("away".to_owned());
        for (mut answers, expected) in [
            (
                vec![
                    Ok(1),
                    Err(unreachable()),
                    Err(StoreError::Failed("once".to_owned())),
                ],
                Some(1),
            ),
            (
                vec![
                    Ok(2),
                    Err(StoreError::Damaged("for good".to_owned())),
                    Err(unreachable()),
                ],
                None,
            ),
        ] {
            let read = || std::future::ready(answers.pop().expect("it was asked too often"));
            let opened = until_read(Duration::ZERO, read).await;
            assert_eq!(opened.ok(), expected);
        }
    }
}
