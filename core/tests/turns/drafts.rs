//! Drafts: shown during a run, gone after it, and never at the cost of the answer.

use std::time::Duration;

use rejoinder_core::{
    Action, ActivityState, AgentTurn, Capabilities, Delivery, Masker, Policy, Rate, Resend, Scope, Support, WorkStep,
    conformance::scripted::{Fault, Script, ScriptedChannel, SeenDelivery},
    store::TurnStatus,
};

use crate::{
    gateway::{GatewaySetup, HARD_DEADLINE, SOFT_DEADLINE, TestGateway, ambient, chat, policy, said, secs},
    texts::{DEFERRAL, FAILED, LATE},
};

pub(crate) fn showing(it: &mut Capabilities) {
    (it.drafts, it.draft_interval) = (Support::Full, Duration::from_millis(500));
    (it.typing, it.typing_interval) = (Support::Full, secs(4));
}

fn drafts(gateway: &TestGateway) -> Vec<String> {
    let text = |seen: SeenDelivery| match seen.action {
        Action::Draft { text, .. } => Some(text),
        _ => None,
    };
    gateway.platform.seen().into_iter().filter_map(text).collect()
}

/// A7. Drafts grow with the stream, no faster than the channel allows.
#[tokio::test]
async fn a_stream_is_shown_as_it_grows() {
    let script = Script::replies("one two three")
        .streaming("one")
        .taking(secs(1))
        .streaming(" two")
        .streaming(" three")
        .taking(secs(1));
    let gateway = GatewaySetup::new().capable(showing).always(script).start().await;

    gateway.receives(said(&chat("ada"), "count")).await;
    gateway.advance(secs(3)).await;

    assert_eq!(drafts(&gateway).last().map(String::as_str), Some("one two three"));
    assert!(drafts(&gateway).len() <= 3);
    assert_eq!(gateway.visible(&chat("ada")), ["one two three"]);
    gateway.at_rest().await;
}

/// A draft that comes too soon for its chat is shown as soon as it may be, not a whole interval later.
#[tokio::test]
async fn a_draft_waits_no_longer_than_its_rate_wants() {
    let script = (0..20).fold(Script::replies("done"), |script, _| script.streaming("x ").taking(secs(1) / 2));
    let slow = |it: &mut Capabilities| {
        showing(it);
        it.draft_interval = secs(1);
        it.conversation_rate = Some(Rate { per: Duration::from_millis(1500), burst: 2 });
    };
    let gateway = GatewaySetup::new().capable(slow).always(script).start().await;

    gateway.receives(said(&chat("ada"), "count")).await;
    gateway.advance(secs(11)).await;

    assert!(drafts(&gateway).len() >= 6, "{:?}", drafts(&gateway));
    assert_eq!(gateway.visible(&chat("ada")), ["done"]);
    gateway.at_rest().await;
}

/// A7. A thought without an opening tag is shown only until its closing tag comes.
#[tokio::test]
async fn a_thought_gives_way_to_what_was_meant_for_the_person() {
    let script = Script::replies("Let me see.\n</think>\n\nYes, of course.")
        .streaming("Let me see.\n</thi")
        .taking(secs(1))
        .streaming("nk>\n\nYes,")
        .taking(secs(1))
        .streaming(" of course.")
        .taking(secs(1));
    let gateway = GatewaySetup::new().capable(editing).always(script).start().await;

    gateway.receives(said(&chat("ada"), "is it?")).await;
    gateway.advance(secs(4)).await;

    // The first one is a message, and is not edited into itself.
    assert_eq!(drafts(&gateway), ["Yes,", "Yes, of course."]);
    assert_eq!(gateway.visible(&chat("ada")), ["Yes, of course."]);
    gateway.at_rest().await;
}

/// A7. A draft that renders to nothing is not sent.
#[tokio::test]
async fn a_draft_of_which_nothing_is_seen_yet_is_not_shown() {
    let script = Script::replies("# Tides\n\nIt is the moon.")
        .streaming("#")
        .taking(secs(1))
        .streaming(" Tides")
        .taking(secs(1))
        .streaming("\n\nIt is the moon.")
        .taking(secs(1));
    let gateway = GatewaySetup::new().capable(editing).always(script).start().await;

    gateway.receives(said(&chat("ada"), "why?")).await;
    gateway.advance(secs(4)).await;

    // After the message with "# Tides".
    assert_eq!(drafts(&gateway), ["# Tides\n\nIt is the moon."]);
    gateway.at_rest().await;
}

