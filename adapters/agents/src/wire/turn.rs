//! A turn as JSON.

use base64::{display::Base64Display, engine::general_purpose::STANDARD};
use rejoinder_core::{
    AgentFile, AgentMessage, AgentQuote, AgentTurn, Author, BudgetLeft, ChatKind, Cost, Deferred, HistoryLine,
    LineState, ModelInput, Sender, SenderKind, Speaker, Surface,
};
use serde::{Serialize, Serializer};
use serde_with::skip_serializing_none;
use sha2::{Digest, Sha256};
use utoipa::ToSchema;

use crate::{
    approval::Approval,
    person_answer::Answer,
    prompt::{frame::VoiceNote, handoff::HandedOver, last_answer::ToldAnswer},
    tools::{can_react, rfc3339},
};

/// The largest file whose content an agent gets, in bytes.
pub(crate) const MAX_FILE: usize = 10 << 20;

/// A turn, as an agent reads it.
///
/// The keys up to `deadline`, `may` and `surface` are always there; the others, if they say something.
#[skip_serializing_none]
#[derive(Serialize, ToSchema)]
#[schema(as = AgentTurn)]
pub(crate) struct WireTurn<'a> {
    /// The same in every run.
    turn_id: String,
    text: &'a str,
    sender: Person<'a>,
    conversation: Conversation<'a>,
    session_id: String,
    /// How many runs of the turn the agent has had, including this one.
    attempt: u32,
    history: Vec<Line<'a>>,
    attachments: Vec<File<'a>>,
    /// When the gateway stops to wait for the answer.
    #[schema(format = DateTime)]
    deadline: String,
    /// Set if the message was spoken.
    voice_note: Option<VoiceNote>,
    /// Why the ladder handed the turn to this agent, and what was tried before.
    handoff: Option<HandedOver<'a>>,
    /// What became of the agent's last answer; only if the person has not simply seen it.
    last_answer: Option<ToldAnswer<'a>>,
    /// A language tag.
    language: Option<String>,
    forwarded_from: Option<Writer<'a>>,
    quoted: Option<Quoted<'a>>,
    /// An emoji; empty if a reaction was taken back.
    reaction: Option<&'a str>,
    /// The messages that came after it and are answered together with it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    more: Vec<Message<'a>>,
    deferred: Option<Deferral<'a>>,
    may: May<'a>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    approvals: Vec<Approval<'a>>,
    /// What the person answered in earlier runs, in the middle of which the agent asked them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    answers: Vec<Answer<'a>>,
    /// Those of the program that speaks for the person, not the operator's.
    instructions: Option<&'a str>,
    /// The age recipient to whose key the answer must be sealed: end the run with `sealed`.
    seal_to: Option<&'a str>,
    model: Option<&'a str>,
    /// Where the person reads the answer: `voice`, or the name of the platform.
    surface: &'a str,
    mcp: Option<Mcp<'a>>,
}

/// Where the agent calls the tools of the run.
#[derive(Serialize, ToSchema)]
#[schema(as = AgentTurnTools)]
struct Mcp<'a> {
    url: &'a str,
    token: String,
}

#[skip_serializing_none]
#[derive(Serialize, ToSchema)]
#[schema(as = AgentTurnPerson)]
struct Person<'a> {
    id: &'a str,
    #[serialize_always]
    name: Option<&'a str>,
    username: Option<&'a str>,
    kind: Option<&'static str>,
}

#[derive(Serialize, ToSchema)]
#[schema(as = AgentTurnConversation)]
struct Conversation<'a> {
    channel: String,
    chat: &'a str,
    thread: Option<&'a str>,
    /// `direct` or `group`.
    #[schema(value_type = String)]
    kind: ChatKind,
}

#[skip_serializing_none]
#[derive(Serialize, ToSchema)]
#[schema(as = AgentTurnLine)]
struct Line<'a> {
    /// `person`, `agent` or `gateway`.
    #[schema(value_type = String)]
    speaker: Speaker,
    #[serialize_always]
    name: Option<&'a str>,
    id: Option<&'a str>,
    text: &'a str,
    /// Whether somebody said it in a voice note.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    spoken: bool,
    at: String,
    forwarded_from: Option<Writer<'a>>,
    /// `stopped`, `partly`, `on_its_way` or `not_delivered`.
    state: Option<&'static str>,
    /// Why it was not delivered.
    reason: Option<&'a str>,
}

/// The author of what is quoted or forwarded.
#[skip_serializing_none]
#[derive(Serialize, ToSchema)]
#[schema(as = AgentTurnAuthor)]
struct Writer<'a> {
    id: Option<&'a str>,
    name: Option<&'a str>,
    username: Option<&'a str>,
    /// `you` if the agent wrote it.
    kind: Option<&'static str>,
    /// Whether they may not write to the agent.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    stranger: bool,
}

#[skip_serializing_none]
#[derive(Serialize, ToSchema)]
#[schema(as = AgentTurnFile)]
struct File<'a> {
    name: &'a str,
    #[serde(rename = "type")]
    media_type: &'a str,
    /// In bytes, if the file was read.
    size: Option<usize>,
    /// The bytes, in Base64, if the file was read.
    #[schema(value_type = Option<String>)]
    data: Option<Content<'a>>,
}

