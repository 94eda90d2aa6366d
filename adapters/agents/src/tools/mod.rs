//! The tools with which a model can do something other than write text.
//!
//! `schedule` makes schedules, and the model gets the result.
//! `react`, `ask`, `request_approval`, `defer` and `stay_silent` are choices: they end the run without another request. `send` sends the answer
//! at once. [`Chosen::outcome`] combines several choices into one outcome.

use std::{collections::HashSet, ops::RangeInclusive, sync::LazyLock, time::Duration};

use rejoinder_core::{
    AgentTurn, ApprovalRequest, Choices, Outcome, Reply, ScheduleCall, Shim, Support, Timestamp, is_blank,
};
use serde::{Deserialize, Serialize, Serializer, ser::SerializeSeq};
use serde_json::value::{RawValue, to_raw_value};

mod number;
pub(crate) mod schedule;

use self::number::Number;

/// The shortest time for which a model may defer an answer.
const MIN_DEFER: Duration = Duration::from_secs(1);

/// How many characters of a note or reason are kept.
const MAX_NOTE: usize = 1_000;

/// How many choices a question has.
const CHOICES: RangeInclusive<usize> = 2..=8;

/// How many characters a choice may have: as many as fit on a button of Discord.
const MAX_CHOICE: usize = 80;

/// How long a question can be open at least, and at most, if it expires; in seconds.
const EXPIRY: (f64, f64) = (60.0, 30.0 * 24.0 * 3600.0);

/// The tools offered to the model, as serialised in the request.
#[derive(Debug)]
pub(crate) struct Offer<'a> {
    react: Option<Tool<'a>>,
    may_defer: bool,
    may_ask_approval: bool,
    may_schedule: bool,
}

/// The tools that every channel has, written as JSON once.
static EVERYWHERE: LazyLock<Vec<Box<RawValue>>> = LazyLock::new(|| {
    let tools = [
        Tool::new(
            "ask",
            "Ask the person a question with choices to press. When you need a decision and know what there is to choose \
             from. The question is your answer; what they pick comes as their next message. Ends your turn.",
            vec![
                ("question", text("The question, in Markdown, in their language. Do not list the choices in it.")),
                ("choices", texts("2 to 8 different choices, each of a few words.")),
                (
                    "free_text",
                    Property {
                        kind: "boolean",
                        ..text("Whether they may also answer in their own words; true if left out.")
                    },
                ),
                (
                    "expires_in",
                    number(
                        "In how many seconds the question expires, if it must. The person is told then that nobody answered.",
                    ),
                ),
            ],
            &["question", "choices"],
        ),
        Tool::new(
            "stay_silent",
            "Say nothing. Only when the message is not meant for you or needs no answer. Ends your turn.",
            vec![("reason", text("Why; the person does not see it."))],
            &["reason"],
        ),
        Tool::new(
            "send",
            "Send your whole answer at once and end your turn. Usually you just write your answer as text instead.",
            vec![("text", text("The answer, in Markdown."))],
            &["text"],
        ),
    ];
    tools.iter().map(|tool| to_raw_value(tool).expect("texts and lists serialise to JSON")).collect()
});

/// The tool that is offered as long as the model may defer the turn.
static DEFER_TOOL: LazyLock<Box<RawValue>> = LazyLock::new(|| {
    let tool = Tool::new(
        DEFER,
        "Answer later. Only when you cannot answer now: you will be asked again when the time has come, and \
         you owe the person an answer then. Ends your turn; you cannot also send something.",
        vec![
            ("note", text("What the person is told meanwhile, in their language.")),
            ("minutes", number("In how many minutes you will answer.")),
            ("seconds", number("In how many seconds, if that is less than some minutes.")),
            ("until", text("Or the time at which you will answer, in RFC 3339: 2030-01-31T09:00:00Z.")),
        ],
        &["note"],
    );
    to_raw_value(&tool).expect("texts and lists serialise to JSON")
});

