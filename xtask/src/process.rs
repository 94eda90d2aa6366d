//! Runs other programs.

use std::{
    ffi::OsStr,
    io::ErrorKind,
    process::{Command, ExitStatus, Output, Stdio},
};

use anyhow::{Context, Error, Result, anyhow, bail};

/// Runs a program and shows its output.
///
/// # Errors
///
/// When it cannot be started or fails.
pub(crate) fn show(command: &mut Command) -> Result<()> {
    let status = command.status().map_err(|error| not_started(command, error))?;
    if status.success() { Ok(()) } else { Err(failed(command, status)) }
}

/// Runs a program and hides its output.
///
/// # Errors
///
/// When it cannot be started or fails; the error then contains its output.
pub(crate) fn quiet(command: &mut Command) -> Result<()> {
    output(command).map(drop)
}

/// Runs a program and returns its standard output.
///
/// # Errors
///
/// As [`quiet`], and when the output is not UTF-8.
pub(crate) fn read(command: &mut Command) -> Result<String> {
    let output = output(command)?;
    String::from_utf8(output.stdout).with_context(|| format!("`{}` printed something that is not text", name(command)))
}

/// Adds an option to a command, if it has a value.
pub(crate) fn add(command: &mut Command, name: &str, value: Option<impl AsRef<OsStr>>) {
    if let Some(value) = value {
        command.arg(name).arg(value);
    }
}

/// Runs a program that shows its progress and prints a table. Shows and returns the table, with how the program ended.
///
/// # Errors
///
/// When it cannot be started, or prints something that is not UTF-8.
pub(crate) fn table(command: &mut Command) -> Result<(String, ExitStatus)> {
    let child = command.stdout(Stdio::piped()).spawn().map_err(|error| not_started(command, error))?;
    let output = child.wait_with_output()?;
    let table = String::from_utf8(output.stdout)
        .with_context(|| format!("`{}` printed something that is not text", name(command)))?;
    print!("{table}");
    Ok((table.trim().to_owned(), output.status))
}

/// Whether a program is installed: tries to start it with `--version`.
///
/// # Errors
///
/// When it cannot be started for a reason other than "not found".
pub(crate) fn exists(program: &str) -> Result<bool> {
    let mut command = Command::new(program);
    match command.arg("--version").output() {
        Ok(_) => Ok(true),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
        Err(error) => Err(not_started(&command, error)),
    }
}

/// Requires a program.
///
/// # Errors
///
/// When it is not installed; the error says how to get it.
pub(crate) fn require(program: &str, how_to_get: &str) -> Result<()> {
    if !exists(program)? {
        bail!("`{program}` was not found: {how_to_get}");
    }
    Ok(())
}

pub(crate) fn failed(command: &Command, status: ExitStatus) -> Error {
    anyhow!("`{}` failed ({status})", line(command))
}

pub(crate) fn not_started(command: &Command, error: std::io::Error) -> Error {
    Error::new(error).context(format!("`{}` did not start", name(command)))
}

fn output(command: &mut Command) -> Result<Output> {
    let output = command.output().map_err(|error| not_started(command, error))?;
    if output.status.success() {
        return Ok(output);
    }
    let printed = [output.stdout.as_slice(), output.stderr.as_slice()].map(String::from_utf8_lossy).concat();
    bail!("{}:\n{}", failed(command, output.status), printed.trim_end())
}

fn name(command: &Command) -> String {
    command.get_program().to_string_lossy().into_owned()
}

fn line(command: &Command) -> String {
    let arguments = command.get_args().map(|argument| format!(" {}", argument.to_string_lossy()));
    std::iter::once(name(command)).chain(arguments).collect()
}
