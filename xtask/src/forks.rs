//! The servers that fork the Python programs of the tests (`tests/python`). Otherwise each test would import their packages.

use std::{os::unix::process::CommandExt as _, process::Command};

use anyhow::{Context, Result};

use crate::{counterparts::Environment, service::Service, workspace::Workspace};

/// The programs: the variable with the socket's path, the folder of the package below `tests`, and the module.
const PROGRAMS: [(&str, &str, &str); 2] =
    [("REJOINDER_DISCORD_FORKS", "discord", "server.__main__"), ("REJOINDER_HUMAN_FORKS", "matrix", "server.human")];

/// Starts a server for each program, and adds the paths of their sockets to `environment`.
///
/// # Errors
///
/// When one does not start.
pub(crate) fn start(workspace: &Workspace, environment: &mut Environment) -> Result<Vec<Service>> {
    let tests = workspace.root().join("tests");
    let python = environment.get("REJOINDER_PYTHON").context("the Python of the tests is not set up")?.clone();
    let mut servers = Vec::new();
    for (variable, package, module) in PROGRAMS {
        let mut command = Command::new(&python);
        command.arg("-B").arg(tests.join("python/fork.py")).arg(module).current_dir(tests.join(package));
        // Ctrl+C reaches it as the end of its input.
        command.process_group(0);
        let (server, socket) = Service::start(command)?;
        environment.insert(variable, socket.into());
        servers.push(server);
    }
    Ok(servers)
}
