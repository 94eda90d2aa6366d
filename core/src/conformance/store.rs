//! The store suite: checks that every store must pass.
//!
//! A store's crate implements [`Subject`], and [`store_conformance!`](crate::store_conformance) makes a test of each
//! check. To add a check, write it in one of the modules here and list it in the macro.

#![expect(clippy::missing_panics_doc, reason = "a check reports its failure by a panic")]

mod accepting;
mod agreements;
mod amending;
mod approving;
mod asking;
mod contents;
mod delivering;
mod files;
mod hinting;
mod housekeeping;
mod keeping;
mod keyring;
mod lasting;
mod lines;
mod listing;
mod nodes;
mod operating;
mod people;
mod pushing;
mod queueing;
mod reacting;
mod reading;
mod searching;
mod sessions;
mod slots;
mod subject;
mod transitions;
mod turn;
mod two_writers;
mod visitors;

pub use self::{
    accepting::*, agreements::*, amending::*, approving::*, asking::*, contents::*, delivering::*, files::*,
    hinting::*, housekeeping::*, keeping::*, keyring::*, lasting::*, lines::*, listing::*, nodes::*, operating::*,
    people::*, pushing::*, queueing::*, reacting::*, reading::*, searching::*, sessions::*, slots::*, subject::Subject,
    transitions::*, two_writers::*, visitors::*,
};

