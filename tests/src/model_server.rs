//! A third-party model server.

use std::{
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use crate::{AgentKind, eventually};

/// A real server with OpenAI's Chat Completions and Responses API (aimock), which also has Anthropic's API, with the answers of `tests/fixtures/model.json`.
#[derive(Debug)]
pub struct ModelServer {
    process: Child,
    port: u16,
}

impl ModelServer {
    /// Starts it and waits until it responds.
    ///
    /// # Panics
    /// If it is not installed: run the tests with `cargo xtask test`.
    pub async fn start() -> Self {
        let port = {
            let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
            listener.local_addr().expect("the listener has an address").port()
        };
        let program = counterparts().join("node_modules/.bin/llmock");
        assert!(program.exists(), "{} is missing: run `cargo xtask test`", program.display());
        let process = Command::new(program)
            .args(["-h", "127.0.0.1", "-p", &port.to_string(), "-f"])
            .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/model.json"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("the model server starts");
        let server = Self { process, port };
        let http = reqwest::Client::builder().no_proxy().build().expect("an HTTP client");
        eventually("the model server answers", async || {
            http.get(format!("http://127.0.0.1:{port}/health")).send().await.ok().map(drop)
        })
        .await;
        server
    }

    /// The configuration section of an agent `main` that uses it.
    #[must_use]
    pub fn section(&self) -> String {
        self.section_with("")
    }

    /// As [`section`](Self::section), with additional keys.
    #[must_use]
    pub fn section_with(&self, keys: &str) -> String {
        AgentKind::Openai.sections(self.port, keys)
    }

    /// The configuration section of an agent `main` that uses it by Anthropic's Messages API.
    #[must_use]
    pub fn anthropic_section(&self) -> String {
        let base_url = format!("http://127.0.0.1:{}", self.port);
        format!("[agents.main]\nkind = \"anthropic\"\nbase_url = \"{base_url}\"\nmodel = \"test-model\"\n")
    }
}

impl Drop for ModelServer {
    fn drop(&mut self) {
        // The process may have ended by itself.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// The folder of the installed packages that the tests run.
pub(crate) fn counterparts() -> PathBuf {
    std::env::var_os("REJOINDER_COUNTERPARTS")
        .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/counterparts"), PathBuf::from)
}
