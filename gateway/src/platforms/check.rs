//! What to do with a token or a password that `rejoinder init` has checked.

use crate::console::{ask::Ask, failure::Failure, output::capital};

/// The result of checking a token or a password.
pub(super) enum CheckResult<T> {
    /// The account that it belongs to.
    Valid(T),
    /// It could not be checked. Holds the reason.
    Unchecked(String),
    Rejected(String),
}

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
    check: impl AsyncFn() -> Result<CheckResult<T>, Failure>,
) -> Result<Decision<T>, Failure> {
    loop {
        let why = match check().await? {
            CheckResult::Valid(account) => return Ok(Decision::Write(Ok(account))),
            CheckResult::Rejected(why) => {
                terminal.say(&format!("{}. Nothing was written yet.", capital(&why)))?;
                return Ok(Decision::Change);
            }
            CheckResult::Unchecked(why) => why,
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
