//! Nothing of somebody who is forgotten is left in any row, nor in any byte of SQLite's files, but what `docs/backup.md` lists.

use std::sync::Arc;

use rejoinder_core::{
    Access, Actor, AgentTurn, Answer, Author, Clock as _, Farewell, Identity, InboundEvent, NewMessage, Quote,
    ScheduleCall, ScheduleLimits, ScheduledAction, Sender, SenderKind, TurnId, When,
    conformance::scripted::{Fault, Script, ScriptedAgent},
    store::{AuditFilter, IdempotentAnswer, LineLevel, LogLine, Subject},
};
use serde_json::json;

use crate::{
    gateway::{TestGateway, chat, comes_in, mention, operator, said, secs},
    life::Crash,
    linking::{code_for, confirms, last, other_channel, says, setup, there},
};

/// Words of Eve, whom an owner lets in, of Linus, who links himself, and of what others do for them. Each stands nowhere else.
const ID: &str = "eve-7731";
const CHAT: &str = "tqkchat";
const NAME: &str = "Vemunda";
const LINUS: &str = "linus-9042";
const LINUS_NAME: &str = "Ullarnix";
const REASON: &str = "becausemuxi";
const GONE: [&str; 25] = [
    "zaddkuser",
    "plainvut",
    "albumonq",
    "albumtwoq",
    "wantskel",
    "deedmorv",
    "remindsob",
    "schedaxq",
    "chimedow",
    "sessiqun",
    "deadlixo",
    "unsaidpy",
    "whyfeld",
    "groupmiz",
    "quoterax",
    "payloawk",
    "messjyr",
    "farewuz",
    "linefix",
    "askedbok",
    "settigno",
    "choicuft",
    "bodyxip",
    "deferlug",
    "ownsekwy",
];

/// What stays, and where: the list of `docs/backup.md`.
const STAYS: [(&str, &[&str]); 6] = [
    (ID, &["audit.target", "events.external_id", "log.data"]),
    (CHAT, &["events.external_id"]),
    (NAME, &[]),
    (LINUS, &["audit.by", "audit.target", "events.external_id", "log.data"]),
    (LINUS_NAME, &["audit.by", "log.data"]),
    (REASON, &["audit.reason", "log.data"]),
];

fn eve() -> Identity {
    Identity { channel: other_channel(), id: ID.to_owned() }
}

fn linus() -> Identity {
    Identity { id: LINUS.to_owned(), ..eve() }
}

/// Eve writes in her direct chat.
fn eve_says(text: &str) -> InboundEvent {
    let (name, username) = (Some(NAME.to_owned()), Some("zaddkuser".to_owned()));
    let sender = Sender { id: ID.to_owned(), name, username, kind: SenderKind::Person };
    InboundEvent { sender, ..said(&there(CHAT), text) }
}

/// An agent that does what the first word of a message says.
fn obedient(turn: &AgentTurn) -> Script {
    let script = match turn.message.text.split_once(' ').map_or("", |(first, _)| first) {
        "wants" if turn.past.approvals.is_empty() => Script::asks_approval("deedmorv", None),
        "remind" => Script::schedules(ScheduleCall::Add {
            name: "schedaxq".to_owned(),
            when: When::Every(secs(3600)),
            time_zone: "UTC".into(),
            action: ScheduledAction::Message("chimedow".to_owned()),
        }),
        "which" => Script::asks("askedbok", &["choicuft", "neither"]),
        "dead" => Script::replies("unsaidpy"),
        "later" => Script::defers(Some("deferlug"), secs(60)),
        _ => Script::replies(&format!("heard {}", turn.message.text)),
    };
    let settings = json!({ "system": if turn.message.text.contains("plainvut") { "settigno" } else { "" } });
    let script = if turn.message.text == "plainvut" { script.naming_session("ownsekwy") } else { script };
    script.showing(&settings.to_string(), &json!([turn.message.text]).to_string())
}

