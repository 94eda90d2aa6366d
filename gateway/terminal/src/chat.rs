//! `rejoinder chat`: a conversation in the terminal.

use std::{
    collections::HashMap,
    io::{IsTerminal, stdin, stdout},
    time::Duration,
};

use anyhow::{Context, anyhow};
use clap::Args;
use rustix::{
    process::Signal,
    termios::{OptionalActions, Termios, tcgetattr, tcgetwinsize, tcsetattr},
};
use tokio::{
    signal::unix::{SignalKind, signal},
    task::JoinSet,
    time::{Instant, sleep_until},
};

use super::{
    block::{Progress, block},
    book::Book,
    connection::{Connection, Event},
    door::{ChatName, Conversation, Door},
    editor::{Input, PROMPT, Prompt},
    frames::{Turn, Welcome},
    outbox::Say,
    save::{files_to_save, save_file},
    screen::{Room, Screen, row_count},
};
use crate::{
    failure::Failure,
    output::{self, excerpt, printable},
};

/// How many turns of a conversation that is gone on with are shown at first.
const TURNS_AT_FIRST: usize = 5;

/// How long a typing notice counts without another one.
const TYPING_FOR: Duration = Duration::from_secs(25);

/// What a stop says in the conversation.
const STOP: &str = "/stop";

/// The longest reference to a question, in characters.
const REFERENCE: usize = 40;

pub const HELP: &str = "\
Enter sends, Alt-Enter begins a new line, and pasted lines stay together. The arrow keys bring back what was typed before, Tab
completes commands. The number or the text of a choice picks it. Ctrl-C stops what runs, or else clears the line; on an empty
line it leaves, as Ctrl-D does. The conversation is kept: the next `rejoinder chat` goes on with it.

In scripts use `rejoinder ask`.";

#[derive(Debug, Args)]
pub struct Chat {
    #[command(flatten)]
    chat: ChatName,
    /// Begin a new conversation
    #[arg(long)]
    new: bool,
}

impl Chat {
    /// Talks in the web chat that `find` finds by its name.
    ///
    /// # Errors
    /// When there is no terminal, or the conversation cannot be opened or is lost.
    pub async fn perform<F>(&self, find: F) -> Result<(), Failure>
    where
        F: FnOnce(Option<&str>) -> Result<Box<dyn Door>, Failure>,
    {
        if !stdin().is_terminal() || !stdout().is_terminal() {
            let what = "`chat` needs a terminal for its input and output: in scripts use `rejoinder ask`";
            return Err(Failure::Usage(what.to_owned()));
        }
        let door = find(self.chat.chat.as_deref())?;
        let which = if self.new { Conversation::Renewed } else { Conversation::Kept };
        let (history, conversation) = (door.history(), door.conversation(which)?);
        let mut connection = Connection::open(door, conversation);
        let welcome = match connection.next().await {
            Event::Welcome(welcome) => welcome,
            Event::Ended(why) => return Err(anyhow!("{why}").into()),
            event => return Err(anyhow!("the gateway begins with {event:?}").into()),
        };
        let mode = TerminalMode::now();
        let mut talk = Talk::begin(connection, &welcome, history)?;
        let ended = talk.run(*welcome).await;
        drop(mode);
        if let Some(farewell) = talk.farewell() {
            output::print(farewell)?;
        }
        ended
    }
}

/// The mode of the terminal, which is restored on drop: the prompt may still be reading.
struct TerminalMode(Option<Termios>);

/// Ends the mode in which a terminal marks pasted text.
const NO_BRACKETED_PASTE: &str = "\u{1b}[?2004l";

impl TerminalMode {
    fn now() -> Self {
        Self(tcgetattr(stdin()).ok())
    }
}

impl Drop for TerminalMode {
    fn drop(&mut self) {
        // The terminal may be gone.
        if let Some(mode) = &self.0 {
            let _ = tcsetattr(stdin(), OptionalActions::Drain, mode);
        }
        let _ = output::print_as_is(NO_BRACKETED_PASTE);
    }
}

/// The shown state of a turn, to tell news from repetition.
type Shown = (bool, Option<String>);

