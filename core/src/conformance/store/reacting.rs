//! Checks of people's reactions to the answers of agents, and of what became of an agent's turn before another one.

use super::{
    subject::Subject,
    turn::{NEVER, Turn, accept_one, at, chat, deliveries, done, new_turn, said},
};
use crate::{
    model::{
        agent::{HistoryLine, LineState, Reaction, Speaker},
        conversation::{ChatKind, ConversationRef},
        delivery::Action,
        event::{Amends, Directed, EventKind, InboundEvent},
        people::Identity,
        session::AnsweredTurn,
        stored_delivery::DeliveryRecord,
        turn::Handler,
    },
    ports::store::{
        Store,
        accept::{NewEvent, Stored},
        housekeeping::Removal,
        record::SentText,
        transition::{RunStart, TranscriptLine, Transition},
    },
};

/// The agent of the checks' turns.
const AGENT: &str = "main";

/// A reaction, or its removal, of `person` to the message of [`Turn::settle`], at `seconds`. It opens no turn.
pub(super) fn reacts(
    address: &ConversationRef,
    person: &str,
    emoji: &str,
    removed: Option<&str>,
    seconds: u64,
) -> NewEvent {
    let removed = removed.map(str::to_owned);
    let kind = EventKind::Reaction { message: "m".to_owned(), emoji: emoji.to_owned(), removed };
    let key = format!("{person} {emoji} {seconds}");
    let mut event =
        InboundEvent { kind, received_at: at(seconds), directed: Directed::ReplyToUs, ..said(address, &key) };
    (event.chat, event.text) = (ChatKind::Group, String::new());
    person.clone_into(&mut event.sender.id);
    NewEvent { turn: None, ..new_turn(event) }
}

async fn runs(store: &dyn Store, turn: &Turn, number: u32, agent: &str) {
    let started = RunStart { handler: Handler::Agent(agent.into()), ..turn.run(number) };
    done(store, Transition { runs_started: vec![started], ..Transition::default() }).await;
}

fn line(turn: &Turn, speaker: Speaker) -> TranscriptLine {
    let line = HistoryLine {
        spoken: false,
        speaker,
        author: None,
        forwarded: None,
        text: format!("{speaker:?}"),
        at: at(2),
        state: LineState::Seen,
    };
    TranscriptLine {
        session: turn.session,
        turn: turn.id,
        seq: turn.seq,
        claim: u32::from(speaker != Speaker::Person),
        line,
    }
}

/// A turn that `agent` has answered.
async fn answered(store: &dyn Store, address: &ConversationRef, key: &str, agent: &str) -> Turn {
    let mut turn = Turn::accept(store, said(address, key)).await;
    runs(store, &turn, 1, agent).await;
    let delivery = turn.answer(store, "x").await;
    let transcript = vec![line(&turn, Speaker::Person), line(&turn, Speaker::Agent)];
    done(store, Transition { transcript, ..Transition::default() }).await;
    turn.settle(store, delivery).await;
    turn
}

/// The turn after all others of a conversation, for which what was before is read.
async fn next(store: &dyn Store, address: &ConversationRef) -> Turn {
    Turn::accept(store, said(address, "next")).await
}

async fn before(store: &dyn Store, turn: &Turn, agent: &str) -> Option<AnsweredTurn> {
    store.answered_before(turn.session, turn.id, agent).await.expect("turns are read")
}

/// Who reacted to the answer before a turn, and how.
async fn reactions(store: &dyn Store, turn: &Turn) -> Vec<(String, String)> {
    let before = before(store, turn, AGENT).await.expect("there is a turn before");
    let read = |reaction: Reaction| (reaction.by.and_then(|by| by.id).unwrap_or_default(), reaction.emoji);
    before.reactions.into_iter().map(read).collect()
}

fn expected(all: &[(&str, &str)]) -> Vec<(String, String)> {
    all.iter().map(|(person, emoji)| ((*person).to_owned(), (*emoji).to_owned())).collect()
}

/// The latest reaction of each person is kept with the answer until they take it back; an event that comes twice changes nothing.
pub async fn a_reaction_is_kept_with_the_answer(subject: &mut impl Subject) {
    let (room, store) = (chat("room"), subject.store());
    answered(&*store, &room, "1", AGENT).await;
    let next = next(&*store, &room).await;
    let first = || reacts(&room, "ada", "👍", None, 10);
    for event in [first(), reacts(&room, "bob", "🎉", None, 11), reacts(&chat("elsewhere"), "eve", "👎", None, 12)]
    {
        assert_eq!(accept_one(&*store, event).await, Stored::Kept);
    }
    assert_eq!(reactions(&*store, &next).await, expected(&[("ada", "👍"), ("bob", "🎉")]));

    accept_one(&*store, reacts(&room, "ada", "👎", Some("👍"), 13)).await;
    accept_one(&*store, first()).await;
    accept_one(&*store, reacts(&room, "bob", "", Some("👍"), 14)).await;
    assert_eq!(reactions(&*store, &next).await, expected(&[("bob", "🎉"), ("ada", "👎")]));
    subject.reopen().await;
    let store = subject.store();
    assert_eq!(reactions(&*store, &next).await, expected(&[("bob", "🎉"), ("ada", "👎")]));

    accept_one(&*store, reacts(&room, "bob", "", None, 15)).await;
    let given = reacts(&room, "ada", "👎", Some("👍"), 13).event;
    let (revision, amends) = (9, Some(Amends::Withdraws));
    let withdrawn = InboundEvent { revision, amends, kind: EventKind::Message, ..(*given).clone() };
    accept_one(&*store, NewEvent { turn: None, ..new_turn(withdrawn) }).await;
    assert_eq!(reactions(&*store, &next).await, []);
}

