//! The frames of the socket. `docs/webchat-protocol.md` describes them for users.

use std::collections::HashMap;

use axum::extract::ws::Utf8Bytes;
use rejoinder_core::{
    AgentName, Attachment, CommandHelp, Intake, Language, Shown, SignalKind, Speaker, Timestamp, TurnId, TurnStatus,
    TurnView, WorkStep,
    store::{ThreadSummary, TurnSeq},
};
use secrecy::SecretString;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::{format, visitor::Visitor};

pub(crate) const VERSION: u32 = 1;

/// The command that deletes what agents are shown of a conversation and what is found in it, and cancels what is open in it.
/// Its frame is not kept, because it may have the conversation's secret id.
pub(crate) const DELETE: &str = "/session delete all";

/// The longest text of a message, in UTF-8 bytes.
pub(crate) const MAX_TEXT_BYTES: usize = 64 * 1024;

/// The longest frame that we read, in bytes: a message of the longest text, with every byte escaped as `\u00XX`.
pub(crate) const MAX_FRAME_BYTES: usize = 6 * MAX_TEXT_BYTES + 4096;

/// A frame from a page.
#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(crate) enum ClientFrame {
    /// The first frame on a socket.
    Hello {
        #[serde(default = "current_version")]
        protocol: u32,
        conversation: String,
        token: Option<SecretString>,
        /// The language of the page, as a tag such as `de-AT`.
        language: Option<String>,
    },
    /// The person sent a message, in place of this turn if that is the last question.
    Message { id: String, text: String, instead_of: Option<TurnId> },
    /// The person picked one of the choices of a turn's signal, of the one that was shown at `asked` if it is there.
    Choose { id: String, turn_id: TurnId, choice: Pick, asked: Option<String> },
    /// Requests the turns before this one.
    Older { before: TurnId },
    /// The person stops the running turn.
    Stop,
    /// The person deletes what was said in a conversation: a holder of its id may.
    Delete { id: String, conversation: String },
    /// The person searches what was said in conversations: a holder of their ids may.
    Search { id: String, text: String, conversations: Vec<String> },
    /// Asks for the list of the conversations of somebody who is signed in.
    List,
    /// The browser wants to be told of answers in this conversation while no page shows it.
    Subscribe { id: String, endpoint: String, key: SecretString, auth: SecretString },
    /// The browser wants to be told of nothing any more.
    Unsubscribe { id: String, endpoint: String },
    /// Asks for a pong.
    Ping,
    /// Answers a ping.
    Pong,
}

const fn current_version() -> u32 {
    VERSION
}

/// A choice: its index from 0, or its text.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub(crate) enum Pick {
    Index(usize),
    Text(String),
}

impl Pick {
    /// The picked one of `choices`.
    pub(crate) fn of(self, choices: &[String]) -> Option<&String> {
        match self {
            Self::Index(index) => choices.get(index),
            Self::Text(text) => choices.iter().find(|choice| **choice == text),
        }
    }
}

