//! Sessions: what people call them, whose they are, and what is left out of them.

use std::sync::Arc;

use super::{
    subject::Subject,
    turn::{Turn, accept_one, at, chat, done, new_session, new_turn, said},
};
use crate::{
    model::{
        agent::{HistoryLine, LineState, Speaker},
        conversation::{ChannelId, ConversationRef},
        ids::{ConversationId, PersonId, SessionId},
        people::{Identity, KnownIdentity, PeopleChange, PersonRecord, PersonRole},
        session::{SessionChange, SessionChoice, SessionRecord, SessionUse},
        turn::Handler,
    },
    ports::store::{
        Store,
        accept::{NewEvent, Repeated, Stored},
        housekeeping::Removal,
        transition::{Noun, TranscriptLine, Transition},
    },
};

/// An event of `person` in a direct chat, `seconds` after the start, in a session that was used at `unused_since` or later.
fn of(
    address: &ConversationRef,
    key: &str,
    person: Option<PersonId>,
    seconds: u64,
    unused_since: Option<u64>,
) -> NewEvent {
    let mut event = said(address, key);
    event.received_at = at(seconds);
    let mut new = new_turn(event);
    let turn = new.turn.as_mut().expect("it has a turn");
    let unused_since = unused_since.map(at);
    turn.session =
        SessionUse { id: SessionId::new(at(seconds)), person, is_checked: true, unused_since, is_untouched: false };
    new
}

async fn accepted(store: &dyn Store, new: NewEvent) -> (ConversationId, SessionId, bool) {
    match accept_one(store, new).await {
        Stored::Turn { conversation, session, has_history, .. } => (conversation, session, has_history),
        other => panic!("{other:?}"),
    }
}

async fn change(store: &dyn Store, sessions: Vec<SessionChange>) {
    done(store, Transition { sessions, ..Transition::default() }).await;
}

async fn usable(store: &dyn Store, conversation: ConversationId, person: Option<PersonId>) -> Vec<SessionRecord> {
    store.usable_sessions(conversation, person, 10).await.expect("sessions are read")
}

/// What the agent is shown, after `question` and `answer` were said in a turn.
async fn says(store: &dyn Store, turn: &Turn, question: &str, answer: &str) {
    let line = |speaker, text: &str| TranscriptLine {
        session: turn.session,
        turn: turn.id,
        seq: turn.seq,
        line: HistoryLine {
            spoken: false,
            speaker,
            author: None,
            forwarded: None,
            text: text.to_owned(),
            at: at(1),
            state: LineState::Seen,
        },
        claim: u32::from(speaker != Speaker::Person),
    };
    let transcript = vec![line(Speaker::Person, question), line(Speaker::Agent, answer)];
    done(store, Transition { transcript, ..Transition::default() }).await;
}

async fn shown(store: &dyn Store, session: SessionId) -> Vec<String> {
    let lines = store.transcript(session, 10).await.expect("transcripts are read");
    lines.iter().map(|line| line.text.clone()).collect()
}

/// A turn whose words go elsewhere is found by what it is about, while it is there; one on a copy does not use the session.
pub async fn a_turn_is_about_another_conversation(subject: &mut impl Subject) {
    let store = subject.store();
    let ada = Turn::accept(&*store, said(&chat("ada"), "1")).await;
    let about = |key: &str, seconds: u64| {
        let mut new = of(&chat("journal"), key, None, seconds, None);
        new.turn.as_mut().expect("it has a turn").about = Some(ada.conversation);
        new
    };
    let (first, second) = (about("2", 5), about("3", 9));
    let ids = [&first, &second].map(|new| new.turn.as_ref().expect("it has a turn").id);
    let sender = first.event.sender.id.clone();
    for new in [first, second] {
        let (conversation, ..) = accepted(&*store, new).await;
        assert_ne!(conversation, ada.conversation);
    }
    let mut copy = of(&chat("ada"), "4", None, 200, Some(100));
    copy.turn.as_mut().expect("it has a turn").session.is_untouched = true;
    assert_eq!(accepted(&*store, copy).await.1, ada.session);
    subject.reopen().await;
    let store = subject.store();

    for (id, session) in [(ids[0], Some(ada.session)), (ids[1], Some(ada.session)), (ada.id, None)] {
        assert_eq!(store.session_about(id).await.expect("sessions are read"), session);
    }
    for (sender, last) in [(sender.as_str(), Some((ids[1], at(9)))), ("somebody else", None)] {
        assert_eq!(store.last_about(ada.conversation, sender).await.expect("turns are read"), last);
    }
    let used = usable(&*store, ada.conversation, None).await.remove(0).used_at;
    assert!(used < at(200), "{used:?}");
}

