//! Which tools a run has, and how they are described to the model. No I/O.

use std::{borrow::Cow, sync::LazyLock};

use rejoinder_core::AgentTurn;
use serde::{Serialize, Serializer};
use serde_json::value::{RawValue, to_raw_value};

use super::{
    call::{ASK, DEFER, REACT, REQUEST_APPROVAL, SCHEDULE, SEARCH_HISTORY, SEND, STAY_SILENT, can_react},
    file::SEND_FILE,
    schedule,
};

/// A tool, as every protocol describes one.
#[derive(Clone, Debug, Serialize)]
pub struct Tool {
    /// By which it is called.
    pub name: Cow<'static, str>,
    /// For the agent.
    pub description: Cow<'static, str>,
    /// The JSON schema of its arguments: an object.
    pub parameters: Box<RawValue>,
}

/// The names of the gateway's own tools.
const OWN: [&str; 9] = [REACT, ASK, DEFER, REQUEST_APPROVAL, SCHEDULE, SEARCH_HISTORY, SEND, SEND_FILE, STAY_SILENT];

/// Whether this is the name of one of the gateway's own tools.
pub(super) fn is_own(name: &str) -> bool {
    OWN.contains(&name)
}

/// The tools for a run of this turn.
pub(crate) fn offered(turn: &AgentTurn) -> Vec<Cow<'static, Tool>> {
    let react = can_react(turn).then(|| match turn.place.capabilities.allowed_reactions.as_deref() {
        None => Cow::Borrowed(&*REACT_TOOL),
        allowed => Cow::Owned(react(allowed)),
    });
    let others = [
        (turn.rights.may_defer.left > 0, &*DEFER_TOOL),
        (turn.rights.may_ask_approval, &*APPROVAL_TOOL),
        (turn.rights.may_schedule, &*SCHEDULE_TOOL),
    ];
    let others = others.into_iter().filter_map(|(may, tool)| may.then_some(tool));
    react.into_iter().chain(EVERYWHERE.iter().chain(others).map(Cow::Borrowed)).collect()
}

/// The tools for an agent that calls them itself, in a run of this turn: it can wait for an approval and for an answer, and gets no more of
/// the history than its requests hold.
pub(super) fn offered_to_callers(turn: &AgentTurn) -> Vec<Cow<'static, Tool>> {
    let waiting = |tool: Cow<'static, Tool>| match &*tool.name {
        REQUEST_APPROVAL => Cow::Borrowed(&*WAITING_APPROVAL_TOOL),
        ASK if turn.rights.may_ask_person => Cow::Borrowed(&*WAITING_ASK_TOOL),
        _ => tool,
    };
    offered(turn).into_iter().map(waiting).chain([Cow::Borrowed(&*SEARCH_TOOL)]).collect()
}

/// The tool that is offered only where a reaction can be shown. `allowed`: the only emoji that the platform shows.
fn react(allowed: Option<&[String]>) -> Tool {
    Tool::new(
        REACT,
        "Answer with one emoji on the person's message instead of words. For thanks, agreement, or when \
                 nothing needs to be said. Ends your turn.",
        vec![("emoji", Property { allowed, ..text("The emoji.") })],
        &["emoji"],
    )
}

/// The same where any emoji is shown.
static REACT_TOOL: LazyLock<Tool> = LazyLock::new(|| react(None));

/// The tool that asks the person. `wait`: what waits for the answer, where a call can.
fn ask(description: &'static str, wait: Option<Property<'_>>) -> Tool {
    let mut properties = vec![
        ("question", text("The question, in Markdown, in their language. Do not list the choices in it.")),
        ("choices", texts("2 to 8 different choices, each of a few words.")),
        ("free_text", flag("Whether they may also answer in their own words; true if left out.")),
        (
            "expires_in",
            number(
                "In how many seconds the question expires, if it must. The person is told then that nobody answered.",
            ),
        ),
    ];
    properties.extend(wait.map(|wait| ("wait", wait)));
    Tool::new(ASK, description, properties, &["question", "choices"])
}