/// A gateway that knows Eve and Linus by everything that it keeps of people.
async fn full() -> TestGateway {
    let mut setup = setup(Access::default());
    setup.agents.clear();
    setup.people[0].identities.push(Identity { id: "ada".to_owned(), ..eve() });
    let make = |clock| ScriptedAgent::new(clock, obedient).remembering(50).keeping_sessions();
    setup.agents.push(("main", Box::new(make)));
    let limits = ScheduleLimits { most: 5, shortest: secs(60) };
    setup.agent_schedules = [("main".into(), limits)].into();
    let gateway = setup.start().await;
    for known in ["ada", "grace"] {
        comes_in(&gateway, says(&chat(known), "hello")).await;
    }
    let_in(&gateway).await;
    for text in ["plainvut", "/language de", "/session new sessiqun", "remind remindsob", "which one", "choicuft"] {
        comes_in(&gateway, eve_says(text)).await;
    }
    let part = |text: &str| InboundEvent {
        part_of: Some("album".to_owned()),
        more_within: Some(secs(1)),
        received_at: gateway.clock.now(),
        ..eve_says(text)
    };
    let album = vec![part("albumonq"), part("albumtwoq")];
    gateway.engine().intake(&other_channel()).accept_all(album, None).await.expect("it is accepted");
    gateway.advance(secs(5)).await;
    comes_in(&gateway, eve_says("wants wantskel")).await;
    comes_in(&gateway, says(&chat("grace"), "Do it")).await;
    gateway.advance(secs(3600)).await;
    dies_and_is_given_up(&gateway).await;
    talks_in_a_group(&gateway).await;
    is_told_of(&gateway).await;
    gateway
}

/// Eve asks to be let in, and the owner says yes.
async fn let_in(gateway: &TestGateway) {
    comes_in(gateway, eve_says("let me in")).await;
    assert!(last(gateway, &chat("grace")).contains(NAME), "{:?}", gateway.visible(&chat("grace")));
    comes_in(gateway, says(&chat("grace"), "Yes")).await;
    // Linus has used Ada's code.
    let code = code_for(gateway, &chat("ada")).await;
    let by_linus = says(&there(LINUS), &format!("/link {code}"));
    let sender = Sender { name: Some(LINUS_NAME.to_owned()), ..by_linus.sender.clone() };
    comes_in(gateway, InboundEvent { sender, ..by_linus }).await;
    assert!(last(gateway, &chat("ada")).contains(LINUS_NAME));
    confirms(gateway, &chat("ada")).await;
}

/// A dead letter, and a turn that an operator gives up.
async fn dies_and_is_given_up(gateway: &TestGateway) {
    gateway.platform.choose_faults(|delivery| (*delivery.conversation().chat == *CHAT).then_some(Fault::Refuse));
    comes_in(gateway, eve_says("dead deadlixo")).await;
    gateway.platform.clear_faults();
    comes_in(gateway, eve_says("later on")).await;
    let [deferred] = gateway.store.open_turns(conversation(gateway).await).await.expect("readable")[..] else {
        panic!("one is deferred")
    };
    let farewell = Farewell::Words("farewuz".to_owned());
    gateway.engine().operations().cancel(deferred, farewell, operator(REASON)).await.expect("it is given up");
    gateway.settle().await;
}

async fn conversation(gateway: &TestGateway) -> rejoinder_core::ConversationId {
    gateway.store.conversation(&there(CHAT)).await.expect("readable").expect("there is one")
}

/// Eve writes in a group, and Ada, who quotes her, does too.
async fn talks_in_a_group(gateway: &TestGateway) {
    let room = there("room");
    comes_in(gateway, InboundEvent { sender: eve_says("").sender, ..mention(&room, "groupmiz") }).await;
    let author = Author { id: Some(ID.to_owned()), name: Some(NAME.to_owned()), ..Author::default() };
    let quote = Quote { author, text: "quoterax".to_owned(), ..Quote::default() };
    let by_ada = InboundEvent { sender: says(&there(LINUS), "").sender, ..mention(&room, "is it?") };
    let by_ada =
        InboundEvent { sender: Sender { id: "ada".to_owned(), name: None, ..by_ada.sender.clone() }, ..by_ada };
    for (quoted, raw) in [(Some(quote), String::new()), (None, "payloawk".to_owned())] {
        let again = InboundEvent { external_id: format!("by-ada-{}", raw.len()), quoted, raw, ..by_ada.clone() };
        comes_in(gateway, again).await;
    }
}

