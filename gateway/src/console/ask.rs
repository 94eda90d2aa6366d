//! Asking the operator questions.

use std::{
    fmt::Write as _,
    io::{self, BufRead, Write},
};

use anyhow::Context;
use secrecy::SecretString;

use super::{failure::Failure, output};

/// Someone to ask: the terminal, or a script in tests.
pub(crate) trait Ask {
    fn say(&mut self, text: &str) -> Result<(), Failure>;

    /// Asks for a line, which may be empty. The answer is trimmed.
    fn line_or_nothing(&mut self, question: &str) -> Result<String, Failure>;

    /// The same, without echoing the input.
    fn secret_or_nothing(&mut self, question: &str) -> Result<SecretString, Failure>;

    /// Asks for one of `options` and returns its index. An empty answer picks the first.
    fn pick(&mut self, question: &str, options: &[String]) -> Result<usize, Failure> {
        let mut text = question.to_owned();
        for (number, option) in (1..).zip(options) {
            let _ = write!(text, "\n  {number}. {option}");
        }
        self.say(&text)?;
        loop {
            let answer = self.line_or_nothing(&format!("1 to {} (empty: 1):", options.len()))?;
            let number = if answer.is_empty() { Some(1) } else { answer.parse().ok() };
            match number {
                Some(number) if (1..=options.len()).contains(&number) => return Ok(number - 1),
                _ => {}
            }
        }
    }
}

pub(crate) struct Terminal;

impl Ask for Terminal {
    fn say(&mut self, text: &str) -> Result<(), Failure> {
        output::print(text)
    }

    fn line_or_nothing(&mut self, question: &str) -> Result<String, Failure> {
        let mut stdout = io::stdout().lock();
        write!(stdout, "{} ", output::printable(question))
            .and_then(|()| stdout.flush())
            .context("cannot print the question")?;
        let mut answer = String::new();
        let read = io::stdin().lock().read_line(&mut answer).context("cannot read the answer")?;
        if read == 0 {
            return Err(no_answer());
        }
        Ok(answer.trim().to_owned())
    }

    fn secret_or_nothing(&mut self, question: &str) -> Result<SecretString, Failure> {
        match rpassword::prompt_password(format!("{} ", output::printable(question))) {
            Ok(answer) => Ok(answer.trim().to_owned().into()),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Err(no_answer()),
            Err(error) => Err(anyhow::Error::new(error).context("cannot read the answer").into()),
        }
    }
}

fn no_answer() -> Failure {
    Failure::Usage("no answer was given; nothing was written".to_owned())
}
