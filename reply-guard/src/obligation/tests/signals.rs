//! What settles a turn, and what does not.

use super::*;

/// A3.
#[test]
fn a_reply_settles_on_the_receipt_and_not_before() {
    let mut turn = Turn::running();

    assert_eq!(turn.on(reply("hello")), ["send 1: hello"]);
    assert_eq!(turn.state(), "claimed");
    turn.attempted();
    assert_eq!(turn.state(), "claimed");
    assert_eq!(turn.shown_as("m1"), no_effects());
    assert_eq!(turn.signal(), (SignalKind::Reply, &Via::Answer));
}

#[test]
fn a_reaction_is_an_answer() {
    let mut turn = Turn::running();

    assert_eq!(turn.on(react(" 👍 ")), ["send 1: react 👍"]);
    turn.shown_as("m1");
    assert_eq!(turn.signal(), (SignalKind::Reaction, &Via::Answer));
}

/// Markers and reasoning are an agent's; the gateway and operators mean what they say.
#[test]
fn what_no_agent_says_is_sent_as_it_is() {
    for words in ["NO_REPLY", "all of it </think> counts", "<think>also this"] {
        assert_eq!(Turn::running().on(Event::Answered(Reply::text(words))), [format!("send 1: {words}")]);
    }
    let file =
        crate::Attachment { name: "a".to_owned(), media_type: "text/plain".to_owned(), url: "https://a/".to_owned() };
    let mut turn = Turn::running();
    assert_eq!(turn.on(Event::Answered(Reply { attachments: vec![file], ..Reply::text("\u{200b}") })), ["send 1: "]);
    assert_eq!(Turn::running().on(Event::Answered(Reply::text(" \u{200b}"))), ["send 1: say silent"]);
}

/// B10, E8.
#[test]
fn a_second_receipt_changes_nothing() {
    let mut turn = Turn::running().after([reply("hello")]);
    turn.shown_as("m1");

    let settled = turn.obligation.clone();
    assert_eq!(turn.shown_as("m2"), no_effects());
    assert_eq!(turn.on(Event::Refused { claim: 1, reason: "404".to_owned() }), no_effects());
    assert_eq!(turn.on(Event::Lost { claim: 1, idempotent: true }), no_effects());
    assert_eq!(turn.obligation, settled);
}

/// A1, A7, A13.
#[test]
fn an_empty_answer_is_silence() {
    for empty in ["", " \n\u{200b}", "<think>what to say</think>", "NO_REPLY"] {
        let mut turn = Turn::running();
        assert_eq!(turn.on(reply(empty)), ["send 1: say silent"], "{empty:?}");
    }
    assert_eq!(Turn::running().on(react("\u{a0}")), ["send 1: say silent"]);
}

/// A1.
#[test]
fn the_turn_says_that_the_answer_was_empty() {
    let turn = Turn::running().after([reply("")]);
    assert_eq!(turn.obligation.fallback(), Some((Cause::Silent, "empty")));
}

/// A20, C1, B14.
#[test]
fn a_marker_becomes_what_the_operator_chose_for_silence() {
    let policy = ladder_for(Cause::Silent, &[Rung::React("👀".to_owned())]);
    let mut turn = Turn::running_with(policy);

    assert_eq!(turn.on(reply("no_reply")), ["send 1: react 👀"]);
    assert_eq!(turn.obligation.fallback(), Some((Cause::Silent, "marker NO_REPLY")));
}

/// C1, C4.
#[test]
fn a_marker_beside_an_answer_never_reaches_a_person() {
    assert_eq!(Turn::running().on(reply("Done.\nHEARTBEAT_OK")), ["send 1: Done."]);
    assert_eq!(Turn::running().on(sent("Done. NO_REPLY")), ["send 1: Done."]);
    assert_eq!(Turn::running().on(react("[SILENT]")), ["send 1: say silent"]);
    assert_eq!(Turn::running().on(defer(Some("NO_REPLY"), 60)), ["send 1: defer until 60"]);
}