/// The tools that every channel has.
static EVERYWHERE: LazyLock<[Tool; 4]> = LazyLock::new(|| {
    [
        ask(
            "Ask the person a question with choices to press. When you need a decision and know what there is to choose \
             from. The question is your answer; what they pick comes as their next message. Ends your turn.",
            None,
        ),
        Tool::new(
            STAY_SILENT,
            "Say nothing. Only when the message is not meant for you or needs no answer. Ends your turn.",
            vec![("reason", text("Why; the person does not see it."))],
            &["reason"],
        ),
        Tool::new(
            SEND,
            "Send your whole answer at once and end your turn. Usually you just write your answer as text instead.",
            vec![("text", text("The answer, in Markdown."))],
            &["text"],
        ),
        Tool::new(
            SEND_FILE,
            "Add a file to your answer: a picture, a document, a recording. It is sent with what you write at the end of your \
             turn, or alone if you write nothing. At most 10 in one answer.",
            vec![
                ("name", text("Its name, with an ending that fits: chart.png.")),
                ("media_type", text("Its media type: image/png.")),
                ("data", text("Its bytes, in Base64.")),
                ("url", text("Or, instead of `data`, its https:// address, which the person opens.")),
            ],
            &["name"],
        ),
    ]
});

/// The tool that is offered as long as the model may defer the turn.
static DEFER_TOOL: LazyLock<Tool> = LazyLock::new(|| {
    Tool::new(
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
    )
});

/// The tool that is offered only where somebody could approve.
static APPROVAL_TOOL: LazyLock<Tool> = LazyLock::new(|| {
    Tool::new(
        REQUEST_APPROVAL,
        "Ask for approval before you do something that cannot be undone, costs money, or speaks for others. You cannot know \
         the decision now: you will be asked again with it, perhaps days later, and must not act before. Ends your turn.",
        vec![
            ("action", text("What you want to do, complete and exact, in one sentence: it is what is approved.")),
            ("details", text("What the approver should know: for example the text that you want to send.")),
            ("kind", text("The kind of action, as an area and a verb: email.send, calendar.add, shop.order.")),
        ],
        &["action"],
    )
});

/// The same for an agent that can wait for the decision.
static WAITING_APPROVAL_TOOL: LazyLock<Tool> =
    LazyLock::new(|| Tool { description: WAITING_APPROVAL.into(), ..APPROVAL_TOOL.clone() });

const WAITING_APPROVAL: &str = "Ask for approval before you do something that cannot be undone, costs money, or speaks for \
    others. Returns the decision, perhaps after hours: do not act before. If the call ends without one, end your turn: you will be \
    asked again with the decision.";

/// The same for an agent that can wait for the answer.
static WAITING_ASK_TOOL: LazyLock<Tool> = LazyLock::new(|| {
    ask(
        "Ask the person a question with choices to press. When you need a decision and know what there is to choose from. With \
         `wait` it returns what they answer, perhaps after hours, and your turn goes on. Without it the question is your answer and \
         ends your turn; what they pick comes as their next message.",
        Some(flag(
            "Whether to wait for the answer in the middle of your work; false if left out. Not with `expires_in`. If the call ends \
             without an answer, end your turn: you will be asked again with the answer.",
        )),
    )
});

/// The tool that is offered to agents that call tools themselves.
static SEARCH_TOOL: LazyLock<Tool> = LazyLock::new(|| {
    Tool::new(
        SEARCH_HISTORY,
        "Search what was said in this chat before, by the person and by you, also before the history that you were given. Returns the \
         newest lines, at most 20, with all of the words.",
        vec![("query", text("Words; those in quotation marks must follow each other. The last word may go on."))],
        &["query"],
    )
});

/// The tool that is offered only where the gateway can speak first.
static SCHEDULE_TOOL: LazyLock<Tool> = LazyLock::new(|| {
    Tool::new(
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
                flag("Whether you may stay silent after the task if there is nothing to say; false if left out."),
            ),
            ("in_minutes", number("When: in how many minutes, once.")),
            ("at", text("Or at which time, once: RFC 3339, or 2030-01-31T09:00 in `time_zone`.")),
            ("every_minutes", number("Or again and again, in how many minutes.")),
            ("cron", text("Or at the times of a cron pattern of five fields: 0 8 * * MON-FRI.")),
            ("time_zone", text("The time zone of `at` and `cron`, such as Europe/Vienna; UTC if left out.")),
        ],
        &["action"],
    )
});

impl Tool {
    fn new(
        name: &'static str,
        description: &'static str,
        properties: Vec<(&'static str, Property<'_>)>,
        required: &'static [&'static str],
    ) -> Self {
        let parameters = Parameters { kind: "object", properties: Properties(properties), required };
        let parameters = to_raw_value(&parameters).expect("texts and lists serialise to JSON");
        Self { name: name.into(), description: description.into(), parameters }
    }
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

const fn flag(description: &'static str) -> Property<'static> {
    Property { kind: "boolean", ..text(description) }
}

const fn number(description: &'static str) -> Property<'static> {
    Property { kind: "number", ..text(description) }
}
