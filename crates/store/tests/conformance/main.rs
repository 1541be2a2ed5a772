//! What every store must do, run against every store: in memory, in SQLite, in etcd, and each of them sealed.
//!
//! A case is a function over a [`Fixture`]; `cases!` below lists it once, and it becomes a test of every kind. What
//! only one kind can suffer (a killed process, a lost leader) is in modules of its own.

mod cases;
mod changes;
mod crash;
mod etcd;
mod fixture;
mod follow;
mod full;
mod leader;
mod many;
mod operational;
// Foreign programs cannot say which port they took.
#[path = "../../../weir/tests/support/ports.rs"]
mod ports;
mod sqlite_file;
mod watching;

use fixture::{Fixture, Kind};

/// Runs a case on a runtime of its own.
fn run<F: Future<Output = ()>>(kind: Kind, is_sealed: bool, case: impl FnOnce(Fixture) -> F) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    runtime.block_on(async {
        let fixture = Fixture::new(kind, is_sealed).await;
        let limit = std::time::Duration::from_secs(120);
        let done = tokio::time::timeout(limit, case(fixture)).await;
        done.expect("the case ends in time");
    });
}

macro_rules! kinds {
    ($($kind:ident: $variant:ident $is_sealed:literal;)* => $cases:tt) => {
        $(mod $kind {
            kinds!(@each $variant $is_sealed $cases);
        })*
    };
    (@each $variant:ident $is_sealed:literal { $($module:ident: $($case:ident)*;)* }) => {
        $(mod $module {
            $(#[test]
            fn $case() {
                crate::run(crate::Kind::$variant, $is_sealed, crate::$module::$case);
            })*
        })*
    };
}

macro_rules! cases {
    ($($cases:tt)*) => {
        kinds! {
            memory: Memory false;
            sqlite: Sqlite false;
            etcd_server: Etcd false;
            sealed_memory: Memory true;
            sealed_sqlite: Sqlite true;
            sealed_etcd_server: Etcd true;
            => { $($cases)* }
        }
    };
}

cases! {
    cases: documents_are_as_written prefixes_select a_stale_writer_changes_nothing one_of_two_writers_wins
        nothing_to_do_is_no_commit what_is_no_transaction_is_refused values_are_bytes documents_end
        what_is_committed_stays;
    changes: every_change_is_recorded the_history_comes_in_pages old_changes_are_forgotten;
    many: many_documents_are_one_commit many_documents_go_at_once a_commit_that_is_given_up_is_whole large_documents_are_one_commit
        the_largest_document_is_taken;
    watching: every_commit_is_reported_in_order a_watch_begins_in_the_past another_process_gets_the_commit
        a_dropped_wait_loses_nothing a_slow_watch_misses_nothing_unseen a_revision_to_come_cannot_be_watched;
    follow: it_follows it_resumes;
    operational: two_stores_of_a_location_share_nothing;
}
