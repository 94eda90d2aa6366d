//! What to do with a token or a password that `rejoinder init` has checked.

use anyhow::anyhow;
use clap::ArgMatches;
use rejoinder_config::IdFormat;

use super::platform::CheckError;
use crate::console::{
    ask::Ask,
    failure::Failure,
    output::{capital, printable},
};

/// What happens to a token or a password that was checked.
pub(super) enum Decision<T> {
    /// It is written, with the account or why it was not checked.
    Write(Result<T, String>),
    /// The operator enters another one.
    Change,
    /// No account of this platform is written.
    Skip,
}

/// Checks what was entered, as often as the operator likes. `what` names it: "token".
pub(super) async fn decide<T>(
    terminal: &mut dyn Ask,
    platform: &str,
    what: &str,
    check: impl AsyncFn() -> Result<Result<T, CheckError>, Failure>,
) -> Result<Decision<T>, Failure> {
    loop {
        let why = match check().await? {
            Ok(account) => return Ok(Decision::Write(Ok(account))),
            Err(CheckError::Rejected(why)) => {
                terminal.say(&format!("{}. Nothing was written yet.", capital(&why)))?;
                return Ok(Decision::Change);
            }
            Err(CheckError::Unchecked(why)) => why,
        };
        let options = [
            "try again".to_owned(),
            format!("enter another {what}"),
            "write it anyway".to_owned(),
            format!("skip {platform}"),
        ];
        match terminal.pick(&format!("{}, so the {what} was not checked.", capital(&why)), &options)? {
            0 => {}
            1 => return Ok(Decision::Change),
            2 => return Ok(Decision::Write(Err(why))),
            _ => return Ok(Decision::Skip),
        }
    }
}

/// The account that was checked, or why it was not. `refused` begins the error of one that was rejected.
pub(super) fn unless_rejected<T>(checked: Result<T, CheckError>, refused: &str) -> Result<Result<T, String>, Failure> {
    match checked {
        Ok(account) => Ok(Ok(account)),
        Err(CheckError::Unchecked(why)) => Ok(Err(why)),
        Err(CheckError::Rejected(why)) => Err(anyhow!("{refused}: {why}").into()),
    }
}

/// Asks for people until all of them have the platform's format. `wrong` follows an entry that has not.
pub(super) fn ask_people(
    terminal: &mut dyn Ask,
    question: &str,
    format: &IdFormat,
    wrong: &str,
) -> Result<Vec<String>, Failure> {
    loop {
        let answer = terminal.line_or_nothing(question)?;
        let people = answer.split([' ', ',']).filter(|entry| !entry.is_empty());
        match people.clone().find(|entry| !format.may_be_person(entry)) {
            None => return Ok(people.map(str::to_owned).collect()),
            Some(entry) => terminal.say(&format!("{} {wrong}.", printable(entry)))?,
        }
    }
}

/// Whether an option of `init` itself is set.
pub(super) fn is_set(matches: &ArgMatches, option: &str) -> bool {
    matches.try_get_one(option).ok().flatten().copied().unwrap_or(false)
}
