//! A database whose second handle says that it writes, and does not: each check of two handles finds that.

use std::sync::Arc;

use async_trait::async_trait;
use rejoinder_core::{
    Store,
    conformance::{
        layered::NullStore,
        store::{self, Subject},
    },
};

use crate::common::Database;

struct Deaf(Database);

#[async_trait]
impl Subject for Deaf {
    fn store(&self) -> Arc<dyn Store> {
        self.0.store()
    }

    async fn reopen(&mut self) {
        self.0.reopen().await;
    }

    async fn another(&self) -> Arc<dyn Store> {
        Arc::new(NullStore)
    }
}

/// Makes a test of each check, which ends with this panic.
macro_rules! finds {
    ($($check:ident: $panic:tt)*) => {
        $(
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            #[should_panic(expected = $panic)]
            async fn $check() {
                store::$check(&mut Deaf(Database::new().await)).await;
            }
        )*
    };
}

finds! {
    of_two_stores_that_accept_an_event_one_opens_its_turn: "the event should be a turn or a duplicate, and is Kept"
    a_change_conflicts_with_that_of_another_store: "left: Done"
    of_two_stores_that_race_for_turns_one_wins_each: "left: true"
    what_one_store_writes_another_reads: "the turn is there"
    a_reader_of_the_log_skips_no_entry_that_commits_late: "left: 606"
}
