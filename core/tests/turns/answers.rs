//! The outcomes of an agent, and what the person sees of each.

use rejoinder_core::{
    AgentTurn, Cause, EventKind, InboundEvent, Ladder, Policies, Rung, SendResult, Sender, Speaker, Support,
    conformance::scripted::{Fault, Script},
    store::TurnStatus,
};

use crate::{
    gateway::{GatewaySetup, HARD_DEADLINE, SOFT_DEADLINE, TestGateway, ambient, chat, mention, policy, said, secs},
    texts::{DEFERRAL, FAILED, SILENT},
};

#[tokio::test]
async fn a_reply_is_seen_once() {
    let gateway = TestGateway::with(Script::replies("Good morning.")).await;

    let turn = gateway.receives(said(&chat("ada"), "hello")).await;

    assert_eq!(gateway.visible(&chat("ada")), ["Good morning."]);
    assert_eq!(gateway.status(turn).await, TurnStatus::Answered);
    gateway.at_rest().await;
}

/// A1, A11.
#[tokio::test]
async fn an_empty_answer_becomes_the_operators_words() {
    let gateway = TestGateway::with(Script::replies(" \n")).await;

    let turn = gateway.receives(said(&chat("ada"), "hello")).await;

    assert_eq!(gateway.visible(&chat("ada")), [SILENT]);
    let obligation = gateway.dossier(turn).await.turn.obligation;
    assert_eq!(obligation.fallback(), Some((Cause::Silent, "empty")));
    gateway.at_rest().await;
}

/// A7, A13. Streamed text, thoughts and tools are no reply.
#[tokio::test]
async fn what_an_agent_does_on_the_way_is_no_answer() {
    let script = Script::replies("<think>hm</think>").streaming("looking").using("search");
    let gateway = GatewaySetup::new().capable(|it| it.drafts = Support::Full).always(script).start().await;

    gateway.receives(said(&chat("ada"), "hello")).await;

    assert_eq!(gateway.visible(&chat("ada")), [SILENT]);
    gateway.at_rest().await;
}

/// A7. An answer is empty if it renders to nothing.
#[tokio::test]
async fn an_answer_of_which_nothing_is_seen_is_silence() {
    let gateway = GatewaySetup::new().agent("main", |turn| Script::replies(&turn.message.text)).start().await;
    let unseen =
        ["#", "> ", "- ", "&nbsp;", "&#8203;", "[]()", "*\u{200b}*", "` `", "| |\n|-|\n| |", "\u{e0020}", "\u{fe0f}"];

    for (number, answer) in unseen.into_iter().chain(["<think>hm</think>\n#", "hm</think> #"]).enumerate() {
        let person = chat(&number.to_string());
        let turn = gateway.receives(said(&person, answer)).await;
        assert_eq!(gateway.visible(&person), [SILENT], "{answer}");
        let obligation = gateway.dossier(turn).await.turn.obligation;
        assert!(
            matches!(obligation.fallback(), Some((Cause::Silent, "nothing that can be seen" | "empty"))),
            "{answer}"
        );
    }
    for answer in ["[Answer]: 42", "[](https://example.org)", "42."] {
        let person = chat(answer);
        gateway.receives(said(&person, answer)).await;
        assert_eq!(gateway.visible(&person), [answer]);
    }
    gateway.at_rest().await;
}

/// A7. A file is visible, and is sent without an empty text message.
#[tokio::test]
async fn words_of_which_nothing_is_seen_do_not_come_with_a_file() {
    let file = rejoinder_core::Attachment {
        name: "cat.png".to_owned(),
        media_type: "image/png".to_owned(),
        url: "https://example.org/cat.png".to_owned(),
    };
    let reply = rejoinder_core::Reply { attachments: vec![file], ..rejoinder_core::Reply::text("> ") };
    let gateway = TestGateway::with(Script::answers(reply)).await;

    let turn = gateway.receives(said(&chat("ada"), "a cat?")).await;

    let dossier = gateway.dossier(turn).await;
    assert_eq!(dossier.deliveries.len(), 1, "{:#?}", dossier.deliveries);
    assert_eq!(gateway.visible(&chat("ada")), [""]);
    gateway.at_rest().await;
}

