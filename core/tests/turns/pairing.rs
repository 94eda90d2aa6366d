//! Strangers ask to be let in, with a code; operators and owners decide.

use rejoinder_core::{
    Accepted, Access, Actor, Author, ChannelId, Clock, Condition, DirectPolicy, Identity, InboundEvent, Lifetimes,
    NewPerson, OperationError, PersonRole, PolicyChange, Resend, Rule, SeedPerson, Sender, SenderKind,
    conformance::scripted::Script,
    store::{AuditFilter, Cutoffs, LogFilter, Pairing, PersonRecord},
};

use crate::{
    gateway::{GatewaySetup, TestGateway, chat, comes_in, main_channel, mention, operator, said, secs},
    life::Crash,
};

const HOUR: u64 = 3600;

async fn guarded() -> TestGateway {
    with_people(Vec::new()).await
}

async fn with_people(people: Vec<SeedPerson>) -> TestGateway {
    start(GatewaySetup::new(), people).await
}

/// On a platform that shows nothing twice.
async fn idempotent(people: Vec<SeedPerson>) -> TestGateway {
    start(GatewaySetup::new().capable(|it| it.resend = Resend::Idempotent), people).await
}

async fn start(setup: GatewaySetup, people: Vec<SeedPerson>) -> TestGateway {
    let mut setup = setup.always(Script::replies("hello"));
    setup.access.insert(main_channel(), Access::default());
    setup.people = people;
    // What owners are told is in `owners.rs`.
    setup.notify_owners = false;
    setup.start().await
}

/// A gateway where Ada has asked to be let in, and her request.
async fn asked_by_ada() -> (TestGateway, Pairing) {
    let gateway = guarded().await;
    comes_in(&gateway, says("ada", "hello")).await;
    let pairing = only(&gateway);
    (gateway, pairing)
}

fn identity(id: &str) -> Identity {
    Identity { channel: main_channel(), id: id.to_owned() }
}

/// Somebody writes in their direct chat.
fn says(person: &str, text: &str) -> InboundEvent {
    let sender =
        Sender { id: person.to_owned(), name: Some(person.to_uppercase()), username: None, kind: SenderKind::Person };
    InboundEvent { sender, ..said(&chat(person), text) }
}

/// The notice with the code of a request.
fn notice(pairing: &Pairing) -> String {
    format!("Ask for {}.", pairing.shown_code())
}

fn only(gateway: &TestGateway) -> Pairing {
    let [pairing] = &gateway.engine().people().waiting()[..] else { panic!("there is one request") };
    pairing.clone()
}

async fn approve(gateway: &TestGateway, code: &str) {
    gateway
        .engine()
        .operations()
        .approve(code, NewPerson::default(), operator("she is a friend"))
        .await
        .expect("it is approved");
    gateway.settle().await;
}

/// N1, N2, O2. A stranger is given one code an hour, and runs no agent. An operator with the code lets them in, without
/// a restart.
#[tokio::test]
async fn a_stranger_is_given_a_code_and_let_in_by_it() {
    let gateway = guarded().await;
    for text in ["hello", "is anybody there?", "/start", "/help"] {
        assert_eq!(comes_in(&gateway, says("ada", text)).await, Accepted::Kept);
    }
    let pairing = only(&gateway);
    assert_eq!((&pairing.identity, pairing.name.as_deref()), (&identity("ada"), Some("ADA")));
    assert_eq!(pairing.code.len(), 8);
    assert!(pairing.code.chars().all(|char| char.is_ascii_uppercase() || char.is_ascii_digit()), "{}", pairing.code);
    assert_eq!(gateway.visible(&chat("ada")), [notice(&pairing)]);
    assert!(gateway.agent("main").runs().is_empty());

    approve(&gateway, &pairing.shown_code().to_lowercase()).await;
    gateway.receives(says("ada", "and now?")).await;

    assert_eq!(gateway.visible(&chat("ada")), [notice(&pairing), "Come in, says main.".to_owned(), "hello".to_owned()]);
    let [ada] = &gateway.engine().people().all().await.expect("readable")[..] else { panic!("there is one person") };
    assert_eq!((&*ada.name, ada.role, &*ada.identities[0].added_by), ("ADA", PersonRole::Member, "grace"));
    assert!(gateway.engine().people().waiting().is_empty());
    let audit = gateway.store.audit(&AuditFilter { before: None, limit: 10 }).await.expect("readable");
    assert_eq!((&*audit[0].entry.action, &*audit[0].entry.target), ("approve", "test.main/ada"));
    gateway.at_rest().await;
}

