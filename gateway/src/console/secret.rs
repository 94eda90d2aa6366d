//! Secrets that the configuration names and does not contain.

use std::{
    fmt::Write as _,
    path::{Path, PathBuf},
};

use anyhow::Context;
use secrecy::{ExposeSecret, SecretString};

use super::{failure::Failure, toml::toml_text};
use crate::secrets;

#[derive(Debug)]
pub(crate) enum SecretLocation {
    Variable(String),
    File(PathBuf),
    /// Typed in during this run; will be written to this file.
    Typed(SecretString, PathBuf),
}

pub(crate) enum SecretRead {
    Secret(SecretString),
    /// No secret yet. Holds the reason.
    Missing(String),
}

impl SecretLocation {
    /// The place that the command line names: a variable or a file.
    pub(crate) fn from_options(variable: Option<&str>, file: Option<&Path>) -> Result<Option<Self>, Failure> {
        Ok(match (variable, file) {
            (Some(name), _) => Some(Self::Variable(name.to_owned())),
            (None, Some(path)) => {
                Some(Self::File(std::path::absolute(path).context("the working directory is unknown")?))
            }
            (None, None) => None,
        })
    }

    /// Reads the secret. `what` names it in errors, such as "access token".
    pub(crate) fn read(&self, what: &str) -> Result<SecretRead, Failure> {
        Ok(match self {
            Self::Variable(name) => variable(name)
                .map_or_else(|| SecretRead::Missing(format!("{name} is not set here")), SecretRead::Secret),
            Self::File(path) => {
                let read = std::fs::read_to_string(path)
                    .with_context(|| format!("cannot read the {what} from {}", path.display()))?;
                SecretRead::Secret(SecretString::from(read.trim()))
            }
            Self::Typed(secret, _) => SecretRead::Secret(secret.clone()),
        })
    }

    /// Writes a typed secret to its file, which only its owner can read.
    pub(crate) fn write(&self) -> Result<(), Failure> {
        let Self::Typed(secret, path) = self else { return Ok(()) };
        let created = path.parent().map_or(Ok(()), secrets::make_private_dir).map_err(anyhow::Error::new);
        created?;
        Ok(secrets::write(path, secret).with_context(|| format!("cannot write {}", path.display()))?)
    }

    /// The value of its configuration key: `{ env = … }` or `{ file = … }`.
    pub(crate) fn reference(&self) -> Result<String, Failure> {
        match self {
            Self::Variable(name) => Ok(format!("{{ env = {} }}", toml_text(name)?)),
            Self::File(path) | Self::Typed(_, path) => {
                let path = path.to_str().with_context(|| format!("{} is not UTF-8", path.display()))?;
                Ok(format!("{{ file = {} }}", toml_text(path)?))
            }
        }
    }

    /// What the operator should know about the secret; may be empty. `what` names it, such as "access token".
    pub(crate) fn advice(&self, what: &str) -> String {
        let mut text = String::new();
        match self {
            Self::Typed(_, path) => {
                let _ = writeln!(text, "Its {what} is kept in {}.", path.display());
            }
            Self::Variable(name) if variable(name).is_none() => {
                let _ = writeln!(text, "Set {name} to its {what} before you start.");
            }
            Self::Variable(_) | Self::File(_) => {}
        }
        text
    }
}

/// The trimmed value of an environment variable; `None` when it is unset or empty.
pub(crate) fn variable(name: &str) -> Option<SecretString> {
    let value = std::env::var(name).ok()?;
    Some(value.trim()).filter(|value| !value.is_empty()).map(SecretString::from)
}

pub(crate) fn is_empty(secret: &SecretString) -> bool {
    secret.expose_secret().is_empty()
}