/// A runtime may replace text that it has streamed.
#[tokio::test]
async fn what_was_said_on_the_way_can_be_said_anew() {
    let script = Script::replies("One.\n\nTwo.")
        .streaming("One.")
        .taking(secs(1))
        .streaming("\n\nLet me see.")
        .taking(secs(1))
        .rewriting("One.")
        .streaming("\n\nTwo.")
        .taking(secs(1));
    let gateway = GatewaySetup::new().capable(showing).always(script).start().await;

    gateway.receives(said(&chat("ada"), "count")).await;
    gateway.advance(secs(4)).await;

    assert_eq!(drafts(&gateway).last().map(String::as_str), Some("One.\n\nTwo."));
    gateway.at_rest().await;
}

fn acting(setup: GatewaySetup) -> GatewaySetup {
    let script = Script::replies("one two")
        .acting("reads\n3 *files*", ActivityState::Working)
        .taking(secs(1))
        .streaming("one")
        .taking(secs(1))
        .acting("reads\n3 *files*", ActivityState::Done)
        .taking(secs(1))
        .acting("asks sk-12345678", ActivityState::Working)
        .taking(secs(1));
    let mut setup = setup.always(script);
    setup.masker = Masker::new(["sk-12345678"]);
    setup
}

/// What the agent does stands below the text, and in no answer.
#[tokio::test]
async fn what_an_agent_does_is_shown_in_its_drafts() {
    for (capabilities, are_messages) in [(editing as fn(&mut Capabilities), true), (showing, false)] {
        let mut setup = acting(GatewaySetup::new().capable(capabilities));
        setup.shown_activities = ["main".into()].into();
        let gateway = setup.start().await;

        gateway.receives(said(&chat("ada"), "count")).await;
        gateway.advance(secs(5)).await;

        let reads = "… reads 3 \\*files\\*";
        let shown = [reads, &format!("one\n\n{reads}"), "one", "one\n\n… asks ••••"];
        // Where drafts are messages, an activity alone is none, and the first one is no edit.
        assert_eq!(drafts(&gateway), shown[2 * usize::from(are_messages)..]);
        assert_eq!(gateway.visible(&chat("ada")), ["one two"]);
        gateway.at_rest().await;
    }
}

/// Where drafts have a place for it, what the agent does and thinks stands beside the text, and before there is any.
#[tokio::test]
async fn what_an_agent_does_and_thinks_stands_beside_its_drafts() {
    for shows in [true, false] {
        let script = Script::replies("one two")
            .thinking("Hm.")
            .taking(secs(1))
            .acting("reads", ActivityState::Working)
            .taking(secs(1))
            .acting("reads", ActivityState::Failed)
            .taking(secs(1))
            .streaming("one")
            .taking(secs(1));
        let mut setup = GatewaySetup::new().capable(showing).capable(|it| it.draft_steps = true).always(script);
        setup.shown_activities = ["main".into()].into_iter().filter(|_| shows).collect();
        let gateway = setup.start().await;

        gateway.receives(said(&chat("ada"), "count")).await;
        gateway.advance(secs(5)).await;

        let draft = |seen: SeenDelivery| match seen.action {
            Action::Draft { text, steps, .. } => Some((text, steps)),
            _ => None,
        };
        let drafts: Vec<_> = gateway.platform.seen().into_iter().filter_map(draft).collect();
        let step = |text: &str, state| WorkStep { text: text.to_owned(), state };
        let thought = step("Hm.", None);
        let reads = |state| vec![thought.clone(), step("reads", Some(state))];
        let beside = [
            (String::new(), vec![thought.clone()]),
            (String::new(), reads(ActivityState::Working)),
            (String::new(), reads(ActivityState::Failed)),
            ("one".to_owned(), reads(ActivityState::Failed)),
        ];
        let alone = [("one".to_owned(), vec![])];
        assert_eq!(drafts, if shows { &beside[..] } else { &alone[..] });
        assert_eq!(gateway.visible(&chat("ada")), ["one two"]);
        gateway.at_rest().await;
    }
}

