//! The built-in agent, used when none is configured.

use std::{fmt::Write as _, time::Duration};

use async_trait::async_trait;
use rejoinder_config::{AgentSection, Section};
use rejoinder_core::{
    AgentError, AgentRuntime, AgentTurn, HistoryLine, LineState, Outcome, Reply, RunEvents, Speaker, Timestamp,
};
use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;

/// `kind = "front-desk"`: has no settings.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct FrontDeskSection {}

impl Section for FrontDeskSection {}

impl AgentSection for FrontDeskSection {
    const KIND: &'static str = "front-desk";
    const MANUAL: &'static str = include_str!("../front_desk.toml");
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Status {
    /// Such as `0.1.0`.
    pub version: String,
    pub started: Timestamp,
    /// Such as `webchat.main`.
    pub channels: Vec<String>,
    pub next_step: NextStep,
}

/// What the operator does next to connect an agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NextStep {
    /// Run this command line: there is no configuration file.
    Init(String),
    /// Add an agent to this configuration file; the command line does it.
    Add { file: String, command: String },
    /// Restart the gateway: the configuration file has changed since the start.
    Restart,
}

/// Answers `help`, `status`, `ping` and greetings. To anything else it answers that no agent is configured, and how to
/// configure one: at length for the first time in a conversation, then in a line. Needs no key and no network.
///
/// On hooks it answers in plain sentences, because they are spoken.
pub struct FrontDesk {
    status: Box<dyn Fn() -> Status + Send + Sync>,
}

impl FrontDesk {
    pub fn new(status: impl Fn() -> Status + Send + Sync + 'static) -> Self {
        Self { status: Box::new(status) }
    }

    fn answer(&self, turn: &AgentTurn) -> String {
        let spoken = turn.place.conversation.channel.platform() == "webhook";
        let status = (self.status)();
        let next_step = &status.next_step;
        match Wish::of(&turn.message.text) {
            Wish::Help if spoken => format!("{SPOKEN_HELP} {}", next_step.spoken()),
            Wish::Help => format!("{HELP} {}", next_step.written()),
            Wish::Status => status.describe(turn.now, spoken),
            Wish::Ping if spoken => "Pong.".to_owned(),
            Wish::Ping => "pong".to_owned(),
            Wish::Greeting if spoken => SPOKEN_GREETING.to_owned(),
            Wish::Greeting => format!("{GREETING} {}", next_step.written()),
            Wish::Other if spoken => format!("{NO_AGENT}. {}", next_step.spoken()),
            Wish::Other if turn.past.history.iter().any(|line| says_no_agent(line)) => {
                format!("There is still no agent that could answer this. {}", next_step.written())
            }
            Wish::Other => next_step.explained(),
        }
    }
}

#[async_trait]
impl AgentRuntime for FrontDesk {
    fn describe(&self) -> String {
        "front-desk (no agent is configured)".to_owned()
    }

    fn history(&self) -> usize {
        HISTORY
    }

    async fn run(&self, turn: AgentTurn, _: RunEvents, _: CancellationToken) -> Result<Outcome, AgentError> {
        Ok(Outcome::Reply(Reply::text(self.answer(&turn))))
    }
}

/// How many lines of the conversation tell whether the long answer was given before.
const HISTORY: usize = 20;

const HELP: &str = "\
I am the front desk of this Rejoinder gateway. I understand:

- `status`: what this gateway is doing
- `ping`: whether it is there
- `help`: this list

There is no agent behind me yet.";

const SPOKEN_HELP: &str = "I am the front desk of this gateway. You can ask me for help, status or ping. \
There is no agent behind me yet.";

const GREETING: &str = "Hello! I am the front desk of this Rejoinder gateway. There is no agent behind me yet; \
say `help` to see what I can do.";

const SPOKEN_GREETING: &str = "Hello! I am the front desk of this gateway. There is no agent behind me yet. \
Say help to hear what I can do.";

/// How the long answer begins.
const NO_AGENT: &str = "Your message arrived, but no agent is configured yet, so I cannot answer it";

/// The end of the long answer: what an agent looks like in the file.
const EXAMPLE: &str = "In the configuration file an agent looks like this; any OpenAI-compatible server will do:

```toml
[agents.main]
kind = \"openai\"
base_url = \"http://127.0.0.1:11434/v1\"
model = \"llama3.1\"
```

Say `help` for what I can do meanwhile.";

fn says_no_agent(line: &HistoryLine) -> bool {
    line.speaker == Speaker::Agent && line.state == LineState::Seen && line.text.starts_with(NO_AGENT)
}

impl NextStep {
    fn written(&self) -> String {
        match self {
            Self::Init(command) => {
                format!(
                    "To connect one, run `{command}` on the computer where the gateway runs, and restart the gateway."
                )
            }
            Self::Add { file, command } => {
                format!("To connect one, add it to `{file}` by hand or with `{command}`, and restart the gateway.")
            }
            Self::Restart => "The configuration has changed since the gateway was started: restart it.".to_owned(),
        }
    }

