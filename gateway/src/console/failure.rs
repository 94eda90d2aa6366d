//! Why a command failed.

use rejoinder_config::ConfigErrors;

/// Why a command failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    /// Wrong arguments.
    #[error("{0}")]
    Usage(String),
    /// The configuration is invalid.
    #[error(transparent)]
    Config(#[from] ConfigErrors),
    /// Anything else.
    #[error("{0:#}")]
    Failed(#[from] anyhow::Error),
}

impl Failure {
    /// 2 for wrong arguments or an invalid configuration, else 1.
    pub(crate) const fn exit_code(&self) -> u8 {
        match self {
            Self::Usage(_) | Self::Config(_) => 2,
            Self::Failed(_) => 1,
        }
    }
}