/// It is told by its turn, and is the latest one of its person.
pub async fn a_reaction_that_opens_a_turn_is_not_kept(subject: &mut impl Subject) {
    let (room, store) = (chat("room"), subject.store());
    answered(&*store, &room, "1", AGENT).await;
    let next = next(&*store, &room).await;
    accept_one(&*store, reacts(&room, "ada", "👍", None, 10)).await;
    accept_one(&*store, reacts(&room, "bob", "🎉", None, 11)).await;

    let turn = new_turn(said(&room, "turn")).turn;
    let opens = accept_one(&*store, NewEvent { turn, ..reacts(&room, "ada", "👎", Some("x"), 12) }).await;

    assert!(matches!(opens, Stored::Turn { .. }), "{opens:?}");
    assert_eq!(reactions(&*store, &next).await, expected(&[("bob", "🎉")]));
}

/// A moderator removes all, or those with one emoji; of one answer.
pub async fn everybodys_reactions_are_removed(subject: &mut impl Subject) {
    let (room, store) = (chat("room"), subject.store());
    answered(&*store, &room, "1", AGENT).await;
    let next = next(&*store, &room).await;
    for (person, emoji, seconds) in [("ada", "👍", 10), ("bob", "🎉", 11), ("eve", "👍", 12)] {
        accept_one(&*store, reacts(&room, person, emoji, None, seconds)).await;
    }
    let removes = async |message: &str, emoji: Option<&str>, seconds| {
        let kind = EventKind::ReactionsRemoved { message: message.to_owned(), emoji: emoji.map(str::to_owned) };
        let NewEvent { event, .. } = reacts(&room, "0", "", None, seconds);
        let event = InboundEvent { kind, ..(*event).clone() };
        assert_eq!(accept_one(&*store, NewEvent { turn: None, ..new_turn(event) }).await, Stored::Kept);
        reactions(&*store, &next).await
    };

    assert_eq!(removes("other", None, 13).await.len(), 3);
    assert_eq!(removes("m", Some("👍"), 14).await, expected(&[("bob", "🎉")]));
    assert_eq!(removes("m", None, 15).await, []);
}

/// By its id within the chat. The id of a reaction is that of a person's message.
pub async fn a_message_that_was_sent_is_found(subject: &mut impl Subject) {
    let (room, store) = (chat("room"), subject.store());
    let thread = room.clone().in_thread("9");
    answered(&*store, &thread, "1", AGENT).await;
    let turn = next(&*store, &room).await;
    let react = Action::React { message: None, emoji: "👍".to_owned() };
    let (action, message_ids) = (react, vec!["theirs".to_owned()]);
    done(&*store, deliveries([DeliveryRecord { action, message_ids, ..turn.delivery(1, "") }])).await;
    subject.reopen().await;
    let store = subject.store();

    let sent = async |chat: &str, message: &str| {
        let sent = store.sent_text(&room.channel, chat, message).await.expect("it is read");
        sent.map(|SentText { thread, text }| (thread.as_deref().map(str::to_owned), text))
    };
    assert_eq!(sent("room", "m").await, Some((Some("9".to_owned()), "x".to_owned())));
    assert_eq!(
        (sent("room", "n").await, sent("room", "theirs").await, sent("elsewhere", "m").await),
        (None, None, None)
    );
}

/// Of many people who react, the latest are kept. They go with their turn, and with the person.
pub async fn reactions_are_bounded_and_go_with_their_turn_and_their_person(subject: &mut impl Subject) {
    let (room, store) = (chat("room"), subject.store());
    let turn = answered(&*store, &room, "1", AGENT).await;
    let next = next(&*store, &room).await;
    for number in 0..12 {
        accept_one(&*store, reacts(&room, &format!("p{number}"), "👍", None, 10 + number)).await;
    }
    let people = reactions(&*store, &next).await.into_iter().map(|(person, _)| person).collect::<Vec<_>>();
    assert_eq!(people, ["p4", "p5", "p6", "p7", "p8", "p9", "p10", "p11"]);

    let person = Identity { channel: room.channel.clone(), id: "p7".to_owned() };
    store.remove(Removal::Mentions(person)).await.expect("rows are removed");
    assert!(reactions(&*store, &next).await.iter().all(|(person, _)| person != "p7"));
    let rows = async || store.stats(&NEVER).await.expect("stats are read").rows["reactions"];
    assert_eq!(rows().await, 7);
    store.remove(Removal::Turns(vec![turn.id])).await.expect("rows are removed");
    assert_eq!(rows().await, 0);
}

/// What became of an agent's own turn is read, whoever else had the session since; not of one that another agent had later.
pub async fn the_turn_that_an_agent_had_before_is_its_own(subject: &mut impl Subject) {
    let (room, store) = (chat("room"), subject.store());
    let mine = answered(&*store, &room, "1", AGENT).await;
    let other = answered(&*store, &room, "2", "other").await;
    let now = next(&*store, &room).await;

    let texts = async |agent| before(&*store, &now, agent).await.map(|before| before.lines.len());
    assert_eq!((texts(AGENT).await, texts("other").await, texts("nobody").await), (Some(2), Some(2), None));
    assert_eq!(before(&*store, &mine, AGENT).await, None);
    runs(&*store, &other, 2, AGENT).await;
    assert_eq!(texts("other").await, None, "another agent had it later");
    let unsaid = Turn::accept(&*store, said(&room, "4")).await;
    runs(&*store, &now, 1, AGENT).await;
    assert_eq!(before(&*store, &unsaid, AGENT).await, Some(AnsweredTurn::default()), "that turn left no line");
}