/// A frame to a page.
#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(crate) enum ServerFrame<'a> {
    /// The answer to `hello`.
    Welcome {
        protocol: u32,
        title: &'a str,
        greeting: &'a str,
        agent: &'a str,
        commands: Vec<Command>,
        max_text_bytes: usize,
        /// How many files a message may have, and how many bytes these may have together.
        max_files: usize,
        max_file_bytes: usize,
        /// The key for which browsers subscribe; `None`: they are told of nothing.
        #[serde(skip_serializing_if = "Option::is_none")]
        push_key: Option<&'a str>,
        now: String,
        turns: Vec<Turn>,
        more: bool,
        /// Who is signed in, if people sign in.
        #[serde(skip_serializing_if = "Option::is_none")]
        account: Option<Account<'a>>,
    },
    /// The conversations of who is signed in, the one with the last message first.
    Conversations { conversations: Vec<Listed> },
    /// The conversation's last turns again, because changes may have been missed.
    Sync { turns: Vec<Turn>, more: bool },
    /// The answer to `older`.
    History { turns: Vec<Turn>, more: bool },
    /// The client's message or choice with this id is stored. `turn_id` is null if it opened no turn.
    Accepted { id: &'a str, turn_id: Option<TurnId> },
    /// The current state of a turn.
    Turn { turn: Turn },
    /// The text so far of a running turn, as it is shown and as Markdown, and what the agent has done and thought so far.
    Draft {
        turn_id: TurnId,
        html: String,
        text: &'a str,
        #[serde(skip_serializing_if = "<[_]>::is_empty")]
        steps: &'a [WorkStep],
    },
    /// The person is shown that an answer is being written, or no longer.
    Typing { turn_id: TurnId, on: bool },
    /// The answer to `search`: the lines, newest first. `more`: whether there are earlier ones.
    Found { id: &'a str, lines: Vec<Hit>, more: bool },
    /// A frame could not be handled. `id` is that of the client's message, choice or search.
    Error {
        #[serde(skip_serializing_if = "Option::is_none")]
        id: Option<&'a str>,
        #[serde(flatten)]
        problem: Problem,
    },
    /// Asks for a pong.
    Ping,
    /// Answers a ping.
    Pong,
}

impl ServerFrame<'_> {
    pub(crate) fn to_text(&self) -> Utf8Bytes {
        serde_json::to_string(self).expect("frames serialise to JSON").into()
    }
}

/// Somebody who is signed in.
#[derive(Debug, Serialize)]
pub(crate) struct Account<'a> {
    id: &'a str,
    name: &'a str,
    /// Whether a proxy has said who they are: they sign out there.
    by_proxy: bool,
    conversations: Vec<Listed>,
}

impl<'a> Account<'a> {
    pub(crate) fn of(visitor: &'a Visitor, threads: Vec<ThreadSummary>) -> Self {
        let (id, name) = (&*visitor.account, &*visitor.name);
        Self { id, name, by_proxy: visitor.is_by_proxy(), conversations: Listed::all(threads) }
    }
}

/// A conversation in the list of a person.
#[derive(Debug, Serialize)]
pub(crate) struct Listed {
    id: String,
    /// What was said first and last there, cut; null if that is not kept any more.
    first: Option<String>,
    last: Option<String>,
    at: String,
}

impl Listed {
    /// The conversations that were not deleted.
    pub(crate) fn all(threads: Vec<ThreadSummary>) -> Vec<Self> {
        let is_there = |thread: &ThreadSummary| thread.last.as_deref() != Some(DELETE);
        let listed = |ThreadSummary { thread, first, last, at }| Self { id: thread, first, last, at: rfc3339(at) };
        threads.into_iter().filter(is_there).map(listed).collect()
    }
}

#[derive(Debug, Serialize)]
pub(crate) struct Command {
    name: String,
    description: String,
    takes_text: bool,
    /// What there is to choose from, if that is known.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    choices: Vec<String>,
}

impl Command {
    /// A command, described in a language if it is in that one.
    pub(crate) fn of(help: CommandHelp, language: Option<Language>) -> Self {
        let CommandHelp { name, description, mut descriptions, argument } = help;
        let own = language.and_then(|language| descriptions.remove(&language));
        let description = own.unwrap_or_else(|| description.into_owned());
        let takes_text = argument.is_some();
        let choices = argument.map(|argument| argument.choices).unwrap_or_default();
        Self { name: name.into_owned(), description, takes_text, choices }
    }
}

/// A line that a search found.
#[skip_serializing_none]
#[derive(Debug, Serialize)]
pub(crate) struct Hit {
    /// The secret id, as the page sent it.
    pub(crate) conversation: String,
    pub(crate) turn_id: TurnId,
    pub(crate) at: String,
    pub(crate) speaker: Speaker,
    /// The agent that said it, if it is known.
    pub(crate) agent: Option<String>,
    /// The part of the line around the first word that was found.
    pub(crate) excerpt: String,
}