/// No event waits for longer than a few seconds because the requests cannot be read, though one can be stored.
#[tokio::test]
async fn a_stranger_is_refused_while_requests_cannot_be_read_and_is_given_a_code_afterwards() {
    let (gateway, ada) = asked_by_ada().await;
    gateway.changes_rows("update pairings set state = 'lost'").await;
    let (intake, event) = (gateway.intake(), says("bob", "hello"));
    let accepting = tokio::spawn(async move { intake.accept(event).await });
    gateway.advance(secs(10)).await;

    assert!(accepting.is_finished());
    assert_eq!(accepting.await.expect("no panic").expect("it is noted"), Accepted::Refused);
    gateway.changes_rows("update pairings set state = 'waiting'").await;
    gateway.advance(secs(10)).await;
    assert_eq!(comes_in(&gateway, says("bob", "hello")).await, Accepted::Kept);
    let [first, second] = &gateway.engine().people().waiting()[..] else { panic!("there are two requests") };
    assert_eq!((first, gateway.visible(&chat("bob"))), (&ada, vec![notice(second)]));
    gateway.at_rest().await;
}

/// Also while the people cannot be read.
#[tokio::test]
async fn somebody_who_is_revoked_is_meant_by_no_name_at_once() {
    let gateway = with_people(vec![grace()]).await;
    comes_in(&gateway, says("ada", "hello")).await;
    gateway.changes_rows("update pairings set state = 'lost'").await;
    let (grace, operations) = (identity("grace"), gateway.engine().operations());
    let (revoked, ()) = tokio::join!(operations.revoke(&grace, operator("she left")), gateway.advance(secs(10)));

    revoked.expect("she was known");
    assert_eq!(gateway.engine().people().called("Grace"), []);
    gateway.changes_rows("update pairings set state = 'waiting'").await;
    gateway.advance(secs(10)).await;
    gateway.at_rest().await;
}

/// Who is known is heard in groups as well, and nobody else is told anything there.
#[tokio::test]
async fn who_is_known_is_heard_in_groups() {
    let gateway = guarded().await;
    comes_in(&gateway, says("ada", "hello")).await;
    approve(&gateway, &only(&gateway).code).await;

    let in_group = |person: &str| InboundEvent { sender: says(person, "").sender, ..mention(&chat("room"), "hello") };
    comes_in(&gateway, in_group("bob")).await;
    assert!(gateway.visible(&chat("room")).is_empty());
    gateway.receives(in_group("ada")).await;

    assert_eq!(gateway.visible(&chat("room")), ["hello"]);
    assert!(gateway.engine().people().waiting().is_empty());
    gateway.at_rest().await;
}

/// A stranger chooses their name, but not what the operator has set up for somebody of that name.
#[tokio::test]
async fn a_strangers_name_gets_nobody_elses_rules() {
    let ada = SeedPerson {
        name: "EVE".to_owned(),
        role: PersonRole::Member,
        identities: vec![identity("ada")],
        home: None,
        language: None,
    };
    let mut setup = GatewaySetup::new();
    let conditions = vec![Condition::Person(vec!["MALLORY".to_owned()])];
    let (agent, language, queue, policy) = (None, None, None, PolicyChange::default());
    setup.rules = vec![Rule { name: "big".into(), conditions, agent, language, queue, policy }];
    let gateway = start(setup, vec![ada]).await;
    for (person, name) in [("eve", "EVE (eve)"), ("mallory", "MALLORY (mallory)"), ("bob", "BOB")] {
        comes_in(&gateway, says(person, "let me in")).await;

        approve(&gateway, &only(&gateway).code).await;

        let people = gateway.engine().people().all().await.expect("readable");
        let is_them = |it: &&PersonRecord| it.identities.iter().any(|one| one.identity.id == person);
        assert_eq!(people.iter().find(is_them).expect("they are known").name, name);
    }
    gateway.at_rest().await;
}

