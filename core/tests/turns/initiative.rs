//! The gateway speaks first: messages to conversations, people and roles.

use std::{collections::BTreeMap, sync::Arc};

use rejoinder_core::{
    Access, Actor, AgentTurn, Answer, Attachment, BegunTurn, Capabilities, ChannelId, Choices, ConversationRef, Done,
    Hours, Identity, InboundEvent, Missed, NewMessage, NewSchedule, News, NotReached, OnUnknown, OperationError,
    PersonRole, Policies, Policy, Receipts, Reply, ScheduledAction, SeedPerson, StoredFile, Support, Target, Task,
    Timestamp, TurnStatus, TurnView, When, Words,
    conformance::scripted::{Fault, Script, capabilities},
    store::{AuditFilter, IdempotentAnswer},
};

use crate::{
    gateway::{GatewaySetup, TestGateway, chat, comes_in, main_channel, operator, policy, secs},
    keys::{self, HELD, address, page, with_key},
    life::at_every_write,
    linking::{code_for, confirms, guarded, last, other_channel, says, setup, there},
};

pub(crate) fn message(to: &str, text: &str) -> NewMessage {
    NewMessage { to: to.parse().expect("a target"), text: text.to_owned(), attachments: Vec::new(), is_urgent: false }
}

async fn sends(gateway: &TestGateway, to: &str, key: &str) -> Result<Vec<BegunTurn>, OperationError> {
    let sent = gateway.engine().initiative().send(&message(to, "The report is ready."), key, &operator("a test")).await;
    gateway.settle().await;
    sent.map(|sent| sent.begun)
}

/// As a reader of these channels is told.
fn not_reached(gateway: &TestGateway, missed: &[NotReached], channels: Option<&[ChannelId]>) -> Vec<String> {
    missed.iter().map(|one| gateway.engine().name_addressees(one.who, channels)).collect()
}

fn addresses(sent: &[BegunTurn]) -> Vec<ConversationRef> {
    sent.iter().map(|one| one.to.clone()).collect()
}

async fn refusal(gateway: &TestGateway, to: &str) -> String {
    match sends(gateway, to, "refused").await {
        Err(OperationError::Unfit(why)) => why,
        other => panic!("{other:?}"),
    }
}

/// J4. Somebody gets it where they are reached, and everybody with a role does.
#[tokio::test]
async fn a_message_is_for_a_person_or_a_role() {
    let gateway = guarded().await;
    for address in [chat("ada"), chat("grace")] {
        comes_in(&gateway, says(&address, "hello")).await;
    }

    let sent = sends(&gateway, "Ada", "one").await.expect("it is sent");
    assert_eq!(addresses(&sent), [chat("ada")]);
    assert_eq!(last(&gateway, &chat("ada")), "The report is ready.");
    assert_eq!(last(&gateway, &chat("grace")), "hello");

    let code = code_for(&gateway, &chat("ada")).await;
    comes_in(&gateway, says(&there("lovelace"), &format!("/link {code}"))).await;
    confirms(&gateway, &chat("ada")).await;
    comes_in(&gateway, says(&there("lovelace"), "hello")).await;
    let sent = sends(&gateway, "role:member", "two").await.expect("it is sent");
    assert_eq!(addresses(&sent), [there("lovelace")]);
    let sent = sends(&gateway, "role:owner", "three").await.expect("it is sent");
    assert_eq!(addresses(&sent), [chat("grace")]);
    gateway.at_rest().await;
}

/// Bad input says what to do.
#[tokio::test]
async fn a_message_to_nobody_is_refused() {
    let gateway = guarded().await;

    assert!(refusal(&gateway, "Eve").await.contains("people list"));
    assert!(refusal(&gateway, "Ada").await.contains("has written"));
    assert!(refusal(&gateway, "adda").await.contains("did you mean Ada?"));
    assert!(refusal(&gateway, "role:guest").await.contains("nobody has the role guest"));
    assert!(refusal(&gateway, "fax.main/42").await.contains("not configured"));
    gateway.at_rest().await;
}