/// A turn, as the page shows it.
#[derive(Debug, Serialize)]
#[expect(clippy::struct_field_names, reason = "the name on the wire, and everywhere else")]
pub(crate) struct Turn {
    pub(crate) turn_id: TurnId,
    seq: TurnSeq,
    at: Box<str>,
    text: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    files: Vec<File>,
    pub(crate) status: TurnStatus,
    shown: Option<Signal>,
    /// What the agent did.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    steps: Vec<WorkStep>,
    #[serde(skip_serializing_if = "Option::is_none")]
    picked: Option<Box<str>>,
    /// The turn whose answer is for this one as well.
    #[serde(skip_serializing_if = "Option::is_none")]
    merged_into: Option<TurnId>,
    /// The turn in whose place it was asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    instead_of: Option<TurnId>,
}

/// The latest signal of a turn. Says whether the agent speaks or the gateway, and not which rung and why: people need not
/// know these.
#[skip_serializing_none]
#[derive(Debug, Serialize)]
#[expect(clippy::struct_field_names, reason = "the name on the wire, and everywhere else")]
struct Signal {
    signal: SignalKind,
    /// The agent that said it; `None`: the gateway itself.
    agent: Option<AgentName>,
    /// Whether the gateway said it because the agent gave no answer.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    fallback: bool,
    text: String,
    html: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    files: Vec<File>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    choices: Vec<String>,
    due: Option<String>,
    at: String,
}

#[derive(Debug, Serialize)]
struct File {
    name: String,
    r#type: String,
    /// A path at the gateway if it has the file; `None` if it is not safe to follow.
    #[serde(skip_serializing_if = "Option::is_none")]
    url: Option<String>,
}

impl Turn {
    /// A turn with links to its files.
    pub(crate) fn linked(view: &TurnView, intake: &Intake) -> Self {
        Self::of(view, |file| intake.file_link(view.turn_id, file))
    }

    /// The frames' form of turns, with what agents did for them.
    pub(crate) fn list(views: &[TurnView], mut steps: HashMap<TurnId, Vec<WorkStep>>, intake: &Intake) -> Vec<Self> {
        let of_view = |view: &TurnView| {
            let steps = steps.remove(&view.turn_id).unwrap_or_default();
            Self { steps, ..Self::linked(view, intake) }
        };
        views.iter().map(of_view).collect()
    }

    /// `link` gives the path to a file, if the gateway has it.
    fn of(view: &TurnView, link: impl Fn(&Attachment) -> Option<String>) -> Self {
        // The answer is shown with the turn that answers for both.
        let shown = view.shown.as_ref().filter(|_| view.merged_into.is_none());
        Self {
            turn_id: view.turn_id,
            seq: view.seq,
            at: rfc3339(view.at).into(),
            text: view.text.clone(),
            files: files(&view.attachments, &link),
            status: view.status,
            shown: shown.map(|shown| Signal::of(shown, &link)),
            steps: Vec::new(),
            picked: view.picked.as_deref().map(Into::into),
            merged_into: view.merged_into,
            instead_of: view.instead_of,
        }
    }
}

impl Signal {
    fn of(shown: &Shown, link: impl Fn(&Attachment) -> Option<String>) -> Self {
        let is_text = !matches!(shown.signal, SignalKind::Reaction);
        Self {
            signal: shown.signal,
            agent: shown.agent.clone(),
            fallback: shown.agent.is_none() && shown.fallback.is_some(),
            text: shown.text.clone(),
            html: is_text.then(|| format::to_html(&shown.text)),
            files: files(&shown.attachments, link),
            choices: shown.choices.clone(),
            due: shown.due.map(rfc3339),
            at: rfc3339(shown.at),
        }
    }
}

fn files(attachments: &[Attachment], link: impl Fn(&Attachment) -> Option<String>) -> Vec<File> {
    let file = |file: &Attachment| File {
        name: file.name.clone(),
        r#type: file.media_type.clone(),
        url: link(file).or_else(|| format::safe_href(&file.url)),
    };
    attachments.iter().map(file).collect()
}

pub(crate) fn rfc3339(at: Timestamp) -> String {
    let at = jiff::Timestamp::from_millisecond(at.as_millis()).unwrap_or(jiff::Timestamp::UNIX_EPOCH);
    // Always with milliseconds, so that clients can compare times as text.
    format!("{at:.3}")
}