/// A7. A send that renders to nothing is suppressed, and the run continues.
#[tokio::test]
async fn a_send_of_which_nothing_is_seen_is_no_answer() {
    let gateway = TestGateway::with(Script::replies("Done.").sending("#")).await;

    gateway.receives(said(&chat("ada"), "hello")).await;

    assert_eq!(gateway.agent("main").runs()[0].sent, [SendResult::Suppressed]);
    assert_eq!(gateway.visible(&chat("ada")), ["Done."]);
    gateway.at_rest().await;
}

/// A7. The operator's template replaces a note that renders to nothing.
#[tokio::test]
async fn a_deferral_whose_note_shows_nothing_is_in_the_operators_words() {
    let script = |turn: &AgentTurn| match turn.attempt {
        1 => Script::defers(Some("&nbsp;"), secs(60)),
        _ => Script::replies("Done."),
    };
    let gateway = GatewaySetup::new().agent("main", script).start().await;

    gateway.receives(said(&chat("ada"), "hello")).await;
    assert_eq!(gateway.visible(&chat("ada")), [DEFERRAL]);
    gateway.advance(secs(61)).await;

    assert_eq!(gateway.visible(&chat("ada")), ["Done."]);
    gateway.at_rest().await;
}

/// A7, A20. Thoughts and silence markers are removed from an answer, in every spelling.
#[tokio::test]
async fn thoughts_and_markers_are_not_shown() {
    let gateway = GatewaySetup::new().agent("main", |turn| Script::replies(&turn.message.text)).start().await;
    let answers = [
        ("It is a greeting. </think> Good morning.", "Good morning."),
        ("It is a greeting.\n</think>\n\nNO_REPLY", SILENT),
        ("NO_REPLYNO_REPLY", SILENT),
        ("<no-reply />", SILENT),
        ("Good morning.\n<no-reply />", "Good morning."),
    ];

    for (number, (answer, shown)) in answers.into_iter().enumerate() {
        let person = chat(&number.to_string());
        gateway.receives(said(&person, answer)).await;
        assert_eq!(gateway.visible(&person), [shown], "{answer}");
    }
    gateway.at_rest().await;
}

/// A20, B14. The ladder for silence is a setting.
#[tokio::test]
async fn a_silence_marker_in_a_direct_chat_becomes_the_reaction_that_the_operator_chose() {
    let ladder = Ladder::empty().with(Cause::Silent, vec![Rung::React("👍".to_owned())]);
    let gateway = GatewaySetup::new()
        .policy(rejoinder_core::Policy { ladder, ..policy() })
        .always(Script::replies("NO_REPLY"))
        .start()
        .await;

    gateway.receives(said(&chat("ada"), "thanks")).await;

    assert_eq!(gateway.visible(&chat("ada")), ["👍"]);
    gateway.at_rest().await;
}

/// A8.
#[tokio::test]
async fn a_group_follows_its_own_ladder() {
    let ladder = Ladder::empty().with(Cause::Silent, vec![Rung::React("👀".to_owned())]);
    let group = rejoinder_core::Policy { ladder, ..policy() };
    let mut setup = GatewaySetup::new().always(Script::is_silent("nothing to add"));
    setup.policies = Policies::new(policy()).with("test", rejoinder_core::ChatKind::Group, group);
    let gateway = setup.start().await;

    gateway.receives(mention(&chat("team"), "agent?")).await;
    gateway.receives(said(&chat("ada"), "hello")).await;

    assert_eq!(gateway.visible(&chat("team")), ["👀"]);
    assert_eq!(gateway.visible(&chat("ada")), [SILENT]);
    gateway.at_rest().await;
}

/// B5, B6.
#[tokio::test]
async fn silence_on_ambient_talk_stays_silent() {
    let gateway = TestGateway::with(Script::is_silent("not for me")).await;

    let turn = gateway.receives(ambient(&chat("team"), "lunch?")).await;

    assert!(gateway.visible(&chat("team")).is_empty());
    assert_eq!(gateway.status(turn).await, TurnStatus::Silent);
    gateway.at_rest().await;
}

