//! `rejoinder ask`: one question, one answer, and an exit code that says what became of it.

use std::{
    io::{IsTerminal, Read},
    path::PathBuf,
    time::Duration,
};

use anyhow::{Context, anyhow};
use clap::Args;
use rejoinder_core::{SignalKind, TurnStatus};
use tokio::time::{Instant, error::Elapsed, timeout, timeout_at};

use super::{
    block::{Progress, block, file},
    book::Book,
    connection::{Connection, Event},
    door::{ChatName, Conversation, Door},
    frames::{Signal, Turn},
    outbox::Say,
    upload::{self, Upload},
};
use crate::{
    failure::Failure,
    output::{self, printable},
};

/// The longest time that a command may be told to wait, in seconds: a year.
pub const MAX_WAIT: u64 = 365 * 24 * 60 * 60;

/// How long to wait for the answer, in seconds, unless --wait says otherwise.
const WAIT: u64 = 600;

/// The longest text, in UTF-8 bytes: the web chat takes no longer message.
const MAX_TEXT: u64 = 64 * 1024;

/// How long the gateway may take to store the question, also if --wait is less.
const ACCEPT_WAIT: Duration = Duration::from_secs(10);

/// How long an interrupted command waits for the turn to stop.
const STOP_WAIT: Duration = Duration::from_secs(5);

/// The exit code when the answer takes longer than --wait.
const LATE: u8 = 3;

/// The exit code after Ctrl-C, as shells have it.
const INTERRUPTED: u8 = 130;

pub const HELP: &str = "\
Standard output gets the answer and nothing else: its text as Markdown, or the emoji of a reaction. What the gateway says in the
agent's place, deferrals, choices and files go to standard error. The question is a message in a web chat of the running gateway.

Exit code:
  0    the agent answered, or the gateway did what a command (/status) asked for
  1    the agent gave no answer: the gateway spoke in its place, the turn was cancelled, undeliverable or silent, or the gateway
       cannot be reached
  2    wrong arguments, or an invalid configuration
  3    there is no answer yet after --wait; the gateway goes on with it
  130  interrupted (Ctrl-C); the turn is stopped

Examples:
  rejoinder ask \"Which disks are full?\"
  git diff | rejoinder ask > review.md
  rejoinder ask \"What is wrong here?\" --file screenshot.png --file app.log
  rejoinder ask --continue \"And yesterday?\"
  rejoinder ask --json --wait 60 < question.txt";

#[derive(Debug, Args)]
pub struct Ask {
    /// The question, as Markdown; if not given, or `-`: standard input
    text: Option<String>,
    #[command(flatten)]
    chat: ChatName,
    /// A file to send with it; may be repeated
    #[arg(long, value_name = "FILE")]
    file: Vec<PathBuf>,
    /// Ask in the conversation of `rejoinder chat`, which is kept, instead of a new one
    #[arg(long = "continue")]
    continues: bool,
    /// How many seconds to wait for the answer; 0: only until the question is stored
    #[arg(long, value_name = "SECONDS", default_value_t = WAIT, value_parser = clap::value_parser!(u64).range(..=MAX_WAIT))]
    wait: u64,
    /// Print the turn as JSON, whatever became of it
    #[arg(long)]
    json: bool,
}

impl Ask {
    /// Asks in the web chat that `find` finds by its name.
    ///
    /// # Errors
    /// When there is no answer.
    pub async fn perform<F>(&self, find: F) -> Result<(), Failure>
    where
        F: FnOnce(Option<&str>) -> Result<Box<dyn Door>, Failure>,
    {
        let text = self.text()?;
        self.check_files()?;
        let door = find(self.chat.chat.as_deref())?;
        let conversation =
            door.conversation(if self.continues { Conversation::Kept } else { Conversation::Passing })?;
        let mut question = if self.file.is_empty() {
            Question::ask(Connection::open(door, conversation), text)
        } else {
            let upload = Upload {
                url: upload::url_of(&door.url()?),
                token: door.token().cloned(),
                conversation: conversation.clone(),
                id: uuid::Uuid::new_v4().simple().to_string(),
                text,
                files: self.file.clone(),
            };
            Question::with_files(Connection::open(door, conversation), upload)
        };
        let deadline = Instant::now() + Duration::from_secs(self.wait);
        let ended = tokio::select! {
            ended = question.ended_by(deadline) => ended,
            interrupted = tokio::signal::ctrl_c() => {
                interrupted.context("cannot wait for Ctrl-C")?;
                return question.stop().await;
            }
        };
        if let Ok(Err(why)) = ended {
            return Err(anyhow!("{why}").into());
        }
        let turn = question.turn().cloned();
        if self.json
            && let Some(turn) = &turn
        {
            output::print_json(turn)?;
        }
        match turn {
            Some(turn) if turn.is_final() => self.tell(&turn, &question.agent),
            turn => Err(late(turn.as_ref(), question.id.as_deref())),
        }
    }

