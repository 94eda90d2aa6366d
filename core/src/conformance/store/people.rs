//! Checks of who is known, and of who asks to be let in.

use uuid::Uuid;

use super::{
    subject::Subject,
    turn::{Turn, at, chat, done, new_turn, said},
};
use crate::{
    model::{
        conversation::{ChannelId, ConversationRef},
        ids::PersonId,
        language::Language,
        line::ErrorFilter,
        people::{
            DirectChat, Guess, Identity, KnownIdentity, Pairing, PairingState, PeopleChange, PersonRecord, PersonRole,
        },
        run::{Cost, Currency, Usage, Used},
        settings::Budget,
    },
    ports::store::{
        Store,
        day_use::DayUse,
        transition::{AgentUse, RunEnd, Transition},
    },
};

fn identity(account: &str, id: &str) -> Identity {
    Identity { channel: ChannelId::new("test", account), id: id.to_owned() }
}

/// Somebody who is known since `seconds` after the start.
fn person<const N: usize>(number: u8, seconds: u64, identities: [Identity; N]) -> PersonRecord {
    let known = |identity| KnownIdentity { identity, added_at: at(seconds), added_by: "grace".to_owned() };
    PersonRecord {
        id: PersonId::from(Uuid::from_u128(number.into())),
        name: format!("person {number}"),
        role: PersonRole::Member,
        created_at: at(seconds),
        identities: identities.into_iter().map(known).collect(),
    }
}

/// The request of `id`, `seconds` after the start, with a code that is valid for a minute.
fn request(id: &str, code: &str, seconds: u64) -> Pairing {
    Pairing {
        code: code.to_owned(),
        identity: identity("main", id),
        name: Some("Ann".to_owned()),
        username: None,
        language: Language::of("de"),
        conversation: chat(id),
        asked_at: at(seconds),
        expires_at: at(seconds + 60),
        state: PairingState::Waiting,
        linked_by: None,
    }
}

async fn change<const N: usize>(store: &dyn Store, changes: [PeopleChange; N]) {
    done(store, Transition { people: changes.into(), ..Transition::default() }).await;
}

async fn ask(store: &dyn Store, pairing: &Pairing) {
    change(store, [PeopleChange::PairingSaved(pairing.clone())]).await;
}

async fn people(store: &dyn Store) -> Vec<PersonRecord> {
    store.people().await.expect("people are read")
}

async fn pairings(store: &dyn Store) -> Vec<Pairing> {
    store.pairings().await.expect("requests are read")
}

/// Also over a restart. A change of a person leaves the identities that it does not name, and when they were added.
pub async fn people_are_known_by_all_their_identities(subject: &mut impl Subject) {
    let store = subject.store();
    let later = person(1, 2, [identity("main", "9"), identity("main", "10"), identity("long", "11")]);
    let earlier = person(2, 1, [identity("main", "2")]);
    change(&*store, [PeopleChange::PersonSaved(later.clone()), PeopleChange::PersonSaved(earlier.clone())]).await;

    let in_order = [identity("long", "11"), identity("main", "10"), identity("main", "9")];
    let later = PersonRecord { identities: person(1, 2, in_order).identities, ..later };
    assert_eq!(people(&*store).await, [earlier.clone(), later.clone()]);

    let named = PersonRecord {
        name: "Ann".to_owned(),
        role: PersonRole::Owner,
        created_at: earlier.created_at,
        ..person(2, 5, [identity("main", "3")])
    };
    change(&*store, [PeopleChange::PersonSaved(named.clone())]).await;
    drop(store);

    subject.reopen().await;
    let both = earlier.identities.into_iter().chain(named.identities.clone()).collect();
    assert_eq!(people(&*subject.store()).await, [PersonRecord { identities: both, ..named }, later]);
}

