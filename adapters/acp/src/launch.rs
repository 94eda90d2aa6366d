//! Starts the agent's process.

use std::sync::Arc;

use rejoinder_agents::{
    Supervisor,
    serving::{ProgramProcess, ServingProgram, StartedProgram},
    tail::Tail,
};
use tokio::io::{AsyncRead, AsyncWrite};

use crate::AcpSection;

/// What starts an agent.
pub(crate) trait Launch: Send + Sync + 'static {
    /// # Errors
    /// Says why it cannot be started, for the operator.
    fn launch(&self) -> Result<Launched, String>;
}

/// An agent that was started.
pub(crate) struct Launched {
    pub(crate) input: Box<dyn AsyncWrite + Send + Unpin>,
    pub(crate) output: Box<dyn AsyncRead + Send + Unpin>,
    pub(crate) errors: Box<dyn AsyncRead + Send + Unpin>,
    pub(crate) process: Option<ProgramProcess>,
    /// Keeps the end of `errors`, without the agent's secrets.
    pub(crate) tail: Arc<Tail>,
}

/// Starts agents as processes.
pub(crate) struct Launcher {
    pub(crate) settings: AcpSection,
    pub(crate) supervisor: Supervisor,
}

impl Launch for Launcher {
    fn launch(&self) -> Result<Launched, String> {
        let StartedProgram { input, output, errors, process, tail } =
            self.settings.program().start(&self.supervisor)?;
        let (input, output, errors) = (Box::new(input), Box::new(output), Box::new(errors));
        Ok(Launched { input, output, errors, process: Some(process), tail })
    }
}

impl AcpSection {
    /// The program that is started.
    #[must_use]
    pub fn program(&self) -> ServingProgram<'_> {
        ServingProgram { command: &self.command, folder: self.folder(), env: &self.env, inherit: &self.inherit }
    }
}