    fn text(&self) -> Result<String, Failure> {
        let text = match self.text.as_deref().filter(|text| *text != "-") {
            Some(text) => text.to_owned(),
            None if self.text.is_none() && std::io::stdin().is_terminal() => {
                if !self.file.is_empty() {
                    return Ok(String::new());
                }
                let what = "what is the question? Pass it as an argument or through standard input; `rejoinder chat` is for talking";
                return Err(Failure::Usage(what.to_owned()));
            }
            None => {
                let (mut bytes, stdin) = (Vec::new(), std::io::stdin().lock());
                stdin.take(MAX_TEXT + 1).read_to_end(&mut bytes).context("cannot read standard input")?;
                checked_size(bytes.len())?;
                String::from_utf8(bytes).map_err(|_| Failure::Usage("the question is not UTF-8 text".to_owned()))?
            }
        };
        checked_size(text.len())?;
        let text = text.trim_end();
        if text.trim().is_empty() && self.file.is_empty() {
            return Err(Failure::Usage("the question is empty".to_owned()));
        }
        Ok(text.to_owned())
    }

    fn check_files(&self) -> Result<(), Failure> {
        for path in &self.file {
            if !path.is_file() {
                return Err(Failure::Usage(format!("{} is no file that can be read", path.display())));
            }
        }
        Ok(())
    }

    /// Prints what became of the question.
    fn tell(&self, turn: &Turn, agent: &str) -> Result<(), Failure> {
        let answer = answer(turn);
        if let Some(shown) = answer
            && !self.json
        {
            output::print_untrusted(shown.text.trim_end())?;
        }
        if let Some(shown) = &turn.shown {
            for note in notes(shown) {
                output::remark(note);
            }
        }
        if answer.is_some() { Ok(()) } else { Err(anyhow!("{}", instead(turn, agent)).into()) }
    }
}

fn checked_size(bytes: usize) -> Result<(), Failure> {
    if bytes as u64 > MAX_TEXT {
        return Err(Failure::Usage(format!("the question is longer than {MAX_TEXT} bytes")));
    }
    Ok(())
}

/// What answers the question, if anything does: the agent, or the gateway that was asked for something.
fn answer(turn: &Turn) -> Option<&Signal> {
    turn.shown
        .as_ref()
        .filter(|shown| turn.status == TurnStatus::Answered && shown.signal != SignalKind::Deferral && !shown.fallback)
}

/// What is told of an answer beside its text.
fn notes(shown: &Signal) -> Vec<String> {
    let choices = (1..).zip(&shown.choices).map(|(number, choice)| printable(&format!("[choice] {number}. {choice}")));
    choices.chain(shown.files.iter().map(file)).collect()
}

/// What there is instead of an answer, on one line.
fn instead(turn: &Turn, agent: &str) -> String {
    match block(turn, Progress::default(), agent) {
        Some(block) if block.body.is_empty() => block.head.trim_matches(['(', ')']).to_owned(),
        Some(block) => format!("{}: {}", block.head, block.body),
        None => "there is no answer".to_owned(),
    }
}

fn late(turn: Option<&Turn>, id: Option<&str>) -> Failure {
    let Some(id) = id else {
        return anyhow!("the gateway has not accepted the question in time").into();
    };
    let what = match turn.map(|turn| turn.status) {
        Some(TurnStatus::Deferred) => "the answer is deferred",
        _ => "there is no answer yet",
    };
    Failure::Coded { code: LATE, why: format!("{what}. The gateway goes on with it: rejoinder turns show {id}") }
}

/// A question and its state.
struct Question {
    connection: Connection,
    /// The message's id.
    message: String,
    text: String,
    /// Its files, which are not sent yet.
    upload: Option<Upload>,
    /// The turn that was accepted for it.
    id: Option<String>,
    agent: String,
    book: Book,
    is_deferral_told: bool,
}

impl Question {
    fn ask(connection: Connection, text: String) -> Self {
        let message = connection.say(Say::Text(text.clone()));
        Self::new(connection, message, text)
    }

    fn with_files(connection: Connection, upload: Upload) -> Self {
        let question = Self::new(connection, upload.id.clone(), upload.text.clone());
        Self { upload: Some(upload), ..question }
    }

    fn new(connection: Connection, message: String, text: String) -> Self {
        Self {
            connection,
            message,
            text,
            upload: None,
            id: None,
            agent: String::new(),
            book: Book::default(),
            is_deferral_told: false,
        }
    }

    /// The turn that answers it, in its latest state.
    fn turn(&self) -> Option<&Turn> {
        let id = self.id.as_deref()?;
        self.book.answering(id).or_else(|| self.book.turn(id))
    }

