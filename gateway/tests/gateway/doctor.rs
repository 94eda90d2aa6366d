//! Runs the binary's `rejoinder doctor`, with and without a gateway in this process.

mod agents;
mod bots;
mod local;
mod voice;

use std::{fs::Permissions, os::unix::fs::PermissionsExt, path::Path, process::Stdio};

use serde_json::Value;
use tempfile::TempDir;
use tokio::process::Command;

use crate::support::TestGateway;

/// A run of `rejoinder doctor`.
struct DoctorRun {
    code: Option<i32>,
    findings: Vec<Value>,
}

impl DoctorRun {
    /// Checks the configuration `rejoinder.toml` in `folder`, which is also the data directory.
    async fn in_folder(folder: &Path) -> Self {
        Self::with_env(folder, &[]).await
    }

    /// Checks a running gateway.
    async fn beside(gateway: &TestGateway) -> Self {
        let address = gateway.address.to_string();
        Self::with_env(gateway.data.path(), &[("REJOINDER__SERVER__LISTEN", &address)]).await
    }

    async fn with_env(folder: &Path, variables: &[(&str, &str)]) -> Self {
        let (code, out, _) = run(folder, &["--json"], variables).await;
        let report: Value = serde_json::from_str(&out).unwrap_or_else(|error| panic!("{error}: {out}"));
        assert_eq!(report["ok"], code == Some(0), "{out}");
        Self { code, findings: report["findings"].as_array().unwrap().clone() }
    }

    /// The findings about `about`: each verdict with what was found and the advice.
    fn about(&self, about: &str) -> Vec<(&str, String)> {
        let findings = self.findings.iter().filter(|finding| finding["about"] == about);
        let texts = findings.map(|finding| {
            let (what, advice) = (finding["what"].as_str().unwrap(), finding["advice"].as_str().unwrap_or_default());
            (finding["verdict"].as_str().unwrap(), format!("{what} {advice}"))
        });
        texts.collect()
    }

    /// Whether there is a finding about `about` with this verdict and all of `words`.
    fn has_finding(&self, about: &str, verdict: &str, words: &[&str]) -> bool {
        let matches = |(its, what): &(&str, String)| *its == verdict && words.iter().all(|word| what.contains(word));
        self.about(about).iter().any(matches)
    }

    #[track_caller]
    fn assert_finding(&self, about: &str, verdict: &str, words: &[&str]) {
        assert!(
            self.has_finding(about, verdict, words),
            "{about} is not {verdict} with {words:?}: {:#?}",
            self.findings
        );
    }
}

/// Runs `rejoinder doctor`; returns its exit code, standard output and standard error.
async fn run(folder: &Path, arguments: &[&str], variables: &[(&str, &str)]) -> (Option<i32>, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rejoinder"));
    command.args(["doctor", "--config", "rejoinder.toml"]).args(arguments).current_dir(folder).stdin(Stdio::null());
    command.env_clear().env("HOME", folder).env("REJOINDER_DATA", folder).envs(variables.iter().copied());
    let output = command.output().await.unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code(), text(output.stdout), text(output.stderr))
}

/// A folder with this configuration; its gateway would listen on a free port.
async fn folder(config: &str) -> TempDir {
    let address = unused_address().await;
    folder_with(&format!("[server]\nlisten = \"{address}\"\n{config}"))
}

/// A folder with this configuration and mode 700, as a data directory should have.
fn folder_with(config: &str) -> TempDir {
    let private = Permissions::from_mode(0o700);
    let folder = tempfile::Builder::new().permissions(private).tempdir().unwrap();
    std::fs::write(folder.path().join("rejoinder.toml"), config).unwrap();
    folder
}

/// An address where nothing listens.
async fn unused_address() -> std::net::SocketAddr {
    tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap()
}
