//! Voice notes: what is said in them is written down before their turns begin.

use std::{sync::Arc, time::Duration};

use rejoinder_core::{
    Accepted, Access, Action, AgentTurn, Amends, Attachment, Cause, Clock, Delivery, DirectPolicy, EventKind, Heard,
    InboundEvent, Lifetimes, QueueMode, Queues, Resend, SpeechUse, StoredFile, Surface, TurnId, Unheard, Voice,
    VoiceMode,
    conformance::scripted::{Fault, Gate, Script, ScriptedAgent, ScriptedSynthesizer, ScriptedTranscriber},
    data_url,
    store::TurnStatus,
};
use rstest::rstest;

use crate::{
    gateway::{GatewaySetup, SOFT_DEADLINE, TestGateway, ambient, chat, comes_in, main_channel, said, secs},
    life::{at_every_write, comes_in_dying},
    texts::DEFERRAL,
};

const DAY: Duration = secs(24 * 3600);

/// What the ladder says if there are no words.
const UNHEARD: &str = "I heard nothing.";

/// What the platform gives of each file.
const RECORDING: &[u8] = b"a file";

/// A voice note of 3 s, with something that was written beside it.
pub(crate) fn spoken_beside(caption: &str) -> InboundEvent {
    let (name, media_type) = ("voice.ogg".to_owned(), "audio/x-note".to_owned());
    let attachments = vec![Attachment { name, media_type, url: "file:voice".to_owned() }];
    InboundEvent { attachments, voice: Some(Voice::lasting(Some(3.0))), ..said(&chat("ada"), caption) }
}

pub(crate) fn spoken() -> InboundEvent {
    spoken_beside("")
}

/// An agent that says what it is told, where recordings are written down.
fn setup(transcriber: &Arc<ScriptedTranscriber>) -> GatewaySetup {
    let setup = GatewaySetup { transcriber: Some(Arc::clone(transcriber)), ..GatewaySetup::new() };
    setup
        .capable(|it| it.resend = Resend::Idempotent)
        .agent("main", |turn: &AgentTurn| Script::replies(&turn.message.text))
}

/// A gateway whose platform gives its files.
async fn started(setup: GatewaySetup) -> TestGateway {
    let gateway = setup.start().await;
    gateway.life.files.open();
    gateway
}

async fn hearing(words: &[&str]) -> (TestGateway, Arc<ScriptedTranscriber>) {
    let transcriber = Arc::new(ScriptedTranscriber::hearing(words));
    (started(setup(&transcriber)).await, transcriber)
}

/// As [`hearing`], until the gate is opened.
async fn hearing_at(words: &[&str]) -> (TestGateway, Arc<ScriptedTranscriber>, Gate) {
    let gate = Gate::default();
    let transcriber = Arc::new(ScriptedTranscriber::hearing(words).waiting_at(&gate));
    (started(setup(&transcriber)).await, transcriber, gate)
}

/// What the turn of a voice note says of it.
async fn heard(gateway: &TestGateway, turn: TurnId) -> Option<Heard> {
    gateway.dossier(turn).await.turn.event.voice.map(|voice| voice.heard)
}

/// Why it could not be written down.
async fn why(gateway: &TestGateway, turn: TurnId) -> Option<Unheard> {
    gateway.dossier(turn).await.turn.event.voice.and_then(|voice| voice.why)
}

#[tokio::test]
async fn a_voice_note_is_answered_in_words() {
    let (gateway, transcriber) = hearing(&["what is for dinner"]).await;

    let turn = gateway.receives(spoken()).await;

    assert_eq!(gateway.visible(&chat("ada")), ["what is for dinner"]);
    let told = gateway.agent("main").runs().swap_remove(0).turn.message.voice;
    assert_eq!(told, Some(Voice { heard: Heard::Words, ..Voice::lasting(Some(3.0)) }));
    let event = gateway.dossier(turn).await.turn.event;
    assert_eq!(event.attachments[0].url, StoredFile::of(RECORDING).to_string());
    assert_eq!((gateway.turns().await.len(), transcriber.recordings()), (1, 1));
    let explained = gateway.explained(turn).await;
    assert!(explained.contains("a voice note of 3 s that was written down by ears-1"), "{explained}");
    gateway.at_rest().await;
}

#[tokio::test]
async fn the_transcript_says_what_was_spoken() {
    let (mut gateway, _) = hearing(&["what is for dinner"]).await;
    gateway.receives(spoken()).await;
    gateway.receives(said(&chat("ada"), "thanks")).await;
    gateway.restart().await;

    gateway.receives(said(&chat("ada"), "/history")).await;

    let shown = gateway.visible(&chat("ada")).pop().unwrap_or_default();
    assert!(shown.contains("**ada**: 🎤 what is for dinner") && shown.contains("**ada**: thanks"), "{shown}");
    gateway.at_rest().await;
}