#[tokio::test]
async fn what_an_agent_did_is_found_again_where_it_may_be_seen() {
    for shows in [true, false] {
        let mut setup = GatewaySetup::new().always(Script::replies("done").using("search").using("read"));
        setup.shown_activities = ["main".into()].into_iter().filter(|_| shows).collect();
        let gateway = setup.start().await;
        gateway.receives(said(&chat("ada"), "find it")).await;
        gateway.advance(secs(1)).await;

        let intake = gateway.intake();
        let views = intake.views(&chat("ada"), None, 10).await.expect("views are read");
        let steps = intake.steps(&views).await.expect("steps are read");

        let steps: Vec<_> = steps.into_values().flatten().map(|step| step.text).collect();
        assert_eq!(steps, if shows { vec!["search", "read"] } else { vec![] });
        gateway.at_rest().await;
    }
}

/// The drafts of an agent whose activity is not to be shown, and those that cannot be edited, say nothing of it.
#[tokio::test]
async fn what_an_agent_does_is_shown_only_where_it_is_wanted_and_can_be_taken_back() {
    for (edit, shows) in [(Support::Full, false), (Support::No, true)] {
        let mut setup = acting(GatewaySetup::new().capable(showing).capable(|it| it.edit = edit));
        setup.shown_activities = ["main".into()].into_iter().filter(|_| shows).collect();
        let gateway = setup.start().await;

        gateway.receives(said(&chat("ada"), "count")).await;
        gateway.advance(secs(5)).await;

        assert_eq!(drafts(&gateway), ["one"]);
        gateway.at_rest().await;
    }
}

/// What an agent does is no message by itself, and takes the place of no deferral.
#[tokio::test]
async fn an_activity_alone_is_no_message() {
    let script = Script::replies("done").acting("reads", ActivityState::Working).taking(SOFT_DEADLINE + secs(5));
    let mut setup = GatewaySetup::new().capable(editing).always(script);
    setup.shown_activities = ["main".into()].into();
    let gateway = setup.start().await;

    gateway.receives(said(&chat("ada"), "count")).await;
    gateway.advance(SOFT_DEADLINE + secs(1)).await;
    assert_eq!(gateway.visible(&chat("ada")), [DEFERRAL]);
    gateway.advance(secs(9)).await;

    assert_eq!(gateway.visible(&chat("ada")), ["done"]);
    gateway.at_rest().await;
}

/// L3. One refused call, and then the draft and the answer share a message without a reply.
#[tokio::test]
async fn a_draft_to_a_deleted_message_is_shown_without_the_reply() {
    let script = Script::replies("one two").streaming("one").taking(secs(2)).streaming(" two").taking(secs(2));
    let gateway = GatewaySetup::new().capable(editing).always(script).start().await;
    let event = said(&chat("ada"), "count");
    gateway.platform.delete_message(event.message_id.as_deref().expect("an id"));

    let turn = gateway.receives(event).await;
    gateway.advance(secs(1)).await;
    assert_eq!(gateway.visible(&chat("ada")), ["one"]);
    gateway.advance(secs(9)).await;

    assert_eq!(gateway.visible(&chat("ada")), ["one two"]);
    let attempts = gateway.dossier(turn).await.attempts;
    let results: Vec<_> = attempts.into_iter().filter_map(|attempt| attempt.result).collect();
    assert_eq!(results, ["reply_gone", "delivered", "delivered"]);
    gateway.at_rest().await;
}

/// A draft has the id of the message that it replies to, so an adapter need not remember it.
#[tokio::test]
async fn a_draft_says_which_message_it_answers() {
    let script = Script::replies("one").streaming("one").taking(secs(2));
    let gateway = GatewaySetup::new().capable(showing).always(script).start().await;
    let event = said(&chat("ada"), "count");

    gateway.receives(event.clone()).await;
    gateway.advance(secs(3)).await;

    let reply_to = |seen: SeenDelivery| match seen.action {
        Action::Draft { reply_to, .. } => Some(reply_to),
        _ => None,
    };
    let answered: Vec<_> = gateway.platform.seen().into_iter().filter_map(reply_to).collect();
    assert_eq!(answered, [event.message_id]);
    gateway.at_rest().await;
}