/// Why a frame could not be handled: a code for programs, a message for people.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Problem {
    pub(crate) code: &'static str,
    pub(crate) message: &'static str,
    /// Whether a retry may succeed.
    pub(crate) retry: bool,
    /// The close code, if the socket is closed.
    #[serde(skip)]
    pub(crate) close: Option<u16>,
}

impl Problem {
    const fn new(code: &'static str, message: &'static str) -> Self {
        Self { code, message, retry: false, close: None }
    }

    const fn retry(mut self) -> Self {
        self.retry = true;
        self
    }

    const fn close(mut self, code: u16) -> Self {
        self.close = Some(code);
        self
    }

    pub(crate) const NOT_A_FRAME: Self = Self::new("bad_frame", "That could not be understood.");
    pub(crate) const HELLO_FIRST: Self = Self::new("hello_first", "That could not be understood.").close(4400);
    pub(crate) const HELLO_AGAIN: Self = Self::new("bad_frame", "This socket already has a conversation.");
    pub(crate) const HELLO_TIMEOUT: Self =
        Self::new("hello_timeout", "The connection took too long to start.").retry().close(4408);
    pub(crate) const OTHER_PROTOCOL: Self =
        Self::new("unsupported_protocol", "This page is out of date. Please load it again.").close(4406);
    pub(crate) const BAD_CONVERSATION: Self =
        Self::new("bad_conversation", "This conversation's id is not valid.").close(4400);
    pub(crate) const TOKEN_REQUIRED: Self = Self::new("token_required", "Please enter the access token.").close(4401);
    pub(crate) const TOKEN_WRONG: Self = Self::new("token_wrong", "That is not the right token.").close(4401);
    pub(crate) const SIGN_IN_REQUIRED: Self = Self::new("sign_in_required", "Please sign in.").close(4401);
    pub(crate) const SIGNED_OUT: Self = Self::new("sign_in_required", "You were signed out.").close(4401);
    pub(crate) const TOO_MANY_GUESSES: Self =
        Self::new("too_many_guesses", "Too many wrong tokens came from here. Please wait a minute.")
            .retry()
            .close(1013);
    pub(crate) const TOO_MANY_SOCKETS: Self =
        Self::new("busy", "Too many people are here right now.").retry().close(1013);
    pub(crate) const BUSY: Self =
        Self::new("busy", "This conversation is open in too many places.").retry().close(1013);
    pub(crate) const NOT_READY: Self =
        Self::new("unavailable", "The chat is not available right now.").retry().close(1013);
    pub(crate) const EXPIRED: Self =
        Self::new("expired", "This question has expired. Please write your answer instead.");
    pub(crate) const BAD_ID: Self = Self::new("bad_id", "That could not be understood.");
    pub(crate) const EMPTY: Self = Self::new("empty", "There is nothing to send.");
    pub(crate) const TOO_LONG: Self =
        Self::new("too_long", "That is too long for one message. Please send it in parts.");
    pub(crate) const LIMITED: Self =
        Self::new("limited", "That was a lot at once. Please send this again in a minute.");
    pub(crate) const REFUSED: Self = Self::new("refused", "That cannot be stored as it is.");
    pub(crate) const ID_REUSED: Self = Self::new("id_reused", "That was already sent with a different text.");
    pub(crate) const UNKNOWN_TURN: Self = Self::new("unknown_turn", "That question is not part of this conversation.");
    pub(crate) const UNKNOWN_CHOICE: Self = Self::new("unknown_choice", "That is not one of the choices.");
    pub(crate) const SEARCHING: Self = Self::new("busy", "The last search still goes on.").retry();
    pub(crate) const NOT_A_SUBSCRIPTION: Self =
        Self::new("bad_subscription", "This browser cannot be notified from here.");
    pub(crate) const UNAVAILABLE: Self =
        Self::new("unavailable", "That could not be stored right now. It will be sent again.").retry();
}

#[cfg(test)]
mod tests {
    use proptest::{collection::vec, prelude::*, sample::select};
    use rejoinder_core::{Cause, ChannelId, ConversationRef, FallbackView};
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    fn read(frame: &str) -> Result<ClientFrame, serde_json::Error> {
        serde_json::from_str(frame)
    }