/// Who loses the last one is not known any more.
pub async fn an_identity_belongs_to_one_person(subject: &mut impl Subject) {
    let store = subject.store();
    let (first, second) = (identity("main", "1"), identity("main", "2"));
    let of_both = person(1, 1, [first.clone(), second.clone()]);
    let other = |identity| person(2, 2, [identity]);
    change(&*store, [PeopleChange::PersonSaved(of_both)]).await;

    change(&*store, [PeopleChange::PersonSaved(other(first.clone()))]).await;
    assert_eq!(people(&*store).await, [person(1, 1, [second.clone()]), other(first.clone())]);
    // A person keeps their identities.
    change(&*store, [PeopleChange::PersonSaved(other(first.clone()))]).await;
    assert_eq!(people(&*store).await.len(), 2);

    change(&*store, [PeopleChange::PersonSaved(other(second.clone()))]).await;
    assert_eq!(people(&*store).await, [person(2, 2, [first.clone(), second.clone()])]);

    change(&*store, [PeopleChange::IdentityRemoved(first)]).await;
    assert_eq!(people(&*store).await, [other(second.clone())]);
    let nobodys = PeopleChange::IdentityRemoved(identity("other", "2"));
    change(&*store, [nobodys, PeopleChange::IdentityRemoved(second)]).await;
    assert!(people(&*store).await.is_empty());
}

/// Also over a restart. Those of one moment are in the order of who asks.
pub async fn a_request_is_kept_until_it_is_replaced_or_expires(subject: &mut impl Subject) {
    let store = subject.store();
    let (first, later) = (request("ann", "CODE1", 1), request("bob", "CODE2", 30));
    let in_thread = chat("cy").in_thread("7");
    let same_time = Pairing {
        name: None,
        language: None,
        username: Some("cy".to_owned()),
        conversation: in_thread,
        ..request("cy", "CODE0", 30)
    };
    for pairing in [&later, &same_time, &first] {
        ask(&*store, pairing).await;
    }
    drop(store);

    subject.reopen().await;
    let store = subject.store();
    assert_eq!(pairings(&*store).await, [first, later.clone(), same_time.clone()]);

    let again = request("ann", "CODE3", 40);
    ask(&*store, &again).await;
    let declined = Pairing { state: PairingState::Declined, expires_at: at(1000), ..same_time };
    ask(&*store, &declined).await;
    assert_eq!(pairings(&*store).await, [later, declined.clone(), again.clone()]);

    // `later` expires at this moment, and its code is free.
    let last = request("dan", "CODE2", 90);
    ask(&*store, &last).await;
    assert_eq!(pairings(&*store).await, [declined, again, last]);
}

/// The same id on another channel is somebody else's.
pub async fn a_request_goes_when_its_sender_is_known_or_forgotten(subject: &mut impl Subject) {
    let store = subject.store();
    let requests = [request("ann", "CODE1", 1), request("bob", "CODE2", 2), request("cy", "CODE3", 3)];
    change(&*store, requests.clone().map(PeopleChange::PairingSaved)).await;
    let [ann, bob, cy] = requests;

    change(&*store, [PeopleChange::PersonSaved(person(1, 4, [ann.identity, identity("other", "bob")]))]).await;
    assert_eq!(pairings(&*store).await, [bob.clone(), cy.clone()]);

    change(&*store, [PeopleChange::IdentityRemoved(bob.identity)]).await;
    assert_eq!(pairings(&*store).await, std::slice::from_ref(&cy));
    let approved = Pairing { state: PairingState::Approved, ..cy };
    let known = PeopleChange::PersonSaved(person(2, 5, [approved.identity.clone()]));
    change(&*store, [known, PeopleChange::PairingSaved(approved.clone())]).await;
    assert_eq!(pairings(&*store).await, std::slice::from_ref(&approved));
    change(&*store, [PeopleChange::PairingRemoved(approved.identity)]).await;
    assert!(pairings(&*store).await.is_empty());
    assert_eq!(people(&*store).await.len(), 2);
}