/// Nobody has written there: the platform says whether it exists.
#[tokio::test]
async fn a_message_can_begin_a_conversation() {
    let gateway = setup(Access::open()).start().await;
    let address = there("room").to_string();

    sends(&gateway, &address, "one").await.expect("it is sent");
    assert_eq!(gateway.visible(&there("room")), ["The report is ready."]);

    gateway.platform.queue_fault(Fault::Refuse);
    let sent = sends(&gateway, &chat("nowhere").to_string(), "two").await.expect("it is stored");
    assert_eq!(gateway.status(sent[0].turn).await, TurnStatus::Undeliverable);
    assert_eq!(gateway.dead_letters().await.len(), 1);
    gateway.at_rest().await;
}

#[tokio::test]
async fn a_message_has_files() {
    let gateway = guarded().await;
    let file = Attachment {
        name: "report.txt".to_owned(),
        media_type: "text/plain".to_owned(),
        url: "data:text/plain;base64,aGVsbG8=".to_owned(),
    };
    let new = NewMessage { attachments: vec![file.clone()], ..message(&chat("ada").to_string(), "") };

    let sent = gateway.engine().initiative().send(&new, "one", &operator("a test")).await.expect("it is sent");
    gateway.settle().await;

    let dossier = gateway.dossier(sent.begun[0].turn).await;
    assert_eq!(dossier.deliveries[0].action.files()[0].url, StoredFile::of(b"hello").to_string());
    assert_eq!(gateway.platform.seen()[0].action.files(), [file]);
    gateway.at_rest().await;
}

/// In the answer, in the run and in the audit, which hold ids: who is forgotten has no name there.
#[tokio::test]
async fn those_of_a_role_who_are_not_reached_are_named() {
    let mut setup = setup(Access::default());
    for name in ["Bob", "Cy"] {
        let identities = vec![Identity { channel: main_channel(), id: name.to_lowercase() }];
        let role = PersonRole::Member;
        setup.people.push(SeedPerson { name: name.to_owned(), role, identities, home: None, language: None });
    }
    let gateway = setup.start().await;
    comes_in(&gateway, says(&chat("ada"), "hello")).await;
    let by = operator("a test");

    let sent = gateway
        .engine()
        .initiative()
        .send(&message("role:member", "Leave the house."), "one", &by)
        .await
        .expect("it is sent");
    gateway.engine().schedules().add(tells("role:member", false), &by).await.expect("it is made");
    let begun = gateway.engine().schedules().run_now("news", "one", &by).await.expect("it is begun");
    gateway.settle().await;

    let named = |missed: &[NotReached]| not_reached(&gateway, missed, None);
    assert_eq!(
        (addresses(&sent.begun), named(&sent.missed)),
        (vec![chat("ada")], vec!["Bob".to_owned(), "Cy".to_owned()])
    );
    assert_eq!(begun.missed, sent.missed);
    let (_, runs) = gateway.engine().calendar().with_runs("news", &by).await.expect("readable");
    assert_eq!((runs[0].turns.len(), &runs[0].problem, &runs[0].not_reached), (1, &None, &sent.missed));
    let audit = gateway.store.audit(&AuditFilter { before: None, limit: 10 }).await.expect("readable");
    let missed: Vec<_> = audit.iter().map(|it| &it.entry.not_reached).filter(|missed| !missed.is_empty()).collect();
    assert_eq!(missed, [&sent.missed, &sent.missed]);
    let bob = Identity { channel: main_channel(), id: "bob".to_owned() };
    gateway.engine().operations().revoke(&bob, by.clone()).await.expect("it is revoked");
    assert_eq!(named(&sent.missed), ["one person", "Cy"]);
    gateway.engine().calendar().pause("news", true, &by).await.expect("it is paused");
    gateway.at_rest().await;
}