    proptest! {
        #[test]
        fn any_frame_is_read_or_refused(
            pieces in vec(select(vec!["{", "}", "[", "]", "\"", ":", ",", "\"type\":", "\"hello\"", "\"say\"", "\"pick\"", "\"id\":", "\"text\":", "\"turn\":", "\\u0000", "\\ud800", "null", "1e999", "-1", "é", " "]), 0..30),
        ) {
            drop(read(&pieces.concat()));
        }
    }

    #[test]
    fn a_frame_of_any_depth_is_refused() {
        for (open, close) in [("[", "]"), ("{\"a\":", "}")] {
            let deep = format!("{}1{}", open.repeat(200_000), close.repeat(200_000));
            for frame in [
                format!("{{\"type\":\"hello\",\"conversation\":{deep}}}"),
                format!("{{\"more\":{deep},\"type\":\"hello\"}}"),
                deep,
            ] {
                assert!(read(&frame).is_err());
            }
        }
    }

    #[test]
    fn a_time_always_has_milliseconds() {
        let times = [0, 220, 1_700_000_000_007].map(|at| rfc3339(Timestamp::from_millis(at)));

        assert_eq!(times, ["1970-01-01T00:00:00.000Z", "1970-01-01T00:00:00.220Z", "2023-11-14T22:13:20.007Z"]);
    }

