//! A real browser, driven by a script of `tests/browser`.

use std::{path::Path, process::Stdio};

use tokio::{
    io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader, Lines},
    process::{Child, ChildStdin, ChildStdout, Command},
    task::JoinHandle,
    time::timeout,
};

use crate::{PATIENCE, model_server::counterparts};

/// A person at a browser: a script that prints the checkpoint it has reached, waits there for a line on standard input, and
/// fails when it does not see what it should.
#[derive(Debug)]
pub struct Browser {
    script: String,
    process: Child,
    stdout: Lines<BufReader<ChildStdout>>,
    stdin: ChildStdin,
    stderr: JoinHandle<String>,
}

impl Browser {
    /// Starts `tests/browser/{script}.mjs` on the page at `url`.
    ///
    /// # Panics
    /// If Node.js cannot be started.
    #[must_use]
    pub fn start(script: &str, url: &str) -> Self {
        Self::start_with(script, url, &[])
    }

    /// The same with environment variables.
    ///
    /// # Panics
    /// If Node.js cannot be started.
    #[must_use]
    pub fn start_with(script: &str, url: &str, variables: &[(&str, &str)]) -> Self {
        let tests = Path::new(env!("CARGO_MANIFEST_DIR"));
        let mut process = Command::new("node")
            .arg(tests.join(format!("browser/{script}.mjs")))
            .env("REJOINDER_COUNTERPARTS", counterparts())
            .env("REJOINDER_URL", url)
            .env("REJOINDER_SCREENSHOTS", tests.join("../target/screenshots"))
            .envs(variables.iter().copied())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .expect("Node.js starts");
        let stdout = BufReader::new(process.stdout.take().expect("the script's output is piped")).lines();
        let stdin = process.stdin.take().expect("the script's input is piped");
        let mut stderr = process.stderr.take().expect("the script's errors are piped");
        let stderr = tokio::spawn(async move {
            let mut text = String::new();
            // What could be read before an error is shown.
            let _ = stderr.read_to_string(&mut text).await;
            text
        });
        Self { script: script.to_owned(), process, stdout, stdin, stderr }
    }

    /// Waits until the script reaches `checkpoint`, where it waits.
    ///
    /// # Panics
    /// If it fails first or reaches another one.
    pub async fn reaches(&mut self, checkpoint: &str) {
        let line = timeout(PATIENCE, self.stdout.next_line()).await.ok().map(|line| line.expect("output is read"));
        match line {
            Some(Some(reached)) => {
                assert_eq!(reached, checkpoint, "the script `{}` is at another checkpoint", self.script);
            }
            Some(None) => self.fail().await,
            None => panic!("the script `{}` did not reach `{checkpoint}` within {PATIENCE:?}", self.script),
        }
    }

    /// Lets the script continue from its checkpoint.
    ///
    /// # Panics
    /// If it has ended.
    pub async fn resume(&mut self) {
        self.stdin.write_all(b"\n").await.expect("the script reads its input");
    }

    /// Waits until the script has ended successfully.
    ///
    /// # Panics
    /// If it fails.
    pub async fn succeeds(mut self) {
        let status = timeout(PATIENCE, self.process.wait()).await;
        let status = status.unwrap_or_else(|_| panic!("the script `{}` does not end", self.script));
        if !status.expect("the script is waited for").success() {
            self.fail().await;
        }
    }

    async fn fail(&mut self) -> ! {
        let stderr = (&mut self.stderr).await.expect("the script's errors are read");
        panic!("the script `{}` failed:\n{stderr}", self.script)
    }
}