#[tokio::test]
async fn what_was_written_beside_a_voice_note_comes_first() {
    let (gateway, _) = hearing(&["it rains"]).await;

    gateway.receives(spoken_beside("Listen!")).await;

    assert_eq!(gateway.visible(&chat("ada")), ["Listen!\n\nit rains"]);
    gateway.at_rest().await;
}

/// One permit is enough: what waits for its words keeps none.
#[tokio::test]
async fn a_voice_note_keeps_its_place_and_holds_up_nobody_else() {
    let gate = Gate::default();
    let transcriber = Arc::new(ScriptedTranscriber::hearing(&["one"]).waiting_at(&gate));
    let gateway = started(setup(&transcriber).slots(1)).await;
    gateway.receives(spoken()).await;
    gateway.receives(said(&chat("ada"), "two")).await;

    gateway.receives(said(&chat("bob"), "hello")).await;
    gateway.advance(secs(5)).await;
    assert_eq!((gateway.visible(&chat("bob")), gateway.visible(&chat("ada"))), (vec!["hello".to_owned()], Vec::new()));
    gate.open();
    gateway.settle().await;

    assert_eq!(gateway.visible(&chat("ada")), ["one", "two"]);
    gateway.at_rest().await;
}

/// B1. It is written down while the turn before it runs.
#[tokio::test]
async fn a_voice_note_behind_a_turn_that_runs_has_its_words_when_it_begins() {
    let transcriber = Arc::new(ScriptedTranscriber::hearing(&["two"]));
    let slow = |turn: &AgentTurn| Script::replies(&turn.message.text).taking(secs(5));
    let setup = GatewaySetup { transcriber: Some(Arc::clone(&transcriber)), ..GatewaySetup::new() };
    let gateway = started(setup.agent("main", slow)).await;
    gateway.receives(said(&chat("ada"), "one")).await;

    let turn = gateway.receives(spoken()).await;
    assert_eq!(heard(&gateway, turn).await, Some(Heard::Words));
    gateway.advance(secs(10)).await;

    assert_eq!(gateway.visible(&chat("ada")), ["one", "two"]);
    gateway.at_rest().await;
}

/// D1. It is heard again, and answered once.
#[tokio::test]
async fn a_crash_at_any_write_costs_no_voice_note() {
    at_every_write(4, async |crash, write| {
        let (mut gateway, _) = hearing(&["hello"]).await;

        let has_died = comes_in_dying(&mut gateway, (crash, write), spoken()).await;
        gateway.life.files.open();
        gateway.advance(Duration::from_hours(2)).await;

        assert_eq!(gateway.visible(&chat("ada")), ["hello"], "{crash:?} write {write}");
        gateway.at_rest().await;
        has_died
    })
    .await;
}

/// D1.
#[tokio::test]
async fn a_voice_note_that_awaits_its_words_is_heard_again_after_a_crash() {
    let (mut gateway, transcriber, gate) = hearing_at(&["hello"]).await;
    let turn = gateway.receives(spoken()).await;
    assert_eq!((heard(&gateway, turn).await, transcriber.recordings()), (Some(Heard::Awaited), 1));

    gateway.restart().await;
    gateway.life.files.open();
    gateway.settle().await;
    assert_eq!(transcriber.recordings(), 2);
    gate.open();
    gateway.settle().await;

    assert_eq!(gateway.visible(&chat("ada")), ["hello"]);
    gateway.at_rest().await;
}

/// A stop does not wait for the words.
#[tokio::test]
async fn a_stop_leaves_a_voice_note_to_the_next_start() {
    let (mut gateway, _, gate) = hearing_at(&["hello"]).await;
    gateway.receives(spoken()).await;

    gateway.stop(secs(0)).await;
    gateway.begin_life().await;
    gateway.life.files.open();
    gate.open();
    gateway.settle().await;

    assert_eq!(gateway.visible(&chat("ada")), ["hello"]);
    gateway.at_rest().await;
}

/// N1. What a stranger says is neither fetched nor written down.
#[tokio::test]
async fn the_voice_note_of_a_stranger_costs_nothing() {
    let transcriber = Arc::new(ScriptedTranscriber::hearing(&["let me in"]));
    let mut setup = setup(&transcriber);
    let listed = Access { direct: DirectPolicy::Allowlist, ..Access::default() };
    setup.access.insert(main_channel(), listed);
    let gateway = started(setup).await;

    assert_eq!(comes_in(&gateway, spoken()).await, Accepted::Kept);

    assert_eq!((transcriber.recordings(), gateway.agent("main").runs().len()), (0, 0));
    gateway.at_rest().await;
}