/// B7, C5. The person reads a template; the error is in the turn's record.
#[tokio::test]
async fn a_failing_agent_becomes_the_operators_words_and_the_error_stays_inside() {
    let gateway = TestGateway::with(Script::fails("HTTP 500 from http://10.0.0.1")).await;

    let turn = gateway.receives(said(&chat("ada"), "hello")).await;

    assert_eq!(gateway.visible(&chat("ada")), [FAILED]);
    let runs = gateway.dossier(turn).await.runs;
    assert!(runs[0].detail.as_deref().is_some_and(|detail| detail.contains("HTTP 500")));
    gateway.at_rest().await;
}

/// B7.
#[tokio::test]
async fn a_panicking_agent_becomes_the_operators_words() {
    let gateway = TestGateway::with(Script::panics()).await;

    gateway.receives(said(&chat("ada"), "hello")).await;

    assert_eq!(gateway.visible(&chat("ada")), [FAILED]);
    gateway.at_rest().await;
}

/// B8. No error after an answer.
#[tokio::test]
async fn an_agent_that_fails_after_its_own_send_has_answered() {
    let gateway = TestGateway::with(Script::fails("then it broke").sending("Here you are.")).await;

    gateway.receives(said(&chat("ada"), "hello")).await;

    assert_eq!(gateway.visible(&chat("ada")), ["Here you are."]);
    assert_eq!(gateway.agent("main").runs()[0].sent, [SendResult::Claimed]);
    gateway.at_rest().await;
}

/// B8, B10. After the agent's own send, its later texts are stored and not sent.
#[tokio::test]
async fn an_agents_own_send_is_the_answer_and_later_ones_are_not_sent() {
    let script = Script::replies("done").sending("first").taking(secs(1)).sending("second");
    let gateway = TestGateway::with(script).await;

    gateway.receives(said(&chat("ada"), "hello")).await;
    gateway.advance(secs(2)).await;

    assert_eq!(gateway.visible(&chat("ada")), ["first"]);
    assert_eq!(gateway.agent("main").runs()[0].sent, [SendResult::Claimed, SendResult::Suppressed]);
    gateway.at_rest().await;
}

/// A blank send is no signal: the run continues.
#[tokio::test]
async fn a_blank_send_settles_nothing() {
    let gateway = TestGateway::with(Script::replies("the answer").sending("  ")).await;

    gateway.receives(said(&chat("ada"), "hello")).await;

    assert_eq!(gateway.visible(&chat("ada")), ["the answer"]);
    gateway.at_rest().await;
}

/// A15: the handoff rung.
#[tokio::test]
async fn a_silent_agent_hands_over_to_the_next_one() {
    let ladder = Ladder::empty()
        .with(Cause::Silent, vec![Rung::Handoff("orchestrator".to_owned()), Rung::Say("silent".to_owned())]);
    let gateway = GatewaySetup::new()
        .policy(rejoinder_core::Policy { ladder, ..policy() })
        .always(Script::is_silent("not mine"))
        .agent("orchestrator", |_| Script::replies("I can take that."))
        .start()
        .await;

    gateway.receives(said(&chat("ada"), "hello")).await;

    assert_eq!(gateway.visible(&chat("ada")), ["I can take that."]);
    assert_eq!(gateway.agent("orchestrator").runs().len(), 1);
    gateway.at_rest().await;
}

/// A5, A15. A refused answer is followed by the next rung.
#[tokio::test]
async fn a_refused_answer_is_followed_by_the_ladder() {
    let gateway = TestGateway::with(Script::replies("<b>broken")).await;
    gateway.platform.queue_fault(Fault::Refuse);

    gateway.receives(said(&chat("ada"), "hello")).await;

    assert_eq!(gateway.visible(&chat("ada")), [FAILED]);
    gateway.at_rest().await;
}

/// D6, D10. A refused answer keeps its payload, and is not retried.
#[tokio::test]
async fn when_every_way_is_refused_the_turn_is_a_dead_letter_with_its_payload() {
    let gateway = TestGateway::with(Script::replies("the answer")).await;
    gateway.platform.choose_faults(|_| Some(Fault::Refuse));

    let turn = gateway.receives(said(&chat("ada"), "hello")).await;
    gateway.advance(secs(3600)).await;

    assert_eq!(gateway.status(turn).await, TurnStatus::Undeliverable);
    let dossier = gateway.dossier(turn).await;
    assert_eq!(dossier.attempts.len(), 2, "the answer and the fallback, once each");
    assert!(format!("{:?}", dossier.deliveries[0].action).contains("the answer"));
    gateway.at_rest().await;
}