struct Talk {
    connection: Connection,
    prompt: Prompt,
    screen: Screen,
    book: Book,
    agent: String,
    drafts: HashMap<String, String>,
    /// Who is writing, and until when that counts.
    typing: HashMap<String, Instant>,
    /// What was said here and is not accepted yet: its id and text.
    unaccepted: Vec<(String, String)>,
    /// What came about turns that are not known while something was not accepted: they may be its own.
    held: Vec<Event>,
    /// The turn whose question is the last one on the screen.
    last_question: Option<String>,
    shown: HashMap<String, Shown>,
    /// The files that are being saved.
    saves: JoinSet<String>,
    /// Whether what runs was told to stop.
    is_stopping: bool,
    /// How many of the prompt's breaks the screen knows of.
    breaks_seen: usize,
}

impl Talk {
    fn begin(connection: Connection, welcome: &Welcome, history: std::path::PathBuf) -> Result<Self, Failure> {
        let Welcome { title, agent, .. } = welcome;
        output::print(format!("{title}: {agent} answers. /help lists the commands, Ctrl-C stops, Ctrl-D leaves.\n"))?;
        let has_colors = std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
        Ok(Self {
            connection,
            prompt: Prompt::start(history)?,
            screen: Screen::new(has_colors),
            book: Book::default(),
            agent: agent.clone(),
            drafts: HashMap::new(),
            typing: HashMap::new(),
            unaccepted: Vec::new(),
            held: Vec::new(),
            saves: JoinSet::new(),
            is_stopping: false,
            last_question: None,
            shown: HashMap::new(),
            breaks_seen: 0,
        })
    }

    async fn run(&mut self, welcome: Welcome) -> Result<(), Failure> {
        self.prompt.set_commands(&welcome.commands);
        let skipped = welcome.turns.len().saturating_sub(TURNS_AT_FIRST);
        for (number, turn) in welcome.turns.into_iter().enumerate() {
            if number < skipped && turn.is_final() {
                self.remember(&turn);
                self.book.learn(turn);
            } else {
                self.take_in_turn(turn)?;
            }
        }
        let wait_for = |kind| signal(kind).context("cannot wait for signals");
        let (mut ended, mut hung_up) = (wait_for(SignalKind::terminate())?, wait_for(SignalKind::hangup())?);
        let mut resumed = wait_for(SignalKind::from_raw(Signal::CONT.as_raw()))?;
        loop {
            self.note_running();
            let quiet_at = self.typing.values().min().copied();
            tokio::select! {
                input = self.prompt.next() => match input {
                    Input::Line(line) => self.line(&line),
                    Input::Stop => {
                        // Once: what does not stop must not keep the person here.
                        self.is_stopping = true;
                        self.connection.stop();
                    }
                    Input::Leave => return Ok(()),
                    Input::Failed(why) => return Err(anyhow!("cannot read what is typed: {why}").into()),
                },
                event = self.connection.next() => match event {
                    Event::Ended(why) => return Err(anyhow!("{why}").into()),
                    event => self.take_in(event)?,
                },
                Some(Ok(told)) = self.saves.join_next() => self.notice(&told)?,
                () = sleep_until(quiet_at.unwrap_or_else(Instant::now)), if quiet_at.is_some() => self.end_typing()?,
                // The shell has printed something.
                _ = resumed.recv() => self.screen.break_off(),
                _ = ended.recv() => return Ok(()),
                _ = hung_up.recv() => return Ok(()),
            }
        }
    }

    /// What is still to come when the person leaves.
    fn farewell(&self) -> Option<String> {
        let (unaccepted, open) = (self.unaccepted.len(), self.book.open().len());
        let lost = (unaccepted > 0).then(|| format!("{unaccepted} of your messages did not reach the gateway. "));
        let goes_on =
            (open > 0).then(|| "The gateway goes on with what runs: `rejoinder chat` shows the answer.".to_owned());
        (lost.is_some() || goes_on.is_some()).then(|| [lost, goes_on].into_iter().flatten().collect())
    }

    /// The person has typed a line.
    fn line(&mut self, line: &str) {
        self.note_breaks();
        if line.trim().is_empty() {
            return;
        }
        let say = self.choice(line).unwrap_or_else(|| Say::Text(line.to_owned()));
        let id = self.connection.say(say);
        self.unaccepted.push((id, line.to_owned()));
        (self.last_question, self.is_stopping) = (None, false);
    }