/// K3.
#[test]
fn files_without_words_are_an_answer() {
    let file = crate::Attachment {
        name: "report.pdf".to_owned(),
        media_type: "application/pdf".to_owned(),
        url: "https://example.org/report.pdf".to_owned(),
    };
    let outcome = Outcome::Reply(Reply {
        text: "NO_REPLY".to_owned(),
        attachments: vec![file.clone()],
        choices: Some(choices()),
        sealed: None,
    });
    let mut turn = Turn::running();

    let decision = turn.obligation.on(Event::Outcome(outcome), &turn.policy, at(0));
    let [Effect::Send(signal)] = decision.effects.as_slice() else { panic!("not one signal: {decision:?}") };
    assert_eq!(signal.get().body, Body::Reply(Reply { attachments: vec![file], ..Reply::default() }));
}

/// Nothing is taken out of it, and nothing in the clear stands beside it.
#[test]
fn a_sealed_answer_is_as_the_agent_made_it() {
    let armour = "-----BEGIN AGE ENCRYPTED FILE-----\n NO_REPLY <think>\n";
    let said = Reply { text: "It is the heart.".to_owned(), choices: Some(choices()), ..Reply::sealed(armour) };
    let mut turn = Turn::running();

    let decision = turn.obligation.on(Event::Outcome(Outcome::Reply(said)), &turn.policy, at(0));

    let [Effect::Send(signal)] = decision.effects.as_slice() else { panic!("not one signal: {decision:?}") };
    assert_eq!(signal.get().body, Body::Reply(Reply::sealed(armour)));
}

fn choices() -> Choices {
    Choices { options: vec!["Yes".to_owned(), "No".to_owned()], free_text: true, expires: Some(at(90)) }
}

/// A question with choices answers the turn, as any reply does.
#[test]
fn a_question_is_an_answer_and_keeps_its_choices() {
    let question = Reply::question(" Shall I?\nHEARTBEAT_OK", choices());
    let mut turn = Turn::running();

    let decision = turn.obligation.on(Event::Outcome(Outcome::Reply(question)), &turn.policy, at(0));
    let [Effect::Send(signal)] = decision.effects.as_slice() else { panic!("not one signal: {decision:?}") };
    assert_eq!(signal.get().body, Body::Reply(Reply::question("Shall I?", choices())));
    assert_eq!(signal.get().kind(), SignalKind::Reply);
}

#[test]
fn choices_without_a_question_are_silence() {
    let nothing = || Reply::question(" \n", choices());

    assert_eq!(Turn::running().on(Event::Outcome(Outcome::Reply(nothing()))), ["send 1: say silent"]);
    assert_eq!(Turn::running().on(Event::Sent(nothing())), no_effects());
}

/// Obligations that were stored before replies had choices are still read.
#[test]
fn a_reply_without_choices_is_stored_as_before() {
    let stored = r#"{"text":"Done."}"#;

    assert_eq!(serde_json::from_str::<Reply>(stored).expect("it is read"), Reply::text("Done."));
    assert_eq!(serde_json::to_string(&Reply::text("Done.")).expect("it is written"), stored);
}

/// B5, B6.
#[test]
fn silence_is_silence_where_nothing_was_owed() {
    for end in [silent("not for me"), reply("NO_REPLY"), failed()] {
        let mut turn = Turn::ambient().after([Event::Begin]);
        assert_eq!(turn.on(end), no_effects());
        assert!(matches!(turn.obligation.state(), ObligationState::Settled(Settlement::Silence { .. })));
    }
}

/// B5, G2.
#[test]
fn a_slow_agent_says_nothing_where_nothing_was_owed() {
    let mut turn = Turn::ambient().after([Event::Begin]);

    assert_eq!(turn.ticks(SOFT), no_effects());
    assert_eq!(turn.ticks(HARD), ["stop run"]);
    assert_eq!(turn.state(), "settled");
}