/// N2. A code is valid for an hour. Then its owner may ask again, and is given another one.
#[tokio::test]
async fn a_code_expires() {
    let (gateway, first) = asked_by_ada().await;
    gateway.advance(secs(HOUR)).await;

    assert!(gateway.engine().people().waiting().is_empty());
    let late = gateway.engine().operations().approve(&first.code, NewPerson::default(), operator("too late")).await;
    assert!(matches!(late, Err(OperationError::Unknown(_))), "{late:?}");
    comes_in(&gateway, says("ada", "hello?")).await;

    let second = only(&gateway);
    assert_ne!(first.code, second.code);
    assert_eq!(gateway.visible(&chat("ada")), [notice(&first), notice(&second)]);
    gateway.at_rest().await;
}

/// N1. Three requests wait at most on a channel; others are told so until one of them is decided or expires. Who is known is not
/// kept waiting.
#[tokio::test]
async fn three_requests_wait_at_most() {
    let gateway = guarded().await;
    for person in ["ada", "bob", "cy", "dan"] {
        comes_in(&gateway, says(person, "hello")).await;
    }
    let waiting: Vec<_> = gateway.engine().people().waiting().iter().map(|one| one.identity.id.clone()).collect();
    assert_eq!(waiting, ["ada", "bob", "cy"]);
    assert_eq!(gateway.visible(&chat("dan")), ["Too many wait."]);
    assert_eq!(gateway.engine().people().turning_away(), [main_channel()]);

    let first = gateway.engine().people().waiting()[0].clone();
    gateway.engine().operations().decline(&first.code, operator("who is this?")).await.expect("it is declined");
    comes_in(&gateway, says("dan", "hello?")).await;

    assert_eq!(gateway.visible(&chat("dan")).len(), 2);
    gateway.at_rest().await;
}

/// Who was declined is told nothing, also after a restart, and may ask again after a week.
#[tokio::test]
async fn who_was_declined_may_ask_again_after_a_week() {
    let (mut gateway, pairing) = asked_by_ada().await;
    gateway.engine().operations().decline(&pairing.code, operator("no")).await.expect("it is declined");

    gateway.restart().await;
    gateway.advance(secs(2 * HOUR)).await;
    comes_in(&gateway, says("ada", "please")).await;
    assert!(gateway.engine().people().waiting().is_empty());
    assert_eq!(gateway.visible(&chat("ada")), [notice(&pairing)]);

    gateway.advance(secs(7 * 24 * HOUR)).await;
    comes_in(&gateway, says("ada", "please")).await;
    assert_eq!(gateway.visible(&chat("ada")), [notice(&pairing), notice(&only(&gateway))]);
    gateway.at_rest().await;
}

/// Requests and people outlive the process. Somebody who is revoked is a stranger again.
#[tokio::test]
async fn people_outlive_the_process_and_can_be_revoked() {
    let (mut gateway, pairing) = asked_by_ada().await;
    gateway.restart().await;
    assert_eq!(only(&gateway), pairing);
    comes_in(&gateway, says("ada", "hello?")).await;
    approve(&gateway, &pairing.code).await;
    gateway.restart().await;
    gateway.receives(says("ada", "hello!")).await;
    let told = [notice(&pairing), "Come in, says main.".to_owned(), "hello".to_owned()];
    assert_eq!(gateway.visible(&chat("ada")), told);

    gateway.advance(secs(1)).await;
    let revoked = gateway.engine().operations().revoke(&identity("ada"), operator("she left")).await;
    revoked.expect("she is revoked");
    let again = gateway.engine().operations().revoke(&identity("ada"), operator("she left")).await;
    assert!(matches!(again, Err(OperationError::Unknown(_))), "{again:?}");
    gateway.restart().await;
    comes_in(&gateway, says("ada", "still here?")).await;

    assert_eq!(gateway.agent("main").runs().len(), 1);
    assert!(gateway.engine().people().all().await.expect("readable").is_empty());
    assert_eq!(gateway.visible(&chat("ada")).len(), 4, "she is given a code");
    gateway.at_rest().await;
}

