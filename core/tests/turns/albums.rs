//! Files of one answer: which of them are one message, which message has the text, and what a refusal leaves of them.

use rejoinder_core::{
    Action, Attachment, Capabilities, Choices, Clock as _, Directed, EventKind, InboundEvent, Ladder, LastAnswer,
    Policy, Reply, Resend, StoredFile, Support, TextLimit, TextUnit,
    conformance::scripted::{Fault, Script, ScriptedAgent, ScriptedChannel},
    data_url,
    store::TurnStatus,
};

use crate::{
    gateway::{GatewaySetup, LINK_FOR, TestGateway, chat, comes_in, policy, said, secs},
    life::{at_every_write, comes_in_dying},
    texts::CUT_LONG,
};

/// Three files in a message, with a text of 20 bytes.
fn albums(it: &mut Capabilities) {
    it.files_per_message = 3;
    it.caption_limit = Some(TextLimit { max: 20, unit: TextUnit::Bytes });
}

/// A file of ten bytes, which begins as a picture does if it is one.
fn file(name: &str) -> Attachment {
    let (media_type, bytes) = match name.strip_suffix(".png") {
        Some(stem) => ("image/png", [&b"\x89PNG\r\n\x1a\n"[..], format!("{stem:2}").as_bytes()].concat()),
        None => ("text/plain", format!("{name:10}").into_bytes()),
    };
    Attachment { name: name.to_owned(), media_type: media_type.to_owned(), url: data_url(media_type, &bytes) }
}

fn answer(text: &str, names: &[&str]) -> Script {
    Script::answers(Reply { attachments: names.iter().map(|name| file(name)).collect(), ..Reply::text(text) })
}

/// Text and files of each message that the platform has performed.
fn sent(gateway: &TestGateway) -> Vec<(String, Vec<String>)> {
    let message = |action: Action| match action {
        Action::Send { content, .. } | Action::Edit { content, .. } => {
            let names = content.attachments.into_iter().map(|file| file.name).collect();
            Some((content.text, names))
        }
        _ => None,
    };
    gateway.platform.seen().into_iter().filter_map(|seen| message(seen.action)).collect()
}

fn message(text: &str, names: &[&str]) -> (String, Vec<String>) {
    (text.to_owned(), names.iter().map(|name| (*name).to_owned()).collect())
}

/// Has the agent answer with these files, and returns the messages.
async fn messages_of(setup: GatewaySetup, script: Script) -> Vec<(String, Vec<String>)> {
    let gateway = setup.always(script).start().await;
    gateway.receives(said(&chat("ada"), "show me")).await;
    let sent = sent(&gateway);
    gateway.at_rest().await;
    sent
}

#[tokio::test]
async fn a_file_and_a_short_text_are_one_message() {
    let with = |text| messages_of(GatewaySetup::new().capable(albums), answer(text, &["a.png"]));

    assert_eq!(with("look").await, [message("look", &["a.png"])]);
    assert_eq!(with("").await, [message("", &["a.png"])]);
    let long = "more than twenty bytes";
    assert_eq!(with(long).await, [message(long, &[]), message("", &["a.png"])]);
    let parts = ["one", "two"].join(ScriptedChannel::CUT);
    let expected = [message("one", &[]), message("two", &[]), message("", &["a.png"])];
    assert_eq!(with(&parts).await, expected);
}

#[tokio::test]
async fn files_of_one_kind_are_one_message_with_the_text_at_the_first() {
    let names = ["a.png", "b.txt", "c.png"];

    let sent = messages_of(GatewaySetup::new().capable(albums), answer("look", &names)).await;

    assert_eq!(sent, [message("look", &["a.png", "c.png"]), message("", &["b.txt"])]);
}

#[tokio::test]
async fn a_message_has_no_more_files_and_bytes_than_the_platform_takes() {
    let four = answer("", &["a.png", "b.png", "c.png", "d.png"]);
    let small = GatewaySetup::new().capable(|it| {
        albums(it);
        it.bytes_per_message = 25;
    });

    let by_number = messages_of(GatewaySetup::new().capable(albums), four.clone()).await;
    let by_size = messages_of(small, four).await;

    assert_eq!(by_number, [message("", &["a.png", "b.png", "c.png"]), message("", &["d.png"])]);
    assert_eq!(by_size, [message("", &["a.png", "b.png"]), message("", &["c.png", "d.png"])]);
}

#[tokio::test]
async fn where_a_message_has_one_file_and_no_text_all_are_apart() {
    let sent = messages_of(GatewaySetup::new(), answer("look", &["a.png", "b.png"])).await;

    assert_eq!(sent, [message("look", &[]), message("", &["a.png"]), message("", &["b.png"])]);
}