/// The bytes of a file, written in Base64.
struct Content<'a>(&'a [u8]);

impl Serialize for Content<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&Base64Display::new(self.0, &STANDARD))
    }
}

#[derive(Serialize, ToSchema)]
#[schema(as = AgentTurnQuote)]
struct Quoted<'a> {
    from: Writer<'a>,
    text: &'a str,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    attachments: Vec<File<'a>>,
}

#[skip_serializing_none]
#[derive(Serialize, ToSchema)]
#[schema(as = AgentTurnMessage)]
struct Message<'a> {
    sender: Person<'a>,
    text: &'a str,
    forwarded_from: Option<Writer<'a>>,
    quoted: Option<Quoted<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    attachments: Vec<File<'a>>,
    voice_note: Option<VoiceNote>,
}

#[skip_serializing_none]
#[derive(Serialize, ToSchema)]
#[schema(as = AgentTurnDeferral)]
struct Deferral<'a> {
    note: Option<&'a str>,
    at: String,
    due: String,
}

/// What the run may end with besides a reply, a question and silence.
#[skip_serializing_none]
#[derive(Serialize, ToSchema)]
#[schema(as = AgentTurnRights)]
struct May<'a> {
    defer: Option<MayDefer>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    approval: bool,
    /// The emoji that the platform shows, if only some; any other one is sent as text.
    react: Option<&'a [String]>,
    budget: Option<Budget>,
}

/// What is left of the agent's budget of the day. Runs at the same time use it, too.
#[skip_serializing_none]
#[derive(Serialize, ToSchema)]
#[schema(as = AgentTurnBudget)]
struct Budget {
    tokens: Option<u64>,
    cost: Option<Money>,
}

#[derive(Serialize, ToSchema)]
#[schema(as = AgentTurnMoney)]
struct Money {
    /// In units of the currency, exact to a millionth.
    amount: f64,
    /// Three letters, as in ISO 4217.
    currency: String,
}

#[derive(Serialize, ToSchema)]
#[schema(as = AgentTurnDefer)]
struct MayDefer {
    /// How many more times.
    left: u32,
    /// For how long at most.
    seconds: u64,
}

impl WireTurn<'_> {
    /// A turn as JSON, with its files. The turn loses their bytes, which count until then: the agent may wait for days.
    pub(crate) fn take_json(turn: &mut AgentTurn) -> Vec<u8> {
        let json = serde_json::to_vec(&WireTurn::of(turn)).expect("texts and lists serialise to JSON");
        turn.drop_files();
        json
    }
}

impl<'a> WireTurn<'a> {
    pub(crate) fn of(turn: &'a AgentTurn) -> Self {
        let tools = turn.rights.tools.as_ref();
        Self {
            mcp: tools.map(|tools| Mcp { url: &tools.url, token: tools.tokens.token().to_string() }),
            ..Self::with(turn, true)
        }
    }

    /// Says that an approval allows nothing any more.
    pub(crate) fn use_up_approvals(&mut self) {
        self.approvals.iter_mut().for_each(Approval::use_up);
    }

    /// A digest of what is asked. Of what another run of the turn may have anew, nothing is in it.
    pub(crate) fn digest(turn: &'a AgentTurn) -> String {
        let asked = Self { attempt: 0, deadline: String::new(), history: Vec::new(), ..Self::with(turn, false) };
        let mut asked = Self { last_answer: None, ..asked };
        asked.may.budget = None;
        asked.use_up_approvals();
        let json = serde_json::to_vec(&asked).expect("texts and lists serialise to JSON");
        format!("{:x}", Sha256::digest(json))
    }

    /// What the operator sees of it: without the bytes of files and the token of the tools.
    pub(crate) fn input(turn: &'a AgentTurn) -> ModelInput {
        let messages = serde_json::to_string(&[Self::with(turn, false)]).expect("texts and lists serialise to JSON");
        ModelInput { settings: "{}".to_owned(), messages, left_out: 0 }
    }