    /// Waits until the gateway has stored it.
    async fn accepted(&mut self) -> Result<(), String> {
        if let Some(upload) = self.upload.take() {
            // The socket finds out whether there is a gateway.
            while self.agent.is_empty() {
                self.take_in().await?;
            }
            let turn = upload.send().await?.ok_or("the gateway did not take the question")?;
            self.book.learn(Turn::accepted(turn.clone(), self.text.clone()));
            self.id = Some(turn);
        }
        while self.id.is_none() {
            self.take_in().await?;
        }
        Ok(())
    }

    /// Waits until it has ended, or the time is up, but in any case for a while until it is stored.
    async fn ended_by(&mut self, deadline: Instant) -> Result<Result<(), String>, Elapsed> {
        let stored_by = deadline.max(Instant::now() + ACCEPT_WAIT);
        match timeout_at(stored_by, self.accepted()).await? {
            Ok(()) => timeout_at(deadline, self.ended()).await,
            refused => Ok(refused),
        }
    }

    /// Waits until it has ended.
    async fn ended(&mut self) -> Result<(), String> {
        loop {
            if let Some(turn) = self.turn() {
                if turn.is_final() && (turn.shown.is_some() || turn.merged_into.is_none()) {
                    return Ok(());
                }
                if turn.status == TurnStatus::Deferred && !self.is_deferral_told {
                    output::remark(instead(turn, &self.agent));
                    self.is_deferral_told = true;
                }
            }
            self.take_in().await?;
        }
    }

    /// Handles the next frame of the gateway.
    async fn take_in(&mut self) -> Result<(), String> {
        match self.connection.next().await {
            Event::Welcome(welcome) => {
                if !self.agent.is_empty() {
                    output::remark("The gateway is back.");
                }
                self.agent = welcome.agent;
                for turn in welcome.turns {
                    self.book.learn(turn);
                }
            }
            Event::Lost => output::remark("The connection to the gateway is lost. Trying again."),
            Event::Accepted { id, turn: Some(turn) } if id == self.message => {
                self.book.learn(Turn::accepted(turn.clone(), self.text.clone()));
                self.id = Some(turn);
            }
            Event::Refused { id, why } if id.as_ref().is_none_or(|id| *id == self.message) => {
                return Err(why);
            }
            Event::Turn(turn) => drop(self.book.learn(*turn)),
            Event::Ended(why) => return Err(why),
            Event::Accepted { .. } | Event::Refused { .. } | Event::Draft { .. } | Event::Typing { .. } => {}
        }
        Ok(())
    }

    /// Stops it, because the person has interrupted this command.
    async fn stop(&mut self) -> Result<(), Failure> {
        self.connection.stop();
        // Whether it stops or not, the person wants to leave.
        let stopped = timeout(STOP_WAIT, self.ended()).await;
        let why = match stopped {
            Ok(Ok(())) => "interrupted".to_owned(),
            _ => "interrupted; whether the gateway stopped it is not known".to_owned(),
        };
        Err(Failure::Coded { code: INTERRUPTED, why })
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::{Value, json};

    use super::{
        super::frames::examples::{reply, turn},
        *,
    };

    fn by_gateway(kind: &str, is_fallback: bool) -> Value {
        json!({ "signal": kind, "text": "words", "fallback": is_fallback, "at": "2026-01-01T10:00:01.000Z" })
    }

    #[rstest]
    #[case("answered", reply("hi"), Ok("hi"))]
    #[case("answered", json!({ "signal": "reaction", "agent": "main", "text": "👍", "at": "2026-01-01T10:00:01.000Z" }), Ok("👍"))]
    #[case("answered", by_gateway("reply", false), Ok("words"))]
    #[case("answered", by_gateway("reply", true), Err("gateway, as main gave no answer: words"))]
    #[case("cancelled", json!(null), Err("Stopped."))]
    #[case("silent", json!(null), Err("main says nothing: no answer was owed."))]
    #[case("undeliverable", json!(null), Err("No answer could be delivered. Why: rejoinder turns explain t1"))]
    fn the_outcome_decides(#[case] status: &str, #[case] shown: Value, #[case] expected: Result<&str, &str>) {
        let turn = turn(status, &shown);

        let told = answer(&turn).map(|shown| &*shown.text).ok_or_else(|| instead(&turn, "main"));

        assert_eq!(told, expected.map_err(str::to_owned));
    }

    #[test]
    fn what_is_late_has_a_code_of_its_own() {
        let deferred = turn("deferred", &by_gateway("deferral", false));

        let (known, unknown) = (late(Some(&deferred), Some("t1")), late(None, None));

        assert_eq!((known.exit_code(), unknown.exit_code()), (3, 1));
        assert_eq!(known.to_string(), "the answer is deferred. The gateway goes on with it: rejoinder turns show t1");
    }

    #[test]
    fn choices_and_files_are_notes() {
        let mut question = reply("Which?");
        question["choices"] = json!(["this", "th\u{1b}at"]);
        let asked = turn("answered", &question);

        assert_eq!(notes(asked.shown.as_ref().unwrap()), ["[choice] 1. this", "[choice] 2. th\u{fffd}at"]);
    }
}