/// A session keeps its name, its person and what was chosen for it, and has a number by its age.
pub async fn a_session_is_read_as_people_know_it(subject: &mut impl Subject) {
    let store = subject.store();
    let person = Some(PersonId::new(at(0)));
    let turn = Turn::accept(&*store, said(&chat("a"), "1")).await;
    says(&*store, &turn, "how it begins", "answer").await;
    let second = SessionId::new(at(5));
    let new = SessionChange::New {
        id: second,
        conversation: turn.conversation,
        name: Some("trip".to_owned()),
        person,
        at: at(5),
    };
    let has_choice =
        async || store.arrival(&chat("a")).await.expect("conversations are read").expect("it is there").has_choice;
    assert!(!has_choice().await);
    let choice = SessionChoice { agent: Some("other".into()), model: Some("large".into()) };
    change(&*store, vec![new, SessionChange::Choose { session: second, choice: choice.clone() }]).await;
    assert!(has_choice().await);
    subject.reopen().await;
    let store = subject.store();

    let [latest, first] = &usable(&*store, turn.conversation, person).await[..] else { panic!("there are two") };
    assert_eq!((latest.id, latest.number, latest.name.as_deref(), latest.is_current), (second, 2, Some("trip"), true));
    assert_eq!((&latest.choice, latest.used_at, latest.begins.as_deref()), (&choice, at(5), None));
    assert_eq!((first.id, first.number, first.name.as_deref(), first.is_current), (turn.session, 1, None, false));
    assert_eq!((first.begins.as_deref(), first.is_elsewhere), (Some("how it begins"), false));
    let current = store.current_session(turn.conversation, person).await.expect("sessions are read");
    assert_eq!(current, Some((second, choice)));
    let limited = store.usable_sessions(turn.conversation, person, 1).await.expect("sessions are read");
    assert_eq!((limited.len(), limited[0].number), (1, 2));

    let back = SessionChange::Use { conversation: turn.conversation, session: turn.session, at: at(9) };
    let named = SessionChange::Rename { session: turn.session, name: "home".to_owned() };
    change(&*store, vec![back, named]).await;
    let first = &usable(&*store, turn.conversation, person).await[0];
    assert_eq!((first.id, first.name.as_deref(), first.used_at), (turn.session, Some("home"), at(9)));
    assert_eq!(Turn::accept(&*store, said(&chat("a"), "2")).await.session, turn.session);
}

