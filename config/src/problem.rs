//! The problems of a configuration. Each text says what to fix.

use std::{
    fmt,
    path::{Path, PathBuf},
    sync::Arc,
};

use crate::key::Key;

/// Where a value was set.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Origin {
    File {
        /// The path as it was given or found.
        path: Arc<Path>,
        /// Counted from 1.
        line: usize,
    },
    /// The name of an environment variable.
    Variable(Arc<str>),
    /// The built-in manual.
    Default,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File { path, line } => write!(f, "{}:{line}", path.display()),
            Self::Variable(name) => write!(f, "${name}"),
            Self::Default => f.write_str("built-in default"),
        }
    }
}

#[derive(Debug, thiserror::Error)]
pub enum Problem {
    /// A key is unknown, missing, or has a value that cannot be used.
    #[error("config key `{key}` {what} ({origin})")]
    Key {
        key: Key,
        /// What is wrong and what to do; continues the sentence after the key. Never contains a secret.
        what: String,
        /// Where the key was set; for a missing key, where its table begins.
        origin: Origin,
    },
    /// The file is not TOML.
    #[error("{what} ({origin})")]
    Syntax {
        /// The parser's message.
        what: String,
        origin: Origin,
    },
    /// The configuration file cannot be read.
    #[error("config file {} ({asked_by}) cannot be read: {error}", path.display())]
    Unreadable {
        path: PathBuf,
        /// Why this file was chosen; printed in parentheses after the path.
        asked_by: &'static str,
        #[source]
        error: std::io::Error,
    },
    /// An environment variable is not a valid override.
    #[error("environment variable {name} {what}")]
    Variable {
        name: String,
        /// What is wrong; continues the sentence after the name. Never contains the value.
        what: String,
    },
}

impl Problem {
    /// The key of a [`Problem::Key`].
    pub const fn key(&self) -> Option<&Key> {
        match self {
            Self::Key { key, .. } => Some(key),
            Self::Syntax { .. } | Self::Unreadable { .. } | Self::Variable { .. } => None,
        }
    }

    /// The sort key: problems of one file are sorted by line.
    fn order(&self) -> (u8, Option<&Origin>, Option<&Key>) {
        match self {
            Self::Unreadable { .. } => (0, None, None),
            Self::Syntax { origin, .. } => (1, Some(origin), None),
            Self::Key { origin, key, .. } => (2, Some(origin), Some(key)),
            Self::Variable { .. } => (3, None, None),
        }
    }
}

/// All problems of a configuration. Never empty.
#[derive(Debug)]
pub struct ConfigErrors(Vec<Problem>);

impl ConfigErrors {
    pub(crate) fn new(mut problems: Vec<Problem>) -> Self {
        debug_assert!(!problems.is_empty(), "there is at least one problem");
        problems.sort_by(|a, b| a.order().cmp(&b.order()));
        Self(problems)
    }

    /// In the order of the file.
    pub fn problems(&self) -> &[Problem] {
        &self.0
    }
}

impl From<Problem> for ConfigErrors {
    fn from(problem: Problem) -> Self {
        Self(vec![problem])
    }
}

impl fmt::Display for ConfigErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &*self.0 {
            [problem] => problem.fmt(f),
            problems => {
                write!(f, "{} problems in the configuration:", problems.len())?;
                problems.iter().try_for_each(|problem| write!(f, "\n  {problem}"))
            }
        }
    }
}

impl std::error::Error for ConfigErrors {}
