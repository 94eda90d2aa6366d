//! Checks of the store suite in which the store is moved to the other database where they have it reopened.

use std::{path::PathBuf, sync::Arc};

use async_trait::async_trait;
use rejoinder_core::{Store, conformance::store::Subject, store::StoreState};
use rejoinder_store::{CopyEnd, OpenOptions, PostgresStore, SqliteStore, TestDatabase, TestServer};
use tempfile::TempDir;

use super::{finish, postgres};
use crate::{common::open, server};

enum Opened {
    Sqlite(Arc<SqliteStore>, PathBuf),
    Postgres(Arc<PostgresStore>, TestDatabase),
}

struct Moving {
    server: &'static TestServer,
    folder: TempDir,
    opened: Opened,
    moves: usize,
}

impl Moving {
    /// `None` without a server.
    async fn from_sqlite() -> Option<Self> {
        let server = server::get()?;
        let folder = tempfile::tempdir().expect("a folder is made");
        let path = folder.path().join("first.db");
        let opened = Opened::Sqlite(open_file(&path).await, path);
        Some(Self { server, folder, opened, moves: 0 })
    }

    /// `None` without a server.
    async fn from_postgres() -> Option<Self> {
        let server = server::get()?;
        let folder = tempfile::tempdir().expect("a folder is made");
        let database = server.database().await;
        let opened = Opened::Postgres(Arc::new(open(&database.url()).await), database);
        Some(Self { server, folder, opened, moves: 0 })
    }
}

async fn open_file(path: &std::path::Path) -> Arc<SqliteStore> {
    Arc::new(SqliteStore::open(OpenOptions::new(path)).await.expect("the store opens"))
}

#[async_trait]
impl Subject for Moving {
    fn store(&self) -> Arc<dyn Store> {
        match &self.opened {
            Opened::Sqlite(store, _) => Arc::clone(store) as Arc<dyn Store>,
            Opened::Postgres(store, _) => Arc::clone(store) as Arc<dyn Store>,
        }
    }

    async fn reopen(&mut self) {
        self.moves += 1;
        self.opened = match &self.opened {
            Opened::Sqlite(store, path) => {
                store.close().await;
                let database = self.server.database().await;
                finish(&CopyEnd::Sqlite(path.clone()), &postgres(&database)).await;
                Opened::Postgres(Arc::new(open(&database.url()).await), database)
            }
            Opened::Postgres(store, database) => {
                store.close().await;
                let path = self.folder.path().join(format!("{}.db", self.moves));
                finish(&postgres(database), &CopyEnd::Sqlite(path.clone())).await;
                Opened::Sqlite(open_file(&path).await, path)
            }
        };
    }

    async fn another(&self) -> Arc<dyn Store> {
        match &self.opened {
            Opened::Sqlite(store, _) => Arc::new(store.another().await.expect("the store opens twice")),
            Opened::Postgres(_, database) => Arc::new(open(&database.url()).await),
        }
    }
}

/// All that have the store reopened, but for the index of lines: it begins anew.
macro_rules! moved {
    ($make:expr) => {
        rejoinder_core::store_conformance! { $make =>
            a_question_to_a_person_is_in_no_list_of_approvals
            an_approval_is_decided_once
            the_whole_of_a_request_is_kept_beside_it
            an_approval_is_given_to_one_run
            the_first_pick_answers_a_question_and_later_ones_are_kept
            a_question_is_open_until_it_is_picked_from
            what_a_run_was_shown_is_recorded
            removing_goes_on_where_it_was_interrupted
            the_log_is_removed_by_its_age_except_for_its_last_entry
            what_an_agent_calls_a_session_is_kept
            what_happens_to_a_session_is_owed_to_its_agents
            a_restart_keeps_everything
            lines_are_read_back_newest_first
            what_operators_say_of_errors_is_kept
            the_sessions_of_an_agent_are_listed
            tokens_are_kept_with_when_they_were_revoked
            links_to_the_page_are_kept_until_they_end
            a_passkey_is_registered_with_an_invitation
            sessions_of_the_page_are_kept_until_they_end
            a_channel_is_paused_until_it_is_resumed
            people_are_known_by_all_their_identities
            a_request_is_kept_until_it_is_replaced_or_expires
            a_language_is_kept_until_it_is_changed_or_its_person_is_forgotten
            a_direct_chat_is_kept_until_it_changes_or_its_person_is_forgotten
            what_is_used_of_a_day_is_counted_until_the_next
            what_an_agent_uses_of_a_day_is_counted
            tries_of_codes_are_kept_for_a_while
            a_queue_mode_is_kept_until_it_is_changed
            what_is_postponed_is_found
            what_an_event_needs_to_know_of_its_conversation_is_read_at_once
            a_reaction_is_kept_with_the_answer
            a_message_that_was_sent_is_found
            a_person_with_many_conversations_waits_longer
            the_order_is_that_of_acceptance_whatever_the_ids
            what_is_due_on_an_absent_channel_is_due_when_it_is_back
            a_turn_is_about_another_conversation
            a_session_is_read_as_people_know_it
            a_session_has_a_title_until_a_turn_of_it_is_removed
            a_deleted_session_is_gone
            what_is_left_out_is_not_shown
            a_line_counts_as_its_deliveries_say
            an_answer_takes_the_place_of_what_was_promised
            a_line_keeps_who_said_it
            a_persons_line_has_the_text_of_their_message
            of_two_stores_that_decide_on_the_same_rows_one_decides_anew
        }
    };
}

mod to_postgres {
    moved!({
        let Some(subject) = super::Moving::from_sqlite().await else { return };
        std::future::ready(subject)
    });
}

mod to_sqlite {
    moved!({
        let Some(subject) = super::Moving::from_postgres().await else { return };
        std::future::ready(subject)
    });
}