#[tokio::test]
async fn what_is_owed_no_answer_is_not_written_down() {
    let (gateway, transcriber) = hearing(&["hello"]).await;
    let InboundEvent { attachments, voice, .. } = spoken();

    let turn = gateway.receives(InboundEvent { attachments, voice, ..ambient(&chat("team"), "") }).await;

    assert_eq!((heard(&gateway, turn).await, transcriber.recordings()), (Some(Heard::NotTried), 0));
    gateway.at_rest().await;
}

/// One sentence, and never silence.
#[tokio::test]
async fn without_the_server_the_ladder_asks_for_written_words() {
    let transcriber = Arc::new(ScriptedTranscriber::down());
    let gateway = started(setup(&transcriber)).await;

    let turn = gateway.receives(spoken()).await;
    gateway.receives(said(&chat("ada"), "hello")).await;

    assert_eq!(gateway.visible(&chat("ada")), [UNHEARD, "hello"]);
    assert_eq!(why(&gateway, turn).await, Some(Unheard::Failed));
    let fallback = gateway.dossier(turn).await.turn.obligation.fallback().map(|(cause, _)| cause);
    assert_eq!(fallback, Some(Cause::Unheard));
    assert_eq!(gateway.agent("main").turns().len(), 1, "the agent was not asked");
    let explained = gateway.explained(turn).await;
    assert!(explained.contains("could not be written down: the server gave no words"), "{explained}");
    gateway.at_rest().await;
}

#[tokio::test]
async fn what_was_not_heard_is_heard_by_a_retry() {
    let transcriber = Arc::new(ScriptedTranscriber::hearing(&["", "hello"]));
    let gateway = started(setup(&transcriber)).await;
    gateway.receives(spoken()).await;

    gateway.receives(said(&chat("ada"), "/retry")).await;

    assert_eq!(gateway.visible(&chat("ada")), [UNHEARD, "hello"]);
    gateway.at_rest().await;
}

#[tokio::test]
async fn what_is_too_long_is_neither_fetched_nor_written_down() {
    let (gateway, transcriber) = hearing(&["hello"]).await;
    let long = InboundEvent { voice: Some(Voice::lasting(Some(301.0))), ..spoken() };

    let turn = gateway.receives(long).await;

    assert_eq!(gateway.visible(&chat("ada")), [UNHEARD]);
    assert_eq!(why(&gateway, turn).await, Some(Unheard::TooLong));
    assert_eq!(transcriber.recordings(), 0);
    gateway.at_rest().await;
}

#[tokio::test]
async fn a_recording_in_which_nobody_speaks_has_no_words() {
    let (gateway, _) = hearing(&[" "]).await;

    let turn = gateway.receives(spoken()).await;

    assert_eq!(gateway.visible(&chat("ada")), [UNHEARD]);
    assert_eq!(why(&gateway, turn).await, Some(Unheard::NoWords));
    gateway.at_rest().await;
}

#[tokio::test]
async fn a_recording_that_the_platform_does_not_give_has_no_words() {
    let transcriber = Arc::new(ScriptedTranscriber::hearing(&["hello"]));
    let gateway = setup(&transcriber).start().await;

    let turn = gateway.receives(spoken()).await;
    gateway.advance(secs(40)).await;

    assert_eq!(gateway.visible(&chat("ada")).last().map(String::as_str), Some(UNHEARD));
    assert_eq!(why(&gateway, turn).await, Some(Unheard::NoFile));
    gateway.at_rest().await;
}

#[tokio::test]
async fn an_agent_that_listens_gets_what_could_not_be_written_down() {
    let transcriber = Arc::new(ScriptedTranscriber::down());
    let mut setup = GatewaySetup { transcriber: Some(transcriber), ..GatewaySetup::new() };
    let listener = |clock| {
        let bytes = |turn: &AgentTurn| turn.message.attachments[0].bytes.as_ref().map(|bytes| bytes.to_vec());
        ScriptedAgent::new(clock, move |turn| {
            Script::replies(&format!("{:?}", bytes(turn) == Some(RECORDING.to_vec())))
        })
        .reading(&["audio/"])
    };
    setup.agents.push(("main", Box::new(listener)));
    let gateway = started(setup).await;

    gateway.receives(spoken()).await;

    assert_eq!(gateway.visible(&chat("ada")), ["true"]);
    gateway.at_rest().await;
}

