//! What is wrong with a configuration, in words that say what to fix.

use std::{
    fmt,
    path::{Path, PathBuf},
    sync::Arc,
};

use crate::key::Key;

/// Where a value was written.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    /// In a file.
    File {
        /// The file, as it was named or found.
        path: Arc<Path>,
        /// The line, from 1.
        line: usize,
    },
    /// In an environment variable.
    Variable(Arc<str>),
    /// In the manual, which is built in.
    Default,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File { path, line } => write!(f, "{}:{line}", path.display()),
            Self::Variable(name) => write!(f, "${name}"),
            Self::Default => f.write_str("built-in default"),
        }
    }
}

/// One thing that is wrong.
#[derive(Debug, thiserror::Error)]
pub enum Problem {
    /// A key is unknown, missing, or has a value that cannot be used.
    #[error("config key `{key}` {what} ({place})")]
    Key {
        /// Which key.
        key: Key,
        /// What is wrong with it and what to do; reads on from the key's name. Never a secret.
        what: String,
        /// Where it was set; for a missing key, where its table begins.
        place: Place,
    },
    /// The file is not TOML.
    #[error("{what} ({place})")]
    Syntax {
        /// What the parser did not understand.
        what: String,
        /// Where.
        place: Place,
    },
    /// A file that was asked for cannot be read.
    #[error("config file {} ({asked_by}) cannot be read: {error}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What led to it.
        asked_by: &'static str,
        /// What the operating system said.
        #[source]
        error: std::io::Error,
    },
    /// An environment variable cannot be an override.
    #[error("environment variable {name} {what}")]
    Variable {
        /// Its name.
        name: String,
        /// What is wrong with it; reads on from the name. Never its value.
        what: String,
    },
}

impl Problem {
    /// The key that it is about, if it is about one.
    #[must_use]
    pub const fn key(&self) -> Option<&Key> {
        match self {
            Self::Key { key, .. } => Some(key),
            Self::Syntax { .. } | Self::Unreadable { .. } | Self::Variable { .. } => None,
        }
    }

    /// Problems of one file come in the order of its lines.
    fn order(&self) -> (u8, Option<&Place>, Option<&Key>) {
        match self {
            Self::Unreadable { .. } => (0, None, None),
            Self::Syntax { place, .. } => (1, Some(place), None),
            Self::Key { place, key, .. } => (2, Some(place), Some(key)),
            Self::Variable { .. } => (3, None, None),
        }
    }
}

/// Everything that is wrong with a configuration; never empty.
#[derive(Debug)]
pub struct ConfigErrors(Vec<Problem>);

impl ConfigErrors {
    pub(crate) fn new(mut problems: Vec<Problem>) -> Self {
        debug_assert!(!problems.is_empty(), "an error says what is wrong");
        problems.sort_by(|a, b| a.order().cmp(&b.order()));
        Self(problems)
    }

    /// Each problem, in the order of the file.
    #[must_use]
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