#[test]
fn an_answer_is_welcome_where_nothing_was_owed() {
    let mut turn = Turn::ambient().after([Event::Begin]);
    assert_eq!(turn.on(reply("hello")), ["send 1: hello"]);
    assert_eq!(turn.refused(), ["dead letter: 403"]);
}

/// A7.
#[test]
fn a_draft_never_settles_anything() {
    let turn = Turn::running();

    let draft = turn.obligation.clear_draft("Thinking of").expect("the turn is undecided");
    assert_eq!(draft.get().text, "Thinking of");
    assert_eq!(turn.state(), "open");
}

/// C1, B13.
#[test]
fn a_draft_shows_no_marker_and_nothing_blank() {
    let turn = Turn::running();
    let draft = |text: &str| turn.obligation.clear_draft(text).map(|draft| draft.get().text.clone());

    assert_eq!(draft(" \u{feff}"), None);
    assert_eq!(draft("<think>secret"), None);
    assert_eq!(draft("NO_REP"), None);
    assert_eq!(draft("Done. NO_REPLY"), Some("Done.".to_owned()));
}

/// B13.
#[test]
fn no_draft_after_the_answer_was_claimed() {
    let turn = Turn::running().after([sent("hello")]);
    assert_eq!(turn.obligation.clear_draft("hel"), None);
    assert_eq!(Turn::owed().obligation.clear_draft("hel"), None);
}

#[test]
fn a_send_of_the_agents_own_settles_the_turn() {
    let mut turn = Turn::running();

    assert_eq!(turn.on(sent("hello")), ["send 1: hello"]);
    turn.shown_as("m1");
    assert_eq!(turn.signal(), (SignalKind::Reply, &Via::AgentSend));
    assert!(turn.obligation.is_running());
}

/// B8.
#[test]
fn no_fallback_and_no_error_after_a_send_of_the_agents_own() {
    for end in [silent("said it already"), failed(), reply("NO_REPLY")] {
        let mut turn = Turn::running().after([sent("hello")]);
        turn.shown_as("m1");
        let effects = turn.on(end);
        assert!(effects.iter().all(|effect| effect.starts_with("suppress")), "{effects:?}");
        assert_eq!(turn.state(), "settled");
    }
}

/// B8, G2.
#[test]
fn the_deadline_of_a_run_that_has_answered_only_stops_it() {
    let mut turn = Turn::running().after([sent("hello")]);
    turn.shown_as("m1");

    assert_eq!(turn.wakes_at(), Some(HARD));
    assert_eq!(turn.ticks(HARD), ["stop run"]);
    assert_eq!(turn.signal(), (SignalKind::Reply, &Via::AgentSend));
    assert_eq!(turn.wakes_at(), None);
}

#[test]
fn an_answer_after_a_send_of_the_agents_own_waits_for_its_result() {
    let mut turn = Turn::running().after([sent("hello")]);
    assert_eq!(turn.on(reply("hello again")), no_effects());
    assert_eq!(turn.refused(), ["send 2: hello again"]);

    let mut turn = Turn::running().after([sent("hello"), reply("hello again")]);
    assert_eq!(turn.shown_as("m1"), ["suppress Outcome hello again: the turn was already settled"]);
}

#[test]
fn a_refused_send_of_the_agents_own_leaves_the_turn_to_its_run() {
    let mut turn = Turn::running().after([sent("hello")]);

    assert_eq!(turn.refused(), no_effects());
    assert_eq!(turn.state(), "open");
    assert_eq!(turn.on(reply("other words")), ["send 2: other words"]);
}

#[test]
fn a_blank_send_of_the_agents_own_changes_nothing() {
    let mut turn = Turn::running();
    turn.ticks(SOFT);
    let before = turn.obligation.clone();

    assert_eq!(turn.on(sent("NO_REPLY")), no_effects());
    assert_eq!(turn.obligation, before);
}

