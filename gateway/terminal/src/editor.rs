//! The prompt: line editing, history and completion, on a thread of its own.

use std::{
    path::PathBuf,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    thread,
};

use anyhow::{Context as _, anyhow};
use rustyline::{
    Cmd, CompletionType, ConditionalEventHandler, Config, Editor, Event, EventContext, EventHandler, ExternalPrinter,
    Helper, KeyCode, KeyEvent, Modifiers, Movement, RepeatCount,
    completion::{Completer, Pair},
    config::Builder,
    error::ReadlineError,
    highlight::Highlighter,
    hint::Hinter,
    history::FileHistory,
    validate::{ValidationContext, ValidationResult, Validator},
};
use tokio::sync::mpsc;

use super::frames::Command;
use crate::{failure::Failure, output::printable};

/// The prompt before the typed text.
pub(crate) const PROMPT: &str = "› ";

/// How many lines the history keeps.
const HISTORY: usize = 1000;

/// What the person does at the prompt.
#[derive(Debug)]
pub(crate) enum Input {
    Line(String),
    /// Ctrl-C while something runs.
    Stop,
    /// Ctrl-C on an empty line, or Ctrl-D.
    Leave,
    Failed(String),
}

/// What the prompt's thread and the rest know of each other.
#[derive(Debug, Default)]
struct Shared {
    /// Whether something runs that Ctrl-C stops.
    is_running: AtomicBool,
    /// How often other output was inserted above the prompt.
    breaks: AtomicUsize,
    typed: Mutex<String>,
    commands: Mutex<Vec<Command>>,
}

/// The prompt.
pub(crate) struct Prompt {
    shared: Arc<Shared>,
    printer: Box<dyn ExternalPrinter>,
    inputs: mpsc::UnboundedReceiver<Input>,
}

impl Prompt {
    /// Shows the prompt.
    ///
    /// # Errors
    /// When this terminal cannot edit lines.
    pub(crate) fn start(history: PathBuf) -> Result<Self, Failure> {
        let shared = Arc::new(Shared::default());
        let config = Config::builder().completion_type(CompletionType::List).history_ignore_space(true);
        let config = config.max_history_size(HISTORY).map(Builder::build);
        let mut editor: Editor<Typing, FileHistory> =
            config.and_then(Editor::with_config).context("cannot edit lines")?;
        let (sender, inputs) = mpsc::unbounded_channel();
        editor.set_helper(Some(Typing { shared: Arc::clone(&shared) }));
        let interrupt = Interrupt { shared: Arc::clone(&shared), inputs: sender.clone() };
        editor.bind_sequence(KeyEvent::ctrl('C'), EventHandler::Conditional(Box::new(interrupt)));
        editor.bind_sequence(KeyEvent(KeyCode::Enter, Modifiers::ALT), Cmd::Newline);
        let printer = editor
            .create_external_printer()
            .map_err(|_| anyhow!("this terminal cannot edit lines (TERM): use `rejoinder ask`"))?;
        // A missing or damaged history is none.
        let _ = editor.load_history(&history);
        thread::spawn(move || read_lines(editor, &history, &sender));
        Ok(Self { shared, printer: Box::new(printer), inputs })
    }

    pub(crate) async fn next(&mut self) -> Input {
        self.inputs.recv().await.unwrap_or(Input::Leave)
    }

    /// Prints above the prompt.
    pub(crate) fn print(&mut self, text: String) {
        if !text.is_empty() {
            // It fails once the prompt has ended, which `next` says.
            let _ = self.printer.print(text);
        }
    }

    /// How often something came to stand between what was printed and the prompt: a typed line, also one that is still on its way
    /// to [`next`](Self::next), or a list of completions.
    pub(crate) fn breaks(&self) -> usize {
        self.shared.breaks.load(Ordering::SeqCst)
    }

    /// What is being typed.
    pub(crate) fn typed(&self) -> String {
        lock(&self.shared.typed).clone()
    }