/// Makes a test of each check of the store suite. The argument is an expression whose value is a future of a new
/// [`Subject`](crate::conformance::store::Subject).
#[macro_export]
macro_rules! store_conformance {
    ($make:expr) => {
        $crate::store_conformance! { $make =>
            an_event_is_accepted_once
            the_same_event_twice_at_once_is_one_turn
            of_many_that_bring_the_same_event_one_opens_the_turn
            a_revision_is_an_event_of_its_own
            the_same_key_on_another_channel_is_another_event
            what_is_no_turn_is_known_by_its_key_alone
            what_is_only_looked_for_is_not_stored
            turns_of_a_conversation_share_it_and_its_session
            a_thread_is_a_conversation_of_its_own
            a_duplicate_opens_no_conversation
            a_cursor_moves_with_the_events_it_covers
            what_cannot_be_accepted_whole_changes_nothing
            a_turn_is_read_back_as_it_was_accepted
            a_run_can_start_with_the_turn
            a_question_that_was_shown_waits_for_the_person
            the_first_pick_answers_a_question_and_later_ones_are_kept
            a_question_is_open_until_it_is_picked_from
            what_is_said_picks_in_its_place
            open_questions_are_read_latest_first
            a_question_that_expires_is_closed_once
            a_question_that_nobody_needs_to_answer_is_closed
            of_an_expired_question_those_are_told_who_wait_for_it
            words_that_pick_are_known_again
            an_approval_is_decided_once
            a_question_to_a_person_is_in_no_list_of_approvals
            a_question_to_a_person_is_closed_with_its_request
            an_approval_is_given_to_one_run
            an_approval_knows_who_was_told
            the_whole_of_a_request_is_kept_beside_it
            of_64_picks_at_once_one_answers
            only_who_was_asked_picks
            a_pick_of_nothing_is_a_turn
            an_edit_changes_a_turn_that_waits
            an_edit_changes_the_line_that_another_store_has_read
            what_is_taken_back_is_known_of_the_turn_that_waits
            an_edit_of_what_runs_or_has_ended_is_kept
            an_edit_of_what_is_no_turn_is_kept
            an_edit_with_a_turn_opens_it_if_the_earlier_one_waits
            nobody_changes_what_another_one_said
            a_reaction_is_kept_with_the_answer
            a_reaction_that_opens_a_turn_is_not_kept
            everybodys_reactions_are_removed
            a_message_that_was_sent_is_found
            reactions_are_bounded_and_go_with_their_turn_and_their_person
            the_turn_that_an_agent_had_before_is_its_own
            a_chat_that_moves_takes_everything_along
            a_chat_that_moves_to_one_that_is_known_is_gone_on_with_as_the_older
            of_two_chats_that_become_one_the_older_goes_on_whatever_its_id
            a_delivery_can_be_given_something_else_to_do
            a_change_needs_the_expected_version
            of_64_that_race_for_a_turn_one_wins
            of_64_that_race_for_many_turns_one_wins_each
            a_transition_on_several_turns_is_all_or_nothing
            a_transition_that_conflicts_leaves_no_trace
            a_transition_that_fails_leaves_no_trace
            runs_are_recorded
            a_run_ends_as_the_node_says_that_ran_it
            what_a_run_was_shown_is_recorded
            what_failed_to_be_stored_is_not_taken_for_known
            what_a_run_was_shown_goes_with_the_payloads
            settings_go_with_the_last_run_that_used_them
            a_line_counts_as_its_deliveries_say
            an_answer_takes_the_place_of_what_was_promised
            a_line_keeps_who_said_it
            a_persons_line_has_the_text_of_their_message
            a_line_says_that_it_was_spoken
            a_transcript_ends_with_the_latest_lines
            a_new_session_is_the_current_one
            a_session_is_read_as_people_know_it
            a_turn_is_about_another_conversation
            a_session_has_a_title_until_a_turn_of_it_is_removed
            a_session_is_its_owners
            a_session_becomes_that_of_the_person_who_is_known
            an_unused_session_is_left
            a_deleted_session_is_gone
            what_comes_during_a_deletion_is_in_the_next_session
            a_forgotten_persons_session_of_several_conversations_is_nobodys
            a_name_is_that_of_one_session
            what_is_used_of_a_day_is_counted_until_the_next
            what_an_agent_uses_of_a_day_is_counted
            a_session_that_is_gone_is_not_used
            what_is_left_out_is_not_shown
            what_is_repeated_is_left_out
            sessions_follow_their_person
            what_an_agent_calls_a_session_is_kept
            what_an_agent_calls_a_session_goes_with_a_turn_that_it_cannot_forget
            what_happens_to_a_session_is_owed_to_its_agents
            a_session_in_which_another_conversation_continues_is_not_left
            a_notice_is_owed_until_it_is_settled
            a_session_of_one_run_is_gone_when_the_run_has_ended
            a_session_of_one_turn_is_kept_while_the_turn_is_open
            notices_are_read_for_each_agent
            a_session_that_is_used_elsewhere_stays
            a_turn_can_be_set_aside
            remarks_keep_their_order
            a_turn_has_as_many_bounded_remarks_as_it_may
            a_file_is_stored_once_and_goes_with_its_last_turn
            a_file_is_read_in_parts
            a_sound_of_spoken_words_goes_before_its_turn
            the_file_of_an_event_is_stored_with_its_turn
            a_transition_that_conflicts_stores_no_file
            a_browser_is_told_once
            a_conversation_has_the_latest_subscriptions
            a_subscription_needs_its_conversation_and_goes_with_it
            deliveries_go_out_in_the_order_they_were_claimed
            what_waits_can_be_made_due
            what_is_sent_at_once_needs_an_empty_lane
            what_is_on_its_way_is_not_withdrawn
            a_delivery_is_read_back_as_it_was_changed
            the_first_of_a_conversation_is_upcoming
            what_fewer_attempts_may_have_shown_is_probed_first
            what_is_parked_holds_up_no_other_claim
            a_failing_delivery_knows_since_when
            an_attempt_without_a_result_is_found
            an_attempt_ends_once
            of_many_attempts_that_fail_alike_the_first_and_the_last_are_kept
            parts_come_in_order
            fetching_is_remarked_once
            what_waits_is_found
            what_waits_in_a_conversation_is_read_in_order
            a_queue_mode_is_kept_until_it_is_changed
            what_is_postponed_is_found
            what_an_event_needs_to_know_of_its_conversation_is_read_at_once
            what_is_merged_is_answered_with_the_other
            a_long_line_is_one_row
            a_person_with_many_conversations_waits_longer
            the_waiting_turns_of_a_person_are_counted
            what_is_owed_is_first_in_the_line
            each_channel_and_agent_has_a_line
            a_turn_that_is_handed_over_waits_for_its_new_agent
            the_order_is_that_of_acceptance_whatever_the_ids
            what_runs_is_found
            what_ended_last_with_a_draft_is_found
            what_is_due_is_found
            what_is_due_is_found_by_the_node_that_acts_on_it
            what_is_open_is_found
            the_next_wake_is_the_earliest
            what_belongs_to_an_absent_channel_waits
            what_is_due_on_an_absent_channel_is_due_when_it_is_back
            a_view_shows_the_latest_signal
            a_view_says_who_speaks
            a_view_shows_no_half_signal
            views_are_of_one_conversation_oldest_first
            a_list_is_newest_first_and_goes_on_at_its_cursor
            a_list_can_be_narrowed
            what_waits_for_an_agent_is_counted
            the_sessions_of_an_agent_are_listed
            a_session_that_is_used_elsewhere_is_listed_without_limits_only
            the_backlog_is_counted
            what_is_stuck_is_listed_with_what_it_waits_for
            a_dossier_holds_everything
            dead_copies_are_listed_and_counted
            blocked_scopes_end
            an_ended_turn_is_removed_with_everything_about_it
            what_has_not_ended_is_never_removed
            a_settled_turn_that_still_runs_is_not_removed
            a_dead_letter_is_kept_for_its_own_time
            a_payload_goes_before_its_turn
            a_key_goes_last
            every_revision_of_a_message_goes_with_its_turn
            a_conversation_goes_with_its_last_turn
            a_session_goes_with_its_last_turn
            conversations_of_a_chat_that_moved_go_too
            the_next_expiry_is_that_of_the_row_whose_time_comes_first
            removing_goes_on_where_it_was_interrupted
            the_log_is_removed_by_its_age_except_for_its_last_entry
            what_operators_do_is_in_the_audit_and_in_the_log
            an_answer_is_kept_for_a_repeated_request
            an_operation_is_stored_with_the_events_that_it_began
            tries_of_codes_are_kept_for_a_while
            a_channel_is_paused_once
            tokens_are_kept_with_when_they_were_revoked
            sessions_of_the_page_are_kept_until_they_end
            links_to_the_page_are_kept_until_they_end
            of_two_that_open_a_link_to_the_page_one_does
            a_passkey_is_registered_with_an_invitation
            an_invitation_is_for_one_passkey_of_its_person
            of_two_with_the_same_challenge_one_signs_in
            a_counter_of_signatures_goes_on_from_where_it_is
            a_visit_lasts_until_it_is_ended
            who_is_forgotten_signs_in_no_more
            who_is_forgotten_while_they_register_signs_in_no_more
            the_threads_of_a_chat_are_listed
            a_turn_that_is_undeliverable_is_a_dead_letter
            what_is_held_is_not_upcoming
            deliveries_are_listed
            what_others_sent_is_found_by_the_name_that_a_platform_gave
            conversations_are_listed_with_their_sessions
            a_channel_is_paused_until_it_is_resumed
            the_log_of_a_time_is_found
            people_are_known_by_all_their_identities
            an_identity_belongs_to_one_person
            a_request_is_kept_until_it_is_replaced_or_expires
            a_request_goes_when_its_sender_is_known_or_forgotten
            a_request_with_the_code_of_another_is_rejected
            a_language_is_kept_until_it_is_changed_or_its_person_is_forgotten
            a_direct_chat_is_kept_until_it_changes_or_its_person_is_forgotten
            what_was_said_is_found_newest_first
            a_search_can_be_narrowed
            a_search_can_be_narrowed_to_the_history_of_a_session
            a_search_goes_on_at_its_cursor
            a_search_finds_lines_as_they_are
            a_search_finds_parts_of_a_sentence_without_spaces
            whatever_is_typed_is_searched_for
            indexing_goes_on_where_it_was
            turns_without_a_log_are_indexed
            indexing_of_all_turns_ends_while_entries_are_removed
            lines_are_read_back_newest_first
            lines_can_be_narrowed
            a_line_is_kept_without_nul
            a_line_about_a_turn_has_its_channel
            equal_errors_are_counted
            what_operators_say_of_errors_is_kept
            lines_are_removed_by_their_age
            the_file_shrinks_after_many_rows_were_removed
            a_restart_keeps_everything
            of_two_stores_that_accept_an_event_one_opens_its_turn
            a_change_conflicts_with_that_of_another_store
            of_two_stores_that_race_for_turns_one_wins_each
            of_two_stores_that_decide_on_the_same_rows_one_decides_anew
            sessions_of_others_are_no_conflict
            what_one_store_writes_another_reads
            a_reader_of_the_log_skips_no_entry_that_commits_late
            nodes_use_the_secret_that_was_given_first
            a_configuration_that_was_replaced_is_the_latest_again_if_it_is_chosen
            what_is_of_a_configuration_that_was_replaced_is_not_stored
            of_16_configurations_that_are_chosen_at_once_one_is_the_latest
            of_32_that_begin_with_a_configuration_all_have_its_number
            an_idempotency_key_is_used_by_one_node_at_a_time
            the_turns_of_a_minute_are_counted_at_all_nodes
            a_lease_is_held_by_one_node
            a_lease_that_is_given_back_is_granted_anew
            a_node_that_takes_its_own_lease_holds_it_anew
            nodes_are_listed_with_their_leases
            nodes_say_how_they_are
            a_node_that_leaves_is_over
            a_node_is_asked_to_drain
            what_is_written_under_a_lease_needs_it
            nodes_have_no_more_permits_together_than_the_limit
            in_a_conversation_one_turn_runs_at_a_time
            a_turn_does_not_begin_before_one_that_waits_in_its_conversation
            of_what_comes_with_a_turn_that_cannot_begin_nothing_is_stored
            a_slot_is_free_once_its_run_keeps_nobody_waiting
            a_slot_is_kept_as_long_as_its_turn_can_be_read
            a_slot_is_its_nodes_until_the_run_has_left_it
            a_conversation_in_which_another_node_runs_a_turn_is_left_out
            of_two_nodes_that_begin_turns_of_a_conversation_one_does
            hints_are_heard_by_the_other_store
            changed_turns_are_found_by_their_versions
            several_turns_are_seen_with_their_versions
            what_a_run_says_is_kept_until_it_is_removed
            what_runs_say_on_channels_is_found
            a_shared_store_answers_as_another_one_has_written
            keys_are_found_by_their_names
            a_keyring_is_changed_by_its_latest_use
        }
    };
    ($make:expr => $($check:ident)*) => {
        $(
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $check() {
                let mut subject = $make.await;
                $crate::conformance::store::$check(&mut subject).await;
            }
        )*
    };
}