/// Their names are in no list that the token may see.
#[tokio::test]
async fn a_token_for_some_channels_learns_no_names_of_people_on_others() {
    let mut setup = setup(Access::default());
    for (name, channel) in [("Bob", main_channel()), ("Zoe", other_channel()), ("Zed", other_channel())] {
        let (identities, role) = (vec![Identity { channel, id: name.to_lowercase() }], PersonRole::Member);
        setup.people.push(SeedPerson { name: name.to_owned(), role, identities, home: None, language: None });
    }
    let gateway = setup.start().await;
    for address in [chat("ada"), there("zoe")] {
        comes_in(&gateway, says(&address, "hello")).await;
    }
    let by = Actor { channels: Some(vec![main_channel()]), ..operator("a test") };

    let sent =
        gateway.engine().initiative().send(&message("role:member", "Hello."), "one", &by).await.expect("it is sent");
    let refused = gateway.engine().initiative().send(&message("Zoey", "Hello."), "two", &by).await;
    gateway.settle().await;

    let (sees, stranger) = (by.channels.as_deref(), [there("").channel]);
    assert_eq!(addresses(&sent.begun), [chat("ada")]);
    assert_eq!(not_reached(&gateway, &sent.missed, sees), ["Bob", "2 people"]);
    assert_eq!(not_reached(&gateway, &sent.missed, Some(&stranger)), ["one person", "2 people"]);
    let Err(OperationError::Unfit(why)) = refused else { panic!("{refused:?}") };
    assert!(!why.contains("did you mean"), "{why}");
    gateway.at_rest().await;
}

/// A request that is repeated sends nothing, also if the person is reached elsewhere since.
#[tokio::test]
async fn a_repeated_request_sends_nothing_again() {
    let mut gateway = guarded().await;
    comes_in(&gateway, says(&chat("ada"), "hello")).await;
    let first = sends(&gateway, "Ada", "key").await.expect("it is sent");
    let code = code_for(&gateway, &chat("ada")).await;
    comes_in(&gateway, says(&there("lovelace"), &format!("/link {code}"))).await;
    confirms(&gateway, &chat("ada")).await;
    comes_in(&gateway, says(&there("lovelace"), "hello")).await;
    gateway.restart().await;

    let again = sends(&gateway, "Ada", "key").await.expect("it was sent");

    assert_eq!(again, first);
    let shown = gateway.visible(&chat("ada")).into_iter().chain(gateway.visible(&there("lovelace")));
    assert_eq!(shown.filter(|text| text.contains("report")).count(), 1);
    gateway.at_rest().await;
}

/// `kill -9` at every write: the caller repeats the request, and the message is shown once.
#[tokio::test]
async fn a_message_is_shown_once_whenever_the_gateway_is_killed() {
    at_every_write(3, async |crash, write| {
        let mut gateway = guarded().await;
        comes_in(&gateway, says(&chat("ada"), "hello")).await;
        comes_in(&gateway, says(&chat("grace"), "hello")).await;
        let life = Arc::clone(&gateway.life);
        life.crash_at(write, crash);
        let engine = gateway.engine().clone();
        tokio::spawn(async move {
            let by = operator("a test");
            engine.initiative().send(&message("role:owner", "Now."), "key", &by).await
        });
        gateway.settle().await;
        let has_crashed = life.is_over();
        gateway.restart().await;
        let by = operator("a test");
        gateway.engine().initiative().send(&message("role:owner", "Now."), "key", &by).await.expect("it is sent");
        gateway.advance(secs(60)).await;

        assert_eq!(gateway.visible(&chat("grace")), ["hello", "Now."], "{crash:?} write {write}");
        gateway.at_rest().await;
        has_crashed
    })
    .await;
}