/// As a whole: nothing of the transition is stored.
pub async fn a_request_with_the_code_of_another_is_rejected(subject: &mut impl Subject) {
    let store = subject.store();
    let first = request("ann", "CODE1", 1);
    ask(&*store, &first).await;

    let known = PeopleChange::PersonSaved(person(1, 2, [identity("main", "1")]));
    let people_changes = vec![known, PeopleChange::PairingSaved(request("bob", "CODE1", 2))];
    let rejected = store.commit(Transition { people: people_changes, ..Transition::default() }).await;

    assert!(rejected.is_err(), "{rejected:?}");
    assert_eq!(pairings(&*store).await, [first]);
    assert!(people(&*store).await.is_empty());
}

/// Also over a restart. The last choice counts; the same id on another channel is somebody else's.
pub async fn a_language_is_kept_until_it_is_changed_or_its_person_is_forgotten(subject: &mut impl Subject) {
    let store = subject.store();
    let (ann, bob, other) = (identity("main", "ann"), identity("main", "bob"), identity("other", "ann"));
    let speaks = |who: &Identity, tag| PeopleChange::LanguageSet(who.clone(), Language::of(tag));
    change(&*store, [speaks(&ann, "en"), speaks(&bob, "es"), speaks(&other, "fil"), speaks(&ann, "de")]).await;
    drop(store);

    subject.reopen().await;
    let store = subject.store();
    let languages = async || {
        let languages = store.languages().await.expect("languages are read");
        languages.into_iter().map(|(who, language)| format!("{who} {language}")).collect::<Vec<_>>()
    };
    assert_eq!(languages().await, ["test.main/ann de", "test.main/bob es", "test.other/ann fil"]);

    change(&*store, [PeopleChange::LanguageSet(ann, None), PeopleChange::IdentityRemoved(bob.clone())]).await;
    change(&*store, [PeopleChange::LanguageSet(bob, None)]).await;
    assert_eq!(languages().await, ["test.other/ann fil"]);
}

/// Also over a restart. One chat of each identity, the last one; the same id on another channel is somebody else's.
pub async fn a_direct_chat_is_kept_until_it_changes_or_its_person_is_forgotten(subject: &mut impl Subject) {
    let store = subject.store();
    let writes = |account: &str, id: &str, address: &str, seconds| {
        let conversation = ConversationRef::new(ChannelId::new("test", account), address).in_thread("7");
        DirectChat { identity: identity(account, id), conversation, since: at(seconds), is_home: false, language: None }
    };
    let chats = [writes("main", "bob", "b", 1), writes("main", "ann", "a", 2), writes("other", "ann", "o", 3)];
    change(&*store, chats.clone().map(PeopleChange::DirectChatSet)).await;
    let [mut bob, _, other] = chats;
    let moved = DirectChat { is_home: true, language: Language::of("de"), ..writes("main", "ann", "new", 4) };
    change(&*store, [PeopleChange::DirectChatSet(moved.clone())]).await;
    bob.is_home = true;
    let homes = [&bob.identity, &identity("main", "nobody")].map(|it| PeopleChange::HomeSet(it.clone(), true));
    change(&*store, homes).await;
    change(&*store, [PeopleChange::HomeSet(other.identity.clone(), false)]).await;
    drop(store);

    subject.reopen().await;
    let store = subject.store();
    let read = async || store.direct_chats().await.expect("chats are read");
    assert_eq!(read().await, [moved, bob.clone(), other.clone()]);
    for (of, found) in [(&bob.identity, Some(&bob)), (&identity("main", "nobody"), None)] {
        assert_eq!(store.direct_chat(of).await.expect("chats are read").as_ref(), found);
    }

    change(&*store, [PeopleChange::IdentityRemoved(identity("main", "ann"))]).await;
    assert_eq!(read().await, [bob, other.clone()]);
    change(&*store, [PeopleChange::DirectChatCleared(identity("main", "bob"))]).await;
    assert_eq!(read().await, [other]);
}