    /// The choice that a line picks: its number or its text.
    fn choice(&self, line: &str) -> Option<Say> {
        let question = self.book.question()?;
        let choices = &question.shown.as_ref()?.choices;
        Some(Say::Choice { turn: question.turn_id.clone(), choice: picked(line, choices)? })
    }

    fn take_in(&mut self, event: Event) -> Result<(), Failure> {
        let about = match &event {
            Event::Turn(turn) => Some(&turn.turn_id),
            Event::Draft { turn, .. } | Event::Typing { turn, .. } => Some(turn),
            _ => None,
        };
        let is_unknown = about.is_some_and(|turn| self.book.turn(turn).is_none());
        if is_unknown && !self.unaccepted.is_empty() {
            self.held.push(event);
            return Ok(());
        }
        match event {
            Event::Welcome(welcome) => {
                self.prompt.set_commands(&welcome.commands);
                self.notice("Connected again.")?;
                welcome.turns.into_iter().try_for_each(|turn| self.take_in(Event::Turn(Box::new(turn))))
            }
            Event::Lost => {
                self.drafts.clear();
                self.typing.clear();
                self.notice("The connection to the gateway is lost. Trying again; what you write is sent then.")
            }
            Event::Accepted { id, turn } => {
                let Some(index) = self.unaccepted.iter().position(|(own, _)| *own == id) else { return Ok(()) };
                let (_, text) = self.unaccepted.remove(index);
                match turn {
                    Some(turn) => {
                        if self.unaccepted.is_empty() {
                            self.last_question = Some(turn.clone());
                        }
                        self.book.learn(Turn::accepted(turn, text));
                    }
                    None => self.notice("That question was answered already.")?,
                }
                self.release()
            }
            Event::Refused { id, why } => {
                self.unaccepted.retain(|(own, _)| Some(own) != id.as_ref());
                self.notice(&format!("Not sent: {why}"))?;
                self.release()
            }
            Event::Turn(turn) => self.take_in_turn(*turn),
            Event::Draft { turn, text } => {
                self.drafts.insert(turn.clone(), text);
                self.show(&turn)
            }
            Event::Typing { turn, on } => {
                if on {
                    self.typing.insert(turn.clone(), Instant::now() + TYPING_FOR);
                } else {
                    self.typing.remove(&turn);
                }
                self.show(&turn)
            }
            Event::Ended(_) => Ok(()),
        }
    }

    /// What was held back is about known turns now.
    fn release(&mut self) -> Result<(), Failure> {
        std::mem::take(&mut self.held).into_iter().try_for_each(|event| self.take_in(event))
    }

    fn take_in_turn(&mut self, turn: Turn) -> Result<(), Failure> {
        let id = turn.turn_id.clone();
        let is_foreign = self.book.turn(&id).is_none();
        if self.book.turn(&id).is_some_and(|known| !known.is_final())
            && turn.is_final()
            && let Some(shown) = &turn.shown
        {
            for file in files_to_save(shown) {
                self.saves.spawn(save_file(file.clone()));
            }
        }
        let text = turn.text.clone();
        // Ctrl-C: what was stopped says so itself.
        if is_foreign && self.is_stopping && text == STOP && turn.is_final() {
            self.remember(&turn);
            self.book.learn(turn);
            return Ok(());
        }
        if !self.book.learn(turn) {
            return Ok(());
        }
        // Before the person sees that nothing runs any more.
        self.note_running();
        if is_foreign && !text.trim().is_empty() {
            // Said earlier, or elsewhere.
            let said: Vec<_> = printable(text.trim_end()).lines().map(|line| format!("{PROMPT}{line}")).collect();
            self.print(&said)?;
            self.last_question = Some(id.clone());
        }
        self.show(&id)
    }