/// `kill -9` at every write: a message is sent with its entry in the audit and the answer to its request, or not at all.
#[tokio::test]
async fn a_message_is_in_the_audit_whenever_the_gateway_is_killed() {
    at_every_write(3, async |crash, write| {
        let mut gateway = guarded().await;
        comes_in(&gateway, says(&chat("grace"), "hello")).await;
        let life = Arc::clone(&gateway.life);
        life.crash_at(write, crash);
        let engine = gateway.engine().clone();
        let by = Actor { answer: Some(answer_with_turns()), ..operator("a test") };
        tokio::spawn(async move { engine.initiative().send(&message("role:owner", "Now."), "key", &by).await });
        gateway.settle().await;
        let has_crashed = life.is_over();
        gateway.restart().await;
        gateway.advance(secs(60)).await;

        let turns: Vec<_> = gateway.turns().await.into_iter().map(|turn| turn.turn_id.to_string()).collect();
        let audit = gateway.store.audit(&AuditFilter { before: None, limit: 10 }).await.expect("readable");
        let audited: Vec<_> = audit.into_iter().map(|it| it.entry.target).collect();
        let answer = gateway.store.answer("grace", "key").await.expect("readable").map(|answer| answer.body);
        let is_sent = gateway.visible(&chat("grace")).iter().any(|text| text == "Now.");
        assert_eq!(audited.len(), usize::from(is_sent), "{crash:?} write {write}");
        assert_eq!(answer.as_ref(), audited.first(), "{crash:?} write {write}");
        assert!(audited.iter().all(|turn| turns.contains(turn)), "{crash:?} write {write}: {audited:?}");
        gateway.at_rest().await;
        has_crashed
    })
    .await;
}

/// An answer that names the turns that were begun.
pub(crate) fn answer_with_turns() -> Answer {
    Answer::new(|done| {
        let Done::Begun(sent) = done else { return None };
        let (by, key, request) = ("grace".to_owned(), "key".to_owned(), vec![1]);
        let turns: Vec<_> = sent.begun.iter().map(|one| one.turn.to_string()).collect();
        Some(IdempotentAnswer { by, key, request, status: 202, body: turns.join(" ") })
    })
}

fn writes(text: &str) -> InboundEvent {
    with_key(HELD, text)
}

/// A gateway with a page that reads rows, in whose conversation somebody has written.
async fn with_page(change: impl FnOnce(&mut GatewaySetup, &mut Capabilities)) -> TestGateway {
    let mut setup = keys::setup();
    let mut rows = Capabilities { receipts: Receipts::Row, ..capabilities() };
    change(&mut setup, &mut rows);
    let of_page = setup.channels.iter_mut().find(|(channel, _)| *channel == page()).expect("there is a page");
    of_page.1 = rows;
    let gateway = setup.start().await;
    comes_in(&gateway, writes("one")).await;
    gateway
}

/// What the page shows: what the person said, and what was answered.
async fn on_page(gateway: &TestGateway) -> Vec<(String, Option<String>)> {
    let views = gateway.store.views(&address(), None, 10).await.expect("readable");
    views.into_iter().map(|TurnView { text, shown, .. }| (text, shown.map(|shown| shown.text))).collect()
}

fn shows(said: &str, answer: &str) -> (String, Option<String>) {
    (said.to_owned(), Some(answer.to_owned()))
}

/// J4. The person has said nothing, and an open page is told at once.
#[tokio::test]
async fn a_message_to_a_page_answers_nothing_that_the_person_said() {
    let mut gateway = with_page(|_, _| {}).await;
    let mut open = gateway.engine().intake(&page()).follow();
    let file = Attachment {
        name: "report.txt".to_owned(),
        media_type: "text/plain".to_owned(),
        url: "https://a.example/report.txt".to_owned(),
    };
    let new = NewMessage { attachments: vec![file.clone()], ..message(&address().to_string(), "The report is ready.") };

    let sent = gateway.engine().initiative().send(&new, "one", &operator("a test")).await.expect("it is stored");
    gateway.settle().await;

    assert_eq!(on_page(&gateway).await, [shows("one", "one []"), shows("", "The report is ready.")]);
    let told = open.try_recv().expect("it is told").expect("it is a change");
    assert_eq!((told.turn_id, &*told.text, told.status), (sent.begun[0].turn, "", TurnStatus::Answered));
    let shown = told.shown.as_ref().expect("it is shown");
    assert_eq!((&shown.agent, &shown.attachments, told.attachments.len()), (&None, &vec![file], 0));
    assert_eq!(gateway.status(sent.begun[0].turn).await, TurnStatus::Answered);
    gateway.restart().await;
    assert_eq!(on_page(&gateway).await.len(), 2);
    gateway.at_rest().await;
}