/// B11. An answer goes to the conversation of its question only.
#[tokio::test]
async fn every_answer_goes_to_its_own_conversation() {
    let gateway = GatewaySetup::new()
        .agent("main", |turn: &AgentTurn| Script::replies(&format!("to {}", turn.message.text)))
        .start()
        .await;

    gateway.receives(said(&chat("ada"), "ada")).await;
    gateway.receives(said(&chat("ada").in_thread("t1"), "thread")).await;
    gateway.receives(said(&chat("bob"), "bob")).await;

    assert_eq!(gateway.visible(&chat("ada")), ["to ada"]);
    assert_eq!(gateway.visible(&chat("ada").in_thread("t1")), ["to thread"]);
    assert_eq!(gateway.visible(&chat("bob")), ["to bob"]);
    gateway.at_rest().await;
}

/// L4.
#[tokio::test]
async fn an_answer_replies_to_the_message_it_answers() {
    let gateway = TestGateway::with(Script::replies("yes")).await;
    let event = said(&chat("ada"), "really?");
    let asked = event.message_id.clone();

    gateway.receives(event).await;

    assert_eq!(gateway.platform.posts(&chat("ada"))[0].to, asked);
    gateway.at_rest().await;
}

/// C4. Silence markers reach no adapter, not even as a draft.
#[tokio::test]
async fn a_silence_marker_in_the_stream_is_never_shown() {
    let script = Script::replies("NO_REPLY").streaming("NO_").streaming("REPLY").taking(secs(2));
    let gateway = GatewaySetup::new().capable(|it| it.drafts = Support::Full).always(script).start().await;

    gateway.receives(said(&chat("ada"), "hello")).await;
    gateway.advance(secs(3)).await;

    assert!(!format!("{:?}", gateway.platform.seen()).contains("NO_"));
    assert_eq!(gateway.visible(&chat("ada")), [SILENT]);
    gateway.at_rest().await;
}

/// When the time that the agent named has come, it is run again to pay the debt.
#[tokio::test]
async fn an_agents_own_deferral_is_a_debt_that_it_is_asked_to_pay() {
    let gateway = GatewaySetup::new()
        .agent("main", |turn: &AgentTurn| match turn.attempt {
            1 => Script::defers(Some("In a minute."), secs(60)),
            _ => Script::replies("Here it is."),
        })
        .start()
        .await;

    let turn = gateway.receives(said(&chat("ada"), "report, please")).await;
    assert_eq!(gateway.visible(&chat("ada")), ["In a minute."]);
    assert_eq!(gateway.status(turn).await, TurnStatus::Deferred);
    gateway.advance(secs(61)).await;

    assert_eq!(gateway.visible(&chat("ada")), ["Here it is."]);
    gateway.at_rest().await;
}

/// The history of a run has the earlier messages and the answers that were shown.
#[tokio::test]
async fn the_next_turn_remembers_the_one_before() {
    let gateway = TestGateway::with(Script::replies("Ada, of course.")).await;

    gateway.receives(said(&chat("ada"), "who am I?")).await;
    gateway.receives(said(&chat("ada"), "and now?")).await;

    let runs = gateway.agent("main").runs();
    assert!(runs[0].turn.past.history.is_empty());
    let lines: Vec<&str> = runs[1].turn.past.history.iter().map(|line| line.text.as_str()).collect();
    assert_eq!(lines, ["who am I?", "Ada, of course."]);
    gateway.at_rest().await;
}