/// N2. Codes cannot be guessed: after ten that do not exist, no code opens anything for the rest of the hour, for whoever tried,
/// also over a restart.
#[tokio::test]
async fn guessing_locks_out_whoever_guesses() {
    let mut gateway = guarded().await;
    comes_in(&gateway, says("ada", "hello")).await;
    let code = only(&gateway).code;
    let tried = async |gateway: &TestGateway, code: &str, name: &str| {
        let by = Actor { name: name.to_owned(), ..operator("a try") };
        gateway.engine().operations().approve(code, NewPerson::default(), by).await
    };
    for number in 0..10 {
        if number == 5 {
            gateway.restart().await;
        }
        let wrong = tried(&gateway, &format!("AAAA-AA{number:02}"), "mallory").await;
        assert!(matches!(wrong, Err(OperationError::Unknown(_))), "{wrong:?}");
    }
    gateway.restart().await;

    let locked = tried(&gateway, &code, "mallory").await;
    let Err(OperationError::TooMany { retry_after }) = locked else { panic!("it is locked: {locked:?}") };
    assert_eq!(retry_after, secs(HOUR));
    tried(&gateway, &code, "grace").await.expect("others let her in");
    gateway.settle().await;
    gateway.at_rest().await;
}

/// Of two decisions on one request the second finds that it was decided.
#[tokio::test]
async fn a_request_is_decided_once() {
    let gateway = guarded().await;
    for person in ["ada", "bob"] {
        comes_in(&gateway, says(person, "hello")).await;
    }
    let [ada, bob] = &gateway.engine().people().waiting()[..] else { panic!("there are two requests") };
    let engine = gateway.engine();
    let approve =
        async |code: &str| engine.operations().approve(code, NewPerson::default(), operator("yes")).await.is_ok();
    let decline = async |code: &str| engine.operations().decline(code, operator("no")).await.is_ok();

    let both = tokio::join!(approve(&ada.code), decline(&ada.code), approve(&ada.code));
    assert_eq!([both.0, both.1, both.2].into_iter().filter(|done| *done).count(), 1, "{both:?}");
    assert!(decline(&bob.code).await);
    assert!(!approve(&bob.code).await && !decline(&bob.code).await);

    gateway.settle().await;
    let audit = gateway.store.audit(&AuditFilter { before: None, limit: 10 }).await.expect("readable");
    assert_eq!(audit.len(), 2);
    gateway.at_rest().await;
}

/// An operator who is limited to other channels lets nobody in.
#[tokio::test]
async fn an_operator_of_other_channels_lets_nobody_in() {
    let gateway = guarded().await;
    comes_in(&gateway, says("ada", "hello")).await;
    let elsewhere = || Actor { channels: Some(vec![ChannelId::new("test", "other")]), ..operator("mine") };

    let code = only(&gateway).code;
    let approved = gateway.engine().operations().approve(&code, NewPerson::default(), elsewhere()).await;
    let declined = gateway.engine().operations().decline(&code, elsewhere()).await;
    approve(&gateway, &code).await;
    gateway.advance(secs(1)).await;
    let revoked = gateway.engine().operations().revoke(&identity("ada"), elsewhere()).await;

    assert!(matches!(approved, Err(OperationError::Unknown(_))), "{approved:?}");
    assert!(matches!(declined, Err(OperationError::Unknown(_))), "{declined:?}");
    assert!(matches!(revoked, Err(OperationError::Unknown(_))), "{revoked:?}");
    gateway.at_rest().await;
}

fn grace() -> SeedPerson {
    SeedPerson {
        name: "Grace".to_owned(),
        role: PersonRole::Owner,
        identities: vec![identity("grace")],
        home: None,
        language: None,
    }
}

