//! Checks what is to be written with the loader of the gateway, and writes what cannot be used as comments.

use std::{ffi::OsString, io::Write as _};

use anyhow::{Context, anyhow};
use rejoinder_config::{ConfigErrors, Environment, Options};
use secrecy::{ExposeSecret as _, SecretString};

use super::{
    draft::{Block, Draft},
    notes::Notes,
    source,
};
use crate::console::{
    failure::Failure,
    secret::{SecretLocation, variable},
};

/// Turns off every section that the loader refuses, with a note.
///
/// # Errors
/// When what remains cannot be loaded, or no temporary file can be written.
pub(super) fn check(draft: &mut Draft, extra: &str, notes: &mut Notes) -> Result<(), Failure> {
    // Each round turns off a section at least.
    for _ in 0..=draft.blocks.len() {
        let Err(errors) = load(draft, extra)? else { return Ok(()) };
        let mut is_progress = false;
        for problem in errors.problems() {
            let Some(key) = problem.key().map(ToString::to_string) else { continue };
            let is_of = |block: &&mut Block| {
                block.off.is_none()
                    && key
                        .strip_prefix(&block.name())
                        .is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
            };
            let Some(block) = draft.blocks.iter_mut().find(is_of) else { continue };
            let what = problem.to_string();
            let what = what.strip_prefix("config key ").unwrap_or(&what);
            // Without the place, which is in the temporary file.
            let what = what.rfind(" (").map_or(what, |end| &what[..end]);
            notes.add(
                &block.name(),
                format!("is not complete: {what}"),
                "its lines are comments in the file: complete them",
            );
            block.turn_off(what);
            is_progress = true;
        }
        if !is_progress {
            return Err(errors.into());
        }
    }
    Err(anyhow!("what would be written cannot be loaded").into())
}

/// Loads the draft from a temporary file, in which each secret is a variable.
fn load(draft: &Draft, extra: &str) -> Result<Result<(), ConfigErrors>, Failure> {
    let variables: Vec<(String, OsString)> = (1..)
        .zip(draft.secrets())
        .map(|(number, (block, _, secret))| (format!("REJOINDER_IMPORT_{number}"), value(block, secret, number).into()))
        .collect();
    let mut names = variables.iter().map(|(name, _)| name);
    let text = draft.text(|_| Ok(format!("{{ env = \"{}\" }}", names.next().map_or("", String::as_str))))?;
    let mut file = tempfile::NamedTempFile::new().context("cannot write a temporary file")?;
    write!(file, "{text}{extra}").context("cannot write a temporary file")?;
    let options = Options {
        path: Some(file.path().to_owned()),
        working_dir: std::env::temp_dir(),
        environment: Environment::from_iter(variables),
        remembered: None,
    };
    Ok(rejoinder_config::load(&options, &crate::build()).map(|_| ()))
}

/// The secret, or one of the same form if it cannot be read now. Two of them differ, as those of two bots do.
fn value(block: &Block, secret: &SecretLocation, number: usize) -> String {
    let known = match secret {
        SecretLocation::Typed(secret, _) => Some(secret.clone()),
        SecretLocation::Variable(name) => variable(name),
        SecretLocation::File(path) => source::text(path).ok().flatten().map(SecretString::from),
    };
    match (known.as_ref().map(|secret| secret.expose_secret().trim()), block.platform()) {
        (Some(secret), _) if !secret.is_empty() => secret.to_owned(),
        (_, Some("telegram")) => format!("{number}:unknown"),
        (_, Some("discord")) => format!("{number}.un.known"),
        _ => "unknown".to_owned(),
    }
}