/// G2, H3. The person reads that it takes longer, as of any other message.
#[tokio::test]
async fn a_voice_note_whose_words_take_long_is_deferred() {
    let (gateway, _, gate) = hearing_at(&["hello"]).await;
    gateway.receives(spoken()).await;

    gateway.advance(SOFT_DEADLINE).await;
    assert_eq!(gateway.visible(&chat("ada")), [DEFERRAL]);
    gate.open();
    gateway.advance(secs(1)).await;

    assert_eq!(gateway.visible(&chat("ada")).last().map(String::as_str), Some("hello"));
    gateway.at_rest().await;
}

/// B10. The words belong to the new caption.
#[tokio::test]
async fn an_edit_of_the_caption_has_the_recording_written_down_again() {
    let (gateway, transcriber, gate) = hearing_at(&["one", "two"]).await;
    let event = spoken_beside("lissen");
    let turn = gateway.receives(event.clone()).await;

    let edit = InboundEvent { revision: 50, amends: Some(Amends::Replaces), text: "listen".to_owned(), ..event };
    assert_eq!(comes_in(&gateway, edit).await, Accepted::Amended(turn));
    gate.open();
    gateway.advance(secs(2)).await;

    assert_eq!(gateway.visible(&chat("ada")), ["listen\n\ntwo"]);
    assert_eq!(transcriber.recordings(), 2);
    gateway.at_rest().await;
}

#[tokio::test]
async fn a_voice_note_that_is_deleted_meanwhile_holds_up_nothing() {
    let (gateway, _, gate) = hearing_at(&["hello"]).await;
    let event = spoken();
    let turn = gateway.receives(event.clone()).await;
    gateway.receives(said(&chat("ada"), "two")).await;

    comes_in(&gateway, InboundEvent { revision: 9, amends: Some(Amends::Withdraws), ..event }).await;
    gateway.advance(secs(1)).await;
    assert_eq!(gateway.visible(&chat("ada")), ["two"]);
    gate.open();
    gateway.settle().await;

    assert_eq!(gateway.status(turn).await, TurnStatus::Cancelled);
    assert_eq!(gateway.visible(&chat("ada")), ["two"]);
    gateway.at_rest().await;
}

/// The others are answered together, and it by itself.
#[tokio::test]
async fn what_nobody_understands_is_answered_together_with_nothing() {
    let transcriber = Arc::new(ScriptedTranscriber::down());
    let queues = Queues { mode: QueueMode::Collect, ..Queues::default() };
    let gateway = started(GatewaySetup { queues, ..setup(&transcriber) }).await;
    for event in [said(&chat("ada"), "one"), spoken(), said(&chat("ada"), "three")] {
        gateway.receives(event).await;
    }

    gateway.advance(secs(30)).await;

    assert_eq!(gateway.visible(&chat("ada")), ["one", UNHEARD, "three"]);
    gateway.at_rest().await;
}

/// B3. As any other message, once it has its words.
#[tokio::test]
async fn a_voice_note_stops_the_run_before_it_where_messages_do() {
    let transcriber = Arc::new(ScriptedTranscriber::hearing(&["two"]));
    let together = |turn: &AgentTurn| {
        let more = turn.more.iter().map(|more| format!(" + {}", more.text));
        Script::replies(&format!("{}{}", turn.message.text, more.collect::<String>())).taking(secs(5))
    };
    let queues = Queues { mode: QueueMode::Interrupt, ..Queues::default() };
    let setup = GatewaySetup { queues, transcriber: Some(transcriber), ..GatewaySetup::new() };
    let gateway = started(setup.agent("main", together)).await;
    gateway.receives(said(&chat("ada"), "one")).await;
    gateway.advance(secs(1)).await;

    gateway.receives(spoken()).await;
    gateway.advance(secs(30)).await;

    assert_eq!(gateway.visible(&chat("ada")), ["one + two"]);
    gateway.at_rest().await;
}

/// Without a server nothing is awaited.
#[tokio::test]
async fn where_nobody_writes_down_a_voice_note_is_a_file() {
    let agent = |turn: &AgentTurn| Script::replies(&turn.message.attachments[0].attachment.name);
    let gateway = started(GatewaySetup::new().agent("main", agent)).await;

    let turn = gateway.receives(spoken()).await;

    assert_eq!(gateway.visible(&chat("ada")), ["voice.ogg"]);
    assert_eq!(heard(&gateway, turn).await, Some(Heard::NotTried));
    gateway.at_rest().await;
}

/// A gateway whose agent takes a minute, and asks when it is told to.
async fn busy(words: &[&str]) -> TestGateway {
    let agent = |turn: &AgentTurn| match &*turn.message.text {
        "ask" => Script::asks("Tea or coffee?", &["Tea", "Coffee"]),
        "paint" => Script::replies("painted").asking_person("Which colour?", &["Red", "Blue"], true),
        text => Script::replies(text).taking(secs(60)),
    };
    let transcriber = Some(Arc::new(ScriptedTranscriber::hearing(words)));
    started(GatewaySetup { transcriber, ..GatewaySetup::new() }.agent("main", agent)).await
}