/// Nobody would see what is said in a conversation that nobody has opened. What was typed may be a key, so it is not repeated.
#[tokio::test]
async fn a_message_goes_only_where_somebody_has_written() {
    let gateway = with_page(|_, _| {}).await;

    let sent = sends(&gateway, &address().to_string(), "one").await.expect("it is stored");
    assert_eq!(addresses(&sent), [address()]);
    assert_eq!(sends(&gateway, &address().to_string(), "one").await.expect("it was stored"), sent);
    assert_eq!(on_page(&gateway).await.len(), 2);
    let refused = refusal(&gateway, "test.page/another").await;
    assert!(refused.contains("nobody has written") && !refused.contains("another"), "{refused}");
    gateway.at_rest().await;
}

/// Its callers fetch the answers to their own turns.
#[tokio::test]
async fn nothing_is_sent_where_nobody_would_see_it() {
    let gateway = with_page(|_, rows| rows.can_write_first = false).await;

    assert!(refusal(&gateway, &address().to_string()).await.contains("callers fetch"));
    let by = operator("a test");
    let nowhere = gateway.engine().schedules().add(tells(&address().to_string(), false), &by);
    assert!(matches!(nowhere.await, Err(OperationError::Unfit(_))));
    gateway.at_rest().await;
}

/// Somebody has a direct chat, and later only a conversation on the page. An owner is none there.
#[tokio::test]
async fn somebody_who_is_in_no_direct_chat_is_reached_on_the_page() {
    let gateway = with_page(|_, _| {}).await;
    for (name, key) in [("ada", HELD), ("grace", "7b")] {
        let code = code_for(&gateway, &chat(name)).await;
        comes_in(&gateway, with_key(key, &format!("/link {code}"))).await;
        confirms(&gateway, &chat(name)).await;
    }
    assert_eq!(addresses(&sends(&gateway, "Ada", "one").await.expect("it is sent")), [chat("ada")]);

    for name in ["ada", "grace"] {
        let identity = Identity { channel: main_channel(), id: name.to_owned() };
        gateway.engine().operations().revoke(&identity, operator("a lost phone")).await.expect("it is done");
    }
    for (to, key) in [("Ada", "two"), ("role:member", "three")] {
        assert_eq!(addresses(&sends(&gateway, to, key).await.expect("it is stored")), [address()], "{to}");
    }
    assert!(refusal(&gateway, "role:owner").await.contains("has written"));
    assert_eq!(sends(&gateway, "Grace", "four").await.expect("it is stored").len(), 1);
    let theirs = Identity { channel: page(), id: HELD.to_owned() };
    gateway.engine().operations().revoke(&theirs, operator("all is lost")).await.expect("it is done");
    assert!(refusal(&gateway, "Ada").await.contains("nobody who is known"));
    gateway.at_rest().await;
}

fn tells(to: &str, quiet: bool) -> NewSchedule {
    let text = "Say what is new.".to_owned();
    NewSchedule {
        name: "news".to_owned(),
        when: When::Every(secs(3600)),
        time_zone: "UTC".into(),
        to: to.parse().expect("a target"),
        action: ScheduledAction::Prompt { text, agent: None, quiet, words: Words::default() },
        missed: Missed::Once,
    }
}

