//! Files over `kill -9`, both ways: each run gets what the person sent, and what the agent sends is shown once, or again with a label.

use rejoinder_core::{Attachment, Reply, data_url};

use super::{
    LABELS, Platform,
    crashes::{CrashStep, PATIENT, QUIET, STEPS, step, until_settled_and_acknowledged},
    wait_for_text,
};
use crate::{AgentKind, Call, Script, ScriptedAgent, SpeechServer, eventually};

/// A minimal picture.
const PICTURE: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01\x08\x06\0\0\0\x1f\x15\xc4\x89\0\0\0\rIDATx\x9cc\0\x01\0\0\x05\0\x01\r\n-\xb4\0\0\0\0IEND\xaeB`\x82";

/// The words of the answer with files.
const WORDS: &str = "Here they are.";

/// An answer without files.
const SPOKEN: &str = "Soup.";

/// A message from the gateway, with its files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileMessage {
    /// Its text, or its caption.
    pub text: String,
    /// How many bytes each of its files has.
    pub sizes: Vec<u64>,
}

/// A platform on which people and the gateway send files.
#[expect(async_fn_in_trait, reason = "a test awaits them where it calls them")]
pub trait SharesFiles: Platform {
    /// In how many deliveries two pictures and a text file are sent, with a few words.
    const DELIVERIES: usize;

    /// Sends a picture with a caption, meant for the gateway.
    async fn shows(&self, person: &Self::Person, picture: &[u8], caption: &str);

    /// The gateway's messages in a person's chat, oldest first.
    async fn file_messages_of(&self, person: &Self::Person) -> Vec<FileMessage>;
}

/// At which steps the process ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileSteps {
    /// The event has its file; the run has had it; the files of the answer are stored; a message with files has arrived.
    Few,
    /// The others of a turn.
    Others,
}

impl FileSteps {
    fn list<P: SharesFiles>(self) -> Vec<CrashStep> {
        let second = [step("attempt_started:2", 1), CrashStep { may_have_arrived: true, ..step("attempt_ended:2", 1) }];
        let few = ["accepted:1", "run_ended:1", "after_commit:1", "attempt_ended:1", "attempt_ended:2"];
        let second = second.into_iter().filter(|_| P::DELIVERIES > 1);
        let is_in = |step: &CrashStep| few.contains(&step.point) == (self == Self::Few);
        STEPS.into_iter().chain(second).filter(is_in).collect()
    }
}

/// The names, types and bytes of the files of the answer. They are told apart by their sizes.
fn files() -> [(&'static str, &'static str, Vec<u8>); 3] {
    [
        ("a.png", "image/png", PICTURE.to_vec()),
        ("b.png", "image/png", [PICTURE, b"."].concat()),
        ("c.txt", "text/plain", b"hello".to_vec()),
    ]
}

fn answer() -> Script {
    let attachments = files().map(|(name, media_type, bytes)| Attachment {
        name: name.to_owned(),
        media_type: media_type.to_owned(),
        url: data_url(media_type, &bytes),
    });
    Script::answers(Reply { text: WORDS.to_owned(), attachments: attachments.to_vec(), ..Reply::default() })
}

/// How often each file of the answer is in these messages.
fn times(shown: &[FileMessage]) -> [usize; 3] {
    let shown: Vec<_> = shown.iter().flat_map(|message| &message.sizes).collect();
    files().map(|(_, _, bytes)| shown.iter().filter(|size| ***size == bytes.len() as u64).count())
}

/// Whether the words and the files are there once, and beside them only one labelled copy.
fn is_shown_once<P: Platform>(shown: &[FileMessage], may_have_arrived: bool) -> bool {
    let labelled = shown.iter().filter(|message| LABELS.iter().any(|label| message.text.starts_with(label))).count();
    let plain = shown.iter().filter(|message| message.text == WORDS).count();
    let most = if may_have_arrived && !P::SHOWS_ONCE { 2 } else { 1 };
    let times = times(shown);
    let copies = usize::from(times.iter().any(|times| *times > 1));
    plain == 1 && labelled == copies && times.iter().all(|times| (1..=most).contains(times))
}

/// Whether the agent was given the picture, and its caption.
fn has_picture(call: &Call) -> bool {
    let files = &call.body["attachments"];
    let is_one = files.as_array().is_some_and(|files| files.len() == 1);
    let data = files[0]["data"].as_str().unwrap_or_default();
    is_one && call.body["text"] == "look" && data_url("image/png", PICTURE).ends_with(&format!(",{data}"))
}

/// A person sends a picture, the agent answers with files, and the process ends at each of these steps in sequence: each run has the
/// picture, and each file arrives once, or again with a label.
pub async fn a_crash_at_any_step_loses_no_file<P: SharesFiles>(steps: FileSteps) {
    let platform = P::new().await;
    let agent = ScriptedAgent::start(|_, _| answer()).await.of_kind(AgentKind::Http);
    let mut gateway = platform.gateway(QUIET).config(&agent.section()).config(PATIENT).start().await;
    let ada = platform.person().await;
    platform.says(&ada, "we meet").await;
    wait_for_text(&platform, &ada, WORDS).await;
    until_settled_and_acknowledged(&platform, &gateway).await;
    gateway.stop().await;

    let mut wrong = Vec::new();
    for CrashStep { point, runs, may_have_arrived } in steps.list::<P>() {
        let before = platform.file_messages_of(&ada).await.len();
        let shown = async || platform.file_messages_of(&ada).await.split_off(before);
        agent.forget_calls();
        gateway.spawn_crashing_at(point);
        gateway.until_ready().await;
        platform.shows(&ada, PICTURE, "look").await;
        gateway.until_crashed().await;
        platform.after_crash().await;
        gateway.restart().await;
        let about = format!("the files after a crash at {point}");
        eventually(&about, async || times(&shown().await).iter().all(|times| *times > 0).then_some(())).await;
        until_settled_and_acknowledged(&platform, &gateway).await;
        gateway.stop().await;

        let (shown, calls) = (shown().await, agent.calls());
        if !is_shown_once::<P>(&shown, may_have_arrived) || calls.len() > runs || !calls.iter().all(has_picture) {
            let given: Vec<_> = calls.iter().map(|call| &call.body["attachments"]).collect();
            wrong.push(format!("{point}: {shown:?}, and the runs got {given:?}"));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert_eq!(gateway.undeliverable(), 0);
}

/// An answer is spoken, and the process ends when there is a sound that is not stored yet, and when it has arrived: it is shown once. For
/// platforms that remove duplicates.
pub async fn a_spoken_answer_is_shown_once_over_kills<P: SharesFiles>() {
    let (platform, agent, speech) =
        (P::new().await, ScriptedAgent::replying(SPOKEN).await, SpeechServer::start().await);
    let keys = format!("{QUIET}\nvoice = \"always\"");
    let config = [agent.section(), speech.section(), PATIENT.to_owned()].join("\n");
    let mut gateway = platform.gateway(&keys).config(&config).start().await;
    let ada = platform.person().await;
    platform.says(&ada, "we meet").await;
    wait_for_text(&platform, &ada, SPOKEN).await;
    until_settled_and_acknowledged(&platform, &gateway).await;
    gateway.stop().await;

    let words = FileMessage { text: SPOKEN.to_owned(), sizes: Vec::new() };
    let sound = FileMessage { text: String::new(), sizes: vec!["OggS 1 Soup.".len() as u64] };
    for (point, syntheses) in [("spoken:1", 2), ("attempt_ended:2", 1)] {
        let (before, spoken) = (platform.file_messages_of(&ada).await.len(), speech.texts().len());
        let shown = async || platform.file_messages_of(&ada).await.split_off(before);
        gateway.spawn_crashing_at(point);
        gateway.until_ready().await;
        platform.says(&ada, "dinner?").await;
        gateway.until_crashed().await;
        platform.after_crash().await;
        gateway.restart().await;
        eventually(&format!("the sound after a crash at {point}"), async || {
            shown().await.contains(&sound).then_some(())
        })
        .await;
        until_settled_and_acknowledged(&platform, &gateway).await;
        gateway.stop().await;

        assert_eq!(shown().await, [words.clone(), sound.clone()], "{point}");
        assert_eq!(speech.texts().len() - spoken, syntheses, "{point}");
    }
    assert_eq!(gateway.undeliverable(), 0);
}
