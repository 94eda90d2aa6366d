//! Files of people and of agents: each is stored once, and read when it is used.

use std::time::Duration;

use rejoinder_core::{
    Action, Attachment, Clock as _, FileDigest, FileLimits, Heard, InboundEvent, Lifetimes, Receipts, Reply, Resend,
    StoredFile, Support, Timestamp, TurnId, Voice,
    conformance::scripted::{Fault, Script, ScriptedAgent},
    data_url,
    store::Cutoffs,
};

use crate::{
    drafts::showing,
    gateway::{GatewaySetup, LINK_FOR, TestGateway, chat, is_on_postgres, said, secs},
    life::{at_every_write, comes_in_dying},
};

const DAY: Duration = Duration::from_hours(24);

const CONTENT: &[u8] = b"what is in the file";

fn file() -> Attachment {
    let (name, media_type) = ("a.txt".to_owned(), "text/plain".to_owned());
    Attachment { url: data_url(&media_type, CONTENT), name, media_type }
}

fn reference() -> String {
    StoredFile::of(CONTENT).to_string()
}

/// Answers with a file.
fn script() -> Script {
    Script::answers(Reply { attachments: vec![file()], ..Reply::text("Here it is.") })
}

fn files_of(actions: impl Iterator<Item = Action>) -> Vec<String> {
    actions.flat_map(|action| action.files().to_vec()).map(|file| file.url).collect()
}

/// The URLs of the files that the platform was sent.
fn sent(gateway: &TestGateway) -> Vec<String> {
    files_of(gateway.platform.seen().into_iter().map(|seen| seen.action))
}

/// The URLs of the files in the stored deliveries of a turn.
async fn stored(gateway: &TestGateway, turn: TurnId) -> Vec<String> {
    files_of(gateway.dossier(turn).await.deliveries.into_iter().map(|delivery| delivery.action))
}

/// How many rows there are of files, and of what refers to them.
async fn rows(gateway: &TestGateway) -> (u64, u64) {
    let rows = gateway
        .store
        .stats(&Cutoffs::at(Timestamp::from_millis(0), &Lifetimes::default()))
        .await
        .expect("readable")
        .rows;
    (rows["files"], rows["file_uses"])
}

#[tokio::test]
async fn a_file_that_is_sent_again_and_to_others_is_stored_once() {
    let gateway = TestGateway::with(script()).await;
    gateway.platform.queue_fault(Fault::NotSent);

    let first = gateway.receives(said(&chat("ada"), "hello")).await;
    let second = gateway.receives(said(&chat("bob"), "hello")).await;
    gateway.advance(secs(60)).await;

    assert_eq!(sent(&gateway), [file().url, file().url]);
    for turn in [first, second] {
        assert_eq!(stored(&gateway, turn).await, [reference()]);
    }
    assert_eq!(rows(&gateway).await, (1, 2));
    gateway.at_rest().await;
}

/// The link leads to the file of the turn, for a time.
#[tokio::test]
async fn a_channel_that_shows_files_as_links_gets_links() {
    for public_url in [Some("https://gateway.example"), None] {
        let setup = GatewaySetup { public_url, ..GatewaySetup::new() }.capable(|it| it.attachments = Support::Degraded);
        let gateway = setup.always(script()).start().await;

        let turn = gateway.receives(said(&chat("ada"), "hello")).await;

        let path = gateway.file_links.path(turn, FileDigest::of(CONTENT), gateway.clock.now() + LINK_FOR);
        assert_eq!(sent(&gateway), [public_url.map_or(file().url, |url| format!("{url}{path}"))]);
        gateway.at_rest().await;
    }
}

