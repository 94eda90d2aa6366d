//! The built-in agent, used when none is configured.

use std::{fmt::Write as _, time::Duration};

use async_trait::async_trait;
use rejoinder_config::{AgentSection, Section};
use rejoinder_core::{AgentError, AgentRuntime, AgentTurn, Outcome, Reply, RunEvents, Timestamp};
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

/// What the front desk reports about its gateway.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Status {
    /// Such as `0.1.0`.
    pub version: String,
    pub started: Timestamp,
    /// Such as `webchat.main`.
    pub channels: Vec<String>,
}

/// Answers `help`, `status`, `ping` and greetings. To anything else it answers that no agent is configured, and how to
/// configure one. Needs no key and no network.
///
/// On hooks it answers in plain sentences, because they are spoken.
pub struct FrontDesk {
    status: Box<dyn Fn() -> Status + Send + Sync>,
}

impl std::fmt::Debug for FrontDesk {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FrontDesk").finish_non_exhaustive()
    }
}

impl FrontDesk {
    /// Calls `status` each time a person asks for it.
    pub fn new(status: impl Fn() -> Status + Send + Sync + 'static) -> Self {
        Self { status: Box::new(status) }
    }

    fn answer(&self, turn: &AgentTurn) -> String {
        let spoken = turn.conversation.channel.platform() == "webhook";
        match Wish::of(&turn.text) {
            Wish::Help if spoken => SPOKEN_HELP.to_owned(),
            Wish::Help => HELP.to_owned(),
            Wish::Status => (self.status)().describe(turn.now, spoken),
            Wish::Ping if spoken => "Pong.".to_owned(),
            Wish::Ping => "pong".to_owned(),
            Wish::Greeting if spoken => SPOKEN_GREETING.to_owned(),
            Wish::Greeting => GREETING.to_owned(),
            Wish::Other if spoken => SPOKEN_NO_AGENT.to_owned(),
            Wish::Other => NO_AGENT.to_owned(),
        }
    }
}

#[async_trait]
impl AgentRuntime for FrontDesk {
    fn describe(&self) -> String {
        "front-desk (no agent is configured)".to_owned()
    }

    async fn run(&self, turn: AgentTurn, _: RunEvents, _: CancellationToken) -> Result<Outcome, AgentError> {
        Ok(Outcome::Reply(Reply::text(self.answer(&turn))))
    }
}

const HELP: &str = "\
I am the front desk of this Rejoinder gateway. I understand:

- `status`: what this gateway is doing
- `ping`: whether it is there
- `help`: this list

There is no agent behind me yet. Run `rejoinder init` to connect one.";

const SPOKEN_HELP: &str = "I am the front desk of this gateway. You can ask me for help, status or ping. \
There is no agent behind me yet. To connect one, run rejoinder init on the computer where the gateway runs.";

const GREETING: &str = "Hello! I am the front desk of this Rejoinder gateway. There is no agent behind me yet; \
say `help` to see what I can do, or run `rejoinder init` to connect one.";

const SPOKEN_GREETING: &str = "Hello! I am the front desk of this gateway. There is no agent behind me yet. \
Say help to hear what I can do.";

const NO_AGENT: &str = "\
Your message arrived, but no agent is configured yet, so I cannot answer it properly. To connect one, run \
`rejoinder init`, or put this into `rejoinder.toml` and restart:

```toml
[agents.main]
kind = \"openai\"
base_url = \"http://127.0.0.1:11434/v1\"
model = \"llama3.1\"

[routing]
default_agent = \"main\"
```

Any OpenAI-compatible server will do. Say `help` for what I can do meanwhile.";

const SPOKEN_NO_AGENT: &str = "Your message arrived, but no agent is configured yet, so I cannot answer it. \
To connect one, run rejoinder init on the computer where the gateway runs.";

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
        let status = Status { version: "0.1.0".into(), started: Timestamp::from_millis(0), channels: vec![] };
        let status = status.describe(Timestamp::from_millis(120_000), true);
        for spoken in [SPOKEN_HELP, SPOKEN_GREETING, SPOKEN_NO_AGENT, &status] {
            assert!(!spoken.contains(['`', '*', '#', '\n', '[', '_']), "{spoken}");
        }
    }
}
