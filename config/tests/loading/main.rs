//! What an operator writes, and what becomes of it.

mod bad_input;
mod defaults;
mod discord;
mod environment;
mod lookup;
mod matrix;
mod secrets;
mod telegram;

use rejoinder_config::{Config, ConfigErrors, Environment, Loaded, Options, load};
use tempfile::TempDir;

/// An operator's machine: a working directory and an environment, no more.
struct Machine {
    dir: TempDir,
    options: Options,
}

impl Machine {
    fn new() -> Self {
        let dir = TempDir::new().expect("a temporary directory can be made");
        let working_dir = dir.path().to_owned();
        Self { dir, options: Options { path: None, working_dir, environment: Environment::default() } }
    }

    /// One with this in `./rejoinder.toml`.
    fn with_toml(toml: &str) -> Self {
        Self::new().with_file("rejoinder.toml", toml)
    }

    fn with_file(self, name: &str, content: &str) -> Self {
        let path = self.dir.path().join(name);
        std::fs::create_dir_all(path.parent().expect("a file is in a directory")).expect("it can be made");
        std::fs::write(path, content).expect("a file can be written");
        self
    }

    fn with_environment(mut self, variables: &[(&str, &str)]) -> Self {
        self.options.environment = variables.iter().copied().collect();
        self
    }

    fn load(&self) -> Result<Loaded, ConfigErrors> {
        load(&self.options)
    }

    fn config(&self) -> Config {
        self.load().expect("the configuration is right").config
    }

    /// What the operator reads, with this machine's directory left out.
    fn errors(&self) -> String {
        let errors = self.load().expect_err("the configuration is wrong").to_string();
        errors.replace(&*self.dir.path().to_string_lossy(), "…")
    }
}
