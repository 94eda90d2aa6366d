//! Checks of the lines of waiting turns, and of the turns that are merged.

use rejoinder_guard::{Event, Expectation, MergedTurn};

use super::{
    subject::Subject,
    turn::{Turn, at, chat, done, said},
};
use crate::{
    model::{
        queue::QueueMode,
        session::{SessionChange, SessionChoice},
        view::{TurnStatus, TurnView},
        voice::VoiceMode,
    },
    ports::store::{
        Store,
        record::KnownConversation,
        transition::{ClosedQuestion, Transition},
    },
};

/// The waiting turns of a conversation are read in order, up to a limit.
pub async fn what_waits_in_a_conversation_is_read_in_order(subject: &mut impl Subject) {
    let store = subject.store();
    let mut turns = Vec::new();
    for key in ["1", "2", "3"] {
        turns.push(Turn::accept(&*store, said(&chat("a"), key)).await);
    }
    Turn::accept(&*store, said(&chat("b"), "4")).await;
    turns[0].begin(&*store).await;

    let conversation = turns[0].conversation;
    let waiting = store.waiting_turns(conversation, 10).await.expect("turns are read");
    assert_eq!(waiting.iter().map(|turn| turn.id).collect::<Vec<_>>(), [turns[1].id, turns[2].id]);
    assert_eq!(store.waiting_turns(conversation, 1).await.expect("turns are read").len(), 1);
    assert_eq!(store.waiting_in(conversation, 10).await.expect("turns are counted"), 2);
    assert_eq!(store.waiting_in(conversation, 1).await.expect("turns are counted"), 1);
}

async fn mode(store: &dyn Store, name: &str) -> Option<QueueMode> {
    store.arrival(&chat(name)).await.expect("conversations are read").expect("it is there").queue
}

/// Also over a restart.
pub async fn a_queue_mode_is_kept_until_it_is_changed(subject: &mut impl Subject) {
    let store = subject.store();
    let turn = Turn::accept(&*store, said(&chat("a"), "1")).await;
    Turn::accept(&*store, said(&chat("b"), "2")).await;
    let change =
        |mode: Option<QueueMode>| Transition { queue: Some((turn.conversation, mode)), ..Transition::default() };

    done(&*store, change(Some(QueueMode::Collect))).await;
    done(&*store, change(Some(QueueMode::Steer))).await;
    drop(store);
    subject.reopen().await;
    let store = subject.store();
    assert_eq!((mode(&*store, "a").await, mode(&*store, "b").await), (Some(QueueMode::Steer), None));

    done(&*store, change(None)).await;
    assert_eq!(mode(&*store, "a").await, None);
}

/// Postponed turns wait for no run, and their conversations are found; also over a restart.
pub async fn what_is_postponed_is_found(subject: &mut impl Subject) {
    let store = subject.store();
    let mut turn = Turn::accept(&*store, said(&chat("a"), "1")).await;
    Turn::accept(&*store, said(&chat("b"), "2")).await;
    done(&*store, turn.on(Event::Postponed, 1)).await;
    drop(store);
    subject.reopen().await;
    let store = subject.store();
    assert_eq!(store.postponed().await.expect("they are read"), [turn.conversation]);
    let count = async |limit| store.postponed_in(turn.conversation, limit).await.expect("turns are counted");
    assert_eq!((count(10).await, count(0).await), (1, 0));
    assert_eq!(store.next_waiting(turn.conversation).await.expect("it is read").map(|turn| turn.id), None);

    done(&*store, turn.on(Event::Continued, 2)).await;
    assert_eq!(store.postponed().await.expect("they are read"), []);
    assert_eq!(store.postponed_in(turn.conversation, 10).await.expect("turns are counted"), 0);
    let next = store.next_waiting(turn.conversation).await.expect("it is read");
    assert_eq!(next.map(|turn| turn.id), Some(turn.id));
}