    /// Shows the state of a turn.
    fn show(&mut self, id: &str) -> Result<(), Failure> {
        self.note_breaks();
        let Some(turn) = self.book.turn(id) else { return Ok(()) };
        let progress =
            Progress { draft: self.drafts.get(id).map(String::as_str), is_typing: self.typing.contains_key(id) };
        let mut block = block(turn, progress, &self.agent);
        let is_last_block = self.screen.ends_with(id);
        let is_last_question = self.last_question.as_deref() == Some(id);
        let is_passing = block.as_ref().is_none_or(|block| block.is_passing);
        if is_passing && !is_last_block && !is_last_question {
            // It would stand between other blocks: its answer is shown when it is there.
            return Ok(());
        }
        let state = state(turn);
        if !is_passing && !is_last_block && self.shown.get(id) == Some(&state) {
            return Ok(());
        }
        if let Some(block) = block.as_mut().filter(|_| !is_last_question) {
            block.head.push_str(&reference(&turn.text));
        }
        if !is_passing {
            self.shown.insert(id.to_owned(), state);
        }
        if turn.is_final() {
            self.drafts.remove(id);
            self.typing.remove(id);
        }
        let out = self.screen.show(id, block.as_ref(), self.room()?);
        self.prompt.print(out);
        Ok(())
    }

    fn remember(&mut self, turn: &Turn) {
        self.shown.insert(turn.turn_id.clone(), state(turn));
    }

    fn end_typing(&mut self) -> Result<(), Failure> {
        let now = Instant::now();
        let ended: Vec<_> = self.typing.extract_if(|_, until| *until <= now).map(|(turn, _)| turn).collect();
        ended.iter().try_for_each(|turn| self.show(turn))
    }

    /// A line of this program's own.
    fn notice(&mut self, words: &str) -> Result<(), Failure> {
        self.print(&[format!("({})", printable(words)), String::new()])
    }

    fn print(&mut self, lines: &[String]) -> Result<(), Failure> {
        self.note_breaks();
        let out = self.screen.print(lines, self.room()?);
        self.prompt.print(out);
        Ok(())
    }

    /// Tells the prompt whether something runs that Ctrl-C stops.
    fn note_running(&self) {
        self.prompt.set_running(!self.is_stopping && !self.book.open().is_empty());
    }

    /// Takes note of what stands below the last block now.
    fn note_breaks(&mut self) {
        let breaks = self.prompt.breaks();
        if breaks != self.breaks_seen {
            self.breaks_seen = breaks;
            self.screen.break_off();
        }
    }

    fn room(&self) -> Result<Room, Failure> {
        let size = tcgetwinsize(stdout()).context("the size of the terminal is unknown")?;
        let (columns, rows) = match (size.ws_col, size.ws_row) {
            (0, _) | (_, 0) => (80, 24),
            (columns, rows) => (columns.into(), rows.into()),
        };
        let prompt_rows = row_count(&format!("{PROMPT}{}", self.prompt.typed()), columns);
        Ok(Room { columns, rows, prompt_rows })
    }
}

fn state(turn: &Turn) -> Shown {
    (turn.is_final(), turn.shown.as_ref().map(|shown| shown.at.clone()))
}

/// Says to which question an answer belongs.
fn reference(question: &str) -> String {
    let question = printable(&excerpt(question, REFERENCE));
    if question.is_empty() { String::new() } else { format!(", to “{question}”") }
}

/// The choice that a line names: by its number from 1, or by its text.
fn picked(line: &str, choices: &[String]) -> Option<usize> {
    let line = line.trim();
    let number = line.strip_suffix('.').unwrap_or(line).parse::<usize>().ok();
    let by_number = number.and_then(|number| number.checked_sub(1)).filter(|index| *index < choices.len());
    let is_same = |choice: &String| choice.trim().to_lowercase() == line.to_lowercase();
    choices.iter().position(is_same).or(by_number)
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("1", Some(0))]
    #[case(" 2. ", Some(1))]
    #[case("THAT", Some(1))]
    #[case("0", None)]
    #[case("3", None)]
    #[case("neither", None)]
    fn a_choice_is_picked_by_its_number_or_its_text(#[case] line: &str, #[case] expected: Option<usize>) {
        assert_eq!(picked(line, &["This".to_owned(), "That".to_owned()]), expected);
    }

    #[test]
    fn a_choice_that_is_a_number_is_meant_by_its_text() {
        assert_eq!(picked("2", &["2".to_owned(), "1".to_owned()]), Some(0));
    }

    #[test]
    fn an_answer_names_its_question_on_one_line() {
        assert_eq!(reference("what is\nthe status?"), ", to “what is the status?”");
        assert_eq!(reference(""), "");
    }
}
