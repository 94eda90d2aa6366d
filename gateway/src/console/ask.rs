//! Asking somebody.

use std::{
    fmt::Write as _,
    io::{self, BufRead, Write},
};

use anyhow::Context;
use secrecy::SecretString;

use super::{failure::Failure, output};

/// Somebody who is asked.
pub(crate) trait Ask {
    /// Tells them something.
    fn say(&mut self, text: &str) -> Result<(), Failure>;

    /// Asks for a line, which may be empty. It comes without the blanks around it.
    fn line_or_nothing(&mut self, question: &str) -> Result<String, Failure>;

    /// The same, and what is typed is not seen.
    fn secret_or_nothing(&mut self, question: &str) -> Result<SecretString, Failure>;

    /// Asks for a line until there is something in it.
    fn line(&mut self, question: &str) -> Result<String, Failure> {
        loop {
            let answer = self.line_or_nothing(question)?;
            if !answer.is_empty() {
                return Ok(answer);
            }
        }
    }

    /// Which of `options` it is to be. An empty answer is the first.
    fn pick(&mut self, question: &str, options: &[String]) -> Result<usize, Failure> {
        let mut text = question.to_owned();
        for (number, option) in (1..).zip(options) {
            let _ = write!(text, "\n  {number}. {}", output::printable(option));
        }
        self.say(&text)?;
        loop {
            let answer = self.line_or_nothing(&format!("1 to {}, or empty for 1:", options.len()))?;
            let number = if answer.is_empty() { Some(1) } else { answer.parse().ok() };
            match number {
                Some(number) if (1..=options.len()).contains(&number) => return Ok(number - 1),
                _ => {}
            }
        }
    }
}

/// Whoever sits at the terminal.
pub(crate) struct Terminal;

impl Ask for Terminal {
    fn say(&mut self, text: &str) -> Result<(), Failure> {
        output::print(text)
    }

    fn line_or_nothing(&mut self, question: &str) -> Result<String, Failure> {
        let mut stdout = io::stdout().lock();
        write!(stdout, "{question} ").and_then(|()| stdout.flush()).context("cannot ask")?;
        let mut answer = String::new();
        let read = io::stdin().lock().read_line(&mut answer).context("cannot read the answer")?;
        if read == 0 {
            return Err(no_answer());
        }
        Ok(answer.trim().to_owned())
    }

    fn secret_or_nothing(&mut self, question: &str) -> Result<SecretString, Failure> {
        match rpassword::prompt_password(format!("{question} ")) {
            Ok(answer) => Ok(answer.trim().to_owned().into()),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Err(no_answer()),
            Err(error) => Err(anyhow::Error::new(error).context("cannot read the answer").into()),
        }
    }
}

fn no_answer() -> Failure {
    Failure::Usage("there was no answer; nothing was written".to_owned())
}