/// A title is kept until a turn of its session is removed, of which it may repeat something. It is nothing that people decide on.
pub async fn a_session_has_a_title_until_a_turn_of_it_is_removed(subject: &mut impl Subject) {
    let store = subject.store();
    let mut turn = Turn::accept(&*store, said(&chat("a"), "1")).await;
    let open = Turn::accept(&*store, said(&chat("a"), "2")).await;
    let noun = Noun::SessionsIn(turn.conversation);
    let version = store.version(noun).await.expect("it is read");
    let title = |session, title: &str| SessionChange::Title { session, title: title.to_owned() };
    let gone = SessionId::new(at(0));
    change(&*store, vec![title(turn.session, "tea"), title(turn.session, "coffee"), title(gone, "nothing")]).await;
    subject.reopen().await;
    let store = subject.store();
    let titles = async || {
        let sessions = usable(&*store, open.conversation, None).await;
        sessions.into_iter().map(|session| (session.id, session.title)).collect::<Vec<_>>()
    };
    assert_eq!(titles().await, [(turn.session, Some("coffee".to_owned()))]);
    assert_eq!(store.version(noun).await.expect("it is read"), version);

    let delivery = turn.answer(&*store, "answer").await;
    turn.settle(&*store, delivery).await;
    store.remove(Removal::Turns(vec![turn.id])).await.expect("rows are removed");
    assert_eq!(titles().await, [(open.session, None)]);
}

/// Of the sessions of others nobody knows.
pub async fn a_session_is_its_owners(subject: &mut impl Subject) {
    let store = subject.store();
    let [ada, bob] = [Some(PersonId::new(at(0))), Some(PersonId::new(at(0)))];
    let (here, first, _) = accepted(&*store, of(&chat("a"), "1", ada, 1, None)).await;
    let (there, second, _) = accepted(&*store, of(&chat("b"), "2", ada, 2, None)).await;
    change(&*store, vec![SessionChange::Use { conversation: there, session: first, at: at(3) }]).await;

    let ids =
        |sessions: Vec<SessionRecord>| sessions.into_iter().map(|it| (it.id, it.is_elsewhere)).collect::<Vec<_>>();
    assert_eq!(ids(usable(&*store, here, ada).await), [(first, true), (second, false)]);
    assert_eq!(ids(usable(&*store, here, bob).await), []);
    assert_eq!(accepted(&*store, of(&chat("b"), "3", ada, 4, None)).await.1, first);
    assert_eq!(store.current_session(there, bob).await.expect("sessions are read"), None);
    // The chat is somebody else's now: they begin a session of their own.
    let (_, theirs, has_history) = accepted(&*store, of(&chat("b"), "4", bob, 5, None)).await;
    assert!(theirs != first && !has_history);
    assert_eq!(accepted(&*store, of(&chat("b"), "5", bob, 6, None)).await.1, theirs);
    assert_eq!(accepted(&*store, of(&chat("a"), "6", ada, 7, None)).await.1, first);
}

/// A session that a chat began before its person was known belongs to this person.
pub async fn a_session_becomes_that_of_the_person_who_is_known(subject: &mut impl Subject) {
    let store = subject.store();
    let ada = Some(PersonId::new(at(0)));
    let (here, first, _) = accepted(&*store, of(&chat("a"), "1", None, 1, None)).await;
    assert_eq!(accepted(&*store, of(&chat("a"), "2", ada, 2, None)).await.1, first);
    let (there, ..) = accepted(&*store, of(&chat("b"), "3", ada, 3, None)).await;

    assert!(usable(&*store, there, ada).await.iter().any(|session| session.id == first));
    assert!(usable(&*store, here, None).await.is_empty());
}

