//! The homeserver that all test processes share. Otherwise each of them would start one.

use std::process::Command;

use anyhow::Result;

use crate::{counterparts::Environment, service::Service, workspace::Workspace};

/// Starts the homeserver, and adds its URL to `environment`.
///
/// # Errors
///
/// When it does not start.
pub(crate) fn start(workspace: &Workspace, environment: &mut Environment) -> Result<Service> {
    let mut command = Command::new(workspace.binary("debug", "matrix-homeserver"));
    command.envs(&*environment);
    let (homeserver, url) = Service::start(command)?;
    environment.insert("REJOINDER_HOMESERVER", url.into());
    Ok(homeserver)
}