/// A voice note that comes now.
fn spoken_now(gateway: &TestGateway) -> InboundEvent {
    InboundEvent { received_at: gateway.clock.now(), ..spoken() }
}

/// B3. It does not wait for what runs.
#[tokio::test]
async fn who_says_stop_stops_what_runs() {
    let gateway = busy(&["Stop."]).await;
    let running = gateway.receives(said(&chat("ada"), "one")).await;

    let spoken = gateway.receives(spoken()).await;

    assert_eq!(gateway.visible(&chat("ada")), ["Stopped."]);
    assert_eq!(gateway.status(running).await, TurnStatus::Cancelled);
    assert_eq!(gateway.status(spoken).await, TurnStatus::Cancelled);
    assert_eq!(gateway.agent("main").turns().len(), 1);
    gateway.at_rest().await;
}

/// B3.
#[tokio::test]
async fn who_asks_for_the_status_is_told_it() {
    for (words, written) in [("What's the status?", "status"), ("Anything new?", "Anything new?")] {
        let gateway = busy(&[words]).await;
        gateway.receives(spoken()).await;
        assert_eq!(gateway.visible(&chat("ada")), ["Nothing is going on."]);

        gateway.receives(said(&chat("ada"), written)).await;
        gateway.advance(secs(60)).await;

        assert_eq!(
            gateway.visible(&chat("ada")).last().map(String::as_str),
            Some(written),
            "in writing it is no command"
        );
        gateway.at_rest().await;
    }
}

/// D1, E6. It is executed once, and the voice note is nobody's turn any more.
#[tokio::test]
async fn a_crash_at_any_write_of_a_command_that_is_said_costs_nothing() {
    at_every_write(3, async |crash, write| {
        let (mut gateway, _) = hearing(&["status"]).await;

        let has_died = comes_in_dying(&mut gateway, (crash, write), spoken()).await;
        gateway.life.files.open();
        gateway.advance(Duration::from_hours(2)).await;

        assert_eq!(gateway.visible(&chat("ada")), ["Nothing is going on."], "{crash:?} write {write}");
        assert!(gateway.agent("main").runs().is_empty());
        gateway.at_rest().await;
        has_died
    })
    .await;
}

/// B14. The turn of the voice note is the pick.
#[tokio::test]
async fn who_says_the_second_one_picks_it() {
    let gateway = busy(&["The second one."]).await;
    let question = gateway.receives(said(&chat("ada"), "ask")).await;

    let turn = gateway.receives(spoken_now(&gateway)).await;
    gateway.advance(secs(60)).await;

    assert_eq!(gateway.visible(&chat("ada")).last().map(String::as_str), Some("Coffee"));
    let event = gateway.dossier(turn).await.turn.event;
    assert_eq!((&event.kind, event.said.as_deref()), (&EventKind::Choice { turn: question }, Some("The second one.")));
    let view = gateway.intake().view(question).await.expect("readable").expect("it is there");
    assert_eq!(view.picked.as_deref(), Some("Coffee"));
    assert_eq!(gateway.turns().await.len(), 2);
    gateway.at_rest().await;
}

/// It was said before the question was asked.
#[tokio::test]
async fn a_question_that_is_asked_meanwhile_is_not_answered() {
    let gate = Gate::default();
    let transcriber = Arc::new(ScriptedTranscriber::hearing(&["the second one"]).waiting_at(&gate));
    let agent = |turn: &AgentTurn| match &*turn.message.text {
        "ask" => Script::asks("Tea or coffee?", &["Tea", "Coffee"]).taking(secs(5)),
        text => Script::replies(text),
    };
    let setup = GatewaySetup { transcriber: Some(transcriber), ..GatewaySetup::new() };
    let gateway = started(setup.agent("main", agent)).await;
    gateway.receives(said(&chat("ada"), "ask")).await;
    gateway.advance(secs(1)).await;

    gateway.receives(spoken_now(&gateway)).await;
    gateway.advance(secs(5)).await;
    gate.open();
    gateway.advance(secs(1)).await;

    assert_eq!(gateway.visible(&chat("ada")).last().map(String::as_str), Some("the second one"));
    gateway.at_rest().await;
}