/// B13. The scripted platform records a draft after a final signal as a violation; `at_rest` checks this.
#[tokio::test]
async fn no_draft_comes_after_an_agents_own_send() {
    let script = Script::replies("done")
        .streaming("thinking")
        .sending("here")
        .streaming(" and more")
        .taking(secs(2))
        .streaming(" and more")
        .taking(secs(2));
    let gateway = GatewaySetup::new().capable(showing).always(script).start().await;

    gateway.receives(said(&chat("ada"), "hello")).await;
    gateway.advance(secs(5)).await;

    assert_eq!(gateway.visible(&chat("ada")), ["here"]);
    gateway.at_rest().await;
}

/// B13.
#[tokio::test]
async fn no_draft_comes_after_the_ladders_words() {
    let script = (0..700).fold(Script::hangs(), |script, _| script.streaming("x ").taking(secs(1)));
    let gateway = GatewaySetup::new().capable(showing).always(script).start().await;

    gateway.receives(said(&chat("ada"), "hello")).await;
    gateway.advance(HARD_DEADLINE + secs(30)).await;

    assert_eq!(gateway.visible(&chat("ada")), [LATE]);
    gateway.at_rest().await;
}

/// A platform that hangs delays the answer and does not lose it.
#[tokio::test]
async fn a_platform_that_hangs_does_not_keep_the_answer() {
    let gateway = GatewaySetup::new().capable(showing).always(Script::replies("done").taking(secs(1))).start().await;
    gateway.platform.hold(true);
    gateway.receives(said(&chat("ada"), "hello")).await;
    gateway.advance(secs(60)).await;
    gateway.platform.hold(false);
    gateway.advance(secs(200)).await;

    assert!(gateway.visible(&chat("ada")).iter().any(|text| text.ends_with("done")));
    gateway.at_rest().await;
}

/// A platform on which a draft is an ordinary message.
fn editing(it: &mut Capabilities) {
    (it.drafts, it.draft_interval) = (Support::Full, Duration::from_millis(500));
    it.drafts_are_messages = true;
}

async fn drafting(script: Script) -> TestGateway {
    GatewaySetup::new().capable(editing).always(script).start().await
}

/// A4, B10, B13. The answer replaces the draft by an edit, without a deletion.
#[tokio::test]
async fn an_answer_takes_the_place_of_its_draft() {
    let script = Script::replies("one two").streaming("one").taking(secs(2)).streaming(" two").taking(secs(2));
    let gateway = drafting(script).await;

    gateway.receives(said(&chat("ada"), "count")).await;
    gateway.advance(secs(1)).await;
    assert_eq!(gateway.visible(&chat("ada")), ["one"]);
    gateway.advance(secs(4)).await;

    assert_eq!(gateway.visible(&chat("ada")), ["one two"]);
    let removed = gateway.platform.seen().iter().any(|seen| matches!(seen.action, Action::Delete { .. }));
    assert!(!removed);
    gateway.at_rest().await;
}

/// K6. The first part replaces the draft; the other parts follow.
#[tokio::test]
async fn an_answer_in_parts_begins_where_its_draft_was() {
    let text = ["one", "two", "three"].join(ScriptedChannel::CUT);
    let gateway = drafting(Script::replies(&text).streaming("on").taking(secs(2))).await;

    gateway.receives(said(&chat("ada"), "count")).await;
    gateway.advance(secs(3)).await;

    assert_eq!(gateway.visible(&chat("ada")), ["one", "two", "three"]);
    gateway.at_rest().await;
}

/// A reaction has no text, so the draft is deleted.
#[tokio::test]
async fn a_reaction_leaves_no_draft() {
    let gateway = drafting(Script::reacts("👍").streaming("hm").taking(secs(2))).await;

    gateway.receives(said(&chat("ada"), "thanks")).await;
    gateway.advance(secs(3)).await;

    assert_eq!(gateway.visible(&chat("ada")), ["👍"]);
    gateway.at_rest().await;
}