/// B10.
#[test]
fn a_second_send_of_the_agents_own_is_recorded_and_not_sent() {
    let mut turn = Turn::running().after([sent("one")]);
    assert_eq!(turn.on(sent("two")), ["suppress Outcome two: lost to the agent's own send that was already claimed"]);
    turn.shown_as("m1");
    assert_eq!(turn.on(sent("three")), ["suppress Outcome three: the turn was already settled"]);
}

/// D18.
#[test]
fn a_cancel_settles_at_once() {
    for mut turn in [Turn::owed(), Turn::running(), Turn::deferred()] {
        let was_running = turn.obligation.is_running();
        assert_eq!(turn.on(cancelled()), if was_running { vec!["stop run"] } else { vec![] });
        assert!(
            matches!(turn.obligation.state(), ObligationState::Settled(Settlement::Cancelled { by: CancelledBy::Turn(by) }) if by == "turn-9")
        );
        assert_eq!(turn.on(reply("too late")), ["suppress Outcome too late: the turn was already settled"]);
    }
}

/// D18, G5.
#[test]
fn a_cancel_takes_back_what_was_not_attempted() {
    let mut turn = Turn::running().after([reply("hello")]);
    assert_eq!(turn.on(cancelled()), ["withdraw 1"]);
    assert_eq!(turn.state(), "settled");

    let mut turn = Turn::running();
    turn.ticks(SOFT);
    turn.attempted();
    assert_eq!(turn.on(cancelled()), ["stop run", "withdraw 1"]);
    assert_eq!(turn.state(), "settled");
}

/// D18, G5.
#[test]
fn a_cancel_waits_for_an_answer_that_may_be_out() {
    let claimed = || {
        let mut turn = Turn::running().after([reply("hello")]);
        turn.attempted();
        assert_eq!(turn.on(cancelled()), no_effects());
        assert_eq!(turn.on(sent("more")), ["suppress Outcome more: cancelled by turn turn-9"]);
        turn
    };

    let mut turn = claimed();
    turn.shown_as("m1");
    assert_eq!(turn.signal(), (SignalKind::Reply, &Via::Answer));

    let is_cancelled =
        |turn: &Turn| matches!(turn.obligation.state(), ObligationState::Settled(Settlement::Cancelled { .. }));
    let mut turn = claimed();
    assert_eq!(turn.refused(), no_effects());
    assert!(is_cancelled(&turn));
    let mut turn = claimed();
    assert_eq!(turn.lost(true), ["withdraw 1"]);
    assert!(is_cancelled(&turn));
    let mut turn = claimed();
    assert_eq!(turn.not_sent(), ["withdraw 1"]);
    assert!(is_cancelled(&turn));
}

/// G5.
#[test]
fn racing_ends_have_a_fixed_precedence() {
    let order = [End::Deferral, End::Deadline, End::Failure, End::Outcome, End::Settled, End::Cancel];
    assert!(order.is_sorted());
}

/// G5.
#[test]
fn of_the_ends_that_wait_for_a_result_the_greatest_wins_in_any_order() {
    type Enter = fn(&mut Turn);
    let deadline: Enter = |turn| drop(turn.ticks(HARD));
    let failure: Enter = |turn| drop(turn.on(failed()));
    let outcome: Enter = |turn| drop(turn.on(reply("done")));
    for order in [[deadline, failure, outcome], [failure, outcome, deadline], [outcome, deadline, failure]] {
        let mut turn = Turn::running();
        turn.ticks(SOFT);
        turn.attempted();
        for enter in order {
            enter(&mut turn);
        }
        assert_eq!(turn.shown_as("d1"), ["send 2 for d1: done"]);
    }
}