    const fn spoken(&self) -> &'static str {
        match self {
            Self::Init(_) => "To connect one, run rejoinder init on the computer where the gateway runs.",
            Self::Add { .. } => {
                "To connect one, add it to the configuration file of the gateway, and restart the gateway."
            }
            Self::Restart => "The configuration has changed since the gateway was started: restart it.",
        }
    }

    /// The long answer to a message that only an agent could answer.
    fn explained(&self) -> String {
        match self {
            Self::Init(_) | Self::Add { .. } => format!("{NO_AGENT}. {}\n\n{EXAMPLE}", self.written()),
            Self::Restart => format!("{NO_AGENT}. {}", self.written()),
        }
    }
}

impl Status {
    fn describe(&self, now: Timestamp, spoken: bool) -> String {
        let up = duration_text(now.since(self.started));
        let mut text = format!("Rejoinder {} has been running for {up}. No agent is configured yet.", self.version);
        if spoken {
            let _ = match self.channels.len() {
                0 => Ok(()),
                1 => write!(text, " It serves one channel."),
                count => write!(text, " It serves {count} channels."),
            };
        } else if !self.channels.is_empty() {
            let _ = write!(text, "\n\nChannels: `{}`", self.channels.join("`, `"));
        }
        text
    }
}

/// A duration in its largest unit, in words.
fn duration_text(duration: Duration) -> String {
    let seconds = duration.as_secs();
    let (count, unit) = match seconds {
        0..60 => return "less than a minute".to_owned(),
        60..3_600 => (seconds / 60, "minute"),
        3_600..172_800 => (seconds / 3_600, "hour"),
        _ => (seconds / 86_400, "day"),
    };
    format!("{count} {unit}{}", if count == 1 { "" } else { "s" })
}

/// What a person asks of the front desk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wish {
    Help,
    Status,
    Ping,
    Greeting,
    Other,
}

const GREETINGS: [&str; 16] = [
    "hi",
    "hello",
    "hey",
    "hiya",
    "howdy",
    "greetings",
    "good morning",
    "good afternoon",
    "good evening",
    "hallo",
    "moin",
    "servus",
    "hola",
    "bonjour",
    "ciao",
    "start",
];

impl Wish {
    fn of(text: &str) -> Self {
        let words: Vec<String> = text
            .split_whitespace()
            // In a Telegram group `/help@name` says which member is addressed.
            .map(|word| word.strip_prefix('/').and_then(|word| word.split('@').next()).unwrap_or(word))
            .map(|word| word.trim_matches(|c: char| !c.is_alphanumeric() && c != '?').to_lowercase())
            .filter(|word| !word.is_empty())
            .collect();
        let said = words.join(" ");
        match said.trim_end_matches('?') {
            "" if said.is_empty() => Self::Other,
            "" | "help" | "help me" | "help please" => Self::Help,
            "status" => Self::Status,
            "ping" => Self::Ping,
            said => {
                let greets = |greeting: &&str| {
                    said.strip_prefix(*greeting).is_some_and(|rest| rest.is_empty() || rest.starts_with(' '))
                };
                if words.len() <= 3 && GREETINGS.iter().any(greets) { Self::Greeting } else { Self::Other }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("help", Wish::Help)]
    #[case(" HELP! ", Wish::Help)]
    #[case("/help@rejoinder", Wish::Help)]
    #[case("?", Wish::Help)]
    #[case("/status", Wish::Status)]
    #[case("Status?", Wish::Status)]
    #[case("Ping.", Wish::Ping)]
    #[case("/ping", Wish::Ping)]
    #[case("Hello!", Wish::Greeting)]
    #[case("hey there", Wish::Greeting)]
    #[case("¡Hola!", Wish::Greeting)]
    #[case("Good morning, Ada", Wish::Greeting)]
    #[case("/start", Wish::Greeting)]
    #[case("hi, can you book me a train?", Wish::Other)]
    #[case("history of Rome", Wish::Other)]
    #[case("help me move house", Wish::Other)]
    #[case("pinged", Wish::Other)]
    #[case("", Wish::Other)]
    #[case("👍", Wish::Other)]
    fn a_wish_is_understood_in_any_case_and_with_any_punctuation(#[case] text: &str, #[case] wish: Wish) {
        assert_eq!(Wish::of(text), wish);
    }

    #[rstest]
    #[case(0, "less than a minute")]
    #[case(60, "1 minute")]
    #[case(7_199, "1 hour")]
    #[case(172_800, "2 days")]
    fn a_duration_is_told_in_its_largest_unit(#[case] seconds: u64, #[case] told: &str) {
        assert_eq!(duration_text(Duration::from_secs(seconds)), told);
    }

    #[test]
    fn what_is_spoken_has_no_markup() {
        let add = NextStep::Add { file: "re_joinder.toml".into(), command: "`rejoinder` init".into() };
        let started = Timestamp::from_millis(0);
        let status = Status { version: "0.1.0".into(), started, channels: vec![], next_step: add.clone() };
        let status = status.describe(Timestamp::from_millis(120_000), true);
        let steps = [NextStep::Init("`rejoinder` init".into()), add, NextStep::Restart];
        let steps = steps.each_ref().map(NextStep::spoken);
        for spoken in [SPOKEN_HELP, SPOKEN_GREETING, NO_AGENT, &status].into_iter().chain(steps) {
            assert!(!spoken.contains(['`', '*', '#', '\n', '[', '_']), "{spoken}");
        }
    }
}