/// Buttons belong to a message of their own: albums have none.
#[tokio::test]
async fn a_question_with_choices_is_no_caption() {
    let choices = Choices { options: vec!["yes".to_owned(), "no".to_owned()], free_text: false, expires: None };
    let attachments = vec![file("a.png")];
    let asks = Script::answers(Reply { choices: Some(choices), attachments, ..Reply::text("This one?") });

    let sent = messages_of(GatewaySetup::new().capable(albums), asks).await;

    assert_eq!(sent, [message("This one?", &[]), message("", &["a.png"])]);
}

/// A draft or a deferral that is in the chat is edited into the text: no text is there twice.
#[tokio::test]
async fn a_message_that_is_in_the_chat_becomes_the_text_and_the_files_follow() {
    let drafting = GatewaySetup::new().capable(|it| {
        albums(it);
        (it.drafts, it.drafts_are_messages) = (Support::Full, true);
    });
    let slow = answer("look", &["a.png"]).streaming("lo").taking(secs(5));
    let gateway = drafting.always(slow).start().await;

    gateway.receives(said(&chat("ada"), "show me")).await;
    gateway.advance(secs(10)).await;

    assert_eq!(gateway.visible(&chat("ada")), ["look", ""]);
    gateway.at_rest().await;
}

/// K2. Nothing was sent before, and nothing is lost: the text, and the names of what the platform does not take.
#[tokio::test]
async fn a_refused_album_leaves_its_text() {
    let script = answer("look", &["a.png", "b.png", "c.txt"]);
    let gateway = GatewaySetup::new().capable(albums).always(script).start().await;
    gateway.platform.choose_faults(|delivery| {
        let has_pictures = delivery.action().files().iter().any(|file| file.media_type == "image/png");
        has_pictures.then_some(Fault::Refuse)
    });

    let turn = gateway.receives(said(&chat("ada"), "show me")).await;

    assert_eq!(gateway.visible(&chat("ada")), ["look\n\na.png is not sent.\nb.png is not sent.", ""]);
    assert!(gateway.dossier(turn).await.turn.obligation.fallback().is_none());
    gateway.at_rest().await;
}

/// K2. Whether or not there is a text. The files stay the turn's, for people who open the links.
#[tokio::test]
async fn what_is_refused_is_a_link_if_everybody_can_open_it() {
    for text in ["look", ""] {
        let setup = GatewaySetup { public_url: Some("https://gateway.example"), ..GatewaySetup::new() };
        let gateway = setup.capable(albums).always(answer(text, &["a.png", "b.png"])).start().await;
        gateway.platform.choose_faults(|delivery| (!delivery.action().files().is_empty()).then_some(Fault::Refuse));

        let turn = gateway.receives(said(&chat("ada"), "show me")).await;

        let dossier = gateway.dossier(turn).await;
        let line = |file: &Attachment| {
            let digest = StoredFile::in_url(&file.url).expect("it is stored").digest;
            let path = gateway.file_links.path(turn, digest, gateway.clock.now() + LINK_FOR);
            format!("{} is at https://gateway.example{path}.", file.name)
        };
        let lines: Vec<_> = dossier.deliveries.iter().flat_map(|it| it.action.all_files()).map(line).collect();
        let gap = if text.is_empty() { "" } else { "\n\n" };
        assert_eq!(gateway.visible(&chat("ada")), [format!("{text}{gap}{}", lines.join("\n"))]);
        assert_eq!((lines.len(), dossier.turn.obligation.fallback()), (2, None));
        gateway.at_rest().await;
    }
}

/// K2. The platform refuses a text that is too long, and the answer would be lost for the lines about its files.
#[tokio::test]
async fn what_is_said_of_refused_files_fits_into_a_message() {
    const MOST: usize = 45;
    let setup = GatewaySetup { public_url: Some("https://gateway.example"), ..GatewaySetup::new() };
    let short = setup.capable(|it| {
        albums(it);
        it.text_limit = Some(TextLimit { max: MOST, unit: TextUnit::Bytes });
    });
    let gateway = short.always(answer("look", &["a.png", "b.png", "c.png"])).start().await;
    gateway.platform.choose_faults(|delivery| {
        let Action::Send { content, .. } = delivery.action() else { return None };
        (content.text.len() > MOST || !content.attachments.is_empty()).then_some(Fault::Refuse)
    });

    let turn = gateway.receives(said(&chat("ada"), "show me")).await;

    assert_eq!(gateway.visible(&chat("ada")), ["look\n\na.png is not sent.\nb.png is not sent."]);
    assert!(gateway.dossier(turn).await.turn.obligation.fallback().is_none());
    gateway.at_rest().await;
}