/// G5, B8.
#[test]
fn nothing_beats_an_answer_that_was_claimed() {
    let mut turn = Turn::running().after([reply("done")]);
    let lost = |what: &str| vec![format!("suppress {what}: lost to the answer that was already claimed")];

    assert_eq!(turn.on(failed()), lost("Failure 500 from upstream"));
    assert_eq!(turn.on(reply("done again")), lost("Outcome done again"));
    assert_eq!(turn.on(defer(None, 60)), lost("Deferral -"));
    assert_eq!(turn.on(silent("never mind")), no_effects());
    assert_eq!(turn.ticks(HARD), no_effects());
    turn.shown_as("m1");
    assert_eq!(turn.signal(), (SignalKind::Reply, &Via::Answer));
}

/// A10.
#[test]
fn a_cancel_stops_an_answer_between_its_parts() {
    let mut turn = Turn::running().after([reply("a long answer")]);
    turn.part_delivered();
    assert_eq!(turn.on(cancelled()), ["withdraw 1"]);
    assert_eq!(turn.state(), "settled");
}

/// A10.
#[test]
fn a_cancel_during_the_first_part_stops_the_others() {
    let mut turn = Turn::running().after([reply("a long answer")]);
    turn.attempted();
    assert_eq!(turn.on(cancelled()), no_effects());
    assert_eq!(turn.part_delivered(), ["withdraw 1"]);
    assert!(matches!(turn.obligation.state(), ObligationState::Settled(Settlement::Cancelled { .. })));
}

#[test]
fn a_turn_without_a_visible_signal_is_overdue_soon_after_its_soft_deadline_whatever_it_waits_for() {
    let overdue_at = |turn: &Turn| turn.obligation.overdue_at().map(|at| at.as_millis() / 1000);
    let mut turn = Turn::owed();
    assert_eq!(overdue_at(&turn), Some(SOFT + 5));
    turn.on(Event::Begin);
    turn.now = 5;
    turn.on(reply("done"));
    turn.attempted();
    turn.not_sent();
    assert_eq!(overdue_at(&turn), Some(SOFT + 5));
    turn.shown_as("m1");
    assert_eq!(overdue_at(&turn), None);

    // A deferral is a signal; the answer is late after the time that it names.
    let mut turn = Turn::deferred();
    assert_eq!(overdue_at(&turn), Some(HARD + 5));
    turn.on(reply("done"));
    assert_eq!(overdue_at(&turn), Some(HARD + 5));
    // It is sent when somebody's quiet hours end.
    turn.obligation.waits_until(at(HARD * 10));
    assert_eq!(overdue_at(&turn), Some(HARD * 10 + 5));
    assert_eq!(overdue_at(&Turn::ambient()), None);
}

/// A10. The deferral was edited into the part that was seen: it is not removed.
#[test]
fn a_cancel_between_the_parts_leaves_what_was_seen() {
    let mut turn = Turn::deferred().after([reply("a long answer")]);
    turn.part_delivered();
    assert_eq!(turn.on(cancelled()), ["withdraw 2"]);
    assert_eq!(turn.obligation.unfinished_messages().next(), None);

    let mut turn = Turn::deferred().after([reply("a long answer")]);
    turn.attempted();
    turn.on(cancelled());
    assert_eq!(turn.part_delivered(), ["withdraw 2"]);
    assert_eq!(turn.obligation.unfinished_messages().next(), None);
}

/// L4. After the person deleted the deferral, or its chat got another id, its id may be another message's.
#[test]
fn a_deferral_that_is_gone_is_neither_replaced_nor_removed() {
    let mut turn = Turn::deferred();
    assert_eq!(turn.on(reply("done")), ["send 2 for d1: done"]);
    turn.attempted();

    assert_eq!(turn.on(Event::MessageGone { message: "d1".to_owned() }), no_effects());
    turn.not_sent();
    turn.shown_as("m1");

    assert_eq!(turn.obligation.unfinished_messages().next(), None);
    assert_eq!(turn.state(), "settled");
}