/// D1.
#[tokio::test]
async fn a_crash_at_any_write_of_an_answer_costs_no_file() {
    at_every_write(3, async |crash, write| {
        let capable = GatewaySetup::new().capable(|it| it.resend = Resend::Idempotent);
        let mut gateway = capable.always(script()).start().await;

        let has_died = comes_in_dying(&mut gateway, (crash, write), said(&chat("ada"), "hello")).await;
        gateway.advance(Duration::from_hours(2)).await;

        assert_eq!((sent(&gateway), rows(&gateway).await), (vec![file().url], (1, 1)), "{crash:?} write {write}");
        gateway.at_rest().await;
        has_died
    })
    .await;
}

/// An agent that reads texts.
async fn reading() -> TestGateway {
    reading_within(FileLimits::default()).await
}

async fn reading_within(files: FileLimits) -> TestGateway {
    let mut setup = GatewaySetup { files, ..GatewaySetup::new() };
    let reader = |clock| ScriptedAgent::new(clock, |_| Script::replies("done")).reading(&["text/"]);
    setup.agents.push(("main", Box::new(reader)));
    setup.start().await
}

/// A message that is nothing but a recording, and these words of it.
fn spoken(words: &str, heard: Heard) -> InboundEvent {
    let (name, media_type) = ("recording".to_owned(), "audio/ogg".to_owned());
    let file = Attachment { url: data_url(&media_type, b"OggS\0\x02"), name, media_type };
    let voice = Some(Voice { heard, ..Voice::lasting(None) });
    InboundEvent { attachments: vec![file], voice, ..said(&chat("ada"), words) }
}

/// An agent that reads files of these types.
async fn with_reader_of(media_types: &'static [&'static str]) -> TestGateway {
    let mut setup = GatewaySetup::new();
    let reader = move |clock| ScriptedAgent::new(clock, |_| Script::replies("done")).reading(media_types);
    setup.agents.push(("main", Box::new(reader)));
    setup.start().await
}

#[tokio::test]
async fn a_recording_that_nobody_can_hear_is_answered_in_words() {
    for (media_types, answer) in [(&["text/"], "I heard nothing."), (&["audio/"], "done")] {
        let gateway = with_reader_of(media_types).await;

        gateway.receives(spoken("", Heard::Failed)).await;

        assert_eq!(gateway.visible(&chat("ada")), [answer]);
        gateway.at_rest().await;
    }
}

/// An agent that hears gets the recording, too.
#[tokio::test]
async fn the_words_of_a_recording_are_the_message() {
    for (media_types, count) in [(&["text/"], 0), (&["audio/"], 1)] {
        let gateway = with_reader_of(media_types).await;

        gateway.receives(spoken("What is on today?", Heard::Words)).await;

        let message = gateway.agent("main").runs().remove(0).turn.message;
        assert_eq!((&*message.text, message.attachments.len()), ("What is on today?", count));
        gateway.at_rest().await;
    }
}

/// A voice note is no music.
#[tokio::test]
async fn an_agent_is_told_that_a_message_was_spoken() {
    let gateway = reading().await;
    let voice = Some(Voice::lasting(Some(3.0)));

    gateway.receives(InboundEvent { attachments: vec![file()], voice, ..said(&chat("ada"), "") }).await;
    gateway.receives(InboundEvent { attachments: vec![file()], ..said(&chat("ada"), "") }).await;

    let told: Vec<_> = gateway.agent("main").runs().into_iter().map(|run| run.turn.message.voice).collect();
    assert_eq!(told, [voice, None]);
    gateway.at_rest().await;
}

#[tokio::test]
async fn an_agent_gets_the_file_that_came_in_an_event() {
    let gateway = reading().await;
    let raw = format!("{{\"url\":\"{}\"}}", file().url);

    let turn = gateway.receives(InboundEvent { attachments: vec![file()], raw, ..said(&chat("ada"), "hello") }).await;

    let given = &gateway.agent("main").runs()[0].turn.message.attachments[0];
    assert_eq!(given.bytes.as_deref(), Some(CONTENT));
    let event = gateway.dossier(turn).await.turn.event;
    assert_eq!((&event.attachments[0].url, event.raw.contains(&reference())), (&reference(), true));
    assert_eq!(rows(&gateway).await, (1, 1));
    gateway.at_rest().await;
}