/// K7. The file with the whole of a long answer: what stands before it does not promise it.
#[tokio::test]
async fn a_refused_file_of_a_long_answer_says_that_it_is_cut() {
    let text = ["one", "two", "three", "four", "five"].join(ScriptedChannel::CUT);
    let gateway = TestGateway::with(Script::replies(&text)).await;
    gateway.platform.choose_faults(|delivery| (!delivery.action().files().is_empty()).then_some(Fault::Refuse));

    gateway.receives(said(&chat("ada"), "hello")).await;

    assert_eq!(gateway.visible(&chat("ada")), ["one", CUT_LONG]);
    gateway.at_rest().await;
}

/// Files without a text that are refused first leave nothing: the ladder answers.
#[tokio::test]
async fn refused_files_alone_are_answered_by_the_ladder() {
    let gateway = GatewaySetup::new().capable(albums).always(answer("", &["a.png", "b.png"])).start().await;
    gateway.platform.choose_faults(|delivery| (!delivery.action().files().is_empty()).then_some(Fault::Refuse));

    let turn = gateway.receives(said(&chat("ada"), "show me")).await;

    assert!(gateway.dossier(turn).await.turn.obligation.fallback().is_some());
    assert_eq!(gateway.visible(&chat("ada")).len(), 1);
    gateway.at_rest().await;
}

/// A chat that takes nothing gets the text of a file as the last way, and then the turn is a dead letter.
#[tokio::test]
async fn a_chat_that_takes_nothing_is_asked_once_more_for_the_text() {
    let ladder = Ladder::empty();
    let setup = GatewaySetup::new().capable(albums).policy(Policy { ladder, ..policy() });
    let gateway = setup.always(answer("look", &["a.png"])).start().await;
    gateway.platform.choose_faults(|_| Some(Fault::Refuse));

    let turn = gateway.receives(said(&chat("ada"), "show me")).await;

    assert_eq!(gateway.status(turn).await, TurnStatus::Undeliverable);
    assert_eq!(gateway.dossier(turn).await.attempts.len(), 2);
    gateway.at_rest().await;
}

/// D7. An album is shown as a whole, or it is not: the copy of all of it has the label.
#[tokio::test]
async fn an_album_of_unknown_fate_is_labelled_as_a_whole() {
    let gateway = GatewaySetup::new().capable(albums).always(answer("look", &["a.png", "b.png"])).start().await;
    gateway.platform.queue_fault(Fault::LoseResponse);

    gateway.receives(said(&chat("ada"), "show me")).await;
    gateway.advance(secs(10)).await;

    assert_eq!(gateway.visible(&chat("ada")), ["look", "", "(again) look", ""]);
    assert_eq!(sent(&gateway), vec![message("look", &["a.png", "b.png"]); 2]);
    gateway.at_rest().await;
}

/// Each message of an album is the answer: a reaction to any of them is one to the turn.
#[tokio::test]
async fn a_reaction_to_any_message_of_an_album_is_told() {
    for number in 0..2 {
        let mut setup = GatewaySetup::new().capable(albums);
        let make = |clock| ScriptedAgent::new(clock, |_| answer("look", &["a.png", "b.png"])).keeping_sessions();
        setup.agents.push(("main", Box::new(make)));
        let gateway = setup.start().await;
        gateway.receives(said(&chat("ada"), "show me")).await;
        let message = gateway.platform.posts(&chat("ada"))[number].id.clone();

        let kind = EventKind::Reaction { message, emoji: "👍".to_owned(), removed: None };
        let reaction = InboundEvent { kind, directed: Directed::ReplyToUs, ..said(&chat("ada"), "") };
        comes_in(&gateway, reaction).await;
        gateway.receives(said(&chat("ada"), "another one")).await;

        let told = gateway.agent("main").runs().pop().expect("a run").turn.past.last_answer;
        assert!(matches!(&told, Some(LastAnswer::Seen(reactions)) if reactions.len() == 1), "{number}: {told:?}");
        gateway.at_rest().await;
    }
}

/// D1.
#[tokio::test]
async fn a_crash_at_any_write_of_an_album_shows_it_once() {
    at_every_write(2, async |crash, write| {
        let setup = GatewaySetup::new().capable(|it| {
            albums(it);
            it.resend = Resend::Idempotent;
        });
        let mut gateway = setup.always(answer("look", &["a.png", "b.png"])).start().await;

        let has_died = comes_in_dying(&mut gateway, (crash, write), said(&chat("ada"), "hello")).await;
        gateway.advance(secs(7_200)).await;

        assert_eq!(gateway.visible(&chat("ada")), ["look", ""], "{crash:?} write {write}");
        gateway.at_rest().await;
        has_died
    })
    .await;
}