/// A session that was not used for long is left by all conversations that continued in it, and what was chosen stays. One with a
/// name is kept.
pub async fn an_unused_session_is_left(subject: &mut impl Subject) {
    let store = subject.store();
    let ada = Some(PersonId::new(at(0)));
    let (here, first, _) = accepted(&*store, of(&chat("a"), "1", ada, 1, None)).await;
    let (there, ..) = accepted(&*store, of(&chat("b"), "2", ada, 2, None)).await;
    let choice = SessionChoice { agent: Some("other".into()), model: None };
    change(
        &*store,
        vec![
            SessionChange::Use { conversation: there, session: first, at: at(2) },
            SessionChange::Choose { session: first, choice: choice.clone() },
        ],
    )
    .await;
    // The time of the use is stored.
    assert_eq!(accepted(&*store, of(&chat("a"), "3", ada, 1_000, Some(2))).await.1, first);
    assert_eq!(accepted(&*store, of(&chat("a"), "4", ada, 1_100, Some(1_000))).await.1, first);

    let (_, second, has_history) = accepted(&*store, of(&chat("a"), "5", ada, 2_000, Some(1_101))).await;
    assert!(second != first && !has_history);
    assert_eq!(accepted(&*store, of(&chat("b"), "6", ada, 2_001, Some(1_101))).await.1, second);
    assert_eq!(store.current_session(here, ada).await.expect("sessions are read"), Some((second, choice)));

    change(&*store, vec![SessionChange::Rename { session: second, name: "kept".to_owned() }]).await;
    assert_eq!(accepted(&*store, of(&chat("a"), "7", ada, 9_000, Some(8_000))).await.1, second);
    // A turn of the gateway's own is no use.
    let mut command = of(&chat("a"), "8", ada, 20_000, None);
    command.turn.as_mut().expect("it has a turn").handler = Handler::Gateway("status".into());
    accepted(&*store, command).await;
    assert_eq!(usable(&*store, here, ada).await[0].used_at, at(9_000));
}

/// A deleted session takes its lines along, and is not open.
pub async fn a_deleted_session_is_gone(subject: &mut impl Subject) {
    let store = subject.store();
    let mut turn = Turn::accept(&*store, said(&chat("a"), "1")).await;
    says(&*store, &turn, "question", "answer").await;
    assert_eq!(shown(&*store, turn.session).await.len(), 2);
    assert!(store.is_session_open(turn.session).await.expect("turns are read"));
    let delivery = turn.answer(&*store, "answer").await;
    let next = SessionId::new(at(3));
    change(&*store, vec![new_session(next, turn.conversation, 3)]).await;
    turn.settle(&*store, delivery).await;
    assert!(!store.is_session_open(turn.session).await.expect("turns are read"));

    change(&*store, vec![SessionChange::Delete { session: turn.session }]).await;
    assert!(shown(&*store, turn.session).await.is_empty());
    assert_eq!(usable(&*store, turn.conversation, None).await.len(), 1);
    subject.reopen().await;
    assert!(shown(&*subject.store(), turn.session).await.is_empty());
    assert!(subject.store().turn(turn.id).await.expect("turns are read").is_some(), "the turn stays");
}

/// A message that came while a deletion was decided on is in the next session of its conversation, with its lines.
pub async fn what_comes_during_a_deletion_is_in_the_next_session(subject: &mut impl Subject) {
    let store = subject.store();
    let turn = Turn::accept(&*store, said(&chat("a"), "1")).await;
    let next = SessionId::new(at(3));

    let changes = vec![new_session(next, turn.conversation, 3), SessionChange::Delete { session: turn.session }];
    change(&*store, changes).await;
    says(&*store, &turn, "question", "answer").await;

    let moved = store.turn(turn.id).await.expect("turns are read").expect("it is there");
    assert_eq!((moved.session, moved.version), (next, 2), "who has it in memory reads it again");
    assert_eq!(shown(&*store, next).await, ["question", "answer"]);
    assert!(shown(&*store, turn.session).await.is_empty());
}

/// Nobody continues in a session that is not there.
pub async fn a_session_that_is_gone_is_not_used(subject: &mut impl Subject) {
    let store = subject.store();
    let turn = Turn::accept(&*store, said(&chat("a"), "1")).await;
    let session = SessionId::new(at(9));
    let sessions = vec![SessionChange::Use { conversation: turn.conversation, session, at: at(2) }];
    assert!(store.commit(Transition { sessions, ..Transition::default() }).await.is_err());
    assert_eq!(Turn::accept(&*store, said(&chat("a"), "2")).await.session, turn.session);
}