#[tokio::test]
async fn an_agent_gets_the_name_of_a_file_for_which_there_is_no_room() {
    let (size, mut given) = (CONTENT.len(), Vec::new());
    for in_flight in [2 * size - 2, 2 * size] {
        let gateway = reading_within(FileLimits { in_flight, ..FileLimits::default() }).await;
        gateway.receives(InboundEvent { attachments: vec![file()], ..said(&chat("ada"), "hello") }).await;

        let file = &gateway.agent("main").runs()[0].turn.message.attachments[0];
        given.push((file.attachment.name.clone(), file.bytes.is_some()));
        gateway.at_rest().await;
    }

    assert_eq!(given, [("a.txt".to_owned(), false), ("a.txt".to_owned(), true)]);
}

#[tokio::test]
async fn an_agent_gets_the_file_that_could_not_be_read_for_a_while() {
    let gateway = reading().await;
    gateway.life.set_away(Some("file"));

    gateway.receives(InboundEvent { attachments: vec![file()], ..said(&chat("ada"), "hello") }).await;
    gateway.advance(secs(60)).await;
    gateway.life.set_away(None);
    gateway.advance(secs(10)).await;

    assert_eq!(gateway.agent("main").runs()[0].turn.message.attachments[0].bytes.as_deref(), Some(CONTENT));
    gateway.at_rest().await;
}

/// The digest of a file is no secret to who can guess its bytes.
#[tokio::test]
async fn nobody_gets_a_stored_file_by_its_digest() {
    let named = Attachment { url: reference(), ..file() };
    let answer = Reply { attachments: vec![named.clone()], ..Reply::text("Here it is.") };
    let gateway = TestGateway::with(Script::answers(answer)).await;
    let brings_it = InboundEvent { attachments: vec![file()], ..said(&chat("ada"), "hello") };
    gateway.receives(brings_it).await;

    let turn = gateway.receives(InboundEvent { attachments: vec![named], ..said(&chat("eve"), "hello") }).await;

    assert_eq!(sent(&gateway), [""; 0], "it is left out, and the text is sent");
    assert_eq!(gateway.dossier(turn).await.turn.event.attachments[0].url, "");
    gateway.at_rest().await;
}

/// What a platform shows, a model reads and a browser opens depends on the type.
#[tokio::test]
async fn the_name_of_a_file_hides_nothing_and_its_type_is_what_its_bytes_show() {
    let page = Attachment {
        name: "../\u{202e}cat.png".to_owned(),
        media_type: "image/png".to_owned(),
        url: data_url("image/png", b"<script>alert(1)</script>"),
    };
    let answer = Reply { attachments: vec![page.clone()], ..Reply::text("Here it is.") };
    let gateway = TestGateway::with(Script::answers(answer)).await;
    let photo = Attachment { url: data_url("image/png", b"\xff\xd8\xff\xe0"), ..page };

    let turn = gateway.receives(InboundEvent { attachments: vec![photo], ..said(&chat("ada"), "hello") }).await;

    let kind = |file: &Attachment| (file.name.clone(), file.media_type.clone());
    let sent = gateway.platform.seen().into_iter().find_map(|seen| seen.action.files().first().map(kind));
    let received = kind(&gateway.dossier(turn).await.turn.event.attachments[0]);
    assert_eq!(sent, Some(("cat.png".to_owned(), "application/octet-stream".to_owned())));
    assert_eq!(received, ("cat.png".to_owned(), "image/jpeg".to_owned()));
    gateway.at_rest().await;
}

