//! An asker's key, of a real implementation of age (`tests/age/key.py`).

use std::{
    io::Write,
    path::Path,
    process::{Command, Stdio},
};

use crate::agent::python;

/// A key to which answers are sealed.
#[derive(Clone, Debug)]
pub struct AgeKey {
    identity: String,
    /// Its public half.
    pub recipient: String,
}

impl AgeKey {
    /// A new key.
    ///
    /// # Panics
    /// If the Python of the tests has no `pyrage`.
    #[must_use]
    pub fn new() -> Self {
        let printed = run(&["new"], "").expect("pyrage makes a key");
        let (identity, recipient) = printed.trim().split_once('\n').expect("two lines");
        Self { identity: identity.to_owned(), recipient: recipient.to_owned() }
    }

    /// What an armoured file says; `None` if this key does not open it.
    #[must_use]
    pub fn open(&self, armour: &str) -> Option<String> {
        run(&["open", &self.identity], armour)
    }
}

impl Default for AgeKey {
    fn default() -> Self {
        Self::new()
    }
}

/// What the script prints; `None` if it fails.
fn run(arguments: &[&str], input: &str) -> Option<String> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("age/key.py");
    let mut command = Command::new(python());
    command.arg(script).args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut process = command.spawn().expect("Python starts");
    process.stdin.take().expect("it is piped").write_all(input.as_bytes()).expect("Python reads");
    let output = process.wait_with_output().expect("Python ends");
    output.status.success().then(|| String::from_utf8(output.stdout).expect("UTF-8"))
}