/// An operator writes to Eve, with a key, and the gateway's own log tells of her.
async fn is_told_of(gateway: &TestGateway) {
    let message = NewMessage {
        to: there(CHAT).to_string().parse().expect("a target"),
        text: "messjyr".to_owned(),
        attachments: Vec::new(),
        is_urgent: true,
    };
    gateway.engine().initiative().send(&message, "key", &operator(REASON)).await.expect("it is sent");
    gateway.settle().await;
    let body = json!({ "bodyxip": [{ "id": ID }] }).to_string();
    let answer = IdempotentAnswer { by: "grace".into(), key: "k".into(), request: vec![1], status: 200, body };
    let by = Actor { answer: Some(Answer::known(answer)), ..operator(REASON) };
    gateway.engine().operations().record(&by, "message", "", Subject::default()).await.expect("it is noted");
    let turn = gateway.turns().await.into_iter().find(|turn| turn.conversation == there(CHAT)).expect("a turn").turn_id;
    let line = |turn_id: Option<TurnId>, fields: serde_json::Value| LogLine {
        at: gateway.clock.now(),
        level: LineLevel::Warn,
        target: "test".to_owned(),
        message: format!("something about {}", fields.as_object().expect("an object").len()),
        channel: Some(other_channel()),
        turn_id,
        fields: fields.as_object().expect("an object").clone(),
    };
    let lines = [
        line(Some(turn), json!({ "error": "linefix" })),
        line(None, json!({ "identity": eve().to_string(), "error": "whyfeld" })),
        line(None, json!({ "person": ID, "room": CHAT, "other": 1 })),
    ];
    gateway.store.keep_lines(lines.into()).await.expect("they are kept");
}

/// Fails unless only what stays is in the database.
async fn only_what_stays_is_left(gateway: &TestGateway, when: &str) {
    let gone = GONE.into_iter().map(|word| (word, &[][..]));
    let mut wrong = Vec::new();
    for (word, places) in gone.chain(STAYS) {
        let found = gateway.database.columns_with(word).await;
        let is_anywhere = !gateway.database.places_with(word).await.is_empty();
        if found != places || is_anywhere == places.is_empty() {
            wrong.push((word, found, is_anywhere));
        }
    }
    assert_eq!(wrong, [], "{when}");
}

/// A13.
#[tokio::test]
async fn only_what_is_documented_is_left_of_somebody_who_is_forgotten() {
    let gateway = full().await;
    let mut never_stored = Vec::new();
    for word in GONE.iter().chain(STAYS.iter().map(|(word, _)| word)) {
        never_stored.extend(gateway.database.columns_with(word).await.is_empty().then_some(*word));
    }
    assert_eq!(never_stored, Vec::<&str>::new());

    for person in [eve(), linus()] {
        let forgotten = gateway.engine().erasure().forget(&person, secs(60), operator(REASON)).await;
        assert!(forgotten.expect("it is done").is_done);
    }

    only_what_stays_is_left(&gateway, "after all").await;
    gateway.at_rest().await;
}

/// A13: killed after any write, it is in the audit before anything is gone, and the next call ends it.
#[tokio::test]
async fn who_was_forgotten_by_halves_is_forgotten_by_the_next_call() {
    // Each needs a store of its own with everything in it.
    for write in [1, 4, 9] {
        let mut gateway = full().await;
        gateway.life.crash_at(write, Crash::After);
        let (life, engine) = (Arc::clone(&gateway.life), gateway.engine().clone());
        let forgetting = tokio::spawn(async move { engine.erasure().forget(&eve(), secs(60), operator(REASON)).await });
        while !forgetting.is_finished() && !life.is_over() {
            gateway.settle().await;
        }
        gateway.restart().await;
        let begun = gateway.store.audit(&AuditFilter { before: None, limit: 100 }).await.expect("readable");
        assert!(begun.iter().any(|record| record.entry.action == "begin_forget"), "write {write}");
        assert_eq!(gateway.engine().calendar().seen_by(None).is_empty(), write > 1, "write {write}");

        for person in [eve(), linus()] {
            let again = gateway.engine().erasure().forget(&person, secs(60), operator(REASON)).await;
            assert!(again.expect("it is done").is_done, "write {write}");
        }

        only_what_stays_is_left(&gateway, &format!("after write {write}")).await;
        gateway.at_rest().await;
        assert!(life.is_over(), "it takes more than {write} writes");
    }
}
