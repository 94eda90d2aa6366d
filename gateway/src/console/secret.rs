//! Where a secret is that the configuration names and does not hold.

use std::{
    fmt::Write as _,
    path::{Path, PathBuf},
};

use anyhow::Context;
use secrecy::{ExposeSecret, SecretString};

use super::{failure::Failure, toml::toml_text};
use crate::secrets;

/// Where a secret is.
#[derive(Debug)]
pub(crate) enum SecretPlace {
    Variable(String),
    File(PathBuf),
    /// Typed in just now, and to be kept in this file.
    Typed(SecretString, PathBuf),
}

/// What is there.
pub(crate) enum Read {
    Secret(SecretString),
    /// Nothing yet: why.
    Missing(String),
}

impl SecretPlace {
    /// The place that the command line names, by a variable or a file.
    ///
    /// # Errors
    /// When the working directory is unknown.
    pub(crate) fn given(variable: Option<&str>, file: Option<&Path>) -> Result<Option<Self>, Failure> {
        Ok(match (variable, file) {
            (Some(name), _) => Some(Self::Variable(name.to_owned())),
            (None, Some(path)) => {
                Some(Self::File(std::path::absolute(path).context("the working directory is unknown")?))
            }
            (None, None) => None,
        })
    }

    /// What is there.
    ///
    /// # Errors
    /// When it is a file that cannot be read. `what` is what the secret is called.
    pub(crate) fn read(&self, what: &str) -> Result<Read, Failure> {
        Ok(match self {
            Self::Variable(name) => {
                variable(name).map_or_else(|| Read::Missing(format!("{name} is not set here")), Read::Secret)
            }
            Self::File(path) => {
                let read = std::fs::read_to_string(path)
                    .with_context(|| format!("cannot read the {what} from {}", path.display()))?;
                Read::Secret(SecretString::from(read.trim()))
            }
            Self::Typed(secret, _) => Read::Secret(secret.clone()),
        })
    }

    /// Writes what was typed in to its file, which only its owner can read.
    ///
    /// # Errors
    /// When that fails.
    pub(crate) fn keep(&self) -> Result<(), Failure> {
        let Self::Typed(secret, path) = self else { return Ok(()) };
        let kept = path.parent().map_or(Ok(()), secrets::make_private_dir).map_err(anyhow::Error::new);
        kept?;
        Ok(secrets::keep(path, secret).with_context(|| format!("cannot write {}", path.display()))?)
    }

    /// As the configuration names it.
    ///
    /// # Errors
    /// When it cannot be written there.
    pub(crate) fn reference(&self) -> Result<String, Failure> {
        match self {
            Self::Variable(name) => Ok(format!("{{ env = {} }}", toml_text(name)?)),
            Self::File(path) | Self::Typed(_, path) => {
                let path = path.to_str().with_context(|| format!("{} is not UTF-8", path.display()))?;
                Ok(format!("{{ file = {} }}", toml_text(path)?))
            }
        }
    }

    /// What whoever runs the gateway should know of it, where there is anything. `what` is what it is called.
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

/// What a variable holds, without the blanks around it.
pub(crate) fn variable(name: &str) -> Option<SecretString> {
    let value = std::env::var(name).ok()?;
    Some(value.trim()).filter(|value| !value.is_empty()).map(SecretString::from)
}

/// Whether there is nothing in a secret.
pub(crate) fn is_empty(secret: &SecretString) -> bool {
    secret.expose_secret().is_empty()
}