/// B13, D1. After a crash or a stop the draft is continued; there is no second one.
#[tokio::test]
async fn a_draft_outlives_the_process() {
    let script = Script::replies("one two").streaming("one").taking(secs(5));
    for crash in [false, true] {
        let mut gateway = drafting(script.clone()).await;
        gateway.receives(said(&chat("ada"), "count")).await;
        gateway.advance(secs(1)).await;
        assert_eq!(gateway.visible(&chat("ada")), ["one"]);

        if crash {
            gateway.restart().await;
        } else {
            gateway.stop(secs(1)).await;
            gateway.begin_life().await;
        }
        gateway.advance(secs(10)).await;

        assert_eq!(gateway.visible(&chat("ada")), ["one two"]);
        gateway.at_rest().await;
    }
}

/// B13. A text of the ladder replaces the draft.
#[tokio::test]
async fn the_ladders_words_take_the_place_of_a_draft() {
    for script in [Script::hangs(), Script::fails("broken"), Script::panics()] {
        let gateway = drafting(script.streaming("half a thou").taking(secs(5))).await;

        gateway.receives(said(&chat("ada"), "hello")).await;
        gateway.advance(HARD_DEADLINE * 3).await;

        let visible = gateway.visible(&chat("ada"));
        assert!(visible == [LATE] || visible == [FAILED], "{visible:?}");
        gateway.at_rest().await;
    }
}

/// G2. The text so far stays in the chat at the soft deadline: it is the deferral.
#[tokio::test]
async fn no_deferral_replaces_the_text_so_far() {
    let script = Script::replies("done").streaming("hm").taking(SOFT_DEADLINE + secs(5));
    let gateway = drafting(script).await;

    let turn = gateway.receives(said(&chat("ada"), "hello")).await;
    gateway.advance(SOFT_DEADLINE).await;
    assert_eq!(gateway.visible(&chat("ada")), ["hm"]);
    assert_eq!(gateway.status(turn).await, TurnStatus::Deferred);
    gateway.advance(secs(10)).await;

    assert_eq!(gateway.visible(&chat("ada")), ["done"]);
    gateway.at_rest().await;
}

/// B13. When nothing is owed and the agent is silent, the draft is deleted.
#[tokio::test]
async fn a_silence_leaves_no_draft() {
    let gateway = drafting(Script::is_silent("nothing to add").streaming("well").taking(secs(2))).await;

    gateway.receives(ambient(&chat("room"), "nice weather")).await;
    gateway.advance(secs(1)).await;
    assert_eq!(gateway.visible(&chat("room")), ["well"]);
    gateway.advance(secs(5)).await;

    assert!(gateway.visible(&chat("room")).is_empty());
    gateway.at_rest().await;
}

/// B13. A stop deletes the draft of an earlier run while the turn waits for its next one.
#[tokio::test]
async fn a_stop_leaves_no_draft_of_an_earlier_run() {
    let mut gateway =
        GatewaySetup::new().capable(editing).always(Script::hangs().streaming("well").taking(secs(3600))).start().await;
    for name in ["bob", "ada"] {
        gateway.receives(said(&chat(name), "hello")).await;
    }
    gateway.advance(secs(1)).await;
    assert_eq!(gateway.visible(&chat("ada")), ["well"]);
    gateway.set_slots(1);
    gateway.restart().await;
    assert_eq!(gateway.agent("main").runs().len(), 3, "there is one slot");

    for name in ["ada", "bob"] {
        gateway.receives(said(&chat(name), "/stop")).await;
        assert_eq!(gateway.visible(&chat(name)), ["Stopped."]);
    }
    gateway.at_rest().await;
}

/// B13. A draft that is to be removed while the platform is away is removed after a crash.
#[tokio::test]
async fn a_draft_that_could_not_be_removed_is_removed_by_the_next_process() {
    let script = Script::hangs().streaming("well").taking(secs(3600));
    let mut gateway = GatewaySetup::new().capable(editing).always(script).start().await;
    gateway.receives(said(&chat("ada"), "hello")).await;
    gateway.advance(secs(1)).await;
    assert_eq!(gateway.visible(&chat("ada")), ["well"]);

    gateway.platform.set_down(true);
    gateway.receives(said(&chat("ada"), "/stop")).await;
    gateway.advance(secs(1)).await;
    gateway.restart().await;
    gateway.platform.set_down(false);
    gateway.advance(secs(60)).await;

    assert_eq!(gateway.visible(&chat("ada")), ["Stopped."]);
    gateway.at_rest().await;
}