/// G3. Words that answer what a run waits for let it go on.
#[tokio::test]
async fn a_run_goes_on_with_an_answer_that_is_said() {
    let gateway = busy(&["A light blue, please."]).await;
    gateway.receives(said(&chat("ada"), "paint")).await;
    gateway.advance(secs(1)).await;

    let spoken = gateway.receives(spoken_now(&gateway)).await;
    gateway.advance(secs(2)).await;

    assert_eq!(gateway.visible(&chat("ada")).last().map(String::as_str), Some("painted"));
    let told = gateway.agent("main").runs().into_iter().flat_map(|run| run.told).next();
    let note = told.and_then(Result::ok).and_then(|told| told.note);
    assert_eq!(note.as_deref(), Some("A light blue, please."));
    assert_eq!(gateway.status(spoken).await, TurnStatus::Cancelled);
    gateway.at_rest().await;
}

/// The words stay with their turn, and so does what is said of the recording. What is not kept is not even stored.
#[rstest]
#[case::for_a_week(DAY * 7, true)]
#[case::not_at_all(Duration::ZERO, false)]
#[tokio::test]
async fn a_recording_goes_before_its_turn(#[case] lifetime: Duration, #[case] is_kept: bool) {
    let synthesizer = Arc::new(ScriptedSynthesizer::default());
    let mut setup = speaking_setup(&["one"], &synthesizer);
    setup.lifetimes = Lifetimes { turns: Some(DAY * 90), voice: Some(lifetime), ..Lifetimes::default() };
    let gateway = started(setup).await;
    let stored =
        async |bytes: &[u8]| gateway.store.file(StoredFile::of(bytes).digest).await.expect("files are read").is_some();

    let turn = gateway.receives(spoken()).await;
    assert_eq!((stored(RECORDING).await, shown(&gateway)), (is_kept, vec!["one".to_owned(), sound(1, "one")]));
    gateway.advance(DAY * 6).await;
    assert_eq!((stored(RECORDING).await, stored(b"OggS 1 one").await), (is_kept, is_kept));
    gateway.advance(DAY * 2).await;

    assert_eq!((stored(RECORDING).await, stored(b"OggS 1 one").await), (false, false));
    let event = gateway.dossier(turn).await.turn.event;
    assert_eq!((&*event.text, event.voice.map(|voice| voice.heard)), ("one", Some(Heard::Words)));
    gateway.at_rest().await;
}

/// What a server costs is bounded, also over restarts.
#[tokio::test]
async fn what_is_written_down_on_a_day_is_bounded() {
    let transcriber = Arc::new(ScriptedTranscriber::hearing(&["one", "two", "three"]).at_most(secs(7)));
    let mut gateway = started(setup(&transcriber)).await;
    gateway.receives(spoken()).await;
    gateway.restart().await;
    gateway.life.files.open();
    gateway.receives(spoken()).await;

    let turn = gateway.receives(spoken()).await;
    assert_eq!(gateway.visible(&chat("ada")), ["one", "two", UNHEARD]);
    assert_eq!(why(&gateway, turn).await, Some(Unheard::OverBudget));
    gateway.advance(Duration::from_hours(24)).await;
    gateway.receives(spoken()).await;

    assert_eq!(gateway.visible(&chat("ada")).last().map(String::as_str), Some("three"));
    gateway.at_rest().await;
}

/// A recording in Ogg whose last page says how long it is.
fn lasting(seconds: u64) -> Vec<u8> {
    let page = |samples: u64, content: &[u8]| {
        let size = u8::try_from(content.len()).expect("it is short");
        [&b"OggS\0\0"[..], &samples.to_le_bytes(), &[0; 12], &[1, size], content].concat()
    };
    [page(0, b"OpusHead\x01\x01\0\0\x80\xbb\0\0\0\0\0"), page(seconds * 48_000, b"sound")].concat()
}

/// What is written down before it is accepted counts for the same day, and for as long as the recording itself says.
#[tokio::test]
async fn what_callers_say_is_bounded_like_voice_notes() {
    let transcriber = Arc::new(ScriptedTranscriber::hearing(&["one"]).at_most(secs(7)));
    let gateway = started(setup(&transcriber)).await;
    let intake = gateway.intake();
    let hear = async |seconds| intake.hear(lasting(seconds), secs(60)).await.map(|heard| (heard.words, heard.seconds));
    gateway.receives(spoken()).await;

    assert_eq!(hear(301).await, Err(Unheard::TooLong));
    assert_eq!(hear(4).await, Ok(("one".to_owned(), Some(4))));
    assert_eq!(hear(1).await, Err(Unheard::OverBudget));
    let today = gateway.engine().speech_of_today().await.expect("it is read");
    assert_eq!((today.heard, today.spoken), (Some(SpeechUse { used: secs(7), most: secs(7) }), None));
    gateway.at_rest().await;
}