/// What is left out is not shown to agents, also when it is read from disk, and is not the last question any more.
pub async fn what_is_left_out_is_not_shown(subject: &mut impl Subject) {
    let store = subject.store();
    let first = Turn::accept(&*store, said(&chat("a"), "1")).await;
    says(&*store, &first, "one", "first").await;
    let second = Turn::accept(&*store, said(&chat("a"), "2")).await;
    says(&*store, &second, "two", "second").await;
    let third = Turn::accept(&*store, said(&chat("a"), "3")).await;
    let session = first.session;
    assert_eq!(shown(&*store, session).await, ["one", "first", "two", "second"]);
    let last = async |store: Arc<dyn Store>, here: Option<ConversationId>, by: Option<Identity>| {
        let found = store.last_question(session, here, by.as_ref()).await.expect("turns are read");
        found.map(|turn| turn.id)
    };
    let here = Some(first.conversation);
    assert_eq!(last(Arc::clone(&store), here, None).await, Some(third.id));
    assert_eq!(last(Arc::clone(&store), None, None).await, Some(second.id), "the third has no line");
    let stranger = Identity { channel: first.address.channel.clone(), id: "nobody".to_owned() };
    assert_eq!(last(Arc::clone(&store), here, Some(stranger)).await, None);

    change(&*store, vec![SessionChange::LeaveOut { session, turns: vec![second.id, third.id] }]).await;
    assert_eq!(shown(&*store, session).await, ["one", "first"]);
    assert_eq!(last(Arc::clone(&store), here, None).await, Some(first.id));
    // A late line of it stays out.
    subject.reopen().await;
    let store = subject.store();
    says(&*store, &second, "two", "late").await;
    subject.reopen().await;
    assert_eq!(shown(&*subject.store(), session).await, ["one", "first"]);
}

/// A turn that repeats another takes its place in what agents are shown; an event that is a duplicate does not.
pub async fn what_is_repeated_is_left_out(subject: &mut impl Subject) {
    let store = subject.store();
    let first = Turn::accept(&*store, said(&chat("a"), "1")).await;
    says(&*store, &first, "one", "first").await;
    assert_eq!(shown(&*store, first.session).await.len(), 2);
    let again = |key: &str| {
        let mut new = new_turn(said(&chat("a"), key));
        let turn = new.turn.as_mut().expect("it has a turn");
        turn.repeats = Some(Repeated { session: first.session, turns: vec![first.id] });
        turn.model = Some("large".into());
        turn.remark = Some("a remark".to_owned());
        new
    };
    assert!(matches!(accept_one(&*store, again("1")).await, Stored::Duplicate { .. }));
    assert_eq!(shown(&*store, first.session).await.len(), 2);

    let new = again("2");
    let id = new.turn.as_ref().expect("it has a turn").id;
    accepted(&*store, new).await;
    assert!(shown(&*store, first.session).await.is_empty());
    let dossier = store.dossier(id).await.expect("dossiers are read").expect("the turn is there");
    assert_eq!(dossier.turn.model.as_deref(), Some("large"));
    assert_eq!(dossier.remarks[0].detail, "a remark");
}

/// Somebody who becomes another person takes their sessions along; those of somebody who is forgotten lose name and owner.
pub async fn sessions_follow_their_person(subject: &mut impl Subject) {
    let store = subject.store();
    let people = async |change| done(&*store, Transition { people: vec![change], ..Transition::default() }).await;
    let [first, second] = [PersonId::new(at(0)), PersonId::new(at(0))];
    people(known(first, "ada")).await;
    let (here, session, _) = accepted(&*store, of(&chat("ada"), "1", Some(first), 1, None)).await;
    change(&*store, vec![SessionChange::Rename { session, name: "secret".to_owned() }]).await;

    people(known(second, "ada")).await;
    assert_eq!(usable(&*store, here, Some(second)).await[0].name.as_deref(), Some("secret"));
    people(PeopleChange::IdentityRemoved(identity("ada"))).await;
    let (elsewhere, ..) = accepted(&*store, of(&chat("b"), "2", None, 2, None)).await;
    assert!(usable(&*store, elsewhere, Some(second)).await.iter().all(|other| other.id != session));
    let [left] = &usable(&*store, here, None).await[..] else { panic!("it is its conversation's") };
    assert_eq!((left.id, left.name.as_deref()), (session, None));
}