/// B13. A draft that arrives after the fallback has been claimed is deleted.
#[tokio::test]
async fn a_draft_that_comes_too_late_is_removed() {
    let script = Script::hangs().taking(secs(59)).streaming("well").taking(secs(3600));
    let patient = Policy { soft_deadline: None, hard_deadline: secs(60), ..policy() };
    let gateway = GatewaySetup::new().capable(editing).policy(patient).always(script).start().await;
    gateway.receives(said(&chat("ada"), "hello")).await;
    gateway.advance(secs(58)).await;
    gateway.platform.hold(true);
    gateway.advance(secs(4)).await;

    gateway.platform.hold(false);
    gateway.advance(secs(5)).await;

    assert_eq!(gateway.visible(&chat("ada")), [LATE]);
    gateway.at_rest().await;
}

/// A draft that hangs delays the answer by a second. The platform may apply its edit later: the answer is a message of
/// its own then, and the draft's is removed.
#[tokio::test]
async fn a_draft_that_hangs_neither_delays_nor_overwrites_the_answer() {
    let script = Script::replies("one two three").streaming("one").taking(secs(2)).streaming(" two").taking(secs(2));
    let gateway = drafting(script).await;
    gateway.receives(said(&chat("ada"), "count")).await;
    gateway.advance(secs(1)).await;
    assert_eq!(gateway.visible(&chat("ada")), ["one"]);

    gateway.platform.hang_ephemerals(true);
    gateway.advance(secs(4)).await;

    assert_eq!(gateway.visible(&chat("ada")), ["one two three"]);
    gateway.platform.apply_late_edits();
    assert_eq!(gateway.visible(&chat("ada")), ["one two three"]);
    gateway.at_rest().await;
}

/// As above, after the soft deadline: the draft in the chat is the deferral then.
#[tokio::test]
async fn a_draft_that_hangs_after_the_soft_deadline_does_not_overwrite_the_answer() {
    let script = Script::replies("one two three").streaming("one").taking(secs(2)).streaming(" two").taking(secs(8));
    let quick = Policy { soft_deadline: Some(secs(3)), ..policy() };
    let gateway = GatewaySetup::new().capable(editing).policy(quick).always(script).start().await;
    gateway.receives(said(&chat("ada"), "count")).await;
    gateway.advance(secs(1)).await;

    gateway.platform.hang_ephemerals(true);
    gateway.advance(secs(3)).await;
    assert_eq!(gateway.visible(&chat("ada")), ["one"]);
    gateway.advance(secs(7)).await;

    assert_eq!(gateway.visible(&chat("ada")), ["one two three"]);
    gateway.platform.apply_late_edits();
    assert_eq!(gateway.visible(&chat("ada")), ["one two three"]);
    gateway.at_rest().await;
}

/// As above, with a deferral of its own, and an answer that is sent when the late edit is no longer feared.
#[tokio::test]
async fn a_deferral_that_a_draft_hangs_on_is_removed_however_late_the_answer_is() {
    let script = Script::replies("one two").taking(secs(6)).streaming("one").taking(secs(4));
    let quick = Policy { soft_deadline: Some(secs(3)), ..policy() };
    let gateway = GatewaySetup::new().capable(editing).policy(quick).always(script).start().await;
    gateway.receives(said(&chat("ada"), "count")).await;
    gateway.advance(secs(4)).await;
    assert_eq!(gateway.visible(&chat("ada")), [DEFERRAL]);
    gateway.platform.hang_ephemerals(true);
    gateway.advance(secs(4)).await;

    gateway.platform.queue_fault(Fault::Limit { retry_after: secs(150), scope: Scope::Conversation });
    gateway.advance(secs(200)).await;

    assert_eq!(gateway.visible(&chat("ada")), ["one two"]);
    gateway.at_rest().await;
}