/// The words come in any case.
#[tokio::test]
async fn what_is_spoken_on_a_day_is_bounded() {
    let synthesizer = Arc::new(ScriptedSynthesizer::default().at_most(secs(1)));
    let voices = [(main_channel(), VoiceMode::Always)].into();
    let gateway = started(GatewaySetup { voices, ..speaking_setup(&["one"], &synthesizer) }).await;
    let says = async |text| gateway.receives(said(&chat("ada"), text)).await;
    says("twelve chars").await;
    says("more").await;
    assert_eq!(gateway.visible(&chat("ada")), ["twelve chars", "", "more", "Not spoken."]);
    gateway.advance(Duration::from_hours(24)).await;

    says("again").await;

    assert_eq!(synthesizer.spoken(), ["twelve chars", "again"]);
    gateway.at_rest().await;
}

/// Their sender says that they take no time.
#[tokio::test]
async fn no_recording_is_free() {
    let transcriber = Arc::new(ScriptedTranscriber::hearing(&["one"]).at_most(secs(1)));
    let gateway = started(setup(&transcriber)).await;
    let empty = || InboundEvent { voice: Some(Voice::lasting(Some(0.0))), ..spoken() };

    gateway.receives(empty()).await;
    gateway.receives(empty()).await;

    assert_eq!(gateway.visible(&chat("ada")), ["one", UNHEARD]);
    gateway.at_rest().await;
}

/// A gateway that hears these words and speaks, and what speaks.
async fn speaking(words: &[&str]) -> (TestGateway, Arc<ScriptedSynthesizer>) {
    let synthesizer = Arc::new(ScriptedSynthesizer::default());
    (started(speaking_setup(words, &synthesizer)).await, synthesizer)
}

fn speaking_setup(words: &[&str], synthesizer: &Arc<ScriptedSynthesizer>) -> GatewaySetup {
    let transcriber = Arc::new(ScriptedTranscriber::hearing(words));
    GatewaySetup { synthesizer: Some(Arc::clone(synthesizer)), ..setup(&transcriber) }
}

/// The messages that the platform was given, in order: a text, or the sound of a file.
fn shown(gateway: &TestGateway) -> Vec<String> {
    let message = |action: Action| match action {
        Action::Send { content, .. } | Action::Edit { content, .. } => Some(content),
        _ => None,
    };
    let contents = gateway.platform.seen().into_iter().filter_map(|seen| message(seen.action));
    contents.map(|content| content.attachments.first().map_or(content.text, |file| file.url.clone())).collect()
}

/// The sound of a text that is the n-th to be spoken.
fn sound(number: usize, text: &str) -> String {
    data_url("audio/ogg", format!("OggS {number} {text}").as_bytes())
}

#[tokio::test]
async fn a_voice_note_is_answered_in_words_and_aloud() {
    let (gateway, synthesizer) = speaking(&["**2** eggs, see https://example.org/eggs"]).await;

    let turn = gateway.receives(spoken()).await;
    gateway.receives(said(&chat("ada"), "thanks")).await;

    let aloud = "two eggs, see example.org";
    assert_eq!(shown(&gateway), ["**2** eggs, see https://example.org/eggs", &sound(1, aloud), "thanks"]);
    assert_eq!(synthesizer.spoken(), [aloud]);
    let place = gateway.agent("main").runs().swap_remove(0).turn.place;
    assert_eq!(place.surface, Surface::Voice);
    let stored: Vec<_> = gateway.dossier(turn).await.deliveries.into_iter().map(|it| it.action).collect();
    let file = stored.last().and_then(|action| action.files().first()).expect("the sound is stored");
    let bytes = format!("OggS 1 {aloud}");
    assert_eq!((&*file.name, &*file.url), ("voice.ogg", &*StoredFile::of(bytes.as_bytes()).to_string()));
    gateway.at_rest().await;
}

#[rstest]
#[case::never(VoiceMode::Off, 0)]
#[case::to_voice_notes(VoiceMode::Reply, 1)]
#[case::always(VoiceMode::Always, 2)]
#[tokio::test]
async fn a_channel_says_which_answers_are_spoken(#[case] mode: VoiceMode, #[case] count: usize) {
    let synthesizer = Arc::new(ScriptedSynthesizer::default());
    let voices = [(main_channel(), mode)].into();
    let gateway = started(GatewaySetup { voices, ..speaking_setup(&["one"], &synthesizer) }).await;

    gateway.receives(spoken()).await;
    gateway.receives(said(&chat("ada"), "two")).await;
    gateway.receives(said(&chat("ada"), "/status")).await;

    assert_eq!(synthesizer.spoken().len(), count);
    gateway.at_rest().await;
}