/// The tool that is offered only where somebody could approve.
static REQUEST_APPROVAL: LazyLock<Box<RawValue>> = LazyLock::new(|| {
    let tool = Tool::new(
        REQUEST,
        "Ask for approval before you do something that cannot be undone, costs money, or speaks for others. You cannot know \
         the decision now: you will be asked again with it, perhaps days later, and must not act before. Ends your turn.",
        vec![
            ("action", text("What you want to do, complete and exact, in one sentence: it is what is approved.")),
            ("details", text("What whoever decides should know: for example the text that you want to send.")),
            ("kind", text("The kind of action, as an area and a verb: email.send, calendar.add, shop.order.")),
        ],
        &["action"],
    );
    to_raw_value(&tool).expect("texts and lists serialise to JSON")
});

/// The tool that is offered only where the gateway can speak first.
static SCHEDULE_TOOL: LazyLock<Box<RawValue>> = LazyLock::new(|| {
    let tool = Tool::new(
        SCHEDULE,
        "Begin something later in this chat: a reminder, or a task for yourself. Also lists and removes what you have scheduled \
         here. You get the result, and answer the person then.",
        vec![
            ("action", Property { allowed: Some(&schedule::ACTIONS[..]), ..text("What to do: add, list or remove.") }),
            ("name", text("A short name for it, by which it is removed.")),
            ("message", text("To add a reminder: what the person is sent then, in Markdown, in their language.")),
            (
                "task",
                text("Or to add a task: what you are told to do then, complete: you may have forgotten this chat."),
            ),
            (
                "quiet",
                Property {
                    kind: "boolean",
                    ..text("Whether you may stay silent after the task if there is nothing to say; false if left out.")
                },
            ),
            ("in_minutes", number("When: in how many minutes, once.")),
            ("at", text("Or at which time, once: RFC 3339, or 2030-01-31T09:00 in `time_zone`.")),
            ("every_minutes", number("Or again and again, in how many minutes.")),
            ("cron", text("Or at the times of a cron pattern of five fields: 0 8 * * MON-FRI.")),
            ("time_zone", text("The time zone of `at` and `cron`, such as Europe/Vienna; UTC if left out.")),
        ],
        &["action"],
    );
    to_raw_value(&tool).expect("texts and lists serialise to JSON")
});

/// The name of the tool that puts the answer off.
pub(crate) const DEFER: &str = "defer";

/// The name of that tool.
const SCHEDULE: &str = "schedule";

/// The name of the tool for approvals.
const REQUEST: &str = "request_approval";

impl<'a> Offer<'a> {
    /// The tools for a run of this turn.
    pub(crate) fn of(turn: &'a AgentTurn) -> Self {
        let capabilities = &turn.capabilities;
        let react = (capabilities.reactions != Support::No).then(|| {
            Tool::new(
                "react",
                "Answer with one emoji on the person's message instead of words. For thanks, agreement, or when \
                 nothing needs to be said. Ends your turn.",
                vec![("emoji", Property { allowed: capabilities.allowed_reactions.as_deref(), ..text("The emoji.") })],
                &["emoji"],
            )
        });
        let may_defer = turn.may_defer.left > 0;
        Self { react, may_defer, may_ask_approval: turn.may_ask_approval, may_schedule: turn.may_schedule }
    }
}

impl Serialize for Offer<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut tools = serializer.serialize_seq(None)?;
        if let Some(react) = &self.react {
            tools.serialize_element(react)?;
        }
        for tool in &*EVERYWHERE {
            tools.serialize_element(tool)?;
        }
        if self.may_defer {
            tools.serialize_element(&*DEFER_TOOL)?;
        }
        if self.may_ask_approval {
            tools.serialize_element(&*REQUEST_APPROVAL)?;
        }
        if self.may_schedule {
            tools.serialize_element(&*SCHEDULE_TOOL)?;
        }
        tools.end()
    }
}

#[derive(Debug, Serialize)]
struct Tool<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    function: Function<'a>,
}

impl<'a> Tool<'a> {
    fn new(
        name: &'static str,
        description: &'static str,
        properties: Vec<(&'static str, Property<'a>)>,
        required: &'static [&'static str],
    ) -> Self {
        let parameters = Parameters { kind: "object", properties: Properties(properties), required };
        Self { kind: "function", function: Function { name, description, parameters } }
    }
}

#[derive(Debug, Serialize)]
struct Function<'a> {
    name: &'static str,
    description: &'static str,
    parameters: Parameters<'a>,
}

#[derive(Debug, Serialize)]
struct Parameters<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    properties: Properties<'a>,
    required: &'static [&'static str],
}