/// D1, B13. If a deferral has more parts than its answer, the surplus is deleted, also after a crash at any write.
#[tokio::test]
async fn what_is_left_over_is_removed_at_every_step() {
    let note = ["a moment", "or two"].join(ScriptedChannel::CUT);
    for number in 1..12 {
        let note = note.clone();
        let mut gateway = GatewaySetup::new()
            .agent("main", move |turn: &AgentTurn| match turn.attempt {
                1 => Script::defers(Some(&note), secs(60)),
                _ => Script::replies("done"),
            })
            .start()
            .await;
        gateway.receives(said(&chat("ada"), "hello")).await;
        assert_eq!(gateway.visible(&chat("ada")), ["a moment", "or two"]);
        gateway.life.crash_at(number, crate::life::Crash::After);
        gateway.advance(secs(60)).await;

        gateway.restart().await;
        gateway.advance(secs(60)).await;

        assert_eq!(gateway.visible(&chat("ada")), ["done"], "at write {number}");
        gateway.at_rest().await;
    }
}

/// A surplus message that cannot be deleted does not change the answer.
#[tokio::test]
async fn what_cannot_be_removed_undoes_no_answer() {
    let note = ["a moment", "or two"].join(ScriptedChannel::CUT);
    let gateway = GatewaySetup::new()
        .agent("main", move |turn: &AgentTurn| match turn.attempt {
            1 => Script::defers(Some(&note), secs(60)),
            _ => Script::replies("done"),
        })
        .start()
        .await;
    let refuses = |delivery: &Delivery| matches!(delivery.action(), Action::Delete { .. }).then_some(Fault::Refuse);
    gateway.platform.choose_faults(refuses);

    let turn = gateway.receives(said(&chat("ada"), "hello")).await;
    gateway.advance(secs(120)).await;

    assert_eq!(gateway.visible(&chat("ada")), ["done", "or two"]);
    assert_eq!(gateway.status(turn).await, TurnStatus::Answered);
    let view = gateway.store.view(turn).await.expect("readable").expect("there");
    assert_eq!(view.shown.map(|shown| shown.text).as_deref(), Some("done"));
    gateway.at_rest().await;
}

/// L4. If the person has deleted the draft, the answer is a new message.
#[tokio::test]
async fn an_answer_whose_draft_is_gone_is_a_message_of_its_own() {
    let gateway = drafting(Script::replies("done").streaming("hm").taking(secs(5))).await;
    let turn = gateway.receives(said(&chat("ada"), "hello")).await;
    gateway.advance(secs(1)).await;
    let draft = gateway.platform.posts(&chat("ada")).remove(0);
    gateway.platform.delete_post(&draft.id);

    gateway.advance(secs(10)).await;

    let posts = gateway.platform.posts(&chat("ada"));
    assert_eq!(gateway.visible(&chat("ada")), ["done"]);
    assert_eq!(posts[0].to, gateway.dossier(turn).await.turn.event.message_id, "it replies to what was asked");
    gateway.at_rest().await;
}

/// A platform that recognises a resent message.
fn knowing(it: &mut Capabilities) {
    editing(it);
    it.resend = Resend::Idempotent;
}

/// D7. The response to the first draft is lost; a resend tells which message it is.
#[tokio::test]
async fn a_draft_whose_response_is_lost_becomes_the_answer() {
    for script in [
        Script::replies("all at once").streaming("all at once"),
        Script::replies("one two").streaming("one").taking(secs(3)),
    ] {
        for fault in [Fault::LoseResponse, Fault::LoseRequest] {
            let gateway = GatewaySetup::new().capable(knowing).always(script.clone()).start().await;
            gateway.platform.queue_fault(fault);

            gateway.receives(said(&chat("ada"), "hello")).await;
            gateway.advance(secs(10)).await;

            assert_eq!(gateway.visible(&chat("ada")).len(), 1, "{:?}", gateway.visible(&chat("ada")));
            gateway.at_rest().await;
        }
    }
}

/// D7. If a resend may show twice, no second draft is sent, and the answer says that it replaces the first.
#[tokio::test]
async fn an_answer_after_a_draft_of_unknown_fate_has_a_label() {
    let script = Script::replies("one two").streaming("one").taking(secs(3)).streaming(" two").taking(secs(3));
    let gateway = drafting(script).await;
    gateway.platform.queue_fault(Fault::LoseResponse);

    gateway.receives(said(&chat("ada"), "hello")).await;
    gateway.advance(secs(10)).await;

    assert_eq!(gateway.visible(&chat("ada")), ["one", "(replaces) one two"]);
    gateway.at_rest().await;
}