/// Its words stay, and nobody sees its bytes, in a draft neither.
#[tokio::test]
async fn a_picture_in_the_text_of_an_answer_is_sent_as_a_file() {
    let text = format!("Look: ![a cat](data:image/png;base64,{}) Nice?", "R0lGODlh".repeat(20));
    let (begin, end) = text.split_at(60);
    let streamed = Script::replies(&text).streaming(begin).taking(secs(1)).streaming(end).taking(secs(1));
    for script in [streamed, Script::replies("That is all.").sending(&text)] {
        let gateway = GatewaySetup::new().capable(showing).always(script).start().await;

        gateway.receives(said(&chat("ada"), "a cat?")).await;
        gateway.advance(secs(3)).await;

        let actions: Vec<_> = gateway.platform.seen().into_iter().map(|seen| seen.action).collect();
        let is_bare = |action: &Action| matches!(action, Action::Draft { text, .. } if text.contains("R0lG"));
        assert!(!actions.iter().any(is_bare), "{actions:?}");
        let sent: Vec<_> = actions.iter().flat_map(Action::files).collect();
        assert_eq!((sent.len(), &*sent[0].name, &*sent[0].media_type), (1, "a cat.png", "image/gif"));
        assert_eq!(gateway.visible(&chat("ada"))[0], "Look: a cat Nice?");
        gateway.at_rest().await;
    }
}

#[tokio::test]
async fn a_client_that_reads_an_answer_gets_its_files_up_to_a_size() {
    let gateway = GatewaySetup::new().capable(|it| it.receipts = Receipts::Row).always(script()).start().await;
    let turn = gateway.receives(said(&chat("ada"), "hello")).await;
    let intake = gateway.intake();
    let shown = intake.view(turn).await.expect("readable").expect("there").shown.expect("an answer");
    let load = async |most: usize, is_wanted: bool| {
        let mut files = shown.attachments.clone();
        let loaded = intake.load_files(&mut files, most, |_| is_wanted).await.expect("readable");
        (loaded, files.remove(0).url)
    };

    assert_eq!(load(CONTENT.len(), true).await, (CONTENT.len(), file().url));
    assert_eq!(load(CONTENT.len() - 1, true).await, (0, reference()));
    assert_eq!(load(CONTENT.len(), false).await, (0, reference()));
    gateway.at_rest().await;
}

/// Before files had a table, their bytes were in the rows.
#[tokio::test]
async fn what_an_earlier_version_stored_is_sent() {
    if is_on_postgres() {
        eprintln!("not run: PostgreSQL has had the table from the beginning");
        return;
    }
    let gateway = TestGateway::with(script()).await;
    gateway.platform.choose_faults(|delivery| (!delivery.action().files().is_empty()).then_some(Fault::NotSent));
    gateway.receives(said(&chat("ada"), "hello")).await;
    let bytes_in_row = "update deliveries set action = json_set(action, '$.send.content.attachments[0].url',
        'data:text/plain;base64,d2hhdCBpcyBpbiB0aGUgZmlsZQ==') where action like '%sha256:%'";
    gateway.changes_rows(bytes_in_row).await;
    gateway.changes_rows("delete from files").await;

    gateway.platform.clear_faults();
    gateway.advance(secs(600)).await;

    assert_eq!(sent(&gateway), [file().url]);
    gateway.at_rest().await;
}

#[tokio::test]
async fn a_file_goes_with_its_last_turn() {
    let mut setup = GatewaySetup::new().always(script());
    setup.lifetimes = Lifetimes { turns: Some(DAY * 10), payloads: Some(DAY), ..Lifetimes::default() };
    let gateway = setup.start().await;
    gateway.receives(said(&chat("ada"), "hello")).await;
    gateway.advance(DAY * 5).await;
    gateway.receives(said(&chat("bob"), "hello")).await;

    gateway.advance(DAY * 6).await;
    assert_eq!(rows(&gateway).await, (1, 1));
    gateway.advance(DAY * 6).await;

    assert_eq!(rows(&gateway).await, (0, 0));
    gateway.at_rest().await;
}
