//! `rejoinder doctor`, as the binary, beside gateways of this process and none.

mod agents;
mod bots;
mod local;

use std::{fs::Permissions, os::unix::fs::PermissionsExt, path::Path, process::Stdio};

use serde_json::Value;
use tempfile::TempDir;
use tokio::process::Command;

use crate::support::TestGateway;

/// What the doctor said.
struct Visit {
    code: Option<i32>,
    findings: Vec<Value>,
}

impl Visit {
    /// Of the configuration `rejoinder.toml` in `folder`, which is the data directory too.
    async fn to(folder: &Path) -> Self {
        Self::with(folder, &[]).await
    }

    /// Of a gateway that runs.
    async fn of(gateway: &TestGateway) -> Self {
        let address = gateway.address.to_string();
        Self::with(gateway.data.path(), &[("REJOINDER__SERVER__LISTEN", &address)]).await
    }

    async fn with(folder: &Path, variables: &[(&str, &str)]) -> Self {
        let (code, out, _) = run(folder, &["--json"], variables).await;
        let visit: Value = serde_json::from_str(&out).unwrap_or_else(|error| panic!("{error}: {out}"));
        assert_eq!(visit["ok"], code == Some(0), "{out}");
        Self { code, findings: visit["findings"].as_array().unwrap().clone() }
    }

    /// All that was found about somebody: each verdict with what was found and what is to be done.
    fn about(&self, about: &str) -> Vec<(&str, String)> {
        let findings = self.findings.iter().filter(|finding| finding["about"] == about);
        let told = findings.map(|finding| {
            let (what, advice) = (finding["what"].as_str().unwrap(), finding["advice"].as_str().unwrap_or_default());
            (finding["verdict"].as_str().unwrap(), format!("{what} {advice}"))
        });
        told.collect()
    }

    /// Whether something with all of `words` was found about somebody.
    fn found(&self, about: &str, verdict: &str, words: &[&str]) -> bool {
        let is_it = |(its, what): &(&str, String)| *its == verdict && words.iter().all(|word| what.contains(word));
        self.about(about).iter().any(is_it)
    }

    #[track_caller]
    fn must_find(&self, about: &str, verdict: &str, words: &[&str]) {
        assert!(self.found(about, verdict, words), "{about} is not {verdict} with {words:?}: {:#?}", self.findings);
    }
}

/// Its exit code, what it printed, and what it complained of.
async fn run(folder: &Path, arguments: &[&str], variables: &[(&str, &str)]) -> (Option<i32>, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rejoinder"));
    command.args(["doctor", "--config", "rejoinder.toml"]).args(arguments).current_dir(folder).stdin(Stdio::null());
    command.env_clear().env("HOME", folder).env("REJOINDER_DATA", folder).envs(variables.iter().copied());
    let output = command.output().await.unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code(), text(output.stdout), text(output.stderr))
}

/// A folder with this configuration, for a gateway that listens on a free port.
async fn folder(config: &str) -> TempDir {
    let address = nobody().await;
    folder_with(&format!("[server]\nlisten = \"{address}\"\n{config}"))
}

/// A folder with this configuration, as private as a data directory should be.
fn folder_with(config: &str) -> TempDir {
    let private = Permissions::from_mode(0o700);
    let folder = tempfile::Builder::new().permissions(private).tempdir().unwrap();
    std::fs::write(folder.path().join("rejoinder.toml"), config).unwrap();
    folder
}

/// An address at which nobody listens.
async fn nobody() -> std::net::SocketAddr {
    tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap()
}