/// What the agent is told is for the agent. Of a quiet one who says nothing, the page shows nothing, not even meanwhile.
#[rstest::rstest]
#[case::answers(false, "Nothing is new.", &[("", Some("Nothing is new."))])]
#[case::quiet(true, "Nothing is new.", &[("", Some("Nothing is new."))])]
#[case::silent(true, "", &[])]
#[tokio::test]
async fn a_page_shows_the_answer_to_a_prompt_alone(
    #[case] quiet: bool,
    #[case] answer: &'static str,
    #[case] shown: &[(&str, Option<&str>)],
) {
    let script = move |turn: &AgentTurn| match &*turn.message.text {
        "Say what is new." if answer.is_empty() => {
            Script::is_silent("nothing is new").streaming("Let me see").taking(secs(5))
        }
        "Say what is new." => Script::replies(answer).streaming("Nothing").taking(secs(5)),
        text => Script::replies(text),
    };
    let gateway = with_page(|setup, rows| {
        setup.agents.clear();
        *setup = std::mem::replace(setup, GatewaySetup::new()).agent("main", script);
        (rows.typing, rows.drafts) = (Support::Full, Support::Full);
    })
    .await;
    let before = gateway.platform.calls();
    gateway.engine().schedules().add(tells(&address().to_string(), quiet), &operator("a test")).await.expect("made");

    gateway.advance(secs(3600)).await;
    gateway.advance(secs(5)).await;

    let all = on_page(&gateway).await;
    let told: Vec<_> = all[1..].iter().map(|(said, answer)| (&**said, answer.as_deref())).collect();
    assert_eq!(told, shown);
    assert_eq!(gateway.platform.calls() == before, quiet, "notices of typing, and drafts");
    comes_in(&gateway, writes("/history")).await;
    let history = on_page(&gateway).await.pop().and_then(|(_, shown)| shown).expect("it is told");
    assert!(history.contains("one") && !history.contains("Say what"), "{history}");
    gateway.at_rest().await;
}

/// `kill -9` at every write: the page shows it once.
#[tokio::test]
async fn a_page_shows_a_message_once_whenever_the_gateway_is_killed() {
    at_every_write(2, async |crash, write| {
        let mut gateway = with_page(|_, _| {}).await;
        let life = Arc::clone(&gateway.life);
        life.crash_at(write, crash);
        let engine = gateway.engine().clone();
        tokio::spawn(async move {
            let by = operator("a test");
            engine.initiative().send(&message(&address().to_string(), "Now."), "key", &by).await
        });
        gateway.settle().await;
        let has_crashed = life.is_over();
        gateway.restart().await;
        let by = operator("a test");
        gateway
            .engine()
            .initiative()
            .send(&message(&address().to_string(), "Now."), "key", &by)
            .await
            .expect("it is stored");
        gateway.advance(secs(60)).await;

        assert_eq!(on_page(&gateway).await, [shows("one", "one []"), shows("", "Now.")], "{crash:?} write {write}");
        gateway.at_rest().await;
        has_crashed
    })
    .await;
}

#[test]
fn a_target_is_a_conversation_with_a_channel() {
    assert_eq!(chat("ada").to_string().parse(), Ok(Target::Conversation(chat("ada"))));
    assert_eq!(chat("ada").channel, main_channel());
}

/// The tests begin at midnight.
fn adas_quiet_hours(from: i8, until: i8) -> BTreeMap<String, Hours> {
    let hour = |hours| jiff::civil::time(hours, 0, 0, 0);
    [("Ada".to_owned(), Hours { from: hour(from), until: hour(until) })].into()
}

/// J4. In somebody's quiet hours only what is urgent is sent, and what they are answered; the rest comes afterwards, once, over a
/// restart as well.
#[rstest::rstest]
#[case::one_life(false)]
#[case::a_restart(true)]
#[tokio::test]
async fn nobody_is_disturbed_in_their_quiet_hours(#[case] restarts: bool) {
    let mut settings = setup(Access::open());
    settings.quiet_hours = adas_quiet_hours(23, 1);
    let mut gateway = settings.start().await;
    for address in [chat("ada"), chat("grace")] {
        comes_in(&gateway, says(&address, "hello")).await;
    }

    for to in ["Ada".to_owned(), "role:owner".to_owned(), chat("ada").to_string()] {
        sends(&gateway, &to, &to).await.expect("it is stored");
    }
    let urgent = NewMessage { is_urgent: true, ..message("Ada", "It burns.") };
    gateway.engine().initiative().send(&urgent, "urgent", &operator("a test")).await.expect("it is sent");
    gateway.settle().await;
    comes_in(&gateway, says(&chat("ada"), "hm?")).await;
    if restarts {
        gateway.restart().await;
    }
    assert_eq!(gateway.visible(&chat("ada")), ["hello", "It burns.", "hello"]);
    assert_eq!(last(&gateway, &chat("grace")), "The report is ready.");

    gateway.advance(secs(3600)).await;

    let report = "The report is ready.";
    assert_eq!(gateway.visible(&chat("ada")), ["hello", "It burns.", "hello", report, report]);
    gateway.at_rest().await;
}