    fn with(turn: &'a AgentTurn, has_data: bool) -> Self {
        let conversation = &turn.place.conversation;
        let files = |files: &'a [AgentFile]| attachments(files, has_data);
        let quoted = |quoted: Option<&'a AgentQuote>| quoted.map(|quoted| self::quoted(quoted, has_data));
        let more = |message: &'a AgentMessage| Message {
            sender: Person::of(&message.sender),
            text: &message.text,
            forwarded_from: message.forwarded.as_ref().map(Writer::of),
            quoted: quoted(message.quoted.as_ref()),
            attachments: files(&message.attachments),
            voice_note: message.voice.map(VoiceNote::from),
        };
        let defer = turn.rights.may_defer;
        Self {
            turn_id: turn.turn.to_string(),
            text: &turn.message.text,
            sender: Person::of(&turn.message.sender),
            conversation: Conversation {
                channel: conversation.channel.to_string(),
                chat: &conversation.chat,
                thread: conversation.thread.as_deref(),
                kind: turn.place.chat,
            },
            session_id: turn.place.session.to_string(),
            attempt: turn.attempt,
            history: turn.past.history.iter().map(|said| line(said, turn)).collect(),
            attachments: files(&turn.message.attachments),
            deadline: rfc3339(turn.deadline),
            voice_note: turn.message.voice.map(VoiceNote::from),
            handoff: turn.past.handoff.as_ref().map(HandedOver::of),
            last_answer: turn.past.last_answer.as_ref().map(ToldAnswer::of),
            language: turn.person.language.map(|language| language.to_string()),
            forwarded_from: turn.message.forwarded.as_ref().map(Writer::of),
            quoted: quoted(turn.message.quoted.as_ref()),
            reaction: turn.message.reaction.as_deref(),
            more: turn.more.iter().map(more).collect(),
            deferred: turn.past.deferred.as_ref().map(deferral),
            may: May {
                defer: (defer.left > 0).then_some(MayDefer { left: defer.left, seconds: defer.longest.as_secs() }),
                approval: turn.rights.may_ask_approval,
                budget: turn.rights.budget.map(Budget::from),
                react: turn.place.capabilities.allowed_reactions.as_deref().filter(|_| can_react(turn)),
            },
            approvals: turn.past.approvals.iter().map(Approval::from).collect(),
            answers: turn.past.answers.iter().map(Answer::from).collect(),
            instructions: turn.person.instructions.as_deref(),
            seal_to: turn.person.seal_to.as_deref(),
            model: turn.place.model.as_deref(),
            surface: match &turn.place.surface {
                Surface::Voice => "voice",
                Surface::Chat(name) => name,
            },
            mcp: None,
        }
    }
}

impl From<BudgetLeft> for Budget {
    fn from(left: BudgetLeft) -> Self {
        let money = |cost: Cost| Money { amount: cost.amount(), currency: cost.currency.to_string() };
        Self { tokens: left.tokens, cost: left.cost.map(money) }
    }
}

impl<'a> Person<'a> {
    fn of(sender: &'a Sender) -> Self {
        Self {
            id: &sender.id,
            name: sender.name.as_deref(),
            username: sender.username.as_deref(),
            kind: kind(sender.kind),
        }
    }
}

impl<'a> Writer<'a> {
    fn of(author: &'a Author) -> Self {
        Self {
            id: author.id.as_deref(),
            name: author.name.as_deref(),
            username: author.username.as_deref(),
            kind: kind(author.kind),
            stranger: author.is_stranger,
        }
    }
}

/// Who it is, unless it is a person.
const fn kind(kind: SenderKind) -> Option<&'static str> {
    match kind {
        SenderKind::Person => None,
        SenderKind::Unnamed => Some("unnamed"),
        SenderKind::KeyHolder => Some("key_holder"),
        SenderKind::OtherAgent => Some("agent"),
        SenderKind::Ourselves => Some("you"),
        SenderKind::Operator => Some("operator"),
    }
}

/// A line of the history of `turn`. In a direct chat lines have no author: a person's are those of the person who writes now.
fn line<'a>(line: &'a HistoryLine, turn: &'a AgentTurn) -> Line<'a> {
    let author = line.author.as_ref();
    let is_senders = line.speaker == Speaker::Person
        && author.is_none()
        && turn.place.chat == ChatKind::Direct
        && turn.message.sender.kind == SenderKind::Person;
    let (state, reason) = match &line.state {
        LineState::Seen => (None, None),
        LineState::Stopped => (Some("stopped"), None),
        LineState::Partly => (Some("partly"), None),
        LineState::OnItsWay => (Some("on_its_way"), None),
        LineState::NotDelivered(reason) => (Some("not_delivered"), Some(reason.as_str())),
    };
    Line {
        speaker: line.speaker,
        name: match author {
            Some(author) => author.name.as_deref(),
            None => turn.message.sender.name.as_deref().filter(|_| is_senders),
        },
        id: author.and_then(|author| author.id.as_deref()),
        text: &line.text,
        spoken: line.spoken,
        at: rfc3339(line.at),
        forwarded_from: line.forwarded.as_ref().map(Writer::of),
        state,
        reason,
    }
}

fn attachments(files: &[AgentFile], has_data: bool) -> Vec<File<'_>> {
    let read = files.iter().map(|AgentFile { attachment, bytes, .. }| File {
        name: &attachment.name,
        media_type: &attachment.media_type,
        size: bytes.as_deref().map(<[u8]>::len),
        data: bytes.as_deref().filter(|_| has_data).map(Content),
    });
    read.collect()
}

fn quoted(quoted: &AgentQuote, has_data: bool) -> Quoted<'_> {
    Quoted { from: Writer::of(&quoted.author), text: &quoted.text, attachments: attachments(&quoted.files, has_data) }
}

fn deferral(deferred: &Deferred) -> Deferral<'_> {
    Deferral { note: deferred.note.as_deref(), at: rfc3339(deferred.at), due: rfc3339(deferred.due) }
}