/// All of it is as it was stored last; also over a restart.
pub async fn what_an_event_needs_to_know_of_its_conversation_is_read_at_once(subject: &mut impl Subject) {
    async fn read(store: &dyn Store) -> KnownConversation {
        let elsewhere = store.arrival(&chat("b")).await.expect("conversations are read").expect("it is there");
        assert_eq!(elsewhere, KnownConversation::new(elsewhere.id));
        store.arrival(&chat("a")).await.expect("conversations are read").expect("it is there")
    }
    let store = subject.store();
    assert_eq!(store.arrival(&chat("a")).await.expect("conversations are read"), None);
    let mut turn = Turn::accept(&*store, said(&chat("a"), "1")).await;
    Turn::accept(&*store, said(&chat("b"), "2")).await;
    let (id, session) = (turn.conversation, turn.session);
    assert_eq!(read(&*store).await, KnownConversation::new(id));

    let chosen = |agent: Option<&str>| {
        let choice = SessionChoice { agent: agent.map(Into::into), model: None };
        Transition { sessions: vec![SessionChange::Choose { session, choice }], ..Transition::default() }
    };
    let queued = |mode| Transition { queue: Some((id, mode)), ..Transition::default() };
    let voiced = |mode| Transition { voice: Some((id, mode)), ..Transition::default() };
    done(&*store, turn.on(Event::Postponed, 1)).await;
    done(&*store, queued(Some(QueueMode::Steer))).await;
    done(&*store, voiced(Some(VoiceMode::Always))).await;
    done(&*store, chosen(Some("other"))).await;
    let question = Turn::accept(&*store, said(&chat("a"), "3")).await;
    done(&*store, Transition { questions: vec![question.question()], ..Transition::default() }).await;
    drop(store);
    subject.reopen().await;
    let store = subject.store();
    let (queue, voice) = (Some(QueueMode::Steer), Some(VoiceMode::Always));
    let all = KnownConversation { id, queue, voice, has_open_question: true, has_postponed: true, has_choice: true };
    assert_eq!(read(&*store).await, all);

    let closed = ClosedQuestion { turn: question.id, at: at(2) };
    done(&*store, Transition { closed_questions: vec![closed], ..Transition::default() }).await;
    done(&*store, turn.on(Event::Continued, 2)).await;
    done(&*store, chosen(None)).await;
    done(&*store, queued(None)).await;
    done(&*store, voiced(None)).await;
    assert_eq!(read(&*store).await, KnownConversation::new(id));
}

/// The view of a merged turn has the signal of the one that answers for it. If that one ends without it, it is found.
pub async fn what_is_merged_is_answered_with_the_other(subject: &mut impl Subject) {
    let store = subject.store();
    let mut first = Turn::accept(&*store, said(&chat("a"), "1")).await;
    let mut second = Turn::accept(&*store, said(&chat("a"), "2")).await;
    let turns = vec![MergedTurn { turn: second.id.to_string(), place: second.seq }];
    let absorbed = first.on(Event::Absorbed { turns, owed: Expectation::Answer }, 1);
    let merged = second.on(Event::Merged { into: first.id.to_string() }, 1);
    done(&*store, Transition { turns: [absorbed.turns, merged.turns].concat(), ..Transition::default() }).await;
    assert!(store.merged_and_left(10).await.expect("turns are read").is_empty(), "the first answers for both");
    assert_eq!(store.waiting_in(first.conversation, 10).await.expect("turns are counted"), 1);

    let delivery = first.answer(&*store, "for both").await;
    first.settle(&*store, delivery).await;

    let view = store.view(second.id).await.expect("views are read").expect("it is there");
    let text = view.shown.as_ref().map(|shown| &*shown.text);
    assert_eq!((view.status, text, view.merged_into), (TurnStatus::Answered, Some("for both"), Some(first.id)));
    let listed = store.views(&chat("a"), None, 10).await.expect("views are read");
    let signals: Vec<_> = listed.iter().map(|TurnView { shown, .. }| shown.is_some()).collect();
    assert_eq!(signals, [true, false], "the answer is shown once");
    assert_eq!(store.merged_and_left(10).await.expect("turns are read"), [second.id]);
    let settled = second.on(Event::MergeSettled, 4);
    done(&*store, settled).await;
    assert!(store.merged_and_left(10).await.expect("turns are read").is_empty());
    let dossier = store.dossier(second.id).await.expect("turns are read").expect("it is there");
    assert_eq!(dossier.ended_at, Some(at(4)));
}