/// A run of a turn uses so many tokens, at two millionths each. `day`: when they count for the agent `main`.
async fn uses(store: &dyn Store, turn: &Turn, tokens: u64, day: Option<i64>) {
    done(store, Transition { runs_started: vec![turn.run(1)], ..Transition::default() }).await;
    let used = Used { tokens, estimated: tokens, micros: 2 * tokens };
    let budget = Budget { tokens: Some(25), micros: None };
    let run = RunEnd {
        usage: Some(Usage { input_tokens: tokens - 1, output_tokens: 1 }),
        cost: Some(Cost { micros: used.micros, currency: Currency::USD }),
        used,
        agents: day.map(|day| AgentUse { agent: "main".into(), day, used, budget }).into_iter().collect(),
        ..RunEnd::new(turn.id, 1, at(2), "reply".to_owned(), None)
    };
    done(store, Transition { runs_ended: vec![run], ..Transition::default() }).await;
}

/// Turns and tokens of one day, also over a restart. Those of somebody whose turns are not counted are not, and a forgotten
/// person's go.
pub async fn what_is_used_of_a_day_is_counted_until_the_next(subject: &mut impl Subject) {
    let store = subject.store();
    let ann = identity("main", "ann");
    let says = async |store: &dyn Store, key: &str, day| {
        let mut event = said(&chat("a"), key);
        "ann".clone_into(&mut event.sender.id);
        let mut new = new_turn(event);
        new.turn.as_mut().expect("it has a turn").day = day;
        Turn::of(store, new).await
    };
    let read = async |store: &dyn Store, day| {
        let DayUse { turns, tokens, estimated, micros } = store.day_use(&ann, day).await.expect("it is read");
        assert_eq!((estimated, micros), (tokens, 2 * tokens));
        (turns, tokens)
    };
    let first = says(&*store, "1", Some(7)).await;
    uses(&*store, &first, 10, None).await;
    let second = says(&*store, "2", Some(7)).await;
    uses(&*store, &second, 5, None).await;
    says(&*store, "3", None).await;
    assert_eq!((read(&*store, 7).await, read(&*store, 8).await), ((2, 15), (0, 0)));
    let since = async |seconds| store.tokens_since(first.conversation, at(seconds)).await.expect("they are read");
    assert_eq!((since(0).await, since(1_000_000).await), (15, 0));

    // A run that ends after midnight counts on the next day, if its person has written since.
    let late = says(&*store, "4", Some(7)).await;
    says(&*store, "5", Some(8)).await;
    uses(&*store, &late, 3, None).await;
    drop(store);
    subject.reopen().await;
    let store = subject.store();
    assert_eq!((read(&*store, 8).await, read(&*store, 9).await), ((1, 3), (0, 0)));

    // The clock is set back over midnight: the day does not begin anew. It does after it was far ahead.
    let early = says(&*store, "6", Some(7)).await;
    uses(&*store, &early, 4, None).await;
    assert_eq!((read(&*store, 7).await, read(&*store, 8).await), ((2, 7), (2, 7)));
    says(&*store, "7", Some(1000)).await;
    assert_eq!((read(&*store, 1000).await, read(&*store, 8).await), ((1, 0), (0, 0)));
    says(&*store, "8", Some(8)).await;
    assert_eq!((read(&*store, 8).await, read(&*store, 1000).await), ((1, 0), (0, 0)));

    change(&*store, [PeopleChange::IdentityRemoved(ann.clone())]).await;
    assert_eq!(read(&*store, 8).await, (0, 0));
}