    /// Says whether something runs that Ctrl-C stops.
    pub(crate) fn set_running(&self, is_running: bool) {
        self.shared.is_running.store(is_running, Ordering::SeqCst);
    }

    /// The commands that are completed.
    pub(crate) fn set_commands(&self, commands: &[Command]) {
        *lock(&self.shared.commands) = commands.to_vec();
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn read_lines(mut editor: Editor<Typing, FileHistory>, history: &PathBuf, inputs: &mpsc::UnboundedSender<Input>) {
    loop {
        let input = match editor.readline(PROMPT) {
            Ok(line) => {
                if !line.trim().is_empty() {
                    // The history is a convenience: the line counts without it.
                    let _ = editor.add_history_entry(&line).and_then(|_| editor.append_history(history));
                }
                Input::Line(line)
            }
            Err(ReadlineError::Interrupted | ReadlineError::Eof) => Input::Leave,
            Err(error) => Input::Failed(error.to_string()),
        };
        let is_last = !matches!(input, Input::Line(_));
        if inputs.send(input).is_err() || is_last {
            return;
        }
    }
}

/// Follows the typed text, for completions.
struct Typing {
    shared: Arc<Shared>,
}

impl Helper for Typing {}

impl Highlighter for Typing {}

impl Hinter for Typing {
    type Hint = String;

    /// Hints nothing. It is called at each change of the line.
    fn hint(&self, line: &str, _: usize, _: &rustyline::Context<'_>) -> Option<String> {
        line.clone_into(&mut lock(&self.shared.typed));
        None
    }
}

impl Validator for Typing {
    /// Every line is valid. It is called when Enter is pressed, before the line stands above the next prompt.
    fn validate(&self, _: &mut ValidationContext<'_>) -> rustyline::Result<ValidationResult> {
        self.shared.breaks.fetch_add(1, Ordering::SeqCst);
        lock(&self.shared.typed).clear();
        Ok(ValidationResult::Valid(None))
    }
}

impl Completer for Typing {
    type Candidate = Pair;

    fn complete(&self, line: &str, pos: usize, _: &rustyline::Context<'_>) -> rustyline::Result<(usize, Vec<Pair>)> {
        let found = completions(&lock(&self.shared.commands), &line[..pos]);
        if found.len() > 1 {
            self.shared.breaks.fetch_add(1, Ordering::SeqCst);
        }
        Ok((0, found))
    }
}

/// The commands that begin with the typed text.
fn completions(commands: &[Command], typed: &str) -> Vec<Pair> {
    let Some(begin) = typed.strip_prefix('/').filter(|begin| !begin.contains(char::is_whitespace)) else {
        return Vec::new();
    };
    let fitting = commands.iter().filter(|command| command.name.starts_with(begin));
    fitting
        .map(|Command { name, description }| {
            let name = printable(name);
            Pair { display: format!("/{name}  {}", printable(description)), replacement: format!("/{name} ") }
        })
        .collect()
}

/// Ctrl-C.
struct Interrupt {
    shared: Arc<Shared>,
    inputs: mpsc::UnboundedSender<Input>,
}

impl ConditionalEventHandler for Interrupt {
    fn handle(&self, _: &Event, _: RepeatCount, _: bool, context: &EventContext<'_>) -> Option<Cmd> {
        if self.shared.is_running.swap(false, Ordering::SeqCst) {
            let _ = self.inputs.send(Input::Stop);
            return Some(Cmd::Noop);
        }
        (!context.line().is_empty()).then_some(Cmd::Kill(Movement::WholeBuffer))
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("/s", &["/status ", "/stop "])]
    #[case("/stop", &["/stop "])]
    #[case("/stop now", &[])]
    #[case("s", &[])]
    fn commands_are_completed(#[case] typed: &str, #[case] expected: &[&str]) {
        let command = |name: &str| Command { name: name.to_owned(), description: "what it does".to_owned() };
        let commands = ["help", "status", "stop"].map(command);

        let found = completions(&commands, typed);

        assert_eq!(found.iter().map(|pair| &*pair.replacement).collect::<Vec<_>>(), expected);
    }
}