/// What an agent says because of a prompt waits as well, and nothing is shown of it before.
#[tokio::test]
async fn an_answer_that_nobody_asked_for_waits_for_the_end_of_quiet_hours() {
    let mut settings = setup(Access::open());
    settings.agents.clear();
    let mut settings = settings.agent("main", |_| Script::replies("hello").streaming("hel").taking(secs(5)));
    settings.quiet_hours = adas_quiet_hours(23, 1);
    let gateway = settings.start().await;
    comes_in(&gateway, says(&chat("ada"), "hello")).await;
    gateway.advance(secs(5)).await;
    let task = Task { text: "Tell Ada.".to_owned(), agent: None, quiet: true, words: Words::default() };
    let news = News {
        to: "Ada".parse().expect("a target"),
        text: "It burns.".to_owned(),
        task: Some(task),
        key: "one".to_owned(),
        raw: String::new(),
    };

    gateway.engine().intake(&main_channel()).report(news).await.expect("it is taken");
    gateway.advance(secs(600)).await;
    assert_eq!(gateway.visible(&chat("ada")), ["hello"]);
    gateway.advance(secs(3600)).await;

    assert_eq!(gateway.visible(&chat("ada")), ["hello", "hello"]);
    gateway.at_rest().await;
}

/// An answer that is tried again takes nothing along that waits, which does not count as getting nowhere either.
#[tokio::test]
async fn an_answer_that_is_tried_again_disturbs_nobody_else() {
    let mut settings = setup(Access::open());
    settings.quiet_hours = adas_quiet_hours(23, 1);
    let gateway = settings.start().await;
    comes_in(&gateway, says(&chat("ada"), "hello")).await;
    sends(&gateway, "Ada", "one").await.expect("it is stored");
    assert_eq!(gateway.store.backlog().await.expect("it is read").parked_deliveries, 0);

    for _ in 0..3 {
        gateway.platform.queue_fault(Fault::NotSent);
    }
    comes_in(&gateway, says(&chat("ada"), "hm?")).await;
    gateway.advance(secs(600)).await;
    assert_eq!(gateway.visible(&chat("ada")), ["hello", "hello"]);
    gateway.advance(secs(3600)).await;

    assert_eq!(gateway.visible(&chat("ada")), ["hello", "hello", "The report is ready."]);
    gateway.at_rest().await;
}

async fn prompts_ada(gateway: &TestGateway) {
    let by = operator("a test");
    gateway.engine().schedules().add(tells("Ada", false), &by).await.expect("it is made");
    gateway.engine().schedules().run_now("news", "one", &by).await.expect("it is begun");
    gateway.engine().calendar().pause("news", true, &by).await.expect("it is paused");
    gateway.settle().await;
}

/// Ada's quiet hours are from one to three. Asked what is new, the agent does `first`, and replies later if it has deferred.
fn quiet_from_one(first: Script) -> GatewaySetup {
    let mut settings = setup(Access::open());
    settings.agents.clear();
    let mut settings = settings.agent("main", move |turn| match (&*turn.message.text, turn.past.deferred.is_some()) {
        ("Say what is new.", false) => first.clone(),
        ("Say what is new.", true) => Script::replies("Nothing is new."),
        (text, _) => Script::replies(text),
    });
    settings.quiet_hours = adas_quiet_hours(1, 3);
    settings
}