/// A message that was answered with a reaction is not given to the agent again as unanswered.
#[tokio::test]
async fn the_next_turn_remembers_a_reaction() {
    let ladder = policy().ladder.with(Cause::Error, vec![Rung::React("👎".to_owned())]);
    let ladder = ladder.with(Cause::Silent, vec![Rung::Handoff("boss".to_owned())]);
    let gateway = GatewaySetup::new()
        .policy(rejoinder_core::Policy { ladder, ..policy() })
        .agent("main", |turn| match &*turn.message.text {
            "one" => Script::reacts("👍"),
            "two" => Script::fails("out of order"),
            "three" => Script::is_silent("no idea"),
            _ => Script::replies("yes"),
        })
        .agent("boss", |_| Script::reacts("🎉"))
        .start()
        .await;

    for text in ["one", "two", "three", "four"] {
        gateway.receives(said(&chat("ada"), text)).await;
    }

    let runs = gateway.agent("main").runs();
    let lines: Vec<_> = runs[3].turn.past.history.iter().map(|line| (line.speaker, line.text.as_str())).collect();
    let (person, agent, ours) = (Speaker::Person, Speaker::Agent, Speaker::Gateway);
    let first = [(person, "one"), (agent, "[reacted with 👍]"), (person, "two"), (ours, "[reacted with 👎]")];
    assert_eq!(lines, [&first[..], &[(person, "three"), (agent, "[reacted with 🎉]")]].concat());
    gateway.at_rest().await;
}

/// Without edits, the deferral and the answer are two messages.
#[tokio::test]
async fn a_slow_agent_defers_and_then_answers() {
    let gateway = GatewaySetup::new()
        .capable(|it| it.edit = Support::No)
        .always(Script::replies("done").taking(SOFT_DEADLINE + secs(10)))
        .start()
        .await;

    gateway.receives(said(&chat("ada"), "what is the status?")).await;
    gateway.advance(SOFT_DEADLINE + secs(10)).await;

    assert!(HARD_DEADLINE > SOFT_DEADLINE);
    assert_eq!(gateway.visible(&chat("ada")), [DEFERRAL, "done"]);
    gateway.at_rest().await;
}

/// The sender of an unreadable message is notified, and no agent is run.
#[tokio::test]
async fn what_cannot_be_read_is_said_to_be() {
    let ladder = Ladder::empty().with(Cause::Unreadable, vec![Rung::Say("silent".to_owned())]);
    let gateway = GatewaySetup::new()
        .policy(rejoinder_core::Policy { ladder, ..policy() })
        .always(Script::replies("Good morning."))
        .start()
        .await;

    let unreadable = InboundEvent { kind: EventKind::Unreadable, ..said(&chat("ada"), "") };
    let turn = gateway.receives(unreadable).await;

    assert_eq!(gateway.visible(&chat("ada")), [SILENT]);
    assert_eq!(gateway.agent("main").steps(), 0);
    let obligation = gateway.dossier(turn).await.turn.obligation;
    assert_eq!(obligation.fallback().map(|(cause, _)| cause), Some(Cause::Unreadable));
    gateway.at_rest().await;
}

/// The history names the senders in a group, and not in a direct chat.
#[tokio::test]
async fn in_a_group_the_history_names_who_spoke() {
    let gateway = TestGateway::with(Script::replies("hm")).await;
    let by = |name: &str, event: InboundEvent| {
        let sender = Sender { id: name.to_lowercase(), name: Some(name.to_owned()), ..event.sender.clone() };
        InboundEvent { sender, ..event }
    };
    for name in ["Ada", "Bob", "Eve"] {
        gateway.receives(by(name, mention(&chat("room"), "hi"))).await;
        gateway.receives(by(name, said(&chat("alone"), "hi"))).await;
    }

    let names = |chat: &str| {
        let runs = gateway.agent("main").runs();
        let last = runs.into_iter().rev().find(|run| &*run.turn.place.conversation.chat == chat).expect("it ran");
        last.turn
            .past
            .history
            .into_iter()
            .map(|line| (line.speaker, line.author.as_ref().and_then(|author| author.name.clone())))
            .collect::<Vec<_>>()
    };
    let person = |name: &str| (Speaker::Person, Some(name.to_owned()));
    let agent = || (Speaker::Agent, None);
    assert_eq!(names("room"), [person("Ada"), agent(), person("Bob"), agent()]);
    assert_eq!(names("alone"), [(Speaker::Person, None), agent(), (Speaker::Person, None), agent()]);
    gateway.at_rest().await;
}