/// What was said in one conversation is read by nobody who writes in another one after its person is gone.
pub async fn a_forgotten_persons_session_of_several_conversations_is_nobodys(subject: &mut impl Subject) {
    let store = subject.store();
    let ada = PersonId::new(at(0));
    let people = async |change| done(&*store, Transition { people: vec![change], ..Transition::default() }).await;
    people(known(ada, "ada")).await;
    let (here, session, _) = accepted(&*store, of(&chat("a"), "1", Some(ada), 1, None)).await;
    let (there, ..) = accepted(&*store, of(&chat("b"), "2", Some(ada), 2, None)).await;
    change(&*store, vec![SessionChange::Use { conversation: there, session, at: at(3) }]).await;
    let turn = Turn::accept(&*store, said(&chat("b"), "3")).await;
    assert_eq!(turn.session, session);
    says(&*store, &turn, "question", "answer").await;

    people(PeopleChange::IdentityRemoved(identity("ada"))).await;

    assert!(usable(&*store, here, None).await.iter().all(|other| other.id != session));
    assert_ne!(accepted(&*store, of(&chat("a"), "4", None, 4, None)).await.1, session);
}

/// Of two sessions with one name, the one that the next person has keeps it.
pub async fn a_name_is_that_of_one_session(subject: &mut impl Subject) {
    let store = subject.store();
    let people = async |change| done(&*store, Transition { people: vec![change], ..Transition::default() }).await;
    let [first, second] = [PersonId::new(at(0)), PersonId::new(at(0))];
    people(known(first, "ada")).await;
    people(known(second, "lovelace")).await;
    let (_, theirs, _) = accepted(&*store, of(&chat("a"), "1", Some(first), 1, None)).await;
    let (there, kept, _) = accepted(&*store, of(&chat("b"), "2", Some(second), 2, None)).await;
    let named = |session, name: &str| SessionChange::Rename { session, name: name.to_owned() };
    change(&*store, vec![named(theirs, "Trip"), named(kept, "trip")]).await;

    people(known(second, "ada")).await;

    let sessions = usable(&*store, there, Some(second)).await;
    let name = |id| sessions.iter().find(|session| session.id == id).expect("it is theirs").name.as_deref();
    assert_eq!((name(theirs), name(kept)), (None, Some("trip")));
}

fn identity(id: &str) -> Identity {
    Identity { channel: ChannelId::new("test", "main"), id: id.to_owned() }
}

pub(super) fn known(person: PersonId, id: &str) -> PeopleChange {
    let added = KnownIdentity { identity: identity(id), added_at: at(0), added_by: "test".to_owned() };
    let (name, role) = ("Ada".to_owned(), PersonRole::Member);
    PeopleChange::PersonSaved(PersonRecord { id: person, name, role, created_at: at(0), identities: vec![added] })
}

/// A session outlives the conversation in which it began, if another one continues in it.
pub async fn a_session_that_is_used_elsewhere_stays(subject: &mut impl Subject) {
    let store = subject.store();
    let ada = Some(PersonId::new(at(0)));
    let mut turn = Turn::accept(&*store, said(&chat("a"), "1")).await;
    let (there, ..) = accepted(&*store, of(&chat("b"), "2", ada, 2, None)).await;
    change(&*store, vec![SessionChange::Use { conversation: there, session: turn.session, at: at(3) }]).await;
    let delivery = turn.answer(&*store, "answer").await;
    turn.settle(&*store, delivery).await;

    store.remove(Removal::Turns(vec![turn.id])).await.expect("rows are removed");
    let current = store.current_session(there, None).await.expect("sessions are read");
    assert_eq!(current.map(|(id, _)| id), Some(turn.session));
}