/// Whom the configuration names is known from the start, once. An owner lets others in from their chat; nobody else does.
#[tokio::test]
async fn an_owner_lets_others_in_from_their_chat() {
    let mut gateway = with_people(vec![grace()]).await;
    gateway.restart().await;
    let [known] = &gateway.engine().people().all().await.expect("readable")[..] else { panic!("there is one person") };
    assert_eq!((&*known.name, known.role, known.identities.len()), ("Grace", PersonRole::Owner, 1));
    comes_in(&gateway, says("ada", "hello")).await;
    comes_in(&gateway, says("bob", "hello")).await;
    let (ada, bob) = (gateway.engine().people().waiting()[0].clone(), gateway.engine().people().waiting()[1].clone());

    gateway.receives(says("grace", &format!("/approve {}", ada.shown_code()))).await;
    gateway.receives(says("ada", &format!("/approve {}", bob.code))).await;
    gateway.receives(says("grace", "/approve")).await;
    gateway.receives(says("grace", &format!("/decline {}", bob.code.to_lowercase()))).await;

    assert_eq!(gateway.visible(&chat("grace")), ["ADA is in.", "Which code?", "BOB stays out."]);
    let of_ada = [notice(&ada), "Come in, says main.".to_owned(), "You are no owner.".to_owned()];
    assert_eq!(gateway.visible(&chat("ada")), of_ada);
    assert_eq!(gateway.visible(&chat("bob")), [notice(&bob)]);
    assert!(gateway.agent("main").runs().is_empty() && gateway.engine().people().waiting().is_empty());
    let people = gateway.engine().people().all().await.expect("readable");
    assert_eq!(people[1].identities[0].added_by, "Grace (test.main/grace)");
    let audit = gateway.store.audit(&AuditFilter { before: None, limit: 10 }).await.expect("readable");
    let done: Vec<_> = audit.iter().map(|it| (&*it.entry.by, &*it.entry.action, &*it.entry.target)).collect();
    let grace = "Grace (test.main/grace)";
    assert_eq!(done, [(grace, "decline", "test.main/bob"), (grace, "approve", "test.main/ada")]);
    gateway.at_rest().await;
}

/// What somebody else wrote and an owner forwards, and what everybody in a group would read, decides nothing. A stranger's name is
/// shown without Markdown, and is not told to the agent.
#[tokio::test]
async fn only_an_owners_own_words_in_a_direct_chat_decide() {
    let gateway = with_people(vec![grace()]).await;
    let stranger = Sender { name: Some("[Click](https://evil.example) *me*".to_owned()), ..says("eve", "").sender };
    comes_in(&gateway, InboundEvent { sender: stranger, ..says("eve", "hello") }).await;
    let command = format!("/approve {}", only(&gateway).shown_code());

    let author = Author { id: Some("eve".to_owned()), ..Author::default() };
    gateway.receives(InboundEvent { forwarded: Some(author), ..says("grace", &command) }).await;
    gateway.receives(InboundEvent { sender: says("grace", "").sender, ..mention(&chat("room"), &command) }).await;
    assert_eq!(gateway.visible(&chat("room")), ["You are no owner."]);
    assert_eq!(gateway.engine().people().waiting().len(), 1);
    gateway.receives(says("grace", &format!("/Approve {}", only(&gateway).shown_code().replace('-', " ")))).await;
    gateway.receives(says("grace", "and now?")).await;

    assert_eq!(gateway.visible(&chat("grace")), ["hello", "Clickhttps://evil.example me is in.", "hello"]);
    let told = format!("{:?}", gateway.agent("main").runs().pop().expect("a run").turn.past.history);
    assert!(!told.contains("evil.example"), "{told}");
    gateway.at_rest().await;
}

/// `kill -9` at every write while a stranger is given a code, and while an owner lets them in: there is one notice with the code
/// that is stored, and one decision.
#[tokio::test]
async fn a_crash_gives_no_second_code() {
    for write in 1..=8 {
        let mut gateway = idempotent(vec![grace()]).await;
        gateway.life.crash_at(write, Crash::After);
        let (intake, event) = (gateway.intake(), says("ada", "hello"));
        let again = event.clone();
        tokio::spawn(async move { intake.accept(event).await });
        gateway.settle().await;
        gateway.restart().await;
        comes_in(&gateway, again).await;
        gateway.advance(secs(60)).await;

        let pairing = only(&gateway);
        assert_eq!(gateway.visible(&chat("ada")), [notice(&pairing)], "after write {write}");
        gateway.life.crash_at(write, Crash::After);
        let (intake, event) = (gateway.intake(), says("grace", &format!("/approve {}", pairing.code)));
        let again = event.clone();
        tokio::spawn(async move { intake.accept(event).await });
        gateway.settle().await;
        gateway.restart().await;
        comes_in(&gateway, again).await;
        gateway.advance(secs(60)).await;

        assert_eq!(gateway.visible(&chat("grace")), ["ADA is in."], "after write {write}");
        assert_eq!(gateway.engine().people().all().await.expect("readable").len(), 2, "after write {write}");
        gateway.receives(says("ada", "and now?")).await;
        let told = [notice(&pairing), "Come in, says main.".to_owned(), "hello".to_owned()];
        assert_eq!(gateway.visible(&chat("ada")), told, "after write {write}");
        gateway.at_rest().await;
    }
}