    #[test]
    fn a_hello_needs_neither_token_nor_version() {
        let frame = read(r#"{"type":"hello","conversation":"abc"}"#).expect("a hello");

        assert!(matches!(frame, ClientFrame::Hello { protocol: VERSION, token: None, .. }));
    }

    #[test]
    fn a_token_is_not_in_the_debug_output() {
        let frame = read(r#"{"type":"hello","conversation":"abc","token":"hunter2"}"#).expect("a hello");

        assert!(!format!("{frame:?}").contains("hunter2"));
    }

    #[rstest]
    #[case(r#"{"type":"stop","later":"fields are ignored"}"#)]
    #[case(r#"{"type":"message","id":"a","text":"b"}"#)]
    #[case(r#"{"type":"message","id":"a","text":"b","instead_of":"01890a5d-ac96-774b-bcce-b302099a8057"}"#)]
    #[case(r#"{"type":"older","before":"01890a5d-ac96-774b-bcce-b302099a8057"}"#)]
    #[case(r#"{"type":"choose","id":"a","turn_id":"01890a5d-ac96-774b-bcce-b302099a8057","choice":1}"#)]
    #[case(r#"{"type":"choose","id":"a","turn_id":"01890a5d-ac96-774b-bcce-b302099a8057","choice":"yes"}"#)]
    #[case(r#"{"type":"delete","id":"a","conversation":"b"}"#)]
    #[case(r#"{"type":"search","id":"a","text":"b","conversations":["c"]}"#)]
    #[case(r#"{"type":"subscribe","id":"a","endpoint":"b","key":"c","auth":"d"}"#)]
    #[case(r#"{"type":"unsubscribe","id":"a","endpoint":"b"}"#)]
    #[case(r#"{"type":"ping"}"#)]
    fn frames_are_read(#[case] frame: &str) {
        assert!(read(frame).is_ok());
    }

    #[rstest]
    #[case("")]
    #[case("[]")]
    #[case("{}")]
    #[case(r#"{"type":"else"}"#)]
    #[case(r#"{"type":"message","text":"no id"}"#)]
    #[case(r#"{"type":"message","id":"a","text":7}"#)]
    #[case(r#"{"type":"older","before":"yesterday"}"#)]
    #[case(r#"{"type":"choose","id":"a","turn_id":"01890a5d-ac96-774b-bcce-b302099a8057","choice":-1}"#)]
    fn what_is_no_frame_is_refused(#[case] frame: &str) {
        assert!(read(frame).is_err());
    }

    #[rstest]
    #[case(json!(0), Some("yes"))]
    #[case(json!(1), Some("no"))]
    #[case(json!(2), None)]
    #[case(json!("no"), Some("no"))]
    #[case(json!("No"), None)]
    fn a_pick_is_one_of_the_choices(#[case] pick: serde_json::Value, #[case] words: Option<&str>) {
        let pick: Pick = serde_json::from_value(pick).expect("a pick");

        assert_eq!(pick.of(&["yes".to_owned(), "no".to_owned()]).map(String::as_str), words);
    }

    fn turn(view: &TurnView) -> serde_json::Value {
        serde_json::to_value(Turn::of(view, |_| None)).expect("JSON")
    }

    fn view(signal: SignalKind, text: &str) -> TurnView {
        let at = Timestamp::from_millis(1_700_000_000_123);
        TurnView {
            turn_id: TurnId::new(at),
            seq: 7,
            conversation: ConversationRef::new(ChannelId::new("webchat", "main"), "abc"),
            at,
            text: "**hi**".to_owned(),
            attachments: vec![],
            status: TurnStatus::Answered,
            shown: Some(Shown {
                signal,
                agent: None,
                text: text.to_owned(),
                attachments: vec![Attachment {
                    name: "x".to_owned(),
                    media_type: "text/plain".to_owned(),
                    url: "javascript:alert(1)".to_owned(),
                }],
                choices: vec![],
                sealed: None,
                fallback: Some(FallbackView { cause: Cause::Error, rung: "say:failed".to_owned() }),
                due: None,
                at,
            }),
            picked: None,
            merged_into: None,
            instead_of: None,
        }
    }

    /// B7, C5.
    #[test]
    fn a_turn_shows_words_and_nothing_internal() {
        let frame = ServerFrame::Turn { turn: Turn::of(&view(SignalKind::Reply, "*a*"), |_| None) }.to_text();
        let frame: serde_json::Value = serde_json::from_str(&frame).expect("JSON");

        assert_eq!(frame["turn"]["at"], "2023-11-14T22:13:20.123Z");
        assert_eq!(frame["turn"]["text"], "**hi**");
        assert_eq!(
            frame["turn"]["shown"],
            json!({
                "signal": "reply", "fallback": true, "text": "*a*", "html": "<p dir=\"auto\"><em>a</em></p>",
                "at": "2023-11-14T22:13:20.123Z",
                "files": [{"name": "x", "type": "text/plain"}],
            })
        );
    }

    #[test]
    fn a_file_is_a_link_if_that_is_safe_to_follow() {
        let href = |url: &str| {
            let mut view = view(SignalKind::Reply, "all");
            view.shown.as_mut().expect("an answer").attachments[0].url = url.to_owned();
            let link = |file: &Attachment| file.url.strip_prefix("sha256:").map(|file| format!("/files/{file}"));
            Turn::of(&view, link).shown.expect("an answer").files[0].url.clone()
        };

        assert_eq!(href("sha256:1"), Some("/files/1".to_owned()));
        assert_eq!(href("https://a.example/b"), Some("https://a.example/b".to_owned()));
        for url in ["data:text/html;base64,QUJD", "/files/1", "//a.example/b", "../admin", "ftp://a.example"] {
            assert_eq!(href(url), None, "{url}");
        }
    }

    #[test]
    fn an_answer_names_its_agent() {
        let mut view = view(SignalKind::Reply, "*a*");
        view.shown.as_mut().expect("an answer").agent = Some("orchestrator".into());

        let turn = turn(&view);

        // Also after a handoff, which the ladder counts as a fallback.
        assert_eq!((&turn["shown"]["agent"], &turn["shown"]["fallback"]), (&json!("orchestrator"), &json!(null)));
    }

    #[test]
    fn a_reaction_is_an_emoji_and_no_markup() {
        let turn = turn(&view(SignalKind::Reaction, "👍"));

        assert_eq!((&turn["shown"]["text"], &turn["shown"]["html"]), (&json!("👍"), &json!(null)));
    }

    #[test]
    fn an_error_says_what_to_do_next() {
        let frame = ServerFrame::Error { id: Some("a"), problem: Problem::UNAVAILABLE }.to_text();
        let frame: serde_json::Value = serde_json::from_str(&frame).expect("JSON");

        assert_eq!((&frame["code"], &frame["retry"], &frame["id"]), (&json!("unavailable"), &json!(true), &json!("a")));
    }
}