#[derive(Debug)]
struct Properties<'a>(Vec<(&'static str, Property<'a>)>);

impl Serialize for Properties<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, property)| (name, property)))
    }
}

#[derive(Debug, Serialize)]
struct Property<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    description: &'static str,
    #[serde(rename = "enum", skip_serializing_if = "Option::is_none")]
    allowed: Option<&'a [String]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    items: Option<Items>,
}

/// What a list consists of.
#[derive(Debug, Serialize)]
struct Items {
    #[serde(rename = "type")]
    kind: &'static str,
}

const fn text(description: &'static str) -> Property<'static> {
    Property { kind: "string", description, allowed: None, items: None }
}

const fn texts(description: &'static str) -> Property<'static> {
    Property { kind: "array", items: Some(Items { kind: "string" }), ..text(description) }
}

const fn number(description: &'static str) -> Property<'static> {
    Property { kind: "number", ..text(description) }
}

/// A valid tool call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Call {
    /// The emoji.
    React(String),
    /// The question.
    Ask { question: String, choices: Choices },
    /// What somebody must approve before it is done.
    Approval(ApprovalRequest),
    /// `note` is shown to the person now; the answer is owed at `due`.
    Defer { note: Option<String>, due: Timestamp },
    /// The reason.
    StaySilent(String),
    /// The answer's text.
    Send(String),
    /// What it wants of the schedules of this chat.
    Schedule(ScheduleCall),
}

#[derive(Deserialize)]
struct React {
    emoji: String,
}

#[derive(Deserialize)]
struct Ask {
    question: String,
    choices: Vec<String>,
    #[serde(default)]
    free_text: Option<bool>,
    #[serde(default)]
    expires_in: Option<Number>,
}

#[derive(Deserialize)]
struct RequestApproval {
    action: String,
    #[serde(default)]
    details: Option<String>,
    #[serde(default)]
    kind: Option<String>,
}

#[derive(Deserialize)]
struct Defer {
    #[serde(default)]
    note: Option<String>,
    #[serde(default)]
    minutes: Option<Number>,
    #[serde(default)]
    seconds: Option<Number>,
    #[serde(default)]
    until: Option<String>,
}

#[derive(Deserialize)]
struct StaySilent {
    #[serde(default)]
    reason: Option<String>,
}

#[derive(Deserialize)]
struct Send {
    text: String,
}

impl Call {
    /// Parses a tool call, made now.
    ///
    /// # Errors
    /// The text to return to the model if the call is invalid.
    pub(crate) fn parse(name: &str, arguments: &str, turn: &AgentTurn, now: Timestamp) -> Result<Self, String> {
        let capabilities = &turn.capabilities;
        let arguments = if arguments.trim().is_empty() { "{}" } else { arguments };
        match name {
            "react" if capabilities.reactions != Support::No => {
                let React { emoji } = read(arguments)?;
                let emoji = emoji.trim();
                match &capabilities.allowed_reactions {
                    _ if emoji.is_empty() => Err("error: `emoji` is empty".to_owned()),
                    Some(allowed) if !allowed.iter().any(|one| one == emoji) => {
                        Err(format!("error: this emoji is not allowed here; use one of {}", allowed.join(" ")))
                    }
                    None if !looks_like_emoji(emoji) => {
                        Err("error: `emoji` must be one emoji character, such as 👍".to_owned())
                    }
                    _ => Ok(Self::React(emoji.to_owned())),
                }
            }
            REQUEST if turn.may_ask_approval => {
                let RequestApproval { action, details, kind } = read(arguments)?;
                if is_blank(&action) {
                    return Err("error: `action` is empty".to_owned());
                }
                Ok(Self::Approval(ApprovalRequest { action: action.trim().to_owned(), details, kind }))
            }
            SCHEDULE if turn.may_schedule => Ok(Self::Schedule(read::<schedule::Arguments>(arguments)?.call(now)?)),
            "ask" => read::<Ask>(arguments)?.call(now),
            DEFER if turn.may_defer.left == 0 => Err("error: you may not put this off; answer now".to_owned()),
            DEFER => {
                let defer: Defer = read(arguments)?;
                let due = defer.due(now, turn.may_defer.longest)?;
                let note = defer.note.filter(|note| !note.trim().is_empty()).map(|note| shortened(&note));
                Ok(Self::Defer { note, due })
            }
            "stay_silent" => {
                let StaySilent { reason } = read(arguments)?;
                let reason = reason.filter(|reason| !reason.trim().is_empty());
                Ok(Self::StaySilent(reason.map_or_else(|| "chosen, no reason given".to_owned(), |it| shortened(&it))))
            }
            "send" => match read(arguments)? {
                Send { text } if text.trim().is_empty() => Err("error: `text` is empty".to_owned()),
                Send { text } => Ok(Self::Send(text)),
            },
            _ => Err("error: there is no such tool; answer the person in plain text".to_owned()),
        }
    }
}

impl Ask {
    fn call(self, now: Timestamp) -> Result<Call, String> {
        let Self { question, choices, free_text, expires_in } = self;
        let (question, options) = (question.trim().to_owned(), self::choices(&choices)?);
        if question.is_empty() {
            return Err("error: `question` is empty".to_owned());
        }
        let expires = expires_in.map(|number| {
            let seconds = number.value().map(|seconds| seconds.clamp(EXPIRY.0, EXPIRY.1));
            let after = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
            after.map(|after| now + after).ok_or_else(|| "error: `expires_in` is no number of seconds".to_owned())
        });
        let expires = expires.transpose()?;
        Ok(Call::Ask { question, choices: Choices { options, free_text: free_text.unwrap_or(true), expires } })
    }
}

/// The choices of a question, if they can be told apart and fit on buttons.
fn choices(choices: &[String]) -> Result<Vec<String>, String> {
    let choices: Vec<String> = choices.iter().map(|choice| choice.trim().to_owned()).collect();
    if !CHOICES.contains(&choices.len()) {
        return Err(format!("error: `choices` must have 2 to 8 entries, not {}", choices.len()));
    }
    let mut seen = HashSet::new();
    for choice in &choices {
        if choice.is_empty() {
            return Err("error: a choice is empty".to_owned());
        }
        if choice.chars().count() > MAX_CHOICE {
            return Err(format!("error: a choice has at most {MAX_CHOICE} characters; say more in `question`"));
        }
        if !seen.insert(choice.to_lowercase()) {
            return Err(format!("error: the choice `{choice}` is listed twice"));
        }
    }
    Ok(choices)
}

impl Defer {
    fn due(&self, now: Timestamp, longest: Duration) -> Result<Timestamp, String> {
        let minutes = self.minutes.as_ref().and_then(Number::value).unwrap_or(0.0);
        let seconds = self.seconds.as_ref().and_then(Number::value).unwrap_or(0.0);
        let after = match &self.until {
            _ if minutes > 0.0 || seconds > 0.0 => Duration::try_from_secs_f64(minutes.mul_add(60.0, seconds)).ok(),
            Some(until) if !until.trim().is_empty() => {
                let until: jiff::Timestamp = until
                    .trim()
                    .parse()
                    .map_err(|_| "error: `until` is not a time in RFC 3339, such as 2030-01-31T09:00:00Z".to_owned())?;
                Some(Timestamp::from_millis(until.as_millisecond()).since(now))
            }
            _ => return Err("error: say when: `minutes`, `seconds` or `until`".to_owned()),
        };
        match after {
            Some(after) if after >= MIN_DEFER && after <= longest => Ok(now + after),
            _ => Err(format!(
                "error: the time must be at least a second from now, and {} at the latest",
                rfc3339(now + longest)
            )),
        }
    }
}

/// A time, as the model reads it.
pub(crate) fn rfc3339(at: Timestamp) -> String {
    jiff::Timestamp::from_millisecond(at.as_millis()).map_or_else(|_| "later".to_owned(), |at| at.to_string())
}

fn read<'a, T: Deserialize<'a>>(arguments: &'a str) -> Result<T, String> {
    serde_json::from_str(arguments).map_err(|error| format!("error: the arguments are not as described: {error}"))
}

/// Whether `text` may be an emoji: emoji contain no letters, and even the longest (a family, the flag of a region) have only
/// a few characters.
fn looks_like_emoji(text: &str) -> bool {
    text.chars().count() <= 16 && !text.contains(|c: char| c.is_ascii_alphabetic())
}

fn shortened(text: &str) -> String {
    text.trim().chars().take(MAX_NOTE).collect()
}

/// The choices that a model has made in a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Chosen {
    react: Option<String>,
    ask: Option<(String, Choices)>,
    approval: Option<ApprovalRequest>,
    defer: Option<(Option<String>, Timestamp)>,
    silent: Option<String>,
}

impl Chosen {
    /// Whether the answer is put off.
    pub(crate) const fn is_deferred(&self) -> bool {
        self.defer.is_some()
    }

    /// Records a choice. The last one of each kind counts.
    pub(crate) fn add(&mut self, call: Call) {
        match call {
            Call::React(emoji) => self.react = Some(emoji),
            Call::Ask { question, choices } => self.ask = Some((question, choices)),
            Call::Approval(request) => self.approval = Some(request),
            Call::Defer { note, due } => self.defer = Some((note, due)),
            Call::StaySilent(reason) => self.silent = Some(reason),
            Call::Send(_) | Call::Schedule(_) => {}
        }
    }

    /// The outcome of the choices and `text`, the visible text. `None`: the text is the answer.
    ///
    /// A turn ends in one signal, so the first of these counts:
    ///
    /// 1. a request for an approval: what was said beside it may claim that it was done;
    /// 2. a deferral, because its promise needs a debt; the text becomes its note if it has none;
    /// 3. a question, after the text if there is some;
    /// 4. silence, even with text, which then only comments on the silence; but a reaction replaces silence, because it
    ///    is silence that a person can see;
    /// 5. text;
    /// 6. a reaction.
    pub(crate) fn outcome(self, text: Option<&str>) -> Option<Outcome> {
        match self {
            Self { approval: Some(request), .. } => Some(Outcome::Approval(request)),
            Self { defer: Some((note, due)), .. } => {
                Some(Outcome::Defer { note: note.or_else(|| text.map(shortened)), due })
            }
            Self { ask: Some((question, choices)), .. } => {
                Some(Outcome::Reply(Reply::question(after(text, question), choices)))
            }
            Self { silent: Some(reason), react: None, .. } => Some(Outcome::Silent(reason)),
            Self { react: Some(emoji), silent, .. } if silent.is_some() || text.is_none() => {
                Some(Outcome::React(emoji))
            }
            _ => None,
        }
    }
}

/// A question after the text that was written beside it. Some models also write the question itself.
fn after(text: Option<&str>, question: String) -> String {
    match text.map(Shim::whole) {
        Some(text) if text.ends_with(&question) => text,
        Some(text) if !text.is_empty() => format!("{text}\n\n{question}"),
        _ => question,
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;
    use rejoinder_core::Capabilities;

    use crate::sample::{capabilities, turn};

    const NOW: Timestamp = Timestamp::from_millis(1_700_000_000_000);

    fn parse(name: &str, arguments: &str) -> Result<Call, String> {
        Call::parse(name, arguments, &at_now(), NOW)
    }

    fn at_now() -> AgentTurn {
        AgentTurn { now: NOW, ..turn("") }
    }

    fn on(capabilities: &Capabilities) -> AgentTurn {
        AgentTurn { capabilities: capabilities.clone(), ..at_now() }
    }

    fn names(turn: &AgentTurn) -> Vec<String> {
        let offer = serde_json::to_value(Offer::of(turn)).expect("an offer is JSON");
        let tools = offer.as_array().expect("a list");
        tools.iter().map(|tool| tool["function"]["name"].as_str().expect("a name").to_owned()).collect()
    }

    #[test]
    fn a_reaction_is_offered_only_where_it_can_be_shown() {
        assert_eq!(names(&at_now()), ["react", "ask", "stay_silent", "send", "defer"]);
        let without = on(&Capabilities { reactions: Support::No, ..capabilities() });
        assert_eq!(names(&without), ["ask", "stay_silent", "send", "defer"]);
        assert!(Call::parse("react", r#"{"emoji":"👍"}"#, &without, NOW).is_err());
    }

    /// A15.
    #[test]
    fn a_model_may_put_its_answer_off_only_so_often_and_for_so_long() {
        let mut last = at_now();
        last.may_defer.left = 0;
        assert!(!names(&last).contains(&"defer".to_owned()));
        assert!(Call::parse("defer", r#"{"note":"soon","minutes":5}"#, &last, NOW).is_err());

        let told = parse("defer", r#"{"note":"soon","minutes":1441}"#).expect_err("a day is the most");
        assert!(told.contains("2023-11-15T22:13:20Z at the latest"), "{told}");
    }

    /// G3.
    #[test]
    fn an_approval_is_offered_only_where_somebody_could_give_it() {
        let asking = AgentTurn { may_ask_approval: true, ..at_now() };
        let arguments = r#"{"action":" pay the rent ","kind":"bank.pay"}"#;

        assert!(names(&asking).contains(&"request_approval".to_owned()));
        assert!(!names(&at_now()).contains(&"request_approval".to_owned()));
        assert!(parse("request_approval", arguments).is_err());
        assert!(Call::parse("request_approval", r#"{"action":" "}"#, &asking, NOW).is_err());
        let (action, kind) = ("pay the rent".to_owned(), Some("bank.pay".to_owned()));
        let request = ApprovalRequest { action, details: None, kind };
        assert_eq!(Call::parse("request_approval", arguments, &asking, NOW), Ok(Call::Approval(request.clone())));
        let mut chosen = Chosen::default();
        chosen.add(Call::Defer { note: None, due: NOW });
        chosen.add(Call::Approval(request.clone()));
        assert_eq!(chosen.outcome(Some("I have paid.")), Some(Outcome::Approval(request)));
    }

    #[test]
    fn only_the_emoji_that_the_platform_allows_are_offered_and_taken() {
        let few =
            on(&Capabilities { allowed_reactions: Some(["👍".into(), "🔥".into()].into()), ..capabilities() });
        let offer = serde_json::to_value(Offer::of(&few)).expect("an offer is JSON");
        let allowed = &offer[0]["function"]["parameters"]["properties"]["emoji"]["enum"];
        assert_eq!(*allowed, serde_json::json!(["👍", "🔥"]));
        assert!(Call::parse("react", r#"{"emoji":"🔥"}"#, &few, NOW).is_ok());
        assert!(Call::parse("react", r#"{"emoji":"🦀"}"#, &few, NOW).is_err_and(|told| told.contains("👍 🔥")));
    }

    #[rstest]
    #[case(r#"{"note":"soon","minutes":2}"#, 120)]
    #[case(r#"{"note":"soon","seconds":30}"#, 30)]
    #[case(r#"{"note":"soon","minutes":"1.5","until":null}"#, 90)]
    #[case(r#"{"note":"soon","minutes":1,"seconds":5,"until":"tomorrow"}"#, 65)]
    #[case(r#"{"note":"soon","until":"2023-11-14T22:14:20Z"}"#, 60)]
    #[case(r#"{"note":"soon","until":"2023-11-14T23:14:20+01:00"}"#, 60)]
    fn a_deferral_is_due_when_the_model_says(#[case] arguments: &str, #[case] seconds: u64) {
        let due = NOW + Duration::from_secs(seconds);
        assert_eq!(parse("defer", arguments), Ok(Call::Defer { note: Some("soon".into()), due }));
    }

    #[rstest]
    #[case("react", "")]
    #[case("react", r#"{"emoji":" "}"#)]
    #[case("react", r#"{"emoji":"#)]
    #[case("react", r#"{"emoji":"thumbs_up"}"#)]
    #[case("defer", r#"{"note":"soon"}"#)]
    #[case("defer", r#"{"minutes":-5}"#)]
    #[case("defer", r#"{"minutes":1e300}"#)]
    #[case("defer", r#"{"until":"2001-01-01T00:00:00Z"}"#)]
    #[case("defer", r#"{"until":"tomorrow"}"#)]
    #[case("ask", r#"{"question":"Which?"}"#)]
    #[case("ask", r#"{"question":" ","choices":["a","b"]}"#)]
    #[case("ask", r#"{"question":"Which?","choices":["a"]}"#)]
    #[case("ask", r#"{"question":"Which?","choices":["1","2","3","4","5","6","7","8","9"]}"#)]
    #[case("ask", r#"{"question":"Which?","choices":["a"," "]}"#)]
    #[case("ask", r#"{"question":"Which?","choices":["Yes","yes "]}"#)]
    #[case("ask", r#"{"question":"Which?","choices":"a or b"}"#)]
    #[case("ask", r#"{"question":"Which?","choices":["a","b"],"expires_in":"soon"}"#)]
    #[case("send", r#"{"text":""}"#)]
    #[case("send", "[1]")]
    #[case("web_search", r#"{"query":"weather"}"#)]
    fn what_is_not_understood_is_told_to_the_model(#[case] name: &str, #[case] arguments: &str) {
        assert!(parse(name, arguments).is_err_and(|told| told.starts_with("error: ")));
    }

    fn which(options: &[&str]) -> Choices {
        Choices { options: options.iter().map(|one| (*one).to_owned()).collect(), free_text: true, expires: None }
    }

    #[rstest]
    #[case("", true, None)]
    #[case(r#","free_text":false,"expires_in":null"#, false, None)]
    #[case(r#","free_text":null,"expires_in":3600"#, true, Some(3600))]
    #[case(r#","expires_in":"90""#, true, Some(90))]
    #[case(r#","expires_in":1"#, true, Some(60))]
    #[case(r#","expires_in":-1"#, true, Some(60))]
    #[case(r#","expires_in":1e300"#, true, Some(30 * 24 * 3600))]
    fn a_question_is_open_for_as_long_as_the_model_says(
        #[case] more: &str,
        #[case] free_text: bool,
        #[case] seconds: Option<u64>,
    ) {
        let expires = seconds.map(|seconds| NOW + Duration::from_secs(seconds));
        let choices = Choices { free_text, expires, ..which(&["Tea", "Coffee"]) };
        let call = parse("ask", &format!(r#"{{"question":" Which? ","choices":["Tea "," Coffee"]{more}}}"#));
        assert_eq!(call, Ok(Call::Ask { question: "Which?".into(), choices }));
    }

    #[test]
    fn a_choice_that_fits_on_no_button_is_told_to_the_model() {
        let arguments = |length| serde_json::json!({"question": "Which?", "choices": ["a", "x".repeat(length)]});
        assert!(parse("ask", &arguments(MAX_CHOICE).to_string()).is_ok());
        assert!(parse("ask", &arguments(MAX_CHOICE + 1).to_string()).is_err_and(|told| told.contains("80")));
    }

    /// B6.
    #[test]
    fn silence_without_a_reason_is_still_chosen() {
        assert_eq!(parse("stay_silent", ""), Ok(Call::StaySilent("chosen, no reason given".into())));
    }

    /// B10.
    #[test]
    fn several_choices_come_to_one_signal() {
        let chosen = |calls: &[Call], text| {
            let mut chosen = Chosen::default();
            calls.iter().cloned().for_each(|call| chosen.add(call));
            chosen.outcome(text)
        };
        let (react, silent) = (Call::React("👍".into()), Call::StaySilent("no need".into()));
        let defer = Call::Defer { note: None, due: NOW };
        let thumb = Some(Outcome::React("👍".into()));
        let ask = Call::Ask { question: "Which?".into(), choices: which(&["a", "b"]) };
        let asked = |text: &str| Some(Outcome::Reply(Reply::question(text, which(&["a", "b"]))));

        assert_eq!(chosen(&[ask.clone(), silent.clone(), react.clone()], None), asked("Which?"));
        assert_eq!(chosen(std::slice::from_ref(&ask), Some("There are two. ")), asked("There are two.\n\nWhich?"));
        assert_eq!(chosen(std::slice::from_ref(&ask), Some("There are two. Which?")), asked("There are two. Which?"));
        assert_eq!(chosen(&[ask, defer.clone()], None), Some(Outcome::Defer { note: None, due: NOW }));

        assert_eq!(chosen(std::slice::from_ref(&react), None), thumb);
        assert_eq!(chosen(std::slice::from_ref(&react), Some("Yes.")), None, "the text is the answer");
        assert_eq!(chosen(&[silent.clone(), react.clone()], Some("I say nothing.")), thumb);
        assert_eq!(
            chosen(std::slice::from_ref(&silent), Some("I say nothing.")),
            Some(Outcome::Silent("no need".into()))
        );
        assert_eq!(
            chosen(&[react, silent, defer], Some(" Give me a minute. ")),
            Some(Outcome::Defer { note: Some("Give me a minute.".into()), due: NOW })
        );
        assert_eq!(chosen(&[], Some("Yes.")), None);
    }
}