/// The runs, tokens and money of an agent with a budget, of one day and over a restart.
pub async fn what_an_agent_uses_of_a_day_is_counted(subject: &mut impl Subject) {
    let read = async |store: &dyn Store, agent: &str, day| {
        let DayUse { turns, tokens, estimated, micros } =
            store.agent_use(&agent.into(), day).await.expect("it is read");
        assert_eq!((estimated, micros), (tokens, 2 * tokens));
        (turns, tokens)
    };
    let store = subject.store();
    for (key, day) in [("1", Some(7)), ("2", None), ("3", Some(7))] {
        let turn = Turn::of(&*store, new_turn(said(&chat("a"), key))).await;
        uses(&*store, &turn, 10, day).await;
    }
    assert_eq!(read(&*store, "main", 7).await, (2, 20));
    assert_eq!((read(&*store, "main", 8).await, read(&*store, "other", 7).await), ((0, 0), (0, 0)));
    drop(store);

    subject.reopen().await;
    let store = subject.store();
    assert_eq!(read(&*store, "main", 7).await, (2, 20));
    let turn = Turn::of(&*store, new_turn(said(&chat("a"), "4"))).await;
    uses(&*store, &turn, 3, Some(8)).await;
    assert_eq!((read(&*store, "main", 8).await, read(&*store, "main", 9).await), ((1, 3), (0, 0)));

    // The end of a run that is stored late, and a clock that is set back, do not begin the day anew. One that was far ahead does.
    for (key, day, used) in [("5", 7, (2, 7)), ("6", 8, (3, 11)), ("7", 1000, (1, 4)), ("8", 8, (1, 4))] {
        let turn = Turn::of(&*store, new_turn(said(&chat("a"), key))).await;
        uses(&*store, &turn, 4, Some(day)).await;
        assert_eq!(read(&*store, "main", day).await, used, "{key}");
    }

    let (day, budget) = (8, Budget { tokens: Some(1000), micros: None });
    let used = Used { tokens: 30, estimated: 30, micros: 60 };
    let voice = AgentUse { agent: "voice.hear".into(), day, used, budget };
    for expected in [(1, 30), (2, 60)] {
        done(&*store, Transition { used: Some((voice.clone(), at(9))), ..Transition::default() }).await;
        assert_eq!(read(&*store, "voice.hear", day).await, expected);
    }

    // Most of the budget was used once, by the second run that counts.
    let told = store.errors(&ErrorFilter { limit: 10, ..ErrorFilter::default() }).await.expect("they are read");
    let told: Vec<_> = told.iter().map(|told| (told.count, told.fields["what"].as_str())).collect();
    assert_eq!(told, [(1, Some("main, 80 %"))]);
}

/// Also over a restart. Who is forgotten has tried nothing.
pub async fn tries_of_codes_are_kept_for_a_while(subject: &mut impl Subject) {
    let store = subject.store();
    let ann = identity("main", "ann");
    let guess =
        |who: &str, code: &str, seconds| Guess { who: who.to_owned(), code: code.to_owned(), since: at(seconds) };
    let tries = async |store: &dyn Store, guess: Guess, forgets| {
        change(store, [PeopleChange::CodeTried { guess, forgets: at(forgets) }]).await;
    };
    let kept = async |store: &dyn Store| {
        let mut guesses = store.guesses().await.expect("tries are read");
        guesses.sort_by(|one, other| (&one.who, &one.code).cmp(&(&other.who, &other.code)));
        guesses
    };
    for code in ["a", "b", "b"] {
        tries(&*store, guess("grace", code, 10), 0).await;
    }
    tries(&*store, guess(&ann.to_string(), "a", 20), 0).await;
    drop(store);

    subject.reopen().await;
    let store = subject.store();
    let of_ann = guess(&ann.to_string(), "a", 20);
    assert_eq!(kept(&*store).await, [guess("grace", "a", 10), guess("grace", "b", 10), of_ann.clone()]);
    tries(&*store, guess("grace", "c", 30), 0).await;
    assert_eq!(kept(&*store).await, [guess("grace", "c", 30), of_ann]);
    tries(&*store, guess("grace", "d", 30), 20).await;
    assert_eq!(kept(&*store).await, [guess("grace", "c", 30), guess("grace", "d", 30)]);
    tries(&*store, guess(&ann.to_string(), "a", 40), 20).await;
    change(&*store, [PeopleChange::IdentityRemoved(ann)]).await;
    assert_eq!(kept(&*store).await, [guess("grace", "c", 30), guess("grace", "d", 30)]);
}