/// What counts is when it would be shown: the agent took its time, or named one that is quiet.
#[rstest::rstest]
#[case::slow(Script::replies("Nothing is new.").taking(secs(120)))]
#[case::deferred(Script::defers(None, secs(600)))]
#[tokio::test]
async fn an_answer_that_is_ready_in_quiet_hours_waits(#[case] first: Script) {
    let gateway = quiet_from_one(first).start().await;
    comes_in(&gateway, says(&chat("ada"), "hello")).await;
    // They begin a minute later.
    gateway.advance(secs(3540)).await;
    prompts_ada(&gateway).await;
    gateway.advance(secs(1800)).await;
    assert_ne!(last(&gateway, &chat("ada")), "Nothing is new.");
    assert_eq!(gateway.store.backlog().await.expect("it is read").overdue, 0);

    gateway.advance(secs(7200)).await;

    assert_eq!(last(&gateway, &chat("ada")), "Nothing is new.");
    gateway.at_rest().await;
}

/// Its note was shown before, and others were read since: the answer takes its place neither then nor unnoticed afterwards.
#[rstest::rstest]
#[case(OnUnknown::Label)]
#[case(OnUnknown::Hold)]
#[tokio::test]
async fn an_answer_in_quiet_hours_is_no_edit_of_what_was_shown_before(#[case] on_unknown: OnUnknown) {
    let mut settings = quiet_from_one(Script::defers(Some("Let me see."), secs(600)));
    settings.policies = Policies::new(Policy { on_unknown, ..policy() });
    let gateway = settings.start().await;
    comes_in(&gateway, says(&chat("ada"), "hello")).await;
    gateway.advance(secs(3540)).await;
    prompts_ada(&gateway).await;
    gateway.advance(secs(900)).await;
    comes_in(&gateway, says(&chat("ada"), "hm?")).await;
    gateway.advance(secs(900)).await;
    assert_eq!(gateway.visible(&chat("ada")), ["hello", "Let me see.", "hm?"]);
    assert_eq!(gateway.store.backlog().await.expect("it is read").overdue, 0);

    gateway.advance(secs(7200)).await;

    assert_eq!(gateway.visible(&chat("ada")), ["hello", "hm?", "Nothing is new."]);
    gateway.at_rest().await;
}

/// Nobody answers what they cannot see: a question is asked when it is shown, and as long as its agent wants it to be answered.
#[tokio::test]
async fn a_question_grows_old_from_when_it_is_shown() {
    let mut settings = setup(Access::open());
    settings.agents.clear();
    let mut settings = settings.agent("main", |turn| match &*turn.message.text {
        "Say what is new." => {
            let options = vec!["yes".to_owned(), "no".to_owned()];
            // Half an hour after midnight.
            let expires = Some(Timestamp::from_millis(1_767_227_400_000));
            Script::answers(Reply::question("Tea?", Choices { options, free_text: true, expires }))
        }
        text => Script::replies(&format!("{text}!")),
    });
    settings.quiet_hours = adas_quiet_hours(23, 1);
    let gateway = settings.start().await;
    comes_in(&gateway, says(&chat("ada"), "hello")).await;
    prompts_ada(&gateway).await;
    comes_in(&gateway, says(&chat("ada"), "hm?")).await;
    gateway.advance(secs(3000)).await;
    assert_eq!(gateway.visible(&chat("ada")), ["hello!", "hm?!"]);

    gateway.advance(secs(900)).await;
    assert!(last(&gateway, &chat("ada")).contains("Tea?"), "{:?}", gateway.visible(&chat("ada")));
    comes_in(&gateway, says(&chat("ada"), "2")).await;

    assert_eq!(last(&gateway, &chat("ada")), "no!");
    gateway.at_rest().await;
}

/// C1. What an operator says is no agent's marker, and no model's reasoning.
#[rstest::rstest]
#[case("NO_REPLY")]
#[case("ALERT disk full </think> ok")]
#[case("<think>never closed")]
#[tokio::test]
async fn an_operators_words_are_sent_as_they_are(#[case] words: &str) {
    let gateway = guarded().await;
    comes_in(&gateway, says(&chat("ada"), "hello")).await;

    gateway.engine().initiative().send(&message("Ada", words), "one", &operator("a test")).await.expect("it is sent");
    gateway.settle().await;

    assert_eq!(last(&gateway, &chat("ada")), words);
    gateway.at_rest().await;
}