/// D7. The same with a deferral in between.
#[tokio::test]
async fn an_answer_after_a_lost_draft_and_a_deferral_has_a_label() {
    let gateway = drafting(Script::replies("done").streaming("do").taking(SOFT_DEADLINE + secs(5))).await;
    gateway.platform.queue_fault(Fault::LoseResponse);

    gateway.receives(said(&chat("ada"), "hello")).await;
    gateway.advance(SOFT_DEADLINE + secs(10)).await;

    assert_eq!(gateway.visible(&chat("ada")), ["do", "(replaces) done"]);
    gateway.at_rest().await;
}

/// D7. A copy of an answer that replaces a lost draft says that it is a copy.
#[tokio::test]
async fn a_copy_of_an_answer_after_a_lost_draft_is_a_copy() {
    let gateway = drafting(Script::replies("one two").streaming("one").taking(secs(3))).await;
    gateway.platform.queue_fault(Fault::LoseResponse);
    gateway.platform.queue_fault(Fault::LoseResponse);

    gateway.receives(said(&chat("ada"), "hello")).await;
    gateway.advance(secs(30)).await;

    assert_eq!(gateway.visible(&chat("ada")), ["one", "(replaces) one two", "(again) one two"]);
    gateway.at_rest().await;
}

/// B1, B13. A draft edits the deferral that is in the chat; no second message is sent.
#[tokio::test]
async fn a_draft_changes_the_deferral_that_is_there() {
    let wait = SOFT_DEADLINE + secs(5);
    let script = Script::replies("one two").taking(wait).streaming("one").taking(secs(5));
    let gateway = drafting(script).await;

    gateway.receives(said(&chat("ada"), "hello")).await;
    gateway.advance(wait + secs(2)).await;
    assert_eq!(gateway.visible(&chat("ada")), ["one"]);
    gateway.advance(secs(5)).await;

    assert_eq!(gateway.visible(&chat("ada")), ["one two"]);
    let sent = gateway.platform.seen().iter().filter(|seen| matches!(seen.action, Action::Send { .. })).count();
    assert_eq!(sent, 1, "one message in all");
    gateway.at_rest().await;
}

/// D1, D7. After a crash at any write there is one message, and any copy is labelled.
#[tokio::test]
async fn a_crash_at_every_step_of_a_draft_leaves_one_message() {
    for is_known in [true, false] {
        // The first write accepts the event.
        for number in 2..16 {
            let script = Script::replies("one two").streaming("one").taking(secs(2)).streaming(" two").taking(secs(2));
            let setup = GatewaySetup::new().capable(if is_known { knowing } else { editing }).always(script);
            let mut gateway = setup.start().await;
            gateway.life.crash_at(number, crate::life::Crash::After);
            gateway.receives(said(&chat("ada"), "hello")).await;
            gateway.advance(secs(10)).await;

            gateway.restart().await;
            gateway.advance(secs(60)).await;

            let visible = gateway.visible(&chat("ada"));
            let unlabelled = visible.iter().filter(|text| !text.starts_with("(replaces)")).count();
            let last = visible.last().map(|text| text.trim_start_matches("(replaces) "));
            assert_eq!(last, Some("one two"), "{visible:?}");
            assert!(unlabelled <= 1 && visible.len() <= if is_known { 1 } else { 2 }, "at write {number}: {visible:?}");
            gateway.at_rest().await;
        }
    }
}

/// P3. During an outage drafts are tried with pauses, and the answer is sent when the platform is back.
#[tokio::test]
async fn drafts_wait_out_an_outage_with_pauses() {
    let script = (0..60).fold(Script::replies("done"), |script, _| script.streaming("x ").taking(secs(1)));
    let gateway = drafting(script).await;
    gateway.platform.set_down(true);

    let turn = gateway.receives(said(&chat("ada"), "hello")).await;
    gateway.advance(secs(65)).await;
    let drafts = gateway.dossier(turn).await.deliveries.iter().filter(|delivery| delivery.is_draft()).count();
    assert!((1..=12).contains(&drafts), "{drafts} drafts");
    gateway.platform.set_down(false);
    gateway.advance(secs(120)).await;

    assert_eq!(gateway.visible(&chat("ada")), ["done"]);
    gateway.at_rest().await;
}