/// N1, O2. A crowd of strangers runs no agent, and is told nothing. Those after the first leave less than 300 bytes each.
#[tokio::test]
async fn a_crowd_of_strangers_costs_next_to_nothing() {
    const STRANGERS: u64 = 1_000;
    let gateway = guarded().await;
    let nothing = Cutoffs::at(gateway.clock.now(), &Lifetimes::default());
    let come = async |numbers: std::ops::Range<u64>| {
        let event =
            |number: u64| InboundEvent { raw: "r".repeat(5000), ..says(&number.to_string(), &"x".repeat(4000)) };
        for events in numbers.map(event).collect::<Vec<_>>().chunks(100) {
            gateway.intake().accept_all(events.to_vec(), None).await.expect("accepted");
        }
        gateway.settle().await;
        gateway.store.stats(&nothing).await.expect("readable")
    };

    let before = come(0..STRANGERS).await;
    let after = come(STRANGERS..2 * STRANGERS).await;

    let each = (after.bytes - before.bytes) / STRANGERS;
    assert!(each < 300, "{each} bytes for each stranger");
    assert_eq!((after.rows["turns"], gateway.engine().people().waiting().len()), (3 + 60, 3));
    assert!(gateway.agent("main").runs().is_empty());
    gateway.at_rest().await;
}

/// Who asks is in the log, for those who follow it.
#[tokio::test]
async fn who_asks_is_in_the_log() {
    let gateway = guarded().await;
    comes_in(&gateway, says("ada", "hello")).await;

    let asked = LogFilter { topics: vec!["person.asked".to_owned()], limit: 10, ..LogFilter::default() };
    let [entry] = &gateway.store.log(&asked).await.expect("readable")[..] else { panic!("there is one") };
    assert_eq!(entry.data, serde_json::json!({ "identity": "test.main/ada" }));
    assert_eq!(entry.subject.channel, Some(main_channel()));
    gateway.at_rest().await;
}

/// Being forgotten includes who they are and what they asked for.
#[tokio::test]
async fn who_is_forgotten_is_a_stranger_again() {
    let gateway = with_people(vec![grace()]).await;
    comes_in(&gateway, says("ada", "hello")).await;
    for person in ["ada", "grace"] {
        let forgotten = gateway.engine().erasure().forget(&identity(person), secs(60), operator("her wish")).await;
        assert!(forgotten.expect("it is done").is_done);
    }

    assert!(gateway.engine().people().waiting().is_empty());
    assert!(gateway.engine().people().all().await.expect("readable").is_empty());
    assert!(gateway.store.pairings().await.expect("readable").is_empty());
    comes_in(&gateway, says("grace", "hello")).await;
    assert_eq!(gateway.visible(&chat("grace")), [notice(&only(&gateway))]);
    gateway.at_rest().await;
}

/// The other policies are as they were.
#[tokio::test]
async fn other_policies_give_no_codes() {
    for direct in [DirectPolicy::Allowlist, DirectPolicy::Disabled] {
        let mut setup = GatewaySetup::new().always(Script::replies("hello"));
        setup.access.insert(main_channel(), Access { direct, ..Access::default() });
        let gateway = setup.start().await;

        comes_in(&gateway, says("ada", "hello")).await;

        assert!(gateway.engine().people().waiting().is_empty());
        gateway.at_rest().await;
    }
}

/// N1, O2. Ten thousand strangers run no agent: three of them are given a code, and of the others only keys are stored.
#[tokio::test]
async fn ten_thousand_strangers_run_no_agent() {
    let gateway = guarded().await;
    for hundred in 0..100 {
        let events = (0..100).map(|number| says(&format!("stranger-{hundred}-{number}"), "hello")).collect();
        gateway.intake().accept_all(events, None).await.expect("they are accepted");
    }
    gateway.settle().await;

    assert!(gateway.agent("main").runs().is_empty());
    assert_eq!(gateway.turns().await.len(), 3 + 60);
    assert_eq!(gateway.engine().people().waiting().len(), 3);
    gateway.at_rest().await;
}