/// Also over a restart, and in this chat alone.
#[tokio::test]
async fn people_choose_which_answers_of_a_chat_are_spoken() {
    let (mut gateway, synthesizer) = speaking(&["one"]).await;
    let asks = async |gateway: &TestGateway, text: &str| {
        gateway.receives(said(&chat("ada"), text)).await;
        gateway.visible(&chat("ada")).pop().unwrap_or_default()
    };

    assert_eq!(asks(&gateway, "/voice").await, "Spoken now: reply.");
    assert_eq!(asks(&gateway, "/voice nonsense").await, "Spoken still: reply.");
    assert_eq!(asks(&gateway, "/voice Always").await, "Spoken from now on: always.");
    gateway.restart().await;
    gateway.receives(said(&chat("ada"), "hello")).await;
    gateway.receives(said(&chat("bob"), "hi")).await;
    assert_eq!(asks(&gateway, "/voice auto").await, "Spoken from now on: reply.");
    gateway.receives(said(&chat("ada"), "bye")).await;

    assert_eq!(synthesizer.spoken(), ["hello"]);
    gateway.at_rest().await;
}

#[tokio::test]
async fn where_nobody_speaks_nothing_can_be_chosen() {
    let (gateway, _) = hearing(&["one"]).await;

    gateway.receives(said(&chat("ada"), "/voice always")).await;
    gateway.receives(said(&chat("ada"), "hello")).await;

    assert_eq!(gateway.visible(&chat("ada")), ["Nobody speaks.", "hello"]);
    gateway.at_rest().await;
}

/// Words, and one sentence.
#[tokio::test]
async fn while_the_server_that_speaks_is_down_there_are_words_and_a_sentence() {
    let (gateway, synthesizer) = speaking(&["one"]).await;
    synthesizer.set_down(true);

    gateway.receives(spoken()).await;

    assert_eq!(gateway.visible(&chat("ada")), ["one", "Not spoken."]);
    gateway.at_rest().await;
}

#[tokio::test]
async fn a_server_that_speaks_too_slowly_is_not_waited_for() {
    let gate = Gate::default();
    let synthesizer = Arc::new(ScriptedSynthesizer::default().waiting_at(&gate));
    let gateway = started(speaking_setup(&["one"], &synthesizer)).await;
    gateway.receives(spoken()).await;
    assert_eq!(gateway.visible(&chat("ada")), ["one"], "the words do not wait");

    gateway.advance(secs(31)).await;

    assert_eq!(gateway.visible(&chat("ada")), ["one", "Not spoken."]);
    gateway.at_rest().await;
}

/// What a platform does not take is a sentence.
#[tokio::test]
async fn a_sound_that_is_refused_leaves_a_sentence() {
    let (gateway, _) = speaking(&["one"]).await;
    let is_sound = |delivery: &Delivery| !delivery.action().files().is_empty();
    gateway.platform.choose_faults(move |delivery| is_sound(delivery).then_some(Fault::Refuse));

    gateway.receives(spoken()).await;
    gateway.advance(secs(1)).await;

    assert_eq!(gateway.visible(&chat("ada")), ["one", "Not spoken."]);
    gateway.at_rest().await;
}

/// K1. A resend is the same message: it is not spoken again.
#[tokio::test]
async fn a_sound_that_may_have_arrived_is_sent_again_as_it_was() {
    let (gateway, synthesizer) = speaking(&["one"]).await;
    let mut faults = vec![Fault::LoseRequest];
    gateway.platform.choose_faults(
        move |delivery| {
            if delivery.action().files().is_empty() { None } else { faults.pop() }
        },
    );

    gateway.receives(spoken()).await;
    gateway.advance(secs(60)).await;

    assert_eq!(shown(&gateway), ["one", &sound(1, "one")]);
    assert_eq!(synthesizer.spoken().len(), 1);
    gateway.at_rest().await;
}

/// D1, K1. It is spoken again at most before its attempt, and shown once.
#[tokio::test]
async fn a_crash_at_any_write_of_a_spoken_answer_shows_it_once() {
    at_every_write(4, async |crash, write| {
        let (mut gateway, synthesizer) = speaking(&["one"]).await;
        let has_died = comes_in_dying(&mut gateway, (crash, write), spoken()).await;
        gateway.life.files.open();
        gateway.advance(Duration::from_hours(2)).await;

        assert_eq!(gateway.visible(&chat("ada")), ["one", ""], "{crash:?} write {write}");
        let sent = shown(&gateway).pop().unwrap_or_default();
        let mut sounds = (1..=synthesizer.spoken().len()).map(|number| sound(number, "one"));
        assert!(sounds.any(|sound| sound == sent), "{crash:?} write {write}: {sent}");
        gateway.at_rest().await;
        has_died
    })
    .await;
}
