//! Why a command failed.

use rejoinder_config::ConfigErrors;

/// Why a command failed.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// Wrong arguments.
    #[error("{0}")]
    Usage(String),
    /// The configuration is invalid.
    #[error(transparent)]
    Config(#[from] ConfigErrors),
    /// Something that has an exit code of its own, which the command's help names.
    #[error("{why}")]
    Coded { code: u8, why: String },
    /// Anything else.
    #[error("{0:#}")]
    Failed(#[from] anyhow::Error),
}

impl Failure {
    /// 2 for wrong arguments or an invalid configuration, else 1, or the command's own.
    #[must_use]
    pub const fn exit_code(&self) -> u8 {
        match self {
            Self::Usage(_) | Self::Config(_) => 2,
            Self::Coded { code, .. } => *code,
            Self::Failed(_) => 1,
        }
    }
}
